"""From curves to one line per chain and metric, and to the two dimensions of convergence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from convergebench.analysis.convergence import checked_threshold, half_life
from convergebench.analysis.findings import DIMENSIONS, HEADLINE

KEYS: Final = ("metric", "chain", "source", "cycle", "editor", "settings", "repeat")

SUMMARY_COLUMNS: Final[dict[str, pl.DataType]] = {
    "metric": pl.String(),
    "chain": pl.String(),
    "source": pl.String(),
    "cycle": pl.String(),
    "editor": pl.String(),
    "settings": pl.String(),
    "repeat": pl.Int32(),
    "rounds": pl.Int32(),
    "gaps": pl.Int32(),
    "followed": pl.Int32(),
    "auc": pl.Float64(),
    "half_life": pl.Float64(),
    "fell": pl.Boolean(),
    "complete": pl.Boolean(),
}
"""Columns of `chain_summaries`."""


def chain_summaries(
    curves: pl.DataFrame,
    threshold: float = 0.5,
    *,
    rounds: Mapping[str, int] | None = None,
    interpolate: bool = True,
) -> pl.DataFrame:
    """Per chain and metric: AUC (mean of C), half-life, whether it fell, and completeness.

    A chain is complete when it came home N times and every homecoming has a value. Only complete
    chains have an AUC, which is defined over all of 1..N. A half-life is followed up to the first
    homecoming without a value and censored there.

    Args:
        curves: Columns `KEYS`, n and c; a homecoming without a row is one without a value.
        threshold: Where a half-life is read off.
        rounds: N of each chain; without it, that of the longest chain of its cycle and settings.
        interpolate: Whether half-lives lie between rounds.

    Returns:
        Columns `SUMMARY_COLUMNS`: `rounds` is how often the chain came home, `gaps` how many of
        these homecomings have no value, `followed` how many have one before the first gap.
    """
    checked_threshold(threshold)
    longest = pl.col("n").max().over("metric", "cycle", "settings")
    if rounds is not None:
        ends = {name: count for name, count in rounds.items() if count > 0}
        schema = {"chain": pl.String(), "end": pl.Int32()}
        table = pl.DataFrame({"chain": list(ends), "end": list(ends.values())}, schema=schema)
        limited = curves.join(table, on="chain")
    else:
        limited = curves.with_columns(end=longest)
    grouped = (
        limited.filter(pl.col("n") <= pl.col("end"))
        .sort("n")
        .group_by(*KEYS, "end", maintain_order=True)
        .agg("n", "c")
        .sort(*KEYS)
    )
    rows = []
    for *key, end, ns, cs in grouped.iter_rows():
        row: dict[str, Any] = dict(zip(KEYS, key, strict=True))
        rows.append(row | _summary(dict(zip(ns, cs, strict=True)), end, threshold, interpolate))
    return pl.DataFrame(rows, schema=SUMMARY_COLUMNS)


def _summary(
    curve: Mapping[int, float | None], end: int, threshold: float, interpolate: bool
) -> dict[str, Any]:
    last = max(curve)
    values = [curve.get(n) for n in range(1, last + 1)]
    known = [value for value in values if value is not None]
    start = known[: values.index(None)] if None in values else known
    life, fell = half_life(start, threshold, interpolate=interpolate)
    complete = len(known) == end
    return {
        "rounds": last,
        "gaps": last - len(known),
        "followed": len(start),
        "auc": math.fsum(known) / end if complete else None,
        "half_life": life,
        "fell": fell,
        "complete": complete,
    }


def dimension_curves(curves: pl.DataFrame) -> pl.DataFrame:
    """The curves of the dimensions all of whose metrics are there, as metrics of their own.

    C of a dimension is the median over its metrics; null where one of them has no value.
    """
    there = set(curves["metric"].unique())
    who = [name for name in KEYS if name != "metric"]
    parts = [
        curves.filter(pl.col("metric").is_in(needed))
        .group_by(*who, "n")
        .agg(
            c=pl.when(pl.col("c").count() == len(needed)).then(pl.col("c").median()),
        )
        .select(pl.lit(dimension).alias("metric"), *who, "n", "c")
        for dimension, needed in DIMENSIONS.items()
        if there.issuperset(needed)
    ]
    empty = curves.select(*KEYS, "n", "c").clear()
    return pl.concat([empty, *parts]).sort(*KEYS, "n")


def headline_curves(curves: pl.DataFrame) -> pl.DataFrame:
    """The lesser of the two dimensions at each homecoming: converged only while both hold.

    Args:
        curves: With the dimensions, as `dimension_curves` answers; null where one has no value.
    """
    who = [name for name in KEYS if name != "metric"]
    both = pl.col("c").count() == len(DIMENSIONS)
    return (
        curves.filter(pl.col("metric").is_in(list(DIMENSIONS)))
        .group_by(*who, "n")
        .agg(pl.len().alias("there"), c=pl.when(both).then(pl.col("c").min()))
        .filter(pl.col("there") == len(DIMENSIONS))
        .select(pl.lit(HEADLINE).alias("metric"), *who, "n", "c")
        .sort(*KEYS, "n")
    )


def headline_summaries(summaries: pl.DataFrame) -> pl.DataFrame:
    """The time until the first dimension falls, per chain; empty unless both are there.

    A chain is followed as long as both dimensions are. The AUC is that of `headline_curves`, where
    the summaries have it.
    """
    names = list(DIMENSIONS)
    both = summaries.filter(pl.col("metric").is_in(names))
    both = both.filter(pl.len().over("chain") == len(names))
    # Of two equal times the one that fell counts.
    first = both.sort("half_life", ~pl.col("fell")).unique(
        "chain", keep="first", maintain_order=True
    )
    aucs = summaries.filter(pl.col("metric") == HEADLINE).select("chain", "auc")
    least = both.group_by("chain").agg(
        pl.col("rounds", "followed").min(), pl.col("gaps").max(), pl.col("complete").all()
    )
    return (
        first.drop("rounds", "followed", "gaps", "complete", "auc")
        .join(least, on="chain")
        .join(aucs, on="chain", how="left")
        .with_columns(metric=pl.lit(HEADLINE))
        .select(list(SUMMARY_COLUMNS))
        .sort(*KEYS)
    )
