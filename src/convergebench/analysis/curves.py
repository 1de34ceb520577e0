"""Findings by metric and editor: the points of the curves, AUCs and half-lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from convergebench.analysis.compare import by_metric, intervals, mean_interval, resampling_weights
from convergebench.analysis.findings import HEADLINE, Finding
from convergebench.analysis.survival import survival


class Planned(NamedTuple):
    """Of one metric and editor: chains that should have values, failed ones, and the longest N."""

    chains: int
    failed: int
    rounds: int


Plans = Mapping[tuple[str, str], Planned]


def curve_findings(
    kind: str, values: pl.DataFrame, column: str, grid: pl.DataFrame
) -> list[Finding]:
    """The mean of a column per metric, editor and round, of every homecoming expected.

    Args:
        kind: First part of the ids.
        values: Columns metric, chain, n and the one asked for.
        column: The one asked for.
        grid: What `expected` answered, of the metrics asked for.
    """
    joined = grid.join(
        values.select("metric", "chain", "n", value=pl.col(column)),
        on=["metric", "chain", "n"],
        how="left",
    )
    finite = pl.col("value").is_finite()
    points = (
        joined.sort("metric", "editor", "n", "chain")
        .group_by("metric", "editor", "n", maintain_order=True)
        .agg(
            mean=pl.col("value").filter(finite).mean(),
            count=finite.sum(),
            infinite=pl.col("value").is_infinite().sum(),
            planned=pl.len(),
            failed=pl.col("failed").sum(),
        )
    )
    bands = _bands(joined.filter(finite)) if kind == "convergence" else {}
    return [
        Finding(
            id=f"{kind}/{metric}/{editor}/{n}",
            estimate=mean,
            low=bands.get((metric, editor, n), (None, None))[0],
            high=bands.get((metric, editor, n), (None, None))[1],
            n=count,
            missing=planned - count - infinite,
            failed=failed,
            infinite=infinite,
            note=_infinite(metric, infinite),
            metric=metric,
            editor=editor,
            round=n,
        )
        for metric, editor, n, mean, count, infinite, planned, failed in points.iter_rows()
    ]


def _infinite(metric: str, count: int) -> str:
    if not count:
        return ""
    what = "identical to home, so infinite" if metric.partition("-")[0] == "psnr" else "infinite"
    return f"{count} more {what}, not in the mean"


def _bands(rows: pl.DataFrame) -> dict[tuple[str, str, int], tuple[float, float]]:
    """95 % intervals of mean curves; none where fewer than two sources have a value.

    Whole curves are resampled by source: the mean over chains of a resample is the sum of its
    sources' sums over the sum of their counts.
    """
    curves = (
        rows.group_by("metric", "editor", "source", "n")
        .agg(pl.col("value").sum(), pl.len().alias("count"))
        .sort("metric", "editor", "source", "n")
        .group_by("metric", "editor", maintain_order=True)
        .agg("source", "n", "value", "count")
    )
    found: dict[tuple[str, str, int], tuple[float, float]] = {}
    weights = cache(resampling_weights)
    for metric, editor, source, n, value, count in curves.iter_rows():
        sources, row = np.unique(np.array(source), return_inverse=True)
        rounds, column = np.unique(np.array(n), return_inverse=True)
        if len(sources) < 2:
            continue
        sums = np.zeros((len(sources), len(rounds)))
        counts = np.zeros_like(sums)
        sums[row, column], counts[row, column] = value, count
        drawn = weights(len(sources))
        # Not `@`: for matrices this small the threads of BLAS cost ten times the sums.
        above, below = (np.einsum("sn,sr->nr", cells, drawn) for cells in (sums, counts))
        # A resample without a chain at a round has no mean there, and is left out.
        means = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
        ends = intervals(means).tolist()
        for i in np.flatnonzero((counts > 0).sum(axis=0) > 1).tolist():
            found[metric, editor, int(rounds[i])] = (ends[i][0], ends[i][1])
    return found


def auc_findings(summaries: pl.DataFrame, planned: Plans) -> list[Finding]:
    """The mean AUC of each editor's own complete chains, by metric, each source counting once."""
    whole = summaries.filter(pl.col("auc").is_not_null())
    values = by_metric(whole, "auc")
    counts = Counter(whole.select("metric", "editor").iter_rows())
    found = []
    for (metric, editor), plan in planned.items():
        if metric == HEADLINE:
            continue
        mine = values.get((metric, editor))
        low, high = (None, None) if mine is None else mean_interval(mine)
        n = counts[metric, editor]
        found.append(
            Finding(
                id=f"auc/{metric}/{editor}",
                estimate=None if mine is None else float(mine.mean()),
                low=low,
                high=high,
                n=n,
                missing=plan.chains - n,
                failed=plan.failed,
                metric=metric,
                editor=editor,
            )
        )
    return found


def life_findings(
    summaries: pl.DataFrame, planned: Plans, prefix: str = ""
) -> tuple[list[Finding], dict[str, dict[str, str]]]:
    """Half-lives and restricted means, by metric and editor; and the former as printed."""
    lives = {
        (metric, editor): (times, fell)
        for metric, editor, times, fell in summaries.filter(pl.col("followed") > 0)
        .group_by("metric", "editor")
        .agg("half_life", "fell")
        .iter_rows()
    }
    found: list[Finding] = []
    printed: dict[str, dict[str, str]] = {}
    for (metric, editor), plan in planned.items():
        times, fell = lives.get((metric, editor), ([], []))
        curve = survival(times, fell, plan.rounds)
        lost = plan.chains - len(times)
        words = [f"{curve.censored} censored"] if curve else []
        if curve and curve.median is None:
            words.append(f"half-life {curve.label}")
        if curve:
            printed.setdefault(editor, {})[metric] = curve.label
        if lost:
            words.append(f"{lost} without a first homecoming left out")
        until = f"up to round {curve.horizon:g}" if curve else "no chain to follow"
        for kind, estimate, missing, note in (
            ("half-life", curve and curve.median, curve.censored if curve else 0, ", ".join(words)),
            ("restricted-mean", curve and curve.restricted_mean, lost, until),
        ):
            found.append(
                Finding(
                    id=f"{prefix}{kind}/{metric}/{editor}",
                    estimate=estimate,
                    n=len(times),
                    missing=missing,
                    failed=plan.failed,
                    note=note,
                    metric=metric,
                    editor=editor,
                )
            )
    return found, printed


def planned_chains(table: pl.DataFrame, semantic: Mapping[str, bool]) -> Plans:
    """How many chains should have values of each metric, and how many of them failed.

    Args:
        table: What `chain_table` answered.
        semantic: The metrics (or dimensions) asked for, and whether content is enough for them.
    """
    found: dict[tuple[str, str], Planned] = {}
    homes = table.filter(pl.col("has_home"))
    for metric, content in sorted(semantic.items()):
        mine = homes if content else homes.filter(~pl.col("content_only"))
        counts = mine.group_by("editor").agg(pl.len(), pl.sum("failed"), pl.max("rounds"))
        for editor, *rest in counts.sort("editor").iter_rows():
            found[metric, editor] = Planned(*rest)
    return found
