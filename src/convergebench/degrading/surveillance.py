"""Surveillance: a cheap camera at night, an interlaced signal, and a recorder short of disk.

Few lines, little light (noise rises, colours wash out), two fields taken at different moments (so
that what moves is combed), colour carried with less bandwidth than brightness and shifted by the
cable, hard JPEG blocks, the time burnt in. The overlay's font is our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from convergebench.degrading.chance import between, field, off_centre
from convergebench.degrading.lettering import stamped
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
)


@dataclass(frozen=True)
class Surveillance:
    """Parameters of surveillance footage.

    Attributes:
        lines: Lines of the short side.
        light: Share of the light that there is; the camera's gain makes up for half of it.
        noise: Standard deviation of the noise in mid-grey.
        colour: Share of the colour that is left.
        comb: Distance in lines that moving things go from one field to the next.
        bleed: Horizontal blur of the colours, lines.
        glow: Light of the lamps beside the lens, falling off to the corners, 0 to 1.
        quality: JPEG quality of the recorder.
    """

    lines: int
    light: float
    noise: float
    colour: float
    comb: float
    bleed: float
    glow: float
    quality: int


SURVEILLANCE: Final = (
    Surveillance(
        lines=432, light=0.8, noise=0.02, colour=0.75, comb=1.0, bleed=1.2, glow=0.1, quality=42
    ),
    Surveillance(
        lines=288, light=0.5, noise=0.032, colour=0.5, comb=2.0, bleed=2.2, glow=0.3, quality=26
    ),
    Surveillance(
        lines=216, light=0.32, noise=0.044, colour=0.2, comb=3.0, bleed=3.0, glow=0.6, quality=20
    ),
)


def surveillance(pixels: Pixels, p: Surveillance, rng: np.random.Generator) -> Pixels:
    """A still of surveillance footage."""
    height, width = pixels.shape[:2]
    light = bounded(resized(linear(pixels), *sensor_size(pixels.shape, p.lines)))
    shape = light.shape
    light = light * (p.light * (1.0 - p.glow * off_centre(shape) ** 2))[..., None]
    glare = softened(np.maximum(light - 0.6 * p.light, 0.0), 0.02 * min(shape[:2]))
    value = _exposed(encoded(light + 0.5 * glare), p)
    (noise,) = rng.spawn(1)
    value = _noisy(value, p, noise)
    value = _coloured(value, p)
    value = _combed(value, p.comb, rng)
    value = stamped(value, rng)
    value = through_jpeg(bounded(value), p.quality)
    return to_bytes(_shown(value, height, width))


def _exposed(value: Plane, p: Surveillance) -> Plane:
    """The camera's gain: brighter shadows, a grey veil, flat highlights."""
    gain = float(p.light**-0.2)
    return 0.05 + 0.13 * (1.0 - p.light) + (0.93 - 0.2 * (1.0 - p.light)) * value * gain


def _noisy(value: Plane, p: Surveillance, rng: np.random.Generator) -> Plane:
    """Noise of brightness drawn out along the lines, and of colour in larger patches."""
    shape = value.shape
    luma = 0.85 * _even(softened(rng.standard_normal(shape[:2]), 0.25, 0.6))
    chroma = 0.55 * _even(softened(rng.standard_normal(shape), 0.8, 1.4))
    rows = 0.25 * rng.standard_normal((shape[0], 1))
    strength = p.noise * (1.25 - 0.7 * bounded(value))
    return np.asarray(value + strength * ((luma + rows)[..., None] + chroma), np.float64)


def _even(noise: Plane) -> Plane:
    """Of unit variance."""
    return noise / max(float(noise.std()), 1e-9)


def _coloured(value: Plane, p: Surveillance) -> Plane:
    """Washed-out colours, blurred and late by a line or so, under a greenish cast."""
    luma = (value @ np.array([0.299, 0.587, 0.114]))[..., None]
    colour = softened(value - luma, 0.6, p.bleed)
    late = round(0.5 * p.bleed)
    colour = np.concatenate([colour[:, :1].repeat(late, 1), colour[:, : -late or None]], axis=1)
    cast = (1.0 - p.colour) * np.array([-0.022, 0.016, -0.006])
    # Analogue brightness is sharpened by the camera: a thin halo beside upright edges.
    ring = luma[..., 0] - softened(luma[..., 0], 0.3, 1.2)
    return np.asarray(luma + 0.9 * ring[..., None] + p.colour * colour + cast, np.float64)


def _combed(value: Plane, distance: float, rng: np.random.Generator) -> Plane:
    """Two fields: where something moves, odd lines are ahead of even ones by so many pixels."""
    height, width = value.shape[:2]
    moves = between(field(rng, value.shape, 3.0), 0.35, 0.9)
    way = rng.choice([-1.0, 1.0])
    side = np.where(np.arange(height) % 2 == 0, -0.5, 0.5)[:, None]
    # The whole camera trembles a little; what moves, moves more. Half each way: nothing shifts.
    ahead = way * side * distance * (0.25 + 0.75 * moves)
    at = np.clip(np.arange(width) + ahead, 0.0, width - 1.0)
    left = np.minimum(np.floor(at).astype(np.intp), width - 2)
    part = (at - left)[..., None]
    row = np.arange(height)[:, None]
    return np.asarray(value[row, left] * (1.0 - part) + value[row, left + 1] * part, np.float64)


def _shown(value: Plane, height: int, width: int) -> Plane:
    """Enlarged as a player does: bilinear between doubled lines, so that lines stay visible."""
    if height <= value.shape[0] and width <= value.shape[1]:
        return resized(value, height, width)
    doubled = value.repeat(2, axis=0).repeat(2, axis=1)
    return bounded(resized(doubled, height, width))
