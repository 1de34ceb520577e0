"""Agreement of raters against independent libraries, by hand, and its properties."""

from __future__ import annotations

from pathlib import Path

import krippendorff
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.inter_rater import fleiss_kappa as their_kappa

from convergebench.analysis.resampling import resampling_weights
from convergebench.opinions.reliability import (
    Level,
    alpha_interval,
    anova,
    fleiss_kappa,
    iccs,
    kendall_w,
    krippendorff_alpha,
)
from tests.opinions.material import Array, corrupted, golden, raw_scores, with_holes

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")

scores = arrays(
    np.float64,
    st.tuples(st.integers(2, 10), st.integers(2, 7)),
    elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, float("nan")]),
)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["nflx", "vqeg"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("holes", [False, True])
def test_alpha_is_that_of_the_package(shared: Path, name: str, level: Level, holes: bool) -> None:
    values = raw_scores(shared, name)
    values = with_holes(corrupted(values)) if holes else values
    theirs = krippendorff.alpha(reliability_data=values.T, level_of_measurement=level)
    assert krippendorff_alpha(values, level) == pytest.approx(theirs, abs=1e-12)


@given(scores)
def test_alpha_is_that_of_the_package_for_anything(values: Array) -> None:
    paired = (~np.isnan(values)).sum(axis=1) > 1
    assume(len(np.unique(values[paired & True][~np.isnan(values[paired])])) > 1)
    for level in LEVELS:
        theirs = krippendorff.alpha(reliability_data=values.T, level_of_measurement=level)
        assert krippendorff_alpha(values, level) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["nflx", "vqeg"])
@pytest.mark.parametrize("part", ["raw", "small"])
def test_icc_are_those_of_pingouin(shared: Path, name: str, part: str) -> None:
    values = raw_scores(shared, name)
    values = values[:12, :6] if part == "small" else values
    for mine, theirs in zip(iccs(values), golden()["icc"][f"{name}/{part}"], strict=True):
        number, letter = theirs["type"][4:-1].split(",")
        assert mine.name == f"ICC({ {'1': 1, 'A': 2, 'C': 3}[number] },{letter})"
        assert mine.value == pytest.approx(theirs["icc"], abs=1e-9)
        assert mine.f == pytest.approx(theirs["f"], rel=1e-9)
        assert (mine.df1, mine.df2) == (theirs["df1"], theirs["df2"])
        assert mine.p == pytest.approx(theirs["p"], abs=1e-12)
        assert (mine.low, mine.high) == pytest.approx(tuple(theirs["ci"]), abs=1e-9)


def test_mean_squares_are_those_of_statsmodels() -> None:
    values = np.random.default_rng(2).normal(3, 1, (9, 5)).round(1)
    stimulus, rater = np.indices(values.shape)
    columns = [np.eye(size)[index.ravel()][:, 1:]
               for size, index in ((9, stimulus), (5, rater))]  # fmt: skip
    design = sm.add_constant(np.hstack(columns))
    whole = sm.OLS(values.ravel(), design).fit()
    rows_only = sm.OLS(values.ravel(), design[:, :9]).fit()
    told = anova(values)
    assert told.error == pytest.approx(whole.mse_resid)
    assert told.within == pytest.approx(rows_only.mse_resid)
    assert told.rows == pytest.approx(rows_only.ess / 8)
    assert told.columns == pytest.approx((rows_only.ssr - whole.ssr) / 4)


def test_icc_of_shrout_and_fleiss_own_example() -> None:
    """Table 2 of Shrout and Fleiss (1979): six targets, four judges; their printed values."""
    table = np.array(
        [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]],
        dtype=float,
    )
    told = {one.name: one.value for one in iccs(table)}
    printed = {"ICC(1,1)": 0.17, "ICC(2,1)": 0.29, "ICC(3,1)": 0.71,
               "ICC(1,k)": 0.44, "ICC(2,k)": 0.62, "ICC(3,k)": 0.91}  # fmt: skip
    assert told == pytest.approx(printed, abs=0.005)


def test_icc_say_what_they_are_over_and_why_they_are_not_there() -> None:
    values = np.random.default_rng(0).integers(1, 6, (6, 4)).astype(float)
    values[0, 0] = np.nan
    assert iccs(values)[0].note == "over the 5 of 6 stimuli that every rater has rated"
    values[:, 0] = np.nan
    assert all(one.value is None for one in iccs(values))
    assert iccs(values)[0].note == "needs two raters and two stimuli that all of them rated"
    assert iccs(np.full((3, 3), 2.0))[0].note == "all scores are the same"


def test_fleiss_kappa_is_that_of_statsmodels() -> None:
    values = np.random.default_rng(1).integers(0, 2, (20, 7)).astype(float)
    counts = np.stack([(values == 0).sum(1), (values == 1).sum(1)], axis=1)
    assert fleiss_kappa(values) == pytest.approx(their_kappa(counts), abs=1e-12)


def test_kendalls_w_by_hand() -> None:
    """Three raters rank four stimuli: 1234, 2134, 1243. Rank sums 4, 5, 10, 11: S = 37."""
    ranks = np.array([[1, 2, 1], [2, 1, 2], [3, 3, 4], [4, 4, 3]], dtype=float)
    assert kendall_w(ranks) == pytest.approx(12 * 37 / (9 * (64 - 4)))
    assert kendall_w(np.tile(np.arange(5.0), (3, 1)).T) == pytest.approx(1.0)
    assert kendall_w(ranks[:, :1]) is None


def test_the_interval_of_alpha_holds_it_and_narrows_with_more_pictures() -> None:
    rng = np.random.default_rng(7)
    widths = []
    for images in (8, 80):
        values = np.round(rng.normal(3, 1, (images, 1)) + rng.normal(0, 0.7, (images, 10)))
        for level in LEVELS:
            low, high = alpha_interval(values, level, np.arange(images), resampling_weights(images))
            estimate = krippendorff_alpha(values, level)
            assert low is not None
            assert high is not None
            assert estimate is not None
            assert low < estimate < high
            widths.append(high - low)
    assert all(wide > narrow for wide, narrow in zip(widths[:3], widths[3:], strict=True))


def test_a_resample_that_draws_everything_once_has_alpha_itself() -> None:
    values = np.random.default_rng(3).integers(0, 6, (12, 5)).astype(float)
    values[0, 1:] = np.nan  # one answer pairs nothing
    for level in LEVELS:
        low, high = alpha_interval(values, level, np.arange(12), np.ones((12, 50)))
        assert (low, high) == pytest.approx((krippendorff_alpha(values, level),) * 2)


@given(st.lists(st.sampled_from([0.0, 1.0, 3.0, 5.0]), min_size=2, max_size=12), st.integers(2, 6))
def test_identical_raters_agree_wholly(line: list[float], count: int) -> None:
    values = np.tile(np.array(line)[:, None], (1, count))
    for level in LEVELS:
        alpha = krippendorff_alpha(values, level)
        assert alpha == (pytest.approx(1.0) if len(set(line)) > 1 else None)
    if len(set(line)) > 1:
        assert all(one.value == pytest.approx(1.0) for one in iccs(values))
        assert fleiss_kappa(values) == pytest.approx(1.0)


@given(scores, st.integers(0, 2**32 - 1))
def test_the_order_of_raters_is_nothing_to_agreement(values: Array, seed: int) -> None:
    other = values[:, np.random.default_rng(seed).permutation(values.shape[1])]
    for level in LEVELS:
        assert krippendorff_alpha(other, level) == pytest.approx(krippendorff_alpha(values, level))
    for one, two in zip(iccs(values), iccs(other), strict=True):
        same = None if one.value is None else pytest.approx(one.value, rel=1e-6, abs=1e-9)
        assert two.value == same


@given(scores, st.floats(0.1, 10), st.floats(-5, 5))
def test_a_stretched_scale_is_nothing_to_interval_alpha(
    values: Array, factor: float, offset: float
) -> None:
    moved = np.round(values * factor + offset, 9)
    assert krippendorff_alpha(moved, "interval") == pytest.approx(
        krippendorff_alpha(values, "interval"), abs=1e-6
    )
