"""Scores as a matrix, stimuli × raters: what most statistics of ratings are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from convergebench.opinions.answers import counting, natural, raters_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Stimulus = tuple[str, int]
"""What was rated: a chain and the step of its frame."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Answers to one question, a row per stimulus and a column per rater; NaN is missing.

    Attributes:
        stimuli: Chain and step of each row.
        images: The source picture of each row.
        methods: The method of each row; empty where nobody tells.
        raters: The raters, in a natural order.
        values: The answers. Of several by one rater to one stimulus, their mean.
    """

    stimuli: tuple[Stimulus, ...]
    images: tuple[str, ...]
    methods: tuple[str, ...]
    raters: tuple[str, ...]
    values: Array

    def of(self, raters: set[str]) -> Matrix:
        """The same with only some of the raters; stimuli that nobody of them rated are gone."""
        keep = np.array([name in raters for name in self.raters], dtype=bool)
        values = self.values[:, keep]
        rows = np.flatnonzero(~np.isnan(values).all(axis=1)).tolist() if values.size else []
        return Matrix(
            tuple(self.stimuli[i] for i in rows),
            tuple(self.images[i] for i in rows),
            tuple(self.methods[i] for i in rows),
            tuple(name for name, kept in zip(self.raters, keep, strict=True) if kept),
            values[rows] if len(rows) else np.zeros((0, int(keep.sum()))),
        )

    @property
    def answers(self) -> int:
        """How many cells are filled."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    @property
    def means(self) -> Array:
        """The mean over raters of each stimulus."""
        if not self.values.size:
            return np.zeros(len(self.stimuli))
        found: Array = np.nanmean(self.values, axis=1)
        return found

    def method_names(self) -> tuple[str, ...]:
        """The methods in order of their first row, the nameless one left out."""
        return tuple(dict.fromkeys(name for name in self.methods if name))

    def image_names(self) -> tuple[str, ...]:
        """The pictures, in order of their first row."""
        return tuple(dict.fromkeys(self.images))


def matrix_of(answers: pl.DataFrame, question: str) -> Matrix:
    """The answers to a question that count, as a matrix."""
    mine = counting(answers, question)
    rows = (
        mine.group_by("chain", "step", "rater")
        .agg(pl.col("value").mean(), pl.col("image", "method").first())
        .sort("method", "image", "chain", "step")
    )
    raters = tuple(raters_of(mine))
    heads = rows.unique(["chain", "step"], keep="first", maintain_order=True)
    table = [
        (chain, step, image, method)
        for chain, step, image, method in heads.select("chain", "step", "image", "method").rows()
    ]
    table.sort(key=lambda row: tuple(natural(str(word)) for word in (row[3], row[2], row[0])))
    place = {(chain, step): at for at, (chain, step, _, _) in enumerate(table)}
    seat = {name: at for at, name in enumerate(raters)}
    values = np.full((len(table), len(raters)), np.nan)
    if rows.height:
        at = [place[key] for key in rows.select("chain", "step").iter_rows()]
        by = [seat[name] for name in rows["rater"].to_list()]
        values[at, by] = rows["value"].to_numpy()
    return Matrix(
        tuple((chain, step) for chain, step, _, _ in table),
        tuple(image for _, _, image, _ in table),
        tuple(method for *_, method in table),
        raters,
        values,
    )
