"""Fruit, each in its own units: centre (0, 0) and about one unit to each side."""

from __future__ import annotations

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, Paint, gradient, rgb, tinted, washed
from convergebench.drawing.fields import Dice, Field, Value, bearing, fbm, length, noise, smooth
from convergebench.drawing.shading import dome, gleam, lambert, lit, relief
from convergebench.drawing.shapes import (
    both,
    circle,
    cut,
    ellipse,
    line,
    melt,
    ribbon,
    turned,
    union,
)

_WHITE: Colour = (1.0, 1.0, 0.97)
_STALK = rgb(0x5A3A1E)


def sphere(colour: Colour, gloss: float = 0.6, doublings: int = 5, night: float = 0.62) -> Paint:
    """Paint for a ball of radius one with a highlight and light bounced from below."""

    def paint(part: Canvas) -> list[Value]:
        normal = dome(part.x, part.y)
        light = lambert(normal)
        bounce = smooth(part.y, 0.55, 1.05) * (1.0 - light) * 0.22
        tint = washed(lit(colour, light, night), rgb(0xC99F7A), bounce)
        return washed(tint, _WHITE, gleam(normal, doublings) * gloss)

    return paint


def apple(canvas: Canvas) -> None:
    """A red apple with yellow flecks, stalk and leaf."""
    blush, ground = rgb(0xC2222B), rgb(0xE5B64A)
    body = melt(0.20, ellipse(-0.30, 0.03, 0.66, 0.90), ellipse(0.30, 0.03, 0.66, 0.90))

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        normal = dome(x * 1.02, (y - 0.03) * 1.04)
        light = lambert(normal)
        # Flecks run from the stalk to the flower end.
        turns = bearing(x * 0.9, y + 0.85)
        flecks = (
            noise(turns * 130.0 + 80.0, y * 1.6, 5) * 0.65
            + noise(turns * 44.0 + 80.0, y * 1.2, 6) * 0.35
        )
        warm = smooth(0.60 * flecks - 0.36 * (x + 0.25) + 0.28 * smooth(y, -0.35, -0.8), 0.36, 0.80)
        colours = [
            low + (high - low) * warm
            for low, high in zip(lit(blush, light, 0.55), lit(ground, light, 0.5), strict=True)
        ]
        dip = smooth(length(x * 0.8, (y + 0.80) * 1.9), 0.42, 0.0)
        tint = washed(colours, rgb(0x3B1A12), dip * 0.70)
        tint = washed(tint, rgb(0xF0B48A), smooth(y, 0.5, 1.0) * (1.0 - light) * 0.25)
        return washed(tint, _WHITE, gleam(normal, 5) * 0.75)

    canvas.fill(body, paint)
    canvas.fill(
        ribbon((0.02, -0.72), (0.06, -0.95), (0.18, -1.16), width=0.075, end_width=0.11), _STALK
    )
    leaf = both(circle(0.50, -0.62, 0.50), circle(0.50, -1.32, 0.50))
    leaf = turned(leaf, 0.14, -0.97, -0.045)
    canvas.fill(
        leaf, lambda part: lit(rgb(0x4F8B2F), 0.55 + 0.6 * (part.x - 0.5) - 0.9 * (part.y + 0.97))
    )
    canvas.fill(
        turned(line((0.16, -0.97), (0.82, -0.97), 0.025), 0.14, -0.97, -0.045), rgb(0xA8C96A)
    )


def orange(canvas: Canvas) -> None:
    """An orange with a dimpled skin."""

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        nx, ny, nz = dome(x, y)
        pores = min(max(1.6 - part.px * 26.0, 0.0), 1.0) * 0.24
        nx = nx + (noise(x * 17.0, y * 17.0, 3) - 0.5) * pores
        ny = ny + (noise(x * 17.0 + 5.0, y * 17.0, 4) - 0.5) * pores
        light = lambert((nx, ny, nz))
        tint = washed(lit(rgb(0xF08A1D), light, 0.42), rgb(0xD9A27A), smooth(y, 0.5, 1.0) * 0.10)
        return washed(tint, _WHITE, gleam((nx, ny, nz), 4) * 0.42)

    canvas.fill(circle(0.0, 0.0, 1.0), paint)
    canvas.fill(ellipse(-0.12, -0.62, 0.085, 0.05), rgb(0x6E5A1E), 0.9, 0.02)
    canvas.fill(ellipse(-0.12, -0.63, 0.04, 0.025), rgb(0xB6B35A))


def lemon(canvas: Canvas) -> None:
    """A lemon lying on its side, tips left and right."""
    body = melt(
        0.35,
        ellipse(0.0, 0.0, 0.86, 0.64),
        ellipse(0.84, -0.02, 0.18, 0.13),
        ellipse(-0.84, 0.02, 0.15, 0.11),
    )

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        nx, ny, nz = dome(x * 0.98, y * 1.40)
        pores = min(max(1.6 - part.px * 24.0, 0.0), 1.0) * 0.20
        ny = ny + (noise(x * 15.0, y * 15.0, 13) - 0.5) * pores
        normal = (nx, ny, nz)
        light = lambert(normal)
        green = smooth(np.abs(x), 0.72, 1.0) * 0.4
        return washed(
            washed(lit(rgb(0xF4CF2E), light, 0.40), rgb(0x9AA83A), green),
            _WHITE,
            gleam(normal, 4) * 0.45,
        )

    canvas.fill(body, paint)


def pear(canvas: Canvas) -> None:
    """A green pear with a rosy cheek and freckles."""
    body = melt(0.45, circle(0.0, 0.34, 0.66), ellipse(0.05, -0.42, 0.36, 0.46))

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        normal = relief(body, part, 0.58)
        light = lambert(normal)
        rosy = smooth(x - 0.2 * y, 0.05, 0.55) * 0.65
        freckles = smooth(noise(x * 26.0, y * 26.0, 7), 0.74, 0.86) * 0.35
        tint = washed(lit(rgb(0xB4BE3F), light, 0.5), rgb(0xB8572E), rosy * light)
        return washed(washed(tint, rgb(0x6B5A20), freckles), _WHITE, gleam(normal, 5) * 0.5)

    canvas.fill(body, paint)
    canvas.fill(
        ribbon((0.06, -0.80), (0.10, -1.00), (0.22, -1.14), width=0.07, end_width=0.10), _STALK
    )


def banana(canvas: Canvas) -> None:
    """One banana, bent upwards, with flat sides."""
    body = cut(ellipse(0.0, -0.55, 1.05, 1.12), ellipse(0.0, -0.98, 1.06, 1.12))

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        across = (length(x, (y + 0.72) * 0.97) - 0.88) * 2.4
        light = 0.62 - 0.55 * across - 0.22 * x
        ripe = smooth(noise(x * 9.0, y * 30.0, 9), 0.72, 0.85) * 0.4 * smooth(across, -0.2, 0.5)
        tip = smooth(np.abs(x), 0.86, 1.0)
        tint = washed(lit(rgb(0xF1C22F), light, 0.45), rgb(0x6B4A1A), ripe)
        return washed(tint, rgb(0x5A4A1C), tip * 0.8)

    canvas.fill(body, paint)
    canvas.fill(line((-0.97, -0.42), (-1.06, -0.62), 0.10, 0.13), rgb(0x7A6A28))


def grapes(canvas: Canvas) -> None:
    """A bunch of dark grapes, narrowing to the right, with its stalk."""
    canvas.fill(ribbon((-0.75, -0.35), (-1.0, -0.62), (-0.92, -0.85), width=0.07), _STALK)
    dice = Dice(5, 77)
    places = [
        (x + dice.roll(-0.05, 0.05), y + dice.roll(-0.05, 0.05))
        for y, xs in (
            (-0.36, (-0.52, -0.12, 0.24)),
            (-0.12, (-0.80, -0.36, 0.02, 0.42)),
            (0.16, (-0.62, -0.22, 0.20, 0.62, 0.92)),
            (0.42, (-0.78, -0.42, -0.02, 0.38, 0.74)),
        )
        for x in xs
    ]
    for index, (x, y) in enumerate(places):
        tone = tinted(rgb(0x4A1F55), rgb(0x7A2F5F), (index % 4) / 3.0)
        grape = canvas.placed(x, y, 0.245)
        grape.fill(circle(0.12, 0.14, 1.05), (0.05, 0.02, 0.06), 0.45, 0.25)
        grape.fill(circle(0.0, 0.0, 1.0), sphere(tone, 0.75, 5))
        grape.shade((-0.2, 0.25, 0.9, 1.0), rgb(0xA88BC0), 0.35)


def plum(canvas: Canvas) -> None:
    """A plum with its bloom and seam."""
    canvas.fill(ellipse(0.0, 0.0, 1.0, 0.95), sphere(rgb(0x5A2A6B), 0.45, 4))
    canvas.fill(
        ellipse(0.0, 0.0, 1.0, 0.95),
        lambda part: gradient(
            fbm(part.x * 2.0, part.y * 2.0, 4, 3), (0.3, rgb(0x5A3A7A)), (0.8, rgb(0xA79CC9))
        ),
        0.20,
    )
    seam = both(
        circle(0.0, 0.0, 0.97), ribbon((0.05, -0.95), (0.34, -0.3), (0.30, 0.6), width=0.04)
    )
    canvas.fill(seam, rgb(0x2A1038), 0.6, 0.03)


def cherry(canvas: Canvas) -> None:
    """Two cherries on joined stalks."""
    canvas.fill(
        union(
            ribbon((-0.45, 0.2), (-0.2, -0.5), (0.25, -1.0), width=0.06),
            ribbon((0.5, 0.3), (0.45, -0.4), (0.25, -1.0), width=0.06),
        ),
        rgb(0x5F7A2A),
    )
    for x, y in ((-0.45, 0.45), (0.5, 0.52)):
        canvas.placed(x, y, 0.46).fill(circle(0.0, 0.0, 1.0), sphere(rgb(0xB3122B), 0.85, 5))


def petal_ring(
    canvas: Canvas, count: int, inner: float, size: tuple[float, float], colour: Colour, turn: float
) -> None:
    """A ring of petals round the origin, each shaded towards its base."""
    wide, tall = size
    petal = ellipse(0.0, -inner - tall, wide, tall)
    for index in range(count):
        turns = turn + index / count
        light = 0.72 + 0.20 * (1.0 if (turns % 1.0) > 0.4 else -0.5)

        def paint(part: Canvas, k: float = light) -> list[Field]:
            reach = length(part.x, part.y)
            return lit(colour, k - 0.35 * smooth(reach, inner + 2.0 * tall, inner * 0.6), 0.45)

        canvas.fill(
            turned(petal, 0.0, 0.0, turns), tinted(colour, (0.0, 0.0, 0.0), 0.55), 0.55, 0.05
        )
        canvas.fill(turned(petal, 0.0, 0.0, turns), paint)
