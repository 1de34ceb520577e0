"""PSNR: how far the samples are from home, and nothing else.

OpenCV sums the squared differences: much faster than NumPy, and without a wide copy of the picture.
Its sum of a band of rows passes through a square root, so it is rounded back to the integer it is;
the total is an exact integer, whatever the size of the bands.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from convergebench.metric import KnownAnswer, MetricSpec, StepView, lift
from convergebench.metrics.pair import pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

PEAK: Final = 255
BAND_SAMPLES: Final = 1 << 22
"""Samples summed at once: their sum stays below 2^39, where rounding is certain to be exact."""


def squared_error(
    reference: NDArray[np.uint8],
    frame: NDArray[np.uint8],
    mask: NDArray[np.bool_] | None = None,
    *,
    band_rows: int | None = None,
) -> int:
    """Sum of squared differences over all samples of two pictures, or of the masked pixels."""
    height, width = frame.shape[:2]
    rows = band_rows or max(1, BAND_SAMPLES // (3 * width))
    total = 0
    for top in range(0, height, rows):
        band = slice(top, top + rows)
        where = None if mask is None else np.ascontiguousarray(mask[band]).view(np.uint8)
        total += round(cv2.norm(reference[band], frame[band], cv2.NORM_L2SQR, where))
    return total


@lift(
    MetricSpec(
        name="psnr",
        version="1",
        kind="full-reference",
        higher_is_better=True,
        identical=math.inf,
        typical=(10, 50),
        title="Peak signal-to-noise ratio (dB)",
        paper="https://en.wikipedia.org/wiki/Peak_signal-to-noise_ratio",
        regional=True,
        known=KnownAnswer(26.597911847819, 1e-9, "scikit-image 0.26"),
    )
)
def psnr(view: StepView) -> float:
    """Peak signal-to-noise ratio in decibels, 10·log10(255² / MSE).

    MSE is the mean squared difference over all 8-bit R, G and B samples, or over those of the
    masked pixels. From 0 (black against white) to infinity (identical).
    """
    reference, frame = pair(view)
    error = squared_error(reference.pixels, frame.pixels, view.mask)
    if error == 0:
        return math.inf
    height, width = frame.pixels.shape[:2]
    pixels = height * width if view.mask is None else int(np.count_nonzero(view.mask))
    return 10 * math.log10(PEAK**2 * 3 * pixels / error)


def rmse_of_psnr(decibels: float) -> float:
    """The root mean squared error, in 8-bit levels, that a PSNR stands for; 0 for infinity."""
    return PEAK * math.pow(10, -decibels / 20)
