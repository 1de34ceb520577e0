"""Intervals by resampling source images.

Never steps or chains: the chains of one source are not independent of each other.

Plain percentile intervals are too short with few sources: of 20 they hold a mean's truth 93 % of
the time, or 89 % where values are skewed, instead of 95 %. Two known corrections mend that. The
*expanded* percentile (Hesterberg 2015) cuts fewer resamples off, by as much as Student's t is wider
than the normal distribution and a sample's variance short of its population's. *BCa* (Efron 1987)
moves both ends by the bias and the skewness of the resamples. Like the plain interval, and unlike
Student's, they never leave the range of what was measured. With fewer than six sources that is a
fault: two of them have the truth between them every second time. Means have Student's interval
then, cut to what the quantity can be. `benchmarks/intervals.py` shows what they hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RESAMPLES: Final = 2000
SEED: Final = 20260126
LEVEL: Final = 0.95

FEW: Final = 6
"""With fewer sources, means have Student's interval: resamples cannot leave so few values."""

Range = tuple[float, float]
"""What a quantity can be at least and at most."""

ANYTHING: Final[Range] = (-math.inf, math.inf)
SHARE: Final[Range] = (0.0, 1.0)

BLOCK: Final = 1 << 20
"""How many numbers are looked at in one go: more do not fit into a processor's cache."""

Ends = tuple[float | None, float | None]
"""An interval; None where there is none."""


def resampled(count: int, resamples: int = RESAMPLES) -> NDArray[np.intp]:
    """Which sources each resample draws; the same for all, so that differences stay paired."""
    rng = np.random.default_rng(SEED)
    return rng.integers(0, count, size=(resamples, count), dtype=np.intp)


def bootstrap_mean(values: Array, *, resamples: int = RESAMPLES) -> Array:
    """Means of resampled sources, the same sources for every editor."""
    means: Array = values[resampled(len(values), resamples)].mean(axis=1)
    return means


@lru_cache(maxsize=32)
def resampling_weights(count: int) -> Array:
    """How often each source (row) is drawn by each resample (column). Not to be written to."""
    picks = resampled(count)
    flat = (picks * len(picks) + np.arange(len(picks))[:, None]).ravel()
    drawn = np.bincount(flat, minlength=picks.size)
    weights: Array = drawn.reshape(count, len(picks)).astype(np.float64)
    weights.setflags(write=False)
    return weights


@lru_cache(maxsize=1024)
def reach(count: int, level: float = LEVEL) -> float:
    """How many standard deviations an interval over so many sources spans to either side.

    Student's t, times the root of n / (n − 1): resampled means vary by s²(n − 1)/n of their own
    sample, less than the s² of their population.
    """
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, (1 + level) / 2)) * math.sqrt(count / (count - 1))


def intervals(
    stats: Array,
    level: float = LEVEL,
    *,
    sources: Array | int | None = None,
    estimates: Array | None = None,
    acceleration: Array | None = None,
) -> Array:
    """The 95 % interval of each row of resampled statistics, NaN aside.

    Args:
        stats: A row per statistic, a column per resample. Infinity means beyond all bounds.
        level: How much of the middle.
        sources: How many sources each row resamples; without it nothing is expanded.
        estimates: The statistics themselves; without them the bias is not corrected.
        acceleration: Each row's skewness, as `skewness` has it.

    Returns:
        A row (low, high) per statistic.
    """
    from scipy.special import ndtr, ndtri

    ordered = np.sort(stats, axis=1)  # NaN last
    known = np.count_nonzero(~np.isnan(ordered), axis=1)
    span = ndtri((1 + level) / 2) if sources is None else _spans(sources, len(stats), level)
    ends = np.stack([-span * np.ones(len(stats)), span * np.ones(len(stats))], axis=1)
    if estimates is not None:
        bias = _bias(ordered, known, estimates)[:, None]
        tilt = 0.0 if acceleration is None else acceleration[:, None]
        # Never near 1 with the skewness n values can have; the bias of a median may be anything.
        ends = bias + (bias + ends) / np.maximum(1 - tilt * (bias + ends), 0.1)
    return _quantiles(ordered, known, ndtr(ends))


def _spans(sources: Array | int, rows: int, level: float) -> Array:
    counts = np.broadcast_to(np.asarray(sources, dtype=np.int64), (rows,))
    found: Array = np.array([reach(max(n, 2), level) for n in counts.tolist()])
    return found


def _bias(ordered: Array, known: NDArray[np.intp], estimates: Array) -> Array:
    """Where estimates lie among their resamples, in standard deviations; 0 in their middle."""
    from scipy.special import ndtri

    at = estimates[:, None]
    same = 1e-9 * np.abs(at) + 1e-12  # sums in another order
    below = np.count_nonzero(ordered < at - same, axis=1)
    not_above = np.count_nonzero(ordered <= at + same, axis=1)
    share = (below + not_above) / 2 / np.maximum(known, 1)
    found: Array = ndtri(np.clip(share, 0.02, 0.98))
    return found


def _quantiles(ordered: Array, known: NDArray[np.intp], shares: Array) -> Array:
    """`np.quantile` of each row with its own shares, linear, without its checks."""
    last = np.maximum(known - 1, 0)[:, None]
    position = shares * last
    below = np.floor(position).astype(np.intp)
    low = np.take_along_axis(ordered, below, axis=1)
    high = np.take_along_axis(ordered, np.minimum(below + 1, last), axis=1)
    part = position - below
    with np.errstate(invalid="ignore"):  # infinity less infinity
        found: Array = np.where((part == 0) | (low == high), low, low + (high - low) * part)
    return found


def interval(means: Array, level: float = LEVEL) -> tuple[float, float]:
    """The middle share of resampled statistics: the plain percentile interval."""
    ((low, high),) = intervals(means[None], level).tolist()
    return low, high


def skewness(influence: Array) -> Array:
    """BCa's acceleration of each column, from what each source (row) adds to the statistic."""
    away = influence - influence.mean(axis=0)
    spread = np.sum(away**2, axis=0) ** 1.5
    cubes = np.sum(away**3, axis=0)
    found: Array = np.divide(cubes, 6 * spread, out=np.zeros_like(cubes), where=spread > 0)
    return found


def mean_interval(values: Array, within: Range = ANYTHING) -> Ends:
    """The interval of a mean over sources; (None, None) from fewer than two."""
    return mean_intervals([values], within)[0]


def mean_intervals(series: Sequence[Array], within: Range = ANYTHING) -> list[Ends]:
    """The interval of the mean of each series over sources; (None, None) from fewer than two.

    Args:
        series: One value per source.
        within: What such a value can be.
    """
    found: list[Ends] = [(None, None)] * len(series)
    by_length: dict[int, list[int]] = {}
    for index, mine in enumerate(series):
        by_length.setdefault(len(mine), []).append(index)
    for count, mine_of in by_length.items():
        if count < 2:
            continue
        values = np.array([series[index] for index in mine_of]).T
        ends = ratio_intervals(values, np.ones_like(values), within)
        for index, (low, high) in zip(mine_of, ends.tolist(), strict=True):
            found[index] = (low, high)
    return found


def ratio_intervals(sums: Array, counts: Array, within: Range = ANYTHING) -> Array:
    """Intervals of means over chains, resampled by source.

    The mean over chains of a resample is the sum of its sources' sums over the sum of their counts.

    Args:
        sums: Of each source (row) what its chains add up to, a column per statistic.
        counts: How many chains that is.
        within: What such a mean can be.

    Returns:
        A row (low, high) per column; NaN where fewer than two sources have a chain.
    """
    rows = len(sums)
    found = np.full((sums.shape[1], 2), np.nan)
    if rows < 2:
        return found
    weights = resampling_weights(rows)
    having = np.count_nonzero(counts, axis=0)
    step = max(1, BLOCK // weights.shape[1])
    for first in range(0, sums.shape[1], step):
        part = slice(first, first + step)
        above = _weighted(sums[:, part], weights)
        # Most statistics are over the same chains.
        patterns, which = np.unique(counts[:, part], axis=1, return_inverse=True)
        below = _weighted(patterns, weights)[which.ravel()]
        # A resample without a chain has no mean, and is left out.
        means = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
        total = counts[:, part].sum(axis=0)
        mean = np.divide(
            sums[:, part].sum(axis=0), total, out=np.zeros(len(total)), where=total > 0
        )
        found[part] = intervals(
            means,
            sources=having[part],
            estimates=mean,
            acceleration=skewness(sums[:, part] - mean * counts[:, part]),
        )
    few = (having >= 2) & (having < FEW)
    found[few] = _student(sums[:, few], counts[:, few], having[few], within)
    found[having < 2] = np.nan
    return found


def _student(sums: Array, counts: Array, having: NDArray[np.intp], within: Range) -> Array:
    """Student's interval of each column's ratio of sums, its variance taken to first order."""
    total = counts.sum(axis=0)
    mean = sums.sum(axis=0) / total
    spread = np.sqrt(np.sum((sums - mean * counts) ** 2, axis=0) * having / (having - 1)) / total
    return student_ends(mean, spread, having, within)


def student_ends(mean: Array, spread: Array, sources: NDArray[np.intp], within: Range) -> Array:
    """Rows (low, high): Student's intervals of means with these standard errors."""
    from scipy.special import stdtrit

    half = stdtrit(sources - 1, (1 + LEVEL) / 2) * spread
    low, high = np.maximum(mean - half, within[0]), np.minimum(mean + half, within[1])
    # Rounding may have put the mean itself beyond what it can be.
    return np.stack([np.minimum(low, mean), np.maximum(high, mean)], axis=1)


def _weighted(values: Array, weights: Array) -> Array:
    """Per column of the values (row) and resample (column) the sum over sources."""
    if values.size < 1024:
        # Not `@`: for matrices this small the threads of BLAS cost ten times the sums.
        found: Array = np.einsum("sk,sr->kr", values, weights)
        return found
    return values.T @ weights
