"""What must hold of every trial, and independent peers of its statistics."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf, kendalltau, rankdata, spearmanr

from convergebench.trial.judgement import judge
from convergebench.trial.material import Tried
from convergebench.trial.peers import spearman
from convergebench.trial.result import Trial
from convergebench.trial.trends import noticed_at, pairs
from tests.trial.tables import Chains, Curve, material

# Whole numbers, so that ties are many and a change of scale is exact.
score = st.integers(-8, 8).map(float)
curve = st.lists(score, min_size=2, max_size=14)
chain_curve: st.SearchStrategy[Curve] = st.lists(
    st.one_of(score, score, score, st.none()), min_size=6, max_size=6
)
table = st.dictionaries(
    st.tuples(st.just("m"), st.sampled_from("ab"), st.sampled_from("stuv"), st.integers(0, 2)),
    chain_curve,
    min_size=1,
    max_size=10,
)


def tried(chains: Chains, *, higher: bool = True, **more: object) -> Trial:
    metric = Tried("m", "1", higher_is_better=higher, typical=(-8, 8))
    # All cells in a fixed order, so that the order of the chains cannot matter through them.
    cells = sorted({(arm, source) for _, arm, source, _ in chains})
    return judge(material(chains, [metric], cells=cells, longest=6), [5, 6])


@given(curve)
def test_tau_is_scipys(scores: list[float]) -> None:
    tau, _ = pairs(np.array(scores))
    if len(set(scores)) == 1:
        assert tau == 0
    else:
        assert tau == pytest.approx(kendalltau(range(len(scores)), scores).statistic)


@given(curve)
def test_later_better_is_a_mann_whitney_share_counted_pair_by_pair(scores: list[float]) -> None:
    _, share = pairs(np.array(scores))
    both = [(a, b) for j, b in enumerate(scores) for a in scores[:j]]
    assert share == pytest.approx(sum((b > a) + (a == b) / 2 for a, b in both) / len(both))


@given(st.lists(st.tuples(score, score), min_size=3, max_size=20))
def test_spearman_is_scipys(rows: list[tuple[float, float]]) -> None:
    one, other = np.array(rows).T
    assume(np.ptp(one) > 0 and np.ptp(other) > 0)
    assert spearman(one, other) == pytest.approx(spearmanr(one, other).statistic)


@given(
    curve,
    st.sampled_from([math.atan, math.exp, lambda x: x**3, lambda x: 7 * x - 2]),
)
def test_monotone_transforms_keep_tau_and_shares(
    scores: list[float], transform: Callable[[float], float]
) -> None:
    moved = np.array([transform(x) for x in scores])
    assert pairs(moved) == pairs(np.array(scores))


@given(curve)
def test_turning_the_scale_turns_the_signs(scores: list[float]) -> None:
    tau, share = pairs(np.array(scores))
    turned, other = pairs(-np.array(scores))
    assert turned == pytest.approx(-tau)
    assert other == pytest.approx(1 - share)


@settings(max_examples=25)
@given(table)
def test_flipping_the_direction_flips_every_gap(chains: Chains) -> None:
    up, down = tried(chains), tried(chains, higher=False)
    for one, other in zip(up.gaps["gap"].to_list(), down.gaps["gap"].to_list(), strict=True):
        assert (one is None) == (other is None)
        assert one is None or other == pytest.approx(-one, abs=1e-9)
    mine, theirs = up.card("m").tau, down.card("m").tau
    assert (mine is None) == (theirs is None)
    if mine and theirs:
        assert theirs.value == pytest.approx(-mine.value, abs=1e-12)


@settings(max_examples=25)
@given(table)
def test_a_metric_and_its_negative_never_both_succeed(chains: Chains) -> None:
    verdicts = {tried(chains).card("m").verdict, tried(chains, higher=False).card("m").verdict}
    assert "fully succeeds" not in verdicts or len(verdicts) == 2


@settings(max_examples=25)
@given(table, st.randoms(use_true_random=False))
def test_the_order_of_chains_changes_nothing(chains: Chains, rng: random.Random) -> None:
    keys = list(chains)
    rng.shuffle(keys)
    one, other = tried(chains), tried({key: chains[key] for key in keys})
    assert one.cards == other.cards
    assert one.gaps.equals(other.gaps)
    assert one.per_arm.sort("arm").equals(other.per_arm.sort("arm"))


@settings(max_examples=25)
@given(table)
def test_renaming_the_sources_changes_no_number(chains: Chains) -> None:
    names = dict(zip("stuv", "wzyx", strict=True))
    renamed = {(m, arm, names[source], r): c for (m, arm, source, r), c in chains.items()}
    one, other = tried(chains).card("m"), tried(renamed).card("m")
    assert one == other


@settings(max_examples=25)
@given(table)
def test_the_scale_moves_no_verdict(chains: Chains) -> None:
    other = {key: [None if x is None else 3 * x + 100 for x in c] for key, c in chains.items()}
    one, two = (
        tried(chains),
        judge(
            material(
                other,
                [Tried("m", "1", typical=(0, 1))],
                cells=sorted({(a, s) for _, a, s, _ in chains}),
                longest=6,
            ),
            [5, 6],
        ),
    )
    assert one.success.equals(two.success)
    mine, theirs = one.card("m"), two.card("m")
    assert mine.sensitivity == theirs.sensitivity
    assert (mine.delay and mine.delay.median) == (theirs.delay and theirs.delay.median)


@settings(max_examples=25)
@given(table)
def test_counts_add_up(chains: Chains) -> None:
    trial = tried(chains)
    card = trial.card("m")
    assert sum(card.failures_by_arm.values()) == card.failed <= card.cells == len(trial.success)
    assert sum(card.failures_by_step.values()) == trial.success["failures"].sum()
    assert card.failed + card.incomplete <= card.cells
    if card.verdict == "fully succeeds":
        assert trial.gaps["gap"].null_count() == 0
        assert (trial.gaps["gap"] < 0).all()


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(2, 9), st.booleans()), min_size=1, max_size=12))
def test_the_delay_is_scipys_kaplan_meier_median(rows: list[tuple[int, bool]]) -> None:
    """Chains that fall for good at a step, or are followed so far and never do."""
    chains: dict[tuple[str, str, str, int], Curve] = {}
    for number, (step, falls) in enumerate(rows):
        flat = [5.0] * (step - 1)
        # Straight and flat pieces: second differences are 0 but at the bend, and so is the noise.
        chains["m", "a", f"s{number}", 0] = [*flat, *([1.0] * 8 if falls else [5.0])]
    trial = judge(material(chains, [Tried("m", "1", typical=(0, 10))], longest=20), [2])
    delay = trial.card("m").delay
    assert delay is not None
    fell = [step for step, falls in rows if falls]
    data = CensoredData(uncensored=fell, right=[step for step, falls in rows if not falls])
    curve = ecdf(data).sf
    down = [q for q, p in zip(curve.quantiles, curve.probabilities, strict=True) if p <= 0.5 + 1e-9]
    expected = down[0] if fell and down else None
    assert delay.median == expected
    assert delay.noticed == len(fell)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=12))
def test_after_it_was_noticed_every_score_is_below_the_first(scores: list[float]) -> None:
    steps = list(range(1, len(scores) + 1))
    found = noticed_at(steps, np.array(scores))
    if found is not None:
        assert found >= 2
        assert all(x < scores[0] for x in scores[found - 1 :])
        assert rankdata(scores)[0] > len(scores) - found + 1
