"""Invented people: heads and their features, made from a few measures of looks.

A head is painted in its own units: the middle of the face at (0, 0), the chin at (0, 1), the crown
at about (0, -1.15). `wardrobe` dresses the body below it in the same units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, Shape, gradient, rgb, tinted, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    bearing,
    bump,
    grit,
    length,
    noise,
    smooth,
)
from convergebench.drawing.hairstyles import paint_front_hair
from convergebench.drawing.shading import dome, lambert
from convergebench.drawing.shapes import blob, both, circle, ellipse, line, melt, outline, ribbon

_SKINS = (
    rgb(0xF3CDB0), rgb(0xE9B995), rgb(0xD9A27A), rgb(0xC48A62), rgb(0xA56C49), rgb(0x855339),
    rgb(0x643C2A), rgb(0xEFC4A4),
)  # fmt: skip
_HAIRS = (
    rgb(0x17110E), rgb(0x2C1C14), rgb(0x4A2E1D), rgb(0x6E4A2C), rgb(0xA97C46), rgb(0xD3B377),
    rgb(0x8C4524), rgb(0x8E8A86), rgb(0xC9C6C1), rgb(0x201815),
)  # fmt: skip
_CLOTHES = (
    rgb(0x2C3E5C), rgb(0x8E2F35), rgb(0x3F6B57), rgb(0xD8B24A), rgb(0xE4E0D6), rgb(0x23262B),
    rgb(0x6C4A86), rgb(0x3E86B5), rgb(0xC46A3C), rgb(0x87939C), rgb(0xB9526F), rgb(0x5B6E32),
    rgb(0xEDEFF2), rgb(0x1F5E6B),
)  # fmt: skip
_STYLES = (
    "short", "long", "short", "bob", "bun", "curly", "bald", "long", "cap", "short", "wave",
    "scarf", "short", "wave",
)  # fmt: skip
_HERS = {"long", "bob", "bun", "scarf"}
_PATTERNS = ("plain", "plain", "stripes", "shirt", "jacket", "plain", "checks")
_IRISES = (rgb(0x4A2F1B), rgb(0x2E1D13), rgb(0x6B4E2A), rgb(0x5C7F94), rgb(0x5F7347))


@dataclass(frozen=True, slots=True)
class Person:
    """How somebody looks.

    Attributes:
        skin: Colour of the lit skin.
        hair: Colour of the hair.
        style: How the hair is worn, or what is worn over it.
        top: Colour of the clothes.
        pattern: How the clothes are cut or woven.
        iris: Colour of the eyes.
        beard: How thick the beard is, from 0 to 1.
        glasses: Whether glasses are worn.
        smile: From 0 (closed, calm) to 1 (laughing, teeth seen).
        turn: Which way the head is turned, from -1 (viewer's left) to 1.
        broad: Width of the face; 1 is common.
        soft: Fuller lips, finer brows and narrower shoulders, from 0 to 1.
        seed: Sets the fine details.
    """

    skin: Colour
    hair: Colour
    style: str
    top: Colour
    pattern: str
    iris: Colour
    beard: float = 0.0
    glasses: bool = False
    smile: float = 0.0
    turn: float = 0.0
    broad: float = 1.0
    soft: float = 0.0
    seed: int = 0


def somebody(*seeds: int) -> Person:
    """A person drawn by lot, the same for the same seeds."""
    dice = Dice(*seeds, 5087)
    tone = dice.pick(len(_SKINS))
    dark = tone in (4, 5, 6)
    style = _STYLES[dice.pick(len(_STYLES))]
    hair = _HAIRS[dice.pick(2) if dark else dice.pick(len(_HAIRS))]
    hers = style in _HERS or (style in ("curly", "wave") and dice.roll() < 0.4)
    return Person(
        skin=_SKINS[tone],
        hair=hair,
        style=style,
        top=_CLOTHES[dice.pick(len(_CLOTHES))],
        pattern=_PATTERNS[dice.pick(len(_PATTERNS))],
        iris=_IRISES[dice.pick(2 if dark else len(_IRISES))],
        beard=0.0 if hers or dice.roll() < 0.6 else dice.roll(0.35, 1.0),
        glasses=dice.roll() < 0.2,
        smile=max(dice.roll(-0.4, 1.0), 0.0),
        turn=dice.roll(-0.8, 0.8) * (0.3 if style == "scarf" else 1.0),
        broad=dice.roll(0.94, 1.07) - (0.03 if hers else 0.0),
        soft=dice.roll(0.7, 1.0) if hers else dice.roll(0.0, 0.25),
        seed=dice.pick(9973),
    )


def facing(person: Person, turn: float, smile: float) -> Person:
    """The same person, looking another way."""
    return replace(person, turn=turn, smile=smile)


def tones(skin: Colour) -> tuple[tuple[float, Colour], ...]:
    """Stops from the deepest shadow on a skin to its brightest light."""
    shadow = tinted(skin, rgb(0x2A0F0C), 0.78)
    return (
        (0.00, shadow),
        (0.30, tinted(skin, rgb(0x5A2418), 0.52)),
        (0.55, tinted(skin, rgb(0x9A4A34), 0.20)),
        (0.78, skin),
        (1.08, tinted(skin, rgb(0xFFF3E2), 0.50)),
    )


def face_of(person: Person) -> Shape:
    """The outline of a face without hair."""
    broad, lean = person.broad, 0.07 * person.turn
    jaw = 0.575 - 0.06 * person.soft
    return melt(
        0.30,
        ellipse(0.0, -0.26, 0.735 * broad, 0.84),
        ellipse(lean, 0.34, jaw * broad, 0.675),
    )


def paint_head(canvas: Canvas, person: Person) -> None:
    """Ears, face, hair before it, and what is worn on them; `paint_bust` goes before."""
    face = face_of(person)
    if person.style not in ("scarf", "long", "bob"):
        _ears(canvas, person)
    canvas.fill(face, lambda part: _skin(part, person, face))
    if person.beard > 0.0:
        _beard(canvas, person, face)
    shift = 0.20 * person.turn
    for side in (-1.0, 1.0):
        # The eye on the far side of a turned head is narrower.
        wide = 1.0 + 0.16 * person.turn * side * -1.0
        _eye(canvas, person, side, shift + side * (0.325 + 0.02 * person.turn * -side), wide)
    _nose(canvas, person, 0.27 * person.turn)
    _mouth(canvas, person, 0.19 * person.turn)
    paint_front_hair(canvas, person.style, person.hair, person.seed, face)
    if person.glasses:
        _glasses(canvas, shift)


def _skin(part: Canvas, person: Person, face: Shape) -> list[Value]:
    """Light on an egg, changed by the forms of the face, with pores and some red."""
    x, y = part.grid
    t = person.turn
    light = 0.20 + 0.74 * lambert(dome(x * 0.98, (y + 0.02) * 0.66))

    def form(cx: float, cy: float, rx: float, ry: float, height: float) -> Field:
        u, v = (x - cx) * (1.0 / rx), (y - cy) * (1.0 / ry)
        fall = np.maximum(1.0 - u * u - v * v, 0.0)
        return fall * fall * height

    shift = 0.20 * t
    light = light + form(-0.12 + shift, -0.52, 0.55, 0.34, 0.10)
    for side in (-1.0, 1.0):
        light = light + form(shift + side * 0.325, -0.03, 0.28, 0.19, -0.20)
        light = light + form(shift + side * 0.16, -0.04, 0.10, 0.20, -0.12)
        light = light + form(0.18 * t + side * 0.40, 0.28, 0.26, 0.24, 0.10 + 0.05 * person.smile)
        light = light + form(0.18 * t + side * 0.30, 0.52, 0.10, 0.24, -0.07 - 0.10 * person.smile)
    nose = 0.27 * t
    light = light + form(nose * 0.8 - 0.02, 0.14, 0.075, 0.40, 0.17)
    light = light + form(nose * 0.8 + 0.11, 0.20, 0.10, 0.34, -0.16)
    light = light + form(nose - 0.015, 0.36, 0.13, 0.11, 0.12)
    light = light + form(nose + 0.03, 0.50, 0.19, 0.08, -0.18)
    light = light + form(0.19 * t, 0.79, 0.26, 0.07, -0.15)
    light = light + form(0.17 * t - 0.03, 0.90, 0.20, 0.12, 0.09)
    light = light + 0.045 * grit(x * 14.0, y * 14.0, 8 + person.seed, 4, part.px * 14.0)
    edge = smooth(face.distance(x, y), -0.20, 0.02)
    light = light - edge * (0.08 + 0.14 * smooth(x, -0.3, 0.6))
    rose = form(0.18 * t - 0.40, 0.30, 0.30, 0.24, 0.26) + form(
        0.18 * t + 0.40, 0.30, 0.30, 0.24, 0.26
    )
    rose = rose + form(nose, 0.37, 0.16, 0.12, 0.20)
    return washed(gradient(light, *tones(person.skin)), rgb(0xB4473C), rose)


def _ears(canvas: Canvas, person: Person) -> None:
    """Ears at the sides; a turned head hides one."""
    stops = tones(person.skin)
    for side in (-1.0, 1.0):
        away = person.turn * side
        if away > 0.35:
            continue
        x = side * (0.735 * person.broad + 0.02) - 0.05 * person.turn
        ear = ellipse(x, 0.08, 0.115, 0.225)
        canvas.fill(ear, lambda part: gradient(0.62 - 0.25 * part.x, *stops))
        canvas.fill(ellipse(x + side * 0.005, 0.07, 0.055, 0.14), stops[1][1], 0.6, 0.04)


def _eye(canvas: Canvas, person: Person, side: float, x: float, wide: float) -> None:
    """An eye with its lids and brow; `side` is -1 on the viewer's left."""
    eye = canvas.placed(x, -0.03, 0.162)
    out = side * wide
    deep = tones(person.skin)[0][1]
    squint = 1.0 - 0.22 * person.smile
    almond = both(
        ellipse(0.0, 0.46 * squint, 1.0 * wide, 0.92 * squint),
        ellipse(0.0, -0.40 * squint, 1.0 * wide, 0.78 * squint),
    )
    eye.fill(ellipse(0.0, 0.0, 1.16 * wide, 0.60), deep, 0.35, 0.25)
    eye.fill(
        almond,
        lambda part: gradient(
            part.y, (-0.42, rgb(0x8B7F7A)), (0.05, rgb(0xECE6DE)), (0.42, rgb(0xD2C2B8))
        ),
    )
    look = 0.16 * person.turn
    eye.fill(both(circle(look, -0.03, 0.47), almond), tinted(person.iris, (0.0, 0.0, 0.0), 0.72))
    eye.fill(both(circle(look, -0.03, 0.41), almond), lambda part: _iris(part, person.iris, look))
    eye.fill(both(circle(look, -0.03, 0.19), almond), rgb(0x080606))
    steps = 3 if canvas.px < 0.03 else 1
    if steps > 1:
        eye.fill(both(ellipse(0.0, -0.42, 1.0, 0.34), almond), rgb(0x1A0F0C), 0.42, 0.16)
    eye.fill(circle(look - 0.15, -0.18, 0.115), (1.0, 1.0, 0.98))
    lash = ribbon(
        (-out * 0.98, 0.10), (-out * 0.60, -0.30 * squint), (0.0, -0.45 * squint),
        (out * 0.66, -0.28 * squint), (out * (1.08 + 0.12 * person.soft), -0.04), width=0.13,
        end_width=0.16 + 0.10 * person.soft, steps=steps,
    )  # fmt: skip
    eye.fill(lash, rgb(0x170D0A), 0.92, 0.03)
    rim = ribbon(
        (-out * 0.90, 0.16), (0.0, 0.48 * squint), (out * 0.90, 0.12), width=0.07, steps=steps
    )
    eye.fill(rim, deep, 0.55, 0.05)
    crease = ribbon(
        (-out * 0.85, -0.40), (0.0, -0.74), (out * 0.98, -0.36), width=0.09, steps=steps
    )
    eye.fill(crease, deep, 0.55, 0.09)
    thick = 0.46 - 0.18 * person.soft
    brow = ribbon(
        (-out * 1.02, -1.20), (out * 0.15, -1.52 - 0.10 * person.smile), (out * 1.28, -1.12),
        width=thick, end_width=0.12, steps=steps,
    )  # fmt: skip
    shade = tinted(person.hair, rgb(0x1A110C), 0.45)

    def hairs(part: Canvas) -> list[Field]:
        comb = noise(part.x * 14.0 - part.y * 11.0 * side, part.y * 3.5, 9)
        return gradient(comb, (0.2, shade), (0.9, tinted(shade, person.skin, 0.38)))

    eye.fill(brow, hairs, 0.85, 0.09)


def _iris(part: Canvas, colour: Colour, look: float) -> list[Field]:
    """Rays of a colour, lit from below as a lens is."""
    rays = noise(bearing(part.x - look, part.y) * 40.0 + 60.0, part.y * 0.0 + 2.0, 4)
    return gradient(
        0.42 + part.y * 0.9 + (rays - 0.5) * 0.6,
        (0.0, tinted(colour, (0.0, 0.0, 0.0), 0.45)),
        (0.6, colour),
        (1.0, tinted(colour, rgb(0xF0DDA8), 0.45)),
    )


def _nose(canvas: Canvas, person: Person, x: float) -> None:
    """Nostrils and wings; the form itself is in the light."""
    deep = tones(person.skin)[0][1]
    for side in (-1.0, 1.0):
        hole = ellipse(x + side * 0.072, 0.425, 0.042, 0.020)
        canvas.fill(hole, deep, 0.85, 0.016)
        wing = ribbon(
            (x + side * 0.125, 0.31), (x + side * 0.162, 0.375), (x + side * 0.130, 0.430),
            width=0.022, steps=3,
        )  # fmt: skip
        canvas.fill(wing, deep, 0.36 if side < 0 else 0.55, 0.026)
    canvas.shade((x - 0.065, 0.31, x + 0.025, 0.395), rgb(0xFFF4E6), 0.45)


def _mouth(canvas: Canvas, person: Person, x: float) -> None:
    """Lips, with teeth between them when somebody laughs."""
    y, smile = 0.645, person.smile
    steps = 3 if canvas.px < 0.03 else 1
    half = 0.235 + 0.065 * smile
    lift = 0.055 * smile
    full = 0.80 + 0.35 * person.soft
    lip = tinted(
        tinted(person.skin, rgb(0x9E3A38), 0.48 + 0.14 * person.soft), (0.2, 0.05, 0.05), 0.12
    )
    drop = 0.075 * max(smile - 0.25, 0.0) / 0.75
    upper = blob(
        (x - half, y - lift), (x - half * 0.5, y - 0.055 * full), (x - 0.045, y - 0.078 * full),
        (x, y - 0.062 * full), (x + 0.045, y - 0.078 * full), (x + half * 0.5, y - 0.055 * full),
        (x + half, y - lift), (x + half * 0.5, y + 0.010), (x, y + 0.010),
        (x - half * 0.5, y + 0.010), steps=steps,
    )  # fmt: skip
    lower = blob(
        (x - half * 0.97, y - lift), (x - half * 0.5, y + drop), (x, y + drop * 1.2),
        (x + half * 0.5, y + drop), (x + half * 0.97, y - lift),
        (x + half * 0.55, y + 0.070 * full + drop * 1.2), (x, y + 0.098 * full + drop * 1.5),
        (x - half * 0.55, y + 0.070 * full + drop * 1.2), steps=steps,
    )  # fmt: skip
    if drop > 0.012:
        gap = blob(
            (x - half * 0.95, y - lift), (x, y - 0.010), (x + half * 0.95, y - lift),
            (x + half * 0.5, y + drop * 1.5), (x, y + drop * 1.9), (x - half * 0.5, y + drop * 1.5),
            steps=steps,
        )  # fmt: skip
        canvas.fill(gap, rgb(0x3A1112))
        teeth = both(gap, ellipse(x, y - 0.03, half * 0.86, 0.035 + drop * 1.2))
        canvas.fill(teeth, rgb(0xF3EFE6), 0.95, 0.012)
    dark = tinted(lip, rgb(0x3A0D10), 0.40)
    canvas.fill(
        lower,
        lambda part: gradient(
            part.y, (y + drop, dark), (y + drop + 0.05, tinted(lip, (1.0, 0.9, 0.85), 0.18)),
            (y + drop + 0.11, dark),
        ),
        0.9, 0.014,
    )  # fmt: skip
    canvas.fill(upper, dark, 0.85, 0.014)
    seam = ribbon(
        (x - half - 0.02, y - lift - 0.010), (x - half * 0.5, y + 0.006), (x, y + 0.002),
        (x + half * 0.5, y + 0.006), (x + half + 0.02, y - lift - 0.010), width=0.020, steps=steps,
    )  # fmt: skip
    if drop <= 0.012:
        canvas.fill(seam, rgb(0x2E0C0C), 0.85, 0.010)
    for side in (-1.0, 1.0):
        cx = x + side * (half + 0.015)
        canvas.shade((cx - 0.05, y - lift - 0.05, cx + 0.05, y - lift + 0.05), dark, 0.40)
    canvas.shade((x - 0.11, y + drop + 0.02, x + 0.03, y + drop + 0.07), (1.0, 0.92, 0.88), 0.35)


def _beard(canvas: Canvas, person: Person, face: Shape) -> None:
    """Stubble or a full beard: from ear to ear below the cheekbones, around the mouth."""

    def growth(part: Canvas) -> Field:
        x, y = part.grid
        low = smooth(y + 0.50 * np.abs(x - 0.1 * person.turn), 0.62, 0.82)
        lips = 1.0 - bump(length((x - 0.19 * person.turn) * 0.8, (y - 0.67) * 2.2), 0.0, 0.30)
        lip = bump((y - 0.535) * 1.0, 0.0, 0.10) * smooth(
            np.abs(x - 0.19 * person.turn), 0.34, 0.22
        )
        curl = grit(x * 22.0, y * 9.0, 14 + person.seed, 3, part.px * 22.0)
        cover = np.maximum(low * lips, lip) * (0.86 + 0.5 * curl)
        return np.minimum(np.maximum(cover, 0.0), 1.0) * (0.35 + 0.6 * person.beard)

    part = canvas.crop(face.bounds, 0.1)
    if part is not None:
        x, y = part.grid
        inside = part.cover(face.distance(x, y) - 0.05 * person.beard)
        comb = noise(x * 26.0, y * 7.0, 15)
        tint = gradient(
            comb,
            (0.2, tinted(person.hair, (0.0, 0.0, 0.0), 0.45)),
            (0.9, tinted(person.hair, person.skin, 0.35)),
        )
        part.blend(tint, growth(part) * inside)


def _glasses(canvas: Canvas, shift: float) -> None:
    """Round-cornered frames with a glint on each lens."""
    frame = rgb(0x1B1A1D)
    for side in (-1.0, 1.0):
        x = shift + side * 0.335
        lens = melt(0.05, ellipse(x, 0.0, 0.235, 0.205), ellipse(x, -0.03, 0.225, 0.18))
        canvas.fill(lens, rgb(0xDDE8F0), 0.14)
        canvas.fill(outline(lens, 0.036), frame)
        canvas.fill(line((x - 0.12, 0.06), (x - 0.02, -0.12), 0.03, 0.02), (1.0, 1.0, 1.0), 0.45)
        canvas.fill(line((x + side * 0.23, -0.06), (side * 0.74, -0.05), 0.034), frame)
    canvas.fill(
        ribbon((shift - 0.10, 0.0), (shift, -0.045), (shift + 0.10, 0.0), width=0.032), frame
    )
