"""Seeded chance, and random fields over the picture whose look does not depend on its size.

What is drawn once a pixel (grain, noise) comes from a generator of its own, so that scratches and
bumps lie in the same places in a picture and in its preview.
"""

from __future__ import annotations

import hashlib

import cv2
import numpy as np
from scipy.sparse import csr_array

from convergebench.degrading.light import Plane, softened, unit


def generator(*seeds: object) -> np.random.Generator:
    """A PCG64 generator seeded by the SHA-256 of what is given."""
    told = "/".join(str(seed) for seed in seeds)
    return np.random.Generator(np.random.PCG64(int(hashlib.sha256(told.encode()).hexdigest(), 16)))


def field(rng: np.random.Generator, shape: tuple[int, ...], cells: float) -> Plane:
    """Smooth noise of about unit variance, `cells` bumps to the short side.

    The lattice depends on the shape of the picture and not on its size: a preview gets the same
    bumps in the same places.
    """
    height, width = shape[:2]
    short = min(height, width)
    rows, columns = (max(4, round(cells * side / short) + 3) for side in (height, width))
    lattice = rng.standard_normal((rows, columns))
    # Smoothed first, so that the lattice's squares do not show; 2.6 restores the variance.
    smooth = np.array([0.25, 0.5, 0.25])
    lattice = np.asarray(cv2.sepFilter2D(lattice, cv2.CV_64F, smooth, smooth), np.float64)
    y = 1.0 + (np.arange(height, dtype=np.float64) + 0.5) * ((rows - 3) / height)
    x = 1.0 + (np.arange(width, dtype=np.float64) + 0.5) * ((columns - 3) / width)
    return np.ascontiguousarray(2.6 * _spline(_spline(lattice, y).T, x).T)


def _spline(values: Plane, at: Plane) -> Plane:
    """Rows of a lattice at fractional positions, Catmull-Rom between them."""
    base = np.clip(np.floor(at).astype(np.intp), 1, len(values) - 3)
    t = at - base
    weights = np.stack(
        [
            0.5 * t * (t * (2.0 - t) - 1.0),
            1.0 + 0.5 * t * t * (3.0 * t - 5.0),
            0.5 * t * (t * (4.0 - 3.0 * t) + 1.0),
            0.5 * t * t * (t - 1.0),
        ],
        axis=1,
    )
    columns = base[:, None] + np.arange(-1, 3)
    ends = np.arange(0, weights.size + 1, 4)
    mixing = csr_array((weights.ravel(), columns.ravel(), ends), (len(at), len(values)))
    return np.asarray(mixing @ values, np.float64)


def fractal(
    rng: np.random.Generator, shape: tuple[int, ...], cells: float, octaves: int, gain: float = 0.5
) -> Plane:
    """Smooth noise with detail: octaves of `field`, each `gain` as strong as the one before."""
    total = np.zeros(shape[:2])
    (own,) = rng.spawn(1)  # how many octaves are drawn must not move what is drawn afterwards
    for octave in range(octaves):
        if cells * 2**octave > min(shape[:2]):
            break  # finer than the pixels
        total += gain**octave * field(own, shape, cells * 2**octave)
    return total


def grain(rng: np.random.Generator, shape: tuple[int, ...], size: float) -> Plane:
    """Grain of unit variance, `size` nominal pixels across.

    Where grains are finer than pixels, a pixel is the mean of several, and the variance is less.
    """
    across = size * unit(shape)
    noise = rng.standard_normal(shape[:2])
    if across <= 1.0:
        return noise * across
    sigma = 0.42 * across
    soft = softened(noise, sigma)
    return np.asarray(soft / max(float(soft.std()), 1e-9), np.float64)


def normalised(values: Plane) -> Plane:
    """Brought to [0, 1]; a flat one is all 0."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / max(high - low, 1e-12)


def between(values: Plane, low: float, high: float) -> Plane:
    """0 below `low`, 1 above `high`, eased between (`low` may be the larger)."""
    t = np.clip((values - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def places(shape: tuple[int, ...]) -> tuple[Plane, Plane]:
    """Row and column coordinates of the pixels' centres, in short sides from the middle."""
    height, width = shape[:2]
    short = min(height, width)
    y = (np.arange(height) + 0.5 - height / 2) / short
    x = (np.arange(width) + 0.5 - width / 2) / short
    return np.broadcast_to(y[:, None], (height, width)), np.broadcast_to(x, (height, width))


def off_centre(shape: tuple[int, ...]) -> Plane:
    """Distance from the middle: 1 in the corners."""
    y, x = places(shape)
    distance = np.sqrt(y * y + x * x)
    return np.asarray(distance / distance.max(), np.float64)
