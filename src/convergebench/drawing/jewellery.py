"""Earrings, a necklace and a wristwatch, each in a box one unit high."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, Shape, gradient, rgb, tinted, washed
from convergebench.drawing.fields import (
    Value,
    bearing,
    direction,
    length,
    noise,
    sharpen,
    smooth,
    speckle,
    stripes,
    unit,
)
from convergebench.drawing.shading import barrel, dome, gleam, lambert, lit, relief
from convergebench.drawing.shapes import (
    Point,
    blob,
    both,
    box,
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
_GOLD = rgb(0xD9A441)
_SHADOW: Colour = (0.10, 0.06, 0.08)


def _metal(canvas: Canvas, shape: Shape, colour: Colour, depth: float) -> None:
    """Paint polished metal."""

    def paint(part: Canvas) -> list[Value]:
        normal = relief(shape, part, depth)
        return washed(lit(colour, lambert(normal), 0.55, 0.6), _WHITE, gleam(normal, 4) * 0.8)

    canvas.fill(shape, paint)


def _stone(canvas: Canvas, shape: Shape, at: Point, size: float, colour: Colour) -> None:
    """Paint a cut stone: facets around a table, bright at the lower right where light leaves it."""
    bright, dark = tinted(colour, _WHITE, 0.55), tinted(colour, (0.02, 0.01, 0.08), 0.62)

    def facets(part: Canvas) -> list[Value]:
        dx, dy = (part.x - at[0]) * (1.0 / size), (part.y - at[1]) * (1.0 / size)
        away = length(dx, dy)
        around = bearing(dx, dy) * 8.0
        # Three rings of facets, each turned by half a facet against its neighbour.
        glow = 0.5 + 0.30 * (dx + dy)
        for radius, shift, seed in ((0.0, 0.0, 3), (0.48, 0.5, 5), (0.86, 0.0, 8)):
            spark = speckle(around + shift, away * 0.0, seed) - 0.5
            beyond = unit(0.5 + (away - radius) * (size / part.px)) if radius else 1.0
            glow = glow + (0.5 + 0.30 * (dx + dy) + 0.62 * spark - glow) * beyond
        table = unit(0.5 - (away - 0.48) * (size / part.px))
        tint = gradient(unit(glow), (0.0, dark), (0.5, colour), (1.0, bright))
        return washed(tint, tinted(colour, _WHITE, 0.18), table * 0.6)

    canvas.fill(shape, facets)
    glint = canvas.placed(at[0] - 0.34 * size, at[1] - 0.36 * size, 0.22 * size)
    glint.fill(ellipse(0.0, 0.0, 1.0, 0.7), _WHITE, 0.92, 0.25)


def _earring(canvas: Canvas, x: float) -> None:
    """A gold stud with a hanging drop of blue stone about the vertical at `x`."""
    drop = blob(
        (x, 0.265), (x + 0.090, 0.44), (x + 0.195, 0.645), (x + 0.185, 0.800), (x + 0.100, 0.935),
        (x, 0.965), (x - 0.100, 0.935), (x - 0.185, 0.800), (x - 0.195, 0.645), (x - 0.090, 0.44),
        steps=5,
    )  # fmt: skip
    canvas.fill(grown(drop, 0.004), _SHADOW, 0.30, 0.03)
    _metal(canvas, outline(circle(x, 0.235, 0.058), 0.040), _GOLD, 0.020)
    _metal(canvas, drop, _GOLD, 0.055)
    _stone(canvas, grown(drop, -0.055), (x, 0.70), 0.16, rgb(0x1F62C9))
    _metal(canvas, circle(x, 0.110, 0.092), _GOLD, 0.07)
    _stone(canvas, circle(x, 0.110, 0.052), (x, 0.110), 0.052, rgb(0x2E7AE0))


def earrings(canvas: Canvas) -> None:
    """A pair of gold earrings with blue stones, one at either side of the picture.

    They hang as far apart as the picture is wide: ears are, and a face has its own breadth.
    """
    left, _, right, _ = canvas.extent
    for x in (left + 0.235, right - 0.235):
        _earring(canvas, x)


def _pearl(canvas: Canvas, x: float, y: float, radius: float) -> None:
    """A white pearl with a faint rosy shine."""
    canvas.fill(circle(x + 0.006, y + 0.012, radius), _SHADOW, 0.45, 0.016)
    bead = canvas.placed(x, y, radius)

    def nacre(part: Canvas) -> list[Value]:
        normal = dome(part.x, part.y)
        light = lambert(normal)
        rim = unit(part.x * part.x + part.y * part.y)
        tint = washed(lit(rgb(0xEDE3DA), light, 0.42, 0.75), rgb(0xF0C4C4), rim * rim * 0.30)
        bounce = smooth(part.x * 0.6 + part.y * 0.8, 0.55, 0.95)
        tint = washed(tint, rgb(0xFFF3E0), bounce * 0.45)
        return washed(tint, _WHITE, gleam(normal, 5) * 0.95)

    bead.fill(circle(0.0, 0.0, 1.0), nacre)


def necklace(canvas: Canvas) -> None:
    """A string of pearls with a pendant, seen from the front; the neck shows in its bow."""
    axis, top, wide, deep = 0.625, 0.055, 0.565, 0.590
    track = [direction(0.5 * i / 400) for i in range(401)]
    points = [(axis + wide * c, top + deep * s) for c, s in track]
    walked = [0.0]
    for (x0, y0), (x1, y1) in pairwise(points):
        walked.append(walked[-1] + math.sqrt((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)))
    count = 23
    canvas.fill(
        union(*(line(points[i], points[i + 20], 0.010) for i in range(0, 400, 20))), rgb(0xB9A58A)
    )
    spots = []
    for index in range(count):
        goal = walked[-1] * index / (count - 1)
        spots.append(points[min(range(401), key=lambda i: abs(walked[i] - goal))])
    middle = count // 2
    # From both ends inwards, so that the largest lie on top of their neighbours.
    for index in sorted(range(count), key=lambda i: -abs(i - middle)):
        if index != middle:
            _pearl(canvas, *spots[index], 0.045 - 0.0012 * abs(index - middle))
    setting = blob(
        (axis, 0.640), (axis + 0.085, 0.720), (axis + 0.115, 0.815), (axis + 0.075, 0.915),
        (axis, 0.955), (axis - 0.075, 0.915), (axis - 0.115, 0.815), (axis - 0.085, 0.720),
        steps=5,
    )  # fmt: skip
    canvas.fill(grown(setting, 0.004), _SHADOW, 0.45, 0.025)
    _metal(canvas, outline(circle(axis, 0.650, 0.036), 0.024), _GOLD, 0.012)
    _metal(canvas, setting, _GOLD, 0.030)
    _stone(canvas, grown(setting, -0.032), (axis, 0.815), 0.085, rgb(0xB3122E))


def _strap(canvas: Canvas, shape: Shape) -> None:
    """Paint a stitched leather strap that bends away at the picture's upper and lower edge."""
    hide = rgb(0x8A5430)

    def leather(part: Canvas) -> list[Value]:
        x, y = part.grid
        around = lambert(barrel((y - 0.5) * (1.0 / 0.53)), (-0.60, 0.0, 0.80))
        edge = lambert(relief(shape, part, 0.035))
        grain = noise(x * 75.0, y * 75.0, 12) - 0.5
        tint = lit(hide, unit(0.15 + 0.40 * around + 0.40 * edge + 0.14 * grain), 0.55, 0.35)
        seam = np.abs(np.abs(x - 0.30) - 0.112)
        stitch = unit(0.5 - (seam - 0.007) / part.px) * stripes(y * 22.0, 0.6, part.px * 22.0)
        return washed(tint, rgb(0xE9CFA0), stitch * (0.35 + 0.5 * around))

    canvas.fill(shape, leather)


def watch(canvas: Canvas) -> None:
    """A wristwatch with a white dial on a leather strap that runs from top to bottom."""
    x, y, radius = 0.30, 0.50, 0.262
    strap = polygon([(0.165, 0.0), (0.435, 0.0), (0.455, 0.30), (0.455, 0.70), (0.435, 1.0),
                     (0.165, 1.0), (0.145, 0.70), (0.145, 0.30)])  # fmt: skip
    canvas.fill(grown(strap, 0.004), _SHADOW, 0.35, 0.025)
    _strap(canvas, strap)
    for at in (0.115, 0.885):
        canvas.fill(ellipse(x, at, 0.020, 0.017), rgb(0x2A150A), 0.9)
    steel = rgb(0xAEB4BD)
    lugs = union(
        *(
            line((x + a * 0.135, y + b * 0.20), (x + a * 0.150, y + b * 0.285), 0.052)
            for a in (-1.0, 1.0)
            for b in (-1.0, 1.0)
        )
    )
    case = circle(x, y, radius)
    canvas.fill(grown(union(case, lugs), 0.006), _SHADOW, 0.55, 0.03)
    _metal(canvas, lugs, steel, 0.026)
    _metal(canvas, box(x + radius - 0.012, y - 0.034, x + radius + 0.028, y + 0.034, 0.010),
           steel, 0.018)  # fmt: skip
    _metal(canvas, case, steel, 0.050)
    face = circle(x, y, radius - 0.045)
    canvas.fill(grown(face, 0.008), rgb(0x2B2F36))

    def dial(part: Canvas) -> list[Value]:
        dx, dy = part.x - x, part.y - y
        inner = smooth(length(dx + 0.016, dy + 0.022), 0.235, 0.16)
        rays = 0.5 + 0.5 * sharpen(unit(0.5 + 2.0 * (dx - dy)), 1)
        return washed(rgb(0xB9BCC4), washed(rgb(0xF2F0EA), _WHITE, rays * 0.5), inner)

    canvas.fill(face, dial)
    for hour in range(12):
        c, s = direction(hour / 12.0)
        long, wide = (0.045, 0.018) if hour % 3 == 0 else (0.026, 0.011)
        inner = 0.196 - long
        mark = line((x + 0.196 * c, y + 0.196 * s), (x + inner * c, y + inner * s), wide)
        canvas.fill(mark, rgb(0x22262E))
    # Ten past ten, as in every shop window.
    for turns, reach, wide in ((-0.25 - 0.155, 0.115, 0.026), (-0.25 + 0.168, 0.165, 0.020)):
        c, s = direction(turns)
        hand = line((x - 0.03 * c, y - 0.03 * s), (x + reach * c, y + reach * s), wide, wide * 0.45)
        canvas.fill(hand, _SHADOW, 0.35, 0.014)
        canvas.fill(hand, rgb(0x1B2433))
    c, s = direction(0.25 + 0.08)
    canvas.fill(line((x - 0.045 * c, y - 0.045 * s), (x + 0.17 * c, y + 0.17 * s), 0.008),
                rgb(0xC2281E))  # fmt: skip
    canvas.fill(circle(x, y, 0.020), rgb(0x1B2433))
    canvas.fill(circle(x - 0.003, y - 0.004, 0.008), steel)
    glare = both(face, cut(circle(x - 0.06, y - 0.10, 0.20), circle(x - 0.02, y - 0.02, 0.20)))
    canvas.fill(glare, _WHITE, 0.40, 0.012)
