"""OpenAI's faults and refusals: the real SDK against a loopback server."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from convergebench import wire
from convergebench.editors.providers.openai import (
    open_editor,
)
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from tests.editors.providers.ask_once import KEY, request, starting
from tests.editors.providers.speak_openai import PRICE, OpenAISpeaker
from tests.support.loopback import Reply

SNAPSHOT = "gpt-image-2.5-sunburst-2026-09-08"
Start = Callable[..., OpenAISpeaker]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starting(OpenAISpeaker, monkeypatch) as begin:
        yield begin


def failing(speaker: OpenAISpeaker, editor: str = "gpt-image-2", **changes: Any) -> EditorError:
    with pytest.raises(EditorError) as caught:
        open_editor(editor).edit(request(**changes))
    error = caught.value
    shown = "".join(traceback.format_exception(error)) + repr(error.told) + str(error)
    assert KEY not in shown
    assert error.__context__ is None, "the SDK's exception holds the request and so the key"
    assert len(speaker.begun) <= 1, "nothing is sent twice"
    return error


@pytest.mark.parametrize(
    ("fate", "kind", "says"),
    [
        ("limited", EditorUnavailable, "rate_limit_exceeded"),
        ("conflict", EditorUnavailable, "HTTP 409"),
        ("timed-out", EditorUnavailable, "HTTP 408"),
        ("broken", EditorUnavailable, "HTTP 500"),
        ("overloaded", EditorUnavailable, "overloaded"),
        ("day", AccountBlocked, "per day"),
        ("quota", AccountBlocked, "insufficient_quota"),
        ("billing", AccountBlocked, "billing_hard_limit_reached"),
        ("key", AccountBlocked, "Incorrect API key"),
        ("unverified", AccountBlocked, "must be verified"),
        ("gone", EditorFailed, "does not exist"),
        ("bad", EditorFailed, "invalid_image_file"),
        ("refused-moderation", EditorRefused, r"safety_violations=\[violence\]"),
        ("refused-policy", EditorRefused, "content_policy_violation"),
        ("refused-user-error", EditorRefused, "cannot be drawn"),
        ("refused-words", EditorRefused, "safety system"),
    ],
)
def test_every_fault_is_told_apart(
    start: Start, fate: str, kind: type[EditorError], says: str
) -> None:
    speaker = start(fate)
    error = failing(speaker)
    with pytest.raises(kind, match=says):
        raise error
    assert type(error) is kind
    assert error.told is not None
    assert error.told.request_id == "req_fault"
    assert error.told.parameters["size"] == "1024x1024"
    assert speaker.billed == 0


@pytest.mark.parametrize(
    ("fate", "delay"), [("limited", None), ("limited-delay", 0.05), ("limited-seconds", 2.0)]
)
def test_a_limit_says_how_long_to_wait_where_it_does(
    start: Start, fate: str, delay: float | None
) -> None:
    error = failing(start(fate))
    assert isinstance(error, EditorUnavailable)
    assert error.limited
    assert error.retry_after == delay


def test_a_key_that_the_server_repeats_is_not_repeated_by_us(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker = start()
    # Some errors quote what was sent; so does this one.
    answer = {"error": {"code": "invalid_api_key", "message": f"Incorrect API key: {KEY}"}}
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(answer, 401))
    error = failing(speaker)
    assert isinstance(error, AccountBlocked)
    assert "<OPENAI_API_KEY>" in str(error)


def test_an_answer_cut_in_the_middle_is_lost(start: Start) -> None:
    speaker = start("cut")
    error = failing(speaker)
    assert isinstance(error, EditorLost)
    assert not error.timed_out
    assert speaker.billed == 1


def test_an_answer_that_takes_too_long_is_lost_before_the_runner_gives_up(start: Start) -> None:
    error = failing(start("slow"), deadline=0.2)
    assert isinstance(error, EditorLost)
    assert error.timed_out


def test_an_answer_that_is_too_large_is_not_read(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_BODY", 1 << 20)
    error = failing(start("oversize"))
    assert isinstance(error, EditorLost)
    assert "more than 1 MiB" in str(error)


def test_nobody_listening_is_no_loss(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    speaker = start()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert isinstance(failing(speaker), EditorUnavailable)


def test_no_picture_is_an_outcome_with_its_cost(start: Start) -> None:
    error = failing(start("no-image"))
    assert isinstance(error, EditorNoImage)
    assert error.told is not None
    assert error.told.cost == pytest.approx(PRICE)
    assert error.told.basis == "usage"


@pytest.mark.parametrize("data", [[{}], [{"b64_json": "***"}], [None], {"b64_json": "aGk="}, None])
def test_what_is_no_picture_is_no_image(start: Start, data: Any) -> None:
    speaker = start()
    speaker.change = {"data": data}
    assert isinstance(failing(speaker), EditorNoImage)


def test_what_is_no_json_is_lost(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    speaker = start()
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(b"<html>hello</html>"))
    error = failing(speaker)
    assert isinstance(error, EditorLost)
    assert "no JSON: <html>hello" in str(error)
