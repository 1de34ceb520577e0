"""A real process, killed at random or chosen moments, loses nothing and pays for nothing twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from convergebench.money.ledger import KILLED, read_ledger
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import records, write_suite

MARKER = "MARKER-2b7f-not-to-be-seen"
KILLS = 25
CHAINS = 12
STEPS = 150


def command(directory: Path, suite: Path, log: Path) -> list[str]:
    code = (
        "from convergebench.runner import run\n"
        f"run({str(directory)!r}, {{'suite': {str(suite)!r}, 'cycles': ['copy'],"
        f"'editors': ['counting,log={log},sleep=0.01,name={directory.name}'],"
        f"'steps': {STEPS}, 'repeats': {CHAINS // 2}, 'controls': False}})"
    )
    return [sys.executable, "-c", code]


def calls(log: Path) -> list[tuple[str, str]]:
    if not log.exists():
        return []
    return [tuple(line.split()) for line in log.read_text().splitlines()]  # type: ignore[misc]


def recorded(directory: Path) -> set[tuple[str, str]]:
    if not RunStore.is_run(directory):
        return set()
    return {
        (chain.key.id, str(step.step))
        for chain in RunStore.open(directory).chains()
        for step in chain.steps
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("test_plugin")
def test_killed_at_random_moments_and_resumed(tmp_path: Path) -> None:
    # Both runs use the same editor name, log included, so that chain keys and seeds agree.
    suite = write_suite(tmp_path / "suite", size=24)
    log = tmp_path / "calls.log"
    broken = tmp_path / "run"
    rng = random.Random(7)
    before: set[tuple[str, str]] = set()
    kills = in_flight = 0
    while kills < KILLS:
        seen = len(calls(log))
        process = subprocess.Popen(command(broken, suite, log))
        if rng.random() < 0.9:  # mostly in mid-run, sometimes while it starts
            while process.poll() is None and len(calls(log)) == seen:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.12))
        else:
            time.sleep(rng.uniform(0, 0.6))
        assert process.poll() is None, "the run ended before it could be killed"
        process.kill()
        process.wait()
        kills += 1
        again = set(calls(log)[seen:]) & before
        assert not again, f"recorded calls were made again: {sorted(again)[:3]}"
        before = recorded(broken)
        in_flight = max(in_flight, len(set(calls(log)[seen:]) - before))
    assert in_flight > 1, "several chains should have been in flight at some kill"
    seen = len(calls(log))
    subprocess.run(command(broken, suite, log), check=True)
    assert not set(calls(log)[seen:]) & before

    broken_records = records(broken)
    assert verify(broken).to_dict()["sound"]
    whole = tmp_path / "whole" / "run"
    whole.parent.mkdir()
    subprocess.run(command(whole, suite, log), check=True)
    assert len(broken_records["chains"]) == CHAINS
    assert broken_records == records(whole)
    repeats = len(calls(log)) - 2 * CHAINS * STEPS
    assert 0 <= repeats <= KILLS * 8, "only calls in flight at a kill are made again"


def paid_run(path: Path, suite: Path, editor: str, steps: int, repeats: int = 1) -> list[str]:
    table = {
        "suite": str(suite),
        "editors": [editor],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": steps,
        "repeats": repeats,
        "controls": False,
        "budget": 100,
    }
    code = f"from convergebench.runner import run; run({str(path)!r}, {table!r})"
    return [sys.executable, "-c", code]


def words(log: Path, word: str) -> list[str]:
    text = log.read_text() if log.exists() else ""
    return [line.split()[1] for line in text.splitlines() if line.startswith(word)]


def killed_when(ready: Callable[[], bool], command: list[str]) -> None:
    environment = {**os.environ, "POLL_API_KEY": MARKER}
    process = subprocess.Popen(command, env=environment)
    until = time.monotonic() + 60
    while not ready() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    assert process.poll() is None, "the run ended before it could be killed"
    process.kill()
    process.wait()


def check_paid(path: Path, billed: int, steps: int) -> None:
    """The ledger holds as many paid calls as the editor's own count, and the records agree."""
    entries = read_ledger(path).values()
    paid = [e.settled.dollars for e in entries if e.settled and e.settled.dollars]
    assert len(paid) == billed
    chains = RunStore.open(path).chains()
    ends = {(chain.length, chain.final[-1].outcome, chain.final[-1].detail) for chain in chains}
    assert ends == {(steps, "edited", "")}
    assert sum(chain.spent for chain in chains) == pytest.approx(sum(paid))
    assert all(entry.settled for entry in entries)
    assert verify(path).sound, verify(path).defects
    for file in path.rglob("*"):
        assert not file.is_file() or MARKER.encode() not in file.read_bytes(), file


@pytest.mark.usefixtures("test_plugin")
def test_a_call_in_flight_at_a_kill_is_paid_once_more_and_told(tmp_path: Path) -> None:
    suite, log, path = write_suite(tmp_path / "suite"), tmp_path / "log", tmp_path / "run"
    editor = f"counting,log={log},sleep=0.4,price=0.1"
    for calls_made in (2, 4):
        command = paid_run(path, suite, editor, steps=4)
        killed_when(lambda n=calls_made: len(calls(log)) >= n, command)  # type: ignore[misc]
    result = run(path)
    assert any("1 call was in flight when the run was killed" in note for note in result.notes)
    assert result.outcomes == {"edited": 4}, "a call that was made again is no failure"
    check_paid(path, len(calls(log)), 4)
    (chain,) = RunStore.open(path).chains()
    assumed = [step for step in chain.steps if step.call.basis == "assumed"]
    assert len(assumed) == 2
    assert {step.detail for step in assumed} == {KILLED}


@pytest.mark.usefixtures("test_plugin")
def test_a_task_begun_before_a_kill_is_asked_for_and_not_begun_again(tmp_path: Path) -> None:
    suite, log, path = write_suite(tmp_path / "suite"), tmp_path / "log", tmp_path / "run"
    editor = f"polling,log={log},sleep=0.6,price=0.05/0.1/0.3"
    command = paid_run(path, suite, editor, steps=2)
    killed_when(lambda: len(words(log, "told")) == 1, command)
    killed_when(lambda: len(words(log, "polled")) == 1, command)
    killed_when(lambda: len(words(log, "told")) == 2, command)
    result = run(path)
    assert any("1 task begun before the run was killed" in note for note in result.notes)
    assert len(words(log, "billed")) == 2
    assert set(words(log, "polled")) == set(words(log, "billed"))
    assert result.spent == pytest.approx(0.2)
    check_paid(path, 2, 2)


@pytest.mark.usefixtures("test_plugin")
def test_a_task_that_was_not_told_of_before_a_kill_may_have_been_billed(tmp_path: Path) -> None:
    suite, log, path = write_suite(tmp_path / "suite"), tmp_path / "log", tmp_path / "run"
    editor = f"polling,log={log},before=0.5,price=0.1"
    killed_when(lambda: len(words(log, "billed")) == 2, paid_run(path, suite, editor, steps=3))
    assert run(path).complete
    assert words(log, "polled") == []
    check_paid(path, len(words(log, "billed")), 3)
    assert len(words(log, "billed")) == 4


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["counting", "polling"])
@pytest.mark.usefixtures("test_plugin")
def test_paid_chains_killed_at_random_moments(tmp_path: Path, kind: str) -> None:
    suite, log, path = write_suite(tmp_path / "suite"), tmp_path / "log", tmp_path / "run"
    editor = f"{kind},log={log},sleep=0.03,price=0.1"
    command, rng = paid_run(path, suite, editor, steps=60, repeats=4), random.Random(11)

    def count() -> int:
        return len(words(log, "billed")) if kind == "polling" else len(calls(log))

    for _ in range(20):
        seen = count()
        process = subprocess.Popen(command)
        while process.poll() is None and count() == seen:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.25))
        if process.poll() is not None:
            break
        process.kill()
        process.wait()
    assert run(path).complete
    entries = list(read_ledger(path).values())
    paid = [e.settled for e in entries if e.settled and e.settled.dollars]
    doubtful = sum(settled.basis == "assumed" for settled in paid)
    assert len(paid) - doubtful <= count() <= len(paid), "every billed call is counted"
    check_paid(path, len(paid), 60)
