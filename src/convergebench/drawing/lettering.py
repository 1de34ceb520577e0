"""A stroke font of our own, and setting lines of text with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from convergebench.drawing.canvas import Bounds, Canvas, Shape, Tint
from convergebench.drawing.fields import Field
from convergebench.drawing.shapes import Point

_BASELINE = 3.0
# Pieces a curve is broken into, for body type and for large type.
_CURVE_STEPS, _FINE_STEPS = 5, 11
_LARGE = 0.005
# Four points then make a good circle; the usual 0.5 makes it a diamond.
_TENSION = 0.80
_BEARING = 1.9
_SPACE = 3.4

# Paths of digit pairs x y: `l` lines, `s` an open curve, `o` a closed one. The baseline is at 3,
# small letters reach 7, capitals 9, and tails 0.
_GLYPHS = {
    "a": "o27052345 l4743",
    "b": "o27052345 l0903",
    "c": "s4627052344",
    "d": "o27052345 l4943",
    "e": "l0545 s4527052344",
    "f": "s3929181613 l0737",
    "g": "o27052345 s4744422001",
    "h": "l0903 s05274543",
    "i": "l0703 l0909",
    "j": "s17131100 l1919",
    "k": "l0903 l370533",
    "l": "l0903",
    "m": "l0703 s05273533 s35576563",
    "n": "l0703 s05274543",
    "o": "o27052345",
    "p": "o27052345 l0700",
    "q": "o27052345 l4740",
    "r": "l0703 s052737",
    "s": "s36271706152534231304",
    "t": "s1915142333 l0737",
    "u": "s07052345 l4743",
    "v": "l072347",
    "w": "l0723364367",
    "x": "l0743 l0347",
    "y": "l0723 l4710",
    "z": "l07470343",
    "A": "l033963 l1555",
    "B": "l0903 s0929482606 s0626542303",
    "C": "s5839063354",
    "D": "l0903 s0929562303",
    "E": "l49090343 l0636",
    "F": "l490903 l0636",
    "G": "s5839063354 l545636",
    "H": "l0903 l5953 l0656",
    "I": "l0903",
    "J": "s39352304",
    "K": "l0903 l490643",
    "L": "l090343",
    "M": "l0309346963",
    "N": "l03095359",
    "O": "o39063366",
    "P": "l0903 s0929472505",
    "Q": "o39063366 l4563",
    "R": "l0903 s0929472505 l2543",
    "S": "s48290826442304",
    "T": "l0949 l2923",
    "U": "s090523335559",
    "V": "l092349",
    "W": "l0923486389",
    "X": "l0943 l0349",
    "Y": "l092649 l2623",
    "Z": "l09490343",
    "0": "o29062346",
    "1": "l081913",
    "2": "s0829472503 l0343",
    "3": "s08294826 s26442304",
    "4": "l33390545",
    "5": "l490906 s0627452304",
    "6": "s391705 o27052345",
    "7": "l094913",
    "8": "o29082648 o26042344",
    "9": "o29072547 s474413",
    ".": "l0303",
    ",": "l1302",
    "-": "l0525",
    ":": "l0303 l0606",
    "'": "l0908",
    "!": "l0905 l0303",
    "?": "s08294826 l2625 l2323",
}


def _smoothed(points: Sequence[Point], closed: bool, steps: int) -> list[Point]:
    """A cardinal spline through `points`, as short lines."""
    count = len(points)
    track: list[Point] = []
    for i in range(count if closed else count - 1):
        if closed:
            a, b, c, d = (points[(i + k) % count] for k in (-1, 0, 1, 2))
        else:
            a, b, c, d = (points[min(max(i + k, 0), count - 1)] for k in (-1, 0, 1, 2))
        for step in range(steps):
            t = step / steps
            track.append((_hermite(t, a[0], b[0], c[0], d[0]), _hermite(t, a[1], b[1], c[1], d[1])))
    track.append(points[0] if closed else points[-1])
    return track


def _hermite(t: float, a: float, b: float, c: float, d: float) -> float:
    """From `b` to `c`, with slopes set by the neighbours `a` and `d`."""
    start, stop = _TENSION * (c - a), _TENSION * (d - b)
    rise = c - b
    return b + t * (start + t * (3.0 * rise - 2.0 * start - stop + t * (start + stop - 2.0 * rise)))


@cache
def _strokes(letter: str, steps: int = _CURVE_STEPS) -> Field:
    """A glyph as line segments: columns x, y, dx, dy, with y downwards from the baseline."""
    segments: list[tuple[float, float, float, float]] = []
    for path in _GLYPHS[letter].split():
        digits = path[1:]
        points = [
            (float(digits[i]), _BASELINE - float(digits[i + 1])) for i in range(0, len(digits), 2)
        ]
        track = points if path[0] == "l" else _smoothed(points, path[0] == "o", steps)
        for (ax, ay), (bx, by) in pairwise(track):
            segments.append((ax, ay, bx - ax, by - ay))
    return np.array(segments, dtype=np.float64)


def _extent(strokes: Field) -> Bounds:
    """The box around a glyph's strokes, in font units."""
    first, last = strokes[:, :2], strokes[:, :2] + strokes[:, 2:]
    x0, y0 = np.minimum(first, last).min(axis=0).tolist()
    x1, y1 = np.maximum(first, last).max(axis=0).tolist()
    return x0, y0, x1, y1


@cache
def advance(letter: str) -> float:
    """How far the pen moves on after a letter, in font units."""
    return _SPACE if letter == " " else _extent(_strokes(letter))[2] + _BEARING


def breadth(text: str) -> float:
    """Length of a line of text in font units."""
    total = 0.0
    for letter in text:
        total += advance(letter)
    return total


def glyph(letter: str, x: float, y: float, unit: float, weight: float) -> Shape:
    """One letter with its baseline at `y`; `unit` is the font unit, `weight` the pen in units."""
    strokes = _strokes(letter, _FINE_STEPS if unit > _LARGE else _CURVE_STEPS)
    ax, ay, dx, dy = (strokes[:, i, np.newaxis, np.newaxis] for i in range(4))
    scale = 1.0 / np.maximum(dx * dx + dy * dy, 1e-12)
    pen = 0.5 * weight

    def distance(u: Field, v: Field) -> Field:
        p = (u - x) * (1.0 / unit) - ax
        q = (v - y) * (1.0 / unit) - ay
        t = np.minimum(np.maximum((p * dx + q * dy) * scale, 0.0), 1.0)
        p = p - dx * t
        q = q - dy * t
        nearest: Field = (p * p + q * q).min(axis=0)
        return (np.sqrt(nearest) - pen) * unit

    x0, y0, x1, y1 = _extent(strokes)
    return Shape(
        (
            x + (x0 - pen) * unit,
            y + (y0 - pen) * unit,
            x + (x1 + pen) * unit,
            y + (y1 + pen) * unit,
        ),
        distance,
    )


def write(canvas: Canvas, text: str, at: Point, unit: float, weight: float, ink: Tint) -> None:
    """Set one line of text.

    Args:
        canvas: Where to.
        text: Letters the font has.
        at: Start of the baseline.
        unit: Font unit; capitals are six units high.
        weight: Pen width in font units.
        ink: Colour.
    """
    x, y = at
    for letter in text:
        if letter != " ":
            canvas.fill(glyph(letter, x, y, unit, weight), ink)
        x += advance(letter) * unit


def wrapped(text: str, room: float) -> list[str]:
    """Text broken into lines of at most `room` font units."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and breadth(longer) - _BEARING > room:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines
