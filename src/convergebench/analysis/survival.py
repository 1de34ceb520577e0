"""Half-life of an editor: the Kaplan-Meier estimate over chains, censored ones included.

Written by hand because it is made of thousands of resamples at once; a test holds every one of them
against `scipy.stats.ecdf`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench.analysis.resampling import (
    BLOCK,
    FEW,
    Ends,
    intervals,
    resampling_weights,
    skewness,
    student_ends,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HALF: Final = 0.5 + 1e-12
"""One half, with room for rounding: shares multiplied may come to 0.5000000000000001."""

NORMAL: Final = 1.959963984540054
"""Standard deviations of the normal distribution to either side that hold 95 % of it."""


@dataclass(frozen=True)
class Survival:
    """The survival curve of an editor's chains.

    Attributes:
        times: Where the curve steps down.
        share: The share of chains still above the threshold from that time on.
        median: The half-life, or None when the curve never comes down to one half.
        restricted_mean: Area under the curve up to `until`; None where it is not known so far.
        horizon: How far the curve is known: the longest time observed, or N when all have fallen.
        chains: How many chains.
        censored: How many never fell while they were followed.
    """

    times: tuple[float, ...]
    share: tuple[float, ...]
    median: float | None
    restricted_mean: float | None
    horizon: float
    chains: int
    censored: int

    @property
    def label(self) -> str:
        """The half-life as printed: `> N` when it was not reached."""
        return f"> {self.horizon:g}" if self.median is None else f"{self.median:.2f}"


@dataclass(frozen=True)
class Bounds:
    """95 % intervals of a survival curve; None from fewer than two sources.

    Attributes:
        median: Of the half-life. An end that is not reached is None above, the horizon below.
        restricted_mean: Of the restricted mean.
        band: Of the share, at each of the curve's steps.
    """

    median: Ends
    restricted_mean: Ends
    band: tuple[Ends, ...]


def survival(
    times: Sequence[float],
    fell: Sequence[bool],
    rounds: float = 0.0,
    until: float | None = None,
) -> Survival | None:
    """Kaplan-Meier over chains; None without chains.

    Args:
        times: When each chain fell, or how long it was followed.
        fell: Whether it fell; False is censored.
        rounds: N, the horizon once no chain is left above the threshold. Before that the curve
            is known only as far as chains were followed.
        until: Where the restricted mean ends; as far as the curve is known otherwise.
    """
    if not len(times):
        return None
    when, down = np.asarray(times, dtype=np.float64), np.asarray(fell, dtype=bool)
    steps, shares = kaplan_meier(when, down, np.ones((len(when), 1)))
    share = shares[:, 0]
    horizon = float(when.max())
    down_to_none = bool(len(share)) and share[-1] == 0
    if down_to_none:
        horizon = max(horizon, rounds)
    end = horizon if until is None else until
    median = _medians(steps, shares)[0]
    return Survival(
        times=tuple(steps.tolist()),
        share=tuple(share.tolist()),
        median=float(median) if np.isfinite(median) else None,
        restricted_mean=(
            float(_areas(steps, shares, end)[0]) if down_to_none or end <= horizon else None
        ),
        horizon=horizon,
        chains=len(when),
        censored=int(np.count_nonzero(~down)),
    )


def kaplan_meier(times: Array, fell: NDArray[np.bool_], weights: Array) -> tuple[Array, Array]:
    """The survival curves of many samples of the same chains.

    Args:
        times: When each chain fell, or how long it was followed.
        fell: Whether it fell.
        weights: How often each chain (row) is in each sample (column).

    Returns:
        The times at which a chain fell, and the share above from then on: a row per time, a column
        per sample. Once nobody is left to be followed, the share stays.
    """
    order = np.argsort(times, kind="stable")
    times, fell, drawn = times[order], fell[order], weights[order]
    steps = np.unique(times[fell])
    # Of the same time, those that fell were at risk with those that were followed no longer.
    risk = np.cumsum(drawn[::-1], axis=0)[::-1][np.searchsorted(times, steps)]
    falls = drawn[fell]
    if len(falls) > len(steps):
        falls = np.add.reduceat(falls, np.searchsorted(times[fell], steps), axis=0)
    share = falls / np.maximum(risk, 1.0)
    np.subtract(1.0, share, out=share)
    return steps, np.cumprod(share, axis=0, out=share)


def bounds(
    times: Sequence[float],
    fell: Sequence[bool],
    sources: Sequence[str],
    horizon: float,
    *,
    mean: bool = True,
    until: float | None = None,
) -> Bounds:
    """95 % intervals of a survival curve, by resampling sources.

    That of the half-life is where the band of the curve holds one half (Brookmeyer and Crowley
    1982). Percentiles of resampled half-lives hold the truth as often, but collapse where chains of
    a source come in pairs of one that falls soon and one that falls late: then every resample has
    the same half below.

    Args:
        times: When each chain fell, or how long it was followed.
        fell: Whether it fell.
        sources: The source of each chain.
        horizon: How far the curve is known.
        mean: Whether the interval of the restricted mean is wanted.
        until: Where the restricted mean ends; at the horizon otherwise.
    """
    end = horizon if until is None else until
    when, down = np.asarray(times, dtype=np.float64), np.asarray(fell, dtype=bool)
    steps = np.unique(when[down])
    names, source = np.unique(np.asarray(sources), return_inverse=True)
    count = len(names)
    if count < 2:
        return Bounds((None, None), (None, None), ((None, None),) * len(steps))
    drawn = resampling_weights(count)
    areas, shares = [], []
    step = max(1, BLOCK // 8 // len(when))
    for at in range(0, drawn.shape[1], step):
        _, curves = kaplan_meier(when, down, drawn[source, at : at + step])
        shares.append(curves)
        if mean:
            areas.append(_areas(steps, curves, end))
    _, whole = kaplan_meier(when, down, np.ones((len(when), 1)))
    least = most = None
    if mean:
        # What the curve would be without each source tells how skewed its area is.
        _, without = kaplan_meier(when, down, 1.0 - (source[:, None] == np.arange(count)))
        area, left = _areas(steps, whole, end), _areas(steps, without, end)
        if count < FEW:
            # As means of few sources, with the jackknife's variance.
            spread = np.sqrt((count - 1) * np.var(left, keepdims=True))
            ends = student_ends(area, spread, np.array([count]), (0.0, end))
        else:
            ends = intervals(
                np.concatenate(areas)[None],
                sources=count,
                estimates=area,
                acceleration=skewness(-left[:, None]),
            )
        least, most = ends[0].tolist()
    band = _band(whole[:, 0], np.concatenate(shares, axis=1), count, len(when))
    low = next(
        (t for t, (low, _) in zip(steps.tolist(), band, strict=True) if low <= HALF), horizon
    )
    high = next((t for t, (_, high) in zip(steps.tolist(), band, strict=True) if high < 0.5), None)
    return Bounds((low, high), (least, most), band)


def _medians(steps: Array, shares: Array) -> Array:
    """The first step at which each sample's share is one half or less; infinity if none is."""
    reached = shares <= HALF
    if not len(steps):
        return np.full(shares.shape[1], np.inf)
    found: Array = np.where(reached.any(axis=0), steps[reached.argmax(axis=0)], np.inf)
    return found


def _areas(steps: Array, shares: Array, horizon: float) -> Array:
    """The area under each sample's curve, from 0 to the horizon."""
    widths = np.diff(np.minimum(steps, horizon), prepend=0.0, append=horizon)
    found: Array = widths[0] + np.einsum("t,tr->r", widths[1:], shares)
    return found


def _band(
    share: Array, resampled: Array, sources: int, chains: int
) -> tuple[tuple[float, float], ...]:
    """Wilson's interval of each share, with as many chains as it varies like.

    Shares near 0 or 1 hardly vary among resamples, or not at all, and their percentiles hold the
    truth far too seldom. Wilson's interval does not have this fault; the resamples' variance tells
    how many independent chains it may count, which is fewer where chains share a source.
    """
    spread = resampled.var(axis=1) * sources / (sources - 1)
    able = share * (1 - share)
    alike = np.divide(
        able, spread, out=np.full_like(share, sources), where=(spread > 0) & (able > 0)
    )
    alike = np.clip(alike, 1.0, chains)
    squared = NORMAL**2
    middle = (share + squared / (2 * alike)) / (1 + squared / alike)
    half = np.sqrt(squared * (able / alike + squared / (4 * alike**2))) / (1 + squared / alike)
    low, high = np.clip(middle - half, 0, 1).tolist(), np.clip(middle + half, 0, 1).tolist()
    return tuple(zip(low, high, strict=True))
