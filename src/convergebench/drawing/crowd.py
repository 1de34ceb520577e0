"""The scene `crowd`: a square full of people, row behind row."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import Dice, Value, fbm, grit, noise, smooth, speckle, stripes
from convergebench.drawing.people import Person, paint_head, somebody
from convergebench.drawing.shapes import box, ellipse, line
from convergebench.drawing.wardrobe import paint_bust

_HORIZON = 0.205
_LAST_ROW = 1.30
# Pixels of more than this share of half a face leave no room for its features.
_FAR = 0.15


@cache
def _rows() -> tuple[tuple[float, float], ...]:
    """Height in the picture and size of a head for each row, far ones first."""
    rows = []
    y = _HORIZON
    while y < _LAST_ROW:
        size = 0.0118 + 0.0360 * (y - _HORIZON)
        rows.append((y, size))
        y += 2.30 * size + 0.004
    return tuple(rows)


@lru_cache(maxsize=4096)
def _one(row: int, column: int) -> tuple[Person, float, float]:
    """Who stands at a place, and how far off it."""
    dice = Dice(row, column, 3301)
    return somebody(row, column, 17), dice.roll(-0.75, 0.75), dice.roll(-0.75, 0.6)


def crowd(canvas: Canvas) -> None:
    """Some three hundred people, no two alike, before old houses under flags."""
    _houses(canvas)
    x0, y0, x1, y1 = canvas.extent
    for row, (y, size) in enumerate(_rows()):
        if y - 3.0 * size > y1 or y + 5.0 * size < y0:
            continue
        step = 2.85 * size
        shift = 0.5 * step * (row % 2)
        far = max(0.34 - 1.1 * (y - _HORIZON), 0.0)
        # People further off are paler: the air between.
        for column in range(
            math.floor((x0 - shift) / step) - 2, math.ceil((x1 - shift) / step) + 3
        ):
            person, dx, dy = _one(row, column)
            head = canvas.placed(shift + column * step + dx * size, y + dy * size, size)
            part = head.crop((-2.3, -1.8, 2.3, 4.6))
            if part is None:
                continue
            part.shade((-1.5, -1.5, 1.5, 2.0), rgb(0x0C0A10), 0.40)
            if part.px > _FAR:
                _dab(part, person)
                continue
            paint_bust(part, person, 5.2)
            if part.crop((-1.3, -1.8, 1.3, 2.2)) is not None:
                paint_head(part, person)
        if far > 0.0:
            _haze(canvas, y, size, far * 0.22)


def _dab(part: Canvas, person: Person) -> None:
    """Somebody of a few pixels: no more than hair, face and coat can be seen."""
    hair = person.hair if person.style not in ("cap", "scarf", "bald") else rgb(0x4A5A6C)
    if person.style == "bald":
        hair = person.skin
    part.fill(ellipse(0.0, 3.6, 1.75, 2.1), tinted(person.top, (0.12, 0.10, 0.16), 0.22))
    part.fill(ellipse(0.0, 1.2, 0.42, 0.5), tinted(person.skin, (0.2, 0.1, 0.1), 0.5))
    long = 0.9 if person.style in ("long", "bob", "scarf") else 0.0
    part.fill(ellipse(0.0, -0.25 + 0.5 * long, 0.88, 1.02 + 0.5 * long), hair)
    part.fill(ellipse(0.0, 0.18, 0.64, 0.80), tinted(person.skin, (0.2, 0.1, 0.1), 0.18))


def _haze(canvas: Canvas, y: float, size: float, share: float) -> None:
    """Pale air over a row and all behind it."""
    part = canvas.crop((-9.0, _HORIZON - 0.03, 9.0, y + 3.0 * size))
    if part is not None:
        fade = smooth(part.y, y + 3.0 * size, y) * smooth(part.y, _HORIZON - 0.03, _HORIZON)
        part.blend(rgb(0xC9CFD8), fade * share + 0.0 * part.x)


def _plaster(
    left: float, top: float, width: float, colour: Colour, index: int
) -> Callable[[Canvas], list[Value]]:
    """A wall with three columns of windows."""

    def wall(part: Canvas) -> list[Value]:
        u, v = (part.x - left) * (3.0 / width), (part.y - top) * 17.0
        across, down = part.px * 22.0, part.px * 17.0
        frame = stripes(u - 0.24, 0.52, across) * stripes(v - 0.22, 0.64, down)
        glass = stripes(u - 0.30, 0.40, across) * stripes(v - 0.29, 0.50, down)
        dark = speckle(u + index * 3.0, v, 10)
        rough = grit(part.x * 150.0, part.y * 150.0, 11, 2, part.px * 150.0)
        tint = scaled(colour, 0.86 + 0.12 * rough + 0.14 * smooth(part.y, 0.2, 0.0))
        pane = gradient(dark, (0.0, rgb(0x24303B)), (0.8, rgb(0x5B6E7C)), (1.0, rgb(0xE3C98C)))
        return washed(washed(tint, rgb(0xF5F1E8), frame), pane, glass)

    return wall


def _houses(canvas: Canvas) -> None:
    """A row of plastered houses with many windows, roofs and a strip of sky."""
    x, y = canvas.grid
    sky = fbm(x * 3.0, y * 9.0, 8, 4, canvas.px * 9.0)
    canvas.blend(gradient(sky, (0.3, rgb(0x8FB4D9)), (0.7, rgb(0xE9EEF2))), 1.0)
    width = 0.135
    left, _, right, _ = canvas.extent
    for index in range(math.floor(left / width) - 1, math.ceil(right / width) + 1):
        dice = Dice(index, 419)
        top = dice.roll(-0.01, 0.055)
        colour = _PLASTER[dice.pick(len(_PLASTER))]
        a, b = index * width, (index + 1) * width
        roof = box(a - 0.004, top - 0.030, b + 0.004, top + 0.002)
        canvas.fill(
            roof,
            lambda part: scaled(
                rgb(0x8A4634),
                0.75 + 0.35 * stripes(part.x * 150.0, 0.5, part.px * 150.0)
                + 0.3 * noise(part.x * 90.0, part.y * 90.0, 9),
            ),
        )  # fmt: skip

        canvas.fill(box(a, top, b, _HORIZON + 0.10), _plaster(a, top, width, colour, index))
        canvas.fill(line((b, top), (b, 0.3), 0.003), rgb(0x3A302A), 0.6)
    _bunting(canvas, left, right)
    canvas.fill(box(left - 1.0, _HORIZON + 0.06, right + 1.0, 9.0), rgb(0x2A2730), 1.0, 0.02)


_PLASTER = (
    rgb(0xD9B98A), rgb(0xC98C72), rgb(0xE3D6BC), rgb(0x9FB0A6), rgb(0xC7A7A0), rgb(0xB9BFC9),
)  # fmt: skip
_FLAGS = (rgb(0xD23B3B), rgb(0xF0C23A), rgb(0x2F7FC1), rgb(0xF4F2EC), rgb(0x3E9B5B))


def _bunting(canvas: Canvas, left: float, right: float) -> None:
    """Two strings of small flags across the square."""
    for string, (base, sag, span) in enumerate(((0.075, 0.05, 0.62), (0.035, 0.06, 0.85))):
        step = 0.021
        for index in range(math.floor(left / step) - 1, math.ceil(right / step) + 2):
            x = index * step
            t = x / span - math.floor(x / span)
            y = base + 4.0 * sag * t * (1.0 - t)
            flag = line((x, y), (x, y + 0.016), 0.013, 0.002)
            canvas.fill(flag, _FLAGS[(index * 7 + string * 3) % 5])
            t2 = (x + step) / span - math.floor((x + step) / span)
            canvas.fill(
                line(
                    (x, y - 0.006), (x + step, base + 4.0 * sag * t2 * (1.0 - t2) - 0.006), 0.0016
                ),
                rgb(0x2A2522),
            )
