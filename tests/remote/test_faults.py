"""A store that fails now and then, and processes that are killed: the same run comes out."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from convergebench.reporter import report
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.remote.processes import command, killed_after
from tests.remote.same import assert_same_run, assert_tidy, steps
from tests.support.runs import write_suite

METRICS = ["psnr", "noise"]


def table(suite: Path, **more: Any) -> dict[str, Any]:
    return {"suite": str(suite), "editors": ["ref:noise"], "steps": 3, "controls": False, **more}


@pytest.mark.parametrize("kind", ["slow-down", "internal", "cut", "lost"])
def test_every_third_request_of_a_run_fails_and_nothing_is_doubled(
    shelf: Shelf, tmp_path: Path, kind: str
) -> None:
    told = table(write_suite(tmp_path / "suite", 1, size=16), cycles=["copy"])
    shelf.proxy.trouble = lambda asked: kind if asked.number % 3 == 0 else None
    assert run(shelf.run, told).complete
    shelf.proxy.trouble = lambda _asked: None
    run(tmp_path / "whole", told)
    assert_same_run(shelf, tmp_path / "whole")
    assert_tidy(shelf)
    assert set(Counter(shelf.proxy.wrote("/frames/")).values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["slow-down", "internal", "silent", "cut", "lost"])
def test_every_third_request_fails_and_nothing_is_doubled(
    shelf: Shelf, tmp_path: Path, kind: str
) -> None:
    suite = write_suite(tmp_path / "suite", size=16)
    shelf.machine("a", patience=60)
    shelf.proxy.trouble = lambda asked: kind if asked.number % 3 == 0 else None
    assert run(shelf.run, table(suite)).complete
    assert score(shelf.run, METRICS, workers=1).null == 0
    assert report(shelf.run, out=tmp_path / "report")
    assert verify(shelf.run).sound
    assert len(shelf.proxy.asked) > 100
    shelf.proxy.trouble = lambda _asked: None
    run(tmp_path / "whole", table(suite))
    score(tmp_path / "whole", METRICS, workers=1)
    assert_same_run(shelf, tmp_path / "whole")
    assert_tidy(shelf)
    lines = [json.loads(line) for line in shelf.get("sessions.jsonl").splitlines()]
    assert [line["event"] for line in lines] == ["start", "end", "start", "end"]
    assert set(Counter(shelf.proxy.wrote("/frames/")).values()) == {1}


def test_a_slow_store_is_only_slow(shelf: Shelf, tmp_path: Path) -> None:
    def slowly(_asked: object) -> None:
        time.sleep(0.1)

    suite = write_suite(tmp_path / "suite", size=16)
    shelf.proxy.trouble = slowly
    assert run(shelf.run, table(suite)).complete
    assert verify(shelf.run).sound


def interrupted(shelf: Shelf, tmp_path: Path, kills: int, **size: Any) -> None:
    rng = random.Random(kills)
    suite = write_suite(tmp_path / "suite", size=16)
    shelf.proxy.trouble = lambda _asked: time.sleep(0.02)  # so that there is a middle
    told = table(suite, editors=["ref:noise", "ref:blur"], controls=True, **size)
    words = ["run", shelf.run, "--suite", suite, "--editor", "ref:noise", "--editor", "ref:blur"]
    words += ["--steps", told["steps"]]

    def written(pattern: str) -> int:
        return len(shelf.proxy.wrote(pattern))

    times = 0
    recorded: dict[str, Any] = {}
    for _ in range(kills):
        seen = written("/chains/")
        times += killed_after(
            rng.uniform(0, 1.0), command(*words), lambda seen=seen: written("/chains/") > seen
        )
        if not RunStore.is_run(shelf.run):
            continue
        now = {chain.key.id: chain.steps for chain in RunStore.open(shelf.run).chains()}
        for chain, before in recorded.items():
            assert now[chain][: len(before)] == before, "a recorded step is never made again"
        recorded = now
    subprocess.run(command(*words), check=True, capture_output=True)
    assert times >= kills - 1, "the run ended before it could be killed"
    final = {chain.key.id: chain.steps for chain in RunStore.open(shelf.run).chains()}
    for chain, before in recorded.items():
        assert final[chain][: len(before)] == before
    scoring = command("score", shelf.run, *(f"--metric={m}" for m in METRICS), "--workers", "1")
    for _ in range(max(1, kills // 2)):
        locks = len(shelf.proxy.of_kind("PUT", "/locks/score"))
        killed_after(
            rng.uniform(0, 1.5),
            scoring,
            lambda locks=locks: len(shelf.proxy.of_kind("PUT", "/locks/score")) > locks,
        )
    subprocess.run(scoring, check=True, capture_output=True)
    subprocess.run(command("report", shelf.run, "--out", tmp_path / "report"), check=True)
    assert (tmp_path / "report" / "index.html").exists()
    checked = subprocess.run(
        command("verify", shelf.run, "--json"), capture_output=True, check=True
    )
    assert json.loads(checked.stdout)["sound"]
    shelf.proxy.trouble = lambda _asked: None
    run(tmp_path / "whole", told)
    score(tmp_path / "whole", METRICS, workers=1)
    assert_same_run(shelf, tmp_path / "whole")
    assert_tidy(shelf)
    # Equal frames of several chains are stored once, whoever made them.
    assert set(Counter(shelf.proxy.wrote("/frames/")).values()) == {1}
    assert steps(shelf.run) == steps(tmp_path / "whole")


def test_killed_once_and_resumed(shelf: Shelf, tmp_path: Path) -> None:
    told = table(write_suite(tmp_path / "suite", 1, size=16), steps=9)
    shelf.proxy.trouble = lambda _asked: time.sleep(0.05)
    code = f"from convergebench.runner import run; run({shelf.run!r}, {told!r})"
    words = [sys.executable, "-c", code]
    assert killed_after(0.0, words, lambda: len(shelf.proxy.wrote("/chains/")) > 4)
    assert "run/locks/" in str(shelf.client.names(shelf.bucket))
    before = {chain.key.id: chain.steps for chain in RunStore.open(shelf.run).chains()}
    result = run(shelf.run)
    assert any("which ended without letting go" in note for note in result.notes)
    after = {chain.key.id: chain.steps for chain in RunStore.open(shelf.run).chains()}
    assert all(after[chain][: len(made)] == made for chain, made in before.items())
    run(tmp_path / "whole", told)
    assert_same_run(shelf, tmp_path / "whole")
    assert_tidy(shelf)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_once_and_resumed_by_command_line(shelf: Shelf, tmp_path: Path) -> None:
    interrupted(shelf, tmp_path, 1, steps=4)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_random_moments_and_resumed_by_command_line(shelf: Shelf, tmp_path: Path) -> None:
    interrupted(shelf, tmp_path, 8, steps=12)
