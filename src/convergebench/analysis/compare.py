"""Comparing editors on equal footing: common chains, one value per source, ranks with ties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.analysis.pairs import Pair, compare_pairs
from convergebench.analysis.resampling import SHARE, mean_intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PAIR: Final = ("source", "cycle", "settings", "repeat")
"""What two editors' chains must share to be compared."""


@dataclass(frozen=True)
class Ranked:
    """An editor's mean with its interval (None from a single source), and its range of ranks."""

    editor: str
    mean: float
    low: float | None
    high: float | None
    best_rank: int
    worst_rank: int


def common_chains(summaries: pl.DataFrame, editors: list[str]) -> pl.DataFrame:
    """The complete chains that every one of these editors has.

    Chains are paired by source, cycle, settings and repeat, metric by metric.
    """
    mine = summaries.filter(pl.col("editor").is_in(editors) & pl.col("complete"))
    return mine.filter(pl.col("editor").n_unique().over("metric", *PAIR) == len(editors))


def by_source(table: pl.DataFrame, column: str) -> tuple[list[str], dict[str, Array]]:
    """Per editor the mean of a column for each source, sources in one order."""
    values = {editor: mine for (_, editor), mine in by_metric(table, column).items()}
    return sorted(set(table["source"])), values


def by_metric(table: pl.DataFrame, column: str) -> dict[tuple[str, str], Array]:
    """Per metric and editor the mean of a column for each source, sources in one order."""
    # In a fixed order, because the last digit of a sum depends on it.
    means = (
        table.sort("metric", "editor", "source", "chain")
        .group_by("metric", "editor", "source", maintain_order=True)
        .agg(pl.col(column).mean())
        .group_by("metric", "editor", maintain_order=True)
        .agg(column)
    )
    return {
        (metric, editor): np.array(mine, dtype=np.float64)
        for metric, editor, mine in means.iter_rows()
    }


def rank(values: Mapping[str, Array], pairs: Sequence[Pair] | None = None) -> list[Ranked]:
    """Editors from best to worst, given each one's value per source.

    One editor is above another when their paired test says so, corrected for all pairs of these
    editors; an editor's best rank is one more than the number above it, its worst the number not
    below it.

    Args:
        values: Each editor's value per source, sources in one order.
        pairs: What `compare_pairs` answered of them, where it was asked already.

    Raises:
        ValueError: The editors' values are not over the same number of sources.
    """
    decided = compare_pairs(values) if pairs is None else pairs
    above, below = Counter[str](), Counter[str]()
    for pair in decided:
        if pair.winner:
            above[pair.loser] += 1
            below[pair.winner] += 1
    ends = mean_intervals(list(values.values()), SHARE)
    ranked = [
        Ranked(name, float(mine.mean()), low, high, above[name] + 1, len(values) - below[name])
        for (name, mine), (low, high) in zip(values.items(), ends, strict=True)
    ]
    return sorted(ranked, key=lambda r: (-r.mean, r.editor))
