"""The plan of a scoring: its counts are those of `score`, its seconds are really measured."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convergebench.cli import app
from convergebench.comparisons import Wanted
from convergebench.errors import UnknownName
from convergebench.measure import Unit
from convergebench.metric import LiftedMetric, MetricSpec
from convergebench.planner import calibration, clocking, plan, scoring
from convergebench.planner.hours import Scoring, ratio
from convergebench.planner.workload import Group
from convergebench.presets import open_preset
from convergebench.runner import run
from convergebench.scorer import parse_steps, score
from convergebench.store import RunStore
from tests.planner.test_preflight import RESTORE, pairs
from tests.support.runs import CYCLES, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")

METRICS = ["psnr", "ssim", "noise", "told-metric", "registration-dx"]


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "SECONDS", 0.02)


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    suite = write_suite(tmp_path / "suite", 3)
    return {"suite": str(suite), "editors": ["ref:noise"], "rounds": 3, "controls": False}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only counts matter: every score is said to take a millisecond."""

    def calibrate(_store: object, group: Group, *_more: object) -> calibration.Timing:
        metrics = {name: [(0.001, 1)] * 3 for name in group.specs}
        return calibration.Timing(metrics, [0.001] * 3, [0.001] * 3)

    monkeypatch.setattr(scoring, "calibrate", calibrate)


def planned(*args: Any, **more: Any) -> Scoring:
    found = plan(*args, **more).scoring
    assert found is not None
    return found


def by_metric(told: Scoring, *, study: bool = False) -> dict[str, int]:
    return {c.name: c.study if study else c.scores for c in told.costs if c.metric}


def made(path: Path) -> dict[str, int]:
    rows = RunStore.open(path).scores()
    return dict(rows.group_by("metric").len().iter_rows())


@pytest.mark.usefixtures("counted")
def test_counts_are_what_score_makes(tmp_path: Path, table: dict[str, Any]) -> None:
    told = planned(tmp_path / "run", table, metrics=METRICS)
    assert not (tmp_path / "run").exists()
    run(tmp_path / "run", table)
    done = score(tmp_path / "run", METRICS, workers=1)
    assert told.scores == done.new
    assert by_metric(told) == made(tmp_path / "run")
    (decoding,) = (cost for cost in told.costs if not cost.metric)
    assert decoding.scores == done.decoded


def test_counts_with_registration_are_what_score_makes(
    tmp_path: Path, table: dict[str, Any]
) -> None:
    from convergebench.metrics.sets import SETS

    names = ["standard"]
    told = planned(tmp_path / "run", table, metrics=names)
    run(tmp_path / "run", table)
    done = score(tmp_path / "run", names, workers=1)
    assert done.problems  # some weights are not here
    assert by_metric(told).items() >= made(tmp_path / "run").items()
    left = {cost.name for cost in told.costs if cost.why}
    absent = set(SETS["standard"].metrics) - set(done.metrics)
    assert absent | {"ms-ssim", "drift-nr"} == left  # those two want larger pictures
    (pairs_told,) = (cost for cost in told.costs if cost.name == "(registration)")
    homes = 3 * (3 + 3)  # each source's three copies, and three homecomings
    assert pairs_told.scores == homes


@pytest.mark.usefixtures("counted")
def test_the_studys_steps_alone(tmp_path: Path, table: dict[str, Any]) -> None:
    table |= {"cycles": ["copy"], "steps": 12}
    del table["rounds"]
    told = planned(table, metrics=METRICS)
    assert told.steps == "0,1,5,10"
    assert "score --steps 0,1,5,10." in str(told)
    run(tmp_path / "run", table)
    done = score(tmp_path / "run", METRICS, steps=parse_steps(told.steps))
    assert by_metric(told, study=True) == {"told-metric": 0, **made(tmp_path / "run")}
    assert told.study_scores == done.new < told.scores
    assert told.hours(study=True).mean < told.hours().mean


@pytest.mark.usefixtures("counted")
def test_round_trips_need_their_homecomings_and_the_first_step(table: dict[str, Any]) -> None:
    told = planned({**table, "cycles": ["ball"], "rounds": 4}, metrics=["psnr"])
    assert told.steps == "0-2,4-8:2"
    mixed = planned({**table, "rounds": 6}, metrics=["psnr"])  # copies have six steps, trips twelve
    assert mixed.steps == "0-2,4-6,8-12:2"


@pytest.mark.usefixtures("counted")
def test_the_papers_design_is_compared_at_the_papers_steps() -> None:
    table = open_preset("banana100/smoke").table
    told = planned({**table, "editors": ["ref:banana"], "steps": 24}, metrics=["noise"])
    assert told.steps == "0,1,5,10,20"
    assert told.study_scores < told.scores / 4


@pytest.mark.usefixtures("counted")
def test_what_is_scored_is_not_counted_again(tmp_path: Path, table: dict[str, Any]) -> None:
    run(tmp_path / "run", table)
    before = score(tmp_path / "run", ["psnr", "noise"], steps=[1, 2])
    # Longer chains, another source more, and one metric more.
    told = planned(tmp_path / "run", rounds=5, metrics=["psnr", "noise", "ssim"])
    assert told.known == before.new
    run(tmp_path / "run", rounds=5)
    after = score(tmp_path / "run", ["psnr", "noise", "ssim"])
    assert told.scores == after.new
    whole = plan(tmp_path / "run", rounds=5, metrics=["psnr", "noise", "ssim"])
    assert [row[0] for row in whole.table.rows] == ["all"]
    assert "nothing is left to run" in str(whole)
    nothing = whole.scoring
    assert nothing is not None
    assert (nothing.scores, nothing.known) == (0, before.new + after.new)
    assert nothing.to_dict()["notes"] == ["Nothing is left to score, so nothing was measured."]
    assert nothing.hours().mean == 0.0


@pytest.mark.usefixtures("counted")
def test_a_chain_that_ended_is_counted_as_it_is(tmp_path: Path, table: dict[str, Any]) -> None:
    table |= {"editors": ["scripted,script=1:ok;2:ok;3:refuse"], "cycles": ["copy"], "rounds": 5}
    run(tmp_path / "run", table)
    told = planned(tmp_path / "run", metrics=["psnr"])
    assert told.scores == score(tmp_path / "run", ["psnr"]).new


@pytest.mark.usefixtures("counted")
def test_restorations_are_compared_with_their_truth(tmp_path: Path) -> None:
    suite = pairs(
        tmp_path / "suite", {"a": ((32, 32), (96, 96)), "b": ((32, 32), (32, 32))}, RESTORE
    )
    table = {"suite": str(suite), "editors": ["ref:jpeg"], "controls": False}
    told = planned(table, metrics=["psnr"])
    assert told.size == (96, 96)  # where most of the pixels are
    run(tmp_path / "run", table)
    assert told.scores == score(tmp_path / "run", ["psnr"]).new
    assert 0 < told.elsewhere < 1
    assert "of other sizes: scaled by their pixels" in str(told)


@pytest.mark.usefixtures("counted")
def test_sparse_metrics_are_scored_at_the_trials_steps(table: dict[str, Any]) -> None:
    table |= {"cycles": ["copy"], "rounds": 8}
    told = planned(table, metrics=["sharpness"], sparse=["noise"])
    assert by_metric(told) == {"sharpness": 3 * 9, "noise": 3 * 3}  # 0 to 8; 0, 1 and 5


def test_what_cannot_run_here_is_listed_and_never_guessed(table: dict[str, Any]) -> None:
    told = planned(table, metrics=["noise", "unavailable-metric", "deadly-metric", "clip"])
    costs = {cost.name: cost for cost in told.costs}
    assert costs["noise"].hours is not None  # although it shared a process with the deadly one
    assert costs["deadly-metric"].why == "its process died"
    assert "weights" in costs["unavailable-metric"].why
    assert "clip" in costs["clip"].why
    for name in ("unavailable-metric", "deadly-metric", "clip"):
        assert (costs[name].seconds, costs[name].hours) == (None, None)
    assert "Not measured, and in no sum" in str(told)


def test_what_is_left_and_cannot_be_measured_costs_no_calibration(
    tmp_path: Path, table: dict[str, Any]
) -> None:
    run(tmp_path / "run", table)
    score(tmp_path / "run", ["noise"])
    told = planned(tmp_path / "run", metrics=["noise", "clip"])
    assert [(cost.name, cost.hours) for cost in told.costs] == [("noise", None), ("clip", None)]
    assert told.to_dict()["notes"][0] == "Nothing of what is left can be measured here."
    assert told.hours().mean == 0.0


def test_what_comes_out_null_is_not_measured(table: dict[str, Any]) -> None:
    told = planned(table, metrics=["psnr", "ms-ssim"])  # 32 pixels are too few for five scales
    costs = {cost.name: cost for cost in told.costs}
    assert costs["ms-ssim"].why.startswith("came out null: 32 pixels on the short side")


def test_a_served_metric_is_not_asked(
    table: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_VLM_URL", "http://127.0.0.1:9/v1")
    told = planned(table, metrics=["noise", "vlm:some-model"])
    costs = {cost.name: cost for cost in told.costs}
    assert "served by a model elsewhere" in costs["vlm:some-model"].why


class Burning:
    """Metrics that take so many seconds for each view, on a clock that only they move."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._now = 0.0

    def clock(self) -> float:
        return self._now

    def opened(self, name: str) -> LiftedMetric:
        return LiftedMetric(MetricSpec(name, "1", "no-reference", True), self._work)

    def _work(self, view: object) -> float:
        self._now += self._seconds
        return 1.0


def test_a_metric_of_known_cost(
    tmp_path: Path, table: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run", table)
    burning = Burning(0.25)
    monkeypatch.setattr(clocking, "open_metric", burning.opened)
    chain = RunStore.open(tmp_path / "run").chains()[0]
    unit = Unit(chain.key.id, ("burning",), Wanted(), (1, 2, 3), (), frozenset())
    expected: list[float] = []
    told = clocking.clocked(
        tmp_path / "run", [unit], 9.0, burning.clock, wall=burning.clock, loaded=expected.append
    )
    assert expected == [9.0]
    samples = told["metrics"]["burning"]
    assert samples == [(0.75, 3)] * 12
    found = ratio(samples)
    assert found is not None
    assert (found.mean, found.half) == (0.25, 0.0)
    assert told["loading"] == {"burning": 0.0}


def test_a_metric_that_few_chains_lack_is_measured_however_slow_the_machine(
    tmp_path: Path, table: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run", table)
    burning = Burning(0.5)
    monkeypatch.setattr(clocking, "open_metric", burning.opened)
    chain = RunStore.open(tmp_path / "run").chains()[0].key.id
    units = [Unit(chain, ("usual",), Wanted(), (n % 3 + 1,), (), frozenset()) for n in range(24)]
    units.append(Unit(chain, ("rare",), Wanted(), (1,), (), frozenset()))
    for seconds in (4.0, 0.1):  # eight stretches fit; one, five times over
        told = clocking.clocked(tmp_path / "run", units, seconds, burning.clock, wall=burning.clock)
        assert all(told["metrics"][name] for name in ("usual", "rare")), told
        assert told["why"] == {}


def test_the_calibration_counts_every_score_it_makes(
    tmp_path: Path, table: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("COUNTING_METRIC_LOG", str(log))
    seen: list[tuple[float, int]] = []
    ask = calibration._ask

    def spy(*args: Any) -> calibration.Timing | str:
        timing = ask(*args)
        assert isinstance(timing, calibration.Timing)
        seen.extend(timing.metrics["counting-metric"])
        return timing

    monkeypatch.setattr(calibration, "_ask", spy)
    told = planned(table, metrics=["counting-metric"])
    (cost,) = (cost for cost in told.costs if cost.metric)
    assert cost.seconds is not None
    assert cost.seconds.repeats == len(seen) >= 3
    warmed = 2  # once to load it, once to see how long it takes
    assert len(log.read_text().splitlines()) == sum(number for _, number in seen) + warmed


def test_an_unknown_engine_or_metric_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(UnknownName, match="no engine called 'dask'"):
        plan(table, engine="dask", metrics=["psnr"])
    with pytest.raises(UnknownName, match="psnrr"):
        plan(table, metrics=["psnrr"])


@pytest.mark.usefixtures("counted")
def test_without_metrics_or_an_engine_no_scoring_is_planned(table: dict[str, Any]) -> None:
    assert plan(table).scoring is None
    assert "scoring" not in plan(table).to_dict()
    assert "psnr" in by_metric(planned(table, engine="local"))  # the set fast


def test_a_calibration_says_how_long_it_takes_while_it_does(
    table: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "SECONDS", 3.0)
    monkeypatch.setattr(calibration, "TICK", 0.2)
    seen: list[tuple[float, float, str]] = []
    begun = time.monotonic()
    planned(table, metrics=["noise"], calibrating=lambda *told: seen.append(told))
    took = time.monotonic() - begun
    taken, wholes, texts = zip(*seen, strict=True)
    assert list(taken) == sorted(taken)
    assert list(dict.fromkeys(texts)) == ["drawing a source at 32×32", "loading noise",
                                          "measuring noise", ""]  # fmt: skip
    measuring = [n for n, text in enumerate(texts) if text == "measuring noise"]
    assert len(measuring) >= 5, "it goes on telling"
    assert wholes[measuring[0]] == pytest.approx(taken[-1], abs=2), "what is announced holds"
    assert wholes[-1] == taken[-1] <= took


def test_what_hangs_is_given_up(table: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "SECONDS", 60.0)
    monkeypatch.setattr(calibration, "PATIENCE", 0.6)
    begun = time.monotonic()
    (cost, *_) = planned(table, metrics=["noise"]).costs
    assert cost.why == "given up after 0 min"
    assert time.monotonic() - begun < 30


def test_command_line(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", cycles=CYCLES)
    words = ["plan", "--suite", str(suite), "-e", "ref:noise", "--cycle", "copy", "--steps", "6"]
    done = CliRunner().invoke(
        app, [*words, "--engine", "ray", "--metrics", "psnr,clip", "--workers", "8", "--json"]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["scoring"]
    assert (told["engine"], told["study_steps"]) == ("ray", "0,1,5")
    psnr, clip, decoding = told["metrics"]
    assert (psnr["workers"], decoding["workers"]) == (8, 8)
    assert psnr["seconds"]["low"] <= psnr["seconds"]["mean"] <= psnr["seconds"]["high"]
    assert psnr["hours"]["mean"] > psnr["study_hours"]["mean"] > 0
    assert "weights" in clip["not_measured"]
    assert clip["hours"] is None
    assert decoding["metric"] is False
    hours = told["devices"]["cpu"]["hours"]["mean"]
    assert hours == pytest.approx(psnr["hours"]["mean"] + decoding["hours"]["mean"])
    assert told["devices"]["cpu"]["wall_hours"]["mean"] >= hours / 8
    assert "measuring will take about 4 s" in done.stderr
    assert re.search(r"calibrating, seconds: (\d+) of \1$", done.stderr, re.MULTILINE)
    text = CliRunner().invoke(app, [*words, "--metrics", "psnr"]).stdout
    assert "Scoring with --engine local" in text
    assert text.startswith("Plan for suite tiny")


def test_a_presets_own_metrics_are_the_default() -> None:
    words = ["plan", "--preset", "banana100/smoke", "--engine", "ray", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["scoring"]
    names = [cost["name"] for cost in told["metrics"] if cost["metric"]]
    assert {"piqe", "sharpness", "drift-nr"} <= set(names)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--engine", "dask"], "no engine called 'dask'"),
        (["--workers", "3"], "workers are for scoring: say which metrics, or --engine, too"),
        (["--address", "auto"], "an address is that of a Ray cluster: give --engine ray, too."),
        (["--metrics", "psnr", "--address", "auto"], "give --engine ray, too."),
    ],
)
def test_wrong_words_are_told(words: list[str], told: str) -> None:
    from convergebench.errors import ConvergeBenchError

    done = CliRunner().invoke(app, ["plan", "-e", "ref:noise", *words])
    assert isinstance(done.exception, ConvergeBenchError)
    assert told in str(done.exception)
