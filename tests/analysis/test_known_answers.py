"""Editors whose decay is a closed formula, run and scored for real: it is found again within 2 %.

Their RMSE is exact but for half a sample, of which a picture of 160×160 has 76,800: DEPTH²·0.5 /
76,800 = 0.1 squared levels. The smallest step looked at here is 2.7 levels, so rounding moves a
distance by 0.7 % at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import convergebench as cb
from convergebench.analysis import Study, contractions, curve_shapes, homecoming_distances, study
from convergebench.analysis.contraction import contraction_findings
from convergebench.analysis.regions import region_findings
from convergebench.editors.reference.yardsticks import cliff_rmse, geometric_rmse, plateau_rmse
from tests.support.runs import picture, write_suite

SIZE, ROUNDS = 160, 10
PICTURES = [picture(seed, SIZE, SIZE) for seed in (0, 1)]
FLOOR = math.sqrt(np.mean((PICTURES[0].astype(float) - PICTURES[1]) ** 2))
"""With two sources the floor is the RMSE between them: C(n) = 1 − RMSE(n) / FLOOR."""

Formula = Callable[[int], float]
SETTLING, DIVERGING = "ref:geometric,factor=0.9,step=20", "ref:geometric,factor=1.1,step=6"
RAMP, CLIFF = "ref:ramp,step=5", "ref:cliff,at=5,loss=60"
PLATEAU = "ref:plateau,factor=0.8,level=50"
FADING = f"ref:plateau,factor=0.9,level={FLOOR:.4f}"
EDITORS: dict[str, Formula] = {
    RAMP: lambda n: 5.0 * n,
    SETTLING: lambda n: geometric_rmse(n, 20, 0.9),
    DIVERGING: lambda n: geometric_rmse(n, 6, 1.1),
    PLATEAU: lambda n: plateau_rmse(n, 50, 0.8),
    FADING: lambda n: plateau_rmse(n, FLOOR, 0.9),
    CLIFF: lambda n: cliff_rmse(n, 5, 60),
}
CALLS = {"copy@1": 1, "ball@1": 2}
"""Calls in a round: all of these editors count calls, and none of them puts in the ball."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known")
    suite = write_suite(folder / "suite", pictures=PICTURES, size=SIZE)
    table = {"suite": str(suite), "editors": list(EDITORS), "rounds": ROUNDS}
    cb.run(folder / "run", table, controls=False)
    cb.score(folder / "run", ["psnr"], workers=1)
    return folder / "run"


@pytest.fixture(scope="module")
def told(run: Path) -> Study:
    return study(run)


def curve(editor: str, cycle: str) -> list[float]:
    """C(0) to C(N), from the formula."""
    steps = [CALLS[cycle] * n for n in range(ROUNDS + 1)]
    return [max(0.0, 1 - EDITORS[editor](step) / FLOOR) for step in steps]


def chains(table: pl.DataFrame, column: str) -> dict[tuple[str, str, str], Any]:
    mine = table.filter(pl.col("metric") == "psnr")
    rows = mine.select("editor", "cycle", "source", column).rows()
    assert len(rows) == len(EDITORS) * len(CALLS) * len(PICTURES)
    return {(editor, cycle, source): value for editor, cycle, source, value in rows}


def test_the_floor_is_the_distance_of_the_two_sources(told: Study) -> None:
    assert told.floor["psnr"] == pytest.approx(-FLOOR)


def test_auc_is_that_of_the_formula(told: Study) -> None:
    for (editor, cycle, _), auc in chains(told.summaries, "auc").items():
        assert auc == pytest.approx(np.mean(curve(editor, cycle)[1:]), rel=0.02)


def exact_half_life(editor: str, calls: int) -> float | None:
    """In rounds, where C(n) = ½ as a continuous formula; None where that is not before N."""
    half = FLOOR / 2
    if editor == RAMP:
        n = half / 5
    elif editor in (SETTLING, DIVERGING):
        step, factor = (20, 0.9) if editor == SETTLING else (6, 1.1)
        share = 1 - (1 - factor**2) * (half / step) ** 2
        n = math.log(share) / (2 * math.log(factor)) if share > 0 else math.inf
    elif editor == CLIFF:
        # Interpolated between the last round before the fall and the first after it.
        return math.ceil(5 / calls) - 1 + half / 60
    else:
        level, factor = (50, 0.8) if editor == PLATEAU else (FLOOR, 0.9)
        n = math.log(1 - half / level) / math.log(factor)
    return n / calls if n / calls < ROUNDS else None


def test_half_lives_are_those_of_the_formulas(told: Study) -> None:
    lives = chains(told.summaries, "half_life")
    fell = chains(told.summaries, "fell")
    for (editor, cycle, source), life in lives.items():
        exact = exact_half_life(editor, CALLS[cycle])
        assert fell[editor, cycle, source] == (exact is not None), (editor, cycle)
        # Between two rounds a curve is taken for straight; none of these is bent by much.
        expected = ROUNDS if exact is None else exact
        assert life == pytest.approx(expected, rel=0.02), (editor, cycle)


def slope(distances: list[float]) -> float:
    """Exp of the Theil-Sen slope, written down slowly."""
    logs = [(n, math.log(d)) for n, d in enumerate(distances) if d > 0]
    pairs = combinations(logs, 2)
    return math.exp(float(np.median([(b - a) / (m - n) for (n, a), (m, b) in pairs])))


def expected_factor(editor: str, cycle: str) -> float:
    calls = CALLS[cycle]
    if editor == CLIFF:
        return 0.0  # identical before and after
    if editor == RAMP:
        return 1.0
    if editor in (SETTLING, DIVERGING):
        return (0.9 if editor == SETTLING else 1.1) ** calls  # per call, and so per round
    # As no sample is moved twice, squared distances add up.
    squares = [EDITORS[editor](calls * n) ** 2 for n in range(ROUNDS + 1)]
    return slope([math.sqrt(b - a) for a, b in pairwise(squares)])


def test_contraction_is_that_of_the_formula(told: Study) -> None:
    for (editor, cycle, _), factor in chains(contractions(told), "factor").items():
        assert factor == pytest.approx(expected_factor(editor, cycle), rel=0.02), (editor, cycle)


def test_the_verdict_is_right(told: Study) -> None:
    found = contraction_findings(told)
    notes = {f.editor: f.note.partition(";")[0] for f in found if f.kind == "contraction"}
    assert notes == {
        RAMP: "drifts",
        SETTLING: "settles",
        DIVERGING: "diverges",
        PLATEAU: "settles",
        FADING: "drifts",
        CLIFF: "settles",
    }


def test_each_homecoming_moves_as_far_as_the_formula_says(told: Study) -> None:
    table = homecoming_distances(told).filter(pl.col("editor") == SETTLING)
    for cycle, n, distance in table.select("cycle", "n", "value").iter_rows():
        calls = CALLS[cycle]
        before, after = (geometric_rmse(calls * at, 20, 0.9) for at in (n - 1, n))
        assert distance == pytest.approx(math.sqrt(after**2 - before**2), rel=0.01)


def test_shapes_are_recognised(told: Study) -> None:
    shapes = chains(curve_shapes(told.curves), "shape")
    expected = {RAMP: "linear", PLATEAU: "plateau", FADING: "exponential", CLIFF: "cliff"}
    for (editor, cycle, _), shape in shapes.items():
        assert editor not in expected or shape == expected[editor], (editor, cycle)


def test_a_loss_everywhere_is_the_same_inside_and_outside(told: Study) -> None:
    found = {f.id: f for f in region_findings(told)}
    for place in ("inside", "outside"):
        for n in (1, 4, 10):
            assert found[f"region/{RAMP}/{place}/{n}"].estimate == pytest.approx(10 * n)
        assert found[f"forward/{RAMP}/{place}"].estimate == pytest.approx(5)


def test_half_a_sample_is_less_than_two_percent() -> None:
    smallest = min(20 * 0.9**19, 6.0)
    assert 127**2 / (SIZE * SIZE * 3) / smallest**2 / 2 < 0.02
