"""`status` from another terminal: real processes at work, killed, and done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import convergebench
from convergebench import heartbeat, standing
from convergebench.bundler import bundle
from convergebench.disk import hold_lock, lock_holder
from convergebench.errors import StoreError
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.standing import Status, status
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")
CB = [sys.executable, "-m", "convergebench"]


def table(tmp_path: Path, sleep: float = 0.0) -> dict[str, Any]:
    suite = tmp_path / "suite"
    path = suite / "suite.toml" if suite.exists() else write_suite(suite)
    editor = f"counting,log={tmp_path / 'log'},sleep={sleep}"
    return {"suite": str(path), "editors": [editor], "cycles": ["copy"], "controls": False}


@contextmanager
def working(code: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own, ended at the end."""
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def awaited(ready: Callable[[], Any], seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while not (found := ready()):
        assert time.monotonic() < until, "waited for in vain"
        time.sleep(0.05)
    return found


def walking(path: Path, given: dict[str, Any], steps: int) -> str:
    return f"from convergebench.runner import run; run({str(path)!r}, {given!r}, steps={steps})"


def only(found: Status, command: str) -> standing.Work:
    (work,) = [work for work in found.works if work.command == command]
    return work


def tree(path: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder of a run but the signs of life, with size and date."""
    every = (p for p in path.rglob("*") if "status" not in p.relative_to(path).parts)
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in every}


def test_a_run_at_work_killed_and_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with working(walking(path, table(tmp_path, 0.2), 400)) as process:
        awaited(lambda: RunStore.is_run(path) and (path / "status" / "run.json").exists())

        def moving() -> Status | None:
            found = status(path)
            pace = found.works[0].pace if found.works else None
            return found if pace and pace.rate else None

        found = awaited(moving)
        work = only(found, "run")
        assert (work.state, work.pid) == ("working", process.pid)
        assert work.age is not None
        assert work.age < 10
        assert work.pace is not None
        now = work.pace.now
        assert 0 < now.done < now.total == 800
        assert (now.unit, now.kind, now.workers, now.dollars) == ("steps", "editor", 2, 0.0)
        assert now.bytes > 0
        assert work.pace.left
        (editor,) = now.parts
        assert found.editors[0].steps_planned == 800
        assert found.chains == (0, 2)
        text = str(found)
        assert f"run: process {process.pid} on " in text
        assert " left" in text
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    dead = only(status(path), "run")
    assert (dead.state, dead.pid, dead.at_work) == ("killed", process.pid, False)
    assert not status(path).working
    assert "ended without letting go (its last word came" in str(dead)
    assert " left" not in str(dead)
    assert "calls" not in str(dead)

    before = tree(path)
    done = subprocess.run([*CB, "status", path, "--json"], capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert told["works"][0]["state"] == "killed"
    assert told["works"][0]["progress"]["parts"][editor]["total"] == 800
    assert tree(path) == before, "status writes nothing"

    run(path, steps=2)
    ended = only(status(path), "run")
    assert (ended.state, ended.why) == ("ended", "")
    assert ended.pid == os.getpid()
    assert verify(path).sound
    assert not bundle(path, tmp_path / "run.zip").strangers


def test_scoring_at_work_and_what_the_store_holds(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(path, table(tmp_path), steps=3)
    whole = status(path)
    assert whole.chains == (2, 2)
    assert (whole.metrics, whole.outcomes, whole.spent) == ((), {"edited": 6}, 0.0)
    code = (
        "import sys, time; from convergebench import scorer\n"
        "def slowly(p): time.sleep(0.4)\n"
        "scorer.score(sys.argv[1], ['psnr', 'ssim'], workers=1, observe=slowly)"
    )
    with working(code, str(path)) as process:
        work = awaited(
            lambda: next((w for w in status(path).works if w.command == "score" and w.pace
                          and w.pace.now.done), None)
        )  # fmt: skip
        assert (work.state, work.pid) == ("working", process.pid)
        assert list(work.pace.now.parts) == ["psnr", "ssim"]
        assert only(status(path), "run").state == "ended", "the two do not hinder each other"
        assert process.wait(60) == 0
    found = status(path)
    assert only(found, "score").state == "ended"
    assert {m.metric for m in found.metrics} == {"psnr", "ssim"}
    assert all(m.scores and not m.null for m in found.metrics)
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["chains_planned"] == 2


def test_how_it_ended_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run"
    given = table(tmp_path, 0.1)
    with working(walking(path, given, 400)) as process:
        awaited(lambda: (tmp_path / "log").exists())
        process.send_signal(signal.SIGINT)
        process.wait(30)
    work = only(status(path), "run")
    assert (work.state, work.why) == ("ended", "interrupted")
    with pytest.raises(StoreError, match="begun with"):
        _fail(path)
    assert "begun with" in only(status(path), "run").why


def _fail(path: Path) -> None:
    with heartbeat.beating(RunStore.open(path), "run"):
        raise StoreError("it was begun with another")


def test_a_silent_process_and_one_on_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(path, table(tmp_path), steps=1)
    file = path / "status" / "run.json"
    told = json.loads(file.read_bytes()) | {"ended": None, "host": "elsewhere"}
    lock = path / "run.lock"

    def beaten(seconds: float) -> standing.Work:
        at = datetime.now(UTC) - timedelta(seconds=seconds)
        file.write_text(json.dumps(told | {"at": at.isoformat()}))
        return only(status(path), "run")

    # Its lock cannot be seen from here: the sign of life decides, while it is fresh.
    lock.write_text(json.dumps({"pid": told["pid"], "host": "elsewhere", "since": told["since"]}))
    assert beaten(1).state == "working"
    assert beaten(60).state == "killed"
    lock.write_text("")
    assert beaten(1).state == "killed", "it let go of the lock"
    with hold_lock(lock, "run"):
        me = json.loads(lock.read_text())
        told |= {"host": me["host"], "pid": me["pid"]}
        assert beaten(1).state == "working"
        assert beaten(60).state == "silent"
        assert "silent: its last word came 60 s ago" in str(beaten(60))
        told["pid"] = 1
        other = beaten(1)
        assert (other.state, other.pid, other.pace) == ("working", os.getpid(), None)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x"}', "null"])
def test_odd_files_are_no_sign_of_life(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run"
    run(path, table(tmp_path), steps=1)
    (path / "status" / "run.json").write_text(text)
    (path / "run.lock").write_text(text)
    assert status(path).works == ()
    assert "No command has left word of working on this copy." in str(status(path))


def test_looking_takes_a_lock_from_nobody(tmp_path: Path) -> None:
    lock, stop = tmp_path / "run.lock", threading.Event()
    lock.write_text(json.dumps({"pid": 1, "host": "h", "since": "s"}))  # left by a kill

    def look() -> None:
        while not stop.is_set():
            lock_holder(lock)

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        for _ in range(200):
            with hold_lock(lock, "run"):
                holder = lock_holder(lock)
                assert holder is not None
                assert holder.alive
            lock.write_text(json.dumps({"pid": 1, "host": "h", "since": "s"}))
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()


def test_work_goes_on_where_no_sign_of_life_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(path, table(tmp_path), steps=1)
    (path / "status" / "run.json").unlink()
    (path / "status").rmdir()
    (path / "status").write_text("in the way")
    assert run(path, steps=2).complete
    assert score(path, ["psnr"]).new
    assert status(path).chains == (2, 2)


def test_an_imported_run_has_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(path, table(tmp_path), steps=1)
    (path / "spec.json").unlink()
    found = convergebench.status(path)
    assert found.chains == (2, None)
    assert "2 chains done" in str(found)


def test_no_run_is_a_mistake(tmp_path: Path) -> None:
    done = subprocess.run([*CB, "status", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2
    assert "is not a run directory" in done.stderr
