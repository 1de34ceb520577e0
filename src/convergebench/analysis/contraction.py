"""Contraction: whether a chain settles, drifts on or diverges, from the size of its rounds.

d(n) is the distance between homecomings n and n − 1, where homecoming 0 is frame 0. The contraction
factor λ is the exponential of the Theil-Sen slope of log d(n) over n. By Banach's theorem an editor
whose rounds shrink by a factor below 1 has a picture that it no longer changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from convergebench.analysis.convergence import best, current, oriented
from convergebench.analysis.findings import Finding
from convergebench.analysis.roster import IDENTITY, homecomings
from convergebench.analysis.rounds import mean_finding, median_interval, round_means
from convergebench.analysis.study import Study
from convergebench.comparisons import BETWEEN_HOMECOMINGS
from convergebench.wording import counted

FEWEST: Final = 3
"""Distances above 0 that a slope needs."""
NEAR: Final = 0.02
"""A factor within this of 1 is a drift, however narrow its interval."""

NO_VERDICT: Final = "one source gives no verdict"

UNITS: Final = {"psnr": "RMSE in 8-bit levels", "ssim": "1 − SSIM", "lpips": "LPIPS"}


def homecoming_distances(study: Study) -> pl.DataFrame:
    """The distance of each homecoming from the one before, by metric.

    Returns:
        Columns metric, chain …, n and value: 0 for identical pictures, null where there is no
        score. PSNR gives the RMSE in 8-bit levels, SSIM 1 − SSIM, LPIPS itself.
    """
    specs = {name: spec for name, spec in study.specs.items() if name in BETWEEN_HOMECOMINGS}
    cycles = {name: study.gathered.suite.cycle_of(name) for name in set(study.chains["cycle"])}
    single = [name for name, cycle in cycles.items() if cycle.period == 1]
    rows = (
        current(study.scores, specs)
        .filter((pl.col("where") == "all") & pl.col("against").is_in(["homecoming", "previous"]))
        .join(homecomings(study.gathered.chains, study.gathered.suite), on=["chain", "step"])
        .join(study.chains.select(*IDENTITY), on="chain")
        .filter((pl.col("against") == "previous") == pl.col("cycle").is_in(single))
    )
    parts = [
        rows.filter(pl.col("metric") == name).with_columns(
            value=(top - oriented(spec, pl.col("value").fill_nan(None))).clip(lower_bound=0.0)
        )
        for name, spec in specs.items()
        if (top := best(spec)) is not None
    ]
    found = pl.concat(parts) if parts else rows.clear()
    return found.select("metric", *IDENTITY, "n", "value").sort("metric", "editor", "chain", "n")


def contraction_factor(distances: Sequence[float], rounds: Sequence[int]) -> float | None:
    """λ of one chain: exp of the Theil-Sen slope of log d over n.

    Distances of 0 have no logarithm and are left out. A chain has come to rest, and λ is 0, where
    the last three distances are 0, or the last is and fewer than three others are above 0. With
    fewer than three above 0 and no rest it is None: too few to tell.
    """
    sizes = np.array(distances, dtype=np.float64)
    positive = sizes > 0
    if np.count_nonzero(positive) >= FEWEST and positive[-FEWEST:].any():
        at, logs = np.array(rounds, dtype=np.float64)[positive], np.log(sizes[positive])
        # As `scipy.stats.theilslopes` has it, which takes a second to import.
        one, other = np.triu_indices(len(at), 1)
        return math.exp(np.median((logs[other] - logs[one]) / (at[other] - at[one])))
    rested = len(distances) >= FEWEST and distances[-1] == 0
    return 0.0 if rested else None


def contractions(study: Study, distances: pl.DataFrame | None = None) -> pl.DataFrame:
    """One row per chain and metric that has distances.

    Args:
        study: The study.
        distances: What `homecoming_distances` answered of it, where it was asked already.

    Returns:
        Columns metric, chain …, factor (null where too few distances are there), distances, zeros.
    """
    rows = []
    every = homecoming_distances(study) if distances is None else distances
    known = every.filter(pl.col("value").is_not_null())
    keys = ("metric", *IDENTITY)
    for *key, ns, values in known.group_by(*keys, maintain_order=True).agg("n", "value").rows():
        zeros = sum(value == 0 for value in values)
        rows.append((*key, contraction_factor(values, ns), len(values), zeros))
    schema = {name: known.schema[name] for name in keys}
    schema |= {"factor": pl.Float64(), "distances": pl.Int32(), "zeros": pl.Int32()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def verdict(factor: float, low: float | None, high: float | None) -> str:
    """`settles`, `drifts` or `diverges`: away from 1 by 2 %, and by the whole interval.

    Without an interval nothing is known of other sources, so there is no verdict.
    """
    if low is None or high is None:
        return NO_VERDICT
    if factor <= 1 - NEAR and high < 1:
        return "settles"
    if factor >= 1 + NEAR and low > 1:
        return "diverges"
    return "drifts"


def contraction_findings(study: Study) -> list[Finding]:
    """Per metric and editor the median λ over chains, and the mean distance at each round."""
    distances = homecoming_distances(study)
    table = contractions(study, distances)
    planned = study.planned(table.select("metric").unique())
    found = []
    for (metric, editor), plan in planned.items():
        mine = table.filter((pl.col("metric") == metric) & (pl.col("editor") == editor))
        told = mine.filter(pl.col("factor").is_not_null()).sort("chain")
        factors = told["factor"].to_numpy()
        middle = float(np.median(factors)) if len(told) else None
        low, high = median_interval(factors, told["source"].to_list())
        found.append(
            Finding(
                id=f"contraction/{metric}/{editor}",
                estimate=middle,
                low=low,
                high=high,
                n=len(told),
                missing=plan.chains - len(told),
                failed=plan.failed,
                refused=plan.refused,
                note=_note(middle, low, high, mine),
                metric=metric,
                editor=editor,
            )
        )
    return [*found, *_distances(study, distances)]


def _note(middle: float | None, low: float | None, high: float | None, mine: pl.DataFrame) -> str:
    words = [] if middle is None else [verdict(middle, low, high)]
    short = mine["factor"].null_count()
    if short:
        words.append(f"{counted(short, 'chain')} with fewer than {FEWEST} distances left out")
    still = mine.filter(pl.col("factor") == 0)
    if len(still):
        words.append(f"{counted(len(still), 'chain')} came to rest, which counts as 0")
    zeros = int(mine.filter(pl.col("factor") > 0)["zeros"].sum())
    if zeros:
        words.append(f"{counted(zeros, 'distance')} of 0 left out of the slopes")
    return "; ".join(words)


def _distances(study: Study, values: pl.DataFrame) -> list[Finding]:
    there = sorted(set(values["metric"]))
    grid = study.grid.filter(pl.col("metric").is_in(there))
    return [
        mean_finding(
            row,
            f"distance/{row['metric']}/{row['editor']}/{row['n']}",
            metric=row["metric"],
            editor=row["editor"],
            round=row["n"],
            note=UNITS.get(row["metric"], ""),
        )
        for row in round_means(values, grid, ["metric", "editor", "n"]).iter_rows(named=True)
    ]
