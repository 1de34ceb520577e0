"""Correlations with people against SciPy, their intervals, and metrics of a score table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from convergebench.opinions import analyse
from convergebench.opinions.correlations import (
    _kendall,
    _pearson,
    _spearman,
    correlate,
    fit_logistic,
    kendall,
    logistic,
    pearson,
    spearman,
)
from tests.opinions.material import Array, choices_from, raw_scores, simulated

series = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=4, max_size=25).map(
    lambda pairs: np.array(pairs, dtype=float)
)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["nflx", "vqeg"])
def test_coefficients_of_real_opinions_are_those_of_scipy(shared: Path, name: str) -> None:
    """Half of the raters against the other half."""
    values = raw_scores(shared, name)
    x, y = values[:, ::2].mean(axis=1), values[:, 1::2].mean(axis=1)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@given(series)
def test_coefficients_are_those_of_scipy_for_anything(points: Array) -> None:
    x, y = points.T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert pearson(x, y) is spearman(x, y) is kendall(x, y) is None
        return
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-9)


@given(series, st.integers(0, 2**32 - 1))
def test_weights_are_the_same_as_drawing_several_times(points: Array, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(0, 4, (len(points), 3)).astype(float)
    x, y = points.T
    found = (
        _pearson(x[:, None], y[:, None], weights),
        _spearman(x, y, weights),
        _kendall(x, y, weights),
    )
    for column in range(3):
        drawn = np.repeat(np.arange(len(points)), weights[:, column].astype(int))
        a, b = x[drawn], y[drawn]
        if len(drawn) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
            continue
        theirs = stats.pearsonr(a, b), stats.spearmanr(a, b), stats.kendalltau(a, b)
        for mine, other in zip(found, theirs, strict=True):
            assert mine[column] == pytest.approx(other.statistic, abs=1e-9)


def test_a_logistic_is_found_again() -> None:
    x = np.linspace(10, 50, 40)
    truth = (4.6, 1.2, 28.0, 4.0)
    assert fit_logistic(x, logistic(x, *truth)) == pytest.approx(truth, rel=1e-4)


def test_the_mapping_straightens_what_bends_and_never_falls() -> None:
    x = np.linspace(-6, 6, 40)
    found, rmse, mapping = correlate(
        x, logistic(x, 5, 1, 0, 0.4), [str(at // 4) for at in range(40)]
    )
    assert found["plcc"].value is not None
    assert found["plcc"].value < 0.97
    assert found["fitted"].value == pytest.approx(1.0, abs=1e-6)
    assert rmse == pytest.approx(0.0, abs=1e-4)
    assert mapping is not None
    assert fit_logistic(x, -x) is None  # the best curve falls: the metric contradicts people


def test_intervals_hold_the_value_and_need_three_pictures() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    found, _, _ = correlate(x, y, [str(at % 12) for at in range(60)])
    for one in found.values():
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        assert -1 <= one.low < one.value < one.high <= 1
    few, _, _ = correlate(x, y, [str(at % 2) for at in range(60)])
    assert few["srcc"].value is not None
    assert few["srcc"].low is None


def _scores(answers: pl.DataFrame, **columns: object) -> pl.DataFrame:
    """A score table: psnr follows the mean opinion, lpips its opposite, noise nothing."""
    stimuli = answers.filter(pl.col("question") == "quality").group_by(
        "chain", "step", maintain_order=True
    ).agg(pl.col("value").mean())  # fmt: skip
    rng = np.random.default_rng(0)
    parts = []
    for metric, version, value in (
        ("psnr", "1", 20 + 3 * pl.col("value")),
        ("lpips", "1", 1 - pl.col("value") / 5),
        ("mine:own", "7", pl.Series(rng.normal(size=stimuli.height))),
        ("human/quality", "s:r0", pl.col("value")),
    ):
        parts.append(
            stimuli.select(
                "chain", pl.col("step").cast(pl.Int32()), metric=pl.lit(metric),
                version=pl.lit(version), against=pl.lit("home"), where=pl.lit("all"),
                value=value, note=pl.lit(None, pl.String()),
            )
        )  # fmt: skip
    return pl.concat(parts)


def test_every_metric_is_turned_and_compared_with_people() -> None:
    answers = simulated(8, 6, 4)
    told = analyse(answers, _scores(answers), keep_outliers=True)
    over = {one.metric: one for one in told.correlations if one.level == "stimulus"}
    assert set(over) == {"psnr", "lpips", "mine:own"}
    for name in ("psnr", "lpips"):
        assert over[name].srcc.value == pytest.approx(1.0)
        assert over[name].plcc.value == pytest.approx(1.0)
        assert over[name].n == 24
        assert over[name].sources == 6
    assert over["lpips"].higher_is_better is False
    assert over["mine:own"].higher_is_better is None
    assert "direction is not known" in over["mine:own"].note
    methods = {one.metric: one for one in told.correlations if one.level == "method"}
    assert methods["lpips"].krcc.value == pytest.approx(1.0)
    assert [point.method for point in methods["psnr"].points] == ["m0", "m1", "m2", "m3"]


def test_what_is_infinite_or_not_scored_is_counted() -> None:
    answers = simulated(4, 6, 4)
    scores = _scores(answers).filter(pl.col("metric") == "psnr")
    scores = scores.slice(1).with_columns(
        value=pl.when(pl.col("chain") == "c5").then(float("inf")).otherwise("value")
    )
    (told,) = (one for one in analyse(answers, scores).correlations if one.level == "stimulus")
    assert (told.n, told.infinite, told.missing) == (22, 1, 1)


def test_metrics_choose_as_people_do_or_not() -> None:
    wins = np.array([[0, 8, 9], [2, 0, 7], [1, 3, 0]])
    answers = choices_from(wins)
    rows = [
        (f"m{method}-i{image}", 1, metric, "1", "home", "all", value, None)
        for method in range(3)
        for image in range(3)
        for metric, value in (("psnr", 30.0 - method), ("lpips", 0.5 - method / 10))
    ]
    columns = ["chain", "step", "metric", "version", "against", "where", "value", "note"]
    told = analyse(answers, pl.DataFrame(rows, schema=columns, orient="row")).choices
    assert [(one.metric, one.n) for one in told] == [("psnr", 30), ("lpips", 30)]
    assert told[0].share == pytest.approx(24 / 30)
    assert told[1].share == pytest.approx(6 / 30)
