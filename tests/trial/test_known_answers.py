"""Gaps, verdicts, steps and scales of a trial against values worked out by hand."""

from __future__ import annotations

import math

import polars as pl
import pytest

from convergebench.errors import SettingsError
from convergebench.trial.judgement import judge
from convergebench.trial.material import Tried
from convergebench.trial.result import Trial
from tests.trial.tables import Chains, example, falling, material

UP = Tried("up", "1", typical=(0, 10))
DOWN = Tried("down", "1", higher_is_better=False, typical=(0, 50))


def gap(trial: Trial, metric: str, source: str, step: int, arm: str = "a") -> dict[str, object]:
    found = trial.gaps.filter(
        (pl.col("metric") == metric)
        & (pl.col("arm") == arm)
        & (pl.col("source") == source)
        & (pl.col("step") == step)
    )
    (row,) = found.to_dicts()
    return row


# -- gaps and verdicts ----------------------------------------------------------------------------


def test_gaps_are_on_a_scale_of_100_and_flipped_where_lower_is_better() -> None:
    chains = {("up", "a", "s", 0): [8.0, 0, 0, 0, 6.5], ("down", "a", "s", 0): [10.0, 0, 0, 0, 25]}
    trial = judge(material(chains, [UP, DOWN]), [5])
    assert gap(trial, "up", "s", 5)["gap"] == pytest.approx(-15)  # 65 − 80
    assert gap(trial, "down", "s", 5)["gap"] == pytest.approx(-30)  # (100 − 50) − (100 − 20)
    assert [c.verdict for c in trial.cards] == ["fully succeeds"] * 2


def test_repeats_are_averaged_over_those_that_have_both_frames_and_kept_one_by_one() -> None:
    chains: Chains = {
        ("up", "a", "s", 0): [5.0, 5, 5, 5, 4.0],  # −10
        ("up", "a", "s", 1): [5.0, 5, 5, 5, 5.4],  # +4
        ("up", "a", "s", 2): [5.0, 5, 5, 5, None],  # lacks frame 5
        ("up", "a", "s", 3): [None, 5, 5, 5, 9.9],  # lacks frame 1
    }
    trial = judge(material(chains, [UP]), [5])
    row = gap(trial, "up", "s", 5)
    assert row["gap"] == pytest.approx(-3)
    assert (row["repeats"], row["failed"]) == (2, False)
    assert (row["low"], row["high"]) == (pytest.approx(-10), pytest.approx(4))
    assert trial.individual["repeat"].to_list() == [0, 1]
    assert trial.individual["gap"].to_list() == [pytest.approx(-10), pytest.approx(4)]
    assert trial.card("up").nulls == 2
    assert any(c.startswith("1 of its 1 mean gap lacks a repeat") for c in trial.card("up").caveats)


def test_a_gap_of_zero_is_a_failure_even_where_the_mean_of_floats_misses_it() -> None:
    tied = {("up", "a", "s", 0): [7.0, 7, 7, 7, 7.0]}
    assert judge(material(tied, [UP]), [5]).card("up").verdict == "fails"
    chains = {
        ("up", "a", "s", 0): [0.1, 0, 0, 0, 0.3],
        ("up", "a", "s", 1): [0.3, 0, 0, 0, 0.1],
        ("up", "a", "s", 2): [0.7, 0, 0, 0, 0.7],
    }
    trial = judge(material(chains, [UP]), [5])
    assert gap(trial, "up", "s", 5)["failed"] is True


def test_what_is_missing_is_incomplete_and_never_success() -> None:
    chains = {
        ("up", "a", "whole", 0): falling(9, 0.1, 20),
        ("up", "a", "short", 0): falling(9, 0.1, 10),  # no frame 20
        ("up", "a", "risen", 0): falling(1, -0.1, 10),  # no frame 20 either, and fails before
    }
    cells = [("a", name) for name in ("whole", "short", "risen", "never")]
    trial = judge(material(chains, [UP], cells=cells))
    rows = trial.success.select("source", "failures", "known", "verdict").rows()
    assert rows == [
        ("whole", 0, 3, "success"),
        ("short", 0, 2, "incomplete"),
        ("risen", 2, 2, "failure"),
        ("never", 0, 0, "incomplete"),
    ]
    card = trial.card("up")
    assert (card.verdict, card.cells, card.failed, card.incomplete) == ("fails", 4, 1, 2)
    assert card.failures_by_step == {5: 1, 10: 1, 20: 0}
    assert "2 pairs more could not be judged" in " ".join(card.caveats)
    assert gap(trial, "up", "never", 5) == {
        "metric": "up", "arm": "a", "source": "never", "step": 5, "gap": None, "repeats": 0,
        "low": None, "high": None, "failed": None,
    }  # fmt: skip


def test_nothing_failed_and_something_missing_is_no_full_success() -> None:
    chains = {("up", "a", "s", 0): falling(9, 0.1, 20), ("up", "a", "t", 0): falling(9, 0.1, 12)}
    card = judge(material(chains, [UP])).card("up")
    assert card.verdict == "incomplete"
    assert card.sentence == (
        "up has not failed, but 1 of 2 pairs of editor and initial image lacks a score of frame 1 "
        "or of frames 5, 10 or 20."
    )


def test_a_metric_without_a_known_gap_has_no_data() -> None:
    chains: Chains = {("up", "a", "s", 0): [None] * 20, ("down", "a", "s", 0): falling(1, -1, 20)}
    trial = judge(material(chains, [UP, DOWN]))
    card = trial.card("up")
    assert (card.verdict, card.tau, card.delay, card.content) == ("no data", None, None, None)
    assert trial.metrics == ("down", "up"), "what has no data comes last"


def test_failures_are_counted_by_step_by_arm_and_overlaid() -> None:
    chains = {
        ("up", "a", "s", 0): [5.0, 5, 5, 5, 6, *[4.0] * 5, *[4.0] * 10],  # fails at 5
        ("up", "a", "t", 0): falling(9, 0.1, 20),
        ("up", "b", "s", 0): falling(1, -0.1, 20),  # fails at 5, 10, 20
        ("up", "b", "t", 0): [5.0, *[4.0] * 18, 5.0],  # fails at 20
    }
    trial = judge(material(chains, [UP]))
    card = trial.card("up")
    assert (card.cells, card.failed) == (4, 3)
    assert card.failures_by_step == {5: 2, 10: 1, 20: 2}
    assert card.failures_by_arm == {"a": 1, "b": 2}
    assert trial.overlay.rows() == [("up", "s", 4, 6), ("up", "t", 1, 6)]
    per_arm = trial.per_arm.select("arm", "cells", "failed", "incomplete").rows()
    assert per_arm == [("a", 2, 1, 0), ("b", 2, 2, 0)]
    assert card.sentence == (
        "up fails on 3 of 4 pairs of editor and initial image: it scores frames 5, 10 or 20 no "
        "lower than frame 1."
    )


def test_controls_are_on_no_verdict() -> None:
    chains = {
        ("up", "a", "s", 0): falling(9, 0.1, 20),
        ("up", "ref:identity", "s", 0): [9.0] * 20,
    }
    trial = judge(material(chains, [UP], controls=["ref:identity"]))
    assert trial.card("up").verdict == "fully succeeds"
    assert (trial.arms, trial.controls) == (("a",), ("ref:identity",))
    assert trial.gaps["arm"].unique().to_list() == ["a"]
    assert trial.per_arm.filter(pl.col("control"))["failed"].to_list() == [1]
    assert "Cells without a fall: ref:identity (up 1/1)" in str(trial)


def test_cards_come_in_the_order_of_trust() -> None:
    assert example().metrics == ("good", "partial", "mixed", "own", "fooled")


# -- steps ----------------------------------------------------------------------------------------


def test_steps_beyond_all_chains_are_left_out_and_named() -> None:
    trial = judge(material({("up", "a", "s", 0): falling(9, 0.1, 12)}, [UP]))
    assert trial.steps == (5, 10)
    assert "No chain has step 20 (steps 1 to 12 exist): verdicts rest on step 5, 10." in trial.notes


def test_no_step_left_is_an_error_that_says_which_exist() -> None:
    made = material({("up", "a", "s", 0): falling(9, 0.1, 4)}, [UP])
    with pytest.raises(SettingsError, match=r"no chain has step 5, 10, 20: steps 1 to 4 exist"):
        judge(made)
    with pytest.raises(SettingsError, match="numbers from 2 on; got 1, 3"):
        judge(made, [1, 3])
    with pytest.raises(SettingsError, match="got none"):
        judge(made, [])


def test_any_choice_of_two_steps_is_looked_at() -> None:
    # Six frames: a in 1, 2, 3 and b in 5, 6. Of source s the scores are 5 9 3 5 4 6:
    # 1→5 −1, 1→6 +1, 2→5 −5, 2→6 −3, 3→5 +1, 3→6 +3. Of t they only fall.
    chains = {("up", "a", "s", 0): [5.0, 9, 3, 5, 4, 6], ("up", "a", "t", 0): falling(9, 1, 6)}
    found = judge(material(chains, [UP]), [5]).card("up").sensitivity
    assert found is not None
    assert (found.pairs, found.failing, found.worst, found.worst_share) == (6, 3, (1, 6), 0.5)


def test_full_success_that_hangs_on_the_choice_of_steps_is_told() -> None:
    chains = {("up", "a", "s", 0): [5.0, 9, 3, 5, 4, 6]}
    card = judge(material(chains, [UP]), [5]).card("up")
    assert card.verdict == "fully succeeds"
    assert any("3 of 6 choices of two steps have a failure" in text for text in card.caveats)


def test_short_chains_have_no_other_choice_of_steps() -> None:
    chains = {("up", "a", "s", 0): [5.0, 4, 3, 2]}
    assert judge(material(chains, [UP]), [4]).card("up").sensitivity is None


# -- scales ---------------------------------------------------------------------------------------


def test_without_a_range_the_datas_own_is_taken_and_told() -> None:
    chains = {
        ("own", "a", "s", 0): [30.0, 29, 28, 27, 20],
        ("own", "a", "t", 0): [40.0, 9, 9, 9, 30],
    }
    trial = judge(material(chains, [Tried("own")]), [5])
    card = trial.card("own")
    assert (card.low, card.high, card.outside) == (9, 40, 0)
    assert gap(trial, "own", "s", 5)["gap"] == pytest.approx(-10 / 31 * 100)
    assert any("No range was given" in text for text in card.caveats)


@pytest.mark.parametrize("absurd", [1e10, -1e10, 1e300, -1e300])
def test_one_absurd_score_does_not_turn_the_others_into_ties(absurd: float) -> None:
    falls: list[float | None] = [*falling(9, 0.1, 20)]
    broken = [*falls[:6], absurd, *falls[7:]]  # frame 7, which no gap looks at
    trial = judge(
        material({("m", "a", "s", 0): falls, ("m", "a", "t", 0): broken}, [Tried("m")]), [5, 10, 20]
    )
    card = trial.card("m")
    assert card.verdict == "fully succeeds"
    assert (card.low, card.high) == pytest.approx((7.1, 9))
    assert gap(trial, "m", "s", 20)["gap"] == pytest.approx(-100)
    assert card.outside == 1
    assert any(c.startswith("1 score of 40 lies outside its range") for c in card.caveats)


def test_a_score_that_the_scale_cannot_hold_is_no_score() -> None:
    trial = judge(material({("up", "a", "s", 0): [9.0, 8, 1.7e308, 6, 5]}, [UP]), [3, 5])
    card = trial.card("up")
    assert (card.verdict, card.nulls) == ("incomplete", 1)
    assert trial.single["value"].to_list() == [9, 8, None, 6, 5]


def test_scores_outside_the_range_are_kept_and_counted() -> None:
    chains = {("up", "a", "s", 0): [12.0, 5, 5, 5, -1.0]}
    trial = judge(material(chains, [UP]), [5])
    assert gap(trial, "up", "s", 5)["gap"] == pytest.approx(-130)
    assert trial.card("up").outside == 2
    assert "2 scores of 5 lie outside its typical range, 0 to 10." in trial.card("up").caveats


def test_infinite_scores_are_no_scores() -> None:
    chains = {
        ("up", "a", "s", 0): [5.0, 5, 5, 5, math.inf],
        ("up", "a", "t", 0): [math.nan, 5, 5, 5, 4],
    }
    trial = judge(material(chains, [UP]), [5])
    assert trial.card("up").verdict == "no data"
    assert trial.card("up").nulls == 2


def test_trajectories_have_the_band_of_repeats() -> None:
    chains: Chains = {("up", "a", "s", 0): [5.0, 4], ("up", "a", "s", 1): [6.0, None]}
    rows = judge(material(chains, [UP]), [2]).trajectories
    assert rows.select("step", "mean", "low", "high", "repeats", "value").rows() == [
        (1, pytest.approx(55), pytest.approx(50), pytest.approx(60), 2, 5.5),
        (2, 40, 40, 40, 1, 4),
    ]
