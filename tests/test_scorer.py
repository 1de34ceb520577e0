from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from convergebench.chain import Chain
from convergebench.comparisons import floor_pairs
from convergebench.editors.reference import ramp_psnr
from convergebench.errors import ConvergeBenchError, EngineError, SettingsError, StoreError
from convergebench.metrics.pixel import psnr
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from tests.support.runs import write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    suite = write_suite(tmp_path / "suite")
    table = {"suite": str(suite), "editors": ["ref:noise"], "rounds": 3, "controls": False}
    run(tmp_path / "run", table)
    return tmp_path / "run"


def test_nothing_is_computed_twice(finished: Path) -> None:
    first = score(finished, ["psnr"])
    assert first.new > 0
    rows = RunStore.open(finished).scores()
    again = score(finished, ["psnr"])
    assert (again.new, again.known, again.decoded) == (0, first.new, 0)
    more = score(finished, ["psnr", "ssim"])
    assert (more.new, more.known) == (first.new, first.new)
    run(finished, rounds=4)
    longer = score(finished, ["psnr"])
    # Each of 2 sources: one more copy (home, previous), and two round-trip steps (previous in 3
    # places, the second also against home in 3 places and against the homecoming before).
    assert longer.new == 2 * (2 + 3 + 6 + 1)
    kept = (
        RunStore.open(finished).scores().join(rows, on=rows.columns, how="semi", nulls_equal=True)
    )
    assert len(kept) == len(rows)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_frame_is_decoded_once_for_all_metrics(finished: Path, workers: int) -> None:
    store = RunStore.open(finished)
    frames = sum(chain.length for chain in store.chains())
    result = score(finished, ["psnr", "ssim", "ssim-rgb", "ssim-uniform"], workers=workers)
    sources = 2
    floor = 2 * sources  # each source and its only other one
    assert result.decoded <= frames + workers * sources + floor
    assert result.decoded >= frames + sources + floor


def test_score_files_are_merged(finished: Path) -> None:
    score(finished, ["psnr"])
    before = RunStore.open(finished).scores()
    score(finished, ["ssim"])
    after = RunStore.open(finished).scores()
    assert len(list((finished / "scores").iterdir())) == 1
    assert len(after) == 2 * len(before)
    assert after.filter(pl.col("metric") == "psnr").equals(before)


def test_versions_behind_the_scores_are_kept(finished: Path) -> None:
    score(finished, ["psnr"])
    score(finished, ["psnr"])  # nothing to do, nothing to tell
    lines = [json.loads(x) for x in (finished / "sessions.jsonl").read_text().splitlines()]
    told = [line for line in lines if line.get("command") == "score"]
    assert len(told) == 1
    assert told[0]["metrics"] == [psnr().spec.label]
    assert {"numpy", "opencv-python-headless", "python"} <= set(told[0]["versions"])


def test_rows_say_what_was_compared_where(finished: Path) -> None:
    score(finished, ["psnr"])
    rows = RunStore.open(finished).scores()
    ball = rows.filter(pl.col("chain").str.contains("--ball--"))
    assert set(ball["against"]) == {"home", "previous", "homecoming"}
    assert set(ball["where"]) == {"all", "inside", "outside"}
    home = ball.filter((pl.col("against") == "home") & (pl.col("where") == "all"))
    assert sorted(set(home["step"])) == [2, 4, 6]
    copy = rows.filter(pl.col("chain").str.contains("--copy--"))
    assert set(copy["where"]) == {"all"}
    floor = rows.filter(pl.col("chain").str.starts_with("floor--"))
    assert sorted(zip(floor["chain"], floor["against"], strict=True)) == [
        ("floor--s0", "s1"),
        ("floor--s1", "s0"),
    ]
    assert rows["version"].unique().to_list() == [psnr().spec.version]


def value(run_: Path, chain: Chain, step: int, against: str, where: str) -> float:
    rows = (
        RunStore.open(run_)
        .scores()
        .filter(
            (pl.col("chain") == chain.key.id)
            & (pl.col("step") == step)
            & (pl.col("metric") == "psnr")
            & (pl.col("against") == against)
            & (pl.col("where") == where)
        )
    )
    return float(rows["value"].item())


def by_hand(a: np.ndarray, b: np.ndarray) -> float:
    mse = ((a.astype(float) - b.astype(float)) ** 2).mean()
    return math.inf if mse == 0 else 10 * math.log10(255**2 / mse)


def test_a_run_scored_before_there_were_homecomings_gains_only_these(finished: Path) -> None:
    old = score(finished, ["psnr", "ssim-rgb"], against=("home", "previous"))
    result = score(finished, ["psnr", "ssim-rgb"])
    rows = RunStore.open(finished).scores()
    assert result.known == old.new
    assert result.new == len(rows.filter(pl.col("against") == "homecoming")) == 2 * 3
    assert set(rows.filter(pl.col("against") == "homecoming")["metric"]) == {"psnr"}


def test_homecomings_alone_are_the_frame_before_in_a_cycle_of_one_edit(finished: Path) -> None:
    score(finished, ["psnr"], against=("homecoming",))
    rows = RunStore.open(finished).scores()
    rows = rows.filter(~pl.col("chain").str.starts_with("floor--"))
    kinds = rows.select(pl.col("chain").str.contains("--copy--"), "against").unique()
    assert sorted(kinds.iter_rows()) == [(False, "homecoming"), (True, "previous")]


def test_values_by_hand(finished: Path) -> None:
    score(finished, ["psnr"])
    store = RunStore.open(finished)
    chain = next(c for c in store.chains() if "--ball--" in c.key.id)
    frames = [store.frame(ref).pixels for ref in chain.frames]
    inside = np.zeros((32, 32), bool)
    inside[8:24, 8:24] = True
    assert value(finished, chain, 4, "home", "all") == pytest.approx(by_hand(frames[0], frames[4]))
    assert value(finished, chain, 3, "previous", "all") == pytest.approx(
        by_hand(frames[2], frames[3])
    )
    for step in (2, 4, 6):
        assert value(finished, chain, step, "homecoming", "all") == pytest.approx(
            by_hand(frames[step - 2], frames[step])
        )
    assert value(finished, chain, 1, "previous", "inside") == pytest.approx(
        by_hand(frames[0][inside], frames[1][inside])
    )
    assert value(finished, chain, 1, "previous", "outside") == pytest.approx(
        by_hand(frames[0][~inside], frames[1][~inside])
    )


def test_ramp_follows_its_closed_form(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", size=40)
    table = {"suite": str(suite), "editors": ["ref:ramp,step=2"], "cycles": ["copy"], "rounds": 20}
    run(tmp_path / "run", table, controls=False)
    score(tmp_path / "run", ["psnr"])
    chains = RunStore.open(tmp_path / "run").chains()
    assert len(chains) == 2
    for chain in chains:
        for n in range(1, 21):
            measured = value(tmp_path / "run", chain, n, "home", "all")
            assert measured == pytest.approx(20 * math.log10(255 / (2 * n)), abs=1e-6)
            assert ramp_psnr(n, 2) == pytest.approx(20 * math.log10(255 / (2 * n)), abs=1e-12)


def test_a_changed_size_is_resampled_to_home(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", size=64)
    table = {"suite": str(suite), "editors": ["ref:crop-first,keep-size=no"], "cycles": ["copy"]}
    run(tmp_path / "run", table, rounds=2, controls=False)
    store = RunStore.open(tmp_path / "run")
    chain = store.chains()[0]
    assert chain.frames[1].width != 64
    score(tmp_path / "run", ["psnr"])
    assert math.isfinite(value(tmp_path / "run", chain, 1, "home", "all"))
    assert value(tmp_path / "run", chain, 2, "previous", "all") == math.inf


@pytest.mark.parametrize("workers", [1, 2])
def test_a_metric_that_fails_gives_null_and_a_reason(finished: Path, workers: int) -> None:
    result = score(finished, ["faulty-metric", "psnr"], workers=workers)
    rows = RunStore.open(finished).scores().filter(pl.col("metric") == "faulty-metric")
    notes = set(rows["note"].drop_nulls())
    assert notes <= {"ZeroDivisionError: too dark", "not a number"}
    assert result.null == rows["value"].null_count()
    assert len(rows) == rows["value"].count() + result.null
    assert score(finished, ["faulty-metric"]).new == 0
    assert score(finished, ["faulty-metric"], retry_null=True).new == result.null


def test_a_metric_that_kills_its_process_is_recorded(finished: Path) -> None:
    result = score(finished, ["deadly-metric", "psnr"], workers=2)
    rows = RunStore.open(finished).scores()
    dead = rows.filter(pl.col("metric") == "deadly-metric")
    assert dead["value"].null_count() == len(dead) > 0
    assert "its worker died 3 times" in dead["note"][0]
    assert any("worker died" in text for text in result.problems)
    others = rows.filter(pl.col("metric") == "psnr")
    assert len(others) == others["value"].count() > 0, "the other metrics do not suffer"


def test_a_metric_that_prints_does_no_harm(finished: Path) -> None:
    assert score(finished, ["noisy-metric"], workers=2).null == 0


def test_a_missing_metric_says_how_to_get_it_and_the_rest_goes_on(finished: Path) -> None:
    result = score(finished, ["unavailable-metric", "psnr"])
    assert "convergebench weights pull x" in result.problems[0]
    assert result.new > 0
    with pytest.raises(ConvergeBenchError, match="weights pull x"):
        score(finished, ["unavailable-metric"])


def test_only_some_steps(finished: Path) -> None:
    score(finished, ["psnr"], steps=[1, 3])
    rows = RunStore.open(finished).scores().filter(~pl.col("chain").str.starts_with("floor--"))
    assert set(rows["step"]) == {1, 3}


def test_mistakes(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'previous' or 'homecoming', got 'truth'"):
        score(finished, against=["truth"])
    with pytest.raises(StoreError, match="not a run directory"):
        score(tmp_path / "nothing")
    with pytest.raises(ConvergeBenchError, match=r"no metric called 'psnrr'. Did you mean psnr"):
        score(finished, ["psnrr"])


def test_what_a_worker_lacks_ends_the_command_and_is_no_null(
    tmp_path: Path, test_plugin: Path
) -> None:
    table = {"suite": str(write_suite(tmp_path / "suite")), "editors": ["ref:noise"], "steps": 2}
    run(tmp_path / "run", table, controls=False)
    with pytest.raises(EngineError, match=r"a worker on \S+ cannot measure: its weights are not"):
        score(tmp_path / "run", ["elsewhere-metric"])
    assert RunStore.open(tmp_path / "run").scores().is_empty()


def test_score_files_that_become_one_while_they_are_read(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score(finished, ["psnr"], workers=1)
    score(finished, ["ssim"], workers=1)
    store = RunStore.open(finished)
    whole = store.scores()
    for part, rows in enumerate((whole[:5], whole[5:])):
        rows.write_parquet(finished / "scores" / f"part-9{part}.parquet")
    read = pl.read_parquet
    merged: list[Path] = []

    def reading(path: Path) -> pl.DataFrame:
        if not merged:
            merged.append(path)
            store.merge_scores()  # as another process does
        return read(path)

    monkeypatch.setattr(pl, "read_parquet", reading)
    assert RunStore.open(finished).scores().sort(whole.columns).equals(whole.sort(whole.columns))
    assert merged


def test_floor_pairs() -> None:
    assert floor_pairs(["a"]) == []
    assert sorted(floor_pairs(["a", "b", "c"])) == [(x, y) for x in "abc" for y in "abc" if x != y]
    many = [f"s{i}" for i in range(40)]
    pairs = floor_pairs(many)
    assert len(pairs) == len(set(pairs)) == 40 * 12


SCORE = """
import re, resource, sys
from convergebench.scorer import score
run, steps, metrics, against = sys.argv[1:]
steps, workers = range(int(steps)), 2
rows = score(run, metrics.split(","), steps=steps, against=against.split(","), workers=workers).new
# Not ru_maxrss: a process inherits that of the one which started it, here pytest's.
own = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(rows, own + workers * largest)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_long_4k_chain_scores_in_bounded_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 200, (96, 176, 3))
    source = np.kron(coarse, np.ones((32, 32, 1), int)).astype(np.uint8)
    assert source.shape == (3072, 5632, 3)
    suite = write_suite(tmp_path / "suite", pictures=[source])
    table = {"suite": str(suite), "editors": ["ref:ramp,step=1"], "cycles": ["copy"], "steps": 12}
    run(tmp_path / "run", table, controls=False)
    for steps, metrics, against, count in (
        ("13", "psnr", "home", 12),
        # the same against previous, the other nine that compare, and two that do not
        ("4", "fast", "home,previous", 3 + 9 * 2 * 3 + 2 * 4),
    ):
        command = [sys.executable, "-c", SCORE, str(tmp_path / "run"), steps, metrics, against]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows, kib = (int(word) for word in done.stdout.split())
        assert rows == count
        assert kib < 2 * 2**20, f"{metrics}: {kib / 2**20:.2f} GiB"
