"""Intervals: what is resampled, and how far they reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench.analysis.resampling import (
    RESAMPLES,
    bootstrap_mean,
    interval,
    intervals,
    mean_interval,
    mean_intervals,
    ratio_intervals,
    reach,
    resampled,
    resampling_weights,
    skewness,
)


def test_the_bootstrap_is_seeded_and_paired() -> None:
    values = np.array([0.1, 0.5, 0.9, 0.3])
    once, again = bootstrap_mean(values), bootstrap_mean(values)
    assert once.shape == (RESAMPLES,)
    assert (once == again).all()
    assert bootstrap_mean(values + 0.25) - once == pytest.approx(0.25), "same sources every time"


def test_weights_count_the_same_draws() -> None:
    values = np.array([0.1, 0.5, 0.9, 0.3])
    weights = resampling_weights(4)
    assert weights.shape == (4, RESAMPLES)
    assert (weights.sum(axis=0) == 4).all()
    assert values @ weights / 4 == pytest.approx(values[resampled(4)].mean(axis=1))


@pytest.mark.parametrize("count", [1, 2, 3, 40, 2000])
def test_intervals_are_numpy_percentiles(count: int) -> None:
    means = np.random.default_rng(count).random(count)
    assert interval(means) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])))


def test_intervals_pass_over_what_is_not_a_number() -> None:
    means = np.random.default_rng(1).random((3, 50))
    means[1, 7:20] = np.nan
    expected = np.nanpercentile(means, [2.5, 97.5], axis=1).T
    assert intervals(means) == pytest.approx(expected)


def test_no_interval_from_a_single_source() -> None:
    assert mean_interval(np.array([0.4])) == (None, None)
    low, high = mean_interval(np.array([0.4, 0.4]))
    assert low == high == pytest.approx(0.4)


def test_few_sources_reach_further() -> None:
    # Student's t of 19 degrees of freedom is 2.093.
    assert reach(20) == pytest.approx(2.093 * (20 / 19) ** 0.5, abs=1e-3)
    assert reach(100_000) == pytest.approx(1.96, abs=1e-3)
    values = np.random.default_rng(3).random(20)
    low, high = mean_interval(values)
    plain = interval(bootstrap_mean(values))
    assert low is not None
    assert high is not None
    assert high - low > plain[1] - plain[0]


def test_the_interval_of_symmetric_values_is_students() -> None:
    values = np.random.default_rng(5).normal(0.5, 0.1, 60)
    values = np.concatenate([values, 1 - values])
    half = reach(120) * values.std(ddof=1) * (119 / 120) ** 0.5 / 120**0.5
    found = mean_interval(values)
    assert found == pytest.approx((0.5 - half, 0.5 + half), abs=0.002)


def test_skewed_values_have_a_lopsided_interval() -> None:
    values = np.random.default_rng(5).exponential(1.0, 40)
    low, high = mean_interval(values)
    assert low is not None
    assert high is not None
    assert high - values.mean() > 1.15 * (values.mean() - low)


def test_skewness_is_that_of_the_jackknife() -> None:
    values = np.array([0.1, 0.2, 0.9, 0.3, 0.35])
    without = np.array([np.delete(values, i).mean() for i in range(5)])
    away = without.mean() - without
    expected = np.sum(away**3) / (6 * np.sum(away**2) ** 1.5)
    assert skewness(values[:, None])[0] == pytest.approx(expected)
    assert skewness(np.ones((4, 2))).tolist() == [0, 0]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=30))
def test_intervals_stay_within_what_was_measured(values: list[float]) -> None:
    low, high = mean_interval(np.array(values))
    assert low is not None
    assert high is not None
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12


def test_many_series_have_the_intervals_of_each() -> None:
    rng = np.random.default_rng(1)
    series = [rng.random(n) for n in (5, 1, 20, 5, 0)]
    assert mean_intervals(series) == [mean_interval(mine) for mine in series]


def test_a_mean_over_chains_weighs_sources_by_their_chains() -> None:
    # Of two sources, one with three chains at 0.2 and one with a single one at 1.
    sums, counts = np.array([[0.6], [1.0]]), np.array([[3.0], [1.0]])
    low, high = ratio_intervals(sums, counts)[0].tolist()
    assert (low + high) / 2 == pytest.approx(0.4)
    low, high = ratio_intervals(np.repeat(sums, 10, axis=0), np.repeat(counts, 10, axis=0))[0]
    assert 0.2 < low < 0.4 < high < 0.7


def test_what_one_source_has_gives_no_interval() -> None:
    sums, counts = np.array([[0.6, 0.5], [1.0, 0.0]]), np.array([[3.0, 1.0], [1.0, 0.0]])
    low, high = ratio_intervals(sums, counts)[1].tolist()
    assert np.isnan(low)
    assert np.isnan(high)


def test_ends_beyond_all_bounds_stay_there() -> None:
    stats = np.array([[1.0] * 90 + [np.inf] * 10, [np.inf] * 100])
    assert intervals(stats).tolist() == [[1.0, np.inf], [np.inf, np.inf]]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_few_sources_have_students_interval(count: int) -> None:
    from scipy import stats

    values = np.random.default_rng(count).normal(0.6, 0.01, count)
    expected = stats.t.interval(0.95, count - 1, values.mean(), stats.sem(values))
    assert mean_interval(values) == pytest.approx(expected)


def test_students_interval_stays_within_what_can_be() -> None:
    assert mean_interval(np.array([0.2, 0.9]), (0.0, 1.0)) == (0.0, 1.0)
    low, high = mean_interval(np.array([0.9, 1.0, 1.0]), (0.0, 1.0))
    assert low is not None
    assert (0.7 < low < 0.9, high) == (True, 1.0)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_intervals_of_few_sources_hold_the_truth(count: int) -> None:
    drawn = np.random.default_rng(count).beta(8, 2, (count, 3000))
    low, high = ratio_intervals(drawn, np.ones_like(drawn), (0.0, 1.0)).T
    assert 0.91 < np.mean((low <= 0.8) & (high >= 0.8)) < 0.97
