"""Gaps: how a later frame is scored against frame 1, averaged over repeats and one by one.

    Δi = score(step i) − score(step 1)

of normalised scores. A gap of 0 or more is a failure: the later frame is worse, and the metric
does not say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.trial.result import Sensitivity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FIRST: Final = 1
"""The step that later ones are compared with: 1, so that the first crop is no confounder."""

FIRSTS: Final = (1, 2, 3)
LATER_FROM: Final = 5
"""Other choices of steps that are looked at: any of `FIRSTS`, and any from `LATER_FROM` on."""

ROUNDING: Final = 1e-9
"""Gaps this near to 0, on a scale of 100, are 0: means of floats seldom cancel out exactly."""

CELL: Final = ("metric", "arm", "source")


def individual_gaps(scores: pl.DataFrame, steps: Sequence[int]) -> pl.DataFrame:
    """The gaps of every repeat that has both frames: metric, arm, source, repeat, step, gap.

    Args:
        scores: Normalised scores of replications.
        steps: The later steps.
    """
    known = scores.filter(pl.col("score").is_not_null())
    chain = [*CELL, "repeat"]
    first = known.filter(pl.col("step") == FIRST).select(*chain, first="score")
    later = known.filter(pl.col("step").is_in(list(steps)))
    return (
        later.join(first, on=chain)
        .select(*chain, "step", gap=pl.col("score") - pl.col("first"))
        .sort(*chain, "step")
    )


def mean_gaps(
    individual: pl.DataFrame, cells: pl.DataFrame, metrics: Sequence[str], steps: Sequence[int]
) -> pl.DataFrame:
    """The gap of every cell and step that should be there: the mean over repeats.

    Args:
        individual: What `individual_gaps` answered.
        cells: arm, source: every cell there should be.
        metrics: Every metric.
        steps: The later steps.

    Returns:
        Columns metric, arm, source, step, gap, repeats, low, high, failed; gap and failed are null
        where no repeat has both frames.
    """
    means = individual.group_by(*CELL, "step").agg(
        gap=pl.col("gap").sort().mean(),  # in a fixed order: the last digit depends on it
        repeats=pl.len().cast(pl.Int32),
        low=pl.col("gap").min(),
        high=pl.col("gap").max(),
    )
    grid = (
        pl.DataFrame({"metric": list(metrics)}, schema={"metric": pl.String()})
        .join(cells.select("arm", "source"), how="cross")
        .join(pl.DataFrame({"step": list(steps)}, schema={"step": pl.Int32()}), how="cross")
    )
    return (
        grid.join(means, on=[*CELL, "step"], how="left", maintain_order="left")
        .with_columns(pl.col("repeats").fill_null(0), failed=pl.col("gap") > -ROUNDING)
        .select(*CELL, "step", "gap", "repeats", "low", "high", "failed")
    )


def success_of(gaps: pl.DataFrame) -> pl.DataFrame:
    """By cell how many gaps fail, how many are known, and the verdict."""
    counts = gaps.group_by(*CELL, maintain_order=True).agg(
        failures=pl.col("failed").sum().cast(pl.Int32),  # null is no failure, and no success
        known=pl.col("failed").count().cast(pl.Int32),
        wanted=pl.len(),
    )
    verdict = (
        pl.when(pl.col("failures") > 0)
        .then(pl.lit("failure"))
        .when(pl.col("known") < pl.col("wanted"))
        .then(pl.lit("incomplete"))
        .otherwise(pl.lit("success"))
    )
    return counts.with_columns(verdict=verdict).drop("wanted")


def sensitivity_of(scores: pl.DataFrame, longest: int) -> Sensitivity | None:
    """What any other choice of the two steps would have said of one metric.

    Args:
        scores: Normalised scores of its replications.
        longest: How many steps chains have.

    Returns:
        None where no choice has a gap that is known.
    """
    shares: dict[tuple[int, int], float] = {}
    known = scores.filter(pl.col("score").is_not_null() & pl.col("step").is_between(1, longest))
    by_cell = _matrices(known, longest)
    for first in FIRSTS:
        later = np.arange(max(LATER_FROM, first + 1), longest + 1)
        if not by_cell or not len(later):
            continue
        gaps = np.stack([_mean_over_repeats(m[:, later] - m[:, [first]]) for m in by_cell])
        there = ~np.isnan(gaps)
        failing = np.count_nonzero(there & (np.nan_to_num(gaps, nan=-1.0) > -ROUNDING), axis=0)
        count = np.count_nonzero(there, axis=0)
        for step, fails, of in zip(later.tolist(), failing.tolist(), count.tolist(), strict=True):
            if of:
                shares[first, step] = fails / of
    if not shares:
        return None
    worst = max(shares, key=lambda pair: shares[pair])
    failing_pairs = sum(share > 0 for share in shares.values())
    return Sensitivity(
        pairs=len(shares),
        failing=failing_pairs,
        worst=worst if failing_pairs else None,
        worst_share=shares[worst],
    )


def _matrices(known: pl.DataFrame, longest: int) -> list[Array]:
    """Per cell its scores: a row per repeat, a column per step, NaN where there is none."""
    found = []
    for _, cell in known.group_by("arm", "source", maintain_order=True):
        repeats, row = np.unique(cell["repeat"].to_numpy(), return_inverse=True)
        matrix = np.full((len(repeats), longest + 1), np.nan)
        matrix[row, cell["step"].to_numpy()] = cell["score"].to_numpy()
        found.append(matrix)
    return found


def _mean_over_repeats(gaps: Array) -> Array:
    """The mean of each column, NaN aside; NaN where a column has nothing else."""
    there = ~np.isnan(gaps)
    count = np.count_nonzero(there, axis=0)
    total = np.where(there, gaps, 0.0).sum(axis=0)
    found: Array = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return found
