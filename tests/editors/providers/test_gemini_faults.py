"""The Gemini editor when calls fail: each fault is what it may have cost."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import httpx2
import pytest

from convergebench import wire
from convergebench.editor import EditReply
from convergebench.editors.providers.gemini import _connect_soon
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorUnavailable,
)
from convergebench.registry import open_editor
from tests.editors.providers.ask_gemini import (
    KEY,
    LITE,
    Scripted,
    asked,
    raised,
    scripted,
)
from tests.editors.providers.speak_gemini import (
    limited,
    problem,
)
from tests.support.loopback import Reply
from tests.support.speaker import Speaker


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    with scripted(monkeypatch) as speaker:
        yield speaker


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (limited(delay="20s"), 20.0),
        (limited("GenerateContentPerMinute", delay="0.5s"), 0.5),
        (limited(headers={"Retry-After": "3"}), 3.0),
        (limited(delay="2s", headers={"Retry-After": "9"}), 2.0),
        (limited(), None),
        (limited(delay="soon"), None),
        (Reply(b"slow down", status=429), None),
    ],
)
def test_too_many_calls_are_tried_again_after_the_delay_asked_for(
    server: Scripted, reply: Reply, seconds: float | None
) -> None:
    server.script = lambda _model: reply
    error = raised()
    assert isinstance(error, EditorUnavailable)
    assert error.limited
    assert error.retry_after == seconds
    assert len(server.server.log) == 1


DAILY = limited("GenerateRequestsPerDayPerProjectPerModel-FreeTier", delay="20s")
DEPLETED = problem(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.")
INVALID = problem(
    400,
    "INVALID_ARGUMENT",
    "Bad.",
    {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
)


@pytest.mark.parametrize(
    "reply",
    [
        DAILY,
        DEPLETED,
        limited("GenerateContentPerMinute", "generate_requests_per_day"),
        INVALID,
        problem(400, "INVALID_ARGUMENT", f"API key not valid: {KEY}"),
        problem(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        problem(401, "UNAUTHENTICATED", f"Request had invalid credentials {KEY}"),
        problem(403, "PERMISSION_DENIED", f"Permission denied: consumer {KEY} has been suspended."),
    ],
)
def test_what_no_other_call_will_survive_blocks_the_account(server: Scripted, reply: Reply) -> None:
    server.script = lambda _model: reply
    error = raised()
    assert isinstance(error, AccountBlocked)
    assert f"HTTP {reply.status}" in str(error)


def test_the_quota_that_was_passed_is_named(server: Scripted) -> None:
    server.script = lambda _model: DAILY
    assert "GenerateRequestsPerDayPerProjectPerModel-FreeTier" in str(raised())


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (problem(400, "INVALID_ARGUMENT", "Unable to process input image."), EditorFailed),
        (problem(404, "NOT_FOUND", "models/gemini is not found for API version v1"), EditorFailed),
        (Reply(b"", status=302, headers={"location": "http://127.0.0.1:9/"}), EditorFailed),
        (problem(500, "INTERNAL", "An internal error has occurred."), EditorUnavailable),
        (Reply(b"<html>bad gateway</html>", status=502), EditorUnavailable),
        (problem(503, "UNAVAILABLE", "The model is overloaded."), EditorUnavailable),
        (problem(408, "", "Too slow."), EditorUnavailable),
        (problem(504, "DEADLINE_EXCEEDED", "Deadline expired."), EditorLost),
        (problem(499, "CANCELLED", "The operation was cancelled."), EditorLost),
        (Reply(b"no JSON at all"), EditorLost),
        (Reply(b"[1, 2]"), EditorLost),
        (Reply(b""), EditorLost),
    ],
)
def test_each_fault_is_what_it_may_have_cost(
    server: Scripted, reply: Reply, kind: type[EditorError]
) -> None:
    server.script = lambda _model: reply
    error = raised()
    assert type(error) is kind, error
    assert error.told is not None
    assert error.told.parameters["api_version"] == "v1"
    assert error.told.size == "1264x848"
    assert len(server.server.log) == 1, "nothing is sent twice, no redirect is followed"


@pytest.mark.parametrize("cut", [0, 1, 500])
def test_an_answer_that_is_cut_off_is_lost(server: Scripted, cut: int) -> None:
    server.script = lambda model: Reply(server.drawn(model, Speaker.picture()), cut=cut)
    error = raised()
    assert isinstance(error, EditorLost)
    assert not error.timed_out
    assert len(server.server.log) == 1


def test_no_answer_in_time_is_lost_before_the_runner_gives_up(server: Scripted) -> None:
    server.script = lambda model: Reply(server.drawn(model, Speaker.picture()), delay=20.0)
    start = time.monotonic()
    error = raised(deadline=1.0)
    assert time.monotonic() - start < 10
    assert isinstance(error, EditorLost)
    assert error.timed_out


def test_an_answer_that_trickles_ends_in_time_too(server: Scripted) -> None:
    server.script = lambda model: Reply(server.drawn(model, Speaker.picture()), pace=0.05)
    start = time.monotonic()
    error = raised(deadline=1.0)
    assert time.monotonic() - start < 10
    assert isinstance(error, EditorLost)
    assert error.timed_out


def test_an_answer_larger_than_any_picture_is_not_read(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_BODY", 100_000)
    server.script = lambda model: server._fated("oversize", model)
    error = raised()
    assert isinstance(error, EditorLost)
    assert "more than" in str(error)


def test_a_server_that_is_not_there_was_not_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    assert isinstance(raised(), EditorUnavailable)


def test_many_threads_share_one_editor_and_leave_nothing_open(server: Scripted) -> None:
    found = _eight_at_once()
    assert {n: reply.parameters["seed"] for n, reply in found.items()} == {n: n for n in range(8)}
    assert len({reply.request_id for reply in found.values()}) == 8
    gc.collect()  # a client left open would warn, and warnings fail tests


def _eight_at_once() -> dict[int, EditReply]:
    editor = open_editor(LITE)
    found: dict[int, EditReply] = {}

    def one(number: int) -> None:
        found[number] = editor.edit(asked(seed=number))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_connecting_may_not_take_as_long_as_drawing() -> None:
    patient = httpx2.Request("POST", "http://127.0.0.1/", extensions={"timeout": _all(119.0)})
    _connect_soon(patient)
    assert patient.extensions["timeout"] == {**_all(119.0), "connect": 15.0}
    hasty = httpx2.Request("POST", "http://127.0.0.1/", extensions={"timeout": _all(0.5)})
    _connect_soon(hasty)
    assert hasty.extensions["timeout"] == _all(0.5)


def _all(seconds: float) -> dict[str, float | None]:
    return httpx2.Timeout(seconds).as_dict()
