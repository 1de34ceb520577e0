"""Scoring on a real cluster of two nodes: the rows are those of one machine, bit for bit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from convergebench.drawing import scene
from convergebench.engines import crew
from convergebench.errors import EngineError
from convergebench.runner import run
from convergebench.scorer import ScoreProgress, score
from convergebench.store import RunStore
from tests.conftest import ROOT
from tests.ray.cluster import Cluster
from tests.ray.plugins import is_poison
from tests.support.runs import write_suite

KEY = ["chain", "step", "metric", "version", "against", "where"]
METRICS = ["psnr", "ssim", "ms-ssim", "colour-cast", "ciede2000", "sharpness", "slow-mean"]


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    suite = write_suite(tmp_path / "suite", size=200)
    table = {"suite": str(suite), "editors": ["ref:noise", "ref:jpeg"], "rounds": 3}
    run(tmp_path / "run", table, controls=False)
    return tmp_path / "run"


def rows(path: Path) -> pl.DataFrame:
    return RunStore.open(path).scores().sort(KEY)


def twin(path: Path) -> Path:
    copy = path.with_name("twin")
    shutil.copytree(path, copy)
    return copy


def raw_count(path: Path) -> int:
    """Rows as written, before equal keys are made one."""
    return sum(len(pl.read_parquet(part)) for part in (path / "scores").glob("*.parquet"))


@pytest.mark.parametrize("how", ["address", "client_address"])
def test_rows_are_the_same_bit_for_bit(cluster: Cluster, finished: Path, how: str) -> None:
    other = twin(finished)
    here = score(finished, [*METRICS, "large-mean"], registered=True, workers=2)
    seen: list[ScoreProgress] = []
    there = score(
        other,
        [*METRICS, "large-mean"],
        registered=True,
        engine="ray",
        address=getattr(cluster, how),
        observe=seen.append,
    )
    assert_frame_equal(rows(finished), rows(other), check_exact=True)
    assert (here.new, here.null, here.problems) == (there.new, there.null, there.problems)
    assert raw_count(other) == there.new
    last = seen[-1]
    assert last.scores == last.scores_done == there.new
    assert all(done == total for done, total in last.metrics.values())
    assert set(last.metrics) == {*METRICS, "large-mean"}
    assert last.bytes == there.read > 0
    assert 1 <= max(told.workers for told in seen) <= 2
    again = score(other, METRICS, registered=True, engine="ray", address=cluster.address)
    assert again.new == 0


def test_a_ray_of_its_own_is_started_and_ended_where_no_address_is_given(
    finished: Path, plugin: Path
) -> None:
    other = twin(finished)
    score(finished, ["psnr", "ssim"])
    command = [sys.executable, "-m", "convergebench", "score", str(other)]
    command += ["-m", "psnr", "-m", "ssim", "--engine", "ray", "--json"]
    environment = {**os.environ, "RAY_TMPDIR": "/tmp"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["new"] > 0  # nothing of Ray's on stdout
    assert "Traceback" not in done.stderr
    assert_frame_equal(rows(finished), rows(other), check_exact=True)


def test_what_kills_its_workers_is_recorded_and_the_rest_goes_on(
    cluster: Cluster, finished: Path
) -> None:
    store = RunStore.open(finished)
    poison = {
        (chain.key.id, step)
        for chain in store.chains()
        for step, ref in chain.held.items()
        if is_poison(store.frame(ref).pixels)
    }
    result = score(finished, ["poisoned", "psnr"], engine="ray", address=cluster.address)
    found = rows(finished)
    bad = found.filter(pl.col("metric") == "poisoned")
    nulls = bad.filter(pl.col("value").is_null())
    assert poison
    assert {(chain, step) for chain, step in nulls.select("chain", "step").iter_rows()} == poison
    assert bad["value"].count() == len(bad) - len(poison) > 0
    assert set(nulls["note"].str.slice(0, 25)) == {"its worker died 3 times ("}
    assert any("its worker died 3 times" in text for text in result.problems)
    assert found.filter(pl.col("metric") == "psnr")["value"].null_count() == 0
    assert raw_count(finished) == result.new == len(found)


def test_a_raylet_killed_in_the_middle_costs_no_row_and_adds_none(
    cluster: Cluster, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path / "suite", 4)
    table = {"suite": str(suite), "editors": ["ref:noise"], "cycles": ["copy"], "steps": 70}
    run(tmp_path / "run", table, controls=False)
    finished = tmp_path / "run"
    other = twin(finished)
    here = score(finished, METRICS)
    third = cluster.add()
    killed: list[ScoreProgress] = []
    told: list[int] = []

    def observe(now: ScoreProgress) -> None:
        told.append(now.workers)
        # In the middle of chains, of which parts have been told: those must not come again.
        if not killed and told.count(3) > 6:
            cluster.kill(third)
            killed.append(now)

    result = score(other, METRICS, engine="ray", address=cluster.address, observe=observe)
    assert killed, told
    assert 0 < killed[0].scores_done < here.new
    assert result.null == here.null
    assert not result.problems
    assert raw_count(other) == result.new == here.new
    assert_frame_equal(rows(finished), rows(other), check_exact=True)


def test_a_node_that_joins_is_taken_on(
    cluster: Cluster, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "LOOK_EVERY", 0.5)
    at_work = cluster.folder / "meeting.txt"
    joined: list[int] = []

    def join() -> None:
        while not at_work.exists():
            time.sleep(0.1)
        joined.append(cluster.add())

    joining = threading.Thread(target=join)
    joining.start()
    seen: list[ScoreProgress] = []
    address = cluster.address
    try:
        done = score(finished, ["meeting"], engine="ray", address=address, observe=seen.append)
    finally:
        joining.join()
        for raylet in joined:
            cluster.kill(raylet)
    assert (done.null, done.problems) == (0, [])
    assert max(told.workers for told in seen) == 3
    assert raw_count(finished) == done.new > 0


def test_more_memory_than_a_worker_may_use_is_refused_by_the_system(
    cluster: Cluster, finished: Path
) -> None:
    address = cluster.address
    result = score(finished, ["hungry", "psnr"], engine="ray", address=address, memory=1)
    found = rows(finished)
    refused = found.filter(pl.col("metric") == "hungry")
    assert len(refused)
    assert refused["value"].is_null().all()
    assert all("MemoryError" in note for note in refused["note"])
    assert not result.problems  # no worker died
    assert found.filter(pl.col("metric") == "psnr")["value"].null_count() == 0


def test_needs_that_no_machine_can_meet_are_one_sentence(cluster: Cluster, finished: Path) -> None:
    with pytest.raises(EngineError, match=r"no machine of the Ray cluster has .*1000 CPU"):
        score(finished, ["enormous"], engine="ray", address=cluster.address)


def test_a_cluster_that_is_not_there_is_one_sentence(finished: Path) -> None:
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        with pytest.raises(EngineError, match=f"there is no Ray cluster at {address}"):
            score(finished, ["psnr"], engine="ray", address=address)


def test_a_run_that_workers_cannot_read_is_one_sentence(
    cluster: Cluster, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunStore, "anywhere", "/nowhere/run")
    with pytest.raises(EngineError, match="storage that all of them share"):
        score(finished, ["psnr"], engine="ray", address=cluster.address)


def used_memory() -> tuple[int, int]:
    told = dict(
        (line.split(":")[0], int(line.split()[1]) * 1024)
        for line in Path("/proc/meminfo").read_text().splitlines()
    )
    return told["MemTotal"] - told["MemAvailable"], told["MemTotal"]


def test_a_worker_that_ray_kills_for_want_of_memory_is_replaced(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", pictures=[scene("portrait", 64, 64)])
    table = {"suite": str(suite), "editors": ["ref:noise"], "cycles": ["copy"], "steps": 1}
    run(tmp_path / "run", table, controls=False)
    finished = tmp_path / "run"
    used, total = used_memory()
    limit = {
        "RAY_memory_usage_threshold": f"{(used + (4 << 30)) / total:.4f}",
        "RAY_memory_monitor_refresh_ms": "100",
    }
    with Cluster(environment=limit) as small:
        asked = ["hoarding", "psnr"]
        result = score(finished, asked, steps=[1], engine="ray", address=small.address)
    found = rows(finished)
    assert found.filter(pl.col("metric") == "psnr")["value"].null_count() == 0
    hoarded = found.filter(pl.col("metric") == "hoarding")
    assert hoarded["value"].is_null().all()
    assert all("out of memory" in note for note in hoarded["note"]), set(hoarded["note"])
    assert raw_count(finished) == result.new
