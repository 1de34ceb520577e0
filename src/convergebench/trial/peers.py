"""What others say of the same frames: full-reference metrics and people.

A full-reference metric knows home, so it knows whether a frame got worse: the *premise* of a trial.
Where it sees no loss since frame 1, a no-reference metric that sees none either is not at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.trial.gaps import FIRST
from convergebench.trial.result import Agreement, Estimate
from convergebench.trial.trends import SIGNED, over_sources

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_FRAMES: Final = 3
"""Frames of a chain that ranks are compared over at least."""

SLIGHT: Final = 0.05
"""A further loss below this share of what frame 1 has lost is none."""

CHAIN: Final = ("arm", "source", "repeat")


def spearman(one: Array, other: Array) -> float | None:
    """Spearman's ρ of two measures of the same frames, the second one's word being taken.

    0 where only the first one sees no difference between any two frames; None where the second one
    sees none, or where there are too few frames.
    """
    from scipy.stats import rankdata

    if len(one) < LEAST_FRAMES or np.ptp(other) == 0:
        return None
    if np.ptp(one) == 0:
        return 0.0
    rho = float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])
    return min(1.0, max(-1.0, rho))


def rank_agreement(mine: pl.DataFrame, theirs: pl.DataFrame) -> Estimate | None:
    """The mean of Spearman's ρ within chains, over repeats, arms and sources.

    Args:
        mine: Normalised scores of one metric's replications.
        theirs: arm, source, repeat, step, value of the other measure, larger being better.
    """
    other = theirs.filter(pl.col("value").is_finite()).select(*CHAIN, "step", other="value")
    both = (
        mine.filter(pl.col("score").is_not_null() & (pl.col("step") >= FIRST))
        .join(other, on=[*CHAIN, "step"])
        .sort(*CHAIN, "step")
        .group_by(*CHAIN, maintain_order=True)
        .agg("score", "other")
    )
    rows = [
        (arm, source, spearman(np.array(scores), np.array(values)))
        for arm, source, _, scores, values in both.iter_rows()
    ]
    schema = {"arm": pl.String(), "source": pl.String(), "rho": pl.Float64()}
    return over_sources(pl.DataFrame(rows, schema=schema, orient="row"), "rho", SIGNED)


def agreements(
    mine: pl.DataFrame, references: pl.DataFrame, ratings: pl.DataFrame
) -> tuple[Agreement, ...]:
    """How one metric ranks frames as each full-reference metric and as people do.

    Args:
        mine: Normalised scores of its replications.
        references: Oriented full-reference scores.
        ratings: People's ratings.
    """
    found = []
    for name in references["metric"].unique(maintain_order=True):
        rho = rank_agreement(mine, references.filter(pl.col("metric") == name))
        if rho is not None:
            found.append(Agreement(other=name, kind="full-reference", spearman=rho))
    for name in ratings["metric"].unique(maintain_order=True):
        rho = rank_agreement(mine, ratings.filter(pl.col("metric") == name))
        if rho is not None:
            found.append(Agreement(other=name, kind="ratings", spearman=rho))
    return tuple(found)


def premise_of(references: pl.DataFrame, cells: pl.DataFrame, steps: Sequence[int]) -> pl.DataFrame:
    """How much full-reference metrics say was lost since frame 1, as a mean over repeats.

    Args:
        references: Oriented full-reference scores.
        cells: arm, source: the cells looked at.
        steps: The later steps.

    Returns:
        Columns arm, source, metric, step, change, first (the value of frame 1); a negative change
        is a loss, in the metric's own units (of PSNR in 8-bit levels of the RMSE).
    """
    known = references.filter(pl.col("value").is_finite())
    first = known.filter(pl.col("step") == FIRST).select("metric", *CHAIN, first="value")
    order = cells.select("arm", "source").with_row_index("cell")
    return (
        known.filter(pl.col("step").is_in(list(steps)))
        .join(first, on=["metric", *CHAIN])
        .join(order, on=["arm", "source"])
        .with_columns(change=pl.col("value") - pl.col("first"))
        .group_by("cell", "arm", "source", "metric", "step")
        .agg(pl.col("change").sort().mean(), pl.col("first").sort().mean())
        .sort("cell", "metric", "step")
        .select("arm", "source", "metric", "step", "change", "first")
    )


def soundness(premise: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """By cell whether its frames really got worse: `sound`, `doubtful` or `unknown`.

    Doubtful where more than half of the full-reference metrics see no loss between frame 1 and the
    latest step that they have, or one of less than `SLIGHT` of what frame 1 had lost already. Half
    and half is sound: a loss that one measure sees is there.
    """
    slight = pl.col("change") >= -SLIGHT * pl.col("first").abs()
    latest = (
        premise.sort("step")
        .group_by("arm", "source", "metric")
        .agg(pl.col("change", "first").last())
        .group_by("arm", "source")
        .agg(unmoved=slight.mean())
    )
    word = (
        pl.when(pl.col("unmoved").is_null())
        .then(pl.lit("unknown"))
        .when(pl.col("unmoved") > 0.5)
        .then(pl.lit("doubtful"))
        .otherwise(pl.lit("sound"))
    )
    return (
        cells.select("arm", "source")
        .join(latest, on=["arm", "source"], how="left", maintain_order="left")
        .select("arm", "source", premise=word)
    )
