"""Contraction factors of known sequences, and which comparisons they are made from."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import theilslopes

from convergebench.analysis import Finding, contraction_factor, contractions, study
from convergebench.analysis.contraction import contraction_findings, verdict
from convergebench.analysis.rounds import median_interval
from convergebench.reporter.charts.dynamics import contraction_word
from tests.analysis.handmade import HandMade, decibels

factors = st.floats(0.2, 3)
sizes = st.floats(0.01, 50)


@given(factor=factors, first=sizes, count=st.integers(3, 20))
def test_a_geometric_sequence_has_its_factor(factor: float, first: float, count: int) -> None:
    distances = [first * factor**n for n in range(count)]
    assert contraction_factor(distances, range(1, count + 1)) == pytest.approx(factor)


@given(distances=st.lists(sizes, min_size=3, max_size=12), by=st.floats(0.01, 100))
def test_the_unit_of_the_distance_does_not_matter(distances: list[float], by: float) -> None:
    rounds = range(1, len(distances) + 1)
    scaled = contraction_factor([by * d for d in distances], rounds)
    assert scaled == pytest.approx(contraction_factor(distances, rounds))


@given(distances=st.lists(sizes, min_size=3, max_size=12))
def test_backwards_is_the_reciprocal(distances: list[float]) -> None:
    rounds = range(1, len(distances) + 1)
    there, back = (contraction_factor(d, rounds) for d in (distances, distances[::-1]))
    assert there is not None
    assert back is not None
    assert there * back == pytest.approx(1)


@given(distances=st.lists(sizes, min_size=3, max_size=12))
def test_the_slope_is_that_of_scipy(distances: list[float]) -> None:
    slope = theilslopes(np.log(distances))[0]
    found = contraction_factor(distances, range(1, len(distances) + 1))
    assert found == pytest.approx(math.exp(slope))


def test_one_wild_round_does_not_change_the_factor() -> None:
    distances = [16, 8, 400, 2, 1, 0.5, 0.25]
    assert contraction_factor(distances, range(1, 8)) == pytest.approx(0.5, rel=0.02)


def test_rounds_without_a_value_leave_a_gap() -> None:
    assert contraction_factor([8, 2, 1], [1, 3, 4]) == pytest.approx(0.5)


def test_distances_of_zero_have_no_logarithm() -> None:
    assert contraction_factor([8, 4, 0, 1], [1, 2, 3, 4]) == pytest.approx(0.5)
    assert contraction_factor([8, 4, 2, 0, 0], [1, 2, 3, 4, 5]) == pytest.approx(0.5)
    assert contraction_factor([0, 0, 0], [1, 2, 3]) == 0
    assert contraction_factor([8, 0, 0], [1, 2, 3]) == 0, "it has come to rest"
    assert contraction_factor([5, 5, 5, 0, 0, 0, 0], range(1, 8)) == 0, "it drifted until then"
    assert contraction_factor([5, 0, 0, 0, 5, 5, 5], range(1, 8)) == 1, "it went on"
    assert contraction_factor([0, 0, 8], [1, 2, 3]) is None
    assert contraction_factor([0, 0], [1, 2]) is None, "too few to tell"
    assert contraction_factor([4, 2], [1, 2]) is None


def test_the_verdict_needs_the_whole_interval_and_two_percent() -> None:
    assert verdict(0.8, 0.7, 0.9) == "settles"
    assert verdict(0.8, 0.7, 1.1) == "drifts"
    assert verdict(0.99, 0.985, 0.995) == "drifts", "however sure, it is near 1"
    assert verdict(1.2, 1.1, 1.3) == "diverges"
    assert verdict(1.2, 0.9, 1.3) == "drifts"
    assert verdict(0.5, None, None) == "one source gives no verdict"


def test_the_interval_of_a_median_is_that_of_pooled_resamples() -> None:
    values = np.array([0.5, 0.6, 0.7, 0.9, 1.0, 1.3])
    assert median_interval(values, ["a"] * 6) == (None, None)
    low, high = median_interval(values, ["a", "a", "b", "b", "c", "c"])
    assert low is not None
    assert high is not None
    # A resample may be one source thrice: the ends are those sources' own medians.
    assert [low, high] == pytest.approx([0.55, 1.15])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finding]:
    made = HandMade(tmp_path_factory.mktemp("contraction"))
    for source, factor in (("s0", 0.5), ("s1", 0.6)):
        ball = made.walk(source, "ball", "halving", [0.9] * 4, metrics=("psnr",))
        copy = made.walk(source, "copy", "halving", [0.9] * 4, metrics=("psnr",))
        for n in range(1, 5):
            size = decibels(20 * factor ** (n - 1))
            made.score(ball.key.id, 2 * n, "psnr", size, against="homecoming")
            made.score(copy.key.id, n, "psnr", size, against="previous")
            # the frame before is no homecoming in a cycle of two edits
            made.score(ball.key.id, 2 * n, "psnr", decibels(3), against="previous")
        still = made.walk(source, "copy", "still", [0.9] * 4, metrics=("psnr",))
        for n in range(1, 5):
            made.score(still.key.id, n, "psnr", math.inf, against="previous")
        gone = made.walk(source, "copy", "gone", [0.9] * 2, metrics=("psnr",), ended="refused")
        for n in (1, 2):
            made.score(gone.key.id, n, "psnr", decibels(4), against="previous")
    made.floors()
    return {f.id: f for f in contraction_findings(study(made.done()))}


def test_the_factor_of_an_editor_is_the_median_over_its_chains(found: dict[str, Finding]) -> None:
    halving = found["contraction/psnr/halving"]
    assert halving.estimate == pytest.approx(0.55)
    assert [halving.low, halving.high] == pytest.approx([0.5, 0.6])
    assert (halving.n, halving.missing, halving.note) == (4, 0, "settles")


def test_identical_homecomings_count_as_rest(found: dict[str, Finding]) -> None:
    still = found["contraction/psnr/still"]
    assert (still.estimate, still.n) == (0, 2)
    assert still.note == "settles; 2 chains came to rest, which counts as 0"


def test_chains_with_too_few_distances_are_counted(found: dict[str, Finding]) -> None:
    gone = found["contraction/psnr/gone"]
    assert (gone.estimate, gone.n, gone.missing, gone.failed, gone.refused) == (None, 0, 2, 2, 2)
    assert "2 chains with fewer than 3 distances" in gone.note


def test_distances_are_told_by_round(found: dict[str, Finding]) -> None:
    third = found["distance/psnr/halving/3"]
    assert third.estimate == pytest.approx((20 * 0.25 + 20 * 0.36) / 2)
    assert (third.n, third.round, third.note) == (4, 3, "RMSE in 8-bit levels")
    lost = found["distance/psnr/gone/3"]
    assert (lost.estimate, lost.n, lost.missing, lost.failed, lost.refused) == (None, 0, 2, 2, 2)


def test_one_source_gives_no_verdict(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    chain = made.walk("s0", "copy", "e", [0.9] * 4, metrics=("psnr",))
    for n in range(1, 5):
        made.score(chain.key.id, n, "psnr", decibels(20 * 0.5**n), against="previous")
    made.floors()
    (one,) = (f for f in contraction_findings(study(made.done())) if f.kind == "contraction")
    assert one.estimate == pytest.approx(0.5)
    assert (one.low, one.high, one.note) == (None, None, "one source gives no verdict")
    assert contraction_word(one) == ""


def test_without_scores_between_homecomings_there_is_nothing_to_tell(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.walk("s0", "ball", "mute", [0.9, 0.8, 0.7])
    made.floors()
    whole = study(made.done())
    assert contraction_findings(whole) == []
    table = contractions(whole)
    assert table.is_empty()
    assert table.schema["factor"] == pl.Float64()
