"""The scene `text`: a printed page with a headline, two columns and a small figure."""

from __future__ import annotations

from functools import cache

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled
from convergebench.drawing.fields import fbm, noise
from convergebench.drawing.lettering import wrapped, write
from convergebench.drawing.shapes import box, curve, line, polyline, turned, union

_INK = rgb(0x23262B)
_ACCENT = rgb(0xB3372C)
_UNIT = 0.00262
_LEADING = 0.0262
_INDENT = 8.0
_COLUMN = 0.352
_LEFT, _RIGHT = 0.130, 0.518
_FIRST, _LAST = 0.322, 0.912
_FIGURE_ROWS = 10

_STORY = (
    "Ask a friend to copy a drawing by hand, then ask another to copy the copy. After ten turns "
    "the cat has lost an ear and the moon has gained a smile. No one made a large mistake: each "
    "hand was only a little wrong, and the next hand took the error for the truth.",
    "Machines do the same. A picture that goes in and comes out again looks equal at first. Look "
    "for longer and you see a grain in the sky, a line that moved, a word with one letter too "
    "many. Ask for a red ball, ask for it to be gone, and the table is no longer quite the table "
    "it was.",
    "So we count. We put a thing in, take it out, and measure how far from home we are. Some "
    "tools lose half of the image in six rounds, some hold on for fifty. A good tool is one that "
    "brings you back to where you began.",
)


@cache
def _lines() -> tuple[tuple[str, float], ...]:
    """The story broken into lines, each with its indent in font units."""
    lines: list[tuple[str, float]] = []
    for paragraph in _STORY:
        indent = _INDENT if lines else 0.0
        first = wrapped(paragraph, _COLUMN / _UNIT - indent)[0]
        rest = wrapped(paragraph[len(first) :], _COLUMN / _UNIT)
        lines += [(first, indent), *((row, 0.0) for row in rest)]
    return tuple(lines)


def text(canvas: Canvas) -> None:
    """A page on a desk: headline, standfirst, text in two columns and a chart."""
    x, y = canvas.grid
    felt = noise(x * 260.0, y * 260.0, 3) * 0.06 + fbm(x * 5.0, y * 5.0, 4, 3) * 0.16
    desk = gradient(x * 0.4 + y * 0.8, (0.0, rgb(0x5C7C86)), (1.3, rgb(0x2F4650)))
    canvas.blend(scaled(desk, 0.88 + felt), 1.0)
    sheet = box(0.075, 0.035, 0.925, 0.965, 0.004)
    canvas.fill(turned(box(0.085, 0.055, 0.945, 0.985), 0.5, 0.5, 0.002), rgb(0x0B1418), 0.5, 0.03)
    below = turned(sheet, 0.5, 0.5, 0.006)
    canvas.fill(below, rgb(0xDCD8CC))
    canvas.fill(sheet, rgb(0x3A4448), 0.35, 0.010)
    canvas.fill(
        sheet,
        lambda part: scaled(
            gradient(part.x + part.y, (0.1, rgb(0xFDFBF4)), (1.9, rgb(0xEFEADD))),
            0.985 + 0.03 * fbm(part.x * 90.0, part.y * 90.0, 6, 2, part.px * 90.0),
        ),
    )
    _heading(canvas)
    _figure(canvas)
    _columns(canvas)


def _heading(canvas: Canvas) -> None:
    """Rubric, headline in two lines, standfirst and rules."""
    canvas.fill(box(_LEFT, 0.078, _LEFT + 0.030, 0.090), _ACCENT)
    write(canvas, "THE COPY REVIEW", (_LEFT + 0.042, 0.0905), 0.0021, 0.95, _ACCENT)
    write(canvas, "No 12", (0.826, 0.0905), 0.0021, 0.95, _ACCENT)
    write(canvas, "How pictures fade", (_LEFT, 0.158), 0.00770, 1.30, _INK)
    write(canvas, "when we edit them", (_LEFT, 0.226), 0.00770, 1.30, _INK)
    write(
        canvas,
        "A short report on small errors that add up",
        (_LEFT, 0.276),
        0.00310,
        0.75,
        rgb(0x5B636B),
    )
    canvas.fill(box(_LEFT, 0.2925, _RIGHT + _COLUMN, 0.2945), _INK, 0.8)


def _columns(canvas: Canvas) -> None:
    """The story, down the left column and on below the figure."""
    rows = int((_LAST - _FIRST) / _LEADING) + 1
    for number, (row, indent) in enumerate(_lines()):
        left, place = (_LEFT, number) if number < rows else (_RIGHT, number - rows + _FIGURE_ROWS)
        at = (left + indent * _UNIT, _FIRST + 0.008 + place * _LEADING)
        write(canvas, row, at, _UNIT, 0.86, _INK)


def _figure(canvas: Canvas) -> None:
    """A small chart: two falling curves over bars, with a caption."""
    left, top, right, bottom = _RIGHT, _FIRST - 0.008, _RIGHT + _COLUMN, _FIRST + 0.170
    canvas.fill(box(left, top, right, bottom, 0.004), rgb(0xE4E9E6))
    axis_x, axis_y = left + 0.030, bottom - 0.024
    for step in range(1, 4):
        level = axis_y - step * 0.036
        canvas.fill(line((axis_x, level), (right - 0.015, level), 0.0012), rgb(0xB9C3C2))
    for index in range(10):
        height = 0.125 / (1.0 + 0.34 * index)
        x0 = axis_x + 0.010 + index * 0.0295
        shade = rgb(0x8FB3B8) if index else _ACCENT
        canvas.fill(box(x0, axis_y - height, x0 + 0.018, axis_y), shade)
    fall = [
        (0.02, 0.012),
        (0.08, 0.022),
        (0.14, 0.050),
        (0.20, 0.060),
        (0.26, 0.085),
        (0.30, 0.090),
    ]
    track = [(axis_x + p, top + 0.012 + q) for p, q in fall]
    canvas.fill(polyline(curve(track, 5), 0.0042), rgb(0x1F4E79))
    for at in track:
        canvas.fill(union(line(at, at, 0.011)), rgb(0x1F4E79))
        canvas.fill(line(at, at, 0.0055), rgb(0xFFFFFF))
    canvas.fill(line((axis_x, top + 0.012), (axis_x, axis_y), 0.0026), _INK)
    canvas.fill(line((axis_x, axis_y), (right - 0.012, axis_y), 0.0026), _INK)
    write(
        canvas, "Fig. 1: what is left after", (left, bottom + 0.0240), 0.00225, 0.85, rgb(0x5B636B)
    )
    write(canvas, "one to ten rounds.", (left, bottom + 0.0430), 0.00225, 0.85, rgb(0x5B636B))
