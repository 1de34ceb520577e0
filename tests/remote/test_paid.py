"""Paid calls and a store that fails: nothing paid for is lost, nothing is paid for twice."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import StoreError
from convergebench.money.ledger import KILLED, read_ledger
from convergebench.money.spending import spend
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.support.runs import write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


def table(suite: Path, editor: str, **more: Any) -> dict[str, Any]:
    return {
        "suite": str(suite),
        "editors": [editor],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 4,
        "controls": False,
        "budget": 9,
        **more,
    }


def billed(log: Path) -> list[float]:
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [float(line[-1]) for line in lines if line[0] == "billed"]


def check_books(place: str, log: Path) -> float:
    """The shop's own books, the ledger, the records and `spend` agree; gives what is doubtful."""
    store = RunStore.open(place)
    assert verify(place).sound, verify(place).defects
    entries = read_ledger(store.path)
    assert all(entry.settled for entry in entries.values())
    settled = sum(entry.settled.dollars for entry in entries.values() if entry.settled)
    chains = store.chains()
    assert sum(chain.spent for chain in chains) == pytest.approx(settled)
    assert spend(place).dollars == pytest.approx(settled)
    names = [s.call.ledger for c in chains for s in c.steps if s.call.ledger]
    assert len(names) == len(set(names)), "no two records of one call"
    doubtful = sum(s.call.cost or 0.0 for c in chains for s in c.steps if s.detail == KILLED)
    assert sum(billed(log)) - 1e-9 <= settled <= sum(billed(log)) + doubtful + 1e-9
    return doubtful


def check_unstored(shelf: Shelf, kept: list[Path], records: set[str]) -> None:
    """What lies here and could not be stored is not called missing, with what to do; until then."""
    found = verify(shelf.run)
    assert (found.missing, found.altered, found.damaged) == ([], [], [])
    frames = [text for text in found.unstored if text.startswith("frames/")]
    assert [text.split()[0].rpartition("/")[2] for text in frames] == [p.name for p in kept]
    assert {t.split()[2].split("/")[0] for t in found.unstored if t not in frames} == records
    assert not found.sound
    assert found.defects == [f"not stored yet, on this machine: {each}" for each in found.unstored]
    assert f"Store it from here with: convergebench run {shelf.run}" in str(found)
    assert "not all of it stored yet" in str(found)
    assert found.to_dict()["unstored"] == found.unstored
    if kept:
        data = kept[0].read_bytes()
        kept[0].write_bytes(data[:-1])  # torn, it is none
        torn = verify(shelf.run)
        assert not any(text.startswith("frames/") for text in torn.unstored)
        assert len(torn.missing) == 1
        kept[0].write_bytes(data)


@pytest.mark.parametrize("when", ["frame", "record", "settled"])
def test_a_store_that_is_down_for_long_costs_no_paid_answer(
    shelf: Shelf, tmp_path: Path, when: str
) -> None:
    suite, log = write_suite(tmp_path / "suite", size=16), tmp_path / "log"
    told = table(suite, f"shop,log={log},script=")
    shelf.machine("a", patience=1)
    state = {"down": False}

    def trouble(asked: Any) -> str | None:
        """From the second answer on: at its frame, its record, or the ledger's line after that."""
        if len(billed(log)) == 2 and not state["down"] and asked.kind == "PUT":
            wanted = {"frame": "/frames/", "record": "/chains/", "settled": "/ledger"}[when]
            state["down"] = wanted in asked.key
        return "silent" if state["down"] else None

    shelf.proxy.trouble = trouble
    began = time.monotonic()
    with pytest.raises(
        StoreError, match=r"does not answer .* Whatever was received is kept on this"
    ):
        run(shelf.run, told)
    assert time.monotonic() - began < 60
    assert len(billed(log)) == 2
    kept = list(shelf.copy().glob("frames/??/*"))
    assert len(kept) == (when == "frame"), "the answer is here"
    state["down"] = False
    shelf.proxy.trouble = lambda _asked: None
    # Each answer is on the disk with its record, whichever of the two the store refuses first. The
    # line that settles it waits for them; that of the session's end is written later still.
    lost = {"frame": {"chains"}, "record": {"chains"}, "settled": {"ledger.jsonl"}}[when]
    check_unstored(shelf, kept, lost)
    result = run(shelf.run, told)
    assert result.complete
    assert len(billed(log)) == 4, "no recorded step was asked for again"
    assert check_books(shelf.run, log) == 0
    if when != "settled":
        assert any("stored that an earlier session could not" in note for note in result.notes)
    shelf.machine("b")
    assert check_books(shelf.run, log) == 0


def test_the_command_says_it_in_a_sentence_and_goes_on_later(shelf: Shelf, tmp_path: Path) -> None:
    """By command line, with several chains; the store goes down while answers are on their way."""
    suite, log = write_suite(tmp_path / "suite", size=16), tmp_path / "log"
    shelf.machine("a", patience=2)
    words = ["run", shelf.run, "--suite", str(suite), "--editor", f"shop,log={log},script="]
    words += ["--steps", "6", "--repeats", "2", "--no-controls", "--budget", "9"]
    command = [sys.executable, "-m", "convergebench", *words]
    shelf.proxy.trouble = lambda _asked: "silent" if len(billed(log)) >= 5 else None
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    text = " ".join(done.stderr.split())
    assert done.returncode == 2, text
    assert "Traceback" not in text
    assert f"{shelf.run} does not answer" in text
    assert "give the same command again when the store is back" in text
    made = len(billed(log))
    assert made < 24
    shelf.proxy.trouble = lambda _asked: None
    recorded = sum(len(chain.steps) for chain in RunStore.open(shelf.run).chains())
    assert recorded == made, "every answer that came is recorded"
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    steps = sum(chain.length for chain in RunStore.open(shelf.run).chains())
    assert len(billed(log)) == steps
    check_books(shelf.run, log)


def test_a_call_that_was_not_made_for_want_of_a_store_costs_nothing(
    shelf: Shelf, tmp_path: Path
) -> None:
    suite, log = write_suite(tmp_path / "suite", size=16), tmp_path / "log"
    told = table(suite, f"shop,log={log},script=")
    shelf.machine("a", patience=0.5)
    # Lines of the ledger: reserved, settled, reserved.
    shelf.proxy.trouble = lambda _: (
        "silent" if len(shelf.proxy.of_kind("PUT", "/led")) > 2 else None
    )
    with pytest.raises(StoreError, match="does not answer"):
        run(shelf.run, told)
    assert len(billed(log)) == 1
    shelf.proxy.trouble = lambda _asked: None
    assert run(shelf.run, told).complete
    assert len(billed(log)) == 4
    assert check_books(shelf.run, log) == 0


def test_a_task_that_was_begun_while_the_store_is_down_is_waited_for_and_kept(
    shelf: Shelf, tmp_path: Path
) -> None:
    suite, log = write_suite(tmp_path / "suite", size=16), tmp_path / "log"
    told = table(suite, f"shop,log={log},script=1:task;2:task")
    shelf.machine("a", patience=0.5)
    shelf.proxy.trouble = lambda _asked: "silent" if len(billed(log)) == 2 else None
    with pytest.raises(StoreError, match="does not answer"):
        run(shelf.run, told)
    shelf.proxy.trouble = lambda _asked: None
    lines = next(shelf.copy().glob("chains/??/*")).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines[1:]] == [1, 2], "what came of it is here"
    assert run(shelf.run, told).complete
    assert len(billed(log)) == 4
    assert check_books(shelf.run, log) == 0


def killed_at(shelf: Shelf, tmp_path: Path, how: str, numbers: list[int]) -> int:
    suite = write_suite(tmp_path / "suite", size=16)
    script = "1:limited|task;2:lost|ok;3:refuse"
    told = table(suite, f"shop,log=LOG,script={script},price=0.05/0.1/0.3")
    place, log = f"s3://{shelf.bucket}/{how}-{{N}}", str(tmp_path / f"{how}-{{N}}.log")
    command = [sys.executable, "-m", "tests.remote.killed"]
    done = subprocess.run(
        [*command, json.dumps(told), place, log, how, json.dumps(numbers)],
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    last = int(done.stdout)
    for number in (n for n in numbers if n <= last):
        here, books = place.replace("{N}", str(number)), Path(log.replace("{N}", str(number)))
        check_books(here, books)
        (chain,) = RunStore.open(here).chains()
        assert [step.outcome for step in chain.final] == ["edited", "edited", "refused"]
    return last


@pytest.mark.parametrize(("how", "numbers"), [("before", [6]), ("after", [7])])
def test_a_run_killed_at_a_write_loses_no_money(
    shelf: Shelf, tmp_path: Path, how: str, numbers: list[int]
) -> None:
    assert killed_at(shelf, tmp_path, how, numbers) == numbers[-1]


KILLED_AT = """
import json, sys
from tests.remote.killed import _dies_at
from convergebench.runner import run
_dies_at(int(sys.argv[3]), "before")
run(sys.argv[1], json.loads(sys.argv[2]))
"""


@pytest.mark.parametrize("number", [4, 5, 6, 7])
def test_after_a_kill_verify_names_what_is_here_alone(
    shelf: Shelf, tmp_path: Path, number: int
) -> None:
    """Compared with what the store has, byte for byte: no more and no less."""
    suite, log = write_suite(tmp_path / "suite", size=16), tmp_path / "log"
    told = table(suite, f"shop,log={log},script=")
    words = [sys.executable, "-c", KILLED_AT, shelf.run, json.dumps(told), str(number)]
    assert subprocess.run(words, capture_output=True, timeout=200).returncode == 9
    copy, there = shelf.copy(), set(shelf.names())
    files = [copy / "ledger.jsonl", *copy.glob("chains/??/*"), *copy.glob("frames/??/*")]
    names = [p.relative_to(copy).as_posix() for p in files if p.exists()]
    alone = {n for n in names if n not in there or shelf.get(n) != (copy / n).read_bytes()}
    assert alone, "it was killed before a write"
    found = verify(shelf.run)
    assert not found.sound
    said = {text.removeprefix("records of ").split()[0] for text in found.unstored}
    # A frame may be here before the record that would name it.
    assert said >= {name for name in alone if not name.startswith("frames/")}
    assert said <= alone | {"sessions.jsonl"}
    assert run(shelf.run, told).complete
    check_books(shelf.run, log)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("how", ["before", "after"])
def test_a_run_killed_at_many_writes_loses_no_money(shelf: Shelf, tmp_path: Path, how: str) -> None:
    # After a write is before the next one: every third of each meets two in three of the gaps.
    assert 10 < killed_at(shelf, tmp_path, how, list(range(1, 60, 3))) < 56


def test_ledger_lines_of_many_calls_at_once_are_all_stored(shelf: Shelf, tmp_path: Path) -> None:
    suite, log = write_suite(tmp_path / "suite", size=16), tmp_path / "log"
    told = table(suite, f"shop,log={log},script=", repeats=6, steps=3)
    assert run(shelf.run, told).complete
    assert threading.active_count() < 60
    assert shelf.get("ledger.jsonl").count(b"\n") == 2 * 18
    assert check_books(shelf.run, log) == 0
