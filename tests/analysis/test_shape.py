"""Shapes of curves made up from their formulas, with noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from convergebench.analysis import curve_shapes, shape_of, study
from convergebench.analysis.shape import FEWEST, FLAT, SHAPES, UNDECIDED, shape_findings
from tests.analysis.handmade import HandMade, curve_table

Array = NDArray[np.float64]
Maker = Callable[[np.random.Generator, Array], Array]


def linear(draw: np.random.Generator, n: Array) -> Array:
    return 1 - draw.uniform(0.4, 0.95) * n / len(n)


def exponential(draw: np.random.Generator, n: Array) -> Array:
    return np.exp(-draw.uniform(1.2, 5) * n / len(n))


def plateau(draw: np.random.Generator, n: Array) -> Array:
    level = draw.uniform(0.3, 0.8)
    falling: Array = level + (1 - level) * np.exp(-draw.uniform(4, 12) * n / len(n))
    return falling


def cliff(draw: np.random.Generator, n: Array) -> Array:
    edge = draw.integers(2, len(n) - 1)
    high = draw.uniform(0.85, 1)
    return np.where(n <= edge, high, high - draw.uniform(0.3, 0.7))


MAKERS: dict[str, Maker] = dict(zip(SHAPES, (linear, exponential, plateau, cliff), strict=True))


@pytest.mark.parametrize("rounds", [8, 10, 20])
@pytest.mark.parametrize("name", SHAPES)
def test_noisy_curves_of_each_shape_are_recognised(name: str, rounds: int) -> None:
    draw = np.random.default_rng(7)
    n = np.arange(1, rounds + 1, dtype=np.float64)
    made = [MAKERS[name](draw, n) + draw.normal(0, 0.015, rounds) for _ in range(300)]
    rows = [
        {"editor": "e", "chain": str(i), "c": np.clip(c, 0, 1).tolist()} for i, c in enumerate(made)
    ]
    found = curve_shapes(curve_table(rows))
    assert len(found) == 300
    assert len(found.filter(pl.col("shape") == name)) >= 0.95 * 300


@settings(max_examples=25)
@given(fall=st.floats(0.2, 0.95), rounds=st.integers(FEWEST, 30))
def test_a_straight_line_is_linear(fall: float, rounds: int) -> None:
    assert shape_of([1 - fall * n / rounds for n in range(1, rounds + 1)]) == "linear"


@settings(max_examples=25)
@given(
    edge=st.integers(1, 9),
    loss=st.floats(0.1, 1),
    half=st.booleans(),
)
def test_one_sudden_fall_is_a_cliff(edge: int, loss: float, half: bool) -> None:
    curve = [1.0] * edge + [1 - loss] * (10 - edge)
    if half and edge < 9:
        curve[edge] = 1 - loss / 2
    assert shape_of(curve) == "cliff"


@pytest.mark.parametrize("rounds", [8, 10, 20])
@pytest.mark.parametrize("edge", [1, 2, 3, 4, 5])
def test_a_noisy_fall_to_nothing_is_a_cliff_however_early(edge: int, rounds: int) -> None:
    draw = np.random.default_rng(7)
    n = np.arange(1, rounds + 1)
    rows = [
        {
            "editor": "e",
            "chain": str(i),
            "c": np.clip(np.where(n <= edge, 0.9, -0.05) + draw.normal(0, 0.015, rounds), 0, 1),
        }
        for i in range(100)
    ]
    found = curve_shapes(curve_table(rows))
    assert len(found.filter(pl.col("shape") == "cliff")) >= 95


@pytest.mark.parametrize(
    ("curve", "shape"),
    [
        ([1, 1, 1, 0, 0, 0], "cliff"),
        ([1, 0, 0, 0, 0, 0, 0], "cliff"),
        ([0] * 6, "cliff"),
        ([0.0, 0.02, 0, 0, 0.01, 0, 0], "cliff"),
        ([0] * (FEWEST - 1), UNDECIDED),
        ([0.7, 0.4, 0.1, 0, 0, 0], "linear"),
        ([0.5, 0, 0, 0, 0, 0], "linear"),
        ([0.37, 0.135, 0.05, 0.018, 0, 0, 0], "exponential"),
        ([], UNDECIDED),
    ],
)
def test_fast_collapses_and_whole_numbers(curve: list[float], shape: str) -> None:
    assert shape_of(curve) == shape


@settings(max_examples=25)
@given(st.lists(st.floats(0.99, 1), min_size=FEWEST, max_size=30))
def test_a_curve_that_hardly_falls_is_flat(curve: list[float]) -> None:
    assert shape_of(curve) == FLAT


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=FEWEST - 1))
def test_short_curves_are_not_judged(curve: list[float]) -> None:
    assert shape_of(curve) in (UNDECIDED, FLAT)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=FEWEST, max_size=20))
def test_every_curve_gets_an_answer(curve: list[float]) -> None:
    assert shape_of(curve) in (*SHAPES, FLAT, UNDECIDED)


def test_zeros_after_the_first_say_nothing_of_the_way_down() -> None:
    line = [1 - n / 7 for n in range(1, 7)]
    for zeros in (1, 2, 8, 20):
        assert shape_of([*line, *[0.0] * zeros]) == "linear"


def test_falling_at_once_to_a_level_is_a_plateau() -> None:
    assert shape_of([0.6] * 8) == "plateau"


def test_a_slow_decline_after_a_first_loss_is_no_cliff() -> None:
    # Two levels fit it best, but most of the loss was there before the step between them.
    curve = [0.5 - 0.004 * n for n in range(10)]
    assert shape_of(curve) == "plateau"


def test_each_shape_tells_its_aicc() -> None:
    rows: list[dict[str, Any]] = [
        {"editor": "e", "chain": "line", "c": [1 - 0.08 * n for n in range(1, 11)]},
        {"editor": "e", "chain": "gap", "c": [0.9, 0.8, None, 0.6, 0.5, 0.4, 0.3, 0.2]},
        {"editor": "e", "chain": "short", "c": [0.5, 0.4]},
    ]
    found = {row["chain"]: row for row in curve_shapes(curve_table(rows)).iter_rows(named=True)}
    assert found["line"]["aicc_linear"] < found["line"]["aicc_plateau"]
    assert (found["gap"]["shape"], found["gap"]["points"]) == ("linear", 7)
    assert (found["short"]["shape"], found["short"]["aicc_linear"]) == (UNDECIDED, None)


def test_editors_have_shares_of_shapes(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    line = [1 - 0.1 * n for n in range(1, 9)]
    step = [1.0] * 4 + [0.3] * 4
    made.walk("s0", "copy", "e", line)
    made.walk("s1", "copy", "e", step)
    made.walk("s0", "ball", "e", line)
    made.walk("s1", "ball", "e", [0.9, 0.8], ended="refused")
    made.floors()
    found = {f.id: f for f in shape_findings(study(made.done()))}
    shares = {f.group: f.estimate for f in found.values() if f.metric == "psnr"}
    assert shares == {
        "linear": pytest.approx(2 / 3),
        "exponential": 0,
        "plateau": 0,
        "cliff": pytest.approx(1 / 3),
        FLAT: 0,
    }
    one = found["shape/psnr/e/linear"]
    assert (one.n, one.missing, one.failed, one.refused) == (3, 1, 1, 1)
    assert one.note == f"1 undecided: fewer than {FEWEST} values"
    assert (one.low, one.high) == (0, 1)
    assert {f.metric for f in found.values()} == {"psnr", "ssim"}
    assert curve_shapes(study(made.path).curves).schema["shape"] == pl.String()
