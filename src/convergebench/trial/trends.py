"""How scores go along a chain: rank trend, pairs of frames, when the fall is noticed, spikes.

Every number is made per chain first, then averaged over the repeats of a cell, over the arms of a
source and over sources; intervals resample sources. Frame 0 takes no part: the first edit crops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.analysis.resampling import Range, mean_interval
from convergebench.analysis.survival import bounds, survival
from convergebench.trial.gaps import ROUNDING
from convergebench.trial.result import Content, Delay, Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NORMAL_MAD: Final = 0.6744897501960817
"""The median of |x| of a standard normal x: what a median of deviations is divided by."""

NOTICED: Final = 2.0
"""A score is below another when it is so by more than this many standard deviations."""

LEAST_FOR_NOISE: Final = 5
"""Frames from which a chain's noise is estimated; with fewer it is taken for 0."""

SPIKE: Final = 3.5
"""Robust standard deviations above the median change from which on a jump is a spike."""

LEAST_SPIKE: Final = 1.0
"""Points of the scale from 0 to 100 that a spike has at least."""

LEAST_FOR_SPIKES: Final = 5
"""Changes that a chain must have to be looked at for spikes."""

SIGNED: Final[Range] = (-1.0, 1.0)


@dataclass(frozen=True)
class Trend:
    """One chain: τ-b of score and step, how often the later of two frames is scored better.

    `noticed` is the step at which the fall is noticed, None where it never is; `last` the last step
    that has a score.
    """

    tau: float
    later_better: float
    noticed: int | None
    last: int


def pairs(scores: Array) -> tuple[float, float]:
    """Kendall's τ-b of scores with their order, and the share of pairs whose later one is better.

    Ties count one half in the share. Of scores that are all the same τ is 0: nothing was seen. Both
    come from the same signs of all pairs, which is why τ is not left to `scipy.stats.kendalltau`;
    a test holds the two together.
    """
    later, earlier = np.triu_indices(len(scores), 1)[::-1]
    signs = np.sign(scores[later] - scores[earlier])
    count = len(signs)
    untied = np.count_nonzero(signs)
    up = np.count_nonzero(signs > 0)
    tau = float(signs.sum()) / math.sqrt(count * untied) if untied else 0.0
    return tau, (up + (count - untied) / 2) / count


def noise_of(scores: Array) -> float:
    """The standard deviation of a chain's noise, robustly, from its second differences.

    They leave nothing of a straight fall and 6 σ² of white noise, and their median is not moved by
    a jump or two.
    """
    if len(scores) < LEAST_FOR_NOISE:
        return 0.0
    bends = np.abs(np.diff(scores, 2))
    return float(np.median(bends)) / NORMAL_MAD / math.sqrt(6)


def noticed_at(steps: Sequence[int], scores: Array) -> int | None:
    """The first step from which on all scores are below the first one by more than noise.

    By more than `NOTICED` standard deviations of a difference of two scores, σ √2 each.
    """
    limit = scores[0] - max(NOTICED * math.sqrt(2) * noise_of(scores), ROUNDING)
    above = np.flatnonzero(scores >= limit)  # the first is always
    after = int(above[-1]) + 1
    return steps[after] if after < len(steps) else None


def trend_of(steps: Sequence[int], scores: Array) -> Trend | None:
    """The trend of one chain; None from fewer than two scores."""
    if len(scores) < 2:
        return None
    tau, later_better = pairs(scores)
    # Without frame 1 there is nothing that later ones could be below.
    noticed = noticed_at(steps, scores) if steps[0] == 1 else None
    return Trend(tau, later_better, noticed, steps[-1])


def trends(scores: pl.DataFrame) -> pl.DataFrame:
    """The trend of every chain: metric, arm, source, repeat, tau, later_better, noticed, last.

    Args:
        scores: Normalised scores of replications.
    """
    chain = ["metric", "arm", "source", "repeat"]
    rows = []
    known = scores.filter(pl.col("score").is_not_null() & (pl.col("step") >= 1))
    chains = (
        known.sort(*chain, "step")
        .group_by(*chain, maintain_order=True)
        .agg("step", "score", pl.col("step").first().alias("first"))
    )
    for *key, steps, values, first in chains.iter_rows():
        trend = trend_of(steps, np.array(values))
        if trend is not None:
            followed = trend.last if first == 1 else None
            rows.append((*key, trend.tau, trend.later_better, trend.noticed, followed))
    schema: dict[str, pl.DataType] = {name: known.schema[name] for name in chain}
    schema |= {"tau": pl.Float64(), "later_better": pl.Float64()}
    schema |= {"noticed": pl.Int32(), "last": pl.Int32()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def over_sources(chains: pl.DataFrame, column: str, within: Range) -> Estimate | None:
    """The mean of a column over repeats, arms and sources, with its interval over sources.

    Args:
        chains: arm, source and that column, a row per chain; nulls are left out.
        column: The column.
        within: What its values can be.
    """
    known = chains.filter(pl.col(column).is_not_null())
    means = (
        known.sort("source", "arm", column)  # sums in a fixed order, whatever that of the rows
        .group_by("source", "arm", maintain_order=True)
        .agg(pl.col(column).mean())
        .group_by("source", maintain_order=True)
        .agg(pl.col(column).mean())
    )
    if means.is_empty():
        return None
    values = np.sort(means[column].to_numpy())
    low, high = mean_interval(values, within)
    return Estimate(value=float(values.mean()), low=low, high=high, n=len(values))


def delay_of(chains: pl.DataFrame) -> Delay | None:
    """The Kaplan-Meier median of when the fall is noticed; None where no chain has frame 1.

    Args:
        chains: Rows of `trends`.
    """
    followed = chains.filter(pl.col("last").is_not_null()).sort("source", "arm", "repeat")
    if followed.is_empty():
        return None
    fell = followed["noticed"].is_not_null().to_list()
    times = followed.select(pl.coalesce("noticed", "last").cast(pl.Float64)).to_series().to_list()
    curve = survival(times, fell)
    if curve is None:
        return None
    ends = bounds(times, fell, _numbered(followed), curve.horizon, mean=False)
    return Delay(
        median=curve.median,
        noticed=sum(fell),
        chains=len(fell),
        longest=int(max(followed["last"].to_list())),
        low=ends.median[0],
        high=ends.median[1],
    )


def _numbered(followed: pl.DataFrame) -> list[str]:
    """The source of each chain as a number that follows from its chains, not from its name.

    Resamples draw sources by their place: an interval must not hang on what a source is called.
    """
    by_source: dict[str, list[tuple[int, int]]] = {}
    for source, noticed, last in followed.select("source", "noticed", "last").iter_rows():
        by_source.setdefault(source, []).append((noticed or 0, last))
    order = sorted(by_source, key=lambda source: sorted(by_source[source]))
    places = {source: f"{place:09}" for place, source in enumerate(order)}
    return [places[source] for source in followed["source"].to_list()]


def content_of(
    replications: pl.DataFrame, additions: pl.DataFrame, gaps: pl.DataFrame, last: int
) -> Content | None:
    """How much the picture itself moves one metric; None from fewer than two initial images.

    Args:
        replications: Its normalised scores of replications.
        additions: Those of chains that add objects.
        gaps: Its mean gaps.
        last: The last of the steps asked for.
    """
    first = replications.filter((pl.col("step") == 1) & pl.col("score").is_not_null())
    spreads = (
        first.sort("arm", "source", "repeat")
        .group_by("arm", "source", maintain_order=True)
        .agg(pl.col("score").sort().mean())
        .group_by("arm", maintain_order=True)
        .agg(pl.col("score").sort().std())  # null of a single source
    )["score"].drop_nulls()
    if spreads.is_empty():
        return None
    falls = gaps.filter((pl.col("step") == last) & pl.col("gap").is_not_null())["gap"].sort()
    found, of = spikes_among(additions)
    return Content(
        spread=float(np.mean(np.sort(spreads.to_numpy()))),
        drop=-float(np.mean(falls.to_numpy())) if len(falls) else None,
        spikes=found,
        additions=of,
    )


def spikes_among(additions: pl.DataFrame) -> tuple[int, int]:
    """How many steps of chains that add objects are spikes upwards, of how many."""
    found = of = 0
    known = additions.filter(pl.col("score").is_not_null() & (pl.col("step") >= 1))
    chains = known.sort("step").group_by("arm", "source", "repeat").agg("step", "score")
    for steps, scores in chains.select("step", "score").iter_rows():
        number = np.array(steps)
        changes = np.diff(np.array(scores))[np.diff(number) == 1]
        if len(changes) >= LEAST_FOR_SPIKES:
            found += spikes(changes)
            of += len(changes)
    return found, of


def spikes(changes: Array) -> int:
    """How many changes from step to step are jumps upwards, far above the usual change."""
    middle = float(np.median(changes))
    spread = float(np.median(np.abs(changes - middle))) / NORMAL_MAD
    return int(np.count_nonzero((changes >= LEAST_SPIKE) & (changes > middle + SPIKE * spread)))
