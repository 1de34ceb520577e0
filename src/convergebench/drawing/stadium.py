"""The scene `stadium`: a stand full of supporters in two colours."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from convergebench.drawing.canvas import Canvas, Colour, rgb, scaled
from convergebench.drawing.fields import Dice, grit, smooth, wave_at
from convergebench.drawing.lettering import breadth, write
from convergebench.drawing.people import Person, paint_head, somebody
from convergebench.drawing.shapes import box, ellipse, line
from convergebench.drawing.wardrobe import paint_arms, paint_bust

_SIZE = 0.0290
_ROW = 0.104
_SEAT = 0.096
_TOP = -0.02
_RAIL = 0.895
_SHIRTS: tuple[Colour, ...] = (rgb(0xB5202C), rgb(0xF2EEE6), rgb(0xC9303A), rgb(0x7E1620))
_POSES = (("hang", "hang"), ("wave", "hang"), ("hang", "wave"), ("wave", "wave"), ("fold", "hang"))


def stadium(canvas: Canvas) -> None:
    """Row on row of people on concrete steps behind a lettered rail, arms up and scarves on."""
    x, y = canvas.grid
    rough = grit(x * 90.0, y * 90.0, 5, 3, canvas.px * 90.0)
    canvas.blend(scaled(rgb(0x4C4A50), 0.85 + 0.25 * rough), 1.0)
    left, top, right, bottom = canvas.extent
    first = math.floor((top - _TOP) / _ROW) - 3
    for row in range(first, min(math.ceil((bottom - _TOP) / _ROW) + 2, 9)):
        _step(canvas, row)
        shift = 0.5 * _SEAT * (row % 2)
        columns = range(
            math.floor((left - shift) / _SEAT) - 2, math.ceil((right - shift) / _SEAT) + 3
        )
        for column in columns:
            _fan(canvas, row, column, column * _SEAT + shift)
    _board(canvas)


def _step(canvas: Canvas, row: int) -> None:
    """The concrete edge and the blue seat backs of one row."""
    y = _TOP + row * _ROW
    canvas.fill(box(-9.0, y + 0.085, 9.0, y + 0.20), rgb(0x2A2930), 0.55, 0.020)
    left, _, right, _ = canvas.extent
    shift = 0.5 * _SEAT * (row % 2)
    for column in range(
        math.floor((left - shift) / _SEAT) - 1, math.ceil((right - shift) / _SEAT) + 2
    ):
        x = column * _SEAT + shift
        canvas.fill(box(x - 0.038, y + 0.022, x + 0.038, y + 0.10, 0.010), rgb(0x24407A))
        canvas.fill(box(x - 0.038, y + 0.022, x + 0.038, y + 0.030, 0.004), rgb(0x4A6CB0))


@lru_cache(maxsize=4096)
def _who(row: int, column: int) -> tuple[Person, tuple[str, str], float, float, bool]:
    """A supporter: looks, arms, where in the seat, and whether a scarf is worn."""
    dice = Dice(row, column, 7103)
    person = somebody(row + 40, column, 29)
    cheer = 0.5 + 0.5 * wave_at(column * 0.06 + row * 0.11)
    person = replace(
        person,
        top=_SHIRTS[dice.pick(4)],
        pattern=("plain", "stripes", "plain", "shirt")[dice.pick(4)],
        smile=min(0.25 + 0.9 * cheer * dice.roll(), 1.0),
        turn=0.30 * wave_at(column * 0.05) + dice.roll(-0.25, 0.25),
    )
    pose = _POSES[1 + dice.pick(4) if dice.roll() < 0.55 * cheer else 0]
    return person, pose, dice.roll(-0.010, 0.010), dice.roll(-0.012, 0.008), dice.roll() < 0.45


def _fan(canvas: Canvas, row: int, column: int, x: float) -> None:
    """One supporter in the seat."""
    person, pose, dx, dy, scarf = _who(row, column)
    figure = canvas.placed(x + dx, _TOP + row * _ROW + dy, _SIZE)
    part = figure.crop((-3.4, -2.0, 3.4, 5.0))
    if part is None:
        return
    if part.px > 0.15:
        part.fill(ellipse(0.0, 3.6, 1.75, 2.1), person.top)
        part.fill(ellipse(0.0, -0.1, 0.86, 1.05), person.hair)
        part.fill(ellipse(0.0, 0.18, 0.64, 0.80), person.skin)
        return
    part.shade((-2.2, -1.4, 2.2, 4.6), rgb(0x0C0A10), 0.45)
    paint_arms(part, person, pose, True)
    paint_bust(part, person, 5.0)
    paint_arms(part, person, pose, True, True)
    if scarf:
        _scarf(part)
    if part.crop((-1.3, -1.8, 1.3, 2.2)) is not None:
        paint_head(part, person)


def _scarf(part: Canvas) -> None:
    """A striped scarf around the neck, one end hanging."""
    pieces = 7
    for index in range(pieces):
        a = -0.72 + 1.44 * index / pieces
        b = -0.72 + 1.44 * (index + 1) / pieces
        sag = 1.50 - 0.28 * (a + b) * (a + b)
        tint = rgb(0xB5202C) if index % 2 else rgb(0xF2EEE6)
        part.fill(line((a, sag), (b, sag), 0.34), tint)
    for index in range(5):
        tint = rgb(0xF2EEE6) if index % 2 else rgb(0xB5202C)
        part.fill(box(0.22, 1.62 + 0.30 * index, 0.60, 1.92 + 0.30 * index, 0.03), tint)


def _board(canvas: Canvas) -> None:
    """The rail before the first row, with its boards and lettering."""
    part = canvas.crop((-9.0, _RAIL - 0.03, 9.0, 9.0))
    if part is None:
        return
    y = part.y + 0.0 * part.x
    part.blend(scaled(rgb(0x2F7A3A), 0.8 + 0.3 * smooth(y, 1.2, 0.98)), part.cover(0.985 - y))
    part.fill(box(-9.0, _RAIL, 9.0, 0.985), rgb(0x15223F))
    part.fill(box(-9.0, _RAIL - 0.006, 9.0, _RAIL + 0.004), rgb(0xC9CCD2))
    part.fill(box(-9.0, _RAIL - 0.024, 9.0, _RAIL - 0.019), rgb(0x9AA0A8))
    left, _, right, _ = part.extent
    texts = ("GO REDS GO", "CITY BANK", "RADIO 96.4", "FRESH MILK")
    for index in range(math.floor(left / 0.34) - 1, math.ceil(right / 0.34) + 1):
        x = index * 0.34
        part.fill(
            box(x + 0.004, _RAIL + 0.012, x + 0.332, 0.977, 0.004),
            (rgb(0xF2EEE6), rgb(0xE8C23C))[index % 2],
        )
        text = texts[index % 4]
        size = min(0.30 / (breadth(text) - 1.9), 0.0056)
        start = x + 0.168 - 0.5 * (breadth(text) - 1.9) * size
        write(
            part,
            text,
            (start, 0.942 + 3.0 * size - 0.002),
            size,
            1.4,
            (rgb(0xB5202C), rgb(0x15223F))[index % 2],
        )
    for index in range(math.floor(left / 0.17) - 1, math.ceil(right / 0.17) + 1):
        part.fill(line((index * 0.17, _RAIL - 0.022), (index * 0.17, _RAIL), 0.005), rgb(0x9AA0A8))
