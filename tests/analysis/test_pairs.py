from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test, ttest_1samp

from convergebench.analysis.pairs import (
    EXACT,
    FLIPS,
    compare_pairs,
    holm,
    needed_sources,
    pair_findings,
    sign_flips,
)


def test_all_flips_of_few_sources_are_counted() -> None:
    apart = np.array([0.3, -0.1, 0.2, 0.4])
    sums = [abs(np.dot(signs, apart)) for signs in product((-1, 1), repeat=4)]
    expected = np.mean(np.array(sums) >= abs(apart.sum()) - 1e-12)
    assert sign_flips(apart[:, None])[0] == pytest.approx(expected)


@pytest.mark.parametrize("sources", [7, 12])
def test_p_values_are_scipys(sources: int) -> None:
    apart = np.random.default_rng(sources).normal(0.3, 1.0, sources)
    theirs = permutation_test(
        (apart,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=False
    )
    assert sign_flips(apart[:, None])[0] == pytest.approx(theirs.pvalue)


def test_drawn_flips_come_close_to_students_test() -> None:
    rng = np.random.default_rng(2)
    apart = rng.normal(0.2, 1.0, (60, 5))
    assert sign_flips(apart) == pytest.approx(ttest_1samp(apart, 0).pvalue, abs=0.015)
    assert (sign_flips(apart) == sign_flips(apart)).all(), "seeded"


def test_no_p_value_is_zero() -> None:
    assert sign_flips(np.ones((EXACT + 1, 1)))[0] <= 10 / FLIPS
    assert sign_flips(np.ones((40, 1)))[0] == pytest.approx(1 / (FLIPS + 1))
    # Many pairs need more flips, or none of them could pass.
    assert (sign_flips(np.ones((40, 300))) * 300 < 0.05).all()


def test_holm_worked_by_hand() -> None:
    # 4 · 0.01, 3 · 0.02, then 2 · 0.02 which may not be less than the one before, 1 · 0.5.
    assert holm([0.02, 0.5, 0.01, 0.02]).tolist() == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([0.6, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_and_keeps_the_order(p: list[float]) -> None:
    found = holm(p)
    assert (found >= np.array(p) - 1e-15).all()
    assert (found <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_the_better_editor_comes_first() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(20)
    (pair,) = compare_pairs({"a": base, "b": base + 0.1 + rng.normal(0, 0.02, 20)})
    assert (pair.one, pair.other, pair.winner, pair.loser) == ("b", "a", "b", "a")
    assert pair.verdict == "b above a"
    assert pair.difference == pytest.approx(0.1, abs=0.02)
    assert pair.low is not None
    assert pair.high is not None
    assert pair.low < pair.difference < pair.high
    assert (pair.sources, pair.differing, pair.exact) == (20, 20, False)
    assert pair.p == pair.alone < 0.001


def test_noise_is_no_evidence() -> None:
    values = np.random.default_rng(0).random(30)
    (pair,) = compare_pairs({"a": values, "b": values + 1e-10})
    assert (pair.p, pair.differing, pair.verdict, pair.winner) == (1, 0, "tied", "")


def test_all_pairs_are_one_family() -> None:
    rng = np.random.default_rng(4)
    base = rng.random(9)
    values = {name: base + i * 0.01 for i, name in enumerate("abcdef")}
    # Every pair alone: 2 of 512 flips. Fifteen of them together are not 95 % sure.
    pairs = compare_pairs(values)
    assert len(pairs) == 15
    assert {pair.alone for pair in pairs} == {2 / 512}
    assert {pair.winner for pair in pairs} == {""}
    assert min(pair.p for pair in pairs) == pytest.approx(15 * 2 / 512)


@pytest.mark.parametrize(
    ("editors", "sources"), [(1, 6), (2, 6), (3, 7), (4, 8), (6, 10), (10, 11), (30, 15)]
)
def test_how_many_sources_are_needed(editors: int, sources: int) -> None:
    assert needed_sources(editors) == sources
    pairs = max(editors * (editors - 1) // 2, 1)
    assert pairs * 2 / 2**sources < 0.05
    assert pairs * 2 / 2 ** (sources - 1) >= 0.05 or sources == 6


def test_findings_say_what_was_tested() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(20)
    values = {"a": base, "b": base - 0.2, "c": base + rng.normal(0, 0.001, 20)}
    found = {f.id: f for f in pair_findings(compare_pairs(values), 40)}
    assert set(found) in (
        {"pair/a/b", "pair/c/b", "pair/a/c"},
        {"pair/a/b", "pair/c/b", "pair/c/a"},
    )
    mine = found["pair/a/b"]
    assert (mine.editor, mine.other, mine.n) == ("a", "b", 40)
    assert mine.estimate == pytest.approx(0.2)
    assert mine.p is not None
    assert mine.p < 0.05
    assert mine.note.startswith("a above b; sign flips, drawn, 3 pairs corrected by Holm")
    assert "over 20 sources, differing on 20; median 0.2000" in mine.note


def test_nobody_and_one() -> None:
    assert compare_pairs({}) == []
    assert compare_pairs({"a": np.array([0.1])}) == []
    (pair,) = compare_pairs({"a": np.array([0.1]), "b": np.array([0.9])})
    assert (pair.p, pair.low, pair.verdict) == (1, None, "tied")


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 20), st.integers(0, 1000))
def test_the_order_of_editors_and_sources_does_not_matter(sources: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = {name: rng.random(sources) for name in "abc"}
    shuffled = {name: values[name] for name in "cab"}
    assert compare_pairs(values) == compare_pairs(shuffled)
