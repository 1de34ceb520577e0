"""What a trial is made of: scores of chains under their arms, and how each metric is to be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import polars as pl

KEYS: Final = ("metric", "arm", "source", "kind", "repeat", "step")

SCORES: Final[dict[str, pl.DataType]] = {
    "metric": pl.String(),
    "arm": pl.String(),
    "source": pl.String(),
    "kind": pl.String(),
    "repeat": pl.Int32(),
    "step": pl.Int32(),
    "value": pl.Float64(),
}
"""Columns of scores as measured; `value` is null where a frame is there and its score is not."""

REFERENCES: Final[dict[str, pl.DataType]] = {
    name: SCORES[name] for name in ("metric", "arm", "source", "repeat", "step", "value")
}
"""Columns of full-reference scores against home, oriented so that larger is better: minus the
distance from what identical pictures have, so 0 is home itself. Ratings have the same columns."""

CELLS: Final[dict[str, pl.DataType]] = {"arm": pl.String(), "source": pl.String()}


FAR: Final = 1000.0
"""Distances between the quartiles of all scores that one beyond them is at most away: what is
further off is no part of the range of a metric that has none of its own."""


@dataclass(frozen=True)
class Tried:
    """A metric on trial.

    Attributes:
        name: Its name.
        version: Its version; that of scores from elsewhere is empty.
        title: One line.
        origin: Where its scores are from: `an installed metric`, `file …`, `command …`.
        higher_is_better: Its direction.
        typical: The range that is mapped to 0 to 100; the data's own where there is none.
    """

    name: str
    version: str = ""
    title: str = ""
    origin: str = "an installed metric"
    higher_is_better: bool = True
    typical: tuple[float, float] | None = None


@dataclass(frozen=True)
class Material:
    """All that a trial is judged from.

    Attributes:
        title: The runs.
        arms: Arms of kind `replicate` that verdicts are on, in order.
        controls: Arms of kind `replicate` that are controls.
        cells: arm, source: every cell there should be, in order; controls too.
        longest: How many steps chains should have.
        tried: The metrics.
        scores: Their scores (`SCORES`), of kind `replicate` and `accumulate`.
        references: Full-reference scores (`REFERENCES`).
        ratings: People's ratings, the same columns; `metric` is the name of their file.
        notes: What a reader must know, a sentence each.
    """

    title: str
    arms: tuple[str, ...]
    controls: tuple[str, ...]
    cells: pl.DataFrame
    longest: int
    tried: tuple[Tried, ...]
    scores: pl.DataFrame
    references: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REFERENCES))
    ratings: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REFERENCES))
    notes: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The initial images of the arms, in order."""
        mine = self.cells.filter(pl.col("arm").is_in(self.arms))
        return tuple(mine["source"].unique(maintain_order=True))


@dataclass(frozen=True)
class Scale:
    """What is mapped to 0 to 100; `given` is False where it is the range of the data."""

    low: float
    high: float
    higher_is_better: bool
    given: bool

    def normalised(self, value: pl.Expr) -> pl.Expr:
        """Scores from 0 to 100, the higher the better; those outside the range lie outside."""
        share = (value - self.low) / (self.high - self.low) * 100
        return share if self.higher_is_better else 100 - share


def scale_of(tried: Tried, values: pl.Series) -> Scale:
    """How a metric's scores are normalised.

    By its typical range; without one by the least and greatest of its scores here, those aside
    that are `FAR` off: one frame with a score of 1e10 would leave no difference between all others.
    The sign of a gap, and so every verdict, is the same by either.
    """
    if tried.typical is not None:
        return Scale(*tried.typical, tried.higher_is_better, True)
    known = _near(values.drop_nulls())
    ends = known.min(), known.max()
    low, high = (float(end) if isinstance(end, int | float) else 0.0 for end in ends)
    return Scale(low, high if high > low else low + 1.0, tried.higher_is_better, False)


def _near(values: pl.Series) -> pl.Series:
    """The values without those that are far off the others; all where most are the same."""
    ends = values.quantile(0.25), values.quantile(0.75)
    low, high = (0.0 if end is None else end for end in ends)
    reach = FAR * (high - low)
    return values.filter(values.is_between(low - reach, high + reach)) if reach > 0 else values


def normalised(material: Material) -> tuple[pl.DataFrame, dict[str, Scale]]:
    """All scores with the column `score`, from 0 to 100; and the scale of each metric.

    What is not finite is no score: null.
    """
    finite = pl.when(pl.col("value").is_finite()).then(pl.col("value"))
    scores = material.scores.select(*SCORES).with_columns(value=finite)
    scales, parts = {}, []
    for tried in material.tried:
        mine = scores.filter(pl.col("metric") == tried.name)
        scales[tried.name] = scale = scale_of(tried, mine["value"])
        mine = mine.with_columns(score=scale.normalised(pl.col("value")))
        # A value near the end of what floats can hold has no place on a scale of 100.
        there = pl.col("score").is_finite()
        parts.append(mine.with_columns(pl.when(there).then(pl.col("value", "score"))))
    empty = scores.clear().with_columns(score=pl.lit(None, dtype=pl.Float64()))
    return pl.concat([empty, *parts]).select(*KEYS, "score", "value"), scales
