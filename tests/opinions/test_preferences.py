"""Bradley and Terry's model against independent libraries, and what separated data come to."""

from __future__ import annotations

from pathlib import Path

import choix
import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from convergebench.opinions.answers import checked
from convergebench.opinions.preferences import (
    PRIOR_SD,
    comparisons,
    estimable,
    fit,
    preferences,
)
from tests.opinions.material import Array, choices_from, raw_scores

tables = arrays(np.float64, (4, 4), elements=st.integers(1, 9).map(float)).map(
    lambda table: table * (1 - np.eye(4))
)


def _pairs(wins: Array) -> list[tuple[int, int]]:
    return [
        (int(one), int(other))
        for one, other in np.ndindex(*wins.shape)
        for _ in range(int(wins[one, other]))
    ]


def _wins_of_scores(values: Array) -> Array:
    """Of each pair of stimuli, how many raters gave the first a higher score."""
    found = np.zeros((len(values), len(values)))
    for one, other in np.ndindex(*found.shape):
        found[one, other] = np.sum(values[one] > values[other])
    return found


@pytest.mark.shared
@pytest.mark.parametrize("name", ["nflx", "vqeg"])
def test_strengths_of_real_scores_are_those_of_choix(shared: Path, name: str) -> None:
    """Pairs derived from the raw scores of 8 stimuli in the middle of the scale."""
    values = raw_scores(shared, name)
    middle = np.argsort(np.abs(values.mean(axis=1) - 3))[:8]
    wins = _wins_of_scores(values[middle])
    assert estimable(wins)
    mine = fit(wins)
    for solver in (choix.ilsr_pairwise, choix.opt_pairwise):
        theirs = solver(len(wins), _pairs(wins), alpha=0.0)
        assert mine == pytest.approx(theirs - theirs.mean(), abs=1e-6)


@pytest.mark.shared
def test_penalised_strengths_of_separated_scores_are_those_of_choix(shared: Path) -> None:
    wins = _wins_of_scores(raw_scores(shared, "nflx")[:11])  # the first content: best beats worst
    assert not estimable(wins)
    theirs = choix.opt_pairwise(len(wins), _pairs(wins), alpha=PRIOR_SD**-2 / 2, tol=1e-12)
    assert fit(wins, PRIOR_SD**-2) == pytest.approx(theirs - theirs.mean(), abs=1e-6)


@pytest.mark.shared
def test_strengths_and_errors_of_real_scores_are_those_of_a_logistic_regression(
    shared: Path,
) -> None:
    values = raw_scores(shared, "vqeg")
    wins = _wins_of_scores(values[np.argsort(np.abs(values.mean(axis=1) - 3))[:6]])
    pairs = _pairs(wins)
    unit = np.eye(len(wins))
    design = np.array([(unit[one] - unit[other])[1:] for one, other in pairs])
    flipped = np.arange(len(pairs)) % 2 == 0  # a logit needs both answers
    design[flipped] *= -1
    theirs = sm.Logit((~flipped).astype(float), design).fit(disp=0, tol=1e-12)
    strengths = np.append(0.0, theirs.params)
    centred = np.eye(len(wins)) - 1 / len(wins)
    variance = np.zeros_like(wins)
    variance[1:, 1:] = theirs.cov_params()
    errors = np.sqrt(np.diag(centred @ variance @ centred.T))
    told = preferences(choices_from(wins))
    assert told is not None
    mine = {one.method: one for one in told.strengths}
    for at, (strength, error) in enumerate(zip(centred @ strengths, errors, strict=True)):
        one = mine[f"m{at}"]
        assert one.theta == pytest.approx(strength, abs=1e-8)
        assert one.wald_low == pytest.approx(strength - 1.959964 * error, abs=1e-6)
        assert one.wald_high == pytest.approx(strength + 1.959964 * error, abs=1e-6)


def test_two_methods_have_the_log_of_their_odds() -> None:
    told = preferences(choices_from(np.array([[0, 30], [10, 0]])))
    assert told is not None
    strong, weak = told.strengths
    assert (strong.method, weak.method) == ("m0", "m1")
    assert strong.theta - weak.theta == pytest.approx(np.log(3))
    assert strong.theta + weak.theta == pytest.approx(0)
    assert (strong.wins, strong.losses, strong.ties, strong.share) == (30, 10, 0, 0.75)
    assert told.rates[0][1] == 0.75
    assert told.rates[0][0] is None
    assert told.counts == ((0, 40), (40, 0))
    assert strong.low is not None
    assert strong.high is not None
    assert strong.low < strong.theta < strong.high


def test_no_difference_is_half_a_win_for_either() -> None:
    answers = choices_from(np.array([[0, 6], [6, 0]])).with_columns(
        value=pl.when(pl.col("order") < 4).then(0.5).otherwise("value")
    )
    told = preferences(answers)
    assert told is not None
    by = {one.method: one for one in told.strengths}
    assert (by["m0"].wins, by["m0"].losses, by["m0"].ties) == (2, 6, 4)
    assert by["m0"].share == pytest.approx(4 / 12)
    assert by["m1"].theta - by["m0"].theta == pytest.approx(np.log(2))


def test_a_method_that_never_loses_is_held_by_a_prior_and_told() -> None:
    wins = np.array([[0, 9, 9], [0, 0, 5], [0, 4, 0]])
    told = preferences(choices_from(wins))
    assert told is not None
    assert told.penalised
    assert told.strengths[0].method == "m0"
    assert all(np.isfinite(one.theta) for one in told.strengths)
    assert "no finite estimate. A normal prior of standard deviation 2 holds it" in told.notes[0]


def test_groups_that_never_met_are_told() -> None:
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[1, 0] = wins[2, 3] = wins[3, 2] = 3
    told = preferences(choices_from(wins))
    assert told is not None
    assert "never compared with each other" in told.notes[0]


def test_a_pair_told_from_both_sides_counts_once() -> None:
    answers = choices_from(np.array([[0, 3], [2, 0]]))
    turned = answers.with_columns(
        method="other_method", chain="other_chain", other_method="method", other_chain="chain",
        value=1 - pl.col("value"),
    )  # fmt: skip
    both = pl.concat([answers, turned])
    assert comparisons(both).height == 5
    assert preferences(both) == preferences(answers)


def test_a_method_against_itself_is_left_out_and_told() -> None:
    one = choices_from(np.array([[0, 3], [2, 0]]))
    same = one.head(1).with_columns(other_method=pl.lit("m0"), order=pl.lit(99))
    told = preferences(pl.concat([one, checked(same)]))
    assert told is not None
    assert told.comparisons == 5
    assert told.notes[0] == "1 comparisons of a method with itself were left out."


def test_no_choices_no_preferences() -> None:
    assert preferences(choices_from(np.array([[0, 1], [1, 0]])).head(0)) is None


@given(tables, st.permutations(range(4)))
def test_other_names_change_no_strength(wins: Array, order: list[int]) -> None:
    assert fit(wins[np.ix_(order, order)]) == pytest.approx(fit(wins)[order], abs=1e-8)


@given(tables)
def test_turning_every_answer_turns_every_strength(wins: Array) -> None:
    assert fit(wins.T) == pytest.approx(-fit(wins), abs=1e-8)


@given(tables, st.integers(2, 9))
def test_the_same_answers_again_change_no_strength(wins: Array, times: int) -> None:
    assert fit(wins * times) == pytest.approx(fit(wins), abs=1e-8)


@given(arrays(np.float64, (5, 5), elements=st.integers(0, 3).map(float)))
def test_a_finite_estimate_exists_where_ford_says_so(wins: Array) -> None:
    wins = wins * (1 - np.eye(5))
    reach = wins > 0
    for _ in range(5):
        reach = reach | ((reach.astype(int) @ reach.astype(int)) > 0)
    whole = bool((reach | np.eye(5, dtype=bool)).all())
    assert bool(estimable(wins)) == whole
    if whole:  # the model wins as often as people did
        theta = fit(wins)
        chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        assert ((wins + wins.T) * chance).sum(axis=1) == pytest.approx(wins.sum(axis=1), abs=1e-6)
