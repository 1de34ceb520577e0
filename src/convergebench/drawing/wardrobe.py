"""What people wear below the neck, in the units of a head (see `people`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, Shape, gradient, rgb, tinted, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    bump,
    grit,
    noise,
    ramp,
    smooth,
    stripes,
    wave,
)
from convergebench.drawing.hairstyles import paint_back_hair
from convergebench.drawing.people import Person, face_of, paint_head, tones
from convergebench.drawing.shading import barrel, lambert, lit, relief
from convergebench.drawing.shapes import (
    Point,
    blob,
    both,
    circle,
    ellipse,
    line,
    melt,
    polygon,
    ribbon,
    union,
)

Painted: TypeAlias = Callable[[Canvas], list[Value]]

_TROUSERS = (
    rgb(0x2B3A57),
    rgb(0x3B3B40),
    rgb(0x6B5B48),
    rgb(0x4A6079),
    rgb(0x22242B),
    rgb(0x9A8B72),
)
_COLLARED = ("shirt", "jacket", "checks")
# Down from the neck: the width of the shoulders as a share of their widest.
_SLOPE = (
    (1.10, 0.15), (1.25, 0.26), (1.38, 0.41), (1.52, 0.58), (1.66, 0.74), (1.82, 0.86),
    (2.02, 0.94), (2.32, 0.985), (2.70, 1.0), (3.20, 0.96),
)  # fmt: skip
_SHOES = (rgb(0x2A1D16), rgb(0xE8E6E0), rgb(0x15161A), rgb(0x6E3F24))


def shoulders(person: Person, low: float) -> Shape:
    """The trunk from the neck down to `low`, as wide at each height as a profile says."""
    half = 1.98 - 0.26 * person.soft
    waist = 1.52 - 0.24 * person.soft
    stops = (*((y, share * half) for y, share in _SLOPE), (4.3, waist), (7.5, waist * 1.06))

    def wide(v: Field) -> Field:
        width = v * 0.0 + stops[0][1]
        for (y, before), (below, after) in pairwise(stops):
            width = width + (after - before) * ramp(v, y, below)
        return width

    def distance(u: Field, v: Field) -> Field:
        width, step = wide(v), 0.05
        slope = (wide(v + step) - width) * (1.0 / step)
        side = (np.abs(u) - width) / np.sqrt(1.0 + slope * slope)
        return np.maximum(side, np.maximum(1.10 - v, v - low))

    return Shape((-half, 1.10, half, low), distance)


def _cloth(part: Canvas, person: Person, light: Field, colour: Colour) -> list[Value]:
    """Cloth with folds, its weave and its pattern."""
    x, y = part.grid
    fold = noise(x * 1.6 + 0.5 * y, y * 0.55 + 0.7 * x, person.seed + 41) - 0.5
    fold = fold + 0.6 * (noise(x * 3.4 - 0.8 * y, y * 1.3 + x, person.seed + 42) - 0.5)
    weave = grit(x * 26.0, y * 26.0, person.seed + 43, 3, part.px * 26.0)
    light = light + 0.46 * fold + 0.10 * weave
    tint: list[Value] = list(lit(colour, light, 0.55, 0.35))
    if person.pattern == "stripes":
        band = stripes(y * 2.1 + 0.12 * fold + 0.03 * x * x, 0.45, part.px * 2.1)
        pale = tinted(colour, (1.0, 1.0, 1.0) if colour[1] < 0.6 else rgb(0x24304A), 0.75)
        tint = washed(tint, lit(pale, light, 0.55, 0.35), band)
    elif person.pattern == "checks":
        pale = tinted(colour, rgb(0xF0E6D6), 0.62)
        for t in (x, y):
            band = stripes(t * 2.4 + 0.06 * fold, 0.38, part.px * 2.4) * 0.5
            tint = washed(tint, lit(pale, light, 0.55, 0.35), band)
            thin = stripes(t * 2.4 + 0.06 * fold + 0.3, 0.06, part.px * 2.4) * 0.7
            tint = washed(tint, rgb(0x2A1E22), thin)
    return tint


def _cut_from(person: Person, colour: Colour, light: float) -> Painted:
    """A flat piece of somebody's cloth."""
    return lambda part: _cloth(part, person, light + 0.0 * part.x, colour)


def _sleeved(shape: Shape, person: Person, colour: Colour, base: float, depth: float) -> Painted:
    """Cloth around a limb of this shape."""
    return lambda part: _cloth(
        part, person, base + 0.66 * lambert(relief(shape, part, depth)), colour
    )


def _rounded(shape: Shape, depth: float, stops: Sequence[tuple[float, Colour]]) -> Painted:
    """A round limb, or a shoe, in the tones given."""
    return lambda part: list(gradient(0.24 + 0.56 * lambert(relief(shape, part, depth)), *stops))


def paint_bust(canvas: Canvas, person: Person, low: float = 4.6) -> None:
    """Neck and dressed trunk; to be painted before the head."""
    paint_back_hair(canvas, person.style, person.hair, person.seed)
    stops = tones(person.skin)
    neck = melt(
        0.2, line((0.0, 0.6), (0.0, 1.5), 0.86 - 0.20 * person.soft), ellipse(0.0, 1.75, 0.66, 0.42)
    )

    def throat(part: Canvas) -> list[Field]:
        x, y = part.grid
        light = 0.62 - 0.42 * smooth(x, -0.2, 0.5) - 0.10 * bump(x, 0.0, 0.06) * smooth(y, 1.3, 1.5)
        light = light - 0.45 * smooth(y + 0.25 * x * x, 1.42, 1.05)
        return gradient(light, *stops)

    trunk = shoulders(person, low)

    def jersey(part: Canvas) -> list[Value]:
        light = 0.08 + 0.70 * lambert(barrel(part.x * 0.50, smooth(part.y, 2.9, 1.5) * -0.55))
        under = smooth(part.y - 0.18 * part.x * part.x, 1.9, 1.2) * 0.25
        return _cloth(part, person, light - under, person.top)

    collar = ellipse(0.0, 1.30, 0.56 - 0.04 * person.soft, 0.36 + 0.22 * person.soft)
    if person.pattern in _COLLARED:
        collar = polygon([(-0.50, 1.10), (0.50, 1.10), (0.06, 1.95), (-0.06, 1.95)])
    canvas.fill(trunk, jersey)
    canvas.fill(both(collar, trunk), rgb(0x1A0E0C), 0.5, 0.05)
    canvas.fill(both(collar, union(trunk, neck)), throat)
    canvas.fill(neck, throat)
    canvas.fill(_below(trunk, collar), jersey)
    if person.pattern in _COLLARED:
        _lapels(canvas, person, low)
    elif person.style != "scarf":
        hem = ribbon(
            (-0.52, 1.34), (-0.34, 1.60 + 0.18 * person.soft), (0.0, 1.70 + 0.22 * person.soft),
            (0.34, 1.60 + 0.18 * person.soft), (0.52, 1.34), width=0.09, steps=3,
        )  # fmt: skip
        canvas.fill(hem, tinted(person.top, (0.0, 0.0, 0.0), 0.35), 0.8)
    canvas.fill(both(face_of(person), union(neck, trunk)), rgb(0x120806), 0.35, 0.12)


def _below(trunk: Shape, collar: Shape) -> Shape:
    """The trunk without the opening at the neck and all above it."""

    def distance(u: Field, v: Field) -> Field:
        opening = np.minimum(collar.distance(u, v), v - 1.30 + 0.0 * u)
        return np.maximum(trunk.distance(u, v), -opening)

    return Shape(trunk.bounds, distance)


def _lapels(canvas: Canvas, person: Person, low: float) -> None:
    """A collar with two points; a shirt's buttons, or a jacket's lapels over a shirt."""
    jacket = person.pattern == "jacket"
    pale = rgb(0xECEAE4) if jacket else tinted(person.top, (1.0, 1.0, 1.0), 0.16)
    if jacket:
        front = polygon([(-0.46, 1.30), (0.46, 1.30), (0.02, 3.4), (-0.02, 3.4)])
        canvas.fill(front, _cut_from(person, pale, 0.62))
        tie = polygon([(-0.10, 1.62), (0.10, 1.62), (0.17, 2.9), (0.0, 3.3), (-0.17, 2.9)])
        canvas.fill(tie, tinted(rgb(0x7A2230), person.top, 0.3))
    for side in (-1.0, 1.0):
        wing = polygon([
            (side * 0.40, 1.08), (side * 0.66, 1.34), (side * 0.50, 1.92), (side * 0.06, 1.66),
            (side * 0.20, 1.52),
        ])  # fmt: skip
        canvas.fill(wing, rgb(0x0A0808), 0.35, 0.05)
        canvas.fill(wing, _cut_from(person, pale, 0.78 if side < 0 else 0.55))
        if jacket:
            lapel = polygon([
                (side * 0.60, 1.24), (side * 0.98, 1.72), (side * 0.72, 1.92), (side * 0.86, 2.12),
                (side * 0.04, 3.4), (side * 0.46, 1.90),
            ])  # fmt: skip
            canvas.fill(lapel, rgb(0x050405), 0.4, 0.05)
            canvas.fill(lapel, tinted(person.top, (0.0, 0.0, 0.0), 0.12 if side < 0 else 0.30))
    y = 3.7 if jacket else 2.2
    while y < low:
        canvas.fill(circle(0.02, y, 0.055), rgb(0x17140F) if jacket else rgb(0xF4F1EA))
        canvas.fill(circle(0.02, y, 0.018), rgb(0x6A645A))
        y += 0.62


def paint_legs(canvas: Canvas, person: Person, stride: float) -> None:
    """Trousers or a skirt and shoes, from the hips down to the ground at y = 14.6."""
    dice = Dice(person.seed, 88)
    colour = _TROUSERS[dice.pick(len(_TROUSERS))]
    shoe = _SHOES[dice.pick(len(_SHOES))]
    skirt = person.soft > 0.8 and dice.roll() < 0.6
    hips = ellipse(0.0, 6.7, 1.36, 1.0)
    canvas.fill(hips, lambda part: _cloth(part, _plain(person), 0.60 - 0.16 * part.x, colour))
    for side in (1.0, -1.0):
        foot = side * (0.72 + 0.55 * stride)
        leg = melt(
            0.3,
            ribbon((side * 0.66, 6.4), (side * 0.78, 9.6), (foot, 13.9), width=1.26, end_width=0.66,
                   steps=4),
        )  # fmt: skip
        sole = melt(
            0.1, ellipse(foot + side * 0.16, 14.25, 0.50, 0.30), ellipse(foot, 14.0, 0.33, 0.4)
        )
        canvas.fill(sole, _rounded(sole, 0.3, tones(shoe)))
        if skirt:
            canvas.fill(leg, _rounded(leg, 0.5, tones(person.skin)))
        else:
            canvas.fill(leg, _sleeved(leg, _plain(person), colour, 0.05, 0.55))
    if skirt:
        dress = blob(
            (-1.2, 5.2), (1.2, 5.2), (1.55, 7.0), (1.95, 9.8), (0.0, 10.15), (-1.95, 9.8),
            (-1.55, 7.0), steps=4,
        )  # fmt: skip

        def pleats(part: Canvas) -> list[Value]:
            fold = wave(part.x * (2.6 - 0.12 * part.y) + 0.2)
            light = 0.12 + 0.60 * lambert(barrel(part.x * 0.52)) + 0.12 * fold
            return _cloth(part, _plain(person), light, tinted(person.top, colour, 0.6))

        canvas.fill(dress, pleats)


def _plain(person: Person) -> Person:
    """The same person in cloth without a pattern."""
    return Person(
        person.skin, person.hair, person.style, person.top, "plain", person.iris, seed=person.seed
    )


_POSES: dict[str, tuple[Point, Point, Point]] = {
    # Elbow, wrist and where the hand points, outwards from the shoulder's edge.
    "hang": ((0.10, 4.5), (-0.12, 6.9), (-0.05, 1.0)),
    "hip": ((0.95, 4.35), (-0.42, 5.75), (-0.75, 0.65)),
    "wave": ((1.00, 3.60), (1.25, 1.35), (0.12, -1.0)),
    "fold": ((0.22, 4.30), (-1.35, 4.55), (-1.0, -0.15)),
}


_BEFORE_THE_TRUNK = {"hip", "fold"}


def paint_arms(
    canvas: Canvas, person: Person, poses: tuple[str, str], bare: bool, front: bool = False
) -> None:
    """Sleeves and hands: those beside the trunk, or with `front` those that lie before it."""
    half = 1.92 - 0.26 * person.soft
    for side, pose in zip((-1.0, 1.0), poses, strict=True):
        if (pose in _BEFORE_THE_TRUNK) is not front:
            continue
        (ex, ey), (wx, wy), (hx, hy) = _POSES[pose]
        elbow, wrist = (side * (half + ex), ey), (side * (half + wx), wy)
        tip = (wrist[0] + side * hx * 0.95, wrist[1] + hy * 0.95)
        palm = (wrist[0] + side * hx * 0.35, wrist[1] + hy * 0.35)
        thumb = (palm[0] - side * (0.30 * abs(hy) - 0.1 * hx), palm[1] + 0.35 * hy - 0.3 * abs(hx))
        hand = melt(
            0.14,
            line(wrist, palm, 0.40, 0.52),
            line(palm, tip, 0.50, 0.26),
            line(wrist, thumb, 0.24, 0.15),
        )
        bend = (0.6 * elbow[0] + 0.4 * side * half * 0.78, 0.6 * elbow[1] + 0.4 * 2.3)
        arm = ribbon(
            (side * half * 0.76, 2.36), bend, elbow, wrist, width=0.90, end_width=0.46, steps=4
        )
        sleeve = both(arm, ellipse(side * half * 0.8, 2.3, 1.5, 1.7)) if bare else arm

        canvas.fill(hand, rgb(0x060506), 0.30, 0.08)
        canvas.fill(hand, _rounded(hand, 0.3, tones(person.skin)))
        canvas.fill(arm, rgb(0x060506), 0.35, 0.10)
        if bare:
            canvas.fill(arm, _rounded(arm, 0.3, tones(person.skin)))
        canvas.fill(sleeve, _sleeved(arm, person, person.top, 0.04 - 0.07 * side, 0.42))


def paint_figure(
    canvas: Canvas, person: Person, arms: tuple[str, str], bare: bool, stride: float
) -> Canvas | None:
    """A whole person on their feet; where they are on the canvas, if they are."""
    part = canvas.crop((-3.9, -2.2, 3.9, 15.5))
    if part is not None:
        paint_legs(part, person, stride)
        paint_arms(part, person, arms, bare)
        paint_bust(part, person, 7.0)
        paint_arms(part, person, arms, bare, True)
        paint_head(part, person)
    return part
