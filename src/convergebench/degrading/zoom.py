"""Digital zoom: a small part of a sensor, stretched over the whole picture.

Light is gathered by few pixels, each behind one colour of a Bayer mosaic (Bayer 1976), with shot
and read noise that grows with the gain (Foi et al. 2008); then the camera's own work: demosaic,
white balance, denoising of colours, sharpening before and after the enlargement, JPEG. The view is
not cropped: the pair stays aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from convergebench.degrading.light import (
    Pixels,
    Plane,
    bounded,
    encoded,
    linear,
    resized,
    sensor_size,
    softened,
    through_jpeg,
    to_bytes,
    unit,
)

BALANCE: Final = np.array([2.0, 1.0, 1.6])
"""Gains of red, green and blue by which a sensor's colours become white under daylight."""


@dataclass(frozen=True)
class DigitalZoom:
    """Parameters of digital zoom.

    Attributes:
        lines: Sensor pixels that the short side of the view is taken with.
        photons: Electrons of a white pixel; the fewer, the more shot noise.
        read: Read noise, electrons.
        smear: Blur of colour differences by the camera's denoiser, sensor pixels.
        sharpen: Strength of the sharpening of the enlarged picture; makes halos.
        quality: JPEG quality of the file.
    """

    lines: int
    photons: float
    read: float
    smear: float
    sharpen: float
    quality: int


DIGITAL_ZOOM: Final = (
    DigitalZoom(lines=400, photons=5000.0, read=6.0, smear=0.8, sharpen=0.9, quality=78),
    DigitalZoom(lines=250, photons=3000.0, read=7.0, smear=1.2, sharpen=1.3, quality=60),
    DigitalZoom(lines=160, photons=1800.0, read=8.0, smear=1.6, sharpen=1.7, quality=42),
)


def digital_zoom(pixels: Pixels, p: DigitalZoom, rng: np.random.Generator) -> Pixels:
    """Taken with few sensor pixels and blown up."""
    height, width = pixels.shape[:2]
    light = resized(linear(pixels), *sensor_size(pixels.shape, p.lines))
    raw = mosaic(bounded(softened(light, 0.45)))  # the lens limits what the mosaic sees
    raw = raw + noise_of(raw, p.photons, p.read) * rng.standard_normal(raw.shape)
    light = demosaiced(raw)
    value = calmed(encoded(light), p.smear)
    value = sharpened(value, 0.8, 0.5)
    value = bounded(resized(value, height, width))
    stretch = max(height / light.shape[0], 0.3)
    value = bounded(sharpened(value, 0.75 * stretch, p.sharpen))
    if unit(pixels.shape) < 0.02:  # thumbnails of a few blocks: JPEG would be all there is
        return to_bytes(value)
    return to_bytes(through_jpeg(value, p.quality))


def mosaic(light: Plane) -> Plane:
    """What the pixels behind a red-green-green-blue mosaic see, before white balance."""
    seen = light / BALANCE
    raw = seen[..., 1].copy()
    raw[0::2, 0::2] = seen[0::2, 0::2, 0]
    raw[1::2, 1::2] = seen[1::2, 1::2, 2]
    return np.asarray(raw, np.float64)


def noise_of(raw: Plane, photons: float, read: float) -> Plane:
    """Standard deviation of shot and read noise, as a share of the white level."""
    return np.asarray(np.sqrt(np.maximum(raw, 0.0) * photons + read * read) / photons, np.float64)


def demosaiced(raw: Plane) -> Plane:
    """Linear colours of a mosaic, interpolated along edges, white balanced."""
    # The black level keeps the noise of shadows from being cut off, which would brighten them.
    black, white = 4096.0, 56000.0
    counts = np.clip(np.rint(raw * white + black), 0, 65535).astype(np.uint16)
    # OpenCV names a mosaic by its second row: red first is its BG.
    colours = np.asarray(cv2.cvtColor(counts, cv2.COLOR_BayerBG2RGB_EA), np.float64)
    return bounded((colours - black) / white * BALANCE)


def calmed(value: Plane, smear: float) -> Plane:
    """With colour differences blurred, as cameras do against coloured noise."""
    luma = value @ np.array([0.299, 0.587, 0.114])
    return np.asarray(luma[..., None] + softened(value - luma[..., None], smear), np.float64)


def sharpened(value: Plane, sigma: float, strength: float) -> Plane:
    """Unsharp masking."""
    return value + strength * (value - softened(value, sigma))
