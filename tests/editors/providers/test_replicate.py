"""Replicate: what is sent to each model, what is told, how it refuses and fails."""

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
)
from convergebench.registry import open_editor
from tests.editors.providers.ask_polling import KEY, PROMPT, SOURCE, Asking, asking, lower
from tests.editors.providers.speak_replicate import ReplicateSpeaker
from tests.support.loopback import Reply
from tests.support.speaker import Speaker

PICTURE = f"data:image/png;base64,{base64.b64encode(SOURCE).decode()}"
UNPINNED = "version not pinned; the returned one is recorded"


@pytest.fixture
def fates() -> list[str]:
    return []


@pytest.fixture
def speaker(fates: list[str]) -> Iterator[ReplicateSpeaker]:
    found = ReplicateSpeaker(lambda number: fates[number] if number < len(fates) else "ok")
    with found:
        yield found


@pytest.fixture
def ask(speaker: ReplicateSpeaker, monkeypatch: pytest.MonkeyPatch) -> Asking:
    return asking(speaker, monkeypatch)


KONTEXT = {
    "prompt": PROMPT,
    "input_image": PICTURE,
    "aspect_ratio": "1:1",
    "seed": 7,
    "prompt_upsampling": False,
    "safety_tolerance": 2,
    "output_format": "png",
}
FLUX2 = {
    "prompt": PROMPT,
    "input_images": [PICTURE],
    "aspect_ratio": "custom",
    "width": 1024,
    "height": 1024,
    "seed": 7,
    "safety_tolerance": 2,
    "output_format": "png",
    "output_quality": 100,
}
BANANA = {
    "prompt": PROMPT,
    "image_input": [PICTURE],
    "aspect_ratio": "1:1",
    "resolution": "1K",
    "output_format": "png",
}
INPUTS: dict[str, dict[str, Any]] = {
    "black-forest-labs/flux-kontext-pro": KONTEXT,
    "black-forest-labs/flux-kontext-max": KONTEXT,
    "black-forest-labs/flux-kontext-dev": {
        "prompt": PROMPT,
        "input_image": PICTURE,
        "aspect_ratio": "1:1",
        "seed": 7,
        "num_inference_steps": 30,
        "guidance": 2.5,
        "disable_safety_checker": False,
        "output_format": "png",
        "output_quality": 100,
    },
    "black-forest-labs/flux-2-pro": FLUX2,
    "black-forest-labs/flux-2-flex": {
        **FLUX2,
        "prompt_upsampling": False,
        "steps": 30,
        "guidance": 4.5,
    },
    "google/nano-banana-pro": {**BANANA, "safety_filter_level": "block_only_high"},
    "google/nano-banana-2": {**BANANA, "google_search": False, "image_search": False},
    "qwen/qwen-image-edit-plus": {
        "prompt": PROMPT,
        "image": [PICTURE],
        "aspect_ratio": "match_input_image",
        "go_fast": False,
        "seed": 7,
        "disable_safety_checker": False,
        "output_format": "png",
        "output_quality": 100,
    },
}


def test_every_model_of_the_catalogue_is_looked_at_here() -> None:
    assert set(INPUTS) == set(shelf("replicate").by_id())


@pytest.mark.parametrize("model", INPUTS)
def test_every_model_is_sent_exactly_this(ask: Asking, model: str) -> None:
    ask.editor = f"replicate:{model}"
    reply = ask()
    (post,) = ask.posts
    assert post.path == f"/v1/models/{model}/predictions"
    assert post.json == {"input": INPUTS[model]}
    assert lower(post)["authorization"] == f"Bearer {KEY}"
    assert "prefer" not in lower(post), "a wait that is cut off would hide the prediction's id"
    assert reply.size
    assert reply.format == "png"
    pictures = {"prompt", shelf("replicate").by_id()[model].adapter["pictures"]}
    assert reply.parameters == {k: v for k, v in INPUTS[model].items() if k not in pictures}


def test_a_version_can_be_pinned(ask: Asking) -> None:
    ask.editor = "replicate:google/nano-banana-pro,version=99256cc4"
    reply = ask()
    (post,) = ask.posts
    assert post.path == "/v1/predictions"
    assert post.json["version"] == "99256cc4"
    assert "version" not in post.json["input"]
    assert reply.model == "by/version:99256cc4"
    assert reply.parameters["version"] == "99256cc4"
    assert UNPINNED not in reply.caveats


def test_what_answered_is_recorded(ask: Asking) -> None:
    reply = ask()
    assert reply.model == f"black-forest-labs/flux-kontext-pro:{ReplicateSpeaker.VERSION}"
    assert UNPINNED in reply.caveats
    assert reply.usage == {"predict_time": 3.5, "total_time": 4.0}
    assert reply.request_id == "p0"
    assert reply.cost is None


def test_predictions_are_asked_after_on_the_base_wherever_the_server_points(ask: Asking) -> None:
    ask()
    paths = [request.path for request in ask.speaker.server.log[1:]]
    assert paths == ["/v1/predictions/p0", "/delivery/p0/out.png"]


def test_an_output_may_be_a_list(ask: Asking, speaker: ReplicateSpeaker) -> None:
    speaker.as_list = True
    assert ask().data == speaker.frame("ok")


def test_sides_stay_within_the_models_limits(ask: Asking) -> None:
    ask.editor = "replicate:black-forest-labs/flux-2-flex"
    ask(home=(9000, 3000))
    sides = ask.body["input"]["width"], ask.body["input"]["height"]
    assert all(256 <= side <= 2048 and side % 32 == 0 for side in sides)


def test_a_model_that_takes_one_picture_gets_one(ask: Asking) -> None:
    two = (SOURCE, Speaker.picture(16, 16))
    ask.fails(EditorFailed, "takes 1 picture at most, got 2", inputs=two)
    assert not ask.posts


@pytest.mark.parametrize(
    ("fate", "words"), [("refused-sensitive", "E005"), ("refused-nsfw", "NSFW content detected")]
)
def test_a_flagged_prediction_is_a_refusal(
    ask: Asking, fates: list[str], fate: str, words: str
) -> None:
    fates.append(fate)
    error = ask.fails(EditorRefused, words)
    assert error.told.request_id == "p0"
    assert ask.speaker.billed == 0


def test_a_failure_that_will_come_again_is_final_one_that_may_pass_is_not(
    ask: Asking, fates: list[str]
) -> None:
    fates += ["failed-plain", "failed-passing", "canceled", "aborted"]
    ask.fails(EditorFailed, "cannot identify image file")
    assert not ask.fails(EditorLost, "E003").timed_out
    assert ask.fails(EditorLost, "canceled").told.cost is None
    error = ask.fails(EditorLost, "aborted")
    assert error.told.cost == 0.0, "it never began to run"
    assert not error.told.task


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, {"title": "Unauthenticated", "detail": KEY}, AccountBlocked, "<REPLICATE_API_TOKEN>"),
        (402, {"title": "Insufficient credit", "detail": "Buy."}, AccountBlocked, "credit: Buy"),
        (404, {"detail": "No such model"}, EditorFailed, "No such model"),
        (
            422,
            {"title": "Input validation failed", "detail": "- input.safety_tolerance: too large"},
            EditorFailed,
            "Input validation failed: - input.safety_tolerance",
        ),
        (500, {"detail": "oops"}, EditorUnavailable, "oops"),
    ],
)
def test_what_a_rejected_submission_means(
    ask: Asking,
    speaker: ReplicateSpeaker,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: Any,
    kind: Any,
    words: str,
) -> None:
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(body, status=status))
    ask.fails(kind, words)
    assert len(speaker.server.log) == 1, "nothing is sent twice"


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        ({"retry-after": "3"}, {"retry_after": 9}, 3.0),
        ({}, {"retry_after": 9}, 9.0),
        ({}, {}, None),
    ],
)
def test_too_many_calls_say_when_to_come_back(
    ask: Asking,
    speaker: ReplicateSpeaker,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    body: dict[str, Any],
    wait: float | None,
) -> None:
    told = {"detail": "Request was throttled.", "status": 429, **body}
    monkeypatch.setattr(
        speaker, "answer", lambda _request: Reply(told, status=429, headers=headers)
    )
    error = ask.fails(EditorUnavailable, "throttled")
    assert error.limited
    assert error.retry_after == wait


def test_prices_follow_the_resolution() -> None:
    spec = open_editor("replicate:google/nano-banana-pro").spec
    low = spec.price_of(Asked(Settings(), 1, 512, 512))
    high = spec.price_of(Asked(Settings(resolution="4K"), 1, 512, 512))
    assert low is not None
    assert high is not None
    assert (low.expected, high.expected) == (0.15, 0.30)
