from __future__ import annotations

from fractions import Fraction

import pytest

from convergebench.analysis.survival import survival

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
    # The shares multiply to 0.5000000000000001: 5/6 · 13/15 · 10/13 · 9/10 = 1/2.
    times = [1.0] * 3 + [2.0] * 2 + [3.0] * 3 + [4.0] + [9.0] * 9
    fell = [True] * 9 + [False] * 9
    found = survival(times, fell)
    assert found is not None
    assert found.share[-1] == pytest.approx(0.5)
    assert found.share[-1] > 0.5
    assert found.median == 4


def test_the_horizon_is_all_rounds_once_every_chain_has_fallen() -> None:
    fallen = survival([1, 2], [True, True], rounds=10)
    assert fallen is not None
    assert (fallen.horizon, fallen.restricted_mean) == (10, 1.5)
    open_ended = survival([1, 2], [True, False], rounds=10)
    assert open_ended is not None
    assert open_ended.horizon == 2, "what happens later is not known"
