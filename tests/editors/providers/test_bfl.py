"""Black Forest Labs: what is sent, what is told, how it refuses and fails."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from convergebench.chain import Settings
from convergebench.editor import Asked
from convergebench.editors.providers.catalogue import shelf
from convergebench.errors import (
    AccountBlocked,
    EditorFailed,
    EditorLost,
    EditorRefused,
    EditorUnavailable,
    SettingsError,
)
from convergebench.registry import open_editor
from tests.editors.providers.ask_polling import KEY, PROMPT, SOURCE, Asking, asking, lower
from tests.editors.providers.speak_bfl import BflSpeaker
from tests.support.loopback import Received, Reply
from tests.support.speaker import Speaker

PICTURE = base64.b64encode(SOURCE).decode()


@pytest.fixture
def fates() -> list[str]:
    return []


@pytest.fixture
def speaker(fates: list[str]) -> Iterator[BflSpeaker]:
    found = BflSpeaker(lambda number: fates[number] if number < len(fates) else "ok")
    with found:
        yield found


@pytest.fixture
def ask(speaker: BflSpeaker, monkeypatch: pytest.MonkeyPatch) -> Asking:
    return asking(speaker, monkeypatch)


FLUX2 = {
    "prompt": PROMPT,
    "input_image": PICTURE,
    "width": 1024,
    "height": 1024,
    "seed": 7,
    "prompt_upsampling": False,
    "safety_tolerance": 2,
    "output_format": "png",
}
KONTEXT = {
    "prompt": PROMPT,
    "input_image": PICTURE,
    "aspect_ratio": "1:1",
    "seed": 7,
    "prompt_upsampling": False,
    "safety_tolerance": 2,
    "output_format": "png",
}
KLEIN = {name: value for name, value in FLUX2.items() if name != "prompt_upsampling"}
FLUX3 = {
    "prompt": PROMPT,
    "images": [PICTURE],
    "aspect_ratio": "1:1",
    "resolution": "1k",
    "grounding": False,
    "safety_tolerance": 2,
    "version": "latest",
}


BODIES: dict[str, dict[str, Any]] = {
    "flux-kontext-pro": KONTEXT,
    "flux-kontext-max": KONTEXT,
    "flux-2-pro": FLUX2,
    "flux-2-pro-preview": FLUX2,
    "flux-2-max": FLUX2,
    "flux-2-flex": {**FLUX2, "steps": 50, "guidance": 4.5},
    "flux-2-klein-4b": KLEIN,
    "flux-2-klein-9b": KLEIN,
    "flux-3-image": FLUX3,
}


def test_the_body_is_known_for_every_model() -> None:
    assert set(BODIES) == set(shelf("bfl").by_id())


@pytest.mark.parametrize(("model", "body"), BODIES.items())
def test_every_model_is_sent_exactly_this(ask: Asking, model: str, body: dict[str, Any]) -> None:
    ask.editor = f"bfl:{model}"
    reply = ask()
    (post,) = ask.posts
    assert post.path == f"/v1/{model}"
    assert post.json == body
    assert lower(post)["x-key"] == KEY
    pictures = {"prompt", "input_image", "images"}
    assert reply.parameters == {k: v for k, v in body.items() if k not in pictures}
    assert reply.format == body.get("output_format")


def test_options_replace_what_is_pinned(ask: Asking) -> None:
    ask.editor = "bfl:flux-2-flex,guidance=3,steps=20"
    ask()
    assert (ask.body["steps"], ask.body["guidance"]) == (20, 3.0)
    with pytest.raises(SettingsError, match="from 1 to 50"):
        open_editor("bfl:flux-2-flex,steps=99")


@pytest.mark.parametrize(
    ("home", "resolution", "sides"),
    [
        ((1024, 1024), "native", (1024, 1024)),
        ((1000, 667), "native", (992, 672)),
        ((512, 512), "1K", (1024, 1024)),
        ((512, 512), "2K", (2048, 2048)),
        ((6000, 4000), "native", (2496, 1664)),
    ],
)
def test_flux_2_is_asked_for_an_explicit_size_that_it_takes(
    ask: Asking, home: tuple[int, int], resolution: str, sides: tuple[int, int]
) -> None:
    reply = ask(home=home, settings=Settings.model_validate({"resolution": resolution}))
    assert (ask.body["width"], ask.body["height"]) == sides
    assert reply.size == f"{sides[0]}x{sides[1]}"
    assert all(side % 16 == 0 for side in sides)
    assert sides[0] * sides[1] <= 2048 * 2048


@pytest.mark.parametrize(
    ("home", "ratio"), [((1200, 800), "3:2"), ((400, 1000), "9:21"), ((48, 64), "3:4")]
)
def test_kontext_is_asked_for_the_nearest_ratio_of_the_source(
    ask: Asking, home: tuple[int, int], ratio: str
) -> None:
    ask.editor = "bfl:flux-kontext-pro"
    reply = ask(home=home)
    assert ask.body["aspect_ratio"] == ratio
    assert reply.size == f"{ratio} 1K"
    assert any("1 megapixel" in caveat for caveat in reply.caveats)


def test_without_a_seed_none_is_sent_and_flux_3_never_gets_one(ask: Asking) -> None:
    ask(seed=None)
    assert "seed" not in ask.body
    spec = open_editor("bfl:flux-3-image").spec
    assert not spec.abilities.seeds
    assert "takes no seed" in spec.caveats
    assert any("expands the prompt" in caveat for caveat in spec.caveats)


def test_several_pictures_go_in_numbered_fields(ask: Asking) -> None:
    others = tuple(Speaker.picture(16, 16, seed=n) for n in range(3))
    ask(inputs=others)
    sent = [
        base64.b64decode(ask.body[n]) for n in ("input_image", "input_image_2", "input_image_3")
    ]
    assert sent == list(others)
    assert "input_image_4" not in ask.body
    ask.fails(EditorFailed, "takes 8 pictures at most, got 9", inputs=others * 3)
    assert len(ask.posts) == 1


def test_the_cost_is_the_one_that_bfl_tells(ask: Asking) -> None:
    reply = ask()
    assert reply.cost == 0.015
    assert reply.basis == "reported"
    assert reply.usage == {"cost": 1.5, "input_mp": 1, "output_mp": 1, "seed": 7, "duration": 1.25}
    assert reply.effective_prompt == f"{PROMPT} (as BFL read it)"
    assert reply.request_id == "task-0"


def test_a_cost_told_at_the_end_goes_before_the_one_at_the_beginning(
    ask: Asking, speaker: BflSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = speaker.answer

    def answer(request: Received) -> Reply:
        reply = whole(request)
        if isinstance(reply.body, dict) and reply.body.get("status") == "Ready":
            return Reply({**reply.body, "cost": 4.8})
        return reply

    monkeypatch.setattr(speaker, "answer", answer)
    assert ask().cost == 0.048


@pytest.mark.parametrize("odd", ["free", -1, True, None, float("nan"), float("inf")])
def test_a_cost_that_is_none_is_not_taken(ask: Asking, speaker: BflSpeaker, odd: Any) -> None:
    speaker.COST = odd
    reply = ask()
    assert reply.cost is None
    assert reply.basis == ""


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("flux-kontext-pro", 0.04), ("flux-kontext-max", 0.08), ("flux-2-pro", 0.045),
        ("flux-2-max", 0.10), ("flux-2-flex", 0.10), ("flux-2-klein-4b", 0.015),
        ("flux-2-klein-9b", 0.017), ("flux-3-image", 0.048),
    ],
)  # fmt: skip
def test_prices_of_a_megapixel_edit(model: str, dollars: float) -> None:
    price = open_editor(f"bfl:{model}").spec.price_of(Asked(Settings(), 1, 1024, 1024))
    assert price is not None
    assert price.expected == pytest.approx(dollars)


def test_larger_pictures_cost_more_by_the_megapixel() -> None:
    asked = Asked(Settings(resolution="2K"), 2, 1024, 1024)
    price = open_editor("bfl:flux-2-pro").spec.price_of(asked)
    assert price is not None
    assert price.expected == pytest.approx(0.03 + 3 * 0.015 + 4 * 0.015)


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        ("refused-request", r"Request Moderated \(Moderation Reasons: Derivative Works Filter\)"),
        ("refused-content", r"Content Moderated \(Moderation Reasons: Safety Filter\)"),
    ],
)
def test_moderation_is_a_refusal_with_its_reason(
    ask: Asking, fates: list[str], fate: str, words: str
) -> None:
    fates.append(fate)
    error = ask.fails(EditorRefused, words)
    assert error.told.request_id == "task-0"
    assert error.told.cost == 0.015, "nobody says that it was free"
    assert not error.told.task


@pytest.mark.parametrize("status", ["Error", "Failed"])
def test_a_task_that_failed_is_over_and_counts_as_billed(
    ask: Asking, speaker: BflSpeaker, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    whole = speaker.answer
    told = {"id": "task-0", "status": status, "details": "GPU fell off", "result": None}
    monkeypatch.setattr(
        speaker,
        "answer",
        lambda request: Reply(told) if "get_result" in request.path else whole(request),
    )
    error = ask.fails(EditorLost, f"{status} .GPU fell off.")
    assert not error.timed_out
    assert error.told.cost == 0.015
    assert not error.told.task


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (400, {"detail": "bad"}, EditorFailed, "HTTP 400: bad"),
        (402, {"detail": "Insufficient credits"}, AccountBlocked, "Insufficient credits.*add some"),
        (403, {"detail": f"Not authenticated: {KEY}"}, AccountBlocked, "<BFL_API_KEY>"),
        (
            422,
            {
                "detail": [
                    {"loc": ["body", "width"], "msg": "must be a multiple of 16", "type": "v"}
                ]
            },
            EditorFailed,
            "HTTP 422: body.width: must be a multiple of 16",
        ),
        (429, {"detail": "24 active tasks"}, EditorUnavailable, "24 active tasks"),
        (500, {"detail": "oops"}, EditorUnavailable, "HTTP 500"),
        (503, b"<html>busy</html>", EditorUnavailable, "busy"),
    ],
)
def test_what_a_rejected_submission_means(
    ask: Asking,
    speaker: BflSpeaker,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: Any,
    kind: Any,
    words: str,
) -> None:
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(body, status=status))
    error = ask.fails(kind, words)
    assert len(speaker.server.log) == 1, "nothing is sent twice"
    assert not ask.tasks
    if status == 429:
        assert error.limited


def test_the_polling_address_is_followed_as_it_was_given(ask: Asking) -> None:
    ask()
    assert ask.tasks[0]["polling_url"].endswith("/v1/get_result?id=task-0")
    assert ask.speaker.server.log[1].path == "/v1/get_result?id=task-0"


def test_a_polling_address_elsewhere_gets_no_key_the_base_is_asked_instead(
    ask: Asking, speaker: BflSpeaker
) -> None:
    speaker.polling_host = "https://bfl.ai.evil.example"
    assert ask().data == speaker.frame("ok")
    assert ask.tasks[0]["polling_url"].startswith("https://bfl.ai.evil.example")
    assert speaker.server.log[1].path == "/v1/get_result?id=task-0"


def test_a_task_not_found_with_http_200_is_as_gone_as_with_404(
    ask: Asking, speaker: BflSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = speaker.answer
    told = {"id": "task-0", "status": "Task not found", "result": None}
    monkeypatch.setattr(
        speaker,
        "answer",
        lambda request: Reply(told) if "get_result" in request.path else whole(request),
    )
    error = ask.fails(EditorLost, "knows no task task-0: Task not found")
    assert error.told.cost == 0.015


def test_no_more_than_the_documented_tasks_are_in_flight() -> None:
    assert open_editor("bfl:flux-2-pro").spec.concurrency == 24
    assert open_editor("bfl:flux-kontext-max").spec.concurrency == 6


def test_an_adapter_table_that_is_wrong_says_what(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "models.toml"
    own.write_text(
        '[[model]]\nprovider = "bfl"\nlike = "flux-2-pro"\nid = "mine"\n'
        'adapter = { many = "heap" }\n'
    )
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(own))
    with pytest.raises(SettingsError, match="bfl:mine: the adapter table: many"):
        open_editor("bfl:mine")
