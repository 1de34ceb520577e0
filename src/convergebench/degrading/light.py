"""Pixels as light: sRGB to linear and back, resizing, filtering, JPEG. All in 64-bit floats.

Blur and noise happen to light, not to the numbers in a file, so optics work on linear values. In
64 bits the rounding errors of different processors are some 1e-15 of a value, and the one rounding
to 8 bits at the end hides them.
"""

from __future__ import annotations

import io
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Plane: TypeAlias = NDArray[np.float64]
Pixels: TypeAlias = NDArray[np.uint8]

LUMA = np.array([0.2126, 0.7152, 0.0722])
NOMINAL = 1024
"""Lengths in parameter tables are pixels of a picture whose short side has so many."""


def unit(shape: tuple[int, ...]) -> float:
    """How many pixels of this picture a length of 1 in a parameter table is."""
    return min(shape[0], shape[1]) / NOMINAL


def decoded(value: Plane) -> Plane:
    """Linear light of sRGB values in [0, 1] (IEC 61966-2-1)."""
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


_LINEAR: Plane = decoded(np.arange(256) / 255.0)


def linear(pixels: Pixels) -> Plane:
    """Linear light in [0, 1] of sRGB pixels."""
    return _LINEAR[pixels]


def bounded(value: Plane) -> Plane:
    """Clipped to [0, 1]."""
    return np.asarray(np.clip(value, 0.0, 1.0), np.float64)


def encoded(light: Plane) -> Plane:
    """The sRGB values in [0, 1] of linear light."""
    lit = bounded(light)
    return np.where(lit <= 0.0031308, lit * 12.92, 1.055 * lit ** (1 / 2.4) - 0.055)


def to_bytes(value: Plane) -> Pixels:
    """Rounded to 8 bits: the only place where floats become pixels."""
    done: Pixels = np.clip(np.rint(value * 255.0), 0, 255).astype(np.uint8)
    return done


def resized(value: Plane, height: int, width: int) -> Plane:
    """Brought to a size: by area when it shrinks, bicubic when it grows; nothing shifts."""
    if value.shape[:2] == (height, width):
        return value
    shrinks = height <= value.shape[0] and width <= value.shape[1]
    how = cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(value, (width, height), interpolation=how), np.float64)


def sensor_size(shape: tuple[int, ...], lines: float) -> tuple[int, int]:
    """Height and width, both even, of a sensor whose short side has so many lines.

    A picture smaller than that is enlarged for it, at most twice, so that a preview looks like
    the picture it is a preview of.
    """
    short = min(shape[0], shape[1])
    scale = min(lines, 2.0 * short) / short
    return max(8, 2 * round(shape[0] * scale / 2)), max(8, 2 * round(shape[1] * scale / 2))


def convolved(value: Plane, kernel: Plane) -> Plane:
    """Convolution with a kernel of odd sides; the border is mirrored."""
    flipped = np.ascontiguousarray(kernel[::-1, ::-1])
    return np.asarray(
        cv2.filter2D(value, cv2.CV_64F, flipped, borderType=cv2.BORDER_REFLECT_101), np.float64
    )


def softened(value: Plane, sigma: float, across: float | None = None) -> Plane:
    """Gaussian blur of standard deviation `sigma` in pixels (`across`: horizontally)."""
    wide = sigma if across is None else across
    if max(sigma, wide) < 0.05:
        return value
    blurred = cv2.GaussianBlur(
        value, (0, 0), max(wide, 1e-3), sigmaY=max(sigma, 1e-3), borderType=cv2.BORDER_REFLECT_101
    )
    return np.asarray(blurred, np.float64)


def through_jpeg(value: Plane, quality: int) -> Plane:
    """Values in [0, 1], taken as sRGB, after JPEG of that quality, colours subsampled 4:2:0."""
    file = io.BytesIO()
    Image.fromarray(to_bytes(value)).save(file, "JPEG", quality=quality, subsampling="4:2:0")
    with Image.open(file) as image:
        return np.asarray(image.convert("RGB"), np.float64) / 255.0


def mixed(under: Plane, over: Plane | float, cover: Plane) -> Plane:
    """`over` laid on `under` where the H×W `cover` is 1; either may have channels."""
    weight = cover[..., None] if under.ndim == 3 else cover
    return under + (over - under) * weight
