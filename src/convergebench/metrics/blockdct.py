"""Statistics of overlapping DCT blocks: NRQM's first set of features.

Every third sample of every third row is the centre of a block of 7×7; beyond the border is zero.
Of the 48 coefficients x of a block besides the mean, three numbers are taken: the shape of a
generalised Gaussian (`shape`), the coefficient of variation of |x|, σ/(μ + 10⁻⁷), and the variance
of the same over three ranges of orientation, with 10⁻⁸. Pooled over blocks, the features are the
mean of the lowest tenth of the first and of the highest tenth of the others, and the mean of each.

In float64: those constants decide what a flat block counts as, and float32 noise is as large.

Ma, Yang, Yang, Yang: Learning a no-reference quality metric for single-image super-resolution.
Computer Vision and Image Understanding 158, 2017. After Saad, Bovik, Charrier 2012.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from convergebench.bands import in_bands

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convergebench.bands import Scratch

    Doubles = NDArray[np.float64]

SIDE: Final = 7
STRIDE: Final = 3
BORDER: Final = (SIDE - STRIDE) // 2
BAND: Final = 8
"""Rows of blocks worked on at once."""
ORIENTED: Final = (
    (".111111", "..11111", "....111", ".....11", ".......", ".......", "......."),
    (".......", ".1.....", "..11...", "..111..", "...1111", "....111", "....111"),
    (".......", "1......", "11.....", "11.....", "111....", "1111...", "1111..."),
)
"""Coefficients in each range of orientation: rows are vertical frequencies."""


def block_features(plane: Doubles) -> Doubles:
    """The six features of a plane of samples in [0, 1]."""
    rows, columns = (math.ceil(length / STRIDE) for length in plane.shape)
    ends = [
        (BORDER, count * STRIDE - length + BORDER)
        for count, length in zip((rows, columns), plane.shape, strict=True)
    ]
    padded = np.pad(plane, ends)

    def work(top: int, bottom: int, scratch: Scratch) -> Doubles:
        return _blocks(padded[STRIDE * top : STRIDE * (bottom - 1) + SIDE], scratch)

    shapes, variations, oriented = np.concatenate(in_bands(rows, BAND, work), axis=1)
    tenth, most = math.ceil(len(shapes) * 0.1), max(1, int(len(shapes) * 0.9)) - 1
    shapes.partition(tenth - 1)
    variations.partition(most)
    oriented.partition(most)
    return np.array(
        [
            shapes[:tenth].mean(),
            shapes.mean(),
            variations[most:].mean(),
            variations.mean(),
            oriented[most:].mean(),
            oriented.mean(),
        ]
    )


def _blocks(rows: Doubles, scratch: Scratch) -> Doubles:
    """Shape, variation and oriented variation of each block in some rows of blocks."""
    windows = np.lib.stride_tricks.sliding_window_view(rows, (SIDE, SIDE))[::STRIDE, ::STRIDE]
    count = windows.shape[0] * windows.shape[1]
    samples = scratch("samples", (count, SIDE**2), np.float64)
    samples.reshape(windows.shape)[...] = windows
    transform, groups = _matrices()
    x = np.matmul(samples, transform, out=scratch("x", (count, SIDE**2 - 1), np.float64))
    amount = np.abs(x, out=scratch("amount", x.shape, np.float64))
    sums = amount @ groups
    square = np.multiply(x, x, out=scratch("square", x.shape, np.float64))
    squares = square @ groups
    sizes = groups.sum(axis=0)
    means = sums / sizes
    deviations = np.sqrt(np.maximum(squares - sums * means, 0) / (sizes - 1))
    # shape: of x about its own mean
    mean = x.mean(axis=1)
    x -= mean[:, None]
    apart = np.abs(x, out=amount).mean(axis=1)
    total = sizes[0]
    variance = np.maximum(squares[:, 0] - total * mean**2, 0) / (total - 1)
    oriented = deviations[:, 1:] / (means[:, 1:] + 1e-8)
    return np.stack(
        [
            shape(variance, apart),
            deviations[:, 0] / (means[:, 0] + 1e-7),
            oriented.var(axis=1, ddof=1),
        ]
    )


@cache
def _matrices() -> tuple[Doubles, Doubles]:
    """From samples to coefficients besides the mean; and which of those are in which group.

    The groups are all of them, and the three ranges of orientation.
    """
    n = np.arange(SIDE)
    one = np.cos(np.pi * (2 * n + 1) * n[:, None] / (2 * SIDE)) * math.sqrt(2 / SIDE)
    one[0] /= math.sqrt(2)
    members = [[flag == "1" for row in table for flag in row] for table in ORIENTED]
    groups = np.array([[True] * SIDE**2, *members], np.float64).T
    return np.ascontiguousarray(np.kron(one, one).T[:, 1:]), groups[1:]


def shape(variance: NDArray[Any], apart: NDArray[Any]) -> Doubles:
    """Shape γ of a generalised Gaussian, from the variance and the mean deviation of samples.

    Where Γ(1/γ)·Γ(3/γ) / Γ(2/γ)² is nearest to variance / (deviation² + 10⁻⁷), on a grid of 0.03
    to 10 in steps of 0.001.
    """
    shapes, ratios = _table()
    ratio = variance / (apart**2 + 1e-7)
    right = np.clip(np.searchsorted(ratios, ratio), 1, len(ratios) - 1)
    nearest = right - (ratio - ratios[right - 1] < ratios[right] - ratio)
    found: Doubles = shapes[nearest]
    return found


@cache
def _table() -> tuple[Doubles, Doubles]:
    """Shapes and ratios, in order of rising ratio."""
    from scipy.special import gammaln

    shapes = np.arange(10000, 29, -1) / 1000
    ratios = np.exp(gammaln(1 / shapes) + gammaln(3 / shapes) - 2 * gammaln(2 / shapes))
    return shapes, ratios
