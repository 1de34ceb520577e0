"""Sparklines of the cards: every arm's mean trajectory, as SVG paths in the page.

By hand and not by Vega: hundreds of them are in the page at once, and must be there without a
script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from convergebench.reporter.palette import Ink
from convergebench.reporter.printing import number
from convergebench.reporter.trial.steps import thinned
from convergebench.trial.result import Trial

WIDTH: Final = 160
HEIGHT: Final = 44
EDGE: Final = 3
MOST: Final = 30
"""Points of a line."""

FLAT: Final = 1.0
"""Scores are at least so far from the lowest to the highest: less is no movement."""


@dataclass(frozen=True)
class Spark:
    """A card's sparkline.

    Attributes:
        lines: An ink and a path for each arm.
        low: The lowest score drawn, as printed.
        high: The highest.
        first: The first step drawn.
        last: The last.
    """

    lines: tuple[tuple[Ink, str], ...]
    low: str
    high: str
    first: int
    last: int


def sparks_of(trial: Trial, inks: Mapping[str, Ink]) -> dict[str, Spark]:
    """The sparklines by metric; none where a metric has no scores."""
    frame = trial.trajectories.filter(
        (pl.col("kind") == "replicate")
        & pl.col("arm").is_in(list(trial.arms))
        & (pl.col("step") >= 1)  # what the first step does to a picture is no decay
        & pl.col("mean").is_finite()
    )
    if frame.is_empty():
        return {}
    steps = sorted(frame["step"].unique().to_list())
    kept = thinned(steps, MOST)
    means = (
        frame.filter(pl.col("step").is_in(kept))
        .group_by("metric", "arm", "step")
        .agg(pl.col("mean").mean())
        .sort("metric", "arm", "step")
    )
    points: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for metric, arm, step, mean in means.iter_rows():
        points.setdefault(metric, {}).setdefault(arm, []).append((step, mean))
    return {metric: _spark(each, trial, inks, kept) for metric, each in points.items()}


def _spark(
    points: Mapping[str, list[tuple[int, float]]],
    trial: Trial,
    inks: Mapping[str, Ink],
    steps: list[int],
) -> Spark:
    values = [value for line in points.values() for _, value in line]
    low, high = min(values), max(values)
    middle, half = (low + high) / 2, max(high - low, FLAT) / 2
    across = max(steps[-1] - steps[0], 1)

    def place(step: int, value: float) -> str:
        x = EDGE + (step - steps[0]) / across * (WIDTH - 2 * EDGE)
        y = HEIGHT / 2 - (value - middle) / half * (HEIGHT / 2 - EDGE)
        return f"{x:.1f} {y:.1f}"

    lines = [
        (inks[arm], "M" + "L".join(place(*point) for point in points[arm]))
        for arm in trial.arms
        if arm in points
    ]
    return Spark(tuple(lines), number(low, 1), number(high, 1), steps[0], steps[-1])
