"""Metrics that one of several runs has only in another version: they cannot rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from convergebench.analysis.published import IS_PUBLISHED
from convergebench.comparisons import FLOOR_PREFIX
from convergebench.gathering import Gathered
from convergebench.metric import MetricSpec

SCORED: Final = (
    ~IS_PUBLISHED
    & ~pl.col("chain").str.starts_with(FLOOR_PREFIX)
    & (pl.col("against") == "home")
    & (pl.col("where") == "all")
)


def stale_metrics(
    gathered: Gathered, specs: Mapping[str, MetricSpec]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Per metric the runs that have no score of the installed version, and which they have.

    Of a single run nothing: it is on equal footing with itself, and its notes tell the same.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for run in gathered.runs if gathered.several else ():
        rows = run.scores.filter(SCORED).select("metric", "version").unique()
        for name, spec in specs.items():
            versions = sorted(rows.filter(pl.col("metric") == name)["version"])
            if versions and spec.version not in versions:
                found.setdefault(name, {})[run.name] = tuple(versions)
    return found
