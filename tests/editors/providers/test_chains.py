"""Chains of 100 steps through every adapter: faults and kills lose nothing and bill nothing twice.

The real runner, the real client or SDK, a real server that counts what it bills.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.verifier import verify
from convergebench.walk import calls
from tests.editors.providers.speakers import NAMES, speaker_of
from tests.support.loopback import Received, Reply
from tests.support.runs import write_suite
from tests.support.speaker import Speaker

STEPS = 100
FAULTS = ("limited", "cut", "broken", "limited-delay", "overloaded")
SLOW = ("slow", "lost", "poll-broken", "download-cut")
MARKER = "MARKER-41d0be-not-to-be-seen"


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> type[Speaker]:
    return speaker_of(request.param)


def faults_of(kind: type[Speaker]) -> tuple[str, ...]:
    return (*FAULTS, *(fate for fate in SLOW if fate in kind.fates))


def one_fault_in_five(kind: type[Speaker]) -> Callable[[int], str]:
    """Every fifth call meets the next fault; no two faults in a row."""
    faults = faults_of(kind)
    return lambda number: faults[number // 5 % len(faults)] if number % 5 == 3 else "ok"


def table(suite: Path, editor: str) -> dict[str, Any]:
    return {
        "suite": str(suite),
        "editors": [editor],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": STEPS,
        "controls": False,
        "budget": 1000,
    }


def settled(path: Path) -> list[dict[str, Any]]:
    """The ledger's lines of calls that cost something."""
    lines = [json.loads(line) for line in (path / "ledger.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == "settled" and line["dollars"] > 0]


def check(path: Path, speaker: Speaker) -> None:
    (chain,) = RunStore.open(path).chains()
    assert chain.length == STEPS
    assert len({frame.sha256 for frame in chain.frames}) == STEPS + 1
    assert len(settled(path)) == speaker.billed
    assert chain.spent == pytest.approx(sum(line["dollars"] for line in settled(path)))
    assert verify(path).sound, verify(path).defects
    for file in path.rglob("*"):
        assert not file.is_file() or MARKER.encode() not in file.read_bytes(), file


@pytest.mark.slow
def test_a_chain_of_100_steps_with_a_fault_in_every_fifth_call(
    kind: type[Speaker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.01)
    suite = write_suite(tmp_path / "suite", size=64)
    with kind(one_fault_in_five(kind)) as speaker:
        for name, value in speaker.environment(MARKER).items():
            monkeypatch.setenv(name, value)
        result = run(tmp_path / "run", table(suite, speaker.editor))
        assert result.complete, result
        met = set(speaker.begun)
    assert met == {"ok", *faults_of(kind)}
    check(tmp_path / "run", speaker)


class Assassin:
    """Kills the process that runs when its server gets certain requests."""

    def __init__(self, speaker: Speaker, moments: set[int]) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.kills = 0
        self._moments = moments
        self._speaker = speaker
        self._answer = speaker.answer

    def answer(self, request: Received) -> Reply:
        number = len(self._speaker.server.log)
        if number in self._moments and self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.kills += 1
        return self._answer(request)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_in_the_middle_and_resumed_it_bills_nothing_twice(
    kind: type[Speaker], tmp_path: Path
) -> None:
    suite = write_suite(tmp_path / "suite", size=64)
    path = tmp_path / "run"
    spec = table(suite, kind.editor)
    code = f"from convergebench.runner import run; run({str(path)!r}, {spec!r})"
    with kind() as speaker:
        # Polling providers get three requests a step: submit, poll and download are all hit.
        moments = {31, 77, 120, 164, 212}
        assassin = Assassin(speaker, moments)
        speaker.answer = assassin.answer  # type: ignore[method-assign]
        environment = {**os.environ, **speaker.environment(MARKER)}
        for _ in range(len(moments) + 1):
            assassin.process = subprocess.Popen(
                [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE
            )
            _, told = assassin.process.communicate()
            assert MARKER.encode() not in told
            if assassin.process.returncode == 0:
                break
        assert assassin.process is not None
        assert assassin.process.returncode == 0, told.decode()
    assert assassin.kills >= 2
    check(path, speaker)
