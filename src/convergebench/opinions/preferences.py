"""Paired choices: win rates, and Bradley and Terry's strengths with intervals.

The chance that method i is preferred to j is 1 / (1 + exp(θ_j − θ_i)) (Bradley and Terry 1952). An
answer "no difference" counts as half a win for either. Strengths θ maximise the likelihood and have
mean 0. A finite maximum exists only where no group of methods beats all others in every single
comparison (Ford 1957). Where it does not, strengths are drawn in by a normal prior of standard
deviation 2 and are marked so: they then say who wins, and by how much at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.opinions.answers import PREFERENCE, counting, natural
from convergebench.opinions.means import Ends, draws, ends_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PRIOR_SD: Final = 2.0
"""Of the normal prior on strengths that data without a finite maximum need."""
RESAMPLES: Final = 1000
ROUNDS: Final = 100


@dataclass(frozen=True)
class Strength:
    """A method on Bradley and Terry's scale.

    Attributes:
        method: Which.
        theta: Strength, in log-odds; all of them have mean 0.
        low, high: 95 % interval, resampling raters and pictures.
        wald_low, wald_high: The same from the curvature of the likelihood, answers being
            independent of each other.
        wins, losses, ties: In how many comparisons.
        share: Share won, ties being half.
    """

    method: str
    theta: float
    low: float | None
    high: float | None
    wald_low: float | None
    wald_high: float | None
    wins: int
    losses: int
    ties: int
    share: float | None


@dataclass(frozen=True)
class Preferences:
    """What paired choices come to.

    Attributes:
        strengths: The strongest first.
        methods: Names of the rows and columns of `rates` and `counts`.
        rates: How often the row was preferred to the column, ties half; None where never compared.
        counts: Comparisons of the row with the column.
        comparisons, raters, images: What it is made of.
        penalised: Whether a prior had to hold strengths finite.
        separated: Share of the resamples in which it had to.
        notes: What to know.
    """

    strengths: tuple[Strength, ...]
    methods: tuple[str, ...]
    rates: tuple[tuple[float | None, ...], ...]
    counts: tuple[tuple[int, ...], ...]
    comparisons: int
    raters: int
    images: int
    penalised: bool
    separated: float
    notes: tuple[str, ...] = ()


def comparisons(answers: pl.DataFrame) -> pl.DataFrame:
    """Each comparison once, whichever side it was told from.

    Columns rater, image, one, other (methods, or chains where no methods are told), value (1 where
    `one` is preferred), and first, second, step: the two frames.
    """
    mine = counting(answers, PREFERENCE)
    # A row and its opposite are the same answer, told from either side.
    swap = pl.col("chain") > pl.col("other_chain")
    named = (pl.col("method") != "") & pl.col("other_method").fill_null("").ne("")
    one = pl.when(named).then(pl.col("method")).otherwise(pl.col("chain"))
    other = pl.when(named).then(pl.col("other_method")).otherwise(pl.col("other_chain"))
    return (
        mine.with_columns(one=one, other=other, swap=swap)
        .with_columns(
            first=pl.min_horizontal("chain", "other_chain"),
            second=pl.max_horizontal("chain", "other_chain"),
            one=pl.when("swap").then("other").otherwise("one"),
            other=pl.when("swap").then("one").otherwise("other"),
            value=pl.when("swap").then(1 - pl.col("value")).otherwise("value"),
        )
        .unique(["study", "rater", "order", "step", "first", "second"], maintain_order=True)
        .select("rater", "image", "one", "other", "value", "first", "second", "step")
    )


def fit(wins: Array, prior: float = 0.0) -> Array:
    """Strengths that maximise the likelihood, with mean 0; of many tables at once.

    Args:
        wins: How often the row beat the column: (…, m, m).
        prior: Precision of the normal prior on strengths; 0 for none.
    """
    theta = np.zeros(wins.shape[:-1])
    size = wins.shape[-1]
    games = wins + np.swapaxes(wins, -1, -2)
    won = wins.sum(axis=-1)
    eye = np.eye(size)
    # The mean is not in the likelihood; this holds it at 0 and moves nothing else.
    anchor = np.ones((size, size)) / size
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(theta[..., None, :] - theta[..., :, None]))
        gradient = won - (games * chance).sum(axis=-1) - prior * theta
        curve = games * chance * (1 - chance)
        hessian = eye * curve.sum(axis=-1)[..., None] - curve + prior * eye + anchor
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        # Newton overshoots where chances are near 0 or 1; a bounded step always comes home.
        theta = theta + np.clip(step, -1, 1)
        theta = theta - theta.mean(axis=-1, keepdims=True)
        if np.abs(step).max(initial=0) < 1e-12:
            break
    return theta


def estimable(wins: Array) -> NDArray[np.bool_]:
    """Whether every method leads to every other one along wins (Ford's condition)."""
    reach = (wins > 0) | np.eye(wins.shape[-1], dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(2, wins.shape[-1])))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    found: NDArray[np.bool_] = np.asarray(reach.all(axis=(-1, -2)))
    return found


def preferences(answers: pl.DataFrame) -> Preferences | None:
    """What the paired choices say; None where there are none."""
    table = comparisons(answers)
    notes = []
    same = table.filter(pl.col("one") == pl.col("other")).height
    if same:
        notes.append(f"{same} comparisons of a method with itself were left out.")
        table = table.filter(pl.col("one") != pl.col("other"))
    if table.is_empty():
        return None
    names = sorted({*table["one"], *table["other"]}, key=natural)
    raters, images = (
        table["rater"].unique(maintain_order=True),
        table["image"].unique(maintain_order=True),
    )
    wins, ties = _tally(table, names, list(raters), list(images))
    total = wins.sum(axis=(0, 1))
    linked = bool(estimable(total + total.T))
    penalised = not bool(estimable(total))
    if not linked:
        notes.append(
            "The methods fall into groups that were never compared with each other: strengths "
            f"compare methods of one group only. A normal prior of standard deviation {PRIOR_SD:g} "
            "holds them, and draws them towards 0."
        )
    elif penalised:
        notes.append(
            "Some methods won, or lost, every comparison with the others: their strength has no "
            f"finite estimate. A normal prior of standard deviation {PRIOR_SD:g} holds it."
        )
    prior = PRIOR_SD**-2 if penalised else 0.0
    theta = fit(total, prior)
    low, high, separated = _bootstrap(wins, theta)
    if separated and not penalised:
        notes.append(
            f"In {separated:.1%} of the resamples a method won or lost every comparison; the same "
            "prior was used there."
        )
    spread = _wald(total, theta, prior)
    strengths = []
    for at, name in enumerate(names):
        half = 1.959963984540054 * float(spread[at])
        wald = float(theta[at]) - half, float(theta[at]) + half
        games = float((total[at] + total[:, at]).sum())
        level = int(ties[at].sum())
        strengths.append(
            Strength(
                name,
                float(theta[at]),
                *_at_least((low[at], high[at]), wald, held=penalised),
                *wald,
                round(float(total[at].sum()) - level / 2),
                round(float(total[:, at].sum()) - level / 2),
                level,
                float(total[at].sum()) / games if games else None,
            )
        )
    counts = total + total.T
    return Preferences(
        strengths=tuple(sorted(strengths, key=lambda one: -one.theta)),
        methods=tuple(names),
        rates=tuple(
            tuple(
                float(total[i, j] / counts[i, j]) if counts[i, j] else None
                for j in range(len(names))
            )
            for i in range(len(names))
        ),
        counts=tuple(tuple(round(float(x)) for x in row) for row in counts),
        comparisons=table.height,
        raters=len(raters),
        images=len(images),
        penalised=penalised,
        separated=separated,
        notes=tuple(notes),
    )


def _tally(
    table: pl.DataFrame, names: list[str], raters: list[str], images: list[str]
) -> tuple[Array, Array]:
    """Wins by rater, picture, winner, loser; and ties by pair."""
    seat = {name: at for at, name in enumerate(names)}
    by = {name: at for at, name in enumerate(raters)}
    of = {name: at for at, name in enumerate(images)}
    wins = np.zeros((len(raters), len(images), len(names), len(names)))
    ties = np.zeros((len(names), len(names)))
    told = table.select("rater", "image", "one", "other", "value")
    for rater, image, one, other, value in told.iter_rows():
        a, b, r, i = seat[one], seat[other], by[rater], of[image]
        wins[r, i, a, b] += value
        wins[r, i, b, a] += 1 - value
        if value == 0.5:
            ties[a, b] += 1
            ties[b, a] += 1
    return wins, ties


def _wald(total: Array, theta: Array, prior: float) -> Array:
    """Standard errors of the strengths, from the curvature of the likelihood at its top."""
    chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
    curve = (total + total.T) * chance * (1 - chance)
    hessian = np.diag(curve.sum(axis=1)) - curve + prior * np.eye(len(theta))
    found: Array = np.sqrt(np.maximum(np.diag(np.linalg.pinv(hessian)), 0))
    return found


def _at_least(drawn: Ends, wald: tuple[float, float], *, held: bool) -> Ends:
    """The resamples' interval; no shorter than Wald's where a prior holds strengths, or all tie.

    Who won every comparison wins every comparison of every resample as well: the resamples are all
    alike, and say nothing of how far the strength could be from its estimate.
    """
    low, high = drawn
    if low is None or high is None or not (held or high - low < 1e-9):
        return drawn
    return min(low, wald[0]), max(high, wald[1])


def _bootstrap(wins: Array, theta: Array) -> tuple[list[float | None], list[float | None], float]:
    """Intervals from resampled raters and pictures, and the share of resamples that needed help."""
    raters, images, size, _ = wins.shape
    if max(raters, images) < 2:
        return [None] * size, [None] * size, 0.0
    by = draws(raters, 3, RESAMPLES)
    of = draws(images, 4, RESAMPLES)
    drawn = np.zeros((RESAMPLES, size, size))
    for image in range(images):
        part = wins[:, image].reshape(raters, -1)
        if part.any():
            drawn += (by.T @ part).reshape(RESAMPLES, size, size) * of[image][:, None, None]
    whole = estimable(drawn)
    stats = np.zeros((RESAMPLES, size))
    for mask, prior in ((whole, 0.0), (~whole, PRIOR_SD**-2)):
        if mask.any():
            stats[mask] = fit(drawn[mask], prior)
    lows: list[float | None] = []
    highs: list[float | None] = []
    for mine, strength in zip(stats.T, theta.tolist(), strict=True):
        low, high = ends_of(mine, strength, (raters, images))
        lows.append(None if low is None else min(low, strength))
        highs.append(None if high is None else max(high, strength))
    return lows, highs, float((~whole).mean())
