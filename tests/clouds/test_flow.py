"""A run on each of the clouds is the same run as in a directory, whatever happens on the way."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from convergebench.copying import copy
from convergebench.errors import StoreBusy
from convergebench.remote import lease
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.remote.handmade import begun, grown
from tests.remote.objects import Asked
from tests.remote.processes import command, killed_after
from tests.remote.same import assert_same_run, assert_tidy, frames, steps
from tests.support.commands import Command
from tests.support.runs import write_suite

METRICS = ["psnr", "noise"]
NOISE = ("Traceback", "Unclosed", "never retrieved", "WARNING", "Could not", "warn", "retries")
"""What libraries print when nobody stops them."""


def table(suite: Path, **more: Any) -> dict[str, Any]:
    return {"suite": str(suite), "editors": ["ref:noise"], "steps": 3, "controls": False, **more}


def done(*words: object) -> tuple[str, str]:
    """Output and error output of a command, which ends well and says nothing strange."""
    ended = subprocess.run(command(*words), capture_output=True, text=True, timeout=200)
    assert ended.returncode == 0, ended.stderr
    assert not [word for word in NOISE if word in ended.stdout + ended.stderr], ended.stderr
    return ended.stdout, ended.stderr


def test_killed_resumed_scored_reported_verified_and_copied(shelf: Shelf, tmp_path: Path) -> None:
    """By command line, from the first call to a copy of the copy."""
    suite = write_suite(tmp_path / "suite", 1, size=16)
    words = ["run", shelf.run, "--suite", suite, "--editor", "ref:noise", "--steps", 9]
    words += ["--no-controls"]
    shelf.proxy.trouble = lambda _asked: time.sleep(0.05)  # so that there is a middle
    assert killed_after(0.0, command(*words), lambda: len(shelf.proxy.wrote("/chains/")) > 4)
    shelf.proxy.trouble = lambda _asked: None
    assert shelf.names("run/locks/"), "the kill left a lock"
    before = {chain.key.id: chain.steps for chain in RunStore.open(shelf.run).chains()}
    assert any(before.values())
    output = " ".join("".join(done(*words)).split())
    assert "which ended without letting go" in output
    after = {chain.key.id: chain.steps for chain in RunStore.open(shelf.run).chains()}
    assert all(after[chain][: len(made)] == made for chain, made in before.items())

    done("score", shelf.run, *(f"--metric={m}" for m in METRICS), "--workers", 1)
    Command("report").told(shelf.run, "--out", tmp_path / "report")
    assert (tmp_path / "report" / "index.html").exists()
    assert json.loads(Command("verify").told(shelf.run, "--json"))["sound"]

    whole = tmp_path / "whole"
    run(whole, table(suite, steps=9))
    score(whole, METRICS, workers=1)
    assert_same_run(shelf, whole)
    assert_tidy(shelf)
    assert set(Counter(shelf.proxy.wrote("/frames/")).values()) == {1}

    Command("copy").told(shelf.run, tmp_path / "back")
    assert frames(tmp_path / "back") == frames(whole)
    assert steps(tmp_path / "back") == steps(whole)
    again = f"{shelf.scheme}://{shelf.bucket}/again"
    Command("copy").told(tmp_path / "back", again)
    stored = shelf.client.all(shelf.bucket)
    kept = {n.removeprefix("run/"): d for n, d in stored.items() if n.startswith("run/")}
    copied = {n.removeprefix("again/"): d for n, d in stored.items() if n.startswith("again/")}
    for found in (kept, copied):
        for name in [name for name in found if name.startswith("status/")]:
            del found[name]
    assert copied == kept
    assert verify(again).sound
    assert run(again).steps_made == 0


def test_a_directory_goes_there_and_comes_back(shelf: Shelf, tmp_path: Path) -> None:
    told = table(write_suite(tmp_path / "suite", 1, size=16))
    run(tmp_path / "made", told)
    score(tmp_path / "made", METRICS, workers=1)
    there = copy(tmp_path / "made", shelf.run)
    assert_same_run(shelf, tmp_path / "made")
    back = copy(shelf.run, tmp_path / "back")
    assert (back.frames, back.records) == (there.frames, there.records)
    assert frames(tmp_path / "back") == frames(tmp_path / "made")


@pytest.mark.parametrize("kind", ["silent", "cut", "lost"])
def test_every_fifth_request_of_a_run_fails_and_nothing_is_doubled(
    shelf: Shelf, tmp_path: Path, kind: str
) -> None:
    # Some of what we ask takes the library three requests: every third would be one of each.
    told = table(write_suite(tmp_path / "suite", 1, size=16), cycles=["copy"])
    shelf.proxy.trouble = lambda asked: (
        kind if asked.number % 5 == 0 and asked.kind != "TOKEN" else None
    )
    assert run(shelf.run, told).complete
    shelf.proxy.trouble = lambda _asked: None
    run(tmp_path / "whole", told)
    assert_same_run(shelf, tmp_path / "whole")
    assert_tidy(shelf)
    assert set(Counter(shelf.proxy.wrote("/frames/")).values()) == {1}


def test_a_store_that_is_down_for_a_while_is_waited_for_and_told_of(
    shelf: Shelf, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path / "suite", 1, size=16)
    down = [0.0]

    def trouble(asked: Asked) -> str | None:
        """Down from the second record of a chain on, for some seconds."""
        if not down[0] and len(shelf.proxy.wrote("/chains/")) > 1:
            down[0] = time.monotonic()
        away = down[0] and time.monotonic() < down[0] + 4 and asked.kind != "TOKEN"
        return "silent" if away else None

    shelf.machine("a", patience=60)
    shelf.proxy.trouble = trouble
    more = ["--suite", suite, "--editor", "ref:noise", "--steps", 3, "--no-controls"]
    _, errors = done("run", shelf.run, *more)
    assert down[0]
    assert errors.count(f"{shelf.run} does not answer (") == 1, errors
    assert "next try in" in errors
    shelf.proxy.trouble = lambda _asked: None
    run(tmp_path / "whole", table(suite))
    assert_same_run(shelf, tmp_path / "whole")
    assert_tidy(shelf)


def test_a_second_writer_is_refused_while_the_first_is_at_work(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("BEAT", 0.15), ("LEASE", 2.0), ("DOUBT", 1.0), ("LOOK", 0.1)):
        monkeypatch.setattr(lease, name, seconds)
    store, chain = begun(shelf, tmp_path)
    with store.writing("run") as notes:
        assert notes == []
        shelf.machine("b")
        other = RunStore.open(shelf.run)
        with pytest.raises(StoreBusy, match=rf"{shelf.run} is being written by process \d+"):
            other.writing("run").__enter__()
        grown(store, chain, 1)
    with other.writing("run") as notes:
        assert notes == []
    assert shelf.names("run/locks/") == []
    (found,) = RunStore.open(shelf.run).chains()
    assert found.length == 1
