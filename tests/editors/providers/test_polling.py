"""Tasks: begun once, told of at once, asked after until they are done, found again after a kill."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench import wire
from convergebench.cycle import Edit
from convergebench.editor import EditReply, EditRequest
from convergebench.editors.providers.polling import FAR, Clock, Gone, Pace, collect, trusted
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorLost,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.frame import Frame
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.walk import calls
from tests.editors.providers.ask_polling import KEY, SOURCE, Asking, asking, lower
from tests.editors.providers.speak_bfl import BflSpeaker
from tests.editors.providers.speak_fal import FalSpeaker
from tests.editors.providers.speak_replicate import ReplicateSpeaker
from tests.support.loopback import Received, Reply
from tests.support.runs import write_suite
from tests.support.speaker import Speaker

QUICK = Pace(first=0.005, most=0.02, grace=0.1)


# The loop alone.


def request_of(deadline: float = 5.0, **more: Any) -> EditRequest:
    return EditRequest(
        inputs=(Frame(SOURCE),), prompt="p", edit=Edit(prompt="p"), step=1, seed=1,
        deadline=deadline, **more,
    )  # fmt: skip


class Queue:
    """A provider that says what it is told to, poll after poll; the last word stands."""

    def __init__(self, *words: str | Exception | None) -> None:
        self.words = words
        self.begun = 0
        self.polls = 0
        self.order: list[str] = []

    def begin(self, _timeout: float) -> Mapping[str, Any]:
        self.begun += 1
        self.order.append("begin")
        return {"id": "t1"}

    def look(self, _task: Mapping[str, Any], _timeout: float) -> str | None:
        self.polls += 1
        self.order.append("look")
        word = self.words[min(self.polls, len(self.words)) - 1]
        if isinstance(word, Exception):
            raise word
        return word

    def wait(self, request: EditRequest, pace: Pace = QUICK) -> tuple[Mapping[str, Any], str]:
        return collect(
            request,
            what="Q",
            pace=pace,
            clock=Clock(request.deadline),
            begin=self.begin,
            look=self.look,
            known=lambda task: EditReply(b"", request_id=task["id"], cost=0.25),
        )


def test_the_task_is_told_of_before_the_first_poll() -> None:
    queue = Queue(None, "done")
    request = request_of(on_task=lambda task: queue.order.append(f"told {task['id']}"))
    task, seen = queue.wait(request)
    assert queue.order == ["begin", "told t1", "look", "look"]
    assert (task["id"], seen) == ("t1", "done")
    assert abs(task["begun"] - time.time()) < 5


def test_a_task_that_was_begun_is_never_begun_again() -> None:
    queue = Queue(None, EditorUnavailable("hm"), "done")
    heard: list[Any] = []
    task, _ = queue.wait(request_of(task={"id": "old", "begun": 1.0}, on_task=heard.append))
    assert task["id"] == "old"
    assert queue.begun == 0
    assert not heard


def test_an_empty_task_is_none() -> None:
    queue = Queue("done")
    queue.wait(request_of(task={}))
    assert queue.begun == 1


@given(st.lists(st.sampled_from([None, "broken", "limited"]), max_size=12))
def test_whatever_polls_come_to_the_task_is_begun_once(words: list[str | None]) -> None:
    said = {
        None: None,
        "broken": EditorUnavailable("500"),
        "limited": EditorUnavailable("429", limited=True, retry_after=0.001),
    }
    queue = Queue(*(said[word] for word in words), "done")
    _, seen = queue.wait(request_of(), Pace(first=0.0, most=0.0))
    assert seen == "done"
    assert queue.begun == 1
    assert queue.polls == len(words) + 1


def test_unknown_right_after_it_was_begun_is_borne_later_it_is_lost() -> None:
    assert Queue(Gone("not found"), Gone("not found"), "done").wait(request_of())[1] == "done"
    with pytest.raises(EditorLost, match="knows no task t1: not found") as caught:
        Queue(Gone("not found")).wait(request_of())
    assert not caught.value.timed_out
    assert caught.value.told is not None
    assert caught.value.told.cost == 0.25
    assert not caught.value.told.task, "nothing is left to be asked after"


def test_the_grace_counts_from_when_the_task_was_begun() -> None:
    queue = Queue(Gone("not found"))
    with pytest.raises(EditorLost, match="knows no task"):
        queue.wait(request_of(task={"id": "old", "begun": time.time() - 60}), FAR)
    assert queue.polls == 1


def test_when_the_time_is_up_the_task_is_lost_and_handed_on() -> None:
    queue = Queue(None, EditorUnavailable("HTTP 500"))
    with pytest.raises(EditorLost, match=r"after 0\.3 s; the last poll: HTTP 500") as caught:
        queue.wait(request_of(deadline=0.3))
    assert caught.value.timed_out
    assert caught.value.told is not None
    assert caught.value.told.task["id"] == "t1"
    assert caught.value.told.cost == 0.25


def test_a_call_ends_a_little_before_its_deadline_so_that_the_runner_need_not() -> None:
    assert 0 < Clock(1.0).left <= 0.95
    assert 97 < Clock(100.0).left <= 98


def test_a_long_wait_ends_with_one_more_look_before_the_deadline() -> None:
    queue = Queue(None, "done")
    _, seen = queue.wait(request_of(deadline=1.0), Pace(first=0.01, most=60, growth=1000))
    assert seen == "done"


def test_what_is_about_the_poll_leaves_the_task_to_be_collected() -> None:
    with pytest.raises(AccountBlocked, match="key") as caught:
        Queue(None, AccountBlocked("key rejected")).wait(request_of())
    assert caught.value.told is not None
    assert caught.value.told.task["id"] == "t1"
    over = EditorRefused("no", told=EditReply(b"", request_id="t1"))
    with pytest.raises(EditorRefused, match="no") as refused:
        Queue(over).wait(request_of())
    assert refused.value.told is not None
    assert not refused.value.told.task


def test_waits_grow_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    queue = Queue(*itertools.repeat(None, 9), "done")
    queue.wait(request_of(deadline=1000), FAR)
    assert slept[:3] == pytest.approx([0.5, 0.7, 0.98])
    assert slept == sorted(slept)
    assert max(slept) == 3.0


@pytest.mark.parametrize(
    ("address", "base", "expected"),
    [
        ("https://api.bfl.ai/v1/get_result?id=1", "https://api.bfl.ai", True),
        ("https://gateway.bfl.ai/v1/x", "https://api.bfl.ai", True),
        ("https://bfl.ai/x", "https://api.bfl.ai", True),
        ("http://gateway.bfl.ai/v1/x", "https://api.bfl.ai", False),
        ("https://evilbfl.ai/v1/x", "https://api.bfl.ai", False),
        ("https://bfl.ai.evil.example/x", "https://api.bfl.ai", False),
        ("https://bfl.ai@evil.example/x", "https://api.bfl.ai", False),
        ("https://me:pw@api.bfl.ai/x", "https://api.bfl.ai", False),
        ("https://gateway.bfl.ai:8443/x", "https://api.bfl.ai", False),
        ("http://127.0.0.1:9/x", "https://api.bfl.ai", False),
        ("https://api.bfl.ai/x", "https://proxy.example/bfl", False),
        ("https://proxy.example/other", "https://proxy.example/bfl", True),
        ("http://127.0.0.1:5001/x", "http://127.0.0.1:5000", True),
        ("https://api.bfl.ai/x", "http://127.0.0.1:5000", False),
        ("https://[", "https://api.bfl.ai", False),
        ("", "https://api.bfl.ai", False),
    ],
)
def test_a_key_goes_only_to_its_own_provider(address: str, base: str, expected: bool) -> None:
    assert trusted(address, base, "bfl.ai") is expected


# The three providers through the loop, over real sockets.


@pytest.fixture(params=[BflSpeaker, FalSpeaker, ReplicateSpeaker])
def kind(request: pytest.FixtureRequest) -> type[Speaker]:
    found: type[Speaker] = request.param
    return found


@pytest.fixture
def fates() -> list[str]:
    return []


@pytest.fixture
def ask(kind: type[Speaker], fates: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    with kind(lambda number: fates[number] if number < len(fates) else "ok") as speaker:
        yield asking(speaker, monkeypatch)


@pytest.mark.parametrize("fate", ["slow", "poll-broken", "download-cut"])
def test_slow_and_broken_ways_lead_to_the_picture_for_one_bill(
    ask: Asking, fates: list[str], fate: str
) -> None:
    fates.append(fate)
    reply = ask()
    assert reply.data == ask.speaker.frame(fate)
    assert len(ask.posts) == ask.speaker.billed == 1
    assert not reply.task, "it was collected"
    assert reply.request_id == ask.tasks[0]["id"]


def test_a_task_that_vanished_is_lost(ask: Asking, fates: list[str]) -> None:
    fates.append("lost")
    error = ask.fails(EditorLost, "knows no task")
    assert not error.timed_out
    assert not error.told.task
    assert error.told.parameters
    assert len(ask.posts) == ask.speaker.billed == 1


def test_a_picture_in_a_private_network_is_not_read(ask: Asking, fates: list[str]) -> None:
    fates.append("redirect-private")
    error = ask.fails(EditorLost, "private|not downloaded")
    assert not error.told.task


def test_a_picture_that_is_too_large_is_not_read(
    ask: Asking, fates: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_BODY", 300_000)
    fates.append("oversize")
    ask.fails(EditorLost, "more than")


def test_a_picture_that_cannot_be_had_now_is_asked_for_again_by_its_task(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ask.speaker.answer
    places = ("/sample/", "/files/", "/delivery/")
    down = [True]

    def answer(request: Received) -> Reply:
        if down[0] and request.path.startswith(places):
            return Reply(status=503)
        found: Reply = whole(request)
        return found

    monkeypatch.setattr(ask.speaker, "answer", answer)
    error = ask.fails(EditorUnavailable, "cannot be downloaded")
    down[0] = False
    assert ask(task=error.told.task).data == ask.speaker.frame("ok")
    assert len(ask.posts) == ask.speaker.billed == 1


def test_killed_after_the_submission_the_same_task_is_collected(ask: Asking) -> None:
    class Killed(BaseException):
        pass

    def die(task: Mapping[str, Any]) -> None:
        ask.tasks.append(task)
        raise Killed

    with pytest.raises(Killed):
        ask(on_task=die)
    (task,) = ask.tasks
    assert KEY not in repr(task)
    fresh = ask(task=task)
    assert fresh.data == ask.speaker.frame("ok")
    assert len(ask.posts) == ask.speaker.billed == 1
    assert fresh.parameters, "told as if it had never been killed"
    assert fresh.size


def test_too_slow_it_times_out_with_its_task_which_is_then_collected(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ask.speaker.answer
    busy = [True]

    def answer(request: Received) -> Reply:
        if busy[0] and request.method == "GET":
            return Reply({"status": "A word of next year"})
        found: Reply = whole(request)
        return found

    monkeypatch.setattr(ask.speaker, "answer", answer)
    error = ask.fails(EditorLost, "was not done after", deadline=0.8)
    assert error.timed_out
    assert error.told.task == ask.tasks[0]
    busy[0] = False
    assert ask(task=error.told.task).data == ask.speaker.frame("ok")
    assert len(ask.posts) == ask.speaker.billed == 1


def test_the_key_goes_to_the_api_and_never_to_the_picture(ask: Asking) -> None:
    ask()
    *api, picture = ask.speaker.server.log
    assert all(any(KEY in value for value in got.headers.values()) for got in api)
    assert KEY not in repr(picture)
    assert not {"x-key", "authorization"} & set(lower(picture))


def test_a_submission_that_names_no_task_may_have_been_billed(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask.speaker, "answer", lambda _request: Reply({"hello": "world"}))
    ask.fails(EditorLost, "without naming a task")
    monkeypatch.setattr(ask.speaker, "answer", lambda _request: Reply(b"<html>proxy</html>"))
    ask.fails(EditorLost, "without naming a task")
    assert not ask.tasks


def test_a_rejected_key_while_polling_blocks_and_keeps_the_task(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ask.speaker.answer

    def answer(request: Received) -> Reply:
        if request.method == "GET":
            return Reply({"detail": f"bad key {KEY}"}, status=401)
        found: Reply = whole(request)
        return found

    monkeypatch.setattr(ask.speaker, "answer", answer)
    error = ask.fails(AccountBlocked, "HTTP 401")
    assert error.told.task == ask.tasks[0]


def test_without_a_key_nothing_is_sent(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ask.speaker.key_variable)
    ask.fails(AccountBlocked, ask.speaker.key_variable)
    assert not ask.speaker.server.log


def test_a_server_that_is_not_there_was_not_billed(
    kind: type[Speaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    with kind() as speaker:
        ask = asking(speaker, monkeypatch)
    error = ask.fails(EditorUnavailable, "cannot reach")
    assert isinstance(error, EditorError)


def test_in_a_run_a_picture_that_is_late_is_collected_and_paid_for_once(
    ask: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(wire, "FIRST_WAIT", 0.01)
    whole = ask.speaker.answer
    broken = itertools.count()

    def answer(request: Received) -> Reply:
        if request.path.startswith(("/sample/", "/files/", "/delivery/")) and next(broken) < 4:
            return Reply(status=503)
        found: Reply = whole(request)
        return found

    monkeypatch.setattr(ask.speaker, "answer", answer)
    suite = write_suite(tmp_path / "suite", size=64)
    table = {
        "suite": str(suite), "editors": [ask.speaker.editor], "sources": ["s0"],
        "cycles": ["copy"], "steps": 2, "controls": False, "budget": 10,
    }  # fmt: skip
    assert run(tmp_path / "run", table).complete
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 2
    assert len(ask.posts) == ask.speaker.billed == 2
    ledger = (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()
    settled = [line for line in map(json.loads, ledger) if line["event"] == "settled"]
    assert sum(line["dollars"] > 0 for line in settled) == 2
