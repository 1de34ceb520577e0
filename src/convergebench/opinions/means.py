"""Mean opinions with intervals, and how scores are distributed.

The mean opinion of a stimulus is the mean over its raters, with Student's interval over them
(BT.500 has 1.96 S/√N, which is too short for few raters). The mean opinion of a method is the mean
over pictures of the mean opinion of its stimuli, so that every picture weighs alike. Its interval
resamples pictures and raters, both and independently of each other (the pigeonhole bootstrap, Owen
2007): other people would have judged otherwise, and other pictures would have been judged
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench.analysis.resampling import FEW, RESAMPLES, SEED, intervals
from convergebench.opinions.matrix import Matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Ends = tuple[float | None, float | None]

DIGITS: Final = 10
"""Decimals that values are told apart by in a distribution."""


@dataclass(frozen=True)
class Mean:
    """A mean opinion.

    Attributes:
        of: The method, the picture, or the stimulus' chain; empty for all of them.
        mean: None where nobody answered.
        low, high: 95 % interval; None where it cannot be told.
        sd: Standard deviation of the answers.
        answers, raters, images: What it is made of.
        image, method, step: Of a stimulus, what it is.
    """

    of: str
    mean: float | None
    low: float | None
    high: float | None
    sd: float | None
    answers: int
    raters: int
    images: int
    image: str = ""
    method: str = ""
    step: int = 0


@dataclass(frozen=True)
class Distribution:
    """How often each score was given to a method."""

    method: str
    scores: tuple[float, ...]
    counts: tuple[int, ...]
    quartiles: tuple[float, float, float]


@dataclass(frozen=True)
class Difference:
    """Method `one` minus method `other`, over the same raters and pictures.

    `tied` where the interval, widened for the number of pairs (Bonferroni), holds zero.
    """

    one: str
    other: str
    difference: float
    low: float | None
    high: float | None
    tied: bool


def stimulus_means(matrix: Matrix) -> tuple[Mean, ...]:
    """The mean opinion of each stimulus, with Student's interval over raters."""
    found = []
    for at, (chain, step) in enumerate(matrix.stimuli):
        mine = matrix.values[at][~np.isnan(matrix.values[at])]
        low, high = student(mine)
        found.append(
            Mean(
                chain, float(mine.mean()), low, high, spread(mine), len(mine), len(mine), 1,
                matrix.images[at], matrix.methods[at], step,
            )
        )  # fmt: skip
    return tuple(found)


def image_means(matrix: Matrix) -> tuple[Mean, ...]:
    """The mean opinion of each picture over its methods; Student's interval over rater means."""
    found = []
    for image in matrix.image_names():
        rows = [at for at, name in enumerate(matrix.images) if name == image]
        part = matrix.values[rows]
        seen = ~np.isnan(part).all(axis=0)
        low, high = student(np.nanmean(part[:, seen], axis=0))
        mine = part[~np.isnan(part)]
        mean = float(np.mean(np.nanmean(part, axis=1)))
        found.append(
            Mean(image, mean, low, high, spread(mine), len(mine), int(seen.sum()), 1, image)
        )
    return tuple(found)


def overall_mean(matrix: Matrix) -> Mean:
    """The mean over all stimuli of their mean opinions."""
    every = np.arange(len(matrix.stimuli))
    mine = matrix.values[~np.isnan(matrix.values)]
    mean = float(matrix.means.mean()) if len(matrix.stimuli) else None
    (stats,) = _resampled(matrix, [every], alike=False)
    low, high = ends_of(stats, mean or 0.0, _sizes(matrix, every))
    return Mean(
        "", mean, low, high, spread(mine), len(mine), len(matrix.raters), len(matrix.image_names())
    )


def method_means(matrix: Matrix) -> tuple[Mean, ...]:
    """The mean opinion of each method, the best first."""
    names = matrix.method_names()
    rows = [np.array([m == name for m in matrix.methods]).nonzero()[0] for name in names]
    drawn = _resampled(matrix, rows)
    means = matrix.means
    found = []
    for name, mine, stats in zip(names, rows, drawn, strict=True):
        part = matrix.values[mine]
        scores = part[~np.isnan(part)]
        mean = _over_images(means, matrix, mine)
        low, high = ends_of(stats, mean, _sizes(matrix, mine))
        found.append(
            Mean(
                name,
                mean,
                low,
                high,
                spread(scores),
                len(scores),
                int((~np.isnan(part)).any(axis=0).sum()),
                len({matrix.images[at] for at in mine}),
            )
        )
    return tuple(sorted(found, key=lambda one: -(one.mean or 0.0)))


def differences(matrix: Matrix) -> tuple[Difference, ...]:
    """Every pair of methods, over the pictures that both were rated on."""
    names = [one.of for one in method_means(matrix)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    if not pairs:
        return ()
    by_image: dict[str, dict[str, list[int]]] = {}
    for at, (method, image) in enumerate(zip(matrix.methods, matrix.images, strict=True)):
        by_image.setdefault(method, {}).setdefault(image, []).append(at)
    rows, whole = [], []
    for a, b in pairs:
        shared = [image for image in by_image[a] if image in by_image[b]]
        mine = [np.array([at for im in shared for at in by_image[name][im]]) for name in (a, b)]
        rows += mine
        whole.append(len(shared))
    means = matrix.means
    drawn = _resampled(matrix, rows)
    level = 1 - 0.05 / len(pairs)
    found = []
    for at, (a, b) in enumerate(pairs):
        if not whole[at]:
            continue
        one, other = (_over_images(means, matrix, mine) for mine in rows[2 * at : 2 * at + 2])
        stats = drawn[2 * at] - drawn[2 * at + 1]
        sizes = _sizes(matrix, rows[2 * at])
        low, high = ends_of(stats, one - other, sizes)
        wide_low, wide_high = ends_of(stats, one - other, sizes, level)
        tied = wide_low is None or wide_high is None or wide_low <= 0 <= wide_high
        found.append(Difference(a, b, one - other, low, high, tied))
    return tuple(found)


def distributions(matrix: Matrix) -> tuple[Distribution, ...]:
    """How often each score was given, by method; all together where no methods are told."""
    scale = np.unique(np.round(matrix.values[~np.isnan(matrix.values)], DIGITS))
    found = []
    for name in matrix.method_names() or ("",):
        mine = matrix.values[[at for at, m in enumerate(matrix.methods) if m == name]]
        scores = np.round(mine[~np.isnan(mine)], DIGITS)
        if not len(scores):
            continue
        low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75]).tolist()
        counts = tuple(int(np.sum(scores == value)) for value in scale)
        found.append(Distribution(name, tuple(scale.tolist()), counts, (low, middle, high)))
    return tuple(found)


def student(values: Array) -> Ends:
    """Student's 95 % interval of a mean; none from fewer than two values."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return None, None
    half = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) / len(values) ** 0.5
    mean = float(values.mean())
    return mean - half, mean + half


def spread(values: Array) -> float | None:
    """The sample's standard deviation."""
    return float(values.std(ddof=1)) if len(values) > 1 else None


def _over_images(means: Array, matrix: Matrix, rows: NDArray[np.intp]) -> float:
    """The mean over pictures of the mean over their stimuli."""
    by_image: dict[str, list[float]] = {}
    for at in rows:
        by_image.setdefault(matrix.images[at], []).append(float(means[at]))
    return float(np.mean([np.mean(each) for each in by_image.values()]))


def draws(count: int, stream: int, resamples: int = RESAMPLES) -> Array:
    """How often each of so many is drawn (row) by each resample (column); one stream per kind.

    A single one is always drawn once: nothing is known of how others would be.
    """
    if count < 2:
        return np.ones((count, resamples))
    rng = np.random.default_rng([SEED, stream])
    found: Array = rng.multinomial(count, np.full(count, 1 / count), size=resamples).T.astype(float)
    return found


def _resampled(matrix: Matrix, groups: Sequence[NDArray[np.intp]], *, alike: bool = True) -> Array:
    """Mean opinions of groups of stimuli (row) in each resample of raters and pictures (column).

    Every picture weighs alike, or else every stimulus.
    """
    known = ~np.isnan(matrix.values)
    raters = draws(len(matrix.raters), 1)
    above = np.where(known, matrix.values, 0.0) @ raters
    below = known.astype(float) @ raters
    stimuli = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    names = matrix.image_names()
    place = {name: at for at, name in enumerate(names)}
    at = np.array([place[name] for name in matrix.images], dtype=np.intp)
    images = draws(len(names), 2)
    found = np.full((len(groups), images.shape[1]), np.nan)
    known_groups: dict[bytes, int] = {}
    for index, rows in enumerate(groups):
        if not len(rows):
            continue
        before = known_groups.setdefault(rows.tobytes(), index)
        if before != index:  # pairs of methods mostly share their pictures
            found[index] = found[before]
            continue
        mine = stimuli[rows]
        there = ~np.isnan(mine)
        belongs = np.zeros((len(names), len(rows)))
        belongs[at[rows], np.arange(len(rows))] = 1
        sums, counts = belongs @ np.where(there, mine, 0.0), belongs @ there
        means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
        weight = images * ((counts > 0) if alike else counts)
        total = weight.sum(axis=0)
        np.divide((means * weight).sum(axis=0), total, out=found[index], where=total > 0)
    return found


def _sizes(matrix: Matrix, rows: NDArray[np.intp]) -> tuple[int, int]:
    """How many raters and how many pictures stimuli have."""
    raters = int((~np.isnan(matrix.values[rows])).any(axis=0).sum())
    return raters, len({matrix.images[at] for at in rows})


def ends_of(stats: Array, estimate: float, sizes: tuple[int, int], level: float = 0.95) -> Ends:
    """The middle of resampled statistics, widened where raters or pictures are few.

    With fewer than six of either, resamples cannot leave what so few say: two pictures have the
    truth between them every second time. There it is Student's interval, from how far the resamples
    spread and for the lesser number: wide, as nobody knows how others would be.

    Args:
        stats: The statistic of each resample; NaN where it has none.
        estimate: The statistic itself.
        sizes: How many raters and pictures were resampled; a single one was not.
        level: How much of the middle.
    """
    from scipy.special import stdtrit

    counts = [n for n in sizes if n > 1]
    known = stats[~np.isnan(stats)]
    if not counts or not len(known):
        return None, None
    least = min(counts)
    if least >= FEW:
        ((low, high),) = intervals(stats[None], level, sources=least).tolist()
        return low, high
    # Resamples vary by (n − 1)/n of what their population does.
    sd = float(known.std()) * (least / (least - 1)) ** 0.5
    half = float(stdtrit(least - 1, (1 + level) / 2)) * sd
    return estimate - half, estimate + half
