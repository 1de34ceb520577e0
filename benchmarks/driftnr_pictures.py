"""Pictures that training chains of `drift-nr` begin with, drawn by code.

- crops of seven drawn scenes (`TRAINING_SCENES`; the others are kept for validation);
- *dead leaves*: overlapping shapes whose sizes follow a power law, each with a 1/f texture, whose
  statistics are close to those of photographs;
- *rough* ones: ridges, grains and streaks; and a few *clouds*, 1/f noise of random slope;

each finished as by some camera: softened or sharpened a little, with grain, contrast and white
balance of its own. So calm and busy, grainy and clean, soft and sharp pictures all begin chains.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from convergebench.drawing import scene
from convergebench.editors.reference import media

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]
Draw = np.random.Generator

TRAINING_SCENES: Final = (
    "grid",
    "particles",
    "table",
    "fabric",
    "character",
    "dunes",
    "still-life",
)
SIDES: Final = (96, 128, 160, 192, 256)


def picture(draw: Draw, *, rough: bool = False) -> Pixels:
    """A fresh picture: rough all over, or of one of the other kinds."""
    side = int(draw.choice(SIDES))
    if rough:
        return _finished(_rough(draw, side), draw)
    kinds = {"scene": _scene_crop, "leaves": _dead_leaves, "clouds": _cloudy}
    made = kinds[str(draw.choice(list(kinds), p=[0.45, 0.5, 0.05]))](draw, side)
    return _finished(made, draw)


def _scene_crop(draw: Draw, side: int) -> Floats:
    name = str(draw.choice(TRAINING_SCENES))
    whole = round(side * draw.uniform(1.0, 2.2))
    drawn = scene(name, whole, whole)
    top, left = (int(draw.integers(0, whole - side + 1)) for _ in range(2))
    cut = drawn[top : top + side, left : left + side].astype(np.float32)
    return cut[:, :: int(draw.choice([-1, 1]))].copy()


def _fractal(draw: Draw, side: int, slope: float) -> Floats:
    """Noise whose amplitude falls as 1 / frequency**slope; mean 0, deviation 1."""
    f = np.fft.fftfreq(side)
    radius = np.hypot(f[:, None], f[None, : side // 2 + 1])
    radius[0, 0] = 1
    shape = np.fft.rfft2(draw.standard_normal((side, side))) / radius**slope
    shape[0, 0] = 0
    field = np.fft.irfft2(shape, (side, side))
    return np.asarray(field / field.std(), np.float32)


def _dead_leaves(draw: Draw, side: int) -> Floats:
    big = 2 * side
    palette = draw.uniform(10, 245, (8, 3))
    grey = palette.mean(axis=1, keepdims=True)
    palette = grey + draw.uniform(0.1, 1) * (palette - grey)
    textures = [_fractal(draw, big, draw.uniform(0.6, 1.8)) for _ in range(3)]
    depth = draw.choice([0.0, 4.0, 12.0, 25.0], p=[0.15, 0.3, 0.3, 0.25])
    canvas = np.asarray(palette[0] + textures[0][..., None] * depth, np.float32)
    smallest = draw.uniform(0.015, 0.08)
    for _ in range(int(draw.integers(100, 900))):
        # Density of radii ~ r**-3 between the smallest and half the picture: scale invariance.
        low, high = smallest**-2, 0.5**-2
        reach = (low + draw.random() * (high - low)) ** -0.5 * big / 2
        axes = (max(2, int(reach)), max(2, int(reach * draw.uniform(0.3, 1))))
        x, y = (int(v) for v in draw.integers(0, big, 2))
        left, top = max(0, x - axes[0] - 1), max(0, y - axes[0] - 1)
        here = np.s_[top : y + axes[0] + 2, left : x + axes[0] + 2]
        mask = np.zeros(canvas[here].shape[:2], np.uint8)
        cv2.ellipse(mask, (x - left, y - top), axes, float(draw.uniform(0, 180)), 0, 360, 1, -1)
        inside = mask.astype(bool)
        tone = palette[int(draw.integers(8))] + draw.normal(0, 12, 3)
        field = textures[int(draw.integers(3))][here][inside] * (depth * draw.random())
        canvas[here][inside] = tone + field[:, None]
    made = np.asarray(cv2.resize(canvas, (side, side), interpolation=cv2.INTER_AREA), np.float32)
    if draw.random() < 0.6:  # light and shadow
        light = 1 + np.float32(draw.uniform(0.05, 0.25)) * _fractal(draw, side, 1.8)
        made = made * np.clip(light, 0.3, 1.5)[..., None]
    if draw.random() < 0.5:  # out of focus here and there
        away = media.gaussian(made, float(draw.uniform(1.5, 5)))
        near = 1 / (1 + np.exp(-4 * _fractal(draw, side, 2.0) + draw.uniform(-4, 4)))
        made = away + near.astype(np.float32)[..., None] * (made - away)
    return made


def _rough(draw: Draw, side: int) -> Floats:
    """Bark, gravel, water, grass: ridges, grains and streaks of many sizes, in patches."""
    tones = draw.uniform(30, 225, (3, 3))
    tones = tones.mean(axis=1, keepdims=True) + draw.uniform(0.1, 0.7) * (
        tones - tones.mean(axis=1, keepdims=True)
    )
    made = np.zeros((side, side, 3), np.float32)
    weights = np.exp(np.stack([2.5 * _fractal(draw, side, 1.6) for _ in range(3)]))
    weights /= weights.sum(axis=0)
    for tone, weight in zip(tones, weights, strict=True):
        field = _fractal(draw, side, draw.uniform(0.4, 1.3))
        if draw.random() < 0.5:  # streaks
            height, width = (int(side * v) for v in draw.uniform(0.2, 1, 2))
            part = np.ascontiguousarray(field[: max(8, height), : max(8, width)])
            wide = cv2.resize(part, (side, side), interpolation=cv2.INTER_CUBIC)
            field = np.asarray(wide, np.float32)
        if draw.random() < 0.5:  # ridges
            field = np.float32(1.5) - np.float32(2) * np.abs(field)
        depth = draw.uniform(8, 45)
        made += weight[..., None] * (tone + depth * np.clip(field, -2.5, 2.5)[..., None])
    return made


def _cloudy(draw: Draw, side: int) -> Floats:
    slope = draw.uniform(1.0, 1.6)
    tone = 128 + draw.uniform(15, 50) * _fractal(draw, side, slope)
    hue = [draw.uniform(0, 25) * _fractal(draw, side, slope + 0.2) for _ in range(3)]
    return np.asarray(tone[..., None] + np.stack(hue, axis=-1), np.float32)


def _finished(made: Floats, draw: Draw) -> Pixels:
    """As some camera would have it."""
    soft = float(draw.choice([0.0, draw.uniform(0.3, 0.9)]))
    if soft:
        made = media.gaussian(made, soft)
        made = made + np.float32(draw.uniform(0, 0.8)) * (made - media.gaussian(made, 1.0))
    mean = made.mean(axis=(0, 1))
    made = mean + (made - mean) * np.float32(draw.uniform(0.7, 1.1))
    made = made * draw.uniform(0.93, 1.07, 3).astype(np.float32) + np.float32(draw.uniform(-12, 12))
    grain = float(draw.choice([0.0, draw.uniform(0.3, 3.0)]))
    if grain:
        field = draw.standard_normal((*made.shape[:2], 1), np.float32) * np.float32(grain)
        speck = draw.standard_normal(made.shape, np.float32) * np.float32(
            grain * draw.uniform(0, 0.6)
        )
        spread = draw.uniform(0, 0.8)
        both = field + speck
        made = made + (media.gaussian(both, spread) * (1 + 2 * spread) if spread > 0.3 else both)
    return media.levels(made)
