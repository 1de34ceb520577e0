"""A dog, in a box one unit high, feet at the bottom."""

from __future__ import annotations

from convergebench.drawing.canvas import Canvas, Colour, Paint, Shape, rgb, washed
from convergebench.drawing.fields import Value, noise, smooth
from convergebench.drawing.shading import contact, gleam, lambert, lit, relief
from convergebench.drawing.shapes import (
    both,
    circle,
    ellipse,
    grown,
    line,
    melt,
    mirrored,
    ribbon,
    union,
)

_WHITE: Colour = (1.0, 1.0, 0.98)
_TAN, _CREAM, _EDGE = rgb(0xB06A35), rgb(0xF7EEDF), rgb(0x5A2F16)


def _coat(shape: Shape, depth: float, base: Colour, seed: int) -> Paint:
    """Short fur on a cushion of this shape."""

    def paint(part: Canvas) -> list[Value]:
        light = lambert(relief(shape, part, depth))
        tuft = noise(part.x * 64.0, part.y * 24.0, seed) - 0.5
        return list(lit(base, light + 0.15 * tuft, 0.45, 0.35))

    return paint


def dog(canvas: Canvas) -> None:
    """A sitting brown and white dog with hanging ears that looks at the viewer."""
    contact(canvas, (0.04, 0.87, 0.80, 1.0), 1.0)
    axis = 0.40
    _trunk(canvas, axis)
    ear = melt(
        0.04,
        ribbon((0.232, 0.138), (0.165, 0.195), (0.143, 0.300), width=0.080, end_width=0.130),
        ellipse(0.143, 0.370, 0.071, 0.105),
    )
    head = melt(
        0.06,
        ellipse(axis, 0.225, 0.185, 0.165),
        ellipse(axis, 0.330, 0.135, 0.120),
    )
    canvas.fill(grown(head, 0.004), _EDGE, 0.45, 0.016)
    canvas.fill(head, _coat(head, 0.12, _TAN, 5))
    blaze = melt(
        0.05,
        ribbon((axis, 0.070), (axis, 0.16), (axis, 0.26), width=0.045, end_width=0.085),
        ellipse(axis, 0.345, 0.118, 0.098),
    )
    canvas.fill(both(blaze, head), _coat(head, 0.12, _CREAM, 6))
    for flap in (ear, mirrored(ear, axis)):
        canvas.fill(grown(flap, 0.004), _EDGE, 0.50, 0.016)
        canvas.fill(flap, _coat(flap, 0.07, rgb(0x7A4322), 7))
    _features(canvas, axis)


def _trunk(canvas: Canvas, axis: float) -> None:
    """Tail, body, legs and paws."""
    tail = ribbon(
        (0.575, 0.895), (0.690, 0.850), (0.735, 0.740), (0.720, 0.640), width=0.075, end_width=0.032
    )
    canvas.fill(tail, _coat(tail, 0.036, _TAN, 4))
    canvas.fill(both(tail, circle(0.715, 0.640, 0.075)), _CREAM, 0.95, 0.012)
    body = melt(0.10, ellipse(axis, 0.740, 0.205, 0.205), ellipse(axis, 0.520, 0.140, 0.190))
    canvas.fill(body, _coat(body, 0.15, _TAN, 4))
    for side in (-1.0, 1.0):
        thigh = ellipse(axis + side * 0.165, 0.810, 0.098, 0.130)
        foot = ellipse(axis + side * 0.205, 0.925, 0.088, 0.040)
        canvas.fill(grown(thigh, 0.004), _EDGE, 0.40, 0.014)
        canvas.fill(thigh, _coat(thigh, 0.09, _TAN, 8))
        canvas.fill(grown(foot, 0.003), _EDGE, 0.55, 0.008)
        canvas.fill(foot, _coat(foot, 0.04, _CREAM, 8))
    bib = melt(0.08, ellipse(axis, 0.545, 0.098, 0.150), ellipse(axis, 0.700, 0.065, 0.120))
    canvas.fill(both(bib, body), _coat(body, 0.15, _CREAM, 9), 1.0, 0.018)
    for x in (axis - 0.075, axis + 0.075):
        leg = line((x, 0.665), (x, 0.920), 0.098, 0.082)
        paw = ellipse(x, 0.938, 0.066, 0.042)
        canvas.fill(grown(leg, 0.005), _EDGE, 0.50, 0.014)

        def stocking(part: Canvas, leg: Shape = leg) -> list[Value]:
            light = lambert(relief(leg, part, 0.05))
            low = smooth(part.y + 0.02 * noise(part.x * 60.0, part.y * 9.0, 3), 0.775, 0.815)
            return washed(lit(_TAN, light, 0.45, 0.35), lit(_CREAM, light, 0.45, 0.35), low)

        canvas.fill(leg, stocking)
        canvas.fill(grown(paw, 0.004), _EDGE, 0.55)
        canvas.fill(paw, _coat(paw, 0.04, _CREAM, 8))
        for dx in (-0.022, 0.022):
            canvas.fill(line((x + dx, 0.942), (x + dx, 0.966), 0.007), rgb(0x7A6250))
    collar = ribbon(
        (axis - 0.150, 0.420), (axis - 0.08, 0.468), (axis, 0.482), (axis + 0.08, 0.468),
        (axis + 0.150, 0.420), width=0.040,
    )  # fmt: skip
    canvas.fill(grown(collar, 0.004), _EDGE, 0.5, 0.012)
    canvas.fill(collar, lambda part: lit(rgb(0x2A6FB0), lambert(relief(collar, part, 0.022)), 0.5))
    tag = circle(axis, 0.520, 0.028)
    canvas.fill(grown(tag, 0.004), _EDGE, 0.6, 0.008)
    canvas.fill(tag, lambda part: lit(rgb(0xE2B23C), lambert(relief(tag, part, 0.02)), 0.5, 0.6))


def _features(canvas: Canvas, axis: float) -> None:
    """Eyes, nose, mouth and tongue."""
    for side in (-1.0, 1.0):
        x = axis + side * 0.088
        canvas.fill(ellipse(x, 0.207, 0.036, 0.037), rgb(0x3A1E0E), 0.75, 0.008)
        canvas.fill(ellipse(x, 0.210, 0.029, 0.031), rgb(0x5A3216))
        canvas.fill(circle(x, 0.211, 0.021), rgb(0x0E0A08))
        canvas.fill(circle(x - 0.010, 0.200, 0.0090), _WHITE)
        canvas.fill(circle(x + 0.010, 0.222, 0.0045), _WHITE, 0.6)
        canvas.fill(
            ribbon((x - side * 0.030, 0.160), (x, 0.148), (x + side * 0.034, 0.160), width=0.012),
            rgb(0x7A4322), 0.8,
        )  # fmt: skip
    tongue = melt(0.02, ellipse(axis, 0.415, 0.036, 0.040), ellipse(axis, 0.440, 0.031, 0.030))
    canvas.fill(grown(tongue, 0.004), rgb(0x6A1F24), 0.8)
    canvas.fill(tongue, lambda part: lit(rgb(0xE5737B), lambert(relief(tongue, part, 0.03)), 0.4))
    canvas.fill(line((axis, 0.400), (axis, 0.445), 0.006), rgb(0xA8434C), 0.8)
    chops = union(
        ellipse(axis - 0.050, 0.365, 0.062, 0.047), ellipse(axis + 0.050, 0.365, 0.062, 0.047)
    )
    canvas.fill(chops, _coat(chops, 0.045, _CREAM, 11))
    mouth = union(
        *(
            ribbon((axis, 0.335), (axis, 0.378), (axis + s * 0.045, 0.404),
                   (axis + s * 0.090, 0.388), width=0.009, end_width=0.006)
            for s in (-1.0, 1.0)
        )
    )  # fmt: skip
    canvas.fill(mouth, _EDGE)
    nose = melt(0.02, ellipse(axis, 0.296, 0.047, 0.027), ellipse(axis, 0.314, 0.024, 0.024))

    def wet(part: Canvas) -> list[Value]:
        normal = relief(nose, part, 0.03)
        return washed(lit(rgb(0x2A2224), lambert(normal), 0.4), _WHITE, gleam(normal, 4) * 0.6)

    canvas.fill(nose, wet)
    for side in (-1.0, 1.0):
        canvas.fill(ellipse(axis + side * 0.021, 0.304, 0.009, 0.007), rgb(0x070505))
        for dx, dy in ((0.052, 0.352), (0.072, 0.366), (0.056, 0.378)):
            canvas.fill(circle(axis + side * dx, dy, 0.0045), rgb(0x8A6A50))
