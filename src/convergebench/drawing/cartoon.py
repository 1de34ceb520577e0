"""A cartoon character's head, with the features that make its expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from convergebench.drawing.canvas import INK, Canvas, Colour, Shape, gradient, rgb, tinted
from convergebench.drawing.fields import Field, direction
from convergebench.drawing.shapes import (
    Point,
    blob,
    both,
    box,
    circle,
    cut,
    ellipse,
    line,
    melt,
    mirrored,
    polygon,
    ribbon,
    turned,
    union,
)

SKIN = rgb(0xF7C9A0)
SKIN_SHADE = rgb(0xE5A57C)
HAIR = rgb(0x1FA39B)
HAIR_SHADE = rgb(0x147A7C)
STREAK = rgb(0xF2578F)
GOLD = rgb(0xFFC93C)
_BLUSH = rgb(0xF2766B)
_TONGUE = rgb(0xEF6A6F)
_MOUTH = rgb(0x7A2335)
_WHITE: Colour = (1.0, 1.0, 1.0)
PEN = 0.038
# The iris runs through four colours from its top to its bottom.
_IRIS = (rgb(0x3B2BA8), rgb(0xD32E9C), rgb(0xFF8A2B), rgb(0xFFE45C))


@dataclass(frozen=True, slots=True)
class Expression:
    """A face: each pair is for the viewer's left and right side.

    Attributes:
        lids: How far each eye is open; 0 draws a closed arc, negative one that smiles.
        brows: Height of each brow above its rest.
        slant: How far the inner end of each brow is pulled down.
        look: Where the pupils point, from -1 to 1 each way.
        mouth: Name of a mouth.
        blush: Strength of the red on the cheeks.
        extra: Name of something added to the face, or nothing.
    """

    lids: tuple[float, float] = (1.0, 1.0)
    brows: tuple[float, float] = (0.0, 0.0)
    slant: tuple[float, float] = (0.0, 0.0)
    look: tuple[float, float] = (0.0, 0.0)
    mouth: str = "smile"
    blush: float = 0.45
    extra: str = ""


def star(x: float, y: float, radius: float, points: int = 5, turns: float = -0.25) -> Shape:
    """A star with `points` rays."""
    corners: list[Point] = []
    for index in range(2 * points):
        c, s = direction(turns + index / (2.0 * points))
        reach = radius if index % 2 == 0 else radius * 0.46
        corners.append((x + c * reach, y + s * reach))
    return polygon(corners)


_FACE = melt(0.25, ellipse(0.0, -0.08, 0.97, 0.90), ellipse(0.0, 0.42, 0.68, 0.58))
_EARS = union(ellipse(-0.97, 0.14, 0.17, 0.24), ellipse(0.97, 0.14, 0.17, 0.24))
_BACK_HAIR = blob(
    (-0.20, -1.28), (0.55, -1.20), (1.08, -0.72), (1.20, -0.05), (1.08, 0.62), (0.80, 0.86),
    (0.0, 0.60), (-0.82, 0.98), (-1.18, 0.72), (-1.22, 0.05), (-1.10, -0.72), (-0.75, -1.14),
    steps=6,
)  # fmt: skip
_TAIL = blob(
    (1.00, -0.75), (1.42, -1.12), (1.82, -0.86), (1.86, -0.28), (1.62, 0.20), (1.66, 0.62),
    (1.40, 0.42), (1.34, -0.05), (1.28, -0.45), steps=5,
)  # fmt: skip
_FRINGE = blob(
    (-1.06, 0.12), (-1.16, -0.52), (-0.80, -1.12), (-0.10, -1.30), (0.62, -1.18), (1.04, -0.72),
    (1.10, -0.10), (0.94, -0.02), (0.86, -0.40), (0.50, -0.66), (0.36, -0.34), (0.16, -0.60),
    (-0.22, -0.28), (-0.44, -0.46), (-0.70, -0.14), (-0.84, -0.28), steps=6,
)  # fmt: skip
_LOCK = blob(
    (-0.42, -1.17), (-0.10, -1.24), (-0.12, -0.86), (-0.26, -0.50), (-0.36, -0.36), (-0.46, -0.62),
    (-0.50, -0.92), steps=5,
)  # fmt: skip
_CURL = ribbon(
    (0.10, -1.22), (0.16, -1.46), (0.40, -1.52), (0.44, -1.36), width=0.11, end_width=0.05
)


def paint_head(canvas: Canvas, mood: Expression) -> None:
    """The head in its own units: centre (0, 0), about one unit to each side."""
    canvas.ink(_TAIL, HAIR, PEN)
    canvas.ink(_BACK_HAIR, HAIR_SHADE, PEN)
    canvas.ink(circle(1.12, -0.66, 0.15), GOLD, PEN)
    canvas.ink(_EARS, SKIN, PEN)
    canvas.fill(ellipse(-0.98, 0.16, 0.08, 0.13), SKIN_SHADE)
    canvas.fill(ellipse(0.98, 0.16, 0.08, 0.13), SKIN_SHADE)
    canvas.ink(star(-1.02, 0.50, 0.13), GOLD, PEN * 0.8)
    canvas.ink(_FACE, SKIN, PEN)
    canvas.fill(
        both(_FACE, cut(ellipse(0.0, 0.1, 1.3, 1.2), ellipse(-0.14, -0.06, 1.06, 1.02))), SKIN_SHADE
    )
    canvas.fill(both(_FACE, ellipse(0.03, -0.42, 0.98, 0.44)), SKIN_SHADE, 0.75)
    for side in (-1.0, 1.0):
        canvas.shade(
            (side * 0.60 - 0.26, 0.34, side * 0.60 + 0.26, 0.68), _BLUSH, 0.85 * mood.blush
        )
    for x, y in ((-0.70, 0.44), (-0.58, 0.50), (-0.66, 0.57)):
        canvas.fill(circle(x, y, 0.024), rgb(0xB8683F))
    for index, side in enumerate((-1.0, 1.0)):
        _eye(canvas, side, mood.lids[index], mood.look)
    canvas.fill(ribbon((-0.03, 0.34), (0.05, 0.41), (-0.03, 0.44), width=0.035), rgb(0xB36A45))
    _MOUTHS[mood.mouth](canvas)
    canvas.ink(_FRINGE, HAIR, PEN)
    canvas.fill(_LOCK, STREAK)
    canvas.fill(
        both(
            _FRINGE, ribbon((0.30, -1.06), (0.66, -0.92), (0.86, -0.60), width=0.09, end_width=0.03)
        ),
        tinted(HAIR, _WHITE, 0.40),
    )
    canvas.ink(_CURL, HAIR, PEN)
    canvas.ink(star(0.62, -0.74, 0.20, 5, -0.21), GOLD, PEN)
    for index, side in enumerate((-1.0, 1.0)):
        _brow(canvas, side, mood.brows[index], mood.slant[index])
    if mood.extra:
        _EXTRAS[mood.extra](canvas)


def _iris(part: Canvas, top: float, bottom: float) -> Sequence[Field]:
    """Four colours from `top` to `bottom`."""
    step = (bottom - top) / 3.0
    return gradient(part.y, *((top + step * i, colour) for i, colour in enumerate(_IRIS)))


def _eye(canvas: Canvas, side: float, open_share: float, look: tuple[float, float]) -> None:
    """One eye: white, gradient iris, pupil, lights, lid and lashes."""
    x, y = 0.42 * side, 0.12
    if open_share <= 0.0:
        bend = 0.16 if open_share == 0.0 else -0.20
        arc = ribbon((x - 0.25, y + 0.06), (x, y + 0.06 + bend), (x + 0.25, y + 0.06), width=0.075)
        canvas.fill(arc, INK)
        return
    white = ellipse(x, y, 0.255, 0.335)
    lid = y - 0.335 + (1.0 - min(open_share, 1.0)) * 0.67
    seen = both(white, box(x - 1.0, lid, x + 1.0, y + 1.0))
    canvas.ink(white, tinted(SKIN, SKIN_SHADE, 0.6), PEN * 0.7)
    canvas.fill(seen, _WHITE)
    wide = 1.0 if open_share <= 1.0 else 0.80
    ix, iy = x + look[0] * 0.09 - side * 0.02, y + 0.03 + look[1] * 0.10
    rx, ry = 0.185 * wide, 0.265 * wide
    iris = both(ellipse(ix, iy, rx, ry), seen)
    canvas.fill(both(ellipse(ix, iy, rx + 0.022, ry + 0.022), seen), rgb(0x2A1A66))
    canvas.fill(iris, lambda part: _iris(part, iy - ry * 0.75, iy + ry * 0.85))
    canvas.fill(both(ellipse(ix, iy - 0.02, rx * 0.46, ry * 0.48), seen), rgb(0x1B1140))
    canvas.fill(both(circle(ix - 0.075, iy - 0.115 * wide, 0.062), seen), _WHITE)
    canvas.fill(both(circle(ix + 0.075, iy + 0.125 * wide, 0.033), seen), _WHITE)
    if open_share < 1.0:
        canvas.fill(line((x - 0.24, lid), (x + 0.24, lid), 0.065), INK)
    else:
        lash = ribbon(
            (x - 0.255, y - 0.10),
            (x - 0.16, y - 0.30),
            (x, y - 0.355),
            (x + 0.16, y - 0.30),
            (x + 0.255, y - 0.10),
            width=0.07,
        )
        canvas.fill(lash, INK)
    tip = (x + side * 0.36, y - 0.20)
    if open_share >= 1.0:
        canvas.fill(line((x + side * 0.23, y - 0.17), tip, 0.06, 0.02), INK)


def _brow(canvas: Canvas, side: float, lift: float, slant: float) -> None:
    """One brow, drawn over the fringe as cartoons do."""
    y = -0.36 - lift
    inner, outer = (side * 0.20, y + slant), (side * 0.62, y + 0.02 - 0.4 * slant)
    middle = (side * 0.42, y - 0.07 + 0.3 * slant)
    canvas.fill(ribbon(inner, middle, outer, width=0.085, end_width=0.04), rgb(0x0B3F47))


def _smile(canvas: Canvas) -> None:
    canvas.fill(ribbon((-0.22, 0.60), (0.0, 0.71), (0.26, 0.57), width=0.05, end_width=0.04), INK)


def _laugh(canvas: Canvas) -> None:
    mouth = both(ellipse(0.0, 0.56, 0.36, 0.34), box(-1.0, 0.56, 1.0, 1.2, 0.03))
    canvas.ink(mouth, _MOUTH, PEN)
    canvas.fill(both(mouth, ellipse(0.0, 0.88, 0.22, 0.16)), _TONGUE)
    canvas.fill(both(mouth, box(-0.30, 0.50, 0.30, 0.635, 0.02)), _WHITE)


def _frown(canvas: Canvas) -> None:
    canvas.fill(ribbon((-0.20, 0.75), (0.0, 0.63), (0.20, 0.75), width=0.05), INK)


def _teeth(canvas: Canvas) -> None:
    mouth = box(-0.31, 0.58, 0.31, 0.82, 0.09)
    canvas.ink(mouth, _WHITE, PEN)
    for x in (-0.155, 0.0, 0.155):
        canvas.fill(line((x, 0.59), (x, 0.81), 0.026), INK)
    canvas.fill(line((-0.30, 0.70), (0.30, 0.70), 0.026), INK)


def _gasp(canvas: Canvas) -> None:
    canvas.ink(ellipse(0.0, 0.71, 0.15, 0.20), _MOUTH, PEN)
    canvas.fill(both(ellipse(0.0, 0.71, 0.15, 0.20), ellipse(0.0, 0.88, 0.13, 0.10)), _TONGUE)


def _small(canvas: Canvas) -> None:
    canvas.fill(ellipse(0.0, 0.70, 0.075, 0.055), INK)
    canvas.fill(ellipse(0.0, 0.71, 0.042, 0.028), _TONGUE)


def _tongue(canvas: Canvas) -> None:
    canvas.ink(box(0.00, 0.62, 0.21, 0.87, 0.10), _TONGUE, PEN * 0.9)
    canvas.fill(line((0.105, 0.68), (0.105, 0.78), 0.02), rgb(0xB23A4B))
    canvas.fill(ribbon((-0.26, 0.58), (0.0, 0.67), (0.28, 0.55), width=0.055), INK)


def _wavy(canvas: Canvas) -> None:
    canvas.fill(
        ribbon((-0.24, 0.70), (-0.12, 0.63), (0.0, 0.70), (0.12, 0.75), (0.25, 0.66), width=0.05),
        INK,
    )


def _shy(canvas: Canvas) -> None:
    canvas.fill(
        ribbon((-0.16, 0.64), (-0.08, 0.70), (0.0, 0.64), (0.08, 0.70), (0.16, 0.64), width=0.045),
        INK,
    )


def _tear(canvas: Canvas) -> None:
    drop = melt(0.08, circle(-0.50, 0.66, 0.10), line((-0.50, 0.48), (-0.50, 0.60), 0.02, 0.12))
    canvas.ink(drop, rgb(0x7CC8F5), PEN * 0.6)
    canvas.fill(circle(-0.53, 0.65, 0.03), _WHITE)


def _cross_mark(canvas: Canvas) -> None:
    x, y = -0.98, -1.02
    for turns in (0.0, 0.25, 0.5, 0.75):
        bend = ribbon((x + 0.06, y - 0.22), (x + 0.07, y - 0.07), (x + 0.22, y - 0.06), width=0.07)
        canvas.fill(turned(bend, x, y, turns), rgb(0xD92B36))


def _snore(canvas: Canvas) -> None:
    for x, y, size in ((0.80, -1.36, 0.11), (1.12, -1.56, 0.15)):
        corners = [
            (x - size, y - size),
            (x + size, y - size),
            (x - size, y + size),
            (x + size, y + size),
        ]
        strokes = [line(a, b, 0.07) for a, b in pairwise(corners)]
        canvas.fill(union(*strokes), rgb(0x3A4E9B))


def _question(canvas: Canvas) -> None:
    hook = ribbon(
        (-1.22, -1.10), (-1.10, -1.30), (-0.92, -1.18), (-1.04, -0.98), (-1.06, -0.86), width=0.085
    )
    canvas.fill(union(hook, circle(-1.06, -0.70, 0.06)), rgb(0x7A3FC0))


def _hearts(canvas: Canvas) -> None:
    for x, y, size in ((-1.08, -0.98, 0.16), (1.26, 0.78, 0.12)):
        half = line((x - size * 0.5, y - size * 0.3), (x, y + size * 0.7), size * 1.15, size * 0.12)
        canvas.fill(union(half, mirrored(half, x)), rgb(0xF0476F))


_MOUTHS = {
    "smile": _smile,
    "laugh": _laugh,
    "frown": _frown,
    "teeth": _teeth,
    "gasp": _gasp,
    "small": _small,
    "tongue": _tongue,
    "wavy": _wavy,
    "shy": _shy,
}
_EXTRAS = {
    "tear": _tear,
    "cross": _cross_mark,
    "snore": _snore,
    "question": _question,
    "hearts": _hearts,
}
