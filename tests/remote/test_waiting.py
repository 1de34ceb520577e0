"""Waiting for the store is no word about an editor: its time does not run meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convergebench.editor import EditorSpec, EditReply, EditRequest, Turn
from convergebench.errors import StoreError
from convergebench.frame import Frame
from convergebench.money.ledger import read_ledger
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.suite import load_suite
from convergebench.verifier import verify
from convergebench.walk.calls import Caller, make_call
from tests.remote.conftest import Shelf
from tests.support.runs import picture, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


def table(folder: Path, editor: str, **more: Any) -> dict[str, Any]:
    return {
        "suite": str(write_suite(folder / "suite", size=16)),
        "editors": [editor],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 3,
        "controls": False,
        "budget": 9,
        **more,
    }


def noted(log: Path, word: str) -> int:
    return log.read_text().count(word) if log.exists() else 0


@pytest.mark.parametrize("price", ["0.1", "0"])
def test_a_store_that_is_away_longer_than_the_deadline_fails_no_step(
    shelf: Shelf, tmp_path: Path, price: str
) -> None:
    log, deadline, away = tmp_path / "log", 2.0, [0.0]

    def trouble(_asked: object) -> str | None:
        """From the moment a task was begun, for twice the deadline."""
        if noted(log, "billed") == 2 and not away[0]:
            away[0] = time.monotonic()
        return "silent" if away[0] and time.monotonic() < away[0] + 2 * deadline else None

    shelf.proxy.trouble = trouble
    told = table(tmp_path, f"polling,log={log},sleep=0.2,price={price}", deadline=deadline)
    result = run(shelf.run, told)
    assert away[0]
    assert result.outcomes == {"edited": 3}
    assert noted(log, "billed") == 3
    (chain,) = RunStore.open(shelf.run).chains()
    assert all((step.call.latency or 0.0) < deadline for step in chain.steps)
    assert verify(shelf.run).sound
    shelf.machine("b")
    entries = read_ledger(RunStore.open(shelf.run).path).values()
    assert all(entry.task and entry.settled for entry in entries)
    assert len(entries) == 3


def test_a_task_is_on_the_disk_at_once_and_its_editor_does_not_wait_for_the_store(
    shelf: Shelf, tmp_path: Path
) -> None:
    """Editors have clocks of their own, which we cannot stop."""
    log = tmp_path / "log"
    kept: list[str] = []

    def trouble(_asked: object) -> str | None:
        if noted(log, "billed") != 1 or kept:
            return None
        if noted(log, "told"):
            kept.append((shelf.copy() / "ledger.jsonl").read_text())
        return "silent"

    shelf.machine("a", patience=5)
    shelf.proxy.trouble = trouble
    assert run(shelf.run, table(tmp_path, f"polling,log={log},sleep=0.1", steps=1)).complete
    assert '"task":{"id":' in kept[0]
    assert '"task":{"id":' in shelf.get("ledger.jsonl").decode()


def test_nothing_is_stored_once_a_run_has_ended(shelf: Shelf, tmp_path: Path) -> None:
    """What was being stored in the background is waited for: somebody else may write by then."""
    log = tmp_path / "log"
    shelf.machine("a", patience=1)
    shelf.proxy.trouble = lambda _asked: "silent" if noted(log, "billed") else None
    with pytest.raises(StoreError, match="does not answer"):
        run(shelf.run, table(tmp_path, f"polling,log={log},sleep=0.1", steps=1))
    assert [t.name for t in threading.enumerate() if t.name.startswith("ledger")] == []
    shelf.proxy.trouble = lambda _asked: None
    assert run(shelf.run).complete
    assert noted(log, "billed") == 1


class Reader:
    """An editor that looks at its history, and takes so many seconds for the edit."""

    spec = EditorSpec("reader", "1")

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def edit(self, request: EditRequest) -> EditReply:
        data = [turn.load().data for turn in request.history][-1]
        time.sleep(self._seconds)
        return EditReply(data)


def request_of(tmp_path: Path, load: Callable[[], Frame], deadline: float) -> EditRequest:
    suite = load_suite(write_suite(tmp_path / "suite", size=16))
    turns = (Turn(0, "", load), Turn(1, "again", load))
    edit = suite.cycle[0].edit_at(1)
    return EditRequest((load(),), "again", edit, 2, 1, history=turns, deadline=deadline)


def test_frames_that_have_to_be_waited_for_are_not_the_editors_time(tmp_path: Path) -> None:
    frame = Frame.of_pixels(picture(1))

    def slowly() -> Frame:
        time.sleep(0.6)
        return frame

    answer = make_call(Caller(), Reader(), request_of(tmp_path, slowly, 0.5))
    assert answer.outcome == "edited", answer.detail
    assert answer.call.latency is not None
    assert answer.call.latency < 0.5
    late = make_call(Caller(), Reader(1.0), request_of(tmp_path, slowly, 0.5))
    assert late.detail == "timed out after 0.5 s"


def test_a_conversations_frames_are_fetched_before_its_time_begins(
    shelf: Shelf, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    told = table(tmp_path, f"counting,log={log}", settings={"session": ["chat"]})
    assert run(shelf.run, told).complete
    (chain,) = RunStore.open(shelf.run).chains()
    shelf.machine("b")
    shelf.proxy.forget()
    before: list[int] = []

    def watch(asked: Any) -> None:
        if asked.kind == "GET" and "/frames/" in asked.key:
            before.append(noted(log, chain.key.id))

    shelf.proxy.trouble = watch
    assert run(shelf.run, steps=4).complete
    assert len(shelf.proxy.of_kind("GET", "/frames/")) >= len(chain.frames)
    assert set(before) == {3}, "all of them before the fourth call"
