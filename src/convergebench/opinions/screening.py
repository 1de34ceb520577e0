"""Whose answers to trust: outliers as ITU-R BT.500 finds them, attention checks, repeats.

Recommendation ITU-R BT.500-15 (§ A1-2.3) looks at each stimulus with
mean ū, standard deviation S and kurtosis β₂ = m₄/m₂². Scores count as normally distributed where
2 ≤ β₂ ≤ 4, and a rater then stands apart who is at least 2 S away from the mean, otherwise one who
is at least √20 S away. P counts how often a rater stands above, Q how often below. A rater is
rejected who stands apart often and on both sides:

    (P + Q) / n > 0.05   and   |P − Q| / (P + Q) < 0.3

so a rater who is merely strict or mild stays. n is the number of stimuli the rater has rated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.opinions.answers import raters_of
from convergebench.opinions.matrix import Matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

OFTEN: Final = 0.05
ONE_SIDED: Final = 0.3
NEAR: Final = 2.0
FAR: Final = 20**0.5
ANSWER: Final = (
    "rater",
    "question",
    "order",
    "step",
    pl.min_horizontal("chain", "other_chain").alias("first"),
    pl.max_horizontal("chain", "other_chain").alias("second"),
)
"""What tells an answer from another; the two sides of a pair are one."""
ATTENTIVE: Final = 2 / 3
"""Share of attention checks that a rater must pass."""


@dataclass(frozen=True)
class Apart:
    """How often a rater stands apart from the others, by BT.500."""

    above: int
    below: int
    rated: int

    @property
    def share(self) -> float:
        """(P + Q) / n."""
        return (self.above + self.below) / self.rated if self.rated else 0.0

    @property
    def lean(self) -> float | None:
        """|P − Q| / (P + Q); None where the rater never stands apart."""
        both = self.above + self.below
        return abs(self.above - self.below) / both if both else None

    @property
    def rejected(self) -> bool:
        """Whether BT.500 leaves the rater out."""
        lean = self.lean
        return lean is not None and self.share > OFTEN and lean < ONE_SIDED


@dataclass(frozen=True)
class Rater:
    """One rater, and whether their answers count in the screened results.

    Attributes:
        rater: Who.
        answers: Answers given to items, repeats left out.
        apart: BT.500's counts; None where nothing was scored on a scale.
        checks, passed: Attention checks seen and passed.
        repeats: Items shown twice.
        repeat_error: Mean absolute difference between the two answers.
        mean: Mean score.
        bias: Mean of score minus the stimulus' mean opinion: how mild or strict.
        fit: Pearson's r with the mean of the other raters.
        seconds: Median time per item.
        reasons: Why the rater is left out; empty who is kept.
    """

    rater: str
    answers: int
    apart: Apart | None = None
    checks: int = 0
    passed: int = 0
    repeats: int = 0
    repeat_error: float | None = None
    mean: float | None = None
    bias: float | None = None
    fit: float | None = None
    seconds: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether nothing speaks against the rater."""
        return not self.reasons


def bt500(values: Array, *, ddof: int = 1) -> tuple[Apart, ...]:
    """P, Q and n of each rater.

    Args:
        values: Stimuli × raters; NaN is missing.
        ddof: 1 as BT.500 defines S; 0 as some programs (Netflix' sureal) have it.
    """
    if not values.size:
        return tuple(Apart(0, 0, 0) for _ in range(values.shape[1]))
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    away = np.where(known, values - np.nanmean(values, axis=1, keepdims=True), 0.0)
    second = np.sum(away**2, axis=1) / count
    fourth = np.sum(away**4, axis=1) / count
    told = (second > 1e-12) & (count > ddof)  # where all agree nobody stands apart
    kurtosis = np.divide(fourth, second**2, out=np.zeros_like(fourth), where=told)
    normal = (kurtosis >= 2) & (kurtosis <= 4)
    spread = np.sqrt(second * count / np.maximum(count - ddof, 1))
    limit = (np.where(normal, NEAR, FAR) * spread)[:, None]
    # Scores are short decimals: a tie with the limit must not hang on the last bit.
    slack = 1e-9 * np.maximum(1.0, limit)
    above = known & told[:, None] & (away >= limit - slack)
    below = known & told[:, None] & (away <= -limit + slack)
    return tuple(
        Apart(int(p), int(q), int(n))
        for p, q, n in zip(above.sum(0), below.sum(0), known.sum(0), strict=True)
    )


def raters(answers: pl.DataFrame, quality: Matrix) -> tuple[Rater, ...]:
    """Everybody who answered, with what speaks for and against them.

    Should all be left out, none is: then it is the study that is at fault, and not its raters.
    """
    known = dict(zip(quality.raters, bt500(quality.values), strict=True))
    bias, fit, mean = _places(quality)
    facts = _facts(answers)
    found = []
    for name in raters_of(answers):
        told = facts[name]
        apart = known.get(name)
        reasons = []
        if apart is not None and apart.rejected:
            reasons.append(
                f"BT.500: apart from the others on {apart.share:.1%} of the stimuli, "
                f"{apart.above} times above and {apart.below} below"
            )
        checks, passed = int(told["checks"] or 0), int(told["passed"] or 0)
        if checks and passed < ATTENTIVE * checks:
            reasons.append(f"attention: {passed} of {checks} checks passed")
        found.append(
            Rater(
                rater=name,
                answers=int(told["answers"] or 0),
                apart=apart,
                checks=checks,
                passed=passed,
                repeats=int(told["repeats"] or 0),
                repeat_error=told["repeat_error"],
                mean=mean.get(name),
                bias=bias.get(name),
                fit=fit.get(name),
                seconds=told["seconds"],
                reasons=tuple(reasons),
            )
        )
    return tuple(found)


def kept(all_raters: tuple[Rater, ...]) -> set[str]:
    """The raters that nothing speaks against; all of them where that would be nobody."""
    good = {one.rater for one in all_raters if one.kept}
    return good or {one.rater for one in all_raters}


def _facts(answers: pl.DataFrame) -> dict[str, dict[str, float | None]]:
    item, check = pl.col("kind") == "item", pl.col("kind") == "attention"
    plain = answers.group_by("rater").agg(
        answers=pl.struct(ANSWER).filter(item & pl.col("value").is_not_null()).n_unique(),
        seconds=pl.col("seconds").filter(item).median(),
    )
    # A page with five methods is one check: it is passed when all its rows are.
    checks = (
        answers.filter(check & pl.col("passed").is_not_null())
        .group_by("rater", "order", "image")
        .agg(pl.col("passed").all())
        .group_by("rater")
        .agg(checks=pl.len(), passed=pl.col("passed").sum())
    )
    again = _repeats(answers)
    table = plain.join(checks, on="rater", how="left").join(again, on="rater", how="left")
    return {row["rater"]: row for row in table.to_dicts()}


def _repeats(answers: pl.DataFrame) -> pl.DataFrame:
    """rater, repeats, repeat_error: what was rated twice, and by how much the answers differ."""
    key = ["rater", "question", "chain", "step", "other_chain"]
    mine = answers.filter(pl.col("value").is_not_null()).with_columns(
        pl.col("other_chain").fill_null("")
    )
    first = mine.filter(pl.col("kind") == "item").group_by(key).agg(pl.col("value").mean())
    again = mine.filter(pl.col("kind") == "repeat").select(*key, again="value")
    return (
        again.join(first, on=key)
        .group_by("rater")
        .agg(repeats=pl.len(), repeat_error=(pl.col("again") - pl.col("value")).abs().mean())
    )


def _places(
    quality: Matrix,
) -> tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]:
    """Each rater's bias, fit with the others, and mean score."""
    bias: dict[str, float] = {}
    fit: dict[str, float] = {}
    mean: dict[str, float] = {}
    values = quality.values
    if not values.size:
        return bias, fit, mean
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    total, count = filled.sum(axis=1), known.sum(axis=1)
    for at, name in enumerate(quality.raters):
        mine = known[:, at]
        if not mine.any():
            continue
        mean[name] = float(values[mine, at].mean())
        bias[name] = float((values[mine, at] - total[mine] / count[mine]).mean())
        shared = mine & (count > 1)
        others = (total - filled[:, at])[shared] / (count - 1)[shared]
        own = values[shared, at]
        if len(own) > 2 and np.ptp(own) > 0 and np.ptp(others) > 1e-12:
            fit[name] = float(np.corrcoef(own, others)[0, 1])
    return bias, fit, mean
