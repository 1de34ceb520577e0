"""A scene of soft growth without any period: tree bark under moss and lichen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    bearing,
    bump,
    fbm,
    grit,
    length,
    noise,
    smooth,
    unit,
    wave,
)

_LICHEN_PITCH = 0.115
_LICHENS = (rgb(0xC3D0BC), rgb(0xAEC2B4), rgb(0xD6D8C0), rgb(0xB9C9A0), rgb(0xD9A94A))


def _bark_height(x: Field, y: Field, px: float) -> Field:
    """Height of the bark: plates between long winding furrows, cracked across, and flaky."""
    bend = noise(x * 2.6, y * 2.1, 11) - 0.5
    u = x + 0.13 * bend
    v = y + 0.16 * noise(x * 5.0, y * 3.0, 12)
    # Where a smooth field crosses its mean it leaves winding lines.
    flakes = fbm(u * 34.0, v * 15.0, 15, 6, px * 34.0)
    long = np.abs(noise(u * 15.0 + 0.8 * flakes, v * 2.3, 13) - 0.5) * 2.0
    short = np.abs(noise(u * 30.0, v * 9.0 + 1.9 * flakes, 14) - 0.5) * 2.0
    plate = smooth(long + 0.55 * (flakes - 0.5), 0.0, 0.40)
    pits = grit(u * 420.0, v * 260.0, 16, 2, px * 420.0)
    return 0.44 * plate + 0.20 * smooth(short, 0.0, 0.34) * plate + 0.52 * flakes + 0.016 * pits


def _lit_height(canvas: Canvas) -> tuple[Field, Field]:
    """Height at each pixel, and the rise of the ground towards the lamp, up and to the left."""
    # One more column and row before the first, so that every pixel has its neighbours.
    _, rows, columns = canvas.planes.shape
    (left, top), (column, row), px = canvas.origin, canvas.corner, canvas.px
    x = (left + np.arange(column - 1, column + columns, dtype=np.float64) * px)[np.newaxis, :]
    y = (top + np.arange(row - 1, row + rows, dtype=np.float64) * px)[:, np.newaxis]
    height = _bark_height(x, y, px)
    here = height[1:, 1:]
    rise = 1.25 * here - 0.55 * height[1:, :-1] - 0.70 * height[:-1, 1:]
    return here, rise * (0.011 / px)


def bark(canvas: Canvas) -> None:
    """Furrowed bark, with moss creeping over it and round lichens on the ridges."""
    x, y = canvas.grid
    height, slope = _lit_height(canvas)
    grain = fbm(x * 90.0, y * 22.0, 21, 4, canvas.px * 90.0)
    tint = gradient(
        height + 0.30 * (grain - 0.5),
        (0.14, rgb(0x15100D)),
        (0.40, rgb(0x4A3A2F)),
        (0.66, rgb(0x8A7460)),
        (0.92, rgb(0xB8A68E)),
    )
    stain = fbm(x * 3.1, y * 2.3, 22, 3)
    lit = scaled(tint, unit(0.72 + slope) * 1.18)
    canvas.blend(washed(lit, scaled(rgb(0x8A5A3A), height), 0.40 * smooth(stain, 0.52, 0.72)), 1.0)
    moss = _moss_cover(x, y, height)
    # A film of green algae goes before the moss.
    canvas.blend(scaled(rgb(0x7F8F4A), 0.35 + 0.6 * height), 0.50 * smooth(moss, -0.55, 0.10))
    _lichens(canvas, height, slope)
    _moss(canvas, moss, slope)
    # Sunlight through leaves, too soft to have edges.
    sun = fbm(x * 1.7 + 3.0, y * 1.7, 71, 2)
    canvas.blend((0.03, 0.05, 0.06), 0.38 * smooth(sun, 0.52, 0.24))
    canvas.blend((1.0, 0.95, 0.70), 0.14 * smooth(sun, 0.55, 0.80))


def _moss_cover(x: Field, y: Field, height: Field) -> Field:
    """How thick the moss lies, positive where it grows: in patches, first in the furrows."""
    patch = fbm(x * 2.2 + 0.7 * y + 4.0, y * 1.9 + 1.0, 31, 4)
    return (patch - 0.455 - 0.22 * (height - 0.5)) * 5.0


def _moss(canvas: Canvas, cover: Field, slope: Field) -> None:
    """Moss: soft cushions of tiny shoots, lit from above."""
    x, y = canvas.grid
    px = canvas.px
    cushion = fbm(x * 17.0, y * 17.0, 41, 3, px * 17.0)
    # Shoots lean with their cushion, so that no direction repeats.
    u, v = x + 0.020 * cushion, y - 0.026 * cushion
    shoots = fbm(u * 150.0, v * 130.0, 42, 4, px * 150.0)
    tips = grit(u * 300.0, v * 230.0, 43, 3, px * 300.0)
    edge = smooth(cover + 1.3 * (shoots - 0.5) + 1.1 * (cushion - 0.5) + 0.35 * tips, -0.10, 0.22)
    round_off = smooth(cover + 1.1 * (cushion - 0.5), -0.10, 0.70)
    light = 0.30 + 0.95 * (cushion - 0.5) + 0.80 * (shoots - 0.5) + 0.26 * round_off
    light = light + 0.22 * tips + 0.10 * slope
    tone = gradient(
        light,
        (0.05, rgb(0x12200A)),
        (0.30, rgb(0x33511A)),
        (0.52, rgb(0x67872A)),
        (0.74, rgb(0x9FB545)),
        (1.0, rgb(0xD2D886)),
    )
    age = fbm(x * 4.0, y * 4.0, 44, 3)
    old = washed(tone, scaled(rgb(0x4F8A5A), 0.35 + light), 0.55 * smooth(age, 0.52, 0.32))
    # The cushion's own shadow falls on the bark beside it.
    canvas.blend((0.04, 0.04, 0.02), 0.5 * bump(cover + 1.1 * (cushion - 0.5), -0.12, 0.42))
    canvas.blend(old, edge)


@dataclass(frozen=True, slots=True)
class _Lichen:
    """One rosette: centre, radius, lobes, colour and number."""

    x: float
    y: float
    radius: float
    lobes: float
    hue: Colour
    seed: int


@lru_cache(maxsize=4096)
def _lichen(row: int, column: int) -> _Lichen | None:
    """The rosette of one cell of the plane, if it has one."""
    dice = Dice(row, column, 51)
    if dice.roll() < 0.12:
        return None
    size = dice.roll() * dice.roll()
    return _Lichen(
        x=(column + dice.roll()) * _LICHEN_PITCH,
        y=(row + dice.roll()) * _LICHEN_PITCH,
        radius=0.014 + 0.105 * size,
        lobes=5.0 + 6.0 * dice.roll(),
        hue=_LICHENS[dice.pick(len(_LICHENS)) if size < 0.25 else dice.pick(4)],
        seed=900 + ((row * 71 + column * 13) & 511),
    )


def _lichens(canvas: Canvas, height: Field, slope: Field) -> None:
    """The rosettes that reach into these pixels."""
    x0, y0, x1, y1 = canvas.extent
    columns = range(math.floor(x0 / _LICHEN_PITCH) - 2, math.ceil(x1 / _LICHEN_PITCH) + 2)
    for row in range(math.floor(y0 / _LICHEN_PITCH) - 2, math.ceil(y1 / _LICHEN_PITCH) + 2):
        for column in columns:
            lichen = _lichen(row, column)
            if lichen is None:
                continue
            reach = lichen.radius * 1.35
            part = canvas.crop(
                (lichen.x - reach, lichen.y - reach, lichen.x + reach, lichen.y + reach)
            )
            if part is None:
                continue
            left, top = part.corner[0] - canvas.corner[0], part.corner[1] - canvas.corner[1]
            _, rows, wide = part.planes.shape
            window = (slice(top, top + rows), slice(left, left + wide))
            _rosette(part, lichen, height[window], slope[window])


def _rosette(part: Canvas, lichen: _Lichen, height: Field, slope: Field) -> None:
    """Lobes around a centre, cracked into crumbs, with small cups in the middle."""
    dx, dy = part.x - lichen.x, part.y - lichen.y
    r = length(dx, dy) * (1.0 / lichen.radius)
    turns = bearing(dx, dy)
    crumbs = fbm(part.x * 90.0, part.y * 90.0, lichen.seed, 5, part.px * 90.0)
    broad = noise(part.x * 28.0, part.y * 28.0, lichen.seed + 1)
    lobes = np.abs(wave(turns * lichen.lobes + 0.6 * broad))
    rim = 0.62 + 0.16 * lobes + 0.46 * (broad - 0.5) + 0.60 * (crumbs - 0.5)
    cover = smooth(rim - r, -0.02, 0.10 + part.px / lichen.radius)
    cracks = np.abs(noise(part.x * 150.0 + 3.0 * crumbs, part.y * 150.0, lichen.seed + 2) - 0.5)
    fine = min(max(1.5 - part.px * 210.0, 0.0), 1.0)
    light = 0.80 + 0.75 * (crumbs - 0.5) + 0.35 * slope + 0.16 * bump(rim - r, 0.02, 0.10)
    light = light - 0.15 * fine * (1.0 - smooth(cracks, 0.0, 0.20))
    tone = washed(lichen.hue, tinted(lichen.hue, (0.30, 0.34, 0.30), 0.5), smooth(r, 0.55, 0.0))
    cups = smooth(noise(part.x * 120.0, part.y * 120.0, lichen.seed + 3), 0.80, 0.86)
    tone = washed(tone, rgb(0x5A4A3A), fine * cups * smooth(r, 0.50, 0.30) * 0.7)
    part.blend(scaled(tone, light), cover * smooth(height, 0.24, 0.46) * 0.94)
