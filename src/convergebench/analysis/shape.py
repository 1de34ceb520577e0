"""The shape of a convergence curve: linear, exponential, plateau or cliff, chosen by AICc.

    linear        C(n) = max(0, 1 − b·n)
    exponential   C(n) = exp(−k·n)
    plateau       C(n) = a + (1 − a)·exp(−k·n),  a ≥ 0.05
    cliff         C(n) = h up to some round, l later, at most one round in between

All but the cliff pass through C(0) = 1, which is known and no datum; the data are C(1) … C(N). Fits
are by least squares, and the smallest AICc = N·ln(RSS / N) + 2K + 2K(K + 1) / (N − K − 1) wins,
where K counts the parameters and the variance. A curve that reaches 0 is used up to its first 0: C
is cut off there, and more zeros say nothing of the way down. They do say that a fall was one, so of
a curve that falls early the first `WINDOW` values are used. What has lost all but `LEVEL` by the
first homecoming, and never comes back, is a cliff whatever fits it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.analysis.findings import DIMENSIONS, RANKED_BY, Finding
from convergebench.analysis.resampling import SHARE
from convergebench.analysis.rounds import mean_finding, round_means
from convergebench.analysis.study import Study
from convergebench.analysis.summaries import KEYS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SHAPES: Final = ("linear", "exponential", "plateau", "cliff")
"""The simpler first: it wins where two fit alike."""
FLAT: Final = "flat"
"""A curve that never falls below 1 − `LOSS` has no shape to speak of."""
UNDECIDED: Final = "undecided"
FEWEST: Final = 6
"""Homecomings without which AICc is not defined for a cliff, so that the choice would be unfair."""
WINDOW: Final = 10
"""Values that are used however early a curve reaches 0: fewer cannot tell a cliff from a line."""
LOSS: Final = 0.01
BLUR: Final = 1e-3
"""What of C is taken as noise at least: no fit is so much better that this would not explain it."""
LEVEL: Final = 0.05
"""A plateau lower than this is no plateau: an exponential comes as low, and AICc would prefer the
extra parameter by chance now and then."""
FALL: Final = 0.5
"""The share of all that is lost in the end that a cliff loses at once."""
BLOCK: Final = 512
"""Curves that are fitted at once, so that memory stays bounded."""
SHAPED: Final = (*DIMENSIONS, *RANKED_BY)
"""The metrics whose curves are looked at."""

_PARAMETERS: Final = {"linear": 1, "exponential": 1, "plateau": 2, "cliff": 3}
_RATES: Final = np.geomspace(1e-4, 20, 80)


def curve_shapes(curves: pl.DataFrame) -> pl.DataFrame:
    """The shape of every curve.

    Args:
        curves: Columns `KEYS`, n and c, as `Study.curves` has them.

    Returns:
        Columns `KEYS`, shape, points (homecomings that were used) and the AICc of each shape; null
        where the curve is flat, undecided or lost from the first homecoming on.
    """
    told = (
        curves.filter(pl.col("c").is_not_null())
        .sort("n")
        .with_columns(zero=(pl.col("c") <= 0).cast(pl.Int32))
        # up to and with the first 0, or as far as it takes to see what the fall was
        .filter(
            (pl.col("zero").cum_sum().over(*KEYS) <= pl.col("zero"))
            | (pl.int_range(pl.len()).over(*KEYS) < WINDOW)
        )
        .group_by(*KEYS, maintain_order=True)
        .agg("n", "c")
        .sort(*KEYS)
    )
    cs = told["c"].to_list()
    by_rounds: dict[tuple[int, ...], list[int]] = {}
    for index, ns in enumerate(told["n"].to_list()):
        by_rounds.setdefault(tuple(ns), []).append(index)
    names = [UNDECIDED] * len(told)
    scores = np.full((len(told), len(SHAPES)), np.nan)
    for ns, indices in by_rounds.items():
        values = np.array([cs[index] for index in indices], dtype=np.float64)
        flat = values.min(axis=1) >= 1 - LOSS
        gone = values.max(axis=1) < LEVEL
        if len(ns) >= FEWEST:
            found = shape_scores(np.array(ns, dtype=np.float64), values)
            best = np.argmin(found, axis=1)
        for row, index in enumerate(indices):
            if len(ns) < FEWEST:
                continue  # not even flat: only those that had not decayed yet would be decided
            if flat[row]:
                names[index] = FLAT
            elif gone[row]:
                names[index] = "cliff"
            else:
                names[index], scores[index] = SHAPES[best[row]], found[row]
    columns = [
        pl.Series(f"aicc_{name}", scores[:, i]).fill_nan(None) for i, name in enumerate(SHAPES)
    ]
    return told.select(*KEYS, points=pl.col("n").list.len()).with_columns(
        pl.Series("shape", names, dtype=pl.String), *columns
    )


def shape_scores(rounds: Array, curves: Array) -> Array:
    """AICc of each shape (column) for each curve (row) over the same rounds."""
    fits: tuple[Callable[[Array, Array], Array], ...] = (_linear, _exponential, _plateau, _cliff)
    count = len(rounds)
    found = np.empty((len(curves), len(SHAPES)))
    for column, (name, fit) in enumerate(zip(SHAPES, fits, strict=True)):
        k = _PARAMETERS[name] + 1
        parts = [fit(rounds, curves[i : i + BLOCK]) for i in range(0, len(curves), BLOCK)]
        mean = np.concatenate(parts) / count + BLUR**2
        found[:, column] = count * np.log(mean) + 2 * k + 2 * k * (k + 1) / (count - k - 1)
    return found


def _linear(n: Array, c: Array) -> Array:
    """RSS of the best max(0, 1 − b·n): the rounds before it is cut off decide b, be they so few."""
    slopes = np.cumsum((1 - c) * n, axis=1) / np.cumsum(n * n)
    lines = np.maximum(0, 1 - slopes[:, :, None] * n)
    least: Array = ((c[:, None, :] - lines) ** 2).sum(axis=-1).min(axis=1)
    return least


def _exponential(n: Array, c: Array) -> Array:
    return _over_rates(n, c, lambda falling: np.zeros(falling.shape[:-1]))


def _plateau(n: Array, c: Array) -> Array:
    def level(falling: Array) -> Array:
        # the best a is linear once k is known: c − e = a·(1 − e)
        rest = 1 - falling
        above = ((c[:, None, :] - falling) * rest).sum(axis=-1)
        found: Array = np.clip(above / (rest * rest).sum(axis=-1), LEVEL, 1)
        return found

    return _over_rates(n, c, level)


def _over_rates(n: Array, c: Array, level: Callable[[Array], Array]) -> Array:
    """The least RSS of a + (1 − a)·exp(−k·n) over k: on a grid, then twice on a finer one."""

    def rss(rates: Array) -> Array:
        falling = np.exp(-rates[..., None] * n)
        a = level(falling)[..., None]
        left: Array = ((c[:, None, :] - (a + (1 - a) * falling)) ** 2).sum(axis=-1)
        return left

    rates = np.broadcast_to(_RATES, (len(c), len(_RATES)))
    left = rss(rates)
    for _ in range(2):
        at = np.clip(np.argmin(left, axis=1), 1, rates.shape[1] - 2)
        low, high = (np.take_along_axis(rates, at[:, None] + i, axis=1) for i in (-1, 1))
        rates = low * (high / low) ** np.linspace(0, 1, 21)
        left = rss(rates)
    least: Array = left.min(axis=1)
    return least


def _cliff(n: Array, c: Array) -> Array:
    """RSS of the best fall between two levels, one homecoming at most on its way down."""
    least = np.full(len(c), np.inf)
    for before in range(1, len(n)):
        for after in (before, before + 1):
            if after >= len(n):
                continue
            high, low = c[:, :before].mean(axis=1), c[:, after:].mean(axis=1)
            left = ((c[:, :before] - high[:, None]) ** 2).sum(axis=1)
            left += ((c[:, after:] - low[:, None]) ** 2).sum(axis=1)
            falls = (low < high) & (high - low >= FALL * (1 - low))
            if after > before:
                falls &= (low <= c[:, before]) & (c[:, before] <= high)
            least = np.minimum(least, np.where(falls, left, np.inf))
    return least


def shape_of(curve: Sequence[float]) -> str:
    """The shape of one curve, given as C(1) to C(N)."""
    if not len(curve):
        return UNDECIDED
    rows = {name: ["" if name != "repeat" else 0] * len(curve) for name in KEYS}
    values = [float(value) for value in curve]
    table = pl.DataFrame({**rows, "n": range(1, len(curve) + 1), "c": values})
    return str(curve_shapes(table)["shape"][0])


def shape_findings(study: Study) -> list[Finding]:
    """Per metric, editor and shape the share of the chains whose curve has it."""
    shapes = curve_shapes(study.curves.filter(pl.col("metric").is_in(SHAPED)))
    every = pl.DataFrame({"group": [*SHAPES, FLAT]})
    values = (
        shapes.filter(pl.col("shape") != UNDECIDED)
        .join(every, how="cross")
        .with_columns(value=(pl.col("shape") == pl.col("group")).cast(pl.Float64))
    )
    homes = study.chains.filter("has_home")
    undecided = shapes.filter(pl.col("shape") == UNDECIDED).group_by("metric", "editor").len()
    short = {(metric, editor): count for metric, editor, count in undecided.iter_rows()}
    found = []
    for metric in sorted(set(shapes["metric"])):
        mine = homes if metric == "semantic" else homes.filter(~pl.col("content_only"))
        of = values.filter(pl.col("metric") == metric)
        grid = mine.join(every, how="cross")
        means = round_means(of, grid, ["editor", "group"], SHARE, chains=True)
        order = {name: i for i, name in enumerate(every["group"])}
        for row in sorted(means.iter_rows(named=True), key=lambda r: order[r["group"]]):
            name, editor = row["group"], row["editor"]
            less = short.get((metric, editor), 0)
            found.append(
                mean_finding(
                    row,
                    f"shape/{metric}/{editor}/{name}",
                    metric=metric,
                    editor=editor,
                    group=name,
                    note=f"{less} undecided: fewer than {FEWEST} values" if less else "",
                )
            )
    return found
