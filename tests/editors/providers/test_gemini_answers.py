"""What the Gemini editor makes of an answer: the picture, its cost, or why there is none."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.editors.providers.gemini_answers import read
from convergebench.errors import (
    EditorNoImage,
    EditorRefused,
)
from convergebench.registry import open_editor
from tests.editors.providers.ask_gemini import (
    NEW,
    Scripted,
    edited,
    raised,
    scripted,
)
from tests.editors.providers.speak_gemini import (
    BLOCKS,
    FINISHES,
    GeminiSpeaker,
    picture_part,
)
from tests.support.loopback import Reply
from tests.support.speaker import Speaker


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    with scripted(monkeypatch) as speaker:
        yield speaker


def test_the_reply_holds_all_that_was_told(server: Scripted) -> None:
    reply = edited(NEW)
    assert reply.data == server.frame("ok"), "the bytes as sent; not the draft"
    assert reply.model == "gemini-nano-banana-2.1"
    assert reply.request_id == "response-1"
    assert reply.reasoning == "I look at the sky.\n\nThe draft is good."
    assert reply.usage == GeminiSpeaker.usage(1120)
    assert reply.parameters == {
        "api_version": "v1",
        "response_modalities": ["TEXT", "IMAGE"],
        "image_config": {"aspect_ratio": "3:2", "image_size": "1K"},
        "thinking_config": {"include_thoughts": True, "thinking_level": "MEDIUM"},
        "max_output_tokens": 9312,
        "seed": 7,
    }
    assert (reply.size, reply.format, reply.effective_prompt) == ("1264x848", None, None)
    assert reply.session == {}, "separate calls keep nothing"
    assert reply.caveats == open_editor(NEW).spec.caveats
    assert any("SynthID" in caveat for caveat in reply.caveats)
    json.dumps([reply.parameters, reply.usage])


def test_cost_follows_from_the_tokens_that_were_counted(server: Scripted) -> None:
    reply = edited(NEW)
    assert reply.basis == "usage"
    # 1,120 + 10 read at 1.50, 1,120 drawn at 30, 6 written and 90 thought at 7.50 per million.
    assert reply.cost == pytest.approx((1130 * 1.5 + 1120 * 30 + 96 * 7.5) / 1e6)


def test_a_draft_alone_is_no_picture(server: Scripted) -> None:
    draft = picture_part(Speaker.picture(8, 8), thought=True)
    server.script = lambda model: Reply(server.drawn(model, b"", draft))
    assert isinstance(raised(), EditorNoImage)


def test_of_several_pictures_the_last_counts_and_that_is_a_caveat(server: Scripted) -> None:
    first, last = (Speaker.picture(8, 8, seed=n) for n in (1, 2))
    server.script = lambda model: Reply(
        server.drawn(
            model,
            b"",
            picture_part(first),
            picture_part(last),
            picture_part(first, thought=True),
        )
    )
    reply = edited()
    assert reply.data == last
    assert "several pictures were sent; the last one counts" in reply.caveats


def test_another_model_than_the_one_asked_for_is_a_caveat(server: Scripted) -> None:
    server.script = lambda _model: Reply(server.drawn("gemini-9", Speaker.picture(8, 8)))
    reply = edited()
    assert reply.model == "gemini-9"
    assert "gemini-3.1-flash-lite-image was asked for, gemini-9 answered" in reply.caveats


def test_both_alphabets_of_base64_are_read(server: Scripted) -> None:
    data = Speaker.picture(24, 24, seed=3)
    part = {
        "inlineData": {"mimeType": "image/png", "data": base64.urlsafe_b64encode(data).decode()}
    }
    assert {"-", "_"} & set(part["inlineData"]["data"])
    server.script = lambda model: Reply(server.drawn(model, b"", part))
    assert edited().data == data


def test_a_picture_that_is_no_base64_is_none(server: Scripted) -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "§§§"}}
    server.script = lambda model: Reply(server.drawn(model, b"", part))
    error = raised()
    assert isinstance(error, EditorNoImage)
    assert "no base64" in str(error)


def test_a_picture_with_an_odd_reason_to_stop_is_kept_with_a_caveat(server: Scripted) -> None:
    def script(model: str) -> Reply:
        body = server.drawn(model, Speaker.picture(8, 8))
        body["candidates"][0]["finishReason"] = "MAX_TOKENS"
        return Reply(body)

    server.script = script
    assert "the model stopped with MAX_TOKENS" in edited().caveats


def test_the_sdk_does_not_go_on_by_itself_for_more_money(server: Scripted) -> None:
    def script(model: str) -> Reply:
        body = server.finished(model, "CONTINUATION")
        body["candidates"][0]["continuationToken"] = "AAAA"
        body["continuationToken"] = "AAAA"
        return Reply(body)

    server.script = script
    assert isinstance(raised(), EditorNoImage)
    assert len(server.server.log) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("candidates", "content", "parts", "text", "thought", "inlineData", "data"),
                    *("mimeType", "finishReason", "blockReason", "promptTokenCount", "modality"),
                    *("candidatesTokensDetails", "thoughtSignature", "tokenCount"),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(["candidates", "promptFeedback", "usageMetadata"]), JSON))
def test_no_json_is_so_odd_that_reading_it_fails(body: dict[str, Any]) -> None:
    answer = read(body)
    answer.tokens()
    assert isinstance(answer.why_none(), EditorNoImage | EditorRefused)


@pytest.mark.parametrize("reason", BLOCKS)
def test_a_blocked_prompt_is_a_refusal(server: Scripted, reason: str) -> None:
    feedback = {"blockReason": reason, "blockReasonMessage": "We do not do that."}
    server.script = lambda model: Reply(server.told(model, promptFeedback=feedback))
    error = raised()
    assert isinstance(error, EditorRefused)
    assert str(error) == f"Google Gemini blocked the prompt: {reason}: We do not do that."
    assert error.told is not None
    assert error.told.cost is None
    assert error.told.request_id == "response-1"


@pytest.mark.parametrize("reason", FINISHES)
def test_a_refusal_while_drawing_says_why_and_what_it_cost(server: Scripted, reason: str) -> None:
    server.script = lambda model: Reply(server.finished(model, reason))
    error = raised()
    assert isinstance(error, EditorRefused)
    assert f"{reason}: Unable to show the picture ({reason})." in str(error)
    assert error.told is not None
    assert error.told.model == "gemini-3.1-flash-lite-image"
    assert error.told.basis == "usage"
    assert error.told.cost == pytest.approx((1130 * 0.25 + 96 * 1.5) / 1e6)


@pytest.mark.parametrize(
    "reason",
    ["NO_IMAGE", "IMAGE_OTHER", "MAX_TOKENS", "OTHER", "STOP", "LANGUAGE", "SOMETHING_NEW"],
)
def test_other_reasons_without_a_picture_are_no_image(server: Scripted, reason: str) -> None:
    server.script = lambda model: Reply(
        server.finished(
            model, reason, {"text": "A thought.", "thought": True}, {"text": "I\ncannot."}
        )
    )
    error = raised()
    assert isinstance(error, EditorNoImage)
    assert f"sent no picture: {reason}" in str(error)
    assert str(error).endswith("It said: I cannot.")
    assert error.told is not None
    assert error.told.reasoning == "A thought."
    assert error.told.cost


def test_an_empty_answer_is_no_image_and_says_so(server: Scripted) -> None:
    server.script = lambda _model: Reply({})
    error = raised()
    assert isinstance(error, EditorNoImage)
    assert str(error) == "Google Gemini sent no picture: no reason given."
