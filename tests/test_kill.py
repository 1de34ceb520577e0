"""A real process, killed at a hundred random moments, loses and repeats nothing."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import records, write_suite

KILLS = 100
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
