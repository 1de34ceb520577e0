"""Where things lie in the drawings of the page of ratings: lanes, distributions, scatter plots.

Nothing is computed here but places on the page; all numbers are those of `Opinions`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from convergebench.opinions.correlations import Correlation, Point, logistic
from convergebench.opinions.means import Distribution
from convergebench.reporter.palette import Ink

WIDE: Final = 520
HIGH: Final = 320
"""Size of a scatter plot's field, in its own units."""
BINS: Final = 21
"""Bars of a distribution at most."""


@dataclass(frozen=True)
class Axis:
    """A scale from low to high with round ticks; places are in per cent of its length."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def place(self, value: float | None) -> float | None:
        """Where a value lies; None stays None."""
        if value is None:
            return None
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def word(self, tick: float) -> str:
        """A tick in as few digits as tell it from the others."""
        return f"{tick:.6g}".replace("-", "−")


def axis(values: Iterable[float | None], *, whole: tuple[float, float] | None = None) -> Axis:
    """A scale that holds all values, with a little air; or exactly what `whole` says."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    low, high = whole or (min(known, default=0.0), max(known, default=1.0))
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    gap = _gap(high - low)
    if whole is None:
        low, high = math.floor(low / gap) * gap, math.ceil(high / gap) * gap
    first = math.ceil(low / gap - 1e-9)
    last = math.floor(high / gap + 1e-9)
    return Axis(low, high, tuple(round(at * gap, 10) + 0.0 for at in range(first, last + 1)))


def _gap(span: float) -> float:
    """A round distance that goes some five times into a span."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    return next(size * power for size in (1, 2, 5, 10) if span / (size * power) <= 6)


@dataclass(frozen=True)
class Bar:
    """One bar of a distribution: where it is, how wide, and its share of the tallest."""

    at: float
    wide: float
    share: float
    told: str


@dataclass(frozen=True)
class Violin:
    """A distribution as mirrored bars, with its quartiles."""

    method: str
    bars: tuple[Bar, ...]
    quartiles: tuple[float | None, ...]
    total: int


def violins(found: Sequence[Distribution], scale: Axis) -> tuple[Violin, ...]:
    """Distributions on one scale; all bars share one height, so that methods compare."""
    parts = [(one, *_binned(one, scale)) for one in found]
    tallest = max(
        (max(counts) / sum(counts) for _, _, counts, _ in parts if sum(counts)), default=1.0
    )
    drawn = []
    for one, centres, counts, wide in parts:
        total = sum(counts)
        bars = tuple(
            Bar(
                scale.place(centre) or 0.0,
                wide,
                round(count / total / tallest, 4),
                f"{one.method}: {count} of {total} at {scale.word(centre)}",
            )
            for centre, count in zip(centres, counts, strict=True)
            if count
        )
        places = tuple(scale.place(value) for value in one.quartiles)
        drawn.append(Violin(one.method, bars, places, total))
    return tuple(drawn)


def _binned(one: Distribution, scale: Axis) -> tuple[list[float], list[int], float]:
    """Centres, counts and the width of bars: a bar per score, or bins where there are many."""
    if len(one.scores) <= BINS:
        gaps = [b - a for a, b in zip(one.scores, one.scores[1:], strict=False)]
        gap = min(gaps, default=1.0)
        wide = min(16.0, 86 * gap / (scale.high - scale.low))
        return list(one.scores), list(one.counts), round(wide, 2)
    edges = np.linspace(scale.low, scale.high, BINS + 1)
    counts, _ = np.histogram(one.scores, bins=edges, weights=one.counts)
    centres = (edges[:-1] + edges[1:]) / 2
    return centres.tolist(), [int(count) for count in counts], round(92 / BINS, 2)


@dataclass(frozen=True)
class Mark:
    """A point of a scatter plot."""

    x: float
    y: float
    ink: Ink | None
    told: str


@dataclass(frozen=True)
class Scatter:
    """Opinions against one metric.

    `ticks_x` and `ticks_y` are places with words; `curve` is the mapping as a path, empty where
    there is none.
    """

    id: str
    title: str
    marks: tuple[Mark, ...]
    ticks_x: tuple[tuple[float, str], ...]
    ticks_y: tuple[tuple[float, str], ...]
    curve: str
    correlation: Correlation
    wide: int = WIDE
    high: int = HIGH


def scatters(found: Sequence[Correlation], inks: dict[str, Ink]) -> tuple[Scatter, ...]:
    """A plot for each metric over stimuli, all with the same scale of opinions."""
    mine = [one for one in found if one.level == "stimulus" and one.points]
    upright = axis([p.opinion for one in mine for p in one.points])
    return tuple(_scatter(one, f"plot-{at}", upright, inks) for at, one in enumerate(mine))


def _scatter(one: Correlation, name: str, upright: Axis, inks: dict[str, Ink]) -> Scatter:
    across = axis([point.value for point in one.points])

    def x(value: float) -> float:
        return round(WIDE * (value - across.low) / (across.high - across.low), 1)

    def y(value: float) -> float:
        return round(HIGH * (1 - (value - upright.low) / (upright.high - upright.low)), 1)

    return Scatter(
        name,
        one.metric,
        tuple(Mark(x(p.value), y(p.opinion), inks.get(p.method), _told(p)) for p in one.points),
        tuple((x(tick), across.word(tick)) for tick in across.ticks),
        tuple((y(tick), upright.word(tick)) for tick in upright.ticks),
        _curve(one, x, y, upright),
        one,
    )


def _told(point: Point) -> str:
    what = ", ".join(word for word in (point.method, point.image or point.name) if word)
    return f"{what}: {point.value:.4g}, opinion {point.opinion:.2f}"


def _curve(one: Correlation, x: object, y: object, upright: Axis) -> str:
    if one.mapping is None or not callable(x) or not callable(y):
        return ""
    values = [point.value for point in one.points]
    line = np.linspace(min(values), max(values), 60)
    turned = -line if one.higher_is_better is False else line
    heights = np.clip(logistic(turned, *one.mapping), upright.low, upright.high)
    return "M" + "L".join(f"{x(a)} {y(b)}" for a, b in zip(line, heights, strict=True))
