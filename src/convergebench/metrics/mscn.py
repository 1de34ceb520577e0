"""MSCN fields: mean-subtracted, contrast-normalised luma, on which natural pictures look alike.

For luma x, with μ and σ² its mean and variance under a 7×7 Gaussian of standard deviation 7/6,

    f = (x − μ) / (σ + 1)

(Ruderman 1994; Mittal, Moorthy, Bovik 2012). BRISQUE, NIQE and PIQE use the same field of the same
luma and differ only in a few pixels along the border: what lies beyond it (zeros or its outermost
samples), and whether the picture was cropped or padded first. So the field is computed once per
picture, and `edges` redoes the border of a copy.

μ and the mean of x² are computed in float64, because σ² is their difference: in float32, a smooth
sky would get a σ of 0.1 from rounding alone. The rest is float32. In flat parts, and on even
slopes, f is exactly 0. That matters, because the statistics count signs: in the published programs
it seems to be rounding noise there (see `convergebench.metrics.brisque`).

Written by hand because the libraries that have it take seconds: work is done in bands of rows that
fit the cache, on as many threads as OpenCV may use. The result depends on neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.bands import Scratch, in_bands
from convergebench.imresize import imresize
from convergebench.metrics.ssim import luma8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convergebench.metric import Picture

    Field = NDArray[np.float32]
    Plane = NDArray[Any]

RADIUS: Final = 3
BAND: Final = 32
"""Rows filtered at once."""
NOTHING: Final = 1e-9
"""Below this, x − μ is what float64 leaves of zero; other windows of 8-bit luma are far above."""

ZEROS: Final = cv2.BORDER_CONSTANT
OUTERMOST: Final = cv2.BORDER_REPLICATE


def _taps() -> NDArray[np.float64]:
    taps: NDArray[np.float64] = np.exp(-(np.arange(-RADIUS, RADIUS + 1) ** 2) / (2 * (7 / 6) ** 2))
    taps /= taps.sum()
    return taps


_TAPS: Final = _taps()


@dataclass(frozen=True)
class Level:
    """Luma at one scale and its field, with the outermost samples repeated beyond the border."""

    plane: Plane
    field: Field


def full(picture: Picture) -> Level:
    """The 8-bit luma of a picture, computed once."""
    return picture.shared("mscn", lambda p: _level(luma8(p)))


def half(picture: Picture) -> Level:
    """Its luma at half the size, as MATLAB's `imresize` gives it, computed once."""
    return picture.shared("mscn, half", lambda p: _level(imresize(luma8(p), 0.5)))


def _level(plane: Plane) -> Level:
    field = mscn(plane)
    field.setflags(write=False)
    return Level(plane, field)


def mscn(plane: Plane, border: int = OUTERMOST) -> Field:
    """The field of a plane of 8-bit or floating samples in [0, 255].

    Args:
        plane: H×W luma.
        border: What lies beyond the border: `ZEROS` or its `OUTERMOST` samples.
    """
    field = np.empty(plane.shape, np.float32)

    def work(top: int, bottom: int, scratch: Scratch) -> None:
        _band(plane, border, top, bottom, field[top:bottom], scratch)

    in_bands(len(plane), BAND, work)
    return field


def edges(field: Field, plane: Plane, border: int, depth: int = RADIUS) -> None:
    """Compute the outer `depth` pixels of a field again, from `plane` and this border."""
    height, width = plane.shape
    if min(height, width) <= 2 * depth:
        field[...] = mscn(plane, border)
        return
    reach = depth + RADIUS
    field[:depth] = mscn(plane[:reach], border)[:depth]
    field[-depth:] = mscn(plane[-reach:], border)[-depth:]
    field[:, :depth] = mscn(plane[:, :reach], border)[:, :depth]
    field[:, -depth:] = mscn(plane[:, -reach:], border)[:, -depth:]


def _band(plane: Plane, border: int, top: int, bottom: int, field: Field, scratch: Scratch) -> None:
    """Rows `top` to `bottom` of the field."""
    above, below = min(RADIUS, top), min(RADIUS, len(plane) - bottom)
    x = plane[top - above : bottom + below]
    wide = np.uint16 if plane.dtype == np.uint8 else np.float64
    squares = np.multiply(x, x, out=scratch("squares", x.shape, wide), dtype=wide)
    inside = slice(above, len(x) - below)
    mean, variance = (
        _averaged(samples, border, scratch(name, x.shape, np.float64))[inside]
        for name, samples in (("mean", x), ("mean of squares", squares))
    )
    shape = field.shape
    np.subtract(x[inside], mean, out=field, casting="same_kind")
    size = np.abs(field, out=scratch("size", shape, np.float32))
    differs = np.greater(size, NOTHING, out=scratch("differs", shape, np.bool_))
    mean *= mean
    sigma: Field = scratch("sigma", shape, np.float32)
    np.subtract(variance, mean, out=sigma, casting="same_kind")
    np.maximum(sigma, 0, out=sigma)
    np.sqrt(sigma, out=sigma)
    sigma += 1
    field /= sigma
    field *= differs


def _averaged(samples: Plane, border: int, out: NDArray[np.float64]) -> NDArray[np.float64]:
    cv2.sepFilter2D(samples, cv2.CV_64F, _TAPS, _TAPS, dst=out, borderType=border)
    return out
