"""A pot plant, a chair and a cat, each in a box one unit high, feet at the bottom."""

from __future__ import annotations

import numpy as np

from convergebench.drawing.canvas import (
    Canvas,
    Colour,
    Paint,
    Shape,
    gradient,
    rgb,
    scaled,
    tinted,
    washed,
)
from convergebench.drawing.fields import (
    Value,
    fbm,
    noise,
    smooth,
    unit,
    wave,
)
from convergebench.drawing.shading import (
    barrel,
    contact,
    lambert,
    lit,
    profile,
    relief,
    turned_body,
)
from convergebench.drawing.shapes import (
    Point,
    blob,
    box,
    circle,
    ellipse,
    grown,
    line,
    melt,
    polygon,
    ribbon,
    union,
)

_WHITE: Colour = (1.0, 1.0, 0.98)


def _big_leaf(canvas: Canvas, base: Point, tip: Point, wide: float, hue: Colour) -> None:
    """A broad leaf from `base` to `tip` with a pale midrib."""
    dx, dy = tip[0] - base[0], tip[1] - base[1]
    nx, ny = -dy * wide, dx * wide
    spots = ((0.0, 0.0), (0.25, 0.8), (0.55, 1.0), (0.82, 0.55), (1.0, 0.0))
    left = [(base[0] + dx * t + nx * w, base[1] + dy * t + ny * w) for t, w in spots]
    right = [(base[0] + dx * t - nx * w, base[1] + dy * t - ny * w) for t, w in spots[3:0:-1]]
    leaf = blob(*left, *right, steps=5)
    square = 1.0 / (dx * dx + dy * dy)

    def paint(part: Canvas) -> list[Value]:
        p, q = part.x - base[0], part.y - base[1]
        along = (p * dx + q * dy) * square
        across = (q * dx - p * dy) * square
        veins = np.abs(across) * 3.2 + along * 5.0
        veins = unit(1.0 - np.abs(veins - np.floor(veins) - 0.5) * 6.0)
        side = np.where(across * (dx - dy) < 0.0, 0.12, -0.12)
        light = 0.50 + side + 0.25 * along - 0.10 * veins
        rib = unit(1.0 - np.abs(across) * 34.0)
        return washed(lit(hue, light, 0.5, 0.30), rgb(0xC8DB8C), rib * 0.75)

    canvas.fill(leaf, rgb(0x08200F), 0.40, 0.018)
    canvas.fill(leaf, paint)


_LEAVES = (
    ((0.47, 0.60), (0.10, 0.46), 0.22, 0x2E6B3A),
    ((0.53, 0.60), (0.90, 0.44), 0.22, 0x2E6B3A),
    ((0.48, 0.58), (0.22, 0.17), 0.20, 0x37803F),
    ((0.52, 0.58), (0.80, 0.14), 0.20, 0x327A45),
    ((0.50, 0.58), (0.50, 0.02), 0.19, 0x3F9148),
    ((0.47, 0.62), (0.06, 0.64), 0.20, 0x4BA24C),
    ((0.53, 0.62), (0.94, 0.63), 0.20, 0x45994A),
    ((0.49, 0.62), (0.33, 0.30), 0.21, 0x57AE52),
    ((0.52, 0.62), (0.66, 0.31), 0.21, 0x5DB556),
    ((0.50, 0.64), (0.44, 0.44), 0.28, 0x6FC060),
)


def plant(canvas: Canvas) -> None:
    """A leafy plant in a clay pot."""
    contact(canvas, (0.16, 0.88, 0.92, 1.0), 1.0)
    stops = ((0.64, 0.215), (0.955, 0.150))

    def clay(part: Canvas) -> list[Value]:
        across = (part.x - 0.5) / profile(part.y, *stops)
        light = lambert(barrel(across))
        rough = noise(part.x * 40.0, part.y * 40.0, 3) - 0.5
        return list(lit(rgb(0xC9683C), light + 0.10 * rough, 0.5))

    for base, tip, wide, hue in _LEAVES[:5]:
        _big_leaf(canvas, base, tip, wide, rgb(hue))
    canvas.fill(union(turned_body(0.5, stops), ellipse(0.5, 0.955, 0.150, 0.022)), clay)
    canvas.fill(box(0.28, 0.700, 0.72, 0.745), rgb(0x3A170C), 0.45, 0.02)
    rim = box(0.265, 0.620, 0.735, 0.715, 0.016)

    def lip(part: Canvas) -> list[Value]:
        return list(lit(rgb(0xD9774A), lambert(barrel((part.x - 0.5) * (1.0 / 0.235))), 0.5))

    canvas.fill(rim, lip)
    canvas.fill(box(0.27, 0.620, 0.73, 0.650, 0.012), rgb(0x3A1A10), 0.8)
    for base, tip, wide, hue in _LEAVES[5:]:
        _big_leaf(canvas, base, tip, wide, rgb(hue))


def chair(canvas: Canvas) -> None:
    """A wooden chair, turned a little to the right."""
    for x, y in ((0.105, 0.955), (0.490, 0.965), (0.225, 0.870), (0.575, 0.880)):
        contact(canvas, (x - 0.07, y - 0.025, x + 0.11, y + 0.035), 0.9)
    canvas.shade((0.04, 0.84, 0.70, 1.0), rgb(0x0F0D17), 0.28)
    wood, dark, pale = rgb(0xB9783F), rgb(0x7C4A22), rgb(0xE0A868)

    def timber(part: Canvas, base: Colour) -> list[Value]:
        grain = fbm(part.x * 26.0, part.y * 5.0, 7, 2, part.px * 26.0) - 0.5
        return scaled(base, 1.0 + 0.35 * grain)

    def post(a: Point, b: Point, width: float, base: Colour) -> None:
        canvas.fill(line(a, b, width + 0.014), dark)
        canvas.fill(line(a, b, width), lambda part: timber(part, base))
        shift = -0.22 * width
        canvas.fill(
            line((a[0] + shift, a[1]), (b[0] + shift, b[1]), width * 0.22), pale, 0.55, 0.004
        )

    post((0.225, 0.55), (0.225, 0.865), 0.034, tinted(wood, dark, 0.45))
    post((0.555, 0.55), (0.575, 0.875), 0.034, tinted(wood, dark, 0.45))
    post((0.150, 0.05), (0.205, 0.56), 0.042, wood)
    post((0.525, 0.04), (0.545, 0.56), 0.042, wood)
    for y in (0.095, 0.215, 0.335):
        rail = polygon(
            [
                (0.158 + 0.1 * y, y),
                (0.528, y - 0.015),
                (0.532, y + 0.055),
                (0.166 + 0.1 * y, y + 0.070),
            ]
        )
        canvas.fill(grown(rail, 0.007), dark)
        canvas.fill(rail, lambda part: timber(part, wood))
    post((0.120, 0.60), (0.105, 0.955), 0.044, wood)
    post((0.490, 0.62), (0.490, 0.965), 0.044, wood)
    post((0.120, 0.80), (0.490, 0.815), 0.026, tinted(wood, dark, 0.2))
    seat = polygon([(0.075, 0.600), (0.195, 0.505), (0.590, 0.510), (0.530, 0.620)])
    front = polygon([(0.075, 0.600), (0.530, 0.620), (0.530, 0.665), (0.075, 0.645)])
    side = polygon([(0.530, 0.620), (0.590, 0.510), (0.590, 0.552), (0.530, 0.665)])
    canvas.fill(grown(union(seat, front, side), 0.008), dark)
    canvas.fill(seat, lambda part: timber(part, pale))
    canvas.fill(front, lambda part: timber(part, wood))
    canvas.fill(side, lambda part: timber(part, tinted(wood, dark, 0.6)))


def cat(canvas: Canvas) -> None:
    """A sitting ginger cat that looks at the viewer."""
    contact(canvas, (0.03, 0.87, 0.82, 1.0), 1.0)
    fur, pale, stripe = rgb(0xE08A3C), rgb(0xFBEBD3), rgb(0xA9541E)
    tail = ribbon(
        (0.55, 0.90), (0.74, 0.86), (0.765, 0.68), (0.68, 0.60), width=0.085, end_width=0.070
    )
    body = melt(0.10, ellipse(0.40, 0.74, 0.225, 0.225), ellipse(0.39, 0.52, 0.150, 0.200))
    head = melt(0.05, ellipse(0.39, 0.300, 0.205, 0.165), ellipse(0.39, 0.345, 0.215, 0.115))
    ears = union(
        polygon([(0.200, 0.250), (0.185, 0.045), (0.350, 0.160)]),
        polygon([(0.580, 0.250), (0.595, 0.045), (0.430, 0.160)]),
    )

    def coat(shape: Shape, depth: float, base: Colour, rings: float) -> Paint:
        def paint(part: Canvas) -> list[Value]:
            light = lambert(relief(shape, part, depth))
            tuft = noise(part.x * 60.0, part.y * 26.0, 4) - 0.5
            tint: list[Value] = list(lit(base, light + 0.14 * tuft, 0.42, 0.35))
            if rings:
                t = part.y * rings + 0.25 * wave(part.x * 2.2) + 0.5 * tuft
                mark = smooth(np.abs(t - np.floor(t) - 0.5), 0.20, 0.10) * smooth(
                    np.abs(part.x - 0.39), 0.06, 0.13
                )
                tint = washed(tint, lit(stripe, light, 0.4), mark * 0.85)
            return tint

        return paint

    canvas.fill(tail, coat(tail, 0.042, fur, 14.0))
    canvas.fill(body, coat(body, 0.16, fur, 10.0))
    canvas.fill(ellipse(0.39, 0.600, 0.085, 0.150), pale, 0.95, 0.025)
    for x in (0.315, 0.465):
        leg = line((x, 0.72), (x, 0.915), 0.095)
        paw = ellipse(x, 0.930, 0.068, 0.042)
        canvas.fill(grown(leg, 0.006), rgb(0x8A4A1E), 0.55, 0.012)
        canvas.fill(leg, coat(leg, 0.05, fur, 0.0))
        canvas.fill(grown(paw, 0.004), rgb(0x8A4A1E), 0.6)
        canvas.fill(paw, coat(paw, 0.04, pale, 0.0))
        for dx in (-0.02, 0.02):
            canvas.fill(line((x + dx, 0.935), (x + dx, 0.958), 0.007), rgb(0x8A6A50))
    canvas.fill(ears, coat(ears, 0.05, fur, 0.0))
    canvas.fill(polygon([(0.222, 0.205), (0.212, 0.095), (0.305, 0.165)]), rgb(0xF0A79A))
    canvas.fill(polygon([(0.558, 0.205), (0.568, 0.095), (0.475, 0.165)]), rgb(0xF0A79A))
    canvas.fill(grown(head, 0.004), rgb(0x7A3C14), 0.45, 0.014)
    canvas.fill(head, coat(head, 0.13, fur, 0.0))
    for x0, x1 in ((0.39, 0.39), (0.345, 0.335), (0.435, 0.445)):
        canvas.fill(line((x0, 0.205), (x1, 0.150), 0.014, 0.024), stripe)
    for side in (-1.0, 1.0):
        for y in (0.315, 0.355):
            canvas.fill(
                line((0.39 + side * 0.150, y), (0.39 + side * 0.205, y - 0.012), 0.010, 0.020),
                stripe,
            )
    canvas.fill(
        union(ellipse(0.350, 0.385, 0.056, 0.045), ellipse(0.430, 0.385, 0.056, 0.045)), pale
    )
    for x in (0.305, 0.475):
        canvas.fill(ellipse(x, 0.295, 0.046, 0.044), rgb(0x3A1E0E))
        canvas.fill(
            ellipse(x, 0.295, 0.039, 0.038),
            lambda part: gradient(part.y, (0.26, rgb(0x4F8A2A)), (0.33, rgb(0xC6DB5A))),
        )
        canvas.fill(ellipse(x, 0.295, 0.014, 0.034), rgb(0x0C0A08))
        canvas.fill(circle(x - 0.014, 0.281, 0.010), _WHITE)
    canvas.fill(polygon([(0.368, 0.345), (0.412, 0.345), (0.39, 0.370)]), rgb(0xE0746E))
    mouth = union(
        ribbon((0.39, 0.370), (0.385, 0.395), (0.350, 0.398), width=0.009),
        ribbon((0.39, 0.370), (0.395, 0.395), (0.430, 0.398), width=0.009),
    )
    canvas.fill(mouth, rgb(0x5A2A18))
    for side in (-1.0, 1.0):
        for rise in (-0.02, 0.01, 0.04):
            canvas.fill(
                line(
                    (0.39 + side * 0.085, 0.382), (0.39 + side * 0.245, 0.372 + rise), 0.006, 0.003
                ),
                rgb(0xFFF6E8),
                0.9,
            )
