"""fal: what is sent to each app, what is told, how it refuses and fails."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convergebench.chain import Settings
from convergebench.editor import Asked
from convergebench.editors.providers.catalogue import shelf
from convergebench.errors import (
    AccountBlocked,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.registry import open_editor
from tests.editors.providers.ask_polling import KEY, PROMPT, SOURCE, Asking, asking, lower
from tests.editors.providers.speak_fal import FalSpeaker
from tests.support.loopback import Received, Reply

PICTURE = f"data:image/png;base64,{base64.b64encode(SOURCE).decode()}"


@pytest.fixture
def fates() -> list[str]:
    return []


@pytest.fixture
def speaker(fates: list[str]) -> Iterator[FalSpeaker]:
    found = FalSpeaker(lambda number: fates[number] if number < len(fates) else "ok")
    with found:
        yield found


@pytest.fixture
def ask(speaker: FalSpeaker, monkeypatch: pytest.MonkeyPatch) -> Asking:
    return asking(speaker, monkeypatch)


KONTEXT = {
    "prompt": PROMPT,
    "image_url": PICTURE,
    "aspect_ratio": "1:1",
    "seed": 7,
    "num_images": 1,
    "sync_mode": False,
    "enhance_prompt": False,
    "safety_tolerance": "2",
    "guidance_scale": 3.5,
    "output_format": "png",
}
BANANA = {
    "prompt": PROMPT,
    "image_urls": [PICTURE],
    "aspect_ratio": "1:1",
    "resolution": "1K",
    "seed": 7,
    "num_images": 1,
    "sync_mode": False,
    "limit_generations": True,
    "enable_web_search": False,
    "output_format": "png",
}
BODIES = {
    "fal-ai/flux-pro/kontext": KONTEXT,
    "fal-ai/flux-pro/kontext/max": KONTEXT,
    "fal-ai/flux-2-pro/edit": {
        "prompt": PROMPT,
        "image_urls": [PICTURE],
        "image_size": {"width": 1024, "height": 1024},
        "seed": 7,
        "sync_mode": False,
        "enable_safety_checker": True,
        "safety_tolerance": "2",
        "output_format": "png",
    },
    "blackforestlabs/flux-3/edit-image": {
        "prompt": PROMPT,
        "image_urls": [PICTURE],
        "aspect_ratio": "1:1",
        "resolution": "1k",
        "grounding": False,
    },
    "google/nano-banana-2.1/edit": BANANA,
    "fal-ai/nano-banana-pro/edit": {**BANANA, "safety_tolerance": "4"},
    "openai/gpt-image-2/edit": {
        "prompt": PROMPT,
        "image_urls": [PICTURE],
        "image_size": {"width": 1024, "height": 1024},
        "quality": "medium",
        "num_images": 1,
        "sync_mode": False,
        "output_format": "png",
    },
}


def test_every_app_of_the_catalogue_is_looked_at_here() -> None:
    assert set(BODIES) == set(shelf("fal").by_id())


@pytest.mark.parametrize("app", BODIES)
def test_every_app_is_sent_exactly_this(ask: Asking, app: str) -> None:
    ask.editor = f"fal:{app}"
    reply = ask()
    (post,) = ask.posts
    assert post.path == f"/{app}"
    assert post.json == BODIES[app]
    left = {"prompt", "image_url", "image_urls"}
    assert reply.parameters == {k: v for k, v in BODIES[app].items() if k not in left}


def test_the_app_that_the_docs_add_is_sent_what_they_say(
    ask: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "editors" / "fal.md").read_text("utf-8")
    own = tmp_path / "models.toml"
    own.write_text(page.partition("```toml\n")[2].partition("```")[0])
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(own))
    ask.editor = "fal:someone/some-app/edit"
    ask()
    assert ask.posts[0].path == "/someone/some-app/edit"
    assert ask.body == {
        "prompt": PROMPT,
        "image_urls": [PICTURE],
        "image_size": {"width": 1024, "height": 1024},
        "num_images": 1,
        "sync_mode": False,
        "output_format": "png",
    }


def test_fals_own_retries_and_rerouting_are_switched_off(ask: Asking) -> None:
    ask()
    headers = lower(ask.posts[0])
    assert headers["authorization"] == f"Key {KEY}"
    assert headers["x-fal-no-retry"] == "1"
    assert headers["x-app-fal-disable-fallback"] == "1"
    assert headers["x-fal-disable-fallbacks"] == "1"


def test_resolutions_are_asked_for_by_name(ask: Asking) -> None:
    ask.editor = "fal:fal-ai/nano-banana-pro/edit"
    reply = ask(home=(1600, 900), settings=Settings(resolution="4K"))
    assert (ask.body["resolution"], ask.body["aspect_ratio"]) == ("4K", "16:9")
    assert reply.size == "16:9 4K"
    price = open_editor(ask.editor).spec.price_of(Asked(Settings(resolution="4K"), 1, 1600, 900))
    assert price is not None
    assert price.expected == 0.30


def test_the_addresses_that_fal_gives_are_followed(ask: Asking) -> None:
    reply = ask()
    paths = [request.path for request in ask.speaker.server.log]
    assert paths == [
        "/fal-ai/flux-pro/kontext",
        "/fal-ai/flux-pro/requests/req-0/status",
        "/fal-ai/flux-pro/requests/req-0",
        "/files/req-0.png",
    ]
    assert reply.request_id == "req-0"
    assert reply.usage == {"billable_units": 1.0, "inference_time": 1.5}
    assert reply.cost is None, "fal tells units, not dollars: the price rule counts"


def test_addresses_elsewhere_get_no_key_the_base_is_asked_instead(
    ask: Asking, speaker: FalSpeaker
) -> None:
    speaker.queue_host = "https://queue.fal.run.evil.example"
    assert ask().data == speaker.frame("ok")
    assert speaker.server.log[1].path == "/fal-ai/flux-pro/requests/req-0/status"


def test_a_violated_policy_is_a_refusal_with_its_reason(ask: Asking, fates: list[str]) -> None:
    fates.append("refused-policy")
    error = ask.fails(EditorRefused, r"content_policy_violation: body\.prompt: .* flagged")
    assert error.told.request_id == "req-0"
    assert not error.told.task
    assert ask.speaker.billed == 0


def test_a_picture_withheld_is_a_refusal_that_costs_as_much(ask: Asking, fates: list[str]) -> None:
    fates.append("refused-nsfw")
    error = ask.fails(EditorRefused, "has_nsfw_concepts")
    assert error.told.cost == 0.04
    assert ask.speaker.billed == 1


def test_no_picture_says_what_was_said_instead(ask: Asking, fates: list[str]) -> None:
    fates.append("no-image")
    ask.fails(EditorNoImage, "I would rather talk about it")


def result(
    speaker: FalSpeaker, monkeypatch: pytest.MonkeyPatch, *replies: Reply, status: Any = None
) -> None:
    """Answer the n-th look at a result with the n-th reply, the last one from then on."""
    whole = speaker.answer
    left = list(replies)

    def answer(request: Received) -> Reply:
        if status is not None and request.path.endswith("/status"):
            return Reply(status)
        if request.method == "GET" and request.path.endswith("/requests/req-0"):
            return left.pop(0) if len(left) > 1 else left[0]
        return whole(request)

    monkeypatch.setattr(speaker, "answer", answer)


def test_no_media_generated_is_no_image(
    ask: Asking, speaker: FalSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = {"loc": ["body"], "msg": "The model made nothing.", "type": "no_media_generated"}
    result(speaker, monkeypatch, Reply({"detail": [problem]}, status=422))
    ask.fails(EditorNoImage, "no_media_generated: body: The model made nothing")


def test_a_bad_argument_says_which(
    ask: Asking, speaker: FalSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = {"loc": ["body", "seed"], "msg": "Input should be an integer", "type": "int_type"}
    result(speaker, monkeypatch, Reply({"detail": [problem]}, status=422))
    ask.fails(EditorFailed, r"HTTP 422: int_type: body\.seed: Input should be an integer")


def test_an_app_that_broke_is_over_and_was_not_billed(ask: Asking, fates: list[str]) -> None:
    fates.append("app-broken")
    error = ask.fails(EditorLost, "runner_disconnected: Runner disconnected")
    assert not error.timed_out
    assert error.told.cost == 0.0
    assert not error.told.task
    assert ask.speaker.billed == 0


def test_completed_with_an_error_and_no_picture_is_lost(ask: Asking, fates: list[str]) -> None:
    fates.append("completed-error")
    error = ask.fails(EditorLost, "Runner disconnected")
    assert not error.told.task


def test_a_result_that_breaks_on_the_way_is_looked_at_again(
    ask: Asking, speaker: FalSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = {"images": [{"url": f"{speaker.server.url}/files/req-0.png"}]}
    early = Reply({"detail": "Request is still in progress"}, status=400)
    broken = Reply(b"<html>bad gateway</html>", status=502)
    result(speaker, monkeypatch, early, broken, Reply(picture))
    assert ask().data == speaker.frame("ok")
    assert len(ask.posts) == 1


def test_a_picture_may_come_as_a_data_uri_or_alone(
    ask: Asking, speaker: FalSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = {"url": PICTURE, "content_type": "image/png"}
    result(speaker, monkeypatch, Reply({"image": uri, "prompt": "as read"}))
    reply = ask()
    assert reply.data == SOURCE
    assert reply.effective_prompt == "as read"
    assert len(speaker.server.log) == 3, "nothing is downloaded"


def test_a_data_uri_that_is_none_is_no_image(
    ask: Asking, speaker: FalSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    result(speaker, monkeypatch, Reply({"images": [{"url": "data:image/png;base64,@@@"}]}))
    ask.fails(EditorNoImage, "data URI that is none")


def test_a_label_that_does_not_fit_is_a_caveat(ask: Asking, fates: list[str]) -> None:
    fates.append("mislabelled")
    assert "declared as png, but the bytes are jpeg" in ask().caveats


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, {"detail": f"No user found for {KEY}"}, AccountBlocked, "<FAL_KEY>"),
        (402, {"detail": "Exhausted balance"}, AccountBlocked, "Exhausted balance"),
        (403, {"detail": "User is locked"}, AccountBlocked, "User is locked"),
        (404, {"detail": "Application not found"}, EditorFailed, "Application not found"),
        (429, {"detail": "Too many"}, EditorUnavailable, "Too many"),
        (503, {"detail": "busy"}, EditorUnavailable, "busy"),
    ],
)
def test_what_a_rejected_submission_means(
    ask: Asking,
    speaker: FalSpeaker,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: Any,
    kind: Any,
    words: str,
) -> None:
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(body, status=status))
    error = ask.fails(kind, words)
    assert len(speaker.server.log) == 1, "nothing is sent twice"
    if status == 429:
        assert error.limited
