"""Conversations with OpenAI: the real SDK's Responses API against a loopback server."""

from __future__ import annotations

import base64
import io
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from convergebench.chain import Settings
from convergebench.editor import Asked, EditReply, EditRequest, Turn
from convergebench.editors.providers.openai import open_editor
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.frame import Frame
from tests.editors.providers.ask_once import KEY, frame, request, starting
from tests.editors.providers.speak_openai import CHAT_PRICE, CHAT_USAGE, USAGE, OpenAISpeaker

CHAT = Settings(session="chat")
MODEL = "gpt-image-2.5-sunburst-2026-09-08"
Start = Callable[..., OpenAISpeaker]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starting(OpenAISpeaker, monkeypatch) as begin:
        yield begin


def first(**changes: Any) -> EditRequest:
    source = frame()
    return request(source, settings=CHAT, history=(Turn(0, "", lambda: source),), **changes)


def later(before: EditRequest, reply: EditReply, prompt: str = "Take it away.") -> EditRequest:
    """The request of the step after."""
    made = Frame(reply.data)
    turn = Turn(before.step, before.prompt, lambda: made, dict(reply.session))
    return request(
        made,
        prompt=prompt,
        step=before.step + 1,
        settings=CHAT,
        history=(*before.history, turn),
    )


def failing(speaker: OpenAISpeaker, asked: EditRequest | None = None) -> EditorError:
    with pytest.raises(EditorError) as caught:
        open_editor(MODEL).edit(asked or first())
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.told)
    assert KEY not in shown
    assert len(speaker.begun) <= 1
    return caught.value


def pictures(message: dict[str, Any]) -> list[bytes]:
    urls = [p["image_url"] for p in message["content"] if p["type"] == "input_image"]
    assert all(url.startswith("data:image/png;base64,") for url in urls)
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def words(message: dict[str, Any]) -> list[str]:
    return [p["text"] for p in message["content"] if p["type"] in ("input_text", "output_text")]


def test_a_first_turn_is_pinned_field_by_field(start: Start) -> None:
    speaker = start()
    asked = first()
    open_editor(MODEL).edit(asked)
    (received,) = speaker.server.log
    assert (received.method, received.path) == ("POST", "/v1/responses")
    body = received.json
    (message,) = body.pop("input")
    assert body == {
        "model": "gpt-5.6-sol",
        "tools": [
            {
                "type": "image_generation",
                "action": "edit",
                "model": MODEL,
                "background": "opaque",
                "size": "1024x1024",
                "quality": "medium",
                "output_format": "png",
            }
        ],
        "tool_choice": {"type": "image_generation"},
        "max_tool_calls": 1,
        "reasoning": {"summary": "auto"},
        "store": True,
    }
    assert message["role"] == "user"
    assert [part["type"] for part in message["content"]] == ["input_image", "input_text"]
    assert message["content"][0]["detail"] == "high"
    assert pictures(message) == [asked.inputs[0].data]
    assert words(message) == [asked.prompt]


def test_the_reply_holds_all_that_was_told(start: Start) -> None:
    speaker = start()
    editor = open_editor(MODEL)
    reply = editor.edit(first())
    assert reply.data == speaker.frame("ok")
    assert reply.model == "gpt-5.6-sol-2026-06-26"
    assert reply.request_id == "req_1"
    assert reply.effective_prompt == "A careful edit of the picture."
    assert reply.reasoning == "I shall keep the rest."
    assert reply.session == {"response": "resp_1"}
    assert reply.usage["usage"] == CHAT_USAGE
    assert reply.usage["tool_usage"]["image_gen"] == USAGE
    assert reply.usage["returned"]["size"] == "1024x1024"
    assert reply.cost == pytest.approx(CHAT_PRICE)
    assert reply.basis == "usage"
    assert reply.parameters["tools"][0]["model"] == MODEL
    assert "gpt-5.6-sol rewrites the prompt for the image tool" in reply.caveats
    assert set(editor.spec.caveats) < set(reply.caveats)


def test_a_later_turn_refers_to_the_one_before_and_sends_words_only(start: Start) -> None:
    speaker = start()
    editor = open_editor(MODEL)
    asked = first()
    second = later(asked, editor.edit(asked))
    reply = editor.edit(second)
    body = speaker.server.log[1].json
    assert body["previous_response_id"] == "resp_1"
    (message,) = body["input"]
    assert pictures(message) == []
    assert words(message) == ["Take it away."]
    assert reply.session == {"response": "resp_2"}
    assert reply.parameters["previous_response_id"] == "resp_1"


def test_a_picture_that_the_conversation_does_not_end_with_is_sent(start: Start) -> None:
    speaker = start()
    editor = open_editor(MODEL)
    asked = first()
    other = frame(seed=5)
    second = later(asked, editor.edit(asked))
    both = request(
        *second.inputs, other, step=2, settings=CHAT, history=second.history, prompt="Join them."
    )
    editor.edit(both)
    (message,) = speaker.server.log[1].json["input"]
    assert pictures(message) == [other.data]


@pytest.mark.parametrize("lost", ["forgotten", "never kept"])
def test_a_conversation_nobody_keeps_is_written_anew(start: Start, lost: str) -> None:
    speaker = start()
    editor = open_editor(MODEL)
    asked = first()
    second = later(asked, editor.edit(asked))
    third = later(second, editor.edit(second), "Turn it blue.")
    if lost == "forgotten":
        speaker.kept.clear()
    else:
        turns = [Turn(t.step, t.prompt, t.load) for t in third.history]
        third = request(
            *third.inputs, prompt=third.prompt, step=3, settings=CHAT, history=tuple(turns)
        )
    reply = editor.edit(third)
    assert len(speaker.server.log) == (4 if lost == "forgotten" else 3)
    assert speaker.billed == 3, "being told that it is forgotten costs nothing"
    body = speaker.server.log[-1].json
    assert "previous_response_id" not in body
    assert [message["role"] for message in body["input"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    told = [message for message in body["input"] if message["role"] == "user"]
    assert [words(message) for message in told] == [
        [asked.prompt],
        ["Take it away."],
        ["Turn it blue."],
    ]
    frames = [turn.load().data for turn in third.history]
    assert [pictures(message) for message in told] == [[data] for data in frames]
    assert "the conversation was written anew from the stored frames" in reply.caveats
    assert reply.session == {"response": f"resp_{len(speaker.begun)}"}


def test_a_long_conversation_is_written_anew_in_part_and_says_so(start: Start) -> None:
    speaker = start()
    frames = [frame(16, 16, seed=n) for n in range(31)]
    turns = tuple(Turn(n, f"edit {n}", lambda n=n: frames[n]) for n in range(31))  # type: ignore[misc]
    asked = request(frames[-1], step=31, settings=CHAT, history=turns, prompt="edit 31")
    reply = open_editor(MODEL).edit(asked)
    told = [m for m in speaker.server.log[0].json["input"] if m["role"] == "user"]
    sent = [words(message)[0] for message in told]
    assert sent == ["edit 1", *(f"edit {n}" for n in range(17, 32))]
    assert sum(len(pictures(message)) for message in told) == 16
    assert "only 15 of 30 earlier turns were sent again" in reply.caveats


def test_a_region_goes_into_the_tool(start: Start) -> None:
    speaker = start()
    editor = open_editor(MODEL, mask="region")
    reply = editor.edit(first(region=(0.0, 0.0, 0.5, 1.0)))
    mask = speaker.server.log[0].json["tools"][0]["input_image_mask"]["image_url"]
    with Image.open(io.BytesIO(base64.b64decode(mask.partition(",")[2]))) as image:
        alpha = np.asarray(image)[..., 3]
    assert (alpha[:, :32] == 0).all()
    assert (alpha[:, 32:] == 255).all()
    assert reply.parameters["mask"] == "region"
    assert "input_image_mask" not in reply.parameters["tools"][0], "pictures are no parameters"


def call(**facts: Any) -> dict[str, Any]:
    return {"id": "ig_1", "type": "image_generation_call", "result": None, **facts}


BLOCKED = {
    "code": "moderation_blocked",
    "type": "image_generation_user_error",
    "message": "Rejected by the safety system.",
    "moderation_details": {"categories": ["violence"], "moderation_stage": "output"},
}


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        (
            {"output": [call(status="failed", error=BLOCKED)]},
            EditorRefused,
            r"moderation_blocked.*\(violence; at the output\)",
        ),
        (
            {"output": [call(status="failed", error={"message": "no", "type": "oddity"})]},
            EditorNoImage,
            "OpenAI: no",
        ),
        (
            {
                "output": [
                    {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
                ]
            },
            EditorRefused,
            "I will not",
        ),
        (
            {
                "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "Which ball?"}]}
                ]
            },
            EditorNoImage,
            "without a picture: Which ball",
        ),
        (
            {
                "output": [],
                "status": "incomplete",
                "incomplete_details": {"reason": "content_filter"},
            },
            EditorRefused,
            "content_filter",
        ),
        (
            {
                "output": [],
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            EditorNoImage,
            "max_output_tokens",
        ),
        (
            {
                "output": [],
                "status": "failed",
                "error": {"code": "image_content_policy_violation", "message": "no"},
            },
            EditorRefused,
            "image_content_policy_violation",
        ),
        (
            {
                "output": [],
                "status": "failed",
                "usage": None,
                "tool_usage": None,
                "error": {"code": "server_error", "message": "broken"},
            },
            EditorUnavailable,
            "server_error",
        ),
        (
            {
                "output": [],
                "status": "failed",
                "error": {"code": "server_error", "message": "broken"},
            },
            EditorLost,
            "server_error",
        ),
    ],
)
def test_every_way_to_have_no_picture_is_told_apart(
    start: Start, change: dict[str, Any], kind: type[EditorError], says: str
) -> None:
    speaker = start()
    speaker.change = change
    error = failing(speaker)
    with pytest.raises(kind, match=says):
        raise error
    assert error.told is not None
    assert error.told.model == "gpt-5.6-sol-2026-06-26"
    counted = change.get("usage", CHAT_USAGE) is not None
    assert error.told.cost == (pytest.approx(CHAT_PRICE) if counted else None)


@pytest.mark.parametrize(
    ("fate", "kind"),
    [
        ("limited-delay", EditorUnavailable),
        ("broken", EditorUnavailable),
        ("key", AccountBlocked),
        ("quota", AccountBlocked),
        ("refused-moderation", EditorRefused),
        ("cut", EditorLost),
        ("no-image", EditorNoImage),
    ],
)
def test_faults_are_those_of_single_edits(start: Start, fate: str, kind: type[EditorError]) -> None:
    assert type(failing(start(fate))) is kind


def test_without_the_tools_usage_the_price_rule_counts(start: Start) -> None:
    speaker = start()
    speaker.change = {"tool_usage": None}
    reply = open_editor(MODEL).edit(first())
    assert (reply.cost, reply.basis) == (None, "")


def test_a_conversation_costs_more_with_every_turn() -> None:
    spec = open_editor(MODEL).spec
    alone = spec.price_of(Asked(Settings(), 1, 1024, 1024, "x" * 80))
    turns = [spec.price_of(Asked(CHAT, step, 1024, 1024, "x" * 80)) for step in (1, 2, 10)]
    assert alone is not None
    seen = [price for price in turns if price is not None]
    expected = [price.expected for price in seen]
    assert alone.expected < expected[0] < expected[1] < expected[2]
    read = (1250 * 5 + 600 * 30) / 1e6
    assert expected[0] == pytest.approx(alone.expected + read)
    assert seen[0].low <= CHAT_PRICE <= seen[0].high


def test_the_image_tool_reads_sixteen_pictures_of_a_conversation_at_most() -> None:
    spec = open_editor(MODEL).spec
    found = [spec.price_of(Asked(CHAT, step, 1024, 1024)) for step in (16, 17, 18)]
    first, second, third = (price.expected for price in found if price is not None)
    assert second - first == pytest.approx(1250 * 5 / 1e6), "only the chat model reads one more"
    assert third - second == pytest.approx(second - first)


def test_a_conversation_of_changing_resolutions_is_priced_by_its_largest_pictures() -> None:
    spec = open_editor(MODEL).spec
    mixed = Settings(session="chat", resolution="interleaved")
    large = Settings(session="chat", resolution="4K")
    found = [spec.price_of(Asked(settings, 4, 1024, 1024)) for settings in (mixed, large)]
    assert found[0] == found[1], "step 4 makes 1K, and reads what was made at 4K before"
