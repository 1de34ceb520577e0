"""Which metrics are scored, where, and in which processes."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.comparisons import Wanted
from convergebench.drawing import scene
from convergebench.errors import SettingsError, UnknownName
from convergebench.measure import Unit
from convergebench.metrics.sets import ALL, PAPER, SETS, chosen
from convergebench.registry import metric_name, names
from convergebench.runner import run
from convergebench.scorer import parse_steps, score
from convergebench.store import RunStore
from convergebench.workers import spread
from tests.support.runs import CYCLES, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    suite = write_suite(tmp_path / "suite")
    table = {"suite": str(suite), "editors": ["ref:noise"], "rounds": 2, "controls": False}
    run(tmp_path / "run", table)
    return tmp_path / "run"


def rows(path: Path, metric: str) -> pl.DataFrame:
    return RunStore.open(path).scores().filter(pl.col("metric") == metric)


# -- names and sets -------------------------------------------------------------------------------


def test_every_metric_of_every_set_is_installed() -> None:
    for name, group in SETS.items():
        assert set(group.metrics) <= set(names("metrics")), name
    assert len(set(PAPER)) == 23


def test_sets_and_names_are_each_chosen_once() -> None:
    metrics, registered = chosen(["psnr", "restoration", "PSNR", "ms_ssim"])
    assert metrics == ("psnr", "ssim", "lpips", "musiq", "maniqa", "clipiqa", "ms-ssim")
    assert not registered
    assert chosen(["standard"])[1]
    assert set(chosen([ALL])[0]) >= {*PAPER} - {"visualquality-r1"}  # it may cost money


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        ("topiq_nr", "topiq-nr"),
        ("WaDIQaM_NR", "wadiqam"),
        ("Q-Align", "qalign"),
        ("MUSIQ", "musiq"),
    ],
)
def test_names_of_papers_and_of_pyiqa_are_understood(said: str, ours: str) -> None:
    assert str(metric_name(said)) == ours


def test_an_unknown_metric_is_refused_before_anything_is_scored(finished: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean psnr"):
        score(finished, ["psnrr"])
    with pytest.raises(UnknownName, match="standard"):
        score(finished, ["standart"])


# -- steps ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 30), st.integers(1, 9)), min_size=1))
def test_steps_are_the_union_of_numbers_and_ranges(parts: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}:{stride}" for first, more, stride in parts)
    wanted = {n for first, more, stride in parts for n in range(first, first + more + 1, stride)}
    assert parse_steps(text) == sorted(wanted)
    assert parse_steps("7, 1,1") == [1, 7]


@pytest.mark.parametrize("text", ["", "1,", "a", "5-1", "1-5:0", "1.5", "-3"])
def test_other_steps_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="1,5,10-50:10"):
        parse_steps(text)


# -- rows -----------------------------------------------------------------------------------------


def test_values_outside_the_typical_range_are_kept_and_flagged(finished: Path) -> None:
    score(finished, ["psnr"])
    found = rows(finished, "psnr")
    outside = found.filter((pl.col("value") < 10) | (pl.col("value") > 50))
    assert len(outside)
    assert set(outside["note"]) == {"outside the typical range 10 to 50"}
    inside = found.filter(pl.col("value").is_between(10, 50))
    assert inside["note"].is_null().all()


def test_directional_metrics_get_the_texts_of_edits_that_leave_home(tmp_path: Path) -> None:
    captioned = CYCLES.replace(
        'prompt = "Add a red ball."', 'prompt = "Add a red ball."\ncaption = "{source} and a ball"'
    )
    suite = write_suite(tmp_path / "suite", cycles=captioned)
    suite.write_text(suite.read_text().replace('name = "s0"', 'name = "s0"\ndescription = "a box"'))
    table = {"suite": str(suite), "editors": ["ref:noise"], "rounds": 2, "controls": False}
    run(tmp_path / "run", table)
    score(tmp_path / "run", ["told-metric"])
    found = rows(tmp_path / "run", "told-metric")
    assert set(found["against"]) == {"previous"}
    assert set(found["step"]) == {1, 3}  # of the round trip; replication never leaves home
    told = found.filter(pl.col("value").is_not_null())
    assert set(told["value"]) == {len(" and a ball")}
    assert set(told["note"]) == {"outside the typical range 0 to 10"}
    assert set(found.filter(pl.col("value").is_null())["note"]) == {"no texts"}  # s1


def test_full_reference_metrics_are_also_scored_after_registration(tmp_path: Path) -> None:
    pictures = [scene(name, 160, 160) for name in ("still-life", "portrait")]
    suite = write_suite(tmp_path / "suite", pictures=pictures)
    editors = ["ref:shift", "ref:identity"]
    table = {"suite": str(suite), "editors": editors, "rounds": 2, "controls": False}
    run(tmp_path / "run", {**table, "cycles": ["copy"]})
    names = ["psnr", "registration-dx", "registration-dy", "noise"]
    score(tmp_path / "run", names, against=("home",), registered=True)
    both = (
        rows(tmp_path / "run", "psnr")
        .filter(pl.col("against") == "home")
        .pivot("where", index=["chain", "step"], values="value")
    )
    assert len(both) == 8
    moved = both.filter(pl.col("chain").str.contains("shift"))
    assert (moved["registered"] > moved["all"] + 6).all()
    still = both.filter(~pl.col("chain").str.contains("shift"))
    assert (still["registered"] == still["all"]).all()
    versions = rows(tmp_path / "run", "psnr").filter(pl.col("where") == "registered")["version"]
    assert set(versions) == {"1+registration1"}
    placed = rows(tmp_path / "run", "registration-dx").filter(pl.col("chain").str.contains("shift"))
    assert set(placed["value"]) == {1.0, 2.0}  # a pixel to the right each time
    for name in names[1:]:
        assert set(rows(tmp_path / "run", name)["where"]) == {"all"}
    again = score(tmp_path / "run", names, against=("home",), registered=True)
    assert again.new == 0
    assert score(tmp_path / "run", ["psnr"], against=("home",)).new == 0


def test_where_registration_fails_the_row_is_null_and_says_so(tmp_path: Path) -> None:
    pictures = [scene(name, 96, 96) for name in ("still-life", "grid")]
    suite = write_suite(tmp_path / "suite", pictures=pictures)
    table = {"suite": str(suite), "editors": ["ref:random"], "rounds": 1, "controls": False}
    run(tmp_path / "run", {**table, "cycles": ["copy"]})
    result = score(tmp_path / "run", ["psnr"], against=("home",), registered=True)
    found = rows(tmp_path / "run", "psnr").filter(pl.col("where") == "registered")
    assert found["value"].is_null().all()
    assert all(note.startswith("not registered: ") for note in found["note"])
    assert result.null == len(found) == 2


# -- isolated metrics -----------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_isolated_metrics_run_in_processes_of_their_own(finished: Path, workers: int) -> None:
    result = score(finished, ["apart-metric", "noisy-metric"], workers=workers)
    assert not result.problems
    pids = set(rows(finished, "apart-metric")["value"])
    assert float(os.getpid()) not in pids
    assert 1 <= len(pids) <= workers
    assert result.null == 0


def test_an_isolated_metric_is_refused_more_memory_than_it_may_use(finished: Path) -> None:
    result = score(finished, ["greedy-metric", "psnr"], memory=1)
    found = rows(finished, "greedy-metric")
    assert len(found)
    assert found["value"].is_null().all()
    assert all("MemoryError" in note for note in found["note"])
    assert not result.problems  # no worker died
    assert rows(finished, "psnr")["value"].null_count() == 0


# -- units ----------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 500), min_size=1), st.integers(0, 20))
def test_a_unit_in_parts_has_each_step_once(steps: set[int], count: int) -> None:
    unit = Unit("a--b", ("psnr",), Wanted(("home",), False), None, (), frozenset())
    parts = spread(unit, sorted(steps), count)
    assert len(parts) <= max(1, count)
    if len(parts) == 1:
        assert parts == [unit]
    else:
        assert [step for part in parts for step in part.steps or ()] == sorted(steps)
        assert all(len(part.steps or ()) >= 10 for part in parts[:-1])
    floor = replace(unit, others=("c", "d"))
    assert spread(floor, sorted(steps), count) == [floor]


def test_one_long_chain_is_shared_among_workers_and_gives_the_same_rows(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", pictures=[scene("portrait", 64, 64)])
    table = {"suite": str(suite), "editors": ["ref:noise"], "cycles": ["copy"], "steps": 40}
    run(tmp_path / "run", table, controls=False)
    shutil.copytree(tmp_path / "run", tmp_path / "twin")
    score(tmp_path / "run", ["ssim", "apart-metric"], workers=3)
    score(tmp_path / "twin", ["ssim"], workers=1)
    assert (
        rows(tmp_path / "run", "ssim")
        .sort("step", "against")
        .equals(rows(tmp_path / "twin", "ssim").sort("step", "against"))
    )
    assert len(rows(tmp_path / "run", "ssim")) == 2 * 40
