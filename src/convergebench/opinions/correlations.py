"""How far metrics say what people say: PLCC, SRCC and KRCC with intervals.

Values are turned so that larger is better, so a positive coefficient is agreement. PLCC is given
raw, and after the usual four-parameter logistic (VQEG 2003; ITU-T P.1401) has mapped the metric to
the scale of opinions. KRCC is Kendall's τ-b. Intervals resample source pictures, never stimuli: the
pictures of one source are not independent of each other. Weighted ranks make that exact without
ranking anew: a stimulus drawn twice counts twice in every comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from convergebench.analysis.resampling import FEW, intervals, resampling_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST: Final = 4
"""Stimuli, or methods, that a correlation is made of at least."""
LEAST_SOURCES: Final = FEW
"""Source pictures that an interval needs: of three, resamples hold the truth every second time."""
LEAST_FITTED: Final = 8
"""Stimuli that four parameters are fitted to at least."""


@dataclass(frozen=True)
class Coefficient:
    """A coefficient with its 95 % interval, None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Point:
    """One stimulus, or one method: the metric's value as scored, and the mean opinion."""

    name: str
    image: str
    method: str
    value: float
    opinion: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Correlation:
    """One metric against people.

    Attributes:
        metric: Its name in the score table; `registered` after it for that form of it.
        version: Of the metric.
        kind: full-reference, no-reference or semantic; empty where nobody knows.
        level: Over stimuli, or over methods (each a mean over the same pictures).
        higher_is_better: The metric's direction; None where nobody knows, and then nothing was
            turned.
        plcc, fitted, srcc, krcc: The coefficients; `fitted` is PLCC after the logistic.
        rmse: Root mean square error of the mapped metric, on the scale of opinions.
        mapping: The logistic's four parameters: top, bottom, middle, slope.
        n, sources: Stimuli (or methods) and source pictures.
        infinite: Stimuli left out because the metric is infinite there.
        missing: Rated stimuli without a score.
        note: Why something is missing.
        points: What was correlated.
    """

    metric: str
    version: str
    kind: str
    level: Literal["stimulus", "method"]
    higher_is_better: bool | None
    plcc: Coefficient
    fitted: Coefficient
    srcc: Coefficient
    krcc: Coefficient
    rmse: float | None
    mapping: tuple[float, float, float, float] | None
    n: int
    sources: int
    infinite: int = 0
    missing: int = 0
    note: str = ""
    points: tuple[Point, ...] = ()


def pearson(x: Array, y: Array) -> float | None:
    """Pearson's r; None where either does not vary or values are too few."""
    return _one(_pearson(x[:, None], y[:, None], np.ones((len(x), 1))), x, y)


def spearman(x: Array, y: Array) -> float | None:
    """Spearman's ρ, ties having their mean rank."""
    return _one(_spearman(x, y, np.ones((len(x), 1))), x, y)


def kendall(x: Array, y: Array) -> float | None:
    """Kendall's τ-b."""
    return _one(_kendall(x, y, np.ones((len(x), 1))), x, y)


def logistic(x: Array, top: float, bottom: float, middle: float, slope: float) -> Array:
    """The mapping: bottom + (top − bottom) / (1 + exp(−(x − middle) / |slope|))."""
    power = np.clip((x - middle) / max(abs(slope), 1e-12), -60, 60)
    found: Array = bottom + (top - bottom) / (1 + np.exp(-power))
    return found


def fit_logistic(x: Array, y: Array) -> tuple[float, float, float, float] | None:
    """The four parameters that map a metric to opinions with the least squared error.

    None with fewer than eight stimuli, where the metric does not vary, or where no rising curve
    fits.
    """
    import warnings

    from scipy.optimize import OptimizeWarning, curve_fit

    if len(x) < LEAST_FITTED or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    centre, width = float(np.median(x)), float(np.std(x))
    z = (x - centre) / width  # so that metrics of any scale start alike
    start = (float(y.max()), float(y.min()), 0.0, 1.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)  # no covariance is asked for
            found, _ = curve_fit(logistic, z, y, start, maxfev=4000)
    except RuntimeError:
        return None
    top, bottom, middle, slope = found.tolist()
    if not top > bottom:  # it falls as the metric rises: that is no agreement to be proud of
        return None
    return top, bottom, centre + width * middle, width * abs(slope)


def correlate(
    x: Array, y: Array, sources: Sequence[str]
) -> tuple[dict[str, Coefficient], float | None, tuple[float, float, float, float] | None]:
    """The four coefficients of one metric, its error after mapping, and the mapping.

    Args:
        x: The metric, larger being better.
        y: Opinions of the same stimuli.
        sources: The source picture of each.
    """
    names = list(dict.fromkeys(sources))
    place = {name: at for at, name in enumerate(names)}
    weights = None
    if len(names) >= LEAST_SOURCES and len(x) >= LEAST:
        weights = resampling_weights(len(names))[[place[name] for name in sources]]
    mapping = fit_logistic(x, y)
    mapped = logistic(x, *mapping) if mapping else None
    one = np.ones((len(x), 1))
    found: dict[str, Coefficient] = {}
    for name in ("plcc", "fitted", "srcc", "krcc"):
        if name == "fitted" and (mapped is None or np.ptp(mapped) == 0):
            found[name] = Coefficient(None)
            continue
        a = mapped if name == "fitted" and mapped is not None else x
        value = _one(_of(name, a, y, one), a, y)
        stats = _of(name, a, y, weights) if weights is not None and value is not None else None
        found[name] = _with_ends(value, stats, len(names))
    rmse = None if mapped is None else float(np.sqrt(np.mean((mapped - y) ** 2)))
    return found, rmse, mapping


def correlate_methods(x: Array, y: Array) -> dict[str, Coefficient]:
    """The coefficients over methods, of their means over the same pictures.

    Args:
        x: The metric, larger being better: methods × pictures.
        y: Opinions of the same.
    """
    pictures = x.shape[1]
    means = [side.mean(axis=1) for side in (x, y)]
    found = {"fitted": Coefficient(None)}
    for name, measure in (("plcc", pearson), ("srcc", spearman), ("krcc", kendall)):
        value = measure(*means) if len(means[0]) >= LEAST else None
        stats = None
        if value is not None and pictures >= LEAST_SOURCES:
            weights = resampling_weights(pictures)
            drawn = [np.round(side @ weights / pictures, 12) for side in (x, y)]
            stats = _columns(name, *drawn)
        found[name] = _with_ends(value, stats, pictures)
    return found


def _one(stats: Array, x: Array, y: Array) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0 or np.isnan(stats[0]):
        return None
    return float(np.clip(stats[0], -1, 1))


def _of(name: str, x: Array, y: Array, weights: Array) -> Array:
    if name in ("plcc", "fitted"):
        return _pearson(x[:, None], y[:, None], weights)
    return _spearman(x, y, weights) if name == "srcc" else _kendall(x, y, weights)


def _with_ends(value: float | None, stats: Array | None, sources: int) -> Coefficient:
    if value is None or stats is None or np.isnan(stats).all():
        return Coefficient(value)
    ((low, high),) = intervals(stats[None], sources=sources, estimates=np.array([value])).tolist()
    return Coefficient(value, max(-1.0, min(low, value)), min(1.0, max(high, value)))


def _pearson(x: Array, y: Array, weights: Array) -> Array:
    """Weighted r in each column; x and y have a column for all of them, or one each."""
    total = weights.sum(axis=0)
    a = x - (x * weights).sum(axis=0) / total
    b = y - (y * weights).sum(axis=0) / total
    above = (a * b * weights).sum(axis=0)
    below = np.sqrt((a**2 * weights).sum(axis=0) * (b**2 * weights).sum(axis=0))
    found: Array = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 1e-12)
    return found


def _spearman(x: Array, y: Array, weights: Array) -> Array:
    ranks = []
    for values in (x, y):
        below = (values[None, :] < values[:, None]) + 0.5 * (values[None, :] == values[:, None])
        ranks.append(below @ weights)
    return _pearson(ranks[0], ranks[1], weights)


def _kendall(x: Array, y: Array, weights: Array) -> Array:
    a, b = (np.sign(values[:, None] - values[None, :]) for values in (x, y))
    above, left, right = (
        np.einsum("ir,ir->r", table @ weights, weights) for table in (a * b, a * a, b * b)
    )
    below = np.sqrt(left * right)
    found: Array = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return found


def _columns(name: str, x: Array, y: Array) -> Array:
    """The coefficient of each column of x with that of y."""
    from scipy.stats import rankdata

    if name == "srcc":
        x, y = rankdata(x, axis=0), rankdata(y, axis=0)
    if name != "krcc":
        return _pearson(x, y, np.ones_like(x))
    a, b = (np.sign(side[:, None, :] - side[None, :, :]) for side in (x, y))
    above, left, right = ((p * q).sum(axis=(0, 1)) for p, q in ((a, b), (a, a), (b, b)))
    below = np.sqrt(left * right)
    found: Array = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return found
