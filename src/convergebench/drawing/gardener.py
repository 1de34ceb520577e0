"""The scene `gardener`: a woman half-length before a hedge, a basket of apples on her arm."""

from __future__ import annotations

from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Shape, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import Dice, Value, bump, grit, smooth, wave
from convergebench.drawing.hairstyles import shock
from convergebench.drawing.people import Person, paint_head, tones
from convergebench.drawing.shading import dome, gleam, lambert, lit, relief
from convergebench.drawing.shapes import blob, box, circle, ellipse, line, melt, outline, ribbon
from convergebench.drawing.strands import Coat, coat, paint_coat
from convergebench.drawing.swarms import foliage
from convergebench.drawing.wardrobe import paint_arms, paint_bust

_WOMAN = Person(
    skin=rgb(0x7A4B33), hair=rgb(0x1A1210), style="bun", top=rgb(0xE0B040), pattern="plain",
    iris=rgb(0x2E1D13), smile=0.8, turn=0.22, broad=0.98, soft=0.95, seed=311,
)  # fmt: skip
_AT, _SIZE = (0.56, 0.320), 0.122


def gardener(canvas: Canvas) -> None:
    """She laughs; her pullover is yellow, her apron grey, the hedge behind her in half shade."""
    # Other leaves of the same plane than the scene `foliage` shows.
    hedge = canvas.placed(-6.13, -4.11, 0.62)
    foliage(hedge)
    x, y = canvas.grid
    canvas.planes[:] *= 0.52 + 0.34 * smooth(x + 0.5 * y, 1.2, 0.0)
    canvas.shade((_AT[0] - 0.40, 0.10, _AT[0] + 0.44, 1.25), rgb(0x05100A), 0.75)
    woman = canvas.placed(*_AT, _SIZE)
    paint_arms(woman, _WOMAN, ("hang", "hang"), False)
    paint_bust(woman, _WOMAN, 8.0)
    _apron(woman)
    paint_head(woman, _WOMAN)
    paint_coat(woman, _hairs())
    _earrings(woman)
    _basket(canvas.placed(0.195, 0.0, 1.0))


def _apron(woman: Canvas) -> None:
    """A linen apron with straps, a seam and a pocket."""
    bib = blob((-0.80, 2.75), (0.0, 2.70), (0.80, 2.75), (0.95, 3.6), (1.35, 4.6), (1.40, 9.0),
               (-1.40, 9.0), (-1.35, 4.6), (-0.95, 3.6), steps=4)  # fmt: skip

    def linen(part: Canvas) -> list[Value]:
        u, v = part.grid
        warp = grit(u * 60.0, v * 12.0, 21, 2, part.px * 60.0)
        weft = grit(u * 12.0, v * 60.0, 22, 2, part.px * 60.0)
        fold = wave(u * 0.8 + 0.12 * v) * 0.10 + wave(u * 1.9 - 0.2 * v + 0.3) * 0.05
        light = 0.62 - 0.12 * u + fold + 0.12 * (warp + weft)
        return list(lit(rgb(0x9AA6A2), light, 0.55, 0.4))

    for side in (-1.0, 1.0):
        strap = ribbon((side * 0.62, 1.42), (side * 0.70, 2.1), (side * 0.68, 2.85), width=0.20)
        woman.fill(strap, rgb(0x0C0806), 0.4, 0.05)
        woman.fill(strap, linen)
    woman.fill(bib, rgb(0x0C0806), 0.4, 0.07)
    woman.fill(bib, linen)
    woman.fill(line((-0.74, 2.90), (0.74, 2.90), 0.022), rgb(0x4E5A58), 0.7)
    pocket = box(-0.55, 4.3, 0.55, 5.2, 0.08)
    woman.fill(outline(pocket, 0.03), rgb(0x4E5A58), 0.8)
    woman.fill(line((-0.50, 4.40), (0.50, 4.40), 0.022), rgb(0x5A6664), 0.8)


def _earrings(woman: Canvas) -> None:
    """Two gold hoops."""
    for x in (-0.79, 0.72):
        hoop = outline(circle(x, 0.46, 0.13), 0.035)
        woman.fill(hoop, rgb(0x2A1408), 0.5, 0.03)
        woman.fill(hoop, lambda part: gradient(part.y, (0.33, rgb(0xF8DD8C)), (0.6, rgb(0x9A6A1E))))


@cache
def _hairs() -> Coat:
    """Single hairs pulled back from the forehead."""
    return coat(shock("bun", _WOMAN.hair, 1300, 0.010), 1.0 / 40.0)


def _basket(canvas: Canvas) -> None:
    """A wicker basket full of apples, held before her, and the hands on its handle."""
    for index in range(15):
        dice = Dice(index, 1213)
        x = 0.155 + 0.030 * index + dice.roll(-0.010, 0.010)
        y = 0.800 + 0.022 * (index % 3) - 0.030 * (1.0 - abs(x - 0.36) / 0.22)
        _apple(canvas, x, y, dice.roll(0.036, 0.044), dice)
    rim = blob((0.105, 0.842), (0.36, 0.860), (0.615, 0.842), (0.575, 1.10), (0.36, 1.13),
               (0.145, 1.10), steps=5)  # fmt: skip
    canvas.fill(rim, rgb(0x0A0604), 0.6, 0.016)

    def wicker(part: Canvas) -> list[Value]:
        u = (part.x - 0.36) * 24.0
        v = part.y * 62.0
        row = np.floor(v)
        over = wave(u * 0.5 + 0.25 + 0.5 * (row - 2.0 * np.floor(row * 0.5)))
        within = v - row - 0.5
        cane = bump(within, 0.0, 0.62)
        grain = grit(part.x * 90.0, part.y * 420.0, 31, 2, part.px * 420.0)
        light = 0.22 + 0.34 * cane + 0.20 * over * cane - 0.5 * (part.x - 0.36) + 0.10 * grain
        return list(
            gradient(
                light,
                (0.05, rgb(0x2A1609)),
                (0.40, rgb(0x8A5A2C)),
                (0.75, rgb(0xD2A35E)),
                (1.0, rgb(0xF3D9A2)),
            )
        )

    canvas.fill(rim, wicker)
    edge = ribbon((0.105, 0.842), (0.23, 0.856), (0.36, 0.861), (0.49, 0.856), (0.615, 0.842),
                  width=0.022)  # fmt: skip
    canvas.fill(edge, rgb(0x1A0D05), 0.6, 0.008)
    canvas.fill(
        edge,
        lambda part: scaled(rgb(0xB98346), 0.85 + 0.35 * wave(part.x * 46.0 + part.y * 30.0)),
    )
    _grip(canvas, 0.135, 1.0)
    _grip(canvas, 0.585, -1.0)


def _apple(canvas: Canvas, x: float, y: float, size: float, dice: Dice) -> None:
    """A red and yellow apple with its stalk."""
    red = tinted(rgb(0xB3231F), rgb(0xD9A53A), dice.roll(0.0, 0.5))
    apple = circle(x, y, size)
    canvas.fill(apple, rgb(0x140604), 0.6, 0.008)

    def skin(part: Canvas) -> list[Value]:
        u, v = (part.x - x) * (1.0 / size), (part.y - y) * (1.0 / size)
        normal = dome(u, v)
        streak = grit(u * 7.0, v * 1.6, 41, 3, part.px * 7.0 / size)
        tint = lit(tinted(red, rgb(0xE2B84A), 0.2), 0.1 + 0.72 * lambert(normal) + 0.22 * streak)
        return washed(tint, (1.0, 0.98, 0.94), gleam(normal, 5) * 0.7)

    canvas.fill(apple, skin)
    canvas.fill(
        ellipse(x + 0.1 * size, y - 0.72 * size, 0.26 * size, 0.10 * size),
        rgb(0x3A1208),
        0.7,
        0.004,
    )
    canvas.fill(
        line((x + 0.1 * size, y - 0.70 * size), (x + 0.25 * size, y - 1.1 * size), 0.005),
        rgb(0x3A2412),
    )


def _grip(canvas: Canvas, x: float, side: float) -> None:
    """Four fingers around the basket's edge."""
    stops = tones(_WOMAN.skin)
    for index in range(4):
        at = x + side * 0.021 * index
        finger = melt(
            0.006, line((at, 0.826), (at - side * 0.002, 0.874 - 0.004 * index), 0.023, 0.019)
        )

        def flesh(part: Canvas, finger: Shape = finger) -> list[Value]:
            return list(gradient(0.26 + 0.56 * lambert(relief(finger, part, 0.010)), *stops))

        canvas.fill(finger, rgb(0x0A0503), 0.5, 0.006)
        canvas.fill(finger, flesh)
        nail = ellipse(at - side * 0.002, 0.877 - 0.004 * index, 0.0062, 0.0070)
        canvas.fill(nail, rgb(0xC08A78), 0.8, 0.002)
