"""The classical filters: pixels in, pixels out, nothing learned and nothing left to chance.

Floats become pixels once, at the end, rounded and clipped.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]
Plane: TypeAlias = NDArray[np.float64]

TEMPLATE = 7
SEARCH = 21
"""Sides of the patches that non-local means compares, and of the window it looks for them in."""


def unsharp(pixels: Pixels, amount: float, radius: float) -> Pixels:
    """Unsharp masking: p + amount·(p − G(p)), G a Gaussian of `radius` pixels, border mirrored."""
    values = pixels.astype(np.float64)
    soft = cv2.GaussianBlur(values, (0, 0), radius, borderType=cv2.BORDER_REFLECT_101)
    return _rounded(values + amount * (values - soft))


def non_local_means(pixels: Pixels, strength: float) -> Pixels:
    """OpenCV's non-local means in CIE Lab, with the same strength for lightness and colour.

    Buades, Coll, Morel: A non-local algorithm for image denoising. CVPR 2005.
    """
    swapped = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    clean = cv2.fastNlMeansDenoisingColored(swapped, None, strength, strength, TEMPLATE, SEARCH)
    return np.asarray(cv2.cvtColor(clean, cv2.COLOR_BGR2RGB), np.uint8)


def median(pixels: Pixels, radius: int) -> Pixels:
    """The median of each channel over a square of 2·radius + 1 pixels; the border is repeated."""
    return np.asarray(cv2.medianBlur(pixels, 2 * radius + 1), np.uint8)


def bilateral(pixels: Pixels, contrast: float, radius: int) -> Pixels:
    """A mean of those neighbours whose colour is near, after OpenCV.

    Tomasi, Manduchi: Bilateral filtering for gray and color images. ICCV 1998.
    """
    done = cv2.bilateralFilter(pixels, 2 * radius + 1, contrast, max(radius / 2, 0.5))
    return np.asarray(done, np.uint8)


def bicubic(pixels: Pixels, scale: int) -> Pixels:
    """Enlarged as by MATLAB's `imresize`, each channel on its own, rounded once at the end.

    MATLAB rounds 8-bit pictures after each side as well; that moves Set5's PSNR by 0.005 dB.
    """
    from convergebench.imresize import imresize

    return _rounded(imresize(pixels, scale))


def wiener(pixels: Pixels, radius: float, noise: float, kernel: str, light: str) -> Pixels:
    """Wiener deconvolution of each channel, in linear light or of the values as they are stored."""
    from convergebench.degrading.light import encoded, linear, to_bytes

    point = disc(radius) if kernel == "disc" else gaussian(radius)
    values = linear(pixels) if light == "linear" else pixels / 255.0
    planes = [deconvolved(values[..., channel], point, noise) for channel in range(3)]
    sharp = np.stack(planes, axis=2)
    return to_bytes(encoded(sharp) if light == "linear" else sharp)


def deconvolved(plane: Plane, kernel: Plane, noise: float) -> Plane:
    """The Wiener filter: X = H*·Y / (|H|² + noise), with Y the plane's and H the kernel's spectrum.

    The plane is continued by its mirror image, so that there is no seam to ring at. Its spectrum is
    then a cosine transform, and that of a kernel that is even along both axes is real. The mean is
    left as it is: the filter is one of deviations from it, and would darken the picture otherwise.

    Wiener: Extrapolation, interpolation, and smoothing of stationary time series. 1949.
    """
    import scipy.fft

    height, width = plane.shape
    response = _cosines(height, kernel.shape[0]) @ kernel @ _cosines(width, kernel.shape[1]).T
    spectrum = scipy.fft.dctn(plane, type=2)
    gain = response / (response**2 + noise)
    gain[0, 0] = 1
    sharp = scipy.fft.idctn(spectrum * gain, type=2)
    return np.asarray(sharp, np.float64)


def _cosines(length: int, taps: int) -> Plane:
    """cos(π·k·m / length) for every frequency k and every offset m of the kernel's samples."""
    offsets = np.arange(taps) - taps // 2
    table: Plane = np.cos(np.pi / length * np.arange(length)[:, None] * offsets)
    return table


def disc(radius: float) -> Plane:
    """A disc that sums to 1: of every pixel the share that lies inside, to a 64th."""
    if radius <= 0.5:  # it lies within a pixel
        return np.ones((1, 1))
    reach = math.ceil(radius)
    fine = (np.arange((2 * reach + 1) * 8) + 0.5) / 8 - (reach + 0.5)
    inside = fine[:, None] ** 2 + fine**2 <= radius**2
    shares = inside.reshape(2 * reach + 1, 8, 2 * reach + 1, 8).mean(axis=(1, 3))
    return np.asarray(shares / shares.sum(), np.float64)


def gaussian(radius: float) -> Plane:
    """A Gaussian with this standard deviation that sums to 1, cut off after four of them."""
    reach = math.ceil(4 * radius)
    line = np.exp(-0.5 * (np.arange(-reach, reach + 1) / radius) ** 2)
    plane = line[:, None] * line
    return np.asarray(plane / plane.sum(), np.float64)


def _rounded(values: Plane) -> Pixels:
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)
