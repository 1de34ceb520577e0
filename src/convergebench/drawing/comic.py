"""The scene `comic`: a printed comic page of five panels, with screen dots and balloons."""

from __future__ import annotations

import numpy as np

from convergebench.drawing.canvas import INK, Bounds, Canvas, Colour, Paint, Shape, rgb, washed
from convergebench.drawing.cartoon import Expression, paint_head
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    bearing,
    direction,
    fbm,
    length,
    stripes,
    unit,
)
from convergebench.drawing.lettering import breadth, write
from convergebench.drawing.shapes import (
    blob,
    box,
    circle,
    cut,
    ellipse,
    grown,
    line,
    melt,
    outline,
    polygon,
    ribbon,
    union,
)

_PAPER = rgb(0xF4EBD8)
_BLACK: Colour = (0.07, 0.06, 0.10)
_PEN = 0.0036
_SCREEN = 104.0

_NIGHT: Bounds = (0.035, 0.035, 0.965, 0.325)
_TALK: Bounds = (0.035, 0.343, 0.455, 0.650)
_BOT: Bounds = (0.473, 0.343, 0.965, 0.650)
_HIT: Bounds = (0.035, 0.668, 0.600, 0.965)
_END: Bounds = (0.618, 0.668, 0.965, 0.965)


def comic(canvas: Canvas) -> None:
    """A girl, a robot and a city by night, told in five panels."""
    canvas.blend(_PAPER, 1.0)
    for bounds, painter in (
        (_NIGHT, _city),
        (_TALK, _talk),
        (_BOT, _robot_panel),
        (_HIT, _hit),
        (_END, _ending),
    ):
        part = canvas.crop(bounds)
        if part is not None:
            painter(part)
    _gutters(canvas)
    _balloons(canvas)
    _press(canvas)


def _dots(part: Canvas, tone: Field | float, turn: tuple[float, float] = (0.7071, 0.7071)) -> Field:
    """Coverage of a printer's screen: round dots, as large as the tone asks."""
    c, s = turn
    u, v = (part.x * c + part.y * s) * _SCREEN, (part.y * c - part.x * s) * _SCREEN
    p, q = u - np.floor(u) - 0.5, v - np.floor(v) - 0.5
    radius = np.sqrt(unit(tone + 0.0 * part.x + 0.0 * part.y)) * 0.62
    scale = part.px * _SCREEN
    sharp = unit(0.5 - (length(p, q) - radius) * (1.0 / scale))
    # Where the pixels are as large as the dots only their mean is left.
    share = min(max(1.6 - 1.4 * scale, 0.0), 1.0)
    mean = np.minimum(radius * radius * 3.1416, 1.0)
    return sharp * share + mean * (1.0 - share)


def _screened(base: Colour, ink: Colour, tone: float) -> Paint:
    """Flat colour with dots of another over it."""

    def paint(part: Canvas) -> list[Value]:
        return washed(base, ink, _dots(part, tone))

    return paint


def _city(part: Canvas) -> None:
    """Towers with lit windows under a large moon."""
    y = part.y
    sky = washed(rgb(0x1D2A6B), rgb(0x4B3FA0), _dots(part, (y - 0.02) * 3.2))
    part.blend(sky, 1.0)
    part.ink(circle(0.76, 0.135, 0.070), _screened(rgb(0xFFF1B0), rgb(0xF2C75A), 0.14), _PEN)
    for x, top, size in ((0.74, 0.11, 0.013), (0.785, 0.150, 0.018), (0.755, 0.170, 0.009)):
        part.fill(circle(x, top, size), rgb(0xE8BE5A))
    for index in range(46):
        dice = Dice(index, 31)
        x, top, size = dice.roll(0.04, 0.96), dice.roll(0.04, 0.20), dice.roll(0.0010, 0.0026)
        part.fill(circle(x, top, size), rgb(0xFFFBE0))
    for row in range(2):
        x, index = -0.02, 0
        while x < 1.0:
            dice = Dice(row, index, 47)
            wide, top = dice.roll(0.045, 0.095), dice.roll(0.12, 0.23) + 0.045 * row
            _tower(part, x, x + wide, top, row, dice)
            x += wide + dice.roll(0.0, 0.012)
            index += 1


def _tower(part: Canvas, x0: float, x1: float, top: float, row: int, dice: Dice) -> None:
    """One house of the skyline."""
    colour = (rgb(0x3B4A96), rgb(0x23285A))[row]
    part.ink(box(x0, top, x1, 0.40), _screened(colour, _BLACK, 0.10 + 0.10 * row), _PEN * 0.8)
    if dice.roll() < 0.4:
        mast = 0.5 * (x0 + x1)
        part.fill(line((mast, top), (mast, top - 0.030), 0.0034), _BLACK)
        part.fill(circle(mast, top - 0.031, 0.0036), rgb(0xE23B3B))
    step = 0.0145
    columns = max(int((x1 - x0 - 0.010) / step), 1)
    left = 0.5 * (x0 + x1 - columns * step)
    for column in range(columns):
        for floor in range(12):
            y = top + 0.012 + floor * 0.0165
            lit_up = dice.roll() < 0.45
            if y < 0.33:
                a = left + column * step + 0.003
                pane = rgb(0xFFE27A) if lit_up else rgb(0x171B40)
                part.fill(box(a, y, a + 0.0085, y + 0.0100), pane)


def _talk(part: Canvas) -> None:
    """The girl hears something."""
    part.blend(washed(rgb(0xF7B8A0), rgb(0xE7795E), _dots(part, (part.x - 0.02) * 1.0)), 1.0)
    head = part.placed(0.178, 0.545, 0.076)
    collar = blob((-1.3, 2.2), (-0.95, 1.15), (-0.4, 0.95), (0.4, 0.95), (0.95, 1.15), (1.3, 2.2))
    head.ink(collar, rgb(0xF2B233), 0.042)
    paint_head(head, Expression(mouth="gasp", look=(0.9, -0.2), brows=(0.10, 0.10)))
    for index in range(9):
        c, s = direction(-0.42 + 0.045 * index)
        a = (0.178 + c * 0.136, 0.535 + s * 0.136)
        b = (0.178 + c * 0.160, 0.535 + s * 0.160)
        part.fill(line(a, b, 0.0042, 0.0018), _BLACK)


def _robot_panel(part: Canvas) -> None:
    """A robot steps out of the dark, hatched with ink."""
    part.blend(washed(rgb(0x8FD0C8), rgb(0x2F8C92), _dots(part, 0.75 - (part.y - 0.34) * 2.2)), 1.0)
    floor = box(0.40, 0.600, 1.0, 0.70)
    part.ink(floor, _screened(rgb(0x6E6A86), rgb(0x3A3656), 0.25), _PEN)
    body = part.placed(0.785, 0.520, 0.088)
    _robot(body)
    hatch = stripes((part.x + part.y) * 95.0, 0.34, part.px * 134.0)
    corner = unit((part.x - 0.80) * 6.0 + (part.y - 0.46) * 3.0) * unit((part.y - 0.36) * 30.0)
    side = part.cover(0.93 - part.x + 0.10 * (part.y - 0.5))
    part.blend(_BLACK, hatch * side * np.minimum(corner, 1.0))


def _robot(body: Canvas) -> None:
    """The robot in its own units: the middle of its head at the origin."""
    steel, shade = rgb(0xB9C2CE), rgb(0x7D8AA0)
    pen = 0.045
    for side in (-1.0, 1.0):
        body.ink(line((side * 0.95, 1.15), (side * 1.35, 1.9), 0.30, 0.24), shade, pen)
        body.ink(circle(side * 1.38, 2.0, 0.26), rgb(0xE2593B), pen)
    trunk = box(-0.85, 0.80, 0.85, 2.6, 0.18)
    body.ink(trunk, _screened(steel, shade, 0.16), pen)
    for row in range(3):
        body.ink(
            circle(-0.40 + 0.4 * row, 1.15, 0.10),
            (rgb(0xE2593B), rgb(0xF2C33C), rgb(0x53B36A))[row],
            pen * 0.7,
        )
    body.ink(box(-0.55, 1.35, 0.55, 1.50, 0.05), rgb(0x2C3350), pen * 0.7)
    body.ink(box(-0.18, 0.60, 0.18, 0.85), shade, pen)
    head = box(-0.80, -0.62, 0.80, 0.66, 0.22)
    body.ink(head, _screened(steel, rgb(0x8E9BB2), 0.12), pen)
    body.fill(box(0.35, -0.55, 0.74, 0.60, 0.18), shade, 0.8)
    for side in (-1.0, 1.0):
        body.ink(box(side * 0.92 - 0.12, -0.20, side * 0.92 + 0.12, 0.24, 0.05), rgb(0xE2593B), pen)
        body.ink(circle(side * 0.36, -0.10, 0.23), rgb(0xFFF2A8), pen)
        body.fill(circle(side * 0.36 - 0.06, -0.06, 0.095), _BLACK)
        body.fill(circle(side * 0.36 - 0.10, -0.13, 0.035), (1.0, 1.0, 1.0))
    body.ink(box(-0.45, 0.26, 0.45, 0.46, 0.06), rgb(0x2C3350), pen * 0.8)
    for tooth in range(5):
        x = -0.34 + 0.17 * tooth
        body.fill(line((x, 0.28), (x, 0.44), 0.035), rgb(0xE8ECF2))
    body.ink(line((0.0, -0.66), (0.0, -0.98), 0.06), shade, pen * 0.7)
    body.ink(circle(0.0, -1.04, 0.12), rgb(0xE2593B), pen)
    for x, y in ((-0.66, -0.48), (0.66, -0.48), (-0.66, 0.52), (0.66, 0.52)):
        body.fill(circle(x, y, 0.045), _BLACK)


def _hit(part: Canvas) -> None:
    """A burst of rays behind a loud word."""
    x, y = part.grid
    turn = bearing(x - 0.300, y - 0.815)
    rays = stripes(turn * 34.0, 0.5, part.px * 6.0 / (length(x - 0.300, y - 0.815) + 0.02))
    far = length(x - 0.300, y - 0.815)
    base = washed(rgb(0xF7D23C), rgb(0xF08A2B), rays)
    part.blend(washed(base, rgb(0xD3432E), _dots(part, (far - 0.10) * 2.6)), 1.0)
    part.ink(_burst(0.300, 0.815, 0.205, 0.135, 3), rgb(0xD92B3A), _PEN * 1.3)
    part.ink(_burst(0.300, 0.815, 0.168, 0.108, 5), rgb(0xFFF6DA), _PEN)
    text, size = "KLANG!", 0.0104
    at = (0.300 - 0.5 * (breadth(text) - 1.9) * size, 0.843)
    for index, letter in enumerate(text):
        start = at[0] + breadth(text[:index]) * size
        rise = 0.006 * (1.0 if index % 2 else -1.0)
        write(part, letter, (start + 0.004, at[1] + rise + 0.005), size, 2.6, _BLACK)
    for index, letter in enumerate(text):
        start = at[0] + breadth(text[:index]) * size
        rise = 0.006 * (1.0 if index % 2 else -1.0)
        write(part, letter, (start, at[1] + rise), size, 2.5, _BLACK)
        write(part, letter, (start, at[1] + rise), size, 1.6, rgb(0x2F8CE0))


def _burst(x: float, y: float, rx: float, ry: float, seed: int) -> Shape:
    """A ragged star."""
    corners = []
    for index in range(34):
        dice = Dice(index, seed, 53)
        c, s = direction(index / 34.0)
        reach = dice.roll(0.98, 1.20) if index % 2 else dice.roll(0.70, 0.80)
        corners.append((x + c * rx * reach, y + s * ry * reach))
    return polygon(corners)


def _ending(part: Canvas) -> None:
    """Both of them, friends."""
    part.blend(washed(rgb(0xBFE3F5), rgb(0x6DB6E3), _dots(part, (0.97 - part.y) * 1.6)), 1.0)
    for x, y, size in ((0.66, 0.72, 0.020), (0.90, 0.735, 0.016)):
        cloud = melt(
            0.01,
            circle(x, y, size),
            circle(x + size, y + 0.005, size * 0.8),
            circle(x - size, y + 0.006, size * 0.7),
        )
        part.ink(cloud, rgb(0xFFFFFF), _PEN * 0.7)
    hill = ellipse(0.80, 1.06, 0.34, 0.16)
    part.ink(hill, _screened(rgb(0x8CCB5E), rgb(0x4E9A4A), 0.22), _PEN)
    _robot(part.placed(0.888, 0.885, 0.050))
    paint_head(
        part.placed(0.716, 0.892, 0.056), Expression(lids=(-1.0, -1.0), mouth="laugh", blush=0.8)
    )


def _gutters(canvas: Canvas) -> None:
    """Paper around the panels and their frames."""
    panels = [box(*bounds) for bounds in (_NIGHT, _TALK, _BOT, _HIT, _END)]
    joined = union(*panels)
    left, top, right, bottom = canvas.extent
    canvas.fill(cut(box(left - 1.0, top - 1.0, right + 1.0, bottom + 1.0), joined), _PAPER)
    canvas.fill(outline(joined, 2.0 * _PEN), _BLACK)


def _balloon(
    canvas: Canvas,
    bounds: Bounds,
    tip: tuple[float, float],
    lines: tuple[str, ...],
    size: float = 0.00245,
) -> None:
    """A speech balloon with its tail and hand-set capitals, centred."""
    x0, y0, x1, y1 = bounds
    cx, cy = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
    round_part = melt(0.012, ellipse(cx, cy, 0.5 * (x1 - x0), 0.5 * (y1 - y0)),
                      box(x0 + 0.020, y0 + 0.006, x1 - 0.020, y1 - 0.006, 0.018))  # fmt: skip
    tail = polygon([(cx - 0.012, cy + 0.2 * (y1 - y0)), (cx + 0.016, cy + 0.2 * (y1 - y0)), tip])
    whole = union(round_part, tail)
    canvas.fill(grown(whole, _PEN * 0.8), _BLACK)
    canvas.fill(whole, (1.0, 0.995, 0.97))
    leading = 9.6 * size
    first = cy - 0.5 * leading * (len(lines) - 1) + 3.0 * size
    for index, text in enumerate(lines):
        start = cx - 0.5 * (breadth(text) - 1.9) * size
        write(canvas, text, (start, first + index * leading), size, 1.15, _BLACK)


def _caption(canvas: Canvas, x: float, y: float, text: str) -> None:
    """A box with the teller's words, as long as they are."""
    size = 0.00225
    wide = (breadth(text) - 1.9) * size + 0.024
    canvas.fill(box(x, y, x + wide, y + 0.031), _BLACK)
    canvas.fill(box(x + 0.003, y + 0.003, x + wide - 0.003, y + 0.028), rgb(0xFFE9A3))
    write(canvas, text, (x + 0.012, y + 0.0155 + 3.0 * size), size, 1.1, _BLACK)


def _balloons(canvas: Canvas) -> None:
    """All that is said."""
    _caption(canvas, 0.048, 0.048, "LATE AT NIGHT, IN PIXELTOWN...")
    _caption(canvas, 0.690, 0.284, "NOBODY IS AWAKE?")
    _balloon(
        canvas,
        (0.285, 0.356, 0.449, 0.446),
        (0.262, 0.482),
        ("WHO IS", "THERE?", "COME OUT!"),
        0.00215,
    )
    _balloon(
        canvas,
        (0.483, 0.355, 0.688, 0.445),
        (0.705, 0.478),
        ("BZZT. I LOST", "A BOLT. HAVE", "YOU SEEN IT?"),
        0.00225,
    )
    _balloon(
        canvas, (0.625, 0.765, 0.790, 0.822), (0.716, 0.842), ("HERE IT IS,", "MY FRIEND!"), 0.00200
    )
    _caption(canvas, 0.046, 0.926, "IT FELL DOWN...")
    write(canvas, "4", (0.492, 0.990), 0.0022, 1.1, _BLACK)
    _drips(canvas)


def _drips(canvas: Canvas) -> None:
    """Ink spots and a loose line, as a brush leaves them."""
    canvas.fill(
        ribbon((0.52, 0.62), (0.60, 0.612), (0.69, 0.622), width=0.003, end_width=0.001), INK
    )
    for index in range(12):
        dice = Dice(index, 97)
        canvas.fill(
            circle(dice.roll(0.05, 0.58), dice.roll(0.68, 0.95), dice.roll(0.001, 0.0032)), _BLACK
        )


def _press(canvas: Canvas) -> None:
    """Pulp paper: its grain, and ink that took unevenly."""
    x, y = canvas.grid
    pulp = fbm(x * 130.0, y * 130.0, 71, 3, canvas.px * 130.0)
    worn = fbm(x * 5.0, y * 5.0, 72, 3)
    canvas.planes[:] *= 0.93 + 0.10 * pulp + 0.04 * worn
    canvas.blend(_PAPER, 0.05)
