"""Means over chains, round by round, with intervals over sources, and what is missing of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from convergebench.analysis.findings import Finding
from convergebench.analysis.resampling import (
    Ends,
    Range,
    intervals,
    ratio_intervals,
    resampling_weights,
)

if TYPE_CHECKING:
    from convergebench.analysis.resampling import Array

NOT_NEGATIVE: Final[Range] = (0.0, math.inf)
"""What distances and errors can be."""


def source_means(joined: pl.DataFrame, by: Sequence[str], *, chains: bool = False) -> pl.DataFrame:
    """The mean of `value` in every group, each source counting once, with its chains' mean.

    Args:
        joined: Columns chain, source, failed, refused, value (null where there is none) and `by`.
        by: What a group is.
        chains: Whether each chain counts once instead.

    Returns:
        Columns `by`, mean, and numbers of chains: count (finite), infinite, planned (all), failed,
        refused.
    """
    finite = pl.col("value").is_finite()
    return (
        # In a fixed order, because the last digit of a sum depends on it.
        joined.sort(*by, "source", "chain")
        .group_by(*by, "chain" if chains else "source", maintain_order=True)
        .agg(
            mean=pl.col("value").filter(finite).mean(),
            count=finite.sum(),
            infinite=pl.col("value").is_infinite().sum(),
            planned=pl.len(),
            failed=pl.col("failed").sum(),
            refused=pl.col("refused").sum(),
        )
        .group_by(*by, maintain_order=True)
        .agg(
            pl.col("mean").mean(),
            pl.col("count", "infinite", "planned", "failed", "refused").sum(),
        )
    )


def round_means(
    values: pl.DataFrame,
    grid: pl.DataFrame,
    by: Sequence[str],
    within: Range = NOT_NEGATIVE,
    *,
    chains: bool = False,
) -> pl.DataFrame:
    """The mean of `value` in every group, over the chains that should have one there.

    Each source counts once, with the mean over its chains; or each chain does.

    Args:
        values: Columns chain, `by` (but editor) and value; null or absent where there is none.
        grid: What should be there: chain, source, editor, `by`, failed and refused.
        by: What a group is; `editor` among it.
        within: What a value can be.
        chains: Whether each chain counts once, as in a share of chains.

    Returns:
        Columns `by`, mean, low, high, count, missing, failed, refused. The interval resamples
        sources, and is null from fewer than two. A chain that failed is among the missing.
    """
    on = ["chain", *(name for name in by if name != "editor")]
    joined = grid.join(values.select(*on, "value"), on=on, how="left")
    finite = pl.col("value").is_finite()
    points = source_means(joined, by, chains=chains).select(
        *by, "mean", "count", "failed", "refused", missing=pl.col("planned") - pl.col("count")
    )
    ends = source_intervals(joined.filter(finite), by, within, chains=chains)
    return points.join(ends, on=list(by), how="left", maintain_order="left", nulls_equal=True)


def mean_finding(row: Mapping[str, Any], name: str, **more: Any) -> Finding:
    """The finding that a row of `round_means` is; `more` are further fields of it."""
    told = {column: row[column] for column in ("low", "high", "missing", "failed", "refused")}
    return Finding(id=name, estimate=row["mean"], n=row["count"], **told, **more)


def source_intervals(
    rows: pl.DataFrame, by: Sequence[str], within: Range = NOT_NEGATIVE, *, chains: bool = False
) -> pl.DataFrame:
    """95 % intervals of the mean of `value` in every group that has two sources or more.

    Each source counts once, with the mean over its chains; or each chain does.

    Returns:
        Columns `by`, low and high.
    """
    cells = (
        rows.group_by(*by, "source")
        .agg(pl.col("value").sort().mean(), count=pl.len() if chains else pl.lit(1))
        .sort("editor", *by, "source")
        .with_columns(cell=pl.struct(*by).rle_id())
    )
    # An editor's sources are resampled together: its groups differ in which of them have a value.
    parts = []
    for (_,), mine in cells.group_by("editor", maintain_order=True):
        cell = mine["cell"].to_numpy() - mine["cell"][0]
        names, row = np.unique(mine["source"].to_numpy(), return_inverse=True)
        sums = np.zeros((len(names), cell[-1] + 1))
        counts = np.zeros_like(sums)
        sums[row, cell], counts[row, cell] = mine["value"] * mine["count"], mine["count"]
        ends = ratio_intervals(sums, counts, within)
        parts.append(
            mine.select(*by)
            .unique(maintain_order=True)
            .with_columns(low=pl.Series(ends[:, 0]), high=pl.Series(ends[:, 1]))
        )
    none = cells.select(*by, low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64)).clear()
    return pl.concat([none, *parts]).with_columns(pl.col("low", "high").fill_nan(None))


def median_interval(values: Array, sources: Sequence[str]) -> Ends:
    """The interval of a median over chains; sources are resampled. (None, None) from only one."""
    names, owner = np.unique(np.array(sources, dtype=object), return_inverse=True)
    if len(names) < 2:
        return None, None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(resampling_weights(len(names))[owner[order]], axis=0)
    half, ordered = reached[-1] / 2, values[order]
    # With an even number of chains the median is the mean of the two in the middle.
    lower = ordered[np.argmax(reached >= half, axis=0)]
    upper = ordered[np.argmax(reached > half, axis=0)]
    middles = ((lower + upper) / 2)[None]
    ((low, high),) = intervals(middles, sources=len(names)).tolist()
    return low, high
