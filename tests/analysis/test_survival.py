from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import CensoredData, ecdf

from convergebench.analysis.resampling import RESAMPLES, resampling_weights
from convergebench.analysis.survival import bounds, kaplan_meier, survival

# Remission in weeks of leukaemia patients: Freireich et al. (1963), in every textbook.
TREATED = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
PLACEBO = "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"


def read(text: str) -> tuple[list[float], list[bool]]:
    words = text.split()
    return [float(w.rstrip("+")) for w in words], [not w.endswith("+") for w in words]


def test_textbook_example_with_ties_and_censoring() -> None:
    found = survival(*read(TREATED))
    assert found is not None
    assert found.times == (6, 7, 10, 13, 16, 22, 23)
    share, shares = Fraction(1), []
    for at_risk, falls in ((21, 3), (17, 1), (15, 1), (12, 1), (11, 1), (7, 1), (6, 1)):
        share *= Fraction(at_risk - falls, at_risk)
        shares.append(float(share))
    assert found.share == pytest.approx(shares)
    published = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert found.share == pytest.approx(published, abs=5e-4)
    assert found.median == 23
    assert found.restricted_mean == pytest.approx(23.287395, abs=1e-6)
    assert (found.horizon, found.chains, found.censored) == (35, 21, 12)
    assert found.label == "23.00"


def test_textbook_example_without_censoring() -> None:
    times, fell = read(PLACEBO)
    found = survival(times, fell)
    assert found is not None
    assert found.median == 8
    assert found.restricted_mean == pytest.approx(sum(times) / len(times))
    assert found.share[-1] == 0
    assert found.censored == 0


def test_a_small_example_worked_by_hand() -> None:
    # Five chains: fell at 1.5 and 2, followed for 2 and 4, fell at 3.
    found = survival([1.5, 2, 2, 3, 4], [True, True, False, True, False])
    assert found is not None
    # A chain that falls when another is censored falls first: 4/5, 3/4 of it, then 1/2 of that.
    assert found.times == (1.5, 2, 3)
    assert found.share == pytest.approx((0.8, 0.6, 0.3))
    assert found.median == 3
    assert found.restricted_mean == pytest.approx(1.5 + 0.8 * 0.5 + 0.6 * 1 + 0.3 * 1)


def test_a_median_that_is_not_reached() -> None:
    found = survival([1, 10, 10], [True, False, False])
    assert found is not None
    assert found.median is None
    assert found.label == "> 10"
    assert found.restricted_mean == pytest.approx(1 + 9 * 2 / 3)


def test_all_censored() -> None:
    found = survival([3, 5], [False, False])
    assert found is not None
    assert (found.times, found.share, found.median) == ((), (), None)
    assert (found.restricted_mean, found.label, found.censored) == (5, "> 5", 2)


@pytest.mark.parametrize(("fell", "label"), [(True, "2.25"), (False, "> 2.25")])
def test_one_chain(fell: bool, label: str) -> None:
    found = survival([2.25], [fell])
    assert found is not None
    assert found.label == label
    assert found.restricted_mean == 2.25
    assert found.chains == 1


def test_no_chain() -> None:
    assert survival([], []) is None


def test_a_median_at_exactly_one_half_survives_rounding() -> None:
    # The shares multiply to 0.5000000000000001: 12/14 · 10/12 · 9/10 · 8/9 · 7/8 = 1/2.
    times = [1.0] * 2 + [2.0] * 2 + [3.0, 4.0, 5.0] + [9.0] * 7
    fell = [True] * 7 + [False] * 7
    found = survival(times, fell)
    assert found is not None
    assert found.share[-1] == pytest.approx(0.5)
    assert found.share[-1] > 0.5
    assert found.median == 5


def test_the_horizon_is_all_rounds_once_every_chain_has_fallen() -> None:
    fallen = survival([1, 2], [True, True], rounds=10)
    assert fallen is not None
    assert (fallen.horizon, fallen.restricted_mean) == (10, 1.5)
    open_ended = survival([1, 2], [True, False], rounds=10)
    assert open_ended is not None
    assert open_ended.horizon == 2, "what happens later is not known"


@pytest.mark.parametrize("ties", [False, True])
def test_every_resample_is_scipys_curve(ties: bool) -> None:
    rng = np.random.default_rng(8)
    times = rng.weibull(1.5, 36) * 3
    times = np.ceil(times) if ties else times
    limits = rng.uniform(0.5, 6, 36)
    fell, times = times <= limits, np.minimum(times, limits)
    source = np.repeat(np.arange(12), 3)
    weights = resampling_weights(12)[source]
    steps, shares = kaplan_meier(times, fell, weights)
    assert steps.tolist() == np.unique(times[fell]).tolist()
    for column in range(0, RESAMPLES, 40):
        often = weights[:, column].astype(int)
        sample = CensoredData.right_censored(np.repeat(times, often), ~np.repeat(fell, often))
        assert shares[:, column] == pytest.approx(ecdf(sample).sf.evaluate(steps), abs=1e-12)


def test_bounds_are_those_of_resampled_curves() -> None:
    times, fell = read(TREATED)
    names = [f"s{i}" for i in range(21)]
    found = bounds(times, fell, names, 35)
    curves = kaplan_meier(np.array(times), np.array(fell), resampling_weights(21))[1]
    # The published interval of the median is 13 to infinity.
    assert found.median == (13, None)
    low, high = found.restricted_mean
    assert low is not None
    assert high is not None
    # Published: 23.3 with a standard error of 2.8.
    assert 16.5 < low < 18.5
    assert 28 < high < 30
    for (least, most), row in zip(found.band, curves, strict=True):
        assert least is not None
        assert most is not None
        assert least < row.mean() < most
        assert most - least > 3.2 * row.std()


def test_a_share_that_never_varied_still_has_a_band() -> None:
    found = bounds([1, 5, 5, 5], [True, True, False, False], ["a", "a", "b", "b"], 5)
    (low, high), _ = found.band
    assert low is not None
    assert high is not None
    assert 0 <= low < 0.75 < high <= 1


def test_an_end_that_is_not_reached() -> None:
    names = [f"s{i}" for i in range(8)]
    never = bounds([4.0] * 8, [False] * 8, names, 4)
    assert never.median == (4, None), "at least as long as they were followed"
    assert never.restricted_mean == (4, 4)
    assert never.band == ()
    some = bounds([1.0, 2.0, 3.0, 3.5] + [4.0] * 4, [True] * 4 + [False] * 4, names, 4)
    assert some.median[0] == pytest.approx(2, abs=1)
    assert some.median[1] is None


def test_no_bounds_from_a_single_source() -> None:
    found = bounds([1.0, 2.0], [True, True], ["s0", "s0"], 5)
    assert found.median == found.restricted_mean == (None, None)
    assert found.band == ((None, None), (None, None))


def test_a_restricted_mean_ends_where_it_is_told_to() -> None:
    times, fell = [1.0, 3.0, 10.0, 10.0], [True, True, False, False]
    found = survival(times, fell, 10, until=2)
    assert found is not None
    assert found.restricted_mean == pytest.approx(1 + 0.75)
    assert found.horizon == 10
    ends = bounds(times, fell, ["a", "b", "c", "d"], 10, until=2).restricted_mean
    assert ends[1] == 2, "nobody lives longer"


def test_a_restricted_mean_is_not_known_beyond_what_was_followed() -> None:
    quits = survival([2.0, 2.0], [False, False], 10, until=10)
    assert quits is not None
    assert (quits.restricted_mean, quits.label) == (None, "> 2")
    fallen = survival([1.0, 2.0], [True, True], 2, until=10)
    assert fallen is not None
    assert fallen.restricted_mean == 1.5, "nothing is left to be followed"
