"""Old film: a frame of a worn print, as it runs through the gate.

Scratches run along the film, so they are upright, wander and come and go (Kokaram 1998, motion
picture restoration); dust and hairs lie on it; grain is as large as its silver clumps and strongest
in the middle tones; the lamp flickers, so exposure is uneven; the lens darkens the corners; the
gate is soft; dyes and silver have faded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from convergebench.degrading.chance import field, fractal, grain, off_centre
from convergebench.degrading.light import (
    LUMA,
    Pixels,
    Plane,
    bounded,
    encoded,
    linear,
    mixed,
    softened,
    to_bytes,
    unit,
)
from convergebench.degrading.marks import Sheet, hairs, scattered


@dataclass(frozen=True)
class OldFilm:
    """Parameters of old film.

    Attributes:
        soft: Blur of lens and gate, standard deviation in nominal pixels.
        colour: Share of the colour that is left; 0 is a monochrome print.
        tone: How brown the print is, 0 to 1.
        contrast: Contrast that is left after fading.
        grain: Standard deviation of the grain in mid-grey.
        grain_size: Size of the grains, nominal pixels.
        flicker: Unevenness of the exposure, in stops.
        vignette: Light lost in the corners, as a share.
        scratches: Number of scratches along the film.
        dust: Specks per nominal square of 1024×1024, dark and light.
        hairs: Hairs and fibres.
        blotches: Share of the frame under faint blotches.
    """

    soft: float
    colour: float
    tone: float
    contrast: float
    grain: float
    grain_size: float
    flicker: float
    vignette: float
    scratches: int
    dust: int
    hairs: int
    blotches: float


OLD_FILM: Final = (
    OldFilm(
        soft=0.9, colour=0.5, tone=0.35, contrast=0.9, grain=0.035, grain_size=2.2, flicker=0.15,
        vignette=0.25, scratches=4, dust=40, hairs=2, blotches=0.05,
    ),
    OldFilm(
        soft=1.6, colour=0.0, tone=0.35, contrast=0.82, grain=0.045, grain_size=2.8, flicker=0.35,
        vignette=0.4, scratches=10, dust=140, hairs=5, blotches=0.12,
    ),
    OldFilm(
        soft=2.6, colour=0.0, tone=0.6, contrast=0.76, grain=0.055, grain_size=3.0, flicker=0.6,
        vignette=0.5, scratches=22, dust=300, hairs=10, blotches=0.25,
    ),
)  # fmt: skip

SPECTRUM: Final = np.array([0.22, 0.55, 0.23])
"""What old emulsions see of linear red, green and blue: little red, much blue."""


def old_film(pixels: Pixels, p: OldFilm, rng: np.random.Generator) -> Pixels:
    """A frame of worn film."""
    shape = pixels.shape
    (noise,) = rng.spawn(1)
    light = softened(linear(pixels), p.soft * unit(shape))
    light = light * 2.0 ** (p.flicker * _flicker(rng, shape))[..., None]
    light = light * (1.0 - p.vignette * off_centre(shape) ** 2.6)[..., None]
    grey = (light @ SPECTRUM)[..., None]
    value = encoded(grey + p.colour * (light - grey))
    value = _faded(value, p)
    level = bounded(value @ LUMA)
    middle = 4.0 * level * (1.0 - level)
    clumps = 0.9 * grain(noise, shape, p.grain_size)
    clumps += 0.22 * grain(noise, shape, 2.4 * p.grain_size)
    value = value + (p.grain * (0.35 + 0.65 * middle) * clumps)[..., None]
    value = _blotched(value, p, rng)
    dark, bright = _dirt(p, rng, shape)
    value = mixed(value, 0.04, 0.9 * dark)
    value = mixed(value, 0.93, 0.92 * bright)
    for polarity, cover in _scratches(p, rng, shape):
        value = mixed(value, polarity, cover)
    return to_bytes(_toned(value, p.tone))


def _flicker(rng: np.random.Generator, shape: tuple[int, ...]) -> Plane:
    """Unevenness of the exposure: slow over the frame, with faint bars across the film."""
    slow = field(rng, shape, 1.6)
    down = np.linspace(0.0, 1.0, shape[0])
    bars = np.sin(2.0 * np.pi * (rng.uniform(1.0, 2.5) * down + rng.random()))
    return np.clip(0.7 * slow + 0.35 * bars[:, None] + 0.3 * rng.standard_normal(), -1.6, 1.3)


def _faded(value: Plane, p: OldFilm) -> Plane:
    """Steep in the middle and flat at the ends, as a copied print, then lifted and compressed."""
    curve = value * value * (3.0 - 2.0 * value)
    copied = 0.45 * value + 0.55 * curve
    black = 0.6 * (1.0 - p.contrast)
    return black + (copied * p.contrast)


def _toned(value: Plane, tone: float) -> Plane:
    """Browned: shadows warm, highlights cream."""
    warm = np.array([1.0, 0.94, 0.80])
    middle = np.array([0.045, 0.0, -0.05])
    bump = 4.0 * value * (1.0 - value)
    return value * (1.0 + tone * (warm - 1.0)) + tone * middle * bump


def _blotched(value: Plane, p: OldFilm, rng: np.random.Generator) -> Plane:
    """Faint light and dark patches, where the emulsion was wet or mouldy."""
    noise = fractal(rng, value.shape, 3.5, 5, 0.62)
    high = float(np.quantile(noise, 1.0 - p.blotches))
    spread = max(float(noise.std()), 1e-9)
    rim = np.exp(-(((noise - high) / (0.10 * spread)) ** 2))
    inside = 1.0 / (1.0 + np.exp(-np.clip((noise - high) / (0.12 * spread), -30.0, 30.0)))
    return value + (0.05 * inside - 0.09 * rim * p.blotches / 0.25)[..., None]


def _dirt(p: OldFilm, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Plane, Plane]:
    """Coverage by dark and by light dirt: on the print, and on the negative it was made of."""
    one = unit(shape)
    sheets = []
    for share, size in ((0.55, 1.8), (0.45, 2.0)):
        sheet = Sheet(shape)
        scattered(rng, sheet, size, round(p.dust * share))
        hairs(rng, sheet, round(p.hairs * share), 2.0)
        sheets.append(softened(sheet.cover(), 0.6 * one))
    return sheets[0], sheets[1]


def _scratches(
    p: OldFilm, rng: np.random.Generator, shape: tuple[int, ...]
) -> list[tuple[float, Plane]]:
    """Coverage by light and by dark scratches along the film."""
    height, width = shape[:2]
    one = unit(shape)
    covers = {0.96: np.zeros((height, width)), 0.05: np.zeros((height, width))}
    down = np.linspace(0.0, height / (1024.0 * one), height)
    near = rng.uniform(0.0, width)
    column = np.arange(width)
    for _ in range(p.scratches):
        # Scratches come in bundles: a grain of sand in the gate draws several at once.
        near = near + rng.normal(0, 14 * one) if rng.random() < 0.4 else rng.uniform(0.0, width)
        knots = np.linspace(0.0, float(down[-1]), 9)
        wander = np.interp(down, knots, np.cumsum(rng.normal(0.0, 2.2, 9)))
        jitter = np.interp(down, np.linspace(0.0, float(down[-1]), 60), rng.normal(0.0, 0.25, 60))
        middle = near + one * (wander + jitter)
        thick = one * float(np.clip(np.exp(rng.normal(0.25, 0.55)), 0.6, 5.0))
        start, length = rng.uniform(-0.4, 0.8), float(rng.choice([0.3, 0.7, 3.0]))
        strength = np.interp(down, np.linspace(0.0, float(down[-1]), 24), rng.uniform(0.1, 1.0, 24))
        strength = strength * rng.uniform(0.35, 0.95)
        ends = np.clip((down - start) / 0.05, 0, 1) * np.clip((start + length - down) / 0.12, 0, 1)
        strength = np.where(rng.random() < 0.35, strength, strength * ends)
        polarity = 0.96 if rng.random() < 0.72 else 0.05
        low, high = int(middle.min() - thick - 2), int(middle.max() + thick + 3)
        inside = column[max(0, low) : max(0, high)]
        if not inside.size:
            continue
        away = np.abs(inside + 0.5 - middle[:, None])
        cover = np.clip(0.5 * thick + 0.5 - away, 0.0, min(1.0, thick)) * strength[:, None]
        target = covers[polarity][:, inside[0] : inside[-1] + 1]
        np.maximum(target, cover, out=target)
    return list(covers.items())
