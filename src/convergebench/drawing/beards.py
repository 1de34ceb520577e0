"""A beard and a moustache, each in a box one unit high."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, Paint, Shape, rgb, tinted
from convergebench.drawing.fields import Dice, Value, noise, unit
from convergebench.drawing.shading import lambert, lit, relief
from convergebench.drawing.shapes import Point, blob, curve, polygon, ribbon

_BROWN = rgb(0x6A4024)
_DARK = rgb(0x27140C)
_PALE = rgb(0xB27B4A)

Hairs = tuple[tuple[Shape, Colour], ...]


def _hair_tone(dice: Dice, light: float) -> Colour:
    """The colour of one hair that gets `light` in [0, 1]."""
    share = min(max(light + dice.roll(-0.30, 0.30), 0.0), 1.0)
    if share < 0.5:
        return tinted(_DARK, _BROWN, share * 2.0)
    return tinted(_BROWN, _PALE, share * 2.0 - 1.0)


_JAW = blob(
    (0.055, 0.060), (0.110, 0.045), (0.195, 0.145), (0.330, 0.260), (0.625, 0.325), (0.920, 0.260),
    (1.055, 0.145), (1.140, 0.045), (1.195, 0.060), (1.190, 0.280), (1.110, 0.560), (0.950, 0.790),
    (0.780, 0.905), (0.625, 0.940), (0.470, 0.905), (0.300, 0.790), (0.140, 0.560), (0.060, 0.280),
    steps=4,
)  # fmt: skip
_CHIN = 0.625


def beard(canvas: Canvas) -> None:
    """A full brown beard round the chin; the mouth shows above its bow."""

    def coat(part: Canvas) -> list[Value]:
        x, y = part.grid
        light = lambert(relief(_JAW, part, 0.11))
        fan = (x - _CHIN) / (0.35 + y)
        locks = noise(fan * 34.0, y * 5.0 + np.abs(fan) * 2.0, 31) - 0.5
        return list(lit(_BROWN, unit(0.55 * light + 0.06 + 0.40 * locks), 0.62, 0.35))

    # Skin shows through where the hair thins out, at the edges.
    canvas.fill(_JAW, _DARK, 0.45, 0.035)
    canvas.fill(_JAW, coat, 0.94, 0.016)
    for hair, tone in _beard_hairs():
        canvas.fill(hair, tone, 0.80)


@cache
def _beard_hairs() -> Hairs:
    """The beard's single hairs, fanned out from the mouth."""
    dice = Dice(31, 4)
    found = []
    for _ in range(1000):
        x, y = dice.roll(0.075, 1.175), dice.roll(0.02, 0.90)
        if not _grows(x, y):
            continue
        fan = (x - _CHIN) / (0.35 + y)
        long, sway = dice.roll(0.06, 0.13), dice.roll(-0.3, 0.3)
        tip = (x + (0.55 * fan + 0.5 * sway) * long, y + long)
        bend = (0.5 * (x + tip[0]) - 0.2 * sway * long, 0.5 * (y + tip[1]))
        hair = ribbon((x, y), bend, tip, width=0.009, end_width=0.003, steps=2)
        found.append((hair, _hair_tone(dice, 0.62 - 0.45 * (x - _CHIN) - 0.35 * y)))
    return tuple(found)


def _grows(x: float, y: float) -> bool:
    """Whether a hair of the beard may be rooted here."""
    across = (x - _CHIN) * (1.0 / 0.565)
    bow = 1.0 - across * across
    return 0.325 * bow < y < 0.85 * math.sqrt(max(bow, 0.0)) + 0.01


# The left half of the moustache, from under the nose to its curled tip: places and widths.
_WING = (
    (1.305, 0.36, 0.20), (1.20, 0.40, 0.37), (1.02, 0.49, 0.44), (0.78, 0.62, 0.38),
    (0.47, 0.72, 0.25), (0.20, 0.64, 0.15), (0.085, 0.42, 0.095), (0.155, 0.235, 0.07),
    (0.285, 0.250, 0.035),
)  # fmt: skip
_STEPS = 4
_NOSE = 1.30


def moustache(canvas: Canvas) -> None:
    """A brown moustache with curled tips, seen from the front."""
    for side in (-1.0, 1.0):
        half, hairs = _moustache_half(side)
        canvas.fill(half, _DARK, 0.45, 0.05)
        canvas.fill(half, _bristles(half), 0.96, 0.012)
        for hair, tone in hairs:
            canvas.fill(hair, tone, 0.80)


def _bristles(shape: Shape) -> Paint:
    """The dense hair under the single ones."""

    def paint(part: Canvas) -> list[Value]:
        light = lambert(relief(shape, part, 0.11))
        return list(lit(_BROWN, unit(0.60 * light + 0.05), 0.62, 0.35))

    return paint


@cache
def _moustache_half(side: float) -> tuple[Shape, Hairs]:
    """One half of the moustache (-1 is left) and the single hairs combed along it."""
    track = curve([(x, y) for x, y, _ in _WING], _STEPS)
    spots = [(_NOSE + side * (_NOSE - x), y) for x, y in track]
    widths = [w for w, _ in curve([(w, 0.0) for _, _, w in _WING], _STEPS)]
    last = len(spots) - 1
    edges = [
        [_beside(spots, i, sign * 0.5 * widths[i]) for i in range(last + 1)] for sign in (-1.0, 1.0)
    ]
    half = polygon([*edges[0], *reversed(edges[1])])
    dice = Dice(47, int(side) + 2)
    hairs = []
    for _ in range(230):
        start = int(dice.roll(0.0, 1.0) * dice.roll(0.35, 1.0) * (last - 3))
        # Where it lies between the lower (positive) and the upper edge, and where it ends.
        place, drift = dice.roll(-0.46, 0.46), dice.roll(-0.10, 0.16)
        hair = []
        for index in range(start, min(start + 5, last) + 1):
            share = place + drift * (index - start) / 5.0
            hair.append(_beside(spots, index, side * widths[index] * share))
        tone = _hair_tone(dice, 0.50 - 0.75 * place)
        hairs.append((ribbon(*hair, width=0.022, end_width=0.006, steps=1), tone))
    return half, tuple(hairs)


def _beside(spots: list[Point], index: int, away: float) -> Point:
    """The point `away` from a track's spot, at a right angle to the track."""
    before, after = spots[max(index - 1, 0)], spots[min(index + 1, len(spots) - 1)]
    dx, dy = after[0] - before[0], after[1] - before[1]
    k = away / math.sqrt(dx * dx + dy * dy)
    return spots[index][0] - dy * k, spots[index][1] + dx * k
