"""A run killed at each of its writes: the provider's own books and the ledger agree."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from convergebench.money.ledger import KILLED, read_ledger
from convergebench.money.spending import spend
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")

SCRIPTS = {
    "mixed": ("1:limited|task;2:lost|ok;3:refuse", "0.05/0.1/0.3"),
    "calls": ("1:busy|ok;2:lost|ok;3:limited|ok;4:refuse", "0.05/0.1/0.3"),
    "tasks": ("1:task;2:shaky;3:gone|task;4:task", "0.05/0.1/0.3"),
    "late": ("1:task;2:slow", "0.05/0.1/0.3"),
    "free": ("1:task;2:shaky;3:gone|task", "0"),
}


def booked(folder: Path, word: str) -> list[list[str]]:
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    return [line[1:] for line in lines if line[0] == word]


def check(folder: Path, whole: Path) -> None:
    path = folder / "run"
    (chain,), (unbroken,) = (RunStore.open(p).chains() for p in (path, whole / "run"))
    assert verify(path).sound, verify(path).defects
    assert chain.length == unbroken.length
    assert chain.ended == unbroken.ended
    assert [s.outcome for s in chain.final] == [s.outcome for s in unbroken.final]
    entries = read_ledger(path)
    assert all(entry.settled for entry in entries.values())
    settled = sum(entry.settled.dollars for entry in entries.values() if entry.settled)
    billed = sum(float(line[-1]) for line in booked(folder, "billed"))
    assert settled == pytest.approx(chain.spent)
    assert spend(path).dollars == pytest.approx(settled)
    names = [step.call.ledger for step in chain.steps if step.call.ledger]
    assert len(names) == len(set(names)), "no two records of one call"
    # What nobody can know is counted, never left out.
    doubtful = sum(s.call.cost or 0.0 for s in chain.steps if s.detail == KILLED)
    assert billed - 1e-9 <= settled <= billed + doubtful + 1e-9
    # A task that the run was told of is asked for, never begun again.
    told = {name for name, _ in booked(folder, "told")}
    calls = Counter(step for _, step, *_ in booked(folder, "billed"))
    before = Counter(step for _, step, *_ in booked(whole, "billed"))
    for step, count in calls.items():
        untold = sum(n not in told for n, s, *_ in booked(folder, "billed") if s == step)
        untold_before = sum(s == step for _, s, *_ in booked(whole, "billed")) - sum(
            s == step for _, s in booked(whole, "told")
        )
        assert count - untold <= before[step] - untold_before, (step, calls, before)


def killed_at_every_write(tmp_path: Path, kind: str, hows: str, seed: str = "") -> None:
    script, price = SCRIPTS[kind]
    table = {
        "suite": str(write_suite(tmp_path / "suite")),
        "editors": [f"shop,log=LOG,script={script},price={price}"],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 4,
        "controls": False,
        "budget": 9,
        "retry_failed": kind == "late",
    }
    place = tmp_path / "killed"
    command = [sys.executable, "-m", "tests.support.killed", json.dumps(table), str(place)]
    subprocess.run([*command, hows, seed], check=True)
    folders = sorted(p for p in place.iterdir() if p.name != "whole")
    assert len(folders) > 10
    for folder in folders:
        check(folder, place / "whole")


@pytest.mark.timeout(300)
def test_a_run_killed_after_any_write_loses_no_money(tmp_path: Path) -> None:
    killed_at_every_write(tmp_path, "mixed", "after")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "seed"),
    [*((kind, "") for kind in SCRIPTS), ("mixed", "5"), ("tasks", "5")],  # and killed once more
)
def test_a_run_killed_at_any_write_loses_no_money(tmp_path: Path, kind: str, seed: str) -> None:
    # A torn line is what was there before the write, and more.
    killed_at_every_write(tmp_path, kind, "before,half,after" if seed else "half,after", seed)
