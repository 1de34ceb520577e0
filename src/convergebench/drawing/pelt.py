"""The scene `leopard`: a spotted coat close by, strand by strand."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, tinted
from convergebench.drawing.fields import Dice, Field, Value, direction, fbm, noise, wave_at
from convergebench.drawing.strands import Coat, Strand, coat, paint_coat

_PITCH = 0.0066
_ROSETTE = 0.150
_GOLD, _PALE, _HEART, _BLACK = rgb(0xD9A560), rgb(0xF3DDB2), rgb(0xB67A38), rgb(0x1E1410)


def leopard(canvas: Canvas) -> None:
    """A leopard's flank: rosettes on gold, the hair lying in slow waves."""
    x, y = canvas.grid
    lock = noise(x * 60.0, y * 22.0, 3) * 0.6 + fbm(x * 40.0, y * 40.0, 4, 2) * 0.4
    base: list[Value] = list(gradient(lock, (0.2, rgb(0x5A3A1C)), (0.8, rgb(0x9C6E3A))))
    canvas.blend(base, 1.0)
    paint_coat(canvas, _hair())


def _lie(x: float, y: float) -> tuple[float, float]:
    """Which way the hair lies."""
    return direction(0.14 + 0.055 * wave_at(x * 0.9 + y * 0.5) + 0.035 * wave_at(y * 1.6 - x * 0.7))


@lru_cache(maxsize=1024)
def _rosette(row: int, column: int) -> tuple[float, float, float, float]:
    """Middle, size and turn of one rosette; they are staggered and shaken."""
    dice = Dice(row, column, 557)
    x = (column + 0.5 * (row % 2) + dice.roll(-0.16, 0.16)) * _ROSETTE
    y = (row + dice.roll(-0.16, 0.16)) * _ROSETTE * 0.86
    return x, y, _ROSETTE * dice.roll(0.34, 0.44), dice.roll()


def _marking(x: float, y: float, wobble: float) -> tuple[float, float]:
    """How black the coat is at a place, and how much it belongs to a rosette's heart."""
    black, heart = 0.0, 0.0
    middle, left = math.floor(y / (_ROSETTE * 0.86) + 0.5), math.floor(x / _ROSETTE)
    near = [(middle + i, left + j) for i in (-1, 0, 1) for j in (-1, 0, 1, 2)]
    for sx, sy, size, turn in (_rosette(*place) for place in near):
        dx, dy = (x - sx) / size, (y - sy) / size
        if abs(dx) > 1.5 or abs(dy) > 1.5:
            continue
        r = math.sqrt(dx * dx + dy * dy * 1.25) + wobble
        # Each ring is broken into three or four patches.
        around = wave_at((dx * 0.7 + turn) * 0.5) + wave_at(dy * 0.9 + turn * 3.0)
        ring = max(1.0 - abs(r - 0.86) / 0.30, 0.0)
        if around > -0.75:
            black = max(black, min(ring * 2.2, 1.0))
        if r < 0.80:
            heart = max(heart, min((0.80 - r) * 3.0, 1.0))
    return black, heart


@cache
def _hair() -> Coat:
    """All the hairs, those nearest to the tail first, so that tips lie over roots."""
    rolled = []
    for row in range(int(1.20 / _PITCH)):
        for column in range(int(1.90 / _PITCH)):
            dice = Dice(row, column, 563)
            x = -0.45 + (column + dice.roll()) * _PITCH
            y = -0.10 + (row + dice.roll()) * _PITCH
            rolled.append((x, y, dice))
    wobble = _rough([(x, y) for x, y, _ in rolled])
    made = []
    for (x, y, dice), shake in zip(rolled, wobble, strict=True):
        c, s = _lie(x, y)
        black, heart = _marking(x, y, shake)
        colour: Colour = tinted(_GOLD, _PALE, 0.55 * dice.roll() + 0.5 * max(y - 0.75, 0.0))
        colour = tinted(colour, _HEART, 0.65 * heart)
        colour = tinted(colour, _BLACK, black * dice.roll(0.82, 0.98))
        light = 0.62 + 0.22 * wave_at(x * 0.55 + y * 0.8 + 0.1) + 0.34 * dice.roll()
        colour = tinted((0.0, 0.0, 0.0), colour, min(light, 1.0))
        if light > 1.0:
            colour = tinted(colour, (1.0, 0.98, 0.9), (light - 1.0) * 0.7)
        turn = dice.roll(-0.16, 0.16)
        reach = dice.roll(0.024, 0.044)
        made.append(
            (-(x * c + y * s),
             Strand(x, y, (c - s * turn) * reach, (s + c * turn) * reach,
                    0.0028 * dice.roll(0.6, 1.25), colour, dice.roll(-0.08, 0.08),
                    dice.roll(0.82, 1.0)))
        )  # fmt: skip
    made.sort(key=lambda entry: entry[0])
    return coat([strand for _, strand in made])


def _rough(places: list[tuple[float, float]]) -> list[float]:
    """An unevenness for the rosettes' outlines at many places at once."""
    x: Field = np.array([[x] for x, _ in places])
    y: Field = np.array([[y] for _, y in places])
    found = (fbm(x * 24.0, y * 24.0, 9, 3) - 0.5) * 0.75
    return [row[0] for row in found.tolist()]
