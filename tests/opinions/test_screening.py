"""Outlier screening against an independent implementation, attention checks and repeats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from convergebench.opinions.answers import checked
from convergebench.opinions.matrix import matrix_of
from convergebench.opinions.screening import bt500, kept, raters
from tests.opinions.material import (
    Array,
    answers_from,
    corrupted,
    golden,
    raw_scores,
    simulated,
    with_holes,
)

SETS: dict[str, Callable[[Array], Array]] = {
    "raw": lambda values: values,
    "corrupt": corrupted,
    "holes": lambda values: with_holes(corrupted(values)),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", ["nflx", "vqeg"])
@pytest.mark.parametrize("what", SETS)
def test_bt500_counts_as_sureal_does(shared: Path, name: str, what: str) -> None:
    values = SETS[what](raw_scores(shared, name))
    theirs = golden()["bt500"][f"{name}/{what}"]
    mine = bt500(values, ddof=0)
    # Where all raters agree, sureal has everybody both above and below; nobody stands apart there.
    agreed = int(np.sum(np.nanmax(values, axis=1) == np.nanmin(values, axis=1)))
    for one, share, lean in zip(mine, theirs["first"], theirs["second"], strict=True):
        assert (one.above + one.below + 2 * agreed) / len(values) == pytest.approx(share, abs=1e-12)
        if not agreed:
            assert (one.lean is None) == (lean is None)
            assert one.lean is None or one.lean == pytest.approx(lean, abs=1e-12)
    assert [at for at, one in enumerate(mine) if one.rejected] == theirs["rejected"]
    stay = [at for at, one in enumerate(mine) if not one.rejected]
    assert np.nanmean(values[:, stay], axis=1).mean() == pytest.approx(theirs["mos"], abs=1e-12)


def test_bt500_by_hand() -> None:
    """Either limit, told by the kurtosis."""
    line = np.array([3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 2, 2, 5, 0], dtype=float)
    mean, deviation = line.mean(), line.std(ddof=1)
    away = line - mean
    kurtosis = np.mean(away**4) / np.mean(away**2) ** 2
    assert kurtosis > 4  # so the limit is √20 S, which nobody reaches
    assert abs(away).max() < np.sqrt(20) * deviation
    assert sum(one.above + one.below for one in bt500(line[None])) == 0
    # 36 of these have mean 3, m₂ = 60/36, m₄ = 204/36: β₂ = 2.04, S = 1.309, so the limit is 2 S.
    level = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [6, 6, 12, 6, 6])
    far = np.append(level, 6.0)
    told = bt500(far[None])
    assert 6 - far.mean() > 2 * far.std(ddof=1)
    assert (told[-1].above, told[-1].below, told[-1].rated) == (1, 0, 1)
    assert sum(one.above + one.below for one in told[:-1]) == 0


def test_a_strict_rater_stays_and_an_erratic_one_goes() -> None:
    rng = np.random.default_rng(5)
    truth = np.tile([1.0, 2.0, 3.0, 4.0], 25)[:, None]
    values = np.round(truth + rng.normal(0, 0.5, (100, 15)))
    values[:, 0] -= 2  # strict: far from the others, always on one side
    values[:, 1] = rng.permutation(values[:, 1])
    told = raters(answers_from(values), matrix_of(answers_from(values), "quality"))
    by = {one.rater: one for one in told}
    assert by["r0"].kept
    assert by["r0"].bias == pytest.approx(-2 * 14 / 15, abs=0.2)
    assert not by["r1"].kept
    assert by["r1"].reasons[0].startswith("BT.500: apart from the others on ")
    assert kept(told) == {f"r{at}" for at in range(15) if at != 1}


def test_where_all_agree_nobody_stands_apart() -> None:
    assert all(one.above + one.below == 0 for one in bt500(np.full((20, 8), 5.0)))


def test_failed_attention_checks_are_a_reason_and_repeats_are_only_told() -> None:
    answers = simulated(6, 6, 2, seed=1)
    more = []
    for rater, passed, error in (("r0", [True, False, False], 0.0), ("r1", [True] * 3, 2.0)):
        for at, good in enumerate(passed):
            more.append({"rater": rater, "question": "quality", "kind": "attention", "order": at,
                         "chain": "(broken)", "value": 1.0, "passed": good})  # fmt: skip
        first = answers.filter((pl.col("rater") == rater) & (pl.col("chain") == "c0"))
        more.append({"rater": rater, "question": "quality", "kind": "repeat", "chain": "c0",
                     "value": first["value"][0] + error})  # fmt: skip
    whole = pl.concat([answers, checked(pl.DataFrame(more))])
    told = {one.rater: one for one in raters(whole, matrix_of(whole, "quality"))}
    assert told["r0"].reasons == ("attention: 1 of 3 checks passed",)
    assert (told["r1"].checks, told["r1"].passed, told["r1"].kept) == (3, 3, True)
    assert (told["r1"].repeats, told["r1"].repeat_error) == (1, 2.0)
    assert told["r0"].repeat_error == 0.0


def test_a_page_of_several_pictures_is_one_attention_check() -> None:
    rows = [
        {"rater": "p1", "question": "quality", "kind": "attention", "order": 4, "image": "i",
         "chain": f"c{at}", "value": 1.0, "passed": True}
        for at in range(5)
    ]  # fmt: skip
    rows.append({**rows[0], "kind": "item", "passed": None})
    whole = checked(pl.DataFrame(rows))
    (told,) = raters(whole, matrix_of(whole, "quality"))
    assert (told.checks, told.passed) == (1, 1)


def test_should_everybody_be_left_out_nobody_is() -> None:
    answers = simulated(2, 2, 2)
    checks = [
        {"rater": f"r{at}", "question": "quality", "kind": "attention", "chain": "x",
         "value": 1.0, "passed": False}
        for at in range(2)
    ]  # fmt: skip
    whole = pl.concat([answers, checked(pl.DataFrame(checks))])
    told = raters(whole, matrix_of(whole, "quality"))
    assert not any(one.kept for one in told)
    assert kept(told) == {"r0", "r1"}


@given(
    arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(2, 8)),
           elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, float("nan")])),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_order_of_raters_and_stimuli_is_nothing_to_bt500(values: Array, seed: int) -> None:
    values = values[~np.isnan(values).all(axis=1)]
    if not len(values):
        return
    rng = np.random.default_rng(seed)
    columns, rows = rng.permutation(values.shape[1]), rng.permutation(len(values))
    before = bt500(values)
    after = bt500(values[rows][:, columns])
    assert [before[at] for at in columns] == list(after)
