"""Scenes of many small things: dense leaves and bursting powder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from convergebench.drawing.canvas import (
    Canvas,
    Colour,
    gradient,
    rgb,
    scaled,
    tinted,
    washed,
)
from convergebench.drawing.fields import (
    Dice,
    Value,
    bearing,
    bump,
    direction,
    fbm,
    length,
    noise,
    ramp,
    smooth,
    speckle,
    unit,
    wave,
)

# --- foliage -----------------------------------------------------------------------------------

_LEAF_PITCH = 0.082
_TINY = 0.03
_GREENS = (rgb(0x2F6B2B), rgb(0x4B8B32), rgb(0x6FA83A), rgb(0x3E7F4C), rgb(0x93B944), rgb(0x2C7A55))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf: where it lies, how it is turned, how it looks."""

    x: float
    y: float
    size: float
    heading: tuple[float, float]
    slim: float
    veins: float
    bright: float
    hue: Colour


@lru_cache(maxsize=8192)
def _leaf(row: int, column: int, layer: int) -> _Leaf:
    """The leaf that grows in one cell of the plane."""
    dice = Dice(row, column, layer, 7)
    return _Leaf(
        x=(column + dice.roll(-0.2, 1.2)) * _LEAF_PITCH,
        y=(row + dice.roll(-0.2, 1.2)) * _LEAF_PITCH,
        size=_LEAF_PITCH * dice.roll(0.75, 1.25),
        heading=direction(dice.roll()),
        slim=dice.roll(0.36, 0.52),
        veins=dice.roll(4.0, 6.0),
        bright=dice.roll(0.85, 1.12) * (0.36 + 0.72 * layer / 3.0),
        hue=_GREENS[dice.pick(len(_GREENS))],
    )


def _paint_leaf(canvas: Canvas, leaf: _Leaf) -> None:
    """A pointed leaf with veins, and the soft shadow it throws on those below."""
    c, s = leaf.heading
    wide = abs(c) + abs(s) * (leaf.slim + 0.27)
    tall = abs(s) + abs(c) * (leaf.slim + 0.27)
    reach_x, reach_y = wide * leaf.size, tall * leaf.size
    part = canvas.crop((leaf.x - reach_x, leaf.y - reach_y, leaf.x + reach_x, leaf.y + reach_y))
    if part is None:
        return
    k = 1.0 / leaf.size
    p, q = (part.x - leaf.x) * k, (part.y - leaf.y) * k
    along = p * c + q * s
    bow = along * along
    across = q * c - p * s + 0.10 * bow
    side = np.abs(across)
    # Blunt at the stalk, pointed at the tip.
    gap = side - (1.0 - bow) * (leaf.slim - 0.28 * leaf.slim * along)
    part.planes[:] *= 1.0 - 1.2 * np.minimum(np.maximum(0.16 - gap, 0.0), 0.5)
    fine = min(max(1.5 - part.px * k * leaf.veins * 1.5, 0.0), 1.0)
    rib = (along + side * 1.1) * leaf.veins
    rib = np.maximum(1.0 - np.abs(rib - np.floor(rib) - 0.5) * 5.0, 0.0)
    light = np.where(across * (c + 0.4) > 0.0, leaf.bright, 0.78 * leaf.bright)
    light *= 1.05 + 0.14 * along * (1.0 - 0.4 * bow) - (0.14 * fine) * rib
    midrib = unit(1.0 - side * 22.0) * (0.75 * leaf.bright)
    pale = tinted(leaf.hue, (0.93, 0.97, 0.62), 0.62)
    cover = unit(0.5 - gap * (0.85 * leaf.size / part.px))
    part.blend(washed(scaled(leaf.hue, light), pale, midrib), cover)


def foliage(canvas: Canvas) -> None:
    """Dense leaves in four layers over moss, brighter towards the viewer."""
    x, y = canvas.grid
    moss = fbm(x * 26.0, y * 26.0, 5, 4, canvas.px * 26.0)
    canvas.blend(gradient(moss, (0.25, rgb(0x07170C)), (0.75, rgb(0x1E3B1A))), 1.0)
    x0, y0, x1, y1 = canvas.extent
    columns = range(math.floor(x0 / _LEAF_PITCH) - 2, math.ceil(x1 / _LEAF_PITCH) + 2)
    rows = range(math.floor(y0 / _LEAF_PITCH) - 2, math.ceil(y1 / _LEAF_PITCH) + 2)
    # In a picture of a few pixels the lower layers cannot be seen and would only cost time.
    for layer in range(2 if canvas.px > _TINY else 0, 4):
        for row in rows:
            for column in columns:
                _paint_leaf(canvas, _leaf(row, column, layer))
    sun = fbm(x * 2.3, y * 2.3, 19, 3)
    canvas.blend((0.02, 0.08, 0.07), 0.42 * smooth(sun, 0.55, 0.30))
    canvas.blend((1.0, 0.97, 0.55), 0.22 * smooth(sun, 0.52, 0.78))


# --- particles ---------------------------------------------------------------------------------

_POWDER = (rgb(0xFF2E88), rgb(0xFF7A1A), rgb(0xFFD02E), rgb(0x2ED67B), rgb(0x1FA8F2), rgb(0x8A3DF0))
_HEART = (0.5, 0.53)


@cache
def _grains() -> tuple[tuple[float, float, float, float, float, Colour], ...]:
    """Flying grains: centre, radius, direction and colour, denser towards the heart."""
    grains = []
    for index in range(900):
        dice = Dice(index, 977)
        turns = dice.roll()
        c, s = direction(turns)
        reach = 0.14 + 0.62 * dice.roll() * (0.35 + 0.65 * dice.roll())
        size = 0.0016 + 0.0075 * dice.roll() * dice.roll() * dice.roll()
        colour = _POWDER[int(turns * 6.0 + dice.roll(-0.5, 0.5)) % 6]
        pale = tinted(colour, (1.0, 1.0, 1.0), dice.roll(0.0, 0.45))
        grains.append((_HEART[0] + c * reach, _HEART[1] + s * reach, size, c, s, pale))
    return tuple(grains)


def particles(canvas: Canvas) -> None:
    """Coloured powder bursting on a dark ground, with flying grains."""
    x, y = canvas.grid
    dx, dy = x - _HEART[0], y - _HEART[1]
    r = length(dx, dy)
    canvas.blend(
        gradient(r, (0.0, rgb(0x2A2440)), (0.45, rgb(0x14131F)), (0.85, rgb(0x08080D))), 1.0
    )
    warp = fbm(x * 3.0, y * 3.0, 11, 3, canvas.px * 3.0) - 0.5
    warp_too = fbm(x * 3.0 + 9.2, y * 3.0 + 4.7, 12, 3, canvas.px * 3.0) - 0.5
    # Stretch the noise outwards from the heart: plumes, not clouds.
    pull = 1.0 / (0.35 + 1.3 * r)
    u, v = dx * pull * 4.2 + warp * 1.8, dy * pull * 4.2 + warp_too * 1.8
    body = fbm(u, v, 21, 6, canvas.px * 9.0)
    toward_light = fbm(u + 0.16, v + 0.20, 21, 5, canvas.px * 9.0)
    turns = bearing(dx, dy) + warp * 0.34
    lobes = noise(wave(turns) * 2.2 + 5.0, wave(turns + 0.25) * 2.2 + 5.0, 31)
    reach = 0.24 + 0.30 * lobes
    density = smooth(1.0 - r / reach + (body - 0.5) * 1.9, -0.10, 0.62)
    tone = (turns + 0.25 * warp_too) * 6.0
    tone = tone - 6.0 * np.floor(tone * (1.0 / 6.0))
    stops = tuple((float(i), _POWDER[i % 6]) for i in range(7))
    tint = gradient(tone, *stops)
    relief = unit(0.62 + (body - toward_light) * 3.2)
    grain: Value = 0.5
    if canvas.px < 1.0 / 150.0:
        grain = speckle(x * 420.0, y * 420.0, 51) * 0.6 + speckle(x * 250.0, y * 250.0, 52) * 0.4
    lit = washed(
        scaled(tint, 0.30 + 0.85 * relief), (1.0, 0.98, 0.95), smooth(relief, 0.75, 1.1) * 0.45
    )
    lit = scaled(lit, 0.90 + 0.20 * grain)
    canvas.blend(washed(lit, (1.0, 0.97, 0.92), bump(r, 0.0, 0.17) * 0.75), density)
    halo = smooth(1.0 - r / (reach * 1.8) + (body - 0.5) * 1.2, 0.0, 1.3) * (1.0 - density)
    canvas.blend(scaled(tint, 0.75), halo * 0.38)
    dust = ramp(speckle(x * 300.0, y * 300.0, 61), 0.965, 1.0) * smooth(r, 0.75, 0.20)
    canvas.blend(washed(tint, (1.0, 1.0, 1.0), 0.45), dust * 0.8)
    for gx, gy, size, c, s, colour in _grains():
        part = canvas.crop((gx - 3.0 * size, gy - 3.0 * size, gx + 3.0 * size, gy + 3.0 * size))
        if part is not None:
            p, q = part.x - gx, part.y - gy
            along, across = p * c + q * s, q * c - p * s
            cover = part.cover(length(along * 0.5, across) - size)
            fade = min(1.0, 1.6 * size / part.px)
            part.blend(colour, cover * fade)
