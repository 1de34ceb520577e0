"""Comparing editors on equal footing: common chains, intervals over sources, ties.

Intervals resample source images, never steps or chains: the chains of one source are not
independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RESAMPLES: Final = 2000
SEED: Final = 20260126
LEVEL: Final = 0.95

PAIR: Final = ("source", "cycle", "settings", "repeat")
"""What two editors' chains must share to be compared."""

NOISE: Final = 1e-9
"""A difference below this is arithmetic, not evidence: sums in another order differ by as much."""

FEW_SOURCES: Final = 6
"""With fewer, no rule of equal signs can be 95 % sure: five of five by chance is 1 in 16."""


@dataclass(frozen=True)
class Ranked:
    """An editor's mean with its interval (None from a single source), and its range of ranks."""

    editor: str
    mean: float
    low: float | None
    high: float | None
    best_rank: int
    worst_rank: int


def common_chains(summaries: pl.DataFrame, editors: list[str]) -> pl.DataFrame:
    """The complete chains that every one of these editors has.

    Chains are paired by source, cycle, settings and repeat, metric by metric.
    """
    mine = summaries.filter(pl.col("editor").is_in(editors) & pl.col("complete"))
    return mine.filter(pl.col("editor").n_unique().over("metric", *PAIR) == len(editors))


def by_source(table: pl.DataFrame, column: str) -> tuple[list[str], dict[str, Array]]:
    """Per editor the mean of a column for each source, sources in one order."""
    values = {editor: mine for (_, editor), mine in by_metric(table, column).items()}
    return sorted(set(table["source"])), values


def by_metric(table: pl.DataFrame, column: str) -> dict[tuple[str, str], Array]:
    """Per metric and editor the mean of a column for each source, sources in one order."""
    # In a fixed order, because the last digit of a sum depends on it.
    means = (
        table.sort("metric", "editor", "source", "chain")
        .group_by("metric", "editor", "source", maintain_order=True)
        .agg(pl.col(column).mean())
        .group_by("metric", "editor", maintain_order=True)
        .agg(column)
    )
    return {
        (metric, editor): np.array(mine, dtype=np.float64)
        for metric, editor, mine in means.iter_rows()
    }


def resampled(count: int, resamples: int = RESAMPLES) -> NDArray[np.intp]:
    """Which sources each resample draws; the same for all, so that differences stay paired."""
    rng = np.random.default_rng(SEED)
    return rng.integers(0, count, size=(resamples, count), dtype=np.intp)


def bootstrap_mean(values: Array, *, resamples: int = RESAMPLES) -> Array:
    """Means of resampled sources, the same sources for every editor."""
    means: Array = values[resampled(len(values), resamples)].mean(axis=1)
    return means


def resampling_weights(count: int) -> Array:
    """How often each source (row) is drawn by each resample (column)."""
    picks = resampled(count)
    flat = (picks * len(picks) + np.arange(len(picks))[:, None]).ravel()
    drawn = np.bincount(flat, minlength=picks.size)
    return drawn.reshape(count, len(picks)).astype(np.float64)


def intervals(means: Array, level: float = LEVEL) -> Array:
    """The middle share of each row of resampled means, NaN aside: percentile intervals.

    The same as `np.percentile` with its linear interpolation, without its checks: a report has
    ten thousand of these.
    """
    ordered = np.sort(means, axis=1)  # NaN last
    last = np.count_nonzero(~np.isnan(means), axis=1)[:, None] - 1
    position = np.array([(1 - level) / 2, (1 + level) / 2]) * last
    below = np.floor(position).astype(np.intp)
    low = np.take_along_axis(ordered, below, axis=1)
    high = np.take_along_axis(ordered, np.minimum(below + 1, last), axis=1)
    found: Array = low + (high - low) * (position - below)
    return found


def interval(means: Array, level: float = LEVEL) -> tuple[float, float]:
    """The middle share of resampled means: the percentile interval."""
    ((low, high),) = intervals(means[None], level).tolist()
    return low, high


def mean_interval(values: Array) -> tuple[float | None, float | None]:
    """The interval of a mean over sources; (None, None) from fewer than two."""
    return interval(bootstrap_mean(values)) if len(values) > 1 else (None, None)


def rank(values: Mapping[str, Array], *, level: float = LEVEL) -> list[Ranked]:
    """Editors from best to worst, given each one's value per source.

    One editor is above another when the interval of their paired difference excludes 0; an
    editor's best rank is one more than the number above it, its worst the number not below it.
    With a single source there is no interval, and no editor is above another.

    Raises:
        ValueError: The editors' values are not over the same number of sources.
    """
    if len({len(mine) for mine in values.values()}) > 1:
        raise ValueError("editors are compared over the same sources, got unequal numbers of them")
    ranked = []
    boots = {name: bootstrap_mean(mine) for name, mine in values.items() if len(mine) > 1}
    for name, mine in values.items():
        above = below = 0
        low: float | None = None
        high: float | None = None
        if name in boots:
            low, high = interval(boots[name], level)
            for other in boots.keys() - {name}:
                least, most = interval(boots[name] - boots[other], level)
                above += most < -NOISE
                below += least > NOISE
        mean = float(mine.mean())
        ranked.append(Ranked(name, mean, low, high, above + 1, len(values) - below))
    return sorted(ranked, key=lambda r: (-r.mean, r.editor))
