"""A scene of food at many scales: a plate of potstickers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    bearing,
    bump,
    direction,
    fbm,
    grit,
    length,
    noise,
    ramp,
    sharpen,
    smooth,
    stripes,
    unit,
    wave,
)

_PLATE = (0.50, 0.545)
_WIDE, _FLAT = 0.475, 0.74


@dataclass(frozen=True, slots=True)
class _Dumpling:
    """One potsticker: centre, half its length, how it is turned, how brown, and its number."""

    x: float
    y: float
    size: float
    turns: float
    brown: float
    seed: int


# Back to front.
_DUMPLINGS = (
    _Dumpling(0.355, 0.365, 0.130, 0.055, 0.55, 1),
    _Dumpling(0.575, 0.340, 0.132, -0.030, 0.70, 2),
    _Dumpling(0.735, 0.425, 0.128, 0.090, 0.45, 3),
    _Dumpling(0.245, 0.480, 0.132, -0.070, 0.65, 4),
    _Dumpling(0.465, 0.465, 0.141, 0.020, 0.80, 5),
    _Dumpling(0.665, 0.545, 0.139, -0.055, 0.60, 6),
    _Dumpling(0.300, 0.610, 0.143, 0.045, 0.75, 7),
    _Dumpling(0.525, 0.640, 0.147, -0.020, 0.85, 8),
    _Dumpling(0.735, 0.680, 0.139, 0.060, 0.65, 9),
    _Dumpling(0.395, 0.760, 0.145, -0.040, 0.70, 10),
    _Dumpling(0.600, 0.785, 0.141, 0.030, 0.60, 11),
)


def potstickers(canvas: Canvas) -> None:
    """A plate of pan-fried potstickers with sesame, scallion and a dish of sauce."""
    _tabletop(canvas)
    _chopsticks(canvas)
    _dish(canvas, -0.17, 0.74, 0.15)
    _plate(canvas)
    for dumpling in _DUMPLINGS:
        _shadow(canvas, dumpling)
        _paint_dumpling(canvas, dumpling)
    _sprinkle(canvas)
    _steam(canvas)


def _tabletop(canvas: Canvas) -> None:
    """Dark boards, each with its own grain."""
    x, y = canvas.grid
    board = (y + 0.05 * x) * 3.2
    index = np.floor(board)
    rings = wave(y * 16.0 + 2.2 * noise(x * 1.1 + 5.0 * index, y * 3.0, 4))
    grain = fbm(x * 3.4 + 11.0 * index, y * 110.0 + 0.8 * rings, 3, 4, canvas.px * 110.0)
    # Short pores, and fibres that only a large picture can show.
    fine = min(max(1.6 - canvas.px * 420.0, 0.0), 1.0)
    pores = fine * smooth(noise(x * 22.0, y * 420.0, 5), 0.70, 0.95)
    fibres = grit(x * 130.0, y * 700.0, 7, 2, canvas.px * 700.0)
    shade = noise(x * 1.7 + 3.0 * index, y * 9.0, 6) - 0.5
    tone = grain + 0.13 * rings + 0.16 * shade - 0.22 * pores + 0.12 * fibres
    tint = gradient(tone, (0.25, rgb(0x24160F)), (0.50, rgb(0x4A2F1F)), (0.80, rgb(0x7C5538)))
    gap = stripes(board + 0.01, 0.02, max(canvas.px * 3.2, 0.004))
    light = 1.12 - 0.42 * unit(0.5 * x + 0.6 * y)
    canvas.blend(scaled(washed(tint, rgb(0x100A07), gap * 0.85), light), 1.0)


def _chopsticks(canvas: Canvas) -> None:
    """A pair of lacquered chopsticks to the right of the plate."""
    for index, (top, foot) in enumerate(((1.16, 1.10), (1.205, 1.185))):
        part = canvas.crop((1.0, 0.02, 1.32, 1.05))
        if part is None:
            return
        t = ramp(part.y, 0.06, 0.98)
        axis = top + (foot - top) * t
        half = 0.0135 - 0.006 * t
        ends = np.maximum(0.06 - part.y, part.y - 0.98)
        shade = np.maximum(np.abs(part.x - axis - 0.018) - half, ends)
        part.blend((0.03, 0.02, 0.02), 0.5 * smooth(shade, 0.014, -0.01))
        u = (part.x - axis) / half
        lacquer = gradient(u, (-1.0, rgb(0x4A0E0E)), (-0.3, rgb(0xC0342A)), (1.0, rgb(0x3A0A0C)))
        band = smooth(np.abs(t - 0.16 - 0.02 * index), 0.035, 0.032)
        tint = washed(lacquer, rgb(0xE0B458), 0.8 * band)
        tint = washed(tint, (1.0, 0.95, 0.9), 0.55 * bump(u, -0.42, 0.22))
        part.blend(tint, part.cover(np.maximum(np.abs(part.x - axis) - half, ends)))


def _dish(canvas: Canvas, x: float, y: float, size: float) -> None:
    """A small dish of soy sauce with oil drops and chilli."""
    part = canvas.crop((x - 1.4 * size, y - 1.3 * size, x + 1.5 * size, y + 1.4 * size))
    if part is None:
        return
    u, v = (part.x - x) * (1.0 / size), (part.y - y) * (1.0 / (size * _FLAT))
    px = part.px / size
    r = length(u, v)
    part.blend((0.03, 0.02, 0.02), 0.6 * smooth(length(u - 0.10, v - 0.16), 1.22, 0.85))
    rim = gradient(u * 0.5 + v * 0.5, (-0.6, rgb(0xF4F0E6)), (0.7, rgb(0xA7A39C)))
    part.blend(rim, unit(0.5 - (r - 1.0) / px))
    part.blend(rgb(0x2F5C96), 0.85 * smooth(np.abs(r - 0.93), 0.022, 0.012))
    inner = gradient(v, (-0.8, rgb(0x8E8A84)), (0.8, rgb(0xE9E4DA)))
    part.blend(inner, unit(0.5 - (r - 0.88) / px))
    sauce = gradient(v + 0.3 * u, (-0.8, rgb(0x1A0A05)), (0.9, rgb(0x5A2510)))
    part.blend(sauce, unit(0.5 - (r - 0.76) / px))
    for index in range(26):
        dice = Dice(index, 411)
        c, s = direction(dice.roll())
        far = 0.66 * dice.roll()
        drop = length(u - c * far, v - s * far) - 0.02 - 0.05 * dice.roll() * dice.roll()
        hue = (rgb(0xB8742C), rgb(0xC0281C), rgb(0x4F8A34))[dice.pick(3)]
        part.blend(hue, 0.75 * unit(0.5 - drop / px))
    part.blend((1.0, 0.96, 0.88), 0.6 * bump(length(u + 0.30, (v + 0.42) * 2.2), 0.0, 0.26))


def _plate(canvas: Canvas) -> None:
    """A glazed white plate with a blue band and a pool of light."""
    x, y = canvas.grid
    cx, cy = _PLATE
    part = canvas.crop((cx - 0.62, cy - 0.50, cx + 0.64, cy + 0.56))
    if part is None:
        return
    x, y = part.grid
    u, v = (x - cx) * (1.0 / _WIDE), (y - cy) * (1.0 / (_WIDE * _FLAT))
    px = part.px / _WIDE
    r = length(u, v)
    part.blend((0.02, 0.014, 0.012), 0.72 * smooth(length(u - 0.05, v - 0.11), 1.14, 0.88))
    turns = bearing(u, v)
    glaze = gradient(
        -0.45 * u - 0.75 * v, (-1.0, rgb(0xB9B5AE)), (0.1, rgb(0xE6E2DA)), (1.0, rgb(0xFBF8F2))
    )
    part.blend(glaze, unit(0.5 - (r - 1.0) / px))
    part.blend(rgb(0x9F9B95), 0.55 * bump(r, 1.0, 0.022))
    part.blend(rgb(0x24508E), 0.9 * smooth(np.abs(r - 0.955), 0.016, 0.011))
    # Painted waves around the rim.
    wash = noise(turns * 90.0, r * 9.0, 8)
    scroll = np.abs(r - 0.885 - 0.020 * wave(turns * 30.0) - 0.010 * wave(turns * 60.0 + 0.2))
    part.blend(rgb(0x2F63A8), (0.45 + 0.4 * wash) * smooth(scroll, 0.013, 0.006))
    dots = length((turns * 60.0 - np.floor(turns * 60.0) - 0.5) * 0.105, r - 0.84)
    part.blend(rgb(0x2F63A8), 0.75 * smooth(dots, 0.014, 0.009))
    well = gradient(-0.5 * u - 0.8 * v, (-0.8, rgb(0xECE7DD)), (0.8, rgb(0xC9C3B8)))
    part.blend(well, smooth(r, 0.80, 0.765))
    part.blend(rgb(0xA8A096), 0.55 * bump(r, 0.785, 0.030) * smooth(v, 0.5, -0.6))
    # Oil and sauce have run into the well.
    oil = smooth(fbm(x * 6.0, y * 8.0, 9, 4, part.px * 8.0), 0.46, 0.62) * smooth(r, 0.76, 0.55)
    part.blend(rgb(0xA56A2C), 0.34 * oil)
    shine = bump(
        length((u + 0.62) * 1.2 + 0.5 * (v + 0.66), (v + 0.66) - 0.8 * (u + 0.62)), 0.0, 0.28
    )
    part.blend((1.0, 1.0, 1.0), 0.75 * shine)


def _local(part: Canvas, dumpling: _Dumpling) -> tuple[Field, Field]:
    """Coordinates along and across a potsticker, in half lengths."""
    c, s = direction(dumpling.turns)
    k = 1.0 / dumpling.size
    p, q = (part.x - dumpling.x) * k, (part.y - dumpling.y) * k
    along = p * c + q * s
    across = q * c - p * s
    # Bent like a crescent, its ends towards the viewer.
    return along, across - 0.26 * along * along + 0.10


def _around(canvas: Canvas, dumpling: _Dumpling, reach: float) -> Canvas | None:
    """The pixels near a potsticker, which is less high than wide."""
    wide, tall = dumpling.size * reach, dumpling.size * reach * 0.82
    return canvas.crop((dumpling.x - wide, dumpling.y - tall, dumpling.x + wide, dumpling.y + tall))


def _shadow(canvas: Canvas, dumpling: _Dumpling) -> None:
    """What a potsticker takes from the light of those below it."""
    part = _around(canvas, dumpling, 1.5)
    if part is not None:
        along, across = _local(part, dumpling)
        r = length(along * 0.86, (across - 0.16) * 1.35)
        part.blend((0.12, 0.06, 0.03), 0.72 * smooth(r, 1.12, 0.55))


def _height(along: Field, across: Field, drift: Field) -> tuple[Field, Field, Field]:
    """Height of a potsticker, how high on a pleat a point is, and how far inside (negative out)."""
    # The folded edge lies at the back (across < 0), each pleat laid over the next.
    fan = along * (1.0 + 0.30 * across) - 0.16 * across
    turns = fan * 3.7 + drift
    saw = turns - np.floor(turns)
    fold = smooth(saw, 0.0, 0.80) * smooth(saw, 1.0, 0.80)
    back = 0.545 + 0.055 * fold
    inside = (
        1.0
        - 0.98 * along * along
        - np.where(across < 0.0, across * across / (back * back), across * across * (1.0 / 0.185))
    )
    pleat = fold * smooth(across, 0.04, -0.40) * smooth(np.abs(along), 0.98, 0.60)
    # Pressed flat towards the rim, round over the filling.
    body = np.sqrt(np.maximum(inside, 0.0)) - 0.12 * smooth(across, -0.22, -0.48)
    return np.maximum(body, 0.02) + 0.13 * pleat, pleat, inside


def _paint_dumpling(canvas: Canvas, dumpling: _Dumpling) -> None:
    """A pleated crescent: soft dough behind, a fried crust in front."""
    part = _around(canvas, dumpling, 1.12)
    if part is None:
        return
    px = part.px / dumpling.size
    along, across = _local(part, dumpling)
    x, y = along * 5.0 + dumpling.seed * 17.0, across * 5.0
    lumps = fbm(x * 0.7, y * 0.7, 30 + dumpling.seed, 4, px * 3.5) - 0.5
    drift = 0.45 * noise(along * 4.0 + dumpling.seed, along * 0.0, 21)
    height, pleat, inside = _height(along, across, drift)
    step = 0.02
    dx = _height(along + step, across, drift)[0] - height
    dy = _height(along, across + step, drift)[0] - height
    pores = fbm(x * 5.0, y * 5.0, 50 + dumpling.seed, 5, px * 25.0) - 0.5
    skin = grit(x * 9.0, y * 9.0, 130 + dumpling.seed, 4, px * 45.0)
    nx = -dx * (1.0 / step) + 1.2 * lumps + 0.30 * skin
    ny = -dy * (1.0 / step) + 0.9 * pores - 0.40 * skin
    steep = 1.0 / np.sqrt(nx * nx + ny * ny + 1.4)
    c, s = direction(dumpling.turns)
    facing = (-(nx * c - ny * s) * 0.42 - (nx * s + ny * c) * 0.62 + 0.80) * steep
    light = unit(0.13 + 0.84 * facing)
    dough = gradient(
        light, (0.05, rgb(0x6E4826)), (0.38, rgb(0xC39A62)), (0.66, rgb(0xE6CB98)),
        (1.0, rgb(0xFBF0D4)),
    )  # fmt: skip
    # The filling shows through where the dough is thin.
    tint = washed(dough, rgb(0xB9995E), 0.30 * smooth(lumps, 0.02, 0.22))
    tint = washed(tint, rgb(0x8E9C50), 0.16 * smooth(pores, 0.10, 0.25))
    tint = washed(
        tint,
        _crust(x, y, light + 0.20 * skin, dumpling, px),
        _fried(across, lumps, pores, dumpling),
    )
    gleam = sharpen(unit(facing * 0.93 + 0.45 * lumps), 5)
    tint = washed(tint, (1.0, 0.98, 0.92), unit(0.70 * gleam))
    tint = washed(tint, rgb(0x9A6A38), 0.30 * (1.0 - pleat) * smooth(across, -0.05, -0.45))
    part.blend(tint, unit(0.5 + inside * (0.28 / px)))


def _fried(across: Field, lumps: Field, pores: Field, dumpling: _Dumpling) -> Field:
    """Where the crust is: the side that lay in the pan, with a blistered edge."""
    edge = 0.10 - 0.16 * dumpling.brown
    return smooth(across + 0.42 * lumps + 0.20 * pores, edge - 0.06, edge + 0.14)


def _crust(x: Field, y: Field, light: Field, dumpling: _Dumpling, px: float) -> list[Value]:
    """Fried dough: gold to near black, speckled and blistered."""
    char = fbm(x * 1.6, y * 1.6, 70 + dumpling.seed, 6, px * 8.0)
    speck = noise(x * 16.0, y * 16.0, 90 + dumpling.seed)
    fine = min(max(1.6 - px * 80.0, 0.0), 1.0)
    tone = char + 0.20 * (speck - 0.5) * fine - 0.12 * (dumpling.brown - 0.5)
    tint: list[Value] = list(
        gradient(
            tone, (0.24, rgb(0x2C1206)), (0.37, rgb(0x7A3A12)), (0.48, rgb(0xBE701F)),
            (0.62, rgb(0xE2A244)), (0.78, rgb(0xF4D080)),
        )
    )  # fmt: skip
    blister = smooth(noise(x * 5.0, y * 5.0, 110 + dumpling.seed), 0.72, 0.86)
    tint = washed(tint, rgb(0xF3CF86), 0.45 * blister)
    return scaled(tint, 0.45 + 0.75 * light)


@cache
def _garnish() -> tuple[tuple[int, float, float, float, float, int], ...]:
    """Sesame (kind 0), scallion rings (1) and slivers (2): place, size, turn and shade."""
    bits = []
    for index in range(300):
        dice = Dice(index, 607)
        c, s = direction(dice.roll())
        far = 0.74 * math.sqrt(dice.roll())
        kind = 0 if index % 5 else 1 + dice.pick(2)
        size = (0.0058, 0.0125, 0.016)[kind] * dice.roll(0.75, 1.25)
        x, y = _PLATE[0] + c * far * _WIDE, _PLATE[1] + 0.01 + s * far * _WIDE * _FLAT
        bits.append((kind, x, y, size, dice.roll(), dice.pick(4)))
    return tuple(bits)


def _sprinkle(canvas: Canvas) -> None:
    """Sesame seeds and cut scallion over everything on the plate."""
    for kind, x, y, size, turns, shade in _garnish():
        part = canvas.crop((x - 1.6 * size, y - 1.6 * size, x + 1.7 * size, y + 1.8 * size))
        if part is None:
            continue
        c, s = direction(turns)
        k = 1.0 / size
        p, q = (part.x - x) * k, (part.y - y) * k
        px = part.px * k
        a, b = p * c + q * s, q * c - p * s
        drop = length(a - 0.16, b - 0.24)
        if kind == 0:
            shape = (length(a, b * (1.9 - 0.5 * a)) - 1.0) * 0.6
            dark = shade == 0
            tint = gradient(
                b - 0.3 * a,
                (-0.6, rgb(0x4A4038) if dark else rgb(0xFFF4D2)),
                (0.6, rgb(0x15100C) if dark else rgb(0xC79F5C)),
            )
        elif kind == 1:
            shape = np.abs(length(a, b * 1.25) - 0.72) - 0.26
            tint = gradient(length(a, b * 1.25), (0.45, rgb(0xD6E8A0)), (1.0, rgb(0x3F8A2E)))
        else:
            bow = b + 0.25 * a * a
            shape = np.maximum(np.abs(bow) - 0.20, np.abs(a) - 1.0)
            tint = gradient(bow, (-0.2, rgb(0x9CCB58)), (0.2, rgb(0x2F7A2A)))
        part.blend((0.10, 0.05, 0.02), 0.45 * smooth(drop, 1.15, 0.55))
        part.blend(tint, unit(0.5 - shape / px))


def _steam(canvas: Canvas) -> None:
    """Wisps of steam rising from the plate."""
    x, y = canvas.grid
    sway = 0.22 * (noise(x * 2.3, y * 3.4, 120) - 0.5) + 0.08 * (noise(x * 7.0, y * 9.0, 122) - 0.5)
    wisp = fbm((x + sway) * 7.5 + 1.2 * y, y * 2.2 + sway * 4.0, 121, 4, canvas.px * 7.5)
    veil = smooth(wisp, 0.44, 0.70) * bump(x - 0.5, 0.0, 0.48) * bump(y, 0.12, 0.50)
    canvas.blend((0.97, 0.96, 0.95), 0.62 * veil)
