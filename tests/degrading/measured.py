"""Measures that the tests of the degradation engine share."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from convergebench.drawing import scene

Pixels = NDArray[np.uint8]
SCENES = ("foliage", "library", "portrait", "still-life", "text")


def drawn(name: str, side: int = 192) -> Pixels:
    return scene(name, side, side)


def luma(pixels: Pixels) -> NDArray[np.float64]:
    grey: NDArray[np.float64] = pixels.astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    return grey


def psnr(first: Pixels, second: Pixels) -> float:
    error = np.mean((first.astype(np.float64) - second.astype(np.float64)) ** 2)
    return float(10.0 * np.log10(255.0**2 / error))


def ssim(first: Pixels, second: Pixels) -> float:
    """Structural similarity of brightness, Wang et al. (2004), by SciPy: not our metric's code."""
    x, y = luma(first), luma(second)

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(ndimage.gaussian_filter(values, 1.5), np.float64)

    mx, my = mean(x), mean(y)
    vx, vy = mean(x * x) - mx * mx, mean(y * y) - my * my
    both = mean(x * y) - mx * my
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    index = (2 * mx * my + c1) * (2 * both + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    return float(index.mean())


def displacement(clean: Pixels, damaged: Pixels) -> float:
    """How far the damaged picture lies from the clean one, in pixels, by phase correlation."""
    soft = [cv2.GaussianBlur(luma(p), (0, 0), 2.0) for p in (clean, damaged)]
    window = cv2.createHanningWindow(clean.shape[1::-1], cv2.CV_64F)
    edges = [
        np.hypot(ndimage.sobel(one, 0), ndimage.sobel(one, 1)).astype(np.float64) for one in soft
    ]
    (x, y), _ = cv2.phaseCorrelate(edges[0], edges[1], window)
    return float(np.hypot(x, y))


def blocking(pixels: Pixels, period: int) -> float:
    """How much steeper brightness is across columns of a grid than beside them; 1 is not at all."""
    steps = np.abs(np.diff(luma(pixels), axis=1)).mean(axis=0)
    at = np.arange(1, len(steps) + 1) % period == 0
    return float(steps[at].mean() / steps[~at].mean())
