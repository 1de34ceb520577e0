"""Trends, content and witnesses of a trial against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from convergebench.trial.judgement import judge
from convergebench.trial.material import Tried
from convergebench.trial.peers import spearman
from convergebench.trial.trends import noise_of, noticed_at, pairs, spikes
from tests.trial.tables import example, falling, material

UP = Tried("up", "1", typical=(0, 10))

# -- trends ---------------------------------------------------------------------------------------


def test_tau_and_later_better_of_a_chain() -> None:
    # 3 1 2 2: pairs 3>1 3>2 3>2 fall, 1<2 1<2 rise, 2=2 tied: S = −1, n0 = 6, n1 = 1.
    tau, later = pairs(np.array([3.0, 1, 2, 2]))
    assert tau == pytest.approx(-1 / math.sqrt(6 * 5))
    assert later == pytest.approx((2 + 0.5) / 6)
    assert pairs(np.array([4.0, 4, 4])) == (0.0, 0.5)


def test_tau_is_averaged_over_repeats_then_arms_then_sources() -> None:
    down, up = falling(9, 1, 5), falling(1, -1, 5)
    chains = {
        ("up", "a", "s", 0): down,
        ("up", "a", "s", 1): down,
        ("up", "a", "s", 2): up,  # cell a, s: (−1 −1 +1) / 3 = −1/3
        ("up", "b", "s", 0): up,  # cell b, s: +1; so source s: 1/3
        ("up", "a", "t", 0): down,  # source t: −1
    }
    card = judge(material(chains, [UP]), [5]).card("up")
    assert card.tau is not None
    assert card.later_better is not None
    assert card.tau.value == pytest.approx((1 / 3 - 1) / 2)
    assert card.tau.n == 2
    assert card.later_better.value == pytest.approx((2 / 3 + 0) / 2)
    # Student's interval over two sources, 12.706 standard errors of 0.667, cut to what τ can be.
    assert (card.tau.low, card.tau.high) == (-1, 1)


def test_the_interval_is_over_sources_and_one_source_has_none() -> None:
    one = {("up", "a", "s", repeat): falling(9, 1, 5) for repeat in range(9)}
    tau = judge(material(one, [UP]), [5]).card("up").tau
    assert tau is not None
    assert (tau.value, tau.low, tau.high, tau.n) == (-1, None, None, 1)
    # Three sources with τ −1, −1, −0.8: mean −0.9333, sd 0.11547, t(2) = 4.30265.
    three = {("up", "a", name, 0): falling(9, 1, 5) for name in "st"}
    three["up", "a", "u", 0] = [9.0, 8, 7, 5, 6]
    tau = judge(material(three, [UP]), [5]).card("up").tau
    assert tau is not None
    half = 4.302652729911275 * 0.11547005383792516 / math.sqrt(3)
    assert tau.value == pytest.approx(-2.8 / 3)
    assert tau.high == pytest.approx(-2.8 / 3 + half)
    assert tau.low == -1


def test_noise_is_read_off_second_differences() -> None:
    assert noise_of(np.array(falling(9, 1, 8))) == pytest.approx(0), "a straight fall is no noise"
    # 0 1 0 1 0 1: second differences −2 2 −2 2, so 2 / 0.67449 / √6.
    zigzag = np.array([0.0, 1, 0, 1, 0, 1])
    assert noise_of(zigzag) == pytest.approx(2 / 0.6744897501960817 / math.sqrt(6))
    assert noise_of(np.array([0.0, 9, 0, 9])) == 0, "four frames say nothing"


def test_a_fall_is_noticed_where_the_score_stays_below_frame_1() -> None:
    assert noticed_at([1, 2, 3, 4], np.array([9.0, 8, 7, 6])) == 2
    assert noticed_at([1, 2, 3, 4], np.array([9.0, 8, 9, 6])) == 4, "frame 3 is not below"
    assert noticed_at([1, 2, 3, 4], np.array([9.0, 8, 7, 9])) is None
    assert noticed_at([1, 4, 9], np.array([9.0, 8, 7])) == 4, "steps that are there"
    # Second differences of 50 50.2 … are about ±0.4: σ = 0.4/0.6745/√6 = 0.2421 and a difference
    # counts from 2√2 σ = 0.685 on; frame 7 is 0.6 below frame 1 and not noticed, frame 8 is 1.8.
    wavy = np.array([50, 50.2, 50, 50.2, 50, 50.2, 49.4, 48.2])
    bends = np.sort(np.abs(np.diff(wavy, 2)))
    assert np.median(bends) == pytest.approx(0.4)
    assert noticed_at(list(range(1, 9)), wavy) == 8


def test_the_delay_is_a_kaplan_meier_median_with_censored_chains() -> None:
    fall = {2: [9.0, 8, 7, 6], 3: [9.0, 9, 7, 6], 4: [9.0, 9, 9, 6], 0: [9.0, 9, 9, 9]}
    chains = {
        ("up", "a", "s", 0): fall[2],
        ("up", "a", "t", 0): fall[3],
        ("up", "a", "u", 0): fall[0],
        ("up", "a", "v", 0): fall[0],
    }
    delay = judge(material(chains, [UP]), [4]).card("up").delay
    assert delay is not None
    # Shares 3/4 from step 2 on and 2/4 from step 3 on: the median is 3.
    assert (delay.median, delay.noticed, delay.chains, delay.longest) == (3, 2, 4, 4)
    chains["up", "a", "w", 0] = fall[0]
    delay = judge(material(chains, [UP]), [4]).card("up").delay
    assert delay is not None
    assert (delay.median, delay.label) == (None, "> 4")  # 3/5 are left
    # A chain that was followed to step 2 only leaves without falling: 1·(4/5)·(2/3) … of
    # w cut: at risk 5 at step 2 (one falls), 3 at step 3 (one falls): 4/5 · 2/3 = 8/15 > 1/2.
    chains["up", "a", "w", 0] = fall[0][:2]
    delay = judge(material(chains, [UP]), [4]).card("up").delay
    assert delay is not None
    assert delay.median is None


def test_a_chain_without_frame_1_has_a_trend_and_no_delay() -> None:
    chains = {("up", "a", "s", 0): [None, 5.0, 4, 3, 2]}
    card = judge(material(chains, [UP]), [5]).card("up")
    assert card.tau is not None
    assert (card.tau.value, card.delay) == (-1, None)


# -- content --------------------------------------------------------------------------------------


def test_spread_over_initial_images_stands_beside_the_drop() -> None:
    chains = {
        ("up", "a", "s", 0): [8.0, 7, 7, 7, 7.5],
        ("up", "a", "t", 0): [4.0, 3, 3, 3, 3.0],
        ("up", "a", "t", 1): [6.0, 3, 3, 3, 4.0],  # t at step 1: 50; s: 80
        ("up", "b", "s", 0): [9.0, 9, 9, 9, 8.0],
        ("up", "b", "t", 0): [9.0, 9, 9, 9, 8.0],  # no spread at all
    }
    card = judge(material(chains, [UP]), [5]).card("up")
    assert card.content is not None
    # sd of 80 and 50 is 21.213; of 90 and 90 it is 0.
    assert card.content.spread == pytest.approx(30 / math.sqrt(2) / 2)
    # Gaps −5, (−10 − 20) / 2 = −15, −10, −10.
    assert card.content.drop == pytest.approx(10)
    assert any("Content moves it more than damage" in text for text in card.caveats)


def test_spikes_are_jumps_far_above_the_usual_change() -> None:
    # Changes: median −1, deviations 0 0 0 0 0.5 0.5 21 → MAD 0: any jump above −1 of a point.
    assert spikes(np.array([-1.0, -1, -1, -1, -0.5, -1.5, 20])) == 1
    # Median 0, deviations 0 0 2 2 2 2 2 10 11: MAD 2, robust sd 2.965, limit 10.38.
    assert spikes(np.array([-2.0, 2, 0, -2, 2, 0, 10, 11, -2])) == 1
    assert spikes(np.array([0.0, 0, 0, 0, 0.9])) == 0, "less than a point is no spike"
    assert spikes(np.array([-20.0, 0, 0, 0, 0])) == 0, "downwards is no spike"


def test_spikes_of_object_additions_are_on_the_card() -> None:
    content = example().card("fooled").content
    assert content is not None
    assert (content.spikes, content.additions) == (2, 11)
    rows = example().trajectories.filter(pl.col("kind") == "accumulate")
    assert rows["arm"].unique().to_list() == ["painter · add-apples"]


# -- peers ----------------------------------------------------------------------------------------


def test_agreement_is_spearman_within_chains_over_sources() -> None:
    # Ranks 1 2 3 4 against 2 1 3 4: d² = 1 + 1, ρ = 1 − 6·2 / (4·15) = 0.8.
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([5.0, 1, 7, 8])) == pytest.approx(0.8)
    chains = {("up", "a", "s", 0): [1.0, 2, 3, 4], ("up", "a", "t", 0): [4.0, 3, 2, 1]}
    theirs = {("psnr", "a", "s", 0): [5.0, 1, 7, 8], ("psnr", "a", "t", 0): [5.0, 1, 7, 8]}
    card = judge(
        material(chains, [UP], references=theirs, ratings={("r.csv", "a", "s", 0): [1, 2, 3, 4]}),
        [4],
    ).card("up")
    psnr, people = card.agreement
    assert (psnr.other, psnr.kind, psnr.spearman.n) == ("psnr", "full-reference", 2)
    assert psnr.spearman.value == pytest.approx((0.8 - 0.8) / 2)
    assert (people.other, people.kind, people.spearman.value) == ("r.csv", "ratings", 1)


def test_a_witness_that_is_not_a_number_takes_no_part() -> None:
    chains = {("up", "a", "s", 0): falling(9, 1, 6)}
    told = [-1.0, math.nan, -3, -4, -5, -math.inf]
    trial = judge(
        material(chains, [Tried("up", typical=(0, 10))], references={("psnr", "a", "s", 0): told}),
        [5],
    )
    (agreement,) = trial.card("up").agreement
    assert agreement.spearman.value == pytest.approx(1)


def test_a_constant_score_agrees_with_nothing_and_a_constant_witness_says_nothing() -> None:
    assert spearman(np.array([1.0, 1, 1]), np.array([1.0, 2, 3])) == 0
    assert spearman(np.array([1.0, 2, 3]), np.array([1.0, 1, 1])) is None
    assert spearman(np.array([1.0, 2]), np.array([1.0, 2])) is None


def test_an_editor_that_does_not_degrade_is_flagged_not_hidden() -> None:
    chains = {
        ("up", "calm", "s", 0): [5.0] * 5,
        ("up", "calm", "t", 0): [5.0] * 5,
        ("up", "bad", "s", 0): falling(9, 1, 5),
        ("up", "bad", "t", 0): [5.0] * 5,
    }
    # Frame 1 has an RMSE of 10; calm's frame 5 one of 10.4 (4 % more) and of 9, bad's of 20.
    ends = {("calm", "s"): -10.4, ("calm", "t"): -9.0, ("bad", "s"): -20.0, ("bad", "t"): -20.0}
    theirs = {("psnr", *cell, 0): [-10.0, -10, -10, -10, end] for cell, end in ends.items()}
    trial = judge(material(chains, [UP], references=theirs), [5])
    assert trial.premise.rows() == [
        ("calm", "s", "psnr", 5, pytest.approx(-0.4)),
        ("calm", "t", "psnr", 5, pytest.approx(1.0)),
        ("bad", "s", "psnr", 5, pytest.approx(-10)),
        ("bad", "t", "psnr", 5, pytest.approx(-10)),
    ]
    assert trial.success["premise"].to_list() == ["doubtful", "doubtful", "sound", "sound"]
    card = trial.card("up")
    assert (card.failed, card.doubtful) == (3, 2), "counted, and told"
    assert any("Of its 3 failures 2 are where full-reference" in text for text in card.caveats)
    (note,) = trial.notes
    assert note.startswith("calm: by psnr, its frames lost nothing since frame 1 on any initial")


def test_half_of_the_witnesses_are_enough_for_a_loss() -> None:
    chains = {("up", "a", "s", 0): [5.0] * 5}
    theirs = {("psnr", "a", "s", 0): [-9.0] * 5, ("ssim", "a", "s", 0): falling(-0.1, 0.1, 5)}
    assert (
        judge(material(chains, [UP], references=theirs), [5]).success["premise"].item() == "sound"
    )


def test_without_witnesses_the_premise_is_unknown_and_that_is_told() -> None:
    trial = judge(material({("up", "a", "s", 0): falling(9, 1, 5)}, [UP]), [5])
    assert trial.success["premise"].item() == "unknown"
    assert "No full-reference metric is scored" in trial.notes[0]
