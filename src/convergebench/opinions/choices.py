"""Would a metric choose as people do? Its share of right answers in paired choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from convergebench.analysis.resampling import SHARE, ratio_intervals
from convergebench.opinions.against import Series, series_of
from convergebench.opinions.preferences import comparisons


@dataclass(frozen=True)
class Choice:
    """One metric in the place of a rater.

    Attributes:
        metric, version, higher_is_better: Which.
        share: Share of choices in which the picture with the better score was preferred; equal
            scores are half right. None where nothing could be compared.
        low, high: 95 % interval, resampling source pictures.
        n: Choices, those of "no difference" left out.
        ties: Choices of "no difference", which no metric can be right or wrong about.
        missing: Choices of which a score is missing.
    """

    metric: str
    version: str
    higher_is_better: bool | None
    share: float | None
    low: float | None
    high: float | None
    n: int
    ties: int
    missing: int


def choices(scores: pl.DataFrame, answers: pl.DataFrame) -> tuple[Choice, ...]:
    """Every metric of a score table, the most often right first."""
    table = comparisons(answers)
    if table.is_empty():
        return ()
    frames = {(chain, step) for side in ("first", "second")
              for chain, step in table.select(side, "step").iter_rows()}  # fmt: skip
    found = [_choice(series, table) for series in series_of(scores, frames)]
    return tuple(sorted(found, key=lambda one: -(one.share if one.share is not None else -1.0)))


def _choice(series: Series, table: pl.DataFrame) -> Choice:
    up = series.spec.higher_is_better if series.spec else None
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    ties = missing = 0
    rows = table.select("image", "first", "second", "step", "value")
    for image, first, second, step, value in rows.iter_rows():
        pair = (series.values.get((first, step)), series.values.get((second, step)))
        if pair[0] is None or pair[1] is None:
            missing += 1
        elif value == 0.5:
            ties += 1
        else:
            sums[image] = sums.get(image, 0.0) + _right(pair[0], pair[1], value, up)
            counts[image] = counts.get(image, 0) + 1
    n = sum(counts.values())
    low, high = _ends(sums, counts)
    return Choice(
        series.name, series.version, up, sum(sums.values()) / n if n else None, low, high,
        n, ties, missing,
    )  # fmt: skip


def _right(one: float, other: float, value: float, up: bool | None) -> float:
    if one == other:
        return 0.5
    better = (one > other) if up is not False else (one < other)
    return float(better == (value > 0.5))


def _ends(
    sums: Mapping[str, float], counts: Mapping[str, int]
) -> tuple[float | None, float | None]:
    if len(counts) < 2:
        return None, None
    names = list(counts)
    above = np.array([[sums[name]] for name in names])
    below = np.array([[float(counts[name])] for name in names])
    ((low, high),) = ratio_intervals(above, below, SHARE).tolist()
    return low, high
