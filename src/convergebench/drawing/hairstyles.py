"""Hair and what is worn over it, in the units of a head (see `people`)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, Shape, gradient, rgb, tinted
from convergebench.drawing.fields import (
    Dice,
    Field,
    bump,
    direction,
    grit,
    length,
    noise,
    scramble,
    smooth,
)
from convergebench.drawing.shading import dome, lambert, lit
from convergebench.drawing.shapes import (
    blob,
    circle,
    cut,
    ellipse,
    line,
    melt,
    ribbon,
    union,
)
from convergebench.drawing.strands import Strand

_SHORT = blob(
    (-0.775, 0.02), (-0.855, -0.45), (-0.70, -0.96), (-0.30, -1.24), (0.12, -1.27), (0.52, -1.14),
    (0.80, -0.72), (0.850, -0.35), (0.775, 0.02), (0.715, -0.26), (0.650, -0.52), (0.34, -0.70),
    (0.02, -0.66), (-0.30, -0.74), (-0.56, -0.60), (-0.700, -0.26), steps=4,
)  # fmt: skip
_WAVE = blob(
    (-0.790, 0.10), (-0.90, -0.45), (-0.78, -1.02), (-0.36, -1.36), (0.18, -1.40), (0.62, -1.20),
    (0.88, -0.74), (0.880, -0.35), (0.785, 0.10), (0.715, -0.26), (0.64, -0.50), (0.42, -0.60),
    (0.10, -0.72), (-0.24, -0.84), (-0.50, -0.66), (-0.66, -0.42), (-0.710, -0.16), steps=4,
)  # fmt: skip
_PULLED = blob(
    (-0.760, 0.00), (-0.80, -0.45), (-0.64, -0.92), (-0.30, -1.15), (0.0, -1.20), (0.30, -1.15),
    (0.64, -0.92), (0.80, -0.45), (0.760, 0.00), (0.69, -0.34), (0.50, -0.66), (0.20, -0.82),
    (0.0, -0.84), (-0.20, -0.82), (-0.50, -0.66), (-0.69, -0.34), steps=4,
)  # fmt: skip
_CURTAINS = union(
    blob((-0.12, -1.26), (0.40, -1.20), (0.80, -0.82), (0.93, -0.20), (0.95, 0.50), (0.98, 1.00),
         (0.82, 1.10), (0.72, 0.60), (0.70, 0.05), (0.62, -0.40), (0.36, -0.68), (-0.08, -0.90),
         steps=4),
    blob((-0.02, -1.27), (-0.42, -1.20), (-0.80, -0.82), (-0.93, -0.20), (-0.95, 0.50),
         (-0.98, 1.00), (-0.82, 1.10), (-0.72, 0.60), (-0.70, 0.05), (-0.64, -0.40), (-0.44, -0.66),
         (-0.14, -0.90), steps=4),
)  # fmt: skip
_LONG_BACK = blob(
    (0.0, -1.28), (0.62, -1.10), (0.95, -0.50), (1.00, 0.30), (1.12, 1.10), (1.10, 1.90),
    (0.70, 2.20), (0.0, 1.60), (-0.70, 2.20), (-1.10, 1.90), (-1.12, 1.10), (-1.00, 0.30),
    (-0.95, -0.50), (-0.62, -1.10), steps=3,
)  # fmt: skip
_BOB_BACK = blob(
    (0.0, -1.28), (0.62, -1.12), (0.96, -0.50), (1.02, 0.30), (0.98, 0.90), (0.60, 1.08),
    (0.0, 0.80), (-0.60, 1.08), (-0.98, 0.90), (-1.02, 0.30), (-0.96, -0.50), (-0.62, -1.12),
    steps=3,
)  # fmt: skip
_BOB_FRONT = blob(
    (-0.02, -1.29), (0.44, -1.22), (0.84, -0.82), (0.96, -0.10), (0.94, 0.62), (0.80, 0.92),
    (0.70, 0.60), (0.70, 0.05), (0.66, -0.22), (0.40, -0.42), (0.0, -0.46), (-0.40, -0.42),
    (-0.66, -0.22), (-0.70, 0.05), (-0.70, 0.60), (-0.80, 0.92), (-0.94, 0.62), (-0.96, -0.10),
    (-0.84, -0.82), (-0.44, -1.22), steps=3,
)  # fmt: skip
_BUN = ellipse(0.02, -1.36, 0.36, 0.30)
_CAP = blob(
    (-0.84, -0.40), (-0.80, -0.86), (-0.46, -1.26), (0.0, -1.36), (0.46, -1.26), (0.80, -0.86),
    (0.84, -0.40), (0.40, -0.55), (0.0, -0.58), (-0.40, -0.55), steps=4,
)  # fmt: skip
_BRIM = blob(
    (-0.74, -0.44), (-0.36, -0.60), (0.0, -0.63), (0.36, -0.60), (0.74, -0.44), (0.50, -0.30),
    (0.0, -0.24), (-0.50, -0.30), steps=4,
)  # fmt: skip
_SCARF = blob(
    (0.0, -1.30), (0.60, -1.14), (0.94, -0.56), (0.98, 0.20), (0.90, 0.90), (1.10, 1.50),
    (0.95, 1.95), (0.0, 2.10), (-0.95, 1.95), (-1.10, 1.50), (-0.90, 0.90), (-0.98, 0.20),
    (-0.94, -0.56), (-0.60, -1.14), steps=4,
)  # fmt: skip
_OPENING = ellipse(0.0, 0.14, 0.625, 0.885)
_WRAPS = (rgb(0x3E6E8C), rgb(0x9C4F63), rgb(0xE6DFD2), rgb(0x2B2B33), rgb(0x567A5A))
_CAPS = (rgb(0x223A66), rgb(0xA33227), rgb(0x2E2E2E), rgb(0xD9D2C2), rgb(0x2F6B4B))


@cache
def _afro(seed: int) -> Shape:
    """A cloud of curls around the skull."""
    dice = Dice(seed, 61)
    puffs = [ellipse(0.0, -0.42, 0.98, 0.92)]
    for index in range(15):
        c, s = direction(0.46 + 0.58 * index / 14.0)
        puffs.append(circle(c * 0.95, -0.38 + s * 0.92, dice.roll(0.16, 0.26)))
    return union(*puffs)


_RIM = cut(
    ellipse(0.0, -0.45, 0.93, 0.86),
    melt(0.2, ellipse(0.0, 0.02, 0.66, 0.70), ellipse(0.0, 0.60, 0.72, 0.80)),
)

_FRONTS = {
    "short": _SHORT, "wave": _WAVE, "bun": _PULLED, "long": _CURTAINS, "bob": _BOB_FRONT,
    "curly": _RIM,
}  # fmt: skip


def _sheen(part: Canvas, colour: Colour, seed: int, style: str) -> list[Field]:
    """Streaks that run round the skull and then down, with a band of light across the crown."""
    x, y = part.grid
    dy = np.minimum(y - 0.05, 0.0)
    track = length(x * 1.05 + 0.14, dy * 0.80)
    run = y * 1.3 + x * 0.4
    if style == "curly":
        coil = grit(x * 9.0, y * 9.0, seed + 5, 3, part.px * 9.0)
        strand = 0.5 + 0.62 * coil
    else:
        shift = np.where(x < -0.09, 7.0, 0.0) if style == "long" else 0.0
        strand = noise(track * 34.0 + shift, run * 1.5, seed + 3) * 0.45
        strand = strand + noise(track * 11.0 + shift, run * 0.9, seed + 4) * 0.55
        fine = min(max(1.6 - 110.0 * part.px, 0.0), 1.0)
        if fine > 0.0:
            hairs = noise(track * 95.0 + shift, run * 2.4, seed + 6) - 0.5
            strand = strand + 0.42 * fine * hairs
    crown = bump(length(x + 0.20, (y + 0.30) * 0.95), 0.62, 0.34) * smooth(y, 0.0, -0.5)
    light = 0.20 + 0.40 * strand + 0.30 * crown * (0.5 + strand) - 0.16 * smooth(x, -0.2, 0.9)
    light = light - 0.12 * smooth(y, 0.3, 1.6)
    return gradient(
        light,
        (0.05, tinted(colour, (0.0, 0.0, 0.0), 0.75)),
        (0.45, colour),
        (0.85, tinted(colour, rgb(0xF6DFB8), 0.45)),
    )


def paint_back_hair(canvas: Canvas, style: str, colour: Colour, seed: int) -> None:
    """The hair behind the face and the neck."""
    dark = tinted(colour, (0.0, 0.0, 0.0), 0.35)
    if style == "long":
        canvas.fill(_LONG_BACK, lambda part: _sheen(part, dark, seed, style))
    elif style == "bob":
        canvas.fill(_BOB_BACK, lambda part: _sheen(part, dark, seed, style))
    elif style == "bun":
        canvas.fill(_BUN, lambda part: _sheen(part, colour, seed, style))
    elif style == "curly":
        canvas.fill(_afro(seed), lambda part: _sheen(part, colour, seed, style), 1.0, 0.03)


def paint_front_hair(canvas: Canvas, style: str, colour: Colour, seed: int, face: Shape) -> None:
    """The hair, cap or scarf that lies before the face, and the shadow it throws there."""
    if style in ("cap", "scarf"):
        (_wear_cap if style == "cap" else _wear_scarf)(canvas, scramble(seed) % 5)
        return
    if style == "bald":
        return
    shape = _FRONTS[style]
    part = canvas.crop(shape.bounds, 0.08)
    if part is None:
        return
    gap = shape.distance(*part.grid)
    inside = smooth(face.distance(*part.grid), 0.0, -0.12)
    part.blend(rgb(0x2A140E), 0.50 * smooth(gap, 0.07, -0.07) * inside)
    cover = smooth(gap, 0.022, -0.022) if part.px < 0.022 else part.cover(gap)
    part.blend(_sheen(part, colour, seed, style), cover)


def _wear_cap(canvas: Canvas, pick: int) -> None:
    """A cap with seams, a button and a brim over the forehead."""
    colour = _CAPS[pick]

    def cloth(part: Canvas) -> list[Field]:
        light = lambert(dome(part.x * 0.95, (part.y + 0.55) * 0.95))
        weave = grit(part.x * 40.0, part.y * 40.0, 71, 2, part.px * 40.0)
        return lit(colour, light * 0.9 + 0.10 * weave)

    canvas.fill(_CAP, rgb(0x1A0E0A), 0.5, 0.08)
    canvas.fill(_CAP, cloth)
    seam = tinted(colour, (0.0, 0.0, 0.0), 0.4)
    canvas.fill(ribbon((-0.28, -0.57), (-0.22, -1.0), (0.0, -1.35), width=0.02, steps=3), seam, 0.7)
    canvas.fill(ribbon((0.28, -0.57), (0.22, -1.0), (0.0, -1.35), width=0.02, steps=3), seam, 0.7)
    canvas.fill(circle(0.0, -1.35, 0.05), seam)
    canvas.fill(_BRIM, rgb(0x120A08), 0.55, 0.09)
    canvas.fill(
        _BRIM,
        lambda part: gradient(
            part.y, (-0.62, tinted(colour, (1.0, 1.0, 1.0), 0.15)), (-0.25, seam)
        ),
    )
    canvas.fill(line((-0.08, -0.88), (0.08, -0.88), 0.14), tinted(colour, (1.0, 1.0, 1.0), 0.75))


def _wear_scarf(canvas: Canvas, pick: int) -> None:
    """A headscarf around the face, its folds running under the chin."""
    colour = _WRAPS[pick]
    wrap = cut(_SCARF, _OPENING)

    def cloth(part: Canvas) -> list[Field]:
        x, y = part.grid
        r = length(x, (y - 0.14) * 0.72)
        fold = noise(r * 11.0 + 0.6 * noise(x * 2.0, y * 2.0, 72), (x + y) * 0.9, 73) - 0.5
        light = 0.14 + 0.62 * lambert(dome(x * 0.85, (y - 0.3) * 0.45)) + 0.45 * fold
        weave = grit(x * 50.0, y * 50.0, 74, 2, part.px * 50.0)
        return lit(colour, light + 0.07 * weave)

    canvas.fill(wrap, rgb(0x1A0E0A), 0.45, 0.07)
    canvas.fill(wrap, cloth)


def shock(style: str, colour: Colour, count: int, width: float = 0.014) -> list[Strand]:
    """Single hairs that lie along a style's streaks, for heads seen from near by."""
    shape = _FRONTS[style]
    x0, y0, x1, y1 = shape.bounds
    places = []
    for index in range(count):
        dice = Dice(index, 611)
        places.append((dice.roll(x0, x1), dice.roll(y0, y1), dice))
    gap = shape.distance(
        np.array([[x] for x, _, _ in places]), np.array([[y] for _, y, _ in places])
    )
    hairs = []
    for (x, y, dice), (depth,) in zip(places, gap.tolist(), strict=True):
        if depth < 0.02:
            u, v = x * 1.05 + 0.14, min(y - 0.05, 0.0) * 0.64
            k = dice.roll(0.10, 0.26) / max(math.sqrt(u * u + v * v), 0.2)
            tone = dice.roll()
            tint = tinted(colour, (0.0, 0.0, 0.0), 0.6 * (1.0 - tone))
            if tone > 0.6:
                tint = tinted(colour, rgb(0xF6DFB8), (tone - 0.6) * (1.0 if x < 0.1 else 0.5))
            turn = dice.roll(-0.25, 0.25)
            hairs.append(
                Strand(x, y, (-v + u * turn) * k, (u * 0.9 + v * turn) * k, width, tint,
                       dice.roll(-0.15, 0.15), 0.75)
            )  # fmt: skip
    return hairs
