from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convergebench.analysis import analyze
from convergebench.analysis.variance import components
from tests.analysis.handmade import HandMade


def design(
    sources: int, edits: int, repeats: int, keep: float, rng: np.random.Generator
) -> tuple[Any, Any, Any]:
    """Source, edit and cell of chains, a share of them kept at random."""
    source, edit, _ = (a.ravel() for a in np.indices((sources, edits, repeats)))
    here = rng.random(len(source)) < keep
    return source[here], edit[here], (source * edits + edit)[here]


@pytest.mark.parametrize("keep", [1.0, 0.6])
def test_known_variances_are_recovered_on_average(keep: float) -> None:
    rng = np.random.default_rng(11)
    truth = {"source": 0.04, "edit": 0.02, "rest": 0.01, "repeat": 0.03}
    sums = dict.fromkeys(truth, 0.0)
    for _ in range(60):
        source, edit, cell = design(40, 12, 2, keep, rng)
        values = (
            0.6
            + rng.normal(0, truth["source"] ** 0.5, 40)[source]
            + rng.normal(0, truth["edit"] ** 0.5, 12)[edit]
            + rng.normal(0, truth["rest"] ** 0.5, 480)[cell]
            + rng.normal(0, truth["repeat"] ** 0.5, len(source))
        )
        found = components(values, source, edit, cell)
        assert found is not None
        for part, variance in found.variance.items():
            sums[part] += variance / 60
    assert sums == pytest.approx(truth, rel=0.12)


def test_a_balanced_table_is_the_textbooks_analysis_of_variance() -> None:
    rng = np.random.default_rng(3)
    table = rng.random((5, 4)) + 4 * rng.random((5, 1)) + 3 * rng.random((1, 4))
    source, edit = (a.ravel() for a in np.indices((5, 4)))
    found = components(table.ravel(), source, edit, source * 4 + edit)
    assert found is not None
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    rest = table - rows[:, None] - columns + table.mean()
    within = np.sum(rest**2) / 12
    assert found.variance == pytest.approx(
        {
            "source": (4 * rows.var(ddof=1) - within) / 4,
            "edit": (5 * columns.var(ddof=1) - within) / 5,
            "rest": within,
        }
    )
    assert found.below_zero == ()


def test_what_is_below_zero_is_set_to_zero_and_said() -> None:
    # Sources have the same mean exactly, edits differ within them.
    values = np.array([0.1, 0.9, 0.9, 0.1, 0.1, 0.9, 0.9, 0.1])
    source = np.repeat(np.arange(4), 2)
    edit = np.tile([0, 1], 4)
    found = components(values, source, edit, np.arange(8))
    assert found is not None
    assert found.variance["source"] == found.variance["edit"] == 0
    assert set(found.below_zero) == {"source", "edit"}
    assert found.variance["rest"] > 0


def test_one_edit_with_repeats_has_sources_and_repeats() -> None:
    rng = np.random.default_rng(0)
    source = np.repeat(np.arange(200), 3)
    values = rng.normal(0, 2, 200)[source] + rng.normal(0, 1, 600)
    found = components(values, source, np.zeros(600, dtype=np.int64), source)
    assert found is not None
    assert found.variance == pytest.approx({"source": 4, "repeat": 1}, rel=0.2)


def test_one_edit_without_repeats_cannot_be_told_apart() -> None:
    each = np.arange(8)
    assert components(each / 8, each, np.zeros(8, dtype=np.int64), each) is None


def test_findings_are_shares_that_add_up(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    made = HandMade(tmp_path, sources=6)
    hard = rng.uniform(-0.2, 0.2, 6)
    for i in range(6):
        for cycle, less in (("copy", 0.0), ("ball", 0.1)):
            for repeat in (0, 1):
                c = 0.6 + hard[i] - less + rng.normal(0, 0.02)
                made.walk(f"s{i}", cycle, "a", (c, c), repeat=repeat)
        made.walk(f"s{i}", "copy", "still", (1.0, 1.0))
    made.floors()
    found = analyze(made.done())
    every = [f for f in found.findings if f.kind == "variance" and f.metric == "ssim"]
    mine = {f.group: f for f in every if f.estimate is not None}
    assert list(mine) == ["source", "edit", "repeat", "rest"]
    assert sum(f.estimate or 0 for f in mine.values()) == pytest.approx(1)
    assert {f.editor for f in mine.values()} == {"a"}
    source = mine["source"]
    assert source.id == "variance/ssim/source/a"
    assert (source.estimate or 0) > 0.5
    assert (source.n, source.missing) == (24, 0)
    assert "6 sources" in source.note


@pytest.mark.parametrize("level", [0.6, 0.3, 0.55, 0.123456, 1 / 3])
@pytest.mark.parametrize("sources", [3, 5, 7])
def test_rounding_has_no_parts(level: float, sources: int) -> None:
    source, edit = (a.ravel() for a in np.indices((sources, 2)))
    values: Any = level + 1e-16 * np.arange(len(source))
    found = components(values, source, edit, np.arange(len(source)))
    assert found is not None
    assert (found.total, found.below_zero) == (0, ())


def test_small_differences_between_large_values_are_told_apart() -> None:
    rng = np.random.default_rng(2)
    source, edit = (a.ravel() for a in np.indices((6, 4)))
    values: Any = 1e-4 * (rng.random(6)[source] + rng.random(4)[edit])
    low, high = (components(at + values, source, edit, np.arange(24)) for at in (0.0, 1000.0))
    assert low is not None
    assert high is not None
    assert high.variance == pytest.approx(low.variance, rel=1e-4, abs=1e-14)


def test_what_does_not_vary_has_no_shares_and_says_so(tmp_path: Path) -> None:
    made = HandMade(tmp_path, sources=4)
    for i in range(4):
        for cycle in ("copy", "ball"):
            made.walk(f"s{i}", cycle, "still", (0.55, 0.55))
    made.floors()
    mine = [f for f in analyze(made.done()).findings if f.kind == "variance"]
    assert mine
    assert {f.estimate for f in mine} == {None}
    assert {f.note for f in mine} == {
        "no shares: AUC does not vary (standard deviation below 1e-06)"
    }
