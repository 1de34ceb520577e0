"""The scene `elder`: an old man's face close by, with every line of it."""

from __future__ import annotations

from functools import cache

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, tinted
from convergebench.drawing.fields import Dice, bump, fbm, grit, length, smooth, unit
from convergebench.drawing.hairstyles import shock
from convergebench.drawing.people import Person, face_of, paint_head, tones
from convergebench.drawing.shapes import Point, ribbon
from convergebench.drawing.strands import Coat, Strand, coat, paint_coat
from convergebench.drawing.wardrobe import paint_bust

_MAN = Person(
    skin=rgb(0xC99472), hair=rgb(0xB9B4AC), style="wave", top=rgb(0x5A4634), pattern="plain",
    iris=rgb(0x5F7F93), beard=0.75, smile=0.16, turn=0.12, broad=1.04, soft=0.0, seed=77,
)  # fmt: skip
_AT, _SIZE = (0.5, 0.480), 0.305

# Furrows of the skin: points in the head's units, width, depth.
_FURROWS: tuple[tuple[tuple[Point, ...], float, float], ...] = (
    (((-0.46, -0.40), (-0.22, -0.46), (0.04, -0.44), (0.30, -0.46), (0.52, -0.41)), 0.016, 0.50),
    (((-0.40, -0.51), (-0.14, -0.57), (0.10, -0.55), (0.34, -0.57), (0.48, -0.53)), 0.014, 0.45),
    (((-0.30, -0.62), (-0.06, -0.66), (0.20, -0.65), (0.40, -0.63)), 0.011, 0.35),
    (((-0.02, -0.30), (-0.035, -0.22), (-0.025, -0.14)), 0.016, 0.55),
    (((0.085, -0.30), (0.10, -0.22), (0.09, -0.14)), 0.016, 0.55),
    (((-0.15, 0.34), (-0.25, 0.46), (-0.30, 0.62)), 0.024, 0.55),
    (((0.22, 0.34), (0.32, 0.46), (0.36, 0.62)), 0.024, 0.55),
)


def elder(canvas: Canvas) -> None:
    """White hair and beard, a furrowed brow, pale eyes, before a dark room."""
    x, y = canvas.grid
    glow = 0.55 * fbm(x * 2.2, y * 2.2, 5, 3) + 0.5 * bump(length(x - 0.12, y - 0.35), 0.0, 0.9)
    canvas.blend(
        gradient(glow, (0.2, rgb(0x0F1216)), (0.6, rgb(0x2F3A3F)), (1.0, rgb(0x6E7468))), 1.0
    )
    head = canvas.placed(*_AT, _SIZE)
    paint_bust(head, _MAN, 6.0)
    paint_head(head, _MAN)
    _weather(head)
    _wrinkles(head)
    paint_coat(head, _hairs())


def _weather(head: Canvas) -> None:
    """Pores, spots and small veins of old skin."""
    face = face_of(_MAN)
    part = head.crop(face.bounds)
    if part is None:
        return
    x, y = part.grid
    inside = smooth(face.distance(x, y), 0.0, -0.10) * smooth(y, 0.62, 0.45)
    eyes = x * 0.0 + y * 0.0 + 1.0
    for side in (-1.0, 1.0):
        eyes = eyes * (1.0 - bump(length(x - 0.024 - side * 0.325, (y + 0.03) * 1.8), 0.0, 0.26))
    pores = grit(x * 62.0, y * 62.0, 12, 3, part.px * 62.0)
    spots = smooth(fbm(x * 9.0, y * 9.0, 13, 3, part.px * 9.0), 0.60, 0.70)
    part.blend(rgb(0x4A2418), unit(pores * 0.5) * inside * eyes * 0.30)
    part.blend(rgb(0xFFEBD6), unit(0.0 - pores * 0.5) * inside * eyes * 0.24)
    part.blend(rgb(0x8A4A30), spots * inside * eyes * 0.16)


def _wrinkles(head: Canvas) -> None:
    """Furrows: a dark line with a light one below it."""
    deep, pale = tones(_MAN.skin)[1][1], tones(_MAN.skin)[4][1]
    lines: list[tuple[tuple[Point, ...], float, float]] = list(_FURROWS)
    for side in (-1.0, 1.0):
        out = 0.024 + side * 0.52
        for index in range(5):
            dice = Dice(index, int(side) + 2, 71)
            rise = -0.13 + 0.055 * index
            lines.append(
                (((out, -0.02 + 0.012 * index), (out + side * 0.09, rise * 0.6),
                  (out + side * dice.roll(0.13, 0.17), rise)), 0.010, 0.42)
            )  # fmt: skip
        for index in range(3):
            y = 0.10 + 0.035 * index
            mid = 0.024 + side * 0.33
            lines.append(
                (((mid - side * 0.18, y - 0.05), (mid, y + 0.012), (mid + side * 0.19, y - 0.045)),
                 0.012, 0.42 - 0.09 * index)
            )  # fmt: skip
    for points, width, depth in lines:
        head.fill(ribbon(*points, width=width, end_width=0.3 * width), deep, depth, width)
        below = tuple((x - 0.004, y + 1.3 * width) for x, y in points)
        head.fill(ribbon(*below, width=width, end_width=0.3 * width), pale, 0.30 * depth, width)


def _silver(dice: Dice) -> Colour:
    """The colour of one old hair."""
    return tinted(rgb(0x6A655F), rgb(0xFBF8F2), dice.roll())


@cache
def _hairs() -> Coat:
    """Single hairs of head, brows, lashes, moustache and beard."""
    hairs = shock(_MAN.style, _MAN.hair, 6500, 0.0085)
    for index in range(5200):
        dice = Dice(index, 902)
        x, y = dice.roll(-0.66, 0.72), dice.roll(0.24, 1.24)
        u = x - 0.012
        mouth = (x - 0.023) / 0.27, (y - 0.655) / 0.085
        cheek = y + 0.50 * abs(u) > 0.74 + 0.05 * dice.roll()
        lip = 0.475 < y < 0.58 and abs(x - 0.023) < 0.30
        jaw = (u / 0.68) * (u / 0.68) + ((y - 0.28) / 0.90) * ((y - 0.28) / 0.90) < 1.0
        if (cheek or lip) and jaw and mouth[0] * mouth[0] + mouth[1] * mouth[1] > 1.0:
            fall = dice.roll(0.08, 0.17)
            lean = u * 0.16 if not lip or cheek else u * 0.55
            hairs.append(
                Strand(x, y, lean + dice.roll(-0.05, 0.05), fall * (0.45 if lip else 1.0), 0.0085,
                       _silver(dice), dice.roll(-0.2, 0.2), 0.82)
            )  # fmt: skip
    for side in (-1.0, 1.0):
        for index in range(150):
            dice = Dice(index, int(side) + 2, 911)
            t = dice.roll(-1.0, 1.25)
            x = 0.024 + side * (0.325 + 0.165 * t)
            y = -0.255 + 0.035 * t * t + dice.roll(-0.030, 0.030)
            hairs.append(
                Strand(x, y, side * dice.roll(0.03, 0.09), dice.roll(-0.07, 0.02), 0.0080,
                       _silver(dice), dice.roll(-0.2, 0.2), 0.85)
            )  # fmt: skip
        for index in range(26):
            dice = Dice(index, int(side) + 2, 919)
            t = -0.9 + 1.9 * index / 25.0
            x = 0.024 + side * (0.325 + 0.160 * t)
            y = -0.103 + 0.070 * t * t
            hairs.append(
                Strand(x, y, side * (0.012 + 0.03 * t), -dice.roll(0.02, 0.045), 0.0058,
                       rgb(0x1E1612), side * 0.15, 0.8)
            )  # fmt: skip
    return coat(hairs, 1.0 / 60.0)
