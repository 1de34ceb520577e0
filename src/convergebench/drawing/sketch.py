"""The scene `sketch`: a cottage by a river, drawn by hand in pencil and chalk on brown paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, Shape, gradient, rgb, scaled, tinted
from convergebench.drawing.fields import Dice, direction, fbm, grit, noise, unit
from convergebench.drawing.lettering import write
from convergebench.drawing.shapes import Point, blob, box, curve, ellipse, melt, polygon, union
from convergebench.drawing.strands import Coat, Strand, coat, paint_coat

_PENCIL: Colour = (0.13, 0.10, 0.10)
_CHALK = rgb(0xFBF4E4)
Tone = Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class _Area:
    """Something to be hatched: where, how dark at each place, which way the strokes run."""

    shape: Shape
    tone: Tone
    turns: float
    reach: float = 0.030


_ROOF = polygon([(0.255, 0.418), (0.335, 0.262), (0.640, 0.262), (0.735, 0.418)])
_WALL = polygon([(0.290, 0.418), (0.705, 0.418), (0.705, 0.612), (0.290, 0.612)])
_GABLE = polygon([(0.500, 0.418), (0.560, 0.318), (0.620, 0.418)])
_CHIMNEY = box(0.372, 0.196, 0.424, 0.300)
_DOOR = box(0.462, 0.478, 0.530, 0.612)
_PANES = tuple(box(x, 0.468, x + 0.070, 0.548) for x in (0.335, 0.590))
_ATTIC = box(0.543, 0.365, 0.577, 0.412)
_CROWN = melt(
    0.05, ellipse(0.845, 0.250, 0.130, 0.125), ellipse(0.905, 0.350, 0.110, 0.095),
    ellipse(0.765, 0.345, 0.075, 0.080), ellipse(0.870, 0.165, 0.080, 0.070),
)  # fmt: skip
_TRUNK = polygon(
    [(0.835, 0.380), (0.872, 0.380), (0.880, 0.560), (0.905, 0.640), (0.812, 0.640), (0.836, 0.560)]
)
_BUSH = melt(
    0.03,
    ellipse(0.225, 0.590, 0.075, 0.055),
    ellipse(0.155, 0.605, 0.070, 0.045),
    ellipse(0.285, 0.605, 0.045, 0.035),
)
_HILL = blob(
    (-0.60, 0.470), (-0.10, 0.455), (0.12, 0.388), (0.28, 0.402), (0.45, 0.440), (0.70, 0.398),
    (0.95, 0.420), (1.25, 0.376), (1.70, 0.470), (1.70, 0.60), (-0.60, 0.60), steps=4,
)  # fmt: skip
_WATER = polygon(
    [(-0.8, 0.785), (0.28, 0.765), (0.62, 0.800), (1.8, 0.770), (1.8, 1.02), (-0.8, 1.00)]
)
_MEADOW = box(-0.8, 0.600, 1.8, 0.780)


def _clouds(x: float, y: float) -> float:
    """Faint strokes in the sky, none where the clouds are."""
    waves = math.floor(x * 5.0 + y * 9.0) % 3
    return 0.0 if waves == 0 else 0.05


_AREAS: tuple[_Area, ...] = (
    _Area(box(-0.8, -0.8, 1.8, 0.40), _clouds, 0.02, 0.05),
    _Area(_HILL, lambda x, y: 0.30 + 0.9 * (y - 0.40), 0.10),
    _Area(_MEADOW, lambda x, y: 0.16 + 0.25 * abs(x - 0.5) + (0.30 if y < 0.64 else 0.0), 0.235,
          0.018),
    _Area(_WALL, lambda x, y: 0.12 + 0.55 * max(x - 0.50, 0.0) + 15.2 * max(0.452 - y, 0.0), 0.19),
    _Area(_ROOF, lambda x, y: 0.50 + 0.45 * (x - 0.40) + 0.9 * (y - 0.33), 0.165, 0.034),
    _Area(_CHIMNEY, lambda x, y: 0.20 + 9.0 * max(x - 0.392, 0.0), 0.22, 0.018),
    _Area(_GABLE, lambda x, y: 0.22 + 2.2 * max(x - 0.555, 0.0), 0.20, 0.02),
    _Area(_DOOR, lambda x, y: 0.75, 0.25, 0.04),
    _Area(union(*_PANES, _ATTIC), lambda x, y: 0.80, 0.14, 0.022),
    _Area(_TRUNK, lambda x, y: 0.35 + 9.0 * max(x - 0.850, 0.0), 0.245, 0.030),
    _Area(_CROWN, lambda x, y: 0.48 + 2.0 * (x - 0.83) + 2.0 * (y - 0.27), 0.12, 0.016),
    _Area(_BUSH, lambda x, y: 0.40 + 2.0 * (x - 0.22) + 3.0 * (y - 0.59), 0.16, 0.014),
    _Area(_WATER, lambda x, y: 0.18 + (2.2 if 0.28 < x < 0.72 and y < 0.93 else 1.0) * (0.94 - y),
          0.002, 0.045),
)  # fmt: skip


def sketch(canvas: Canvas) -> None:
    """Outlines gone over twice, hatching for every shade, and white chalk for the light."""
    _paper(canvas)
    paint_coat(canvas, _chalk())
    paint_coat(canvas, _hatching())
    paint_coat(canvas, _outlines())
    write(canvas, "the old mill house", (0.620, 0.958), 0.0028, 0.62, _PENCIL)
    write(canvas, "May 12", (0.852, 0.985), 0.0022, 0.62, _PENCIL)
    _tooth(canvas)


def _paper(canvas: Canvas) -> None:
    """Brown paper with fibres and stains."""
    x, y = canvas.grid
    fibre = (
        noise(x * 260.0 + y * 40.0, y * 60.0, 3) * 0.5
        + noise(x * 50.0, y * 280.0 - x * 60.0, 4) * 0.5
    )
    stain = fbm(x * 2.4, y * 2.4, 5, 4)
    tint = gradient(stain, (0.2, rgb(0xB99A6E)), (0.8, rgb(0xD3B88C)))
    canvas.blend(scaled(tint, 0.94 + 0.12 * (fibre - 0.5)), 1.0)


def _tooth(canvas: Canvas) -> None:
    """The paper's grain shows through every stroke."""
    x, y = canvas.grid
    grain = grit(x * 330.0, y * 330.0, 7, 2, canvas.px * 330.0)
    canvas.blend(rgb(0xC6A97C), 0.34 * unit(0.10 + 1.5 * grain))


@cache
def _hatching() -> Coat:
    """Strokes where it is dark: the darker, the closer; the darkest is hatched twice."""
    pitch = 0.0060
    places = []
    columns = int(2.0 / pitch)
    for row in range(int(1.3 / pitch)):
        for column in range(columns):
            dice = Dice(row, column, 1201)
            x = -0.5 + (column + dice.roll()) * pitch
            y = -0.12 + (row + dice.roll()) * pitch
            places.append((x, y, dice))
    xs = np.array([[x] for x, _, _ in places])
    ys = np.array([[y] for _, y, _ in places])
    owner: list[int] = [-1] * len(places)
    for index, area in enumerate(_AREAS):
        for place, (gap,) in enumerate(area.shape.distance(xs, ys).tolist()):
            if gap < -0.003:
                owner[place] = index
    strokes: list[Strand] = []
    for place, (x, y, dice) in enumerate(places):
        if owner[place] >= 0:
            area = _AREAS[owner[place]]
            tone = area.tone(x, y)
            for turns, threshold in (
                (area.turns, 0.0),
                (area.turns + 0.11, 0.42),
                (area.turns - 0.1, 0.7),
            ):
                if dice.roll() < (tone - threshold) * 1.15:
                    strokes.append(_hatch(x, y, turns, area.reach, dice))
    return coat(strokes)


def _hatch(x: float, y: float, turns: float, reach: float, dice: Dice) -> Strand:
    """One stroke of the pencil about a place."""
    c, s = direction(turns + dice.roll(-0.012, 0.012))
    length = reach * dice.roll(0.7, 1.3)
    tint = tinted(_PENCIL, rgb(0x6A5A4C), dice.roll(0.0, 0.5))
    return Strand(
        x - 0.5 * c * length, y + 0.5 * s * length, c * length, -s * length,
        0.0017 * dice.roll(0.7, 1.3), tint, dice.roll(-0.04, 0.04), dice.roll(0.45, 0.8),
    )  # fmt: skip


def _traced(
    points: Sequence[Point], seed: int, width: float = 0.0030, tint: Colour = _PENCIL
) -> list[Strand]:
    """A line drawn twice by a hand that is not quite steady, with its ends overshooting."""
    strokes = []
    for turn in range(2):
        dice = Dice(seed, turn, 1409)
        last = (
            points[0][0] + dice.roll(-0.0016, 0.0016),
            points[0][1] + dice.roll(-0.0016, 0.0016),
        )
        for point in points[1:]:
            there = (point[0] + dice.roll(-0.0018, 0.0018), point[1] + dice.roll(-0.0018, 0.0018))
            dx, dy = there[0] - last[0], there[1] - last[1]
            over = dice.roll(0.02, 0.10)
            strokes.append(
                Strand(last[0] - over * dx, last[1] - over * dy, dx * (1.0 + 2.0 * over),
                       dy * (1.0 + 2.0 * over), width * dice.roll(0.6, 1.1), tint,
                       dice.roll(-0.012, 0.012), dice.roll(0.65, 0.95), True)
            )  # fmt: skip
            last = there
    return strokes


def _rectangle(x0: float, y0: float, x1: float, y1: float) -> list[Point]:
    """Its corners, closed."""
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]


@cache
def _outlines() -> Coat:
    """All the lines: house, tiles, stones, tree, fence, bridge, water, birds."""
    drawn: list[Strand] = []
    lines: list[Sequence[Point]] = [
        [(0.255, 0.418), (0.335, 0.262), (0.640, 0.262), (0.735, 0.418), (0.255, 0.418)],
        [(0.290, 0.418), (0.290, 0.612), (0.705, 0.612), (0.705, 0.418)],
        [(0.490, 0.424), (0.560, 0.312), (0.630, 0.424)],
        _rectangle(0.372, 0.196, 0.424, 0.300),
        _rectangle(0.364, 0.186, 0.432, 0.200),
        _rectangle(0.462, 0.478, 0.530, 0.612),
        _rectangle(0.543, 0.365, 0.577, 0.412),
        [(0.560, 0.365), (0.560, 0.412)],
        [(-0.60, 0.470), (-0.10, 0.455), (0.12, 0.388), (0.252, 0.400)],
        [(0.745, 0.404), (0.95, 0.420), (1.25, 0.376), (1.70, 0.470)],
        [(-0.8, 0.785), (0.00, 0.772), (0.28, 0.765), (0.62, 0.800), (1.1, 0.782), (1.8, 0.770)],
    ]  # fmt: skip
    for x in (0.335, 0.590):
        lines += [_rectangle(x, 0.468, x + 0.070, 0.548), [(x + 0.035, 0.468), (x + 0.035, 0.548)],
                  [(x, 0.508), (x + 0.070, 0.508)], [(x - 0.008, 0.552), (x + 0.078, 0.552)],
                  _rectangle(x - 0.026, 0.466, x - 0.003, 0.550),
                  _rectangle(x + 0.073, 0.466, x + 0.096, 0.550)]  # fmt: skip
    for board in range(4):
        x = 0.472 + 0.0155 * board
        lines.append([(x, 0.482), (x, 0.610)])
    for index, points in enumerate(lines):
        drawn += _traced(points, index)
    drawn += _tiles()
    for index, shape in enumerate(_leafy()):
        drawn += _traced(shape, 500 + index, 0.0022)
    drawn += _fence()
    for index in range(70):
        dice = Dice(index, 1511)
        x, y = dice.roll(-0.5, 1.5), dice.roll(0.80, 1.0)
        wide = 0.02 + 0.10 * (y - 0.78)
        points = [(x, y), (x + wide, y - 0.002), (x + 2.0 * wide, y + 0.001)]
        drawn += _traced(points, 900 + index, 0.0018)
    for index in range(9):
        dice = Dice(index, 1523)
        x, y, wide = dice.roll(0.05, 0.62), dice.roll(0.06, 0.20), dice.roll(0.008, 0.016)
        points = curve(
            [
                (x - wide, y - 0.4 * wide),
                (x - 0.4 * wide, y - 0.6 * wide),
                (x, y),
                (x + 0.4 * wide, y - 0.6 * wide),
                (x + wide, y - 0.4 * wide),
            ],
            3,
        )
        drawn += _traced(points, 1000 + index, 0.0020)
    smoke = curve(
        [(0.398, 0.182), (0.410, 0.150), (0.385, 0.115), (0.420, 0.075), (0.400, 0.030)], 6
    )
    drawn += _traced(smoke, 1100, 0.0016)
    return coat(drawn)


def _tiles() -> list[Strand]:
    """Courses of shingles on the roof, and stones in the wall."""
    drawn: list[Strand] = []
    for course in range(11):
        y = 0.276 + 0.0132 * course
        t = (y - 0.262) / 0.156
        left, right = 0.335 - 0.080 * t, 0.640 + 0.095 * t
        x = left + (0.010 if course % 2 else 0.0)
        while x < right - 0.006:
            dice = Dice(course, int(x * 1e4), 1601)
            if not (0.49 < x < 0.625 and y > 0.330 and abs(x - 0.560) < (y - 0.312) * 0.66):
                arc = [(x, y - 0.010), (x + 0.001, y), (x + 0.016, y + dice.roll(-0.001, 0.002))]
                drawn += _traced(arc, course * 1000 + int(x * 1e4), 0.0016)[:2]
            x += dice.roll(0.015, 0.021)
    for index in range(75):
        dice = Dice(index, 1613)
        x, y = dice.roll(0.300, 0.680), dice.roll(0.440, 0.600)
        window = 0.455 < y < 0.56 and (0.29 < x < 0.435 or 0.545 < x < 0.69)
        if not window and not 0.435 < x < 0.535:
            wide, tall = dice.roll(0.010, 0.022), dice.roll(0.006, 0.011)
            points = curve(
                [(x, y), (x + wide, y - 0.001), (x + wide, y + tall), (x, y + tall), (x, y)], 2
            )
            drawn += _traced(points, 3000 + index, 0.0015)[: len(points) - 1]
    return drawn


def _leafy() -> list[list[Point]]:
    """Scalloped lines: leaves along and within the crown and the bush."""
    found: list[list[Point]] = []
    for index in range(420):
        dice = Dice(index, 1721)
        shape = _CROWN if index % 4 else _BUSH
        x0, y0, x1, y1 = shape.bounds
        x, y = dice.roll(x0, x1), dice.roll(y0, y1)
        gap = float(shape.distance(np.array([[x]]), np.array([[y]]))[0, 0])
        if gap > 0.004:
            continue
        size = dice.roll(0.006, 0.012)
        c, s = direction(dice.roll())
        arc = [
            (x - c * size, y - s * size),
            (x - s * size * 0.8, y + c * size * 0.8),
            (x + c * size, y + s * size),
        ]
        found.append(curve(arc, 2))
    found.append(curve([(0.838, 0.40), (0.842, 0.50), (0.836, 0.56), (0.812, 0.640)], 3))
    found.append(curve([(0.868, 0.40), (0.874, 0.50), (0.880, 0.56), (0.905, 0.640)], 3))
    return found


def _fence() -> list[Strand]:
    """Pales and two rails before the meadow, on both sides of the path."""
    drawn: list[Strand] = []
    for index in range(-14, 46):
        x = 0.034 * index
        if 0.435 < x < 0.565:
            continue
        dice = Dice(index, 1801)
        top = 0.668 + dice.roll(-0.004, 0.004)
        pale = [
            (x, 0.748),
            (x, top),
            (x + 0.006, top - 0.010),
            (x + 0.012, top),
            (x + 0.012, 0.748),
        ]
        drawn += _traced(pale, 5000 + index, 0.0024)
        for rail in (0.688, 0.722):
            if not 0.40 < x < 0.44:
                drawn += _traced([(x + 0.012, rail), (x + 0.034, rail)], 5200 + index, 0.0022)
    for side in (0.455, 0.545):
        drawn += _traced(
            curve(
                [
                    (side, 0.614),
                    (side + (side - 0.5) * 0.5, 0.69),
                    (side + (side - 0.5) * 1.5, 0.77),
                ],
                4,
            ),
            5600 + int(side * 100),
        )
    return drawn


@cache
def _chalk() -> Coat:
    """White where the sun falls: clouds, the roof's edge, the water, the window bars."""
    strokes: list[Strand] = []
    for index in range(2600):
        dice = Dice(index, 1907)
        x, y = dice.roll(-0.4, 1.4), dice.roll(-0.08, 0.30)
        cloud = float(fbm(np.array([[x * 3.2]]), np.array([[y * 7.0]]), 19, 3)[0, 0])
        if cloud > 0.56:
            strokes.append(_white(x, y, 0.03, dice, 0.012, 0.50))
    for index in range(330):
        dice = Dice(index, 1913)
        strokes.append(
            _white(dice.roll(-0.4, 1.4), dice.roll(0.80, 0.99), 0.004, dice, 0.005, 0.55)
        )
    for index in range(240):
        dice = Dice(index, 1919)
        strokes.append(
            _white(dice.roll(0.30, 0.48), dice.roll(0.43, 0.60), 0.19, dice, 0.008, 0.42)
        )
    for index in range(260):
        dice = Dice(index, 1931)
        c, s = direction(dice.roll())
        r = dice.roll(0.0, 1.0)
        strokes.append(_white(0.800 + 0.06 * c * r, 0.215 + 0.06 * s * r, 0.12, dice, 0.005, 0.5))
    return coat(strokes)


def _white(x: float, y: float, turns: float, dice: Dice, width: float, opacity: float) -> Strand:
    """A broad soft stroke of chalk."""
    c, s = direction(turns + dice.roll(-0.02, 0.02))
    reach = dice.roll(0.015, 0.04)
    return Strand(
        x, y, c * reach, -s * reach, width * 0.55, _CHALK, 0.0, opacity * dice.roll(0.6, 1.0)
    )
