"""The scene `face-medium`: a man half-length in a street, before a brick wall and a shop window."""

from __future__ import annotations

from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import (
    Dice,
    Value,
    bump,
    fbm,
    grit,
    length,
    noise,
    smooth,
    speckle,
    stripes,
)
from convergebench.drawing.hairstyles import shock
from convergebench.drawing.people import Person, paint_head
from convergebench.drawing.shapes import box, circle
from convergebench.drawing.strands import Coat, Strand, coat, paint_coat
from convergebench.drawing.wardrobe import paint_arms, paint_bust

_MAN = Person(
    skin=rgb(0xB98058), hair=rgb(0x241813), style="wave", top=rgb(0x2F5A6E), pattern="checks",
    iris=rgb(0x5A3A1E), beard=0.9, smile=0.55, turn=-0.28, broad=1.02, soft=0.0, seed=5,
)  # fmt: skip
_AT, _SIZE = (0.43, 0.335), 0.128
_SILL = 0.86
_WINDOW = (0.66, 0.06, 1.30, _SILL)


def face_medium(canvas: Canvas) -> None:
    """A bearded man in a checked shirt who smiles past the viewer."""
    _wall(canvas)
    _window(canvas)
    shade = canvas.placed(_AT[0] + 0.05, _AT[1] + 0.02, _SIZE)
    shade.shade((-3.4, -1.9, 3.4, 9.5), rgb(0x120A0A), 0.60)
    man = canvas.placed(*_AT, _SIZE)
    paint_arms(man, _MAN, ("hang", "hang"), False)
    paint_bust(man, _MAN, 8.0)
    paint_head(man, _MAN)
    paint_coat(man, _hairs())


def _wall(canvas: Canvas) -> None:
    """Old bricks, each of its own colour, with rough mortar between."""
    x, y = canvas.grid
    wobble = 0.06 * (noise(x * 22.0, y * 22.0, 3) - 0.5)
    v = y * 23.0 + wobble
    row = np.floor(v)
    u = x * 8.2 + 0.5 * (row - 2.0 * np.floor(row * 0.5)) + wobble
    tone = speckle(u, v, 4)
    fired = speckle(u + 40.0, v + 9.0, 5)
    rough = grit(x * 90.0, y * 90.0, 6, 4, canvas.px * 90.0)
    broad = fbm(x * 3.0, y * 3.0, 7, 3)
    tint = gradient(
        tone,
        (0.0, rgb(0x6E3226)),
        (0.35, rgb(0x8E4530)),
        (0.7, rgb(0xA85B3E)),
        (1.0, rgb(0xBE7A55)),
    )
    light = 0.62 + 0.30 * broad + 0.22 * rough + 0.30 * smooth(x, 0.9, -0.1)
    canvas.blend(scaled(washed(tint, rgb(0x3E2A2C), smooth(fired, 0.82, 0.98) * 0.6), light), 1.0)
    gap_x = stripes(u + 0.035, 0.07, canvas.px * 8.2)
    gap_y = stripes(v + 0.09, 0.18, canvas.px * 23.0)
    mortar = np.maximum(gap_x, gap_y)
    canvas.blend(scaled(rgb(0xA89C8C), 0.62 + 0.25 * rough + 0.25 * broad), mortar * 0.92)
    shadow = stripes(v - 0.09, 0.10, canvas.px * 23.0)
    canvas.blend((0.10, 0.04, 0.04), shadow * 0.38 * (1.0 - mortar))


def _window(canvas: Canvas) -> None:
    """A shop window: warm lamps and shelves out of focus, a painted frame, a sill."""
    x0, y0, x1, y1 = _WINDOW
    canvas.fill(box(x0 - 0.03, y0 - 0.03, x1 + 0.03, y1 + 0.06), rgb(0x140C0A), 0.5, 0.03)

    def inside(part: Canvas) -> list[Value]:
        x, y = part.grid
        glow = 0.25 + 0.55 * bump(length((x - 0.86) * 0.8, y - 0.25), 0.0, 0.55)
        shelf = smooth(np.abs((y * 5.2 + 0.25) - np.floor(y * 5.2 + 0.25) - 0.5), 0.44, 0.49)
        goods = noise(x * 34.0, np.floor(y * 5.2 + 0.25) * 3.7 + 0.0 * x, 12)
        tall = (y * 5.2 + 0.25) - np.floor(y * 5.2 + 0.25)
        filled = smooth(tall - 0.35 - 0.4 * goods, 0.0, 0.12)
        tint: list[Value] = list(
            gradient(glow, (0.2, rgb(0x2A1C18)), (0.5, rgb(0x7A4E2C)), (0.85, rgb(0xF0BC6A)))
        )
        hue = noise(x * 30.0 + 9.0, np.floor(y * 5.2 + 0.25) * 5.1 + 0.0 * x, 13)
        ware = gradient(
            hue, (0.2, rgb(0x5A2A2E)), (0.45, rgb(0x2F5B58)), (0.6, rgb(0xB07A3C)),
            (0.85, rgb(0x3A3F66)),
        )  # fmt: skip
        tint = washed(tint, scaled(ware, 0.45 + 0.75 * glow), filled * 0.75)
        tint = washed(tint, rgb(0x20120C), shelf * 0.7)
        street = fbm(x * 3.0 + y, y * 2.0, 14, 3) * smooth(x + y * 0.6, 1.5, 0.9)
        return washed(tint, rgb(0xB9CBD8), 0.42 * smooth(street, 0.30, 0.62))

    canvas.fill(box(*_WINDOW), inside)
    for lamp_x, lamp_y in ((0.76, 0.20), (0.90, 0.16), (1.05, 0.21)):
        canvas.glow(lamp_x, lamp_y, 0.075, rgb(0xFFE3A6), 0.75)
        canvas.fill(circle(lamp_x, lamp_y, 0.012), rgb(0xFFF6DD), 0.95, 0.006)
    green, dark = rgb(0x2E5B4A), rgb(0x12261F)
    for bar in (
        box(x0 - 0.022, y0 - 0.022, x0 + 0.010, y1),
        box(x0, y0 + 0.30, x1, y0 + 0.316),
        box(x0 + 0.24, y0, x0 + 0.256, y1),
        box(x0 - 0.022, y0 - 0.022, x1, y0 + 0.008),
    ):
        canvas.fill(bar, dark, 0.6, 0.008)
        canvas.fill(bar, lambda part: _paintwork(part, green))
    sill = box(x0 - 0.05, y1 - 0.004, x1 + 0.05, y1 + 0.045, 0.004)
    canvas.fill(box(x0 - 0.05, y1 + 0.03, x1, y1 + 0.085), (0.05, 0.02, 0.02), 0.5, 0.02)
    canvas.fill(
        sill,
        lambda part: scaled(
            gradient(part.y, (y1, rgb(0xD5CEC2)), (y1 + 0.045, rgb(0x7E776E))),
            0.93 + 0.22 * grit(part.x * 120.0, part.y * 120.0, 15, 3, part.px * 120.0),
        ),
    )


def _paintwork(part: Canvas, colour: tuple[float, float, float]) -> list[Value]:
    """Brushed paint with some wear."""
    worn = fbm(part.x * 40.0, part.y * 14.0, 16, 3, part.px * 40.0)
    return scaled(washed(colour, rgb(0x9FB5A2), smooth(worn, 0.60, 0.85) * 0.5), 0.8 + 0.5 * worn)


@cache
def _hairs() -> Coat:
    """Single hairs over head and beard."""
    hairs = shock(_MAN.style, _MAN.hair, 1500)
    for index in range(900):
        dice = Dice(index, 902)
        x, y = dice.roll(-0.62, 0.56), dice.roll(0.30, 1.10)
        u = x - 0.10 * _MAN.turn
        mouth = (x - 0.19 * _MAN.turn) / 0.33, (y - 0.66) / 0.14
        low = y + 0.50 * abs(u) > 0.80 or (0.47 < y < 0.57 and abs(x - 0.19 * _MAN.turn) < 0.28)
        jaw = (u / 0.66) * (u / 0.66) + ((y - 0.30) / 0.82) * ((y - 0.30) / 0.82) < 1.0
        if low and jaw and mouth[0] * mouth[0] + mouth[1] * mouth[1] > 1.0:
            pale = dice.roll()
            tint = tinted(_MAN.hair, rgb(0x9A8F86) if pale > 0.86 else rgb(0x6A4630), 0.7 * pale)
            hairs.append(
                Strand(x, y, u * 0.10 + dice.roll(-0.04, 0.04), dice.roll(0.06, 0.13), 0.012, tint,
                       dice.roll(-0.2, 0.2), 0.75)
            )  # fmt: skip
    return coat(hairs, 1.0 / 40.0)
