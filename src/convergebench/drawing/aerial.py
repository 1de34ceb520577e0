"""The scene `aerial`: a small town from straight above."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    direction,
    fbm,
    grit,
    noise,
    smooth,
    speckle,
    stripes,
    unit,
    wave,
    wave_at,
)
from convergebench.drawing.shapes import box, circle, line

# The town's blocks follow two axes, turned a little out of the picture's.
_COS, _SIN = direction(0.028)
_BLOCK = 0.168
_ROAD = 0.0165
_ROOFS = (
    rgb(0xA8523A), rgb(0xB96845), rgb(0x8F4434), rgb(0x9C6A52), rgb(0x6E6A6A), rgb(0x86807A),
    rgb(0xC08A60), rgb(0x77503F),
)  # fmt: skip
_CARS = (
    rgb(0xE9E9E6), rgb(0x2A2C31), rgb(0xB02A2A), rgb(0x2F5FA8), rgb(0xA9ADB2), rgb(0xE2C23A),
)  # fmt: skip
_CROPS = (
    rgb(0x7E9A3E), rgb(0xC9B25A), rgb(0x5E8038), rgb(0xA98F5C), rgb(0x94A94C), rgb(0x8A6E4A),
)  # fmt: skip
_SUN = (0.55, 0.72)


@dataclass(frozen=True, slots=True)
class _House:
    """A house in its block's axes: box, height of its eaves and which way its ridge runs."""

    u0: float
    v0: float
    u1: float
    v1: float
    tall: float
    along: bool
    flat: bool
    roof: Colour
    seed: int


def aerial(canvas: Canvas) -> None:
    """Streets, houses and their gardens on one bank of a river, fields on the other."""
    _fields(canvas)
    _town(canvas)
    _river(canvas)
    _hedges(canvas)
    _bridges(canvas)


def _bank(x: Field) -> Field:
    """Where the river's middle runs, as a height for each column."""
    return 0.742 + 0.055 * wave(x * 0.62 + 0.10) + 0.020 * wave(x * 1.9 + 0.4)


def _bank_at(x: float) -> float:
    """`_bank` of one number."""
    return 0.742 + 0.055 * wave_at(x * 0.62 + 0.10) + 0.020 * wave_at(x * 1.9 + 0.4)


def _turned(x: Field, y: Field) -> tuple[Field, Field]:
    """Coordinates along the town's axes."""
    return x * _COS + y * _SIN, y * _COS - x * _SIN


def _fields(canvas: Canvas) -> None:
    """Long fields, each with its crop and furrows."""
    x, y = canvas.grid
    u, v = x * 0.86 + y * 0.51, y * 0.86 - x * 0.51
    u = u + 0.02 * (noise(x * 3.0, y * 3.0, 3) - 0.5)
    lane = np.floor(u * 7.0)
    w = v * 2.3 + 0.37 * lane
    kind = speckle(u * 7.0, w, 4)
    tint: list[Value] = list(
        gradient(kind, *((index / 5.0, colour) for index, colour in enumerate(_CROPS)))
    )
    turn = speckle(u * 7.0, w, 5) > 0.5
    furrow = np.where(turn, u * 150.0, v * 120.0)
    comb = stripes(furrow, 0.45, np.where(turn, canvas.px * 190.0, canvas.px * 150.0))
    rough = grit(x * 120.0, y * 120.0, 6, 4, canvas.px * 120.0)
    broad = fbm(x * 7.0, y * 7.0, 7, 3)
    light = 0.72 + 0.20 * comb + 0.18 * rough + 0.28 * (broad - 0.5)
    canvas.blend(scaled(tint, light), 1.0)
    edge = np.maximum(
        stripes(u * 7.0 + 0.03, 0.06, canvas.px * 9.0), stripes(w + 0.02, 0.04, canvas.px * 3.0)
    )
    canvas.blend(scaled(rgb(0xB9A77E), 0.85 + 0.3 * rough), edge * 0.9)


def _town(canvas: Canvas) -> None:
    """The ground between the houses, the streets, then houses, trees and cars."""
    x, y = canvas.grid
    u, v = _turned(x, y)
    inside = smooth(_bank(x) - 0.060 - y, 0.0, 0.006)
    lawn = fbm(x * 18.0, y * 18.0, 12, 4, canvas.px * 18.0)
    rough = grit(x * 170.0, y * 170.0, 13, 3, canvas.px * 170.0)
    ground = gradient(
        lawn + 0.18 * rough,
        (0.25, rgb(0x49632F)),
        (0.5, rgb(0x6F8A45)),
        (0.72, rgb(0xA39B6C)),
    )
    canvas.blend(ground, inside)
    p, q = u * (1.0 / _BLOCK), v * (1.0 / _BLOCK)
    near_p = np.abs(p - np.floor(p + 0.5)) * _BLOCK
    near_q = np.abs(q - np.floor(q + 0.5)) * _BLOCK
    walk = np.minimum(near_p, near_q)
    canvas.blend(scaled(rgb(0xB8B2A6), 0.92 + 0.2 * rough), canvas.cover(walk - _ROAD) * inside)
    road = canvas.cover(walk - 0.72 * _ROAD) * inside
    canvas.blend(scaled(rgb(0x5C5E62), 0.92 + 0.26 * rough + 0.1 * lawn), road)
    dash_u = stripes(u * 62.0, 0.5, canvas.px * 62.0) * canvas.cover(near_q - 0.0008)
    dash_v = stripes(v * 62.0, 0.5, canvas.px * 62.0) * canvas.cover(near_p - 0.0008)
    crossing = canvas.cover(np.maximum(near_p, near_q) - 0.9 * _ROAD)
    canvas.blend(rgb(0xEDEBE0), np.maximum(dash_u, dash_v) * (1.0 - crossing) * inside * 0.9)
    x0, y0, x1, y1 = canvas.extent
    corners = [(x0, y0), (x1, y0), (x0, y1), (x1, y1)]
    us = [a * _COS + b * _SIN for a, b in corners]
    vs = [b * _COS - a * _SIN for a, b in corners]
    blocks = [
        (row, column)
        for row in range(math.floor(min(vs) / _BLOCK) - 1, math.ceil(max(vs) / _BLOCK) + 1)
        for column in range(math.floor(min(us) / _BLOCK) - 1, math.ceil(max(us) / _BLOCK) + 1)
    ]
    for row, column in blocks:
        _cars(canvas, row, column)
    for row, column in blocks:
        for house in _houses(row, column):
            _build(canvas, house)
        for tx, ty, size, seed in _trees(row, column):
            _tree(canvas, tx, ty, size, seed)


def _place(u: float, v: float) -> tuple[float, float]:
    """A point of the town's axes in the picture."""
    return u * _COS - v * _SIN, u * _SIN + v * _COS


def _in_town(u: float, v: float) -> bool:
    """Whether there is room for a house: above the river's bank."""
    x, y = _place(u, v)
    return y < _bank_at(x) - 0.082


@lru_cache(maxsize=1024)
def _houses(row: int, column: int) -> tuple[_House, ...]:
    """The houses of one block: two rows back to back, or a park with none."""
    if (row * 5 + column * 3) % 11 == 4:
        return ()
    found = []
    left, top = column * _BLOCK + 1.5 * _ROAD, row * _BLOCK + 1.5 * _ROAD
    inner = _BLOCK - 3.0 * _ROAD
    for line_up in range(2):
        place = 0.0
        index = 0
        while place < inner - 0.018:
            dice = Dice(row, column, line_up, index, 811)
            wide = min(dice.roll(0.022, 0.040), inner - place)
            deep = dice.roll(0.027, 0.042)
            set_back = dice.roll(0.0, 0.006)
            v0 = top + set_back if line_up == 0 else top + inner - deep - set_back
            u0 = left + place
            flat = dice.roll() < 0.16
            house = _House(
                u0, v0, u0 + wide, v0 + deep, dice.roll(0.009, 0.016), dice.roll() < 0.6, flat,
                rgb(0xA9A79F) if flat else _ROOFS[dice.pick(len(_ROOFS))], dice.pick(997),
            )  # fmt: skip
            if _in_town(u0, v0 + deep) and _in_town(u0 + wide, v0 + deep):
                found.append(house)
            place += wide + dice.roll(0.002, 0.011)
            index += 1
    return tuple(found)


def _build(canvas: Canvas, house: _House) -> None:
    """A roof with its tiles and chimney, and the shadow on the ground."""
    cx, cy = _place(0.5 * (house.u0 + house.u1), 0.5 * (house.v0 + house.v1))
    reach = 0.75 * (house.u1 - house.u0 + house.v1 - house.v0) + house.tall
    part = canvas.crop((cx - reach, cy - reach, cx + reach, cy + reach))
    if part is None:
        return
    u, v = _turned(part.x, part.y)
    hu, hv = 0.5 * (house.u1 - house.u0), 0.5 * (house.v1 - house.v0)
    p, q = u - 0.5 * (house.u0 + house.u1), v - 0.5 * (house.v0 + house.v1)
    gap = np.maximum(np.abs(p) - hu, np.abs(q) - hv)
    # The shadow is the box drawn out towards the lower right.
    slide = unit((p * _SUN[0] + q * _SUN[1]) * (1.0 / house.tall)) * house.tall
    shade = np.maximum(np.abs(p - slide * _SUN[0]) - hu, np.abs(q - slide * _SUN[1]) - hv)
    part.planes[:] *= 1.0 - 0.62 * smooth(shade, 0.0012, -0.0012)
    across, half, run = (q, hv, p) if house.along else (p, hu, q)
    sunny = np.where(across < 0.0, 1.12, 0.74)
    if house.flat:
        sunny = sunny * 0.0 + 1.0
    tiles = stripes(np.abs(across) * 330.0, 0.55, part.px * 330.0)
    laid = speckle(run * 420.0, np.abs(across) * 330.0, house.seed)
    fine = min(max(1.5 - part.px * 420.0, 0.0), 1.0)
    moss = fbm(u * 60.0, v * 60.0, house.seed, 3, part.px * 60.0)
    light = sunny * (0.80 + 0.16 * tiles + 0.16 * fine * (laid - 0.5) + 0.36 * (moss - 0.5))
    tint: list[Value] = scaled(house.roof, light)
    if house.flat:
        tint = scaled(house.roof, 0.85 + 0.30 * (moss - 0.3))
        rim = smooth(gap, -0.0030, -0.0018)
        tint = washed(tint, rgb(0xE2DFD6), rim)
    else:
        ridge = part.cover(np.abs(across) - 0.0008)
        tint = washed(tint, tinted(house.roof, rgb(0xF0D9C0), 0.45), ridge)
        tint = washed(tint, rgb(0x4A2E26), 0.5 * smooth(np.abs(across), half - 0.0012, half))
    part.blend(tint, part.cover(gap))
    _chimney(part, house)


def _chimney(part: Canvas, house: _House) -> None:
    """A chimney with its shadow, or the vents and skylights of a flat roof."""
    dice = Dice(house.seed, 41)
    for _ in range(3 if house.flat else 1 + dice.pick(2)):
        x, y = _place(
            house.u0 + (house.u1 - house.u0) * dice.roll(0.2, 0.8),
            house.v0 + (house.v1 - house.v0) * dice.roll(0.2, 0.8),
        )
        part.fill(line((x, y), (x + 0.0040, y + 0.0052), 0.0036), (0.1, 0.06, 0.08), 0.55)
        part.fill(box(x - 0.0019, y - 0.0019, x + 0.0019, y + 0.0019), rgb(0xC9B3A2))
        part.fill(box(x - 0.0009, y - 0.0009, x + 0.0009, y + 0.0009), rgb(0x2A2220))


@lru_cache(maxsize=1024)
def _trees(row: int, column: int) -> tuple[tuple[float, float, float, int], ...]:
    """Trees of a block: in its inner gardens, along the kerb, or all over a park."""
    park = not _houses(row, column)
    found = []
    for index in range(30 if park else 15):
        dice = Dice(row, column, index, 823)
        u = column * _BLOCK + dice.roll(1.4 * _ROAD, _BLOCK - 1.4 * _ROAD)
        middle = dice.roll(-0.5, 0.5) * (_BLOCK - 3.4 * _ROAD if park else 0.032)
        v = (row + 0.5) * _BLOCK + middle
        if not park and index > 10:
            v = row * _BLOCK + 1.1 * _ROAD
        size = dice.roll(0.0052, 0.0110)
        if _in_town(u, v):
            found.append((*_place(u, v), size, dice.pick(97)))
    return tuple(sorted(found, key=lambda tree: tree[2]))


def _tree(canvas: Canvas, x: float, y: float, size: float, seed: int) -> None:
    """A round crown from above, rough and lit, with its shadow."""
    canvas.fill(
        circle(x + 0.7 * size, y + 0.85 * size, size * 0.95), (0.05, 0.09, 0.06), 0.55, 0.0015
    )
    part = canvas.crop((x - size, y - size, x + size, y + size), 0.3 * size)
    if part is None:
        return
    k = 1.0 / size
    p, q = (part.x - x) * k, (part.y - y) * k
    tuft = grit(p * 2.2 + seed, q * 2.2, seed, 3, part.px * 2.2 * k)
    r = np.sqrt(p * p + q * q)
    light = 0.52 - 0.26 * (p + q) + 0.50 * tuft
    green = (rgb(0x3F6A2E), rgb(0x567F35), rgb(0x2E5632), rgb(0x76883A))[seed % 4]
    tint = gradient(
        light,
        (0.0, tinted(green, rgb(0x07140B), 0.8)),
        (0.5, green),
        (1.0, tinted(green, rgb(0xE4EC9C), 0.6)),
    )
    part.blend(tint, part.cover((r - 0.95 - 0.24 * tuft) * size))


def _cars(canvas: Canvas, row: int, column: int) -> None:
    """Parked and driving cars along a block's two streets."""
    for index in range(7):
        dice = Dice(row, column, index, 839)
        along, lane = dice.roll(0.14, 0.92) * _BLOCK, dice.roll(-1.0, 1.0)
        off = (0.0052 if index % 2 else 0.0086) * (1.0 if lane > 0.0 else -1.0)
        upright = dice.roll() < 0.5
        u, v = column * _BLOCK, row * _BLOCK
        u, v = (u + off, v + along) if upright else (u + along, v + off)
        if not _in_town(u, v):
            continue
        long = 0.0044 * dice.roll(0.9, 1.25)
        du, dv = (0.0, long) if upright else (long, 0.0)
        a, b = _place(u - du, v - dv), _place(u + du, v + dv)
        colour = _CARS[dice.pick(len(_CARS))]
        canvas.fill(line((a[0] + 0.001, a[1] + 0.0014), (b[0] + 0.001, b[1] + 0.0014), 0.0046),
                    (0.05, 0.05, 0.07), 0.55)  # fmt: skip
        canvas.fill(line(a, b, 0.0043), colour)
        a, b = _place(u - 0.45 * du, v - 0.45 * dv), _place(u + 0.30 * du, v + 0.30 * dv)
        canvas.fill(line(a, b, 0.0035), rgb(0x1E2730), 0.85)
        canvas.fill(
            line(_place(u - 0.1 * du, v - 0.1 * dv), b, 0.0030), tinted(colour, (1, 1, 1), 0.2)
        )


def _river(canvas: Canvas) -> None:
    """Water between two banks of reeds, a towpath, and boats."""
    part = canvas.crop((-9.0, 0.55, 9.0, 0.95))
    if part is None:
        return
    x, y = part.grid
    middle = _bank(x)
    off = np.abs(y - middle + 0.006 * (noise(x * 30.0, y * 30.0, 21) - 0.5))
    rough = grit(x * 150.0, y * 150.0, 22, 3, part.px * 150.0)
    path = part.cover(np.abs(y - middle + 0.064) - 0.0042)
    part.blend(scaled(rgb(0xCDBD98), 0.92 + 0.2 * rough), path)
    reeds = gradient(0.5 + rough, (0.1, rgb(0x2F4A26)), (0.9, rgb(0x7C8A46)))
    part.blend(reeds, part.cover(off - 0.056 - 0.006 * rough))
    ripple = grit(x * 60.0 + y * 30.0, y * 150.0 - x * 40.0, 23, 3, part.px * 150.0)
    depth = smooth(off, 0.052, 0.0)
    water = gradient(
        depth + 0.22 * ripple,
        (0.0, rgb(0x6E8A7E)),
        (0.5, rgb(0x35667A)),
        (1.0, rgb(0x24506A)),
        (1.3, rgb(0x9CC0CC)),
    )
    part.blend(water, part.cover(off - 0.047))
    for boat in range(-3, 7):
        bx = 0.21 * boat + 0.13
        by = _bank_at(bx) + 0.012 * (boat % 3 - 1)
        wake = line((bx - 0.035, by + 0.001), (bx, by), 0.013, 0.003)
        canvas.fill(wake, rgb(0xDDEAEE), 0.35, 0.003)
        canvas.fill(line((bx - 0.009, by), (bx + 0.006, by), 0.0062, 0.003), rgb(0xF2EFE6))
        canvas.fill(line((bx - 0.006, by), (bx, by), 0.0034), rgb(0x8A5A36))


def _down(u: float, y: float) -> tuple[float, float]:
    """The point of a street at a height in the picture."""
    return _place(u, (y - u * _SIN) / _COS)


def _bridges(canvas: Canvas) -> None:
    """Every fourth street goes on over the river and through the fields."""
    for street in range(-6, 14, 4):
        u = street * _BLOCK
        water = _bank_at(_down(u, 0.74)[0])
        water = _bank_at(_down(u, water)[0])
        start, stop = _down(u, water - 0.074), _down(u, water + 0.066)
        canvas.fill(line(stop, _down(u, 4.0), 1.9 * _ROAD), rgb(0x9C9276), 0.9, 0.003)
        canvas.fill(line(start, _down(u, 4.0), 1.44 * _ROAD), rgb(0x5E6064))
        shadow = line((start[0] + 0.008, start[1] + 0.012), (stop[0] + 0.008, stop[1]), 0.032)
        canvas.fill(shadow, (0.03, 0.07, 0.10), 0.55, 0.003)
        canvas.fill(line(start, stop, 2.0 * _ROAD), rgb(0xC4BEB2))
        canvas.fill(line(start, stop, 1.84 * _ROAD), rgb(0x8C877E))
        canvas.fill(line(start, stop, 1.44 * _ROAD), rgb(0x686A6D))
        for dash in range(60):
            y = start[1] + 0.004 + dash * 0.0161
            canvas.fill(line(_down(u, y), _down(u, y + 0.0065), 0.0016), rgb(0xEDEBE0))


def _hedges(canvas: Canvas) -> None:
    """Trees in lines between the fields."""
    left, _, right, _ = canvas.extent
    step = 0.024
    for index in range(math.floor(left / step) - 2, math.ceil(right / step) + 2):
        for row in range(3):
            dice = Dice(index, row, 907)
            if dice.roll() < 0.35:
                continue
            x = index * step + dice.roll(-0.01, 0.01)
            y = _bank_at(x) + 0.068 + 0.10 * row + dice.roll(-0.006, 0.006) - 0.3 * row * (x - 0.5)
            if y > _bank_at(x) + 0.060:
                _tree(canvas, x, y, dice.roll(0.006, 0.0125), dice.pick(97))
