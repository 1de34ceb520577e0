"""Small objects for a table, each in a box one unit high, feet at the bottom."""

from __future__ import annotations

import numpy as np

from convergebench.drawing import fruit
from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, scaled, washed
from convergebench.drawing.fields import (
    Value,
    length,
    noise,
    ramp,
    sharpen,
    smooth,
    stripes,
    unit,
    wave,
)
from convergebench.drawing.shading import (
    barrel,
    contact,
    gleam,
    lambert,
    lit,
    profile,
    relief,
    turned_body,
)
from convergebench.drawing.shapes import (
    Point,
    both,
    circle,
    cut,
    ellipse,
    grown,
    line,
    outline,
    polygon,
    union,
)

_WHITE: Colour = (1.0, 1.0, 0.98)


def red_ball(canvas: Canvas) -> None:
    """A glossy red ball."""
    contact(canvas, (0.10, 0.84, 0.96, 1.0), 1.0)
    ball = canvas.placed(0.5, 0.485, 0.465)
    ball.fill(circle(0.0, 0.0, 1.0), fruit.sphere(rgb(0xDB1F26), 0.9, 6, 0.45))
    ball.shade((-0.62, -0.78, -0.02, -0.26), _WHITE, 0.35)


def apple(canvas: Canvas) -> None:
    """A red apple with a leaf."""
    contact(canvas, (0.08, 0.84, 0.96, 1.0), 1.0)
    fruit.apple(canvas.placed(0.48, 0.565, 0.425))


def cup(canvas: Canvas) -> None:
    """A mug of coffee with a handle on the right."""
    contact(canvas, (0.02, 0.84, 1.06, 1.0), 1.0)
    axis, top, foot = 0.42, 0.185, 0.915
    stops = ((top, 0.345), (0.70, 0.330), (foot, 0.270))
    body = union(turned_body(axis, stops), ellipse(axis, foot, 0.270, 0.048))
    ring = outline(ellipse(0.765, 0.50, 0.175, 0.205), 0.085)
    glaze = rgb(0x2C8C8A)

    def handle(part: Canvas) -> list[Value]:
        normal = relief(ring, part, 0.045)
        return washed(lit(glaze, lambert(normal), 0.5), _WHITE, gleam(normal, 4) * 0.5)

    def side(part: Canvas) -> list[Value]:
        x, y = part.grid
        across = (x - axis) / profile(y, *stops)
        normal = barrel(across)
        light = lambert(normal)
        level = y - 0.050 * np.sqrt(np.maximum(1.0 - across * across, 0.0))
        band = ramp(level, 0.500, 0.500 + part.px) * ramp(level, 0.690 + part.px, 0.690)
        tint = washed(lit(glaze, light, 0.5), lit(rgb(0xF4EBD6), light, 0.45), band)
        zig = (
            np.abs(level - 0.595 - 0.045 * wave(across * (0.7 + 0.25 * across * across) * 3.0))
            - 0.016
        )
        tint = washed(tint, lit(rgb(0xE2703A), light, 0.45), unit(0.5 - zig / part.px))
        glint = sharpen(unit(1.0 - np.abs(across + 0.55) * 3.0), 1)
        return washed(tint, _WHITE, glint * 0.45)

    canvas.fill(ring, handle)
    canvas.fill(body, side)
    mouth = ellipse(axis, top, 0.345, 0.080)
    canvas.fill(mouth, lambda part: gradient(part.x, (0.08, rgb(0xBFE0DA)), (0.76, rgb(0x5FB0AA))))
    inner = ellipse(axis, top + 0.004, 0.315, 0.066)
    canvas.fill(inner, lambda part: gradient(part.x, (0.1, rgb(0x14504F)), (0.74, rgb(0x3E9A96))))
    coffee = both(inner, ellipse(axis, top + 0.035, 0.305, 0.062))
    canvas.fill(
        coffee, lambda part: gradient(part.x + part.y, (0.3, rgb(0x3A1D0E)), (0.95, rgb(0x7A4A26)))
    )


def book(canvas: Canvas) -> None:
    """A standing hardback, seen from its spine side and a little from above."""
    contact(canvas, (0.02, 0.82, 0.98, 1.0), 0.9)
    spine = polygon([(0.06, 0.085), (0.20, 0.135), (0.20, 0.965), (0.06, 0.865)])
    cover = polygon([(0.20, 0.135), (0.80, 0.085), (0.80, 0.885), (0.20, 0.965)])
    top = polygon([(0.06, 0.085), (0.20, 0.135), (0.80, 0.085), (0.655, 0.040)])
    pages = polygon([(0.092, 0.083), (0.205, 0.122), (0.775, 0.076), (0.648, 0.046)])
    canvas.fill(grown(top, 0.006), rgb(0x7A1F2B))

    def leaves(part: Canvas) -> list[Value]:
        edge = stripes((part.y + part.x * 0.12) * 60.0, 0.35, part.px * 60.0)
        return washed(rgb(0xF3E9CF), rgb(0xC9B893), edge * 0.8)

    canvas.fill(pages, leaves)

    def cloth(part: Canvas, base: Colour, bright: float) -> list[Value]:
        grain = noise(part.x * 90.0, part.y * 90.0, 5) - 0.5
        return scaled(base, bright + 0.10 * grain + 0.20 * (0.5 - part.y))

    canvas.fill(spine, lambda part: cloth(part, rgb(0x8E2434), 0.78))
    canvas.fill(cover, lambda part: cloth(part, rgb(0xB93040), 1.05))

    def slanted(u0: float, v0: float, u1: float, v1: float) -> list[Point]:
        """A rectangle of the cover (0..1 each way) on the picture."""
        corners = ((u0, v0), (u1, v0), (u1, v1), (u0, v1))
        return [
            (0.20 + 0.60 * u, (0.135 - 0.05 * u) * (1.0 - v) + (0.965 - 0.08 * u) * v)
            for u, v in corners
        ]

    gold = rgb(0xF0C869)
    frame = cut(
        polygon(slanted(0.12, 0.08, 0.93, 0.93)), polygon(slanted(0.145, 0.10, 0.905, 0.91))
    )
    canvas.fill(frame, gold)
    for v0, v1, inset in ((0.20, 0.265, 0.24), (0.30, 0.365, 0.32)):
        canvas.fill(polygon(slanted(inset, v0, 1.05 - inset, v1)), gold)
    canvas.fill(outline(ellipse(0.515, 0.635, 0.105, 0.120), 0.020), gold)
    canvas.fill(ellipse(0.515, 0.635, 0.060, 0.070), gold)
    canvas.fill(line((0.212, 0.14), (0.212, 0.955), 0.012), rgb(0x5E1420), 0.8)
    for y in (0.20, 0.30, 0.72, 0.80):
        canvas.fill(
            polygon([(0.06, y), (0.20, y + 0.06), (0.20, y + 0.085), (0.06, y + 0.02)]), gold, 0.9
        )


_VASE = (
    (0.035, 0.165), (0.065, 0.150), (0.175, 0.088), (0.270, 0.098), (0.530, 0.285), (0.740, 0.225),
    (0.930, 0.135), (0.955, 0.160),
)  # fmt: skip


def vase(canvas: Canvas) -> None:
    """A tall glazed vase with painted bands."""
    axis = 0.325
    contact(canvas, (0.04, 0.89, 0.68, 1.0), 1.0)

    def glaze(part: Canvas) -> list[Value]:
        x, y = part.grid
        across = (x - axis) / profile(y, *_VASE)
        light = lambert(barrel(across, (y - 0.5) * 0.8))
        curve = y - 0.030 * np.sqrt(np.maximum(1.0 - across * across, 0.0))
        tint: list[Value] = list(lit(rgb(0x2B5CA8), light, 0.55))
        cream = lit(rgb(0xF3EBDA), light, 0.5)
        belt = ramp(curve, 0.395, 0.395 + part.px) * ramp(curve, 0.625 + part.px, 0.625)
        tint = washed(tint, cream, belt)
        bend = across * (0.66 + 0.30 * across * across) * 3.5
        cell = bend - np.floor(bend) - 0.5
        bloom = length(cell * 0.155, curve - 0.51)
        tint = washed(
            tint,
            lit(rgb(0x2B5CA8), light, 0.5),
            unit(0.5 - (np.abs(bloom - 0.045) - 0.012) / part.px),
        )
        tint = washed(tint, lit(rgb(0xE08A2E), light, 0.5), unit(0.5 - (bloom - 0.020) / part.px))
        for at in (0.235, 0.365, 0.655, 0.845):
            tint = washed(tint, cream, unit(0.5 - (np.abs(curve - at) - 0.008) / part.px))
        glint = sharpen(unit(1.0 - np.abs(across + 0.50) * 2.6), 2)
        return washed(tint, _WHITE, glint * 0.75 + smooth(across, 0.7, 1.0) * 0.10)

    canvas.fill(union(turned_body(axis, _VASE), ellipse(axis, 0.955, 0.160, 0.022)), glaze)
    canvas.fill(ellipse(axis, 0.040, 0.165, 0.028), rgb(0xDCE6F4))
    canvas.fill(ellipse(axis, 0.042, 0.145, 0.020), rgb(0x0E2448))
