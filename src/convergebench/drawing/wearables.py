"""Objects that a person wears or holds, each in a box one unit high."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from convergebench.drawing.canvas import (
    Canvas,
    Colour,
    Shape,
    gradient,
    rgb,
    washed,
)
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
from convergebench.drawing.shading import barrel, contact, gleam, lambert, lit, relief
from convergebench.drawing.shapes import (
    blob,
    both,
    box,
    circle,
    cut,
    ellipse,
    line,
    melt,
    outline,
    polygon,
    ribbon,
    union,
)

_WHITE: Colour = (1.0, 1.0, 0.98)


def _frame(canvas: Canvas, rims: Shape, colour: Colour, depth: float) -> None:
    """Paint a glossy frame."""

    def paint(part: Canvas) -> list[Value]:
        normal = relief(rims, part, depth)
        return washed(lit(colour, lambert(normal), 0.5), _WHITE, gleam(normal, 4) * 0.55)

    canvas.fill(rims, paint)


def glasses(canvas: Canvas) -> None:
    """Round reading glasses with a dark frame, seen from the front."""
    centres = (0.72, 2.08)
    for x in centres:
        lens = ellipse(x, 0.51, 0.52, 0.44)
        canvas.fill(lens, rgb(0xDDEBF2), 0.20)
        glare = both(
            lens, polygon([(x - 0.30, 0.95), (x + 0.02, 0.05), (x + 0.20, 0.05), (x - 0.12, 0.95)])
        )
        canvas.fill(glare, _WHITE, 0.22)
    rims = union(*(outline(ellipse(x, 0.51, 0.53, 0.44), 0.10) for x in centres))
    bridge = ribbon((1.20, 0.44), (1.40, 0.34), (1.60, 0.44), width=0.085)
    arms = union(
        line((0.20, 0.38), (0.055, 0.33), 0.10, 0.09), line((2.60, 0.38), (2.745, 0.33), 0.10, 0.09)
    )
    _frame(canvas, union(rims, bridge, arms), rgb(0x3A241C), 0.05)


def sunglasses(canvas: Canvas) -> None:
    """Dark sunglasses with shaded lenses."""
    left = blob(
        (0.18, 0.20), (0.70, 0.12), (1.22, 0.22), (1.22, 0.52), (1.00, 0.86), (0.62, 0.92),
        (0.28, 0.76), (0.16, 0.46), steps=5,
    )  # fmt: skip
    right = blob(
        (2.62, 0.20), (2.10, 0.12), (1.58, 0.22), (1.58, 0.52), (1.80, 0.86), (2.18, 0.92),
        (2.52, 0.76), (2.64, 0.46), steps=5,
    )  # fmt: skip
    top = polygon([
        (0.04, 0.10), (1.28, 0.11), (1.40, 0.16), (1.52, 0.11), (2.76, 0.10), (2.76, 0.30),
        (2.66, 0.34), (1.58, 0.27), (1.40, 0.34), (1.22, 0.27), (0.14, 0.34), (0.04, 0.30),
    ])  # fmt: skip
    _frame(canvas, union(top, outline(left, 0.09), outline(right, 0.09)), rgb(0x1B1B1F), 0.05)
    for lens, x in ((left, 0.70), (right, 2.10)):
        canvas.fill(
            lens,
            lambda part: gradient(
                part.y, (0.10, rgb(0x0B0D12)), (0.55, rgb(0x232A36)), (0.95, rgb(0x4E5663))
            ),
            0.96,
        )
        glare = both(
            lens, polygon([(x - 0.34, 0.95), (x - 0.02, 0.05), (x + 0.14, 0.05), (x - 0.18, 0.95)])
        )
        canvas.fill(glare, _WHITE, 0.26)
        canvas.fill(
            both(
                lens,
                polygon([(x - 0.12, 0.95), (x + 0.20, 0.05), (x + 0.25, 0.05), (x - 0.07, 0.95)]),
            ),
            _WHITE,
            0.18,
        )


def hat(canvas: Canvas) -> None:
    """A felt hat with a band, seen from the front."""
    felt, axis = rgb(0x6B4A34), 0.875
    crown = blob(
        (0.36, 0.70), (0.38, 0.38), (0.45, 0.13), (0.65, 0.05), (0.86, 0.11), (1.07, 0.045),
        (1.29, 0.12), (1.37, 0.38), (1.39, 0.70), (axis, 0.84), steps=6,
    )  # fmt: skip
    brim = blob(
        (0.02, 0.72), (0.16, 0.63), (0.45, 0.645), (axis, 0.68), (1.30, 0.645), (1.59, 0.63),
        (1.73, 0.72), (1.48, 0.90), (axis, 0.975), (0.27, 0.90), steps=6,
    )  # fmt: skip

    def nap(part: Canvas, light: Value) -> list[Value]:
        fuzz = noise(part.x * 80.0, part.y * 80.0, 6) - 0.5
        return list(lit(felt, unit(light + 0.12 * fuzz), 0.55, 0.4))

    def flat(part: Canvas) -> list[Value]:
        return nap(part, 0.80 - 0.9 * smooth(part.y, 0.70, 0.98) - 0.22 * (part.x - 0.5))

    def top(part: Canvas) -> list[Value]:
        light = lambert(barrel((part.x - axis) * (1.0 / 0.53))) * 0.9
        dent = smooth(length((part.x - axis) * 1.2, (part.y - 0.07) * 0.9), 0.28, 0.0)
        return nap(part, light - 0.38 * dent + 0.08)

    def silk(part: Canvas) -> list[Value]:
        light = lambert(barrel((part.x - axis) * (1.0 / 0.53)))
        sag = (part.x - axis) * (part.x - axis)
        return list(lit(rgb(0x1E2E4A), light + 0.06 * wave((part.y + 0.2 * sag) * 42.0), 0.5))

    def rolled(part: Canvas) -> list[Value]:
        return nap(part, 0.66 - 1.1 * smooth(part.y, 0.80, 1.0) - 0.25 * (part.x - 0.6))

    canvas.fill(brim, flat)
    canvas.fill(crown, rgb(0x2A1A10), 0.5, 0.03)
    canvas.fill(crown, top)
    band = blob(
        (0.20, 0.52),
        (axis, 0.645),
        (1.55, 0.52),
        (1.55, 0.68),
        (axis, 0.815),
        (0.20, 0.68),
        steps=6,
    )
    canvas.fill(both(crown, band), silk)
    canvas.fill(polygon([(1.14, 0.585), (1.25, 0.555), (1.28, 0.71), (1.17, 0.75)]), rgb(0x2E4468))
    canvas.fill(cut(brim, ellipse(axis, 0.65, axis, 0.170)), rolled)


def party_hat(canvas: Canvas) -> None:
    """A paper cone with dots and a pompom."""
    cone = both(
        polygon([(0.375, 0.115), (0.725, 0.93), (0.375, 1.05), (0.025, 0.93)]),
        ellipse(0.375, 0.50, 0.70, 0.475),
    )
    hues = (rgb(0xFFD23F), rgb(0x3BCEAC), rgb(0xFFFFFF), rgb(0xF9F871))

    def paper(part: Canvas) -> list[Value]:
        x, y = part.grid
        wide = np.maximum((y - 0.115) * 0.43, 0.004)
        across = (x - 0.375) / wide
        light = lambert(barrel(across))
        slant = (y * 1.0 - 0.10 * across) * 7.0 + across * 0.6
        band = stripes(slant * 0.5, 0.5, part.px * 5.0)
        tint = washed(lit(rgb(0xE8367F), light, 0.4), lit(rgb(0x6A3FD1), light, 0.4), band)
        return washed(tint, _WHITE, sharpen(unit(1.0 - np.abs(across + 0.45) * 2.2), 1) * 0.35)

    canvas.fill(cone, paper)
    dots = (
        (0.36, 0.38, 0.030),
        (0.30, 0.56, 0.038),
        (0.44, 0.60, 0.040),
        (0.22, 0.76, 0.042),
        (0.38, 0.80, 0.046),
        (0.54, 0.78, 0.042),
    )
    for index, (x, y, radius) in enumerate(dots):
        canvas.fill(both(cone, circle(x, y, radius)), hues[index % 3])
    trim = both(cone, cut(ellipse(0.375, 0.50, 0.70, 0.475), ellipse(0.375, 0.435, 0.70, 0.475)))
    canvas.fill(
        trim,
        lambda part: lit(rgb(0xFFD23F), lambert(barrel((part.x - 0.375) * (1.0 / 0.35))), 0.45),
    )
    puff = union(
        *(
            circle(0.375 + dx, 0.105 + dy, 0.052)
            for dx, dy in (
                (0.0, 0.0),
                (-0.045, -0.02),
                (0.045, -0.02),
                (-0.03, 0.035),
                (0.03, 0.035),
                (0.0, -0.048),
            )
        )
    )

    def wool(part: Canvas) -> list[Value]:
        strands = noise(part.x * 70.0, part.y * 70.0, 8)
        light = 0.62 - 2.2 * (part.x - 0.375) - 2.6 * (part.y - 0.105) + 0.5 * (strands - 0.5)
        return list(lit(rgb(0xFFD23F), unit(light), 0.4))

    canvas.fill(puff, wool)


def scarf(canvas: Canvas) -> None:
    """A knitted scarf wound round a neck, with two hanging ends."""
    base, accent = rgb(0xC23B32), rgb(0xF1E3C6)
    # Only what lies before the neck: the neck itself shows through the opening.
    loop = cut(ellipse(0.62, 0.26, 0.61, 0.26), ellipse(0.62, 0.06, 0.46, 0.155))
    tail = polygon([(0.58, 0.36), (0.80, 0.40), (0.87, 0.885), (0.63, 0.905)])
    under = polygon([(0.46, 0.38), (0.64, 0.40), (0.58, 0.755), (0.37, 0.735)])
    knot = melt(0.06, ellipse(0.645, 0.40, 0.135, 0.115), ellipse(0.63, 0.44, 0.105, 0.11))

    def knit(
        part: Canvas, shape: Shape, depth: float, stripe: tuple[float, float], pitch: float
    ) -> list[Value]:
        x, y = part.grid
        light = lambert(relief(shape, part, depth))
        fine = min(max(1.6 - part.px * 60.0, 0.0), 1.0)
        along = x * stripe[0] + y * stripe[1]
        cross = x * stripe[1] - y * stripe[0]
        vee = np.abs(cross * 30.0 - np.floor(cross * 30.0) - 0.5)
        rows = wave(along * 30.0 + vee * 0.9) * 0.10 * fine - (0.5 - vee) * 0.12 * fine
        band = stripes(along * pitch, 0.36, max(part.px * pitch, 0.02))
        bright = unit(light + rows)
        return [
            a + (b - a) * band
            for a, b in zip(lit(base, bright, 0.5), lit(accent, bright, 0.5), strict=True)
        ]

    def fringe(x0: float, x1: float, y: float, slope: float) -> None:
        count = 8
        for index in range(count):
            x = x0 + (x1 - x0) * index / (count - 1)
            foot = y + slope * (x - x0)
            canvas.fill(
                line((x, foot - 0.02), (x + 0.004 * (index % 3 - 1), foot + 0.075), 0.018, 0.013),
                accent if index % 2 else base,
            )

    fringe(0.385, 0.570, 0.745, 0.10)
    canvas.fill(under, rgb(0x3A0E0C), 0.45, 0.02)
    canvas.fill(under, lambda part: knit(part, under, 0.05, (0.06, 1.0), 7.5))
    fringe(0.645, 0.855, 0.900, -0.09)
    canvas.fill(tail, rgb(0x3A0E0C), 0.45, 0.02)
    canvas.fill(tail, lambda part: knit(part, tail, 0.05, (0.06, 1.0), 7.5))
    canvas.fill(loop, lambda part: knit(part, loop, 0.13, (1.0, 0.25), 5.2))
    canvas.fill(knot, rgb(0x3A0E0C), 0.55, 0.03)
    canvas.fill(knot, lambda part: knit(part, knot, 0.09, (0.5, 0.86), 7.0))


def umbrella(canvas: Canvas) -> None:
    """An open umbrella with a hooked handle, its point upwards."""
    contact(canvas, (0.24, 0.93, 0.80, 1.0), 0.5)
    pole = line((0.5, 0.06), (0.5, 0.90), 0.024)
    canvas.fill(line((0.5, 0.015), (0.5, 0.10), 0.016, 0.026), rgb(0x4A4A50))
    canvas.fill(
        pole, lambda part: lit(rgb(0x8A8F98), lambert(barrel((part.x - 0.5) * (1.0 / 0.012))), 0.5)
    )
    hook = ribbon(
        (0.5, 0.76), (0.5, 0.90), (0.535, 0.965), (0.605, 0.955), (0.622, 0.89), width=0.042
    )
    canvas.fill(hook, lambda part: lit(rgb(0x8A4B22), lambert(relief(hook, part, 0.022)), 0.5))
    dome = ellipse(0.5, 0.545, 0.485, 0.475)
    edges = (-1.0, -0.80, -0.31, 0.31, 0.80, 1.0)
    foot = 0.530
    canopy = both(dome, box(0.0, 0.0, 1.0, foot + 0.012))
    for a, b in pairwise(edges):
        cx, half = 0.5 + 0.485 * 0.5 * (a + b), 0.485 * 0.5 * (b - a)
        canopy = cut(canopy, ellipse(cx, foot + 0.030, half, 0.062))
    inside = both(ellipse(0.5, foot - 0.015, 0.455, 0.075), dome)
    canvas.fill(inside, rgb(0x4A0F1C))
    canvas.fill(line((0.5, 0.45), (0.5, 0.62), 0.024), rgb(0x6E727A))

    def panels(part: Canvas) -> list[Value]:
        x, y = part.grid
        up = (y - 0.545) * (1.0 / 0.475)
        wide = np.sqrt(np.maximum(1.0 - up * up, 1e-4)) * 0.485
        across = (x - 0.5) / wide
        light = lambert(
            (
                across * np.sqrt(np.maximum(1.0 - up * up, 0.0)),
                up,
                np.sqrt(np.maximum(1.0 - across * across, 0.0)) * 0.8,
            )
        )
        tint: list[Value] = list(lit(rgb(0xD4213D), light, 0.45))
        cream = lit(rgb(0xF6EAD8), light, 0.5)
        soft = part.px / np.maximum(wide, 0.02)
        for a, b in ((-0.80, -0.31), (0.31, 0.80)):
            tint = washed(
                tint, cream, unit(0.5 + (across - a) / soft) * unit(0.5 + (b - across) / soft)
            )
        for a in edges[1:-1]:
            seam = np.abs(across - a) * wide
            tint = washed(tint, rgb(0x5A1020), unit(1.0 - seam * (1.0 / 0.006)) * 0.5)
            tint = washed(
                tint, _WHITE, smooth(across, a - 0.22, a) * ramp(across, a + 0.01, a) * 0.14
            )
        return tint

    canvas.fill(canopy, panels)
    canvas.fill(circle(0.5, 0.073, 0.014), rgb(0x4A4A50))
