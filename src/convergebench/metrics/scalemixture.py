"""Statistics of oriented bands under a Gaussian scale mixture: NRQM's second set of features.

Around each coefficient of a band of the steerable pyramid stands a vector y: the 3×3 coefficients
there, the coarser band's coefficient at the same place (for the finer level's bands but the last),
and those of the other five orientations. With C the mean of yyᵀ and N the number of the first and
second kind, the band is divided by the local contrast

    z = √(yᵀ C⁺ y / N).

The 45 features are the shapes (`blockdct.shape`) of the 12 divided bands, and of the 6 pairs of
one orientation taken together; how the structure of the 12 bands agrees with that of the finest
details; and how that of the 6 finer divided bands agrees with each other. Agreement is the mean of
(2σxy + C2) / (σx² + σy² + C2) with SSIM's window and C2 = (0.03·255)².

After Moorthy, Bovik: Blind image quality assessment: from natural scene statistics to perceptual
quality. IEEE Transactions on Image Processing 20(12), 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.bands import Scratch, in_bands
from convergebench.imresize import imresize
from convergebench.metrics.blockdct import shape
from convergebench.metrics.steerable import steerable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Field = NDArray[np.float32]

BANDS: Final = 6
LEVELS: Final = 2
GUARD: Final = 16
"""Coefficients left out along the borders of the finer level; half as many of the coarser."""
RADIUS: Final = 5
C2: Final = (0.03 * 255) ** 2
ROWS: Final = 32
"""Rows worked on at once: what is known of them fits a core's cache."""


def mixture_features(plane: NDArray[Any]) -> Doubles:
    """The 45 features of a plane of samples in [0, 255]."""
    pyramid = steerable(plane, LEVELS, BANDS)
    fine, coarse = pyramid.levels
    size = pyramid.high.shape
    doubled = [imresize(band, 2, dtype=np.float32)[: size[0], : size[1]] for band in coarse]
    # the published program finds no parent for the last band of the finer level
    divided = [
        _divided(level, n, doubled[n] if level is fine and n < BANDS - 1 else None, GUARD >> depth)
        for depth, level in enumerate((fine, coarse))
        for n in range(BANDS)
    ]
    shapes = [_shape([band]) for band in divided]
    shapes += [_shape([divided[n], divided[n + BANDS]]) for n in range(BANDS)]
    even = all(length % 2 == 0 for length in size)
    spread = doubled if even else [imresize(b, size=size, dtype=np.float32) for b in coarse]
    across = _agreements(
        [pyramid.high, *fine, *spread], [(0, n) for n in range(1, 1 + LEVELS * BANDS)]
    )
    pairs = [(i, j) for i in range(BANDS) for j in range(i + 1, BANDS)]
    return np.array([*shapes, *across, *_agreements(divided[:BANDS], pairs)])


def _divided(bands: Sequence[Field], which: int, parent: Field | None, guard: int) -> Field:
    """A band over its local contrast, without the guard, about its mean."""
    band = bands[which]
    own = [band[y : y + band.shape[0] - 2] for y in range(3)]
    planes = [rows[:, x : x + band.shape[1] - 2] for rows in own for x in range(3)]
    count = len(planes) + (parent is not None)
    around = [*([] if parent is None else [parent]), *(b for b in bands if b is not band)]
    planes += [plane[1:-1, 1:-1] for plane in around]
    height, width = planes[0].shape

    def vectors(top: int, bottom: int, scratch: Scratch) -> Doubles:
        rows = scratch("vectors", (len(planes), bottom - top, width), np.float64)
        for row, plane in zip(rows, planes, strict=True):
            row[...] = plane[top:bottom]
        return rows.reshape(len(planes), -1)

    def product(top: int, bottom: int, scratch: Scratch) -> Doubles:
        y = vectors(top, bottom, scratch)
        return y @ y.T

    products: Doubles = np.sum(in_bands(height, ROWS, product), axis=0)
    power, axes = np.linalg.eigh(products / (height * width))
    known = power > power[-1] * len(power) * np.finfo(np.float64).eps
    whiten = axes[:, known].T / np.sqrt(power[known, None])
    centre = planes[4]
    mean = centre.mean(dtype=np.float64)

    def divide(top: int, bottom: int, scratch: Scratch) -> Field:
        white = whiten @ vectors(top, bottom, scratch)
        contrast = np.sqrt(np.einsum("ij,ij->j", white, white) / count)
        apart = (centre[top:bottom] - mean).ravel()
        result = np.divide(apart, contrast, out=np.zeros_like(apart), where=contrast > 0)
        return np.asarray(result.reshape(bottom - top, width), np.float32)

    whole = np.concatenate(in_bands(height, ROWS, divide))
    kept = whole[guard:-guard, guard:-guard]
    result: Field = kept - np.float32(kept.mean(dtype=np.float64))
    return result


def _shape(bands: Sequence[Field]) -> float:
    """The shape of all samples of some bands."""
    count = sum(band.size for band in bands)
    mean = sum(float(band.sum(dtype=np.float64)) for band in bands) / count
    apart = [band - np.float32(mean) for band in bands]
    deviation = sum(cv2.norm(band, cv2.NORM_L1) for band in apart) / count
    variance = sum(cv2.norm(band, cv2.NORM_L2SQR) for band in apart) / (count - 1)
    return float(shape(np.array(variance), np.array(deviation)))


def _agreements(planes: Sequence[Field], pairs: Sequence[tuple[int, int]]) -> Doubles:
    """How the structure of each pair of planes agrees."""
    taps = cv2.getGaussianKernel(2 * RADIUS + 1, 1.5)
    height, width = (length - 2 * RADIUS for length in planes[0].shape)
    inside = slice(RADIUS, -RADIUS)
    constant = np.float32(C2)

    def averaged(rows: Field) -> Field:
        return np.asarray(cv2.sepFilter2D(rows, -1, taps, taps), np.float32)[inside, inside]

    def work(top: int, bottom: int, scratch: Scratch) -> Doubles:
        parts = [plane[top : bottom + 2 * RADIUS] for plane in planes]
        means = [averaged(part) for part in parts]
        variances = [averaged(p * p) - m * m for p, m in zip(parts, means, strict=True)]
        sums = []
        for one, other in pairs:
            covariance = averaged(parts[one] * parts[other]) - means[one] * means[other]
            covariance *= 2
            covariance += constant
            covariance /= variances[one] + variances[other] + constant
            sums.append(covariance.sum(dtype=np.float64))
        return np.array(sums)

    mean: Doubles = np.sum(in_bands(height, ROWS, work), axis=0) / (height * width)
    return mean
