"""Scenes of open land: a misty forest and dunes at twilight."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from convergebench.drawing.canvas import (
    Canvas,
    Colour,
    Shape,
    gradient,
    rgb,
    scaled,
    tinted,
    washed,
)
from convergebench.drawing.fields import (
    Dice,
    Field,
    bump,
    fbm,
    length,
    noise,
    smooth,
    unit,
    wave,
)

_MIST = rgb(0xDDE3DF)


# --- fog ---------------------------------------------------------------------------------------


def _fir(x: float, top: float, base: float, width: float, seed: int) -> Shape:
    """A conifer: tiers of drooping branches around a trunk that goes on below `base`."""
    tall = base - top
    tiers = 17.0 / tall
    foot = base + 0.25

    def distance(u: Field, v: Field) -> Field:
        down, side = v - top, np.abs(u - x)
        ragged = noise(u * 34.0, v * 34.0, seed)
        # By column only: no scraps may float below the lowest branches.
        hem = noise(u * 55.0, u * 0.0, seed + 9)
        tier = (down + side * 0.5) * tiers + ragged * 0.9
        droop = tier - np.floor(tier)
        spread = 0.50 + 0.42 * droop + 0.34 * (noise(u * 11.0, v * 70.0, seed + 5) - 0.5)
        # Slender at the top, and the lowest branches shorter than those above.
        reach = down * (width / tall) * (1.12 - 0.30 * down * (1.0 / tall)) * spread
        skirt = np.maximum(side - reach, down + side * 0.35 - tall + 0.09 * tall * hem)
        crown = np.maximum(skirt, -down)
        trunk = np.maximum(side - width * 0.07, np.maximum(v - foot, 0.5 * tall - down))
        return np.minimum(crown, trunk) * 0.85

    return Shape((x - width * 1.2, top, x + width * 1.2, foot), distance)


def _pine_trunk(x: float, width: float, lean: float, seed: int) -> Shape:
    """A bare trunk from the forest floor out of the picture, slightly bent."""

    def distance(u: Field, v: Field) -> Field:
        axis = x + lean * (0.9 - v) + 0.012 * (noise(v * 3.0, v * 0.0, seed) - 0.5)
        bark = 0.12 * width * (noise(u * 70.0, v * 14.0, seed + 1) - 0.5)
        return np.abs(u - axis) - width * (0.42 + 0.16 * np.maximum(v, 0.0)) - bark

    reach = 0.35 * abs(lean) + width * 2.0 + 0.3
    return Shape((x - reach, -9.0, x + reach, 1.3), distance)


# Bare trunks in front: place, width, lean.
_TRUNKS = (
    (0.055, 0.044, 0.05),
    (0.905, 0.062, -0.04),
    (0.765, 0.022, 0.03),
    (1.22, 0.055, 0.03),
    (-0.25, 0.060, 0.02),
)


def _tree_pitch(layer: int) -> float:
    """Distance between neighbouring trees of a layer (0 far, 5 near)."""
    return 0.052 + 0.024 * layer


@lru_cache(maxsize=64)
def _forest(layer: int, first: int, last: int) -> tuple[Shape, ...]:
    """The trees of one layer (0 far, 5 near) whose cell is in [first, last)."""
    near = layer / 5.0
    trees = []
    for cell in range(first, last):
        dice = Dice(layer, cell, 41)
        x = (cell + dice.roll(0.1, 0.9)) * _tree_pitch(layer)
        base = 0.60 + 0.055 * layer + dice.roll(-0.02, 0.02)
        height = (0.17 + 0.42 * near) * dice.roll(0.65, 1.2)
        trees.append(
            _fir(x, base - height, base, height * dice.roll(0.16, 0.23), cell * 31 + layer)
        )
    return tuple(trees)


def fog(canvas: Canvas) -> None:
    """A misty forest: layers of firs that fade into pale haze."""
    x, y = canvas.grid
    sky = gradient(
        y + 0.04 * (fbm(x * 2.0, y * 4.0, 3, 3) - 0.5),
        (0.0, rgb(0xB4C3C8)),
        (0.30, rgb(0xCED8D8)),
        (0.60, rgb(0xE2E6E0)),
        (1.0, rgb(0xB9C3BD)),
    )
    canvas.blend(sky, 1.0)
    canvas.glow(0.60, 0.30, 0.55, rgb(0xFBF6E6), 0.75)
    deep = rgb(0x66776F)
    x0, _, x1, _ = canvas.extent
    for layer in range(6):
        near = layer / 5.0
        tone = tinted(rgb(0xC9D4D3), deep, near * (0.50 + 0.50 * near))
        pitch = _tree_pitch(layer)
        for tree in _forest(layer, math.floor(x0 / pitch) - 3, math.ceil(x1 / pitch) + 3):
            canvas.fill(tree, tone)
        rolling = fbm(x * (3.0 - near), x * 0.0, 60 + layer, 3) - 0.5
        floor = 0.63 + 0.060 * layer + 0.06 * rolling
        tufts = 0.010 * (noise(x * 90.0, y * 60.0, 8) - 0.5)
        canvas.blend(tinted(tone, rgb(0x7C8C72), 0.30 * near), canvas.cover(floor - y + tufts))
        drift = fbm(x * 1.6 + layer * 3.7, y * 5.0, 80 + layer, 4, canvas.px * 5.0)
        veil = bump(y - floor, -0.01, 0.20 + 0.06 * near) * smooth(drift, 0.15, 0.65)
        canvas.blend(_MIST, veil * (0.92 - 0.22 * near))
    for place, width, lean in _TRUNKS:
        trunk = _pine_trunk(place, width, lean, int(place * 100))
        canvas.fill(trunk, lambda part: _bark(part, deep))
    blades = fbm(x * 70.0, y * 16.0, 91, 3, canvas.px * 70.0)
    floor = 0.965 + 0.06 * (fbm(x * 3.0, x * 0.0, 95, 3) - 0.5) + 0.05 * (blades - 0.5)
    bank = gradient(blades, (0.25, rgb(0x66776B)), (0.75, rgb(0x8F9D88)))
    canvas.blend(bank, smooth(floor - y, 0.012, -0.012))
    canvas.blend(_MIST, 0.30 * smooth(y, 1.02, 0.60))


def _bark(part: Canvas, deep: Colour) -> list[Field]:
    """Ridged bark, a little lighter where the mist lights it from the right."""
    grain = fbm(part.x * 120.0, part.y * 16.0, 77, 3, part.px * 120.0)
    return gradient(
        grain, (0.2, tinted(deep, (0.0, 0.0, 0.0), 0.22)), (0.8, tinted(deep, _MIST, 0.25))
    )


# --- dunes -------------------------------------------------------------------------------------

# Far to near: peaks (x, y, reach left, reach right), foot, lit and shaded colours.
_DUNES = (
    (
        (
            (0.16, 0.560, 0.30, 0.25),
            (0.86, 0.548, 0.42, 0.30),
            (1.35, 0.556, 0.3, 0.3),
            (-0.33, 0.552, 0.3, 0.3),
        ),
        0.605,
        0xD99A86,
        0x8C6590,
    ),
    (
        ((0.47, 0.555, 0.46, 0.40), (-0.15, 0.585, 0.40, 0.30), (1.18, 0.575, 0.40, 0.5)),
        0.665,
        0xE09A76,
        0x6F4F80,
    ),
    (((0.93, 0.610, 0.62, 0.50), (0.05, 0.640, 0.50, 0.40)), 0.770, 0xD98A62, 0x573F70),
    (((0.30, 0.665, 0.75, 0.60), (1.30, 0.730, 0.50, 0.50)), 0.930, 0xC97652, 0x40305C),
    (((1.02, 0.850, 0.95, 0.60), (-0.30, 0.90, 0.4, 0.5)), 1.100, 0xA85C49, 0x2F2549),
)


def _dune(canvas: Canvas, index: int) -> None:
    """One dune line: sharp crests, a lit face to their left and a shaded one to their right."""
    peaks, foot, lit, dark = _DUNES[index]
    part = canvas.crop((-1e6, 0.50, 1e6, 1e6))
    if part is None:
        return
    x, y = part.grid
    ridge: Field = x * 0.0 + foot
    shade: Field = x * 0.0 + y * 0.0
    for px, py, west, east in peaks:
        u = x - px
        s = 1.0 - unit(np.where(u < 0.0, u * (-1.0 / west), u * (1.0 / east)))
        rise = s * s * (0.72 + 0.28 * s)
        ridge = np.minimum(ridge, foot - (foot - py) * rise)
        down = np.maximum(y - py, 0.0)
        # The crest winds towards the viewer, ever softer.
        crest = (
            px
            + 0.55 * down
            + 0.06 * wave(down * (2.2 - 0.2 * index) + 0.13 * index) * smooth(down, 0.0, 0.2)
        )
        soft = 0.002 + 0.22 * down
        face = smooth((x - crest) / soft, -1.0, 1.0) * smooth(u, east * 1.1, 0.15 * east)
        shade = np.maximum(shade, face)
    ridge = ridge + 0.004 * wave(x * 3.1 + index * 0.37)
    depth = np.maximum(y - ridge, 0.0)
    glow = tinted(rgb(lit), rgb(0xFFC490), 0.30)
    bright = gradient(
        depth, (0.0, glow), (0.10, rgb(lit)), (0.42, tinted(rgb(lit), rgb(dark), 0.60))
    )
    gloom = gradient(depth, (0.0, rgb(dark)), (0.30, tinted(rgb(dark), rgb(lit), 0.28)))
    tint = washed(bright, gloom, shade)
    fine = min(max(1.4 - part.px * 130.0, 0.0), 1.0) * 0.008 * index
    bend = 3.0 * noise(x * 4.0, y * 9.0, 200 + index) + 0.8 * noise(x * 16.0, y * 30.0, 210 + index)
    ripple = wave((y * 1.6 + 0.15 * x) * 90.0 / (1.0 + 3.0 * depth) + bend * 1.5)
    tint = scaled(tint, 1.0 + ripple * fine * smooth(depth, 0.005, 0.06))
    part.blend(tint, part.cover(ridge - y))


def dunes(canvas: Canvas) -> None:
    """Sand dunes at twilight under a smooth sky."""
    x, y = canvas.grid
    canvas.blend(
        gradient(
            y + 0.05 * (x - 0.3) * (x - 0.3),
            (-0.15, rgb(0x10173F)),
            (0.10, rgb(0x272C66)),
            (0.28, rgb(0x5D4687)),
            (0.42, rgb(0xB0648E)),
            (0.51, rgb(0xEB9A7C)),
            (0.58, rgb(0xFBD39B)),
        ),
        1.0,
    )
    canvas.shade((-0.35, 0.22, 0.80, 0.88), rgb(0xFFE3AE), 0.55)
    band = fbm(x * 1.1, y * 9.0, 33, 3)
    canvas.blend(rgb(0xF3A5A0), 0.30 * smooth(band, 0.52, 0.78) * bump(y, 0.40, 0.16))
    canvas.blend(rgb(0xFFF6DC), canvas.cover(_moon(x, y)) * 0.95)
    canvas.glow(0.765, 0.160, 0.20, rgb(0xF6E6D8), 0.16)
    for index in range(len(_DUNES)):
        _dune(canvas, index)


def _moon(x: Field, y: Field) -> Field:
    """Signed distance of a thin crescent."""
    disc = length(x - 0.765, y - 0.160) - 0.034
    return np.maximum(disc, 0.031 - length(x - 0.781, y - 0.151))
