"""The scene `fur`: a tabby cat's face close by, strand by strand."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from convergebench.drawing.canvas import (
    Canvas,
    Colour,
    Shape,
    gradient,
    rgb,
    scaled,
    tinted,
    washed,
)
from convergebench.drawing.fields import (
    Dice,
    Value,
    bearing,
    bump,
    direction,
    fbm,
    grit,
    length,
    noise,
    smooth,
    wave_at,
)
from convergebench.drawing.shapes import (
    blob,
    both,
    circle,
    ellipse,
    grown,
    melt,
    mirrored,
    ribbon,
    union,
)
from convergebench.drawing.strands import Coat, Strand, coat, paint_coat

_PITCH = 0.0066
_MUZZLE = (0.5, 0.640)
_EYES = ((0.318, 1.0), (0.682, -1.0))
_EYE_Y, _EYE = 0.452, 0.088
_DARK, _BROWN, _BUFF, _CREAM = rgb(0x2A1C14), rgb(0x77573A), rgb(0xCFAA7C), rgb(0xF7EFE2)

_HEAD = melt(0.10, ellipse(0.5, 0.50, 0.455, 0.385), ellipse(0.5, 0.66, 0.400, 0.265))
_EAR = blob(
    (0.060, 0.330), (0.040, 0.180), (0.062, 0.035), (0.110, 0.012), (0.220, 0.070), (0.340, 0.165),
    (0.300, 0.290), steps=5,
)  # fmt: skip
_INNER_EAR = blob(
    (0.105, 0.285), (0.086, 0.170), (0.106, 0.072), (0.190, 0.112), (0.270, 0.180), (0.220, 0.255),
    steps=4,
)  # fmt: skip
_BODY = blob(
    (-0.60, 1.80), (-0.32, 1.02), (-0.05, 0.80), (0.20, 0.62), (0.80, 0.62), (1.05, 0.80),
    (1.32, 1.02), (1.60, 1.80), steps=4,
)  # fmt: skip
_ALL = union(_HEAD, _EAR, mirrored(_EAR, 0.5), _BODY)


def fur(canvas: Canvas) -> None:
    """A tabby cat that looks at the viewer: eyes, nose, whiskers, and all of its coat."""
    _garden(canvas)
    canvas.fill(_ALL, _undercoat, 1.0, 0.012)
    paint_coat(canvas, _coat())
    for x, side in _EYES:
        _eye(canvas, x, side)
    _nose(canvas)
    paint_coat(canvas, _whiskers())


def _garden(canvas: Canvas) -> None:
    """Leaves and light far behind, out of focus."""
    x, y = canvas.grid
    glow = fbm(x * 3.1, y * 3.1, 91, 2) * 0.75 + 0.30 * smooth(y, 0.6, -0.1)
    canvas.blend(
        gradient(
            glow,
            (0.20, rgb(0x15261A)),
            (0.45, rgb(0x35543A)),
            (0.70, rgb(0x7A9A62)),
            (0.95, rgb(0xD8DDA8)),
        ),
        1.0,
    )


def _undercoat(part: Canvas) -> list[Value]:
    """What is seen between the strands: dark and soft."""
    x, y = part.grid
    r = length(x - _MUZZLE[0], y - _MUZZLE[1])
    angle = bearing(x - _MUZZLE[0], y - _MUZZLE[1])
    lock = noise(angle * 120.0 + 80.0, r * 26.0, 3) * 0.6 + fbm(x * 40.0, y * 40.0, 4, 2) * 0.4
    soft = fbm(x * 22.0, y * 22.0, 5, 2) * 0.5 - 0.25
    pale = smooth(length((x - 0.5) * (1.0 / 0.17), (y - 0.725) * (1.0 / 0.13)) + soft, 1.15, 0.75)
    chin = smooth(length((x - 0.5) * (1.0 / 0.12), (y - 0.86) * (1.0 / 0.14)) + soft, 1.15, 0.75)
    coarse = gradient(lock, (0.2, rgb(0x2B1D14)), (0.8, rgb(0x6E5138)))
    fair = gradient(lock, (0.2, rgb(0x8A7763)), (0.8, rgb(0xD3C5B2)))
    return washed(coarse, fair, np.maximum(pale, chin))


def _stripes(x: float, y: float, dice: Dice) -> Colour:
    """The tabby's markings: an M on the forehead, bars on the cheeks, a pale muzzle and chin."""
    u, side = abs(x - 0.5), 1.0 if x > 0.5 else -1.0
    rough = dice.roll(-1.0, 1.0)
    grey = 0.45 + 0.30 * rough
    bars = 0.0
    if y < 0.47:
        bars = wave_at(u * 7.5 + 0.28 - (0.47 - y) * 0.9 + 0.04 * rough) * min((0.47 - y) * 9.0, 1)
    elif u > 0.20:
        turn = (y - 0.52) * 6.0 - u * 2.4 + 0.05 * rough + 0.02 * side
        bars = wave_at(turn) * min((u - 0.20) * 9.0, 1.0)
    line = 0.5 + 0.5 * bars
    line = line * line * (3.0 - 2.0 * line)
    colour = tinted(tinted(_BUFF, _BROWN, grey), _DARK, 0.90 * line * (0.85 + 0.15 * rough))
    pale = _near(u / 0.165, (y - 0.715) / 0.115) + _near(u / 0.12, (y - 0.86) / 0.13)
    pale += 0.8 * _near((u - 0.182) / 0.075, (y - 0.352) / 0.030)
    pale += 0.7 * _near((u - 0.170) / 0.10, (y - 0.565) / 0.035)
    pale += 0.75 * _near(u / 0.30, (y - 1.05) / 0.17)
    colour = tinted(colour, _CREAM, min(pale, 1.0) * (0.86 + 0.12 * rough))
    blaze = _near(u / 0.050, (y - 0.52) / 0.13)
    return tinted(colour, rgb(0xB06E42), 0.65 * min(blaze, 1.0))


def _near(u: float, v: float) -> float:
    """How deep a point is inside the unit circle, eased; at most 1."""
    fall = max(1.3 - u * u - v * v, 0.0)
    return min(fall * 1.6, 1.0)


def _lay(x: float, y: float, body: bool) -> tuple[float, float, float]:
    """Which way the hair lies at a place, and how long it is."""
    if body:
        lean = (x - 0.5) * 0.9
        return lean, 1.0, 0.085
    dx, dy = x - _MUZZLE[0], y - _MUZZLE[1] + 0.02
    r = math.sqrt(dx * dx + dy * dy)
    down = 0.55 * abs(dx) * (1.0 if y > 0.36 else 0.2)
    return dx, dy + down, min(0.013 + 0.082 * max(r - 0.07, 0.0), 0.050)


@cache
def _coat() -> Coat:
    """All the strands, from the ears and cheeks in towards the nose: tips lie over roots."""
    count = int(1.5 / _PITCH)
    places = [
        (column * _PITCH - 0.25, row * _PITCH - 0.05)
        for row in range(int(1.35 / _PITCH))
        for column in range(count)
    ]
    rolled = []
    for index, (x, y) in enumerate(places):
        dice = Dice(index, 4021)
        rolled.append((x + dice.roll(-0.5, 0.5) * _PITCH, y + dice.roll(-0.5, 0.5) * _PITCH, dice))
    head = _depth(_HEAD, rolled)
    ear = _depth(union(_EAR, mirrored(_EAR, 0.5)), rolled)
    inner = _depth(union(_INNER_EAR, mirrored(_INNER_EAR, 0.5)), rolled)
    body = _depth(_BODY, rolled)
    layers: list[tuple[float, Strand]] = []
    for index, (x, y, dice) in enumerate(rolled):
        dx, dy = x - _MUZZLE[0], y - _MUZZLE[1]
        r = math.sqrt(dx * dx + dy * dy)
        if head[index] < 0.0:
            layers.append((2.0 - r, _strand(x, y, dice, False, 1.0)))
        elif ear[index] < 0.0:
            layers.append((0.0, _ear_strand(x, y, dice, inner[index] < 0.0)))
        elif body[index] < 0.0:
            shade = 0.55 + min(max(head[index] * 4.0, 0.0), 0.35)
            layers.append((-y, _strand(x, y, dice, True, shade)))
    layers.sort(key=lambda entry: entry[0])
    return coat([strand for _, strand in layers])


def _depth(shape: Shape, rolled: list[tuple[float, float, Dice]]) -> list[float]:
    """Signed distance of many places at once."""
    x = np.array([[x] for x, _, _ in rolled])
    y = np.array([[y] for _, y, _ in rolled])
    return [row[0] for row in shape.distance(x, y).tolist()]


def _light(x: float, y: float) -> float:
    """How bright the round head is here, lit from the upper left."""
    u, v = (x - 0.5) / 0.50, (y - 0.52) / 0.52
    front = math.sqrt(max(1.0 - min(u * u + v * v, 1.0), 0.0))
    light = 0.56 + 0.30 * (-0.55 * u - 0.62 * v) + 0.32 * front
    for ex, _ in _EYES:
        a, b = (x - ex) / 0.13, (y - _EYE_Y) / 0.11
        light -= 0.22 * max(1.0 - a * a - b * b, 0.0)
    return light


def _strand(x: float, y: float, dice: Dice, body: bool, shade: float) -> Strand:
    """A hair of the coat, turned a little out of its lie."""
    lie_x, lie_y, reach = _lay(x, y, body)
    k = 1.0 / max(math.sqrt(lie_x * lie_x + lie_y * lie_y), 1e-6)
    c, s = direction(dice.roll(-0.045, 0.045))
    ux, uy = (lie_x * c - lie_y * s) * k, (lie_x * s + lie_y * c) * k
    reach *= dice.roll(0.75, 1.35)
    bright = _light(x, y) * shade * dice.roll(0.68, 1.34)
    colour = tinted((0.0, 0.0, 0.0), _stripes(x, y, dice), min(bright, 1.0))
    if bright > 1.0:
        colour = tinted(colour, (1.0, 0.98, 0.92), min((bright - 1.0) * 0.8, 0.5))
    width = (0.0026 if not body else 0.0034) * dice.roll(0.6, 1.2)
    return Strand(
        x, y, ux * reach, uy * reach, width, colour, dice.roll(-0.10, 0.10), dice.roll(0.80, 1.0)
    )


def _ear_strand(x: float, y: float, dice: Dice, inside: bool) -> Strand:
    """Short dark hair on an ear's back and rim, long pale hair across its inside."""
    side = -1.0 if x < 0.5 else 1.0
    if inside:
        reach = dice.roll(0.03, 0.09)
        lift = dice.roll(-0.9, 0.1)
        colour = tinted(rgb(0xB98674), _CREAM, dice.roll(0.0, 0.9))
        colour = tinted(colour, rgb(0x6A4034), dice.roll(0.0, 0.5))
        return Strand(x, y, -side * reach * 0.55, reach * lift, 0.0022, colour, 0.1, 0.75)
    reach = dice.roll(0.014, 0.030)
    colour = tinted(tinted(_BROWN, _DARK, dice.roll(0.2, 0.9)), _BUFF, 0.4 * dice.roll())
    return Strand(
        x, y, side * reach * dice.roll(0.1, 0.5), -reach, 0.0024, colour, dice.roll(-0.1, 0.1)
    )


def _eye(canvas: Canvas, x: float, side: float) -> None:
    """A green eye with a slit pupil, dark lids and the window's light in it; `side` 1 is left."""
    eye = canvas.placed(x, _EYE_Y, _EYE)
    almond = blob(
        (-1.02 * side, -0.22), (-0.62 * side, -0.70), (0.05 * side, -0.84), (0.62 * side, -0.52),
        (1.12 * side, 0.36), (0.55 * side, 0.62), (-0.10 * side, 0.72), (-0.68 * side, 0.42),
        steps=6,
    )  # fmt: skip
    eye.fill(almond, rgb(0x0E0907), 0.55, 0.30)
    eye.fill(grown(almond, 0.10), rgb(0x100A08), 1.0, 0.04)
    eye.fill(almond, _iris, 1.0, 0.012)
    pupil = both(ellipse(0.02, -0.05, 0.30, 0.74), almond)
    eye.fill(pupil, rgb(0x050505), 1.0, 0.03)
    lid = both(
        ribbon((-1.1 * side, -0.25), (-0.5 * side, -0.78), (0.1 * side, -0.86),
               (0.7 * side, -0.50), (1.15 * side, 0.36), width=0.42),
        almond,
    )  # fmt: skip
    eye.fill(lid, rgb(0x060504), 0.55, 0.22)
    window = both(blob((-0.52, -0.52), (-0.18, -0.60), (-0.16, -0.22), (-0.46, -0.18)), almond)
    eye.fill(window, rgb(0xF4FAFF), 0.92, 0.02)
    eye.fill(circle(0.34, 0.30, 0.07), rgb(0xDDF2E8), 0.7, 0.03)


def _iris(part: Canvas) -> list[Value]:
    """Fine rays, golden about the pupil and green outside, dark at the rim."""
    x, y = part.grid
    r = length(x - 0.02, y + 0.05)
    turn = bearing(x - 0.02, y + 0.05)
    rays = noise(turn * 90.0 + 60.0, r * 4.0, 12) * 0.6
    rays += noise(turn * 34.0 + 30.0, r * 7.0, 13) * 0.4
    t = r + (rays - 0.5) * 0.34
    tint = gradient(
        t,
        (0.20, rgb(0xC9A63A)),
        (0.45, rgb(0xB3BE52)),
        (0.70, rgb(0x7FA657)),
        (0.90, rgb(0x3F6B3E)),
        (1.10, rgb(0x16261A)),
    )
    light = 0.72 + 0.42 * smooth(y, -0.7, 0.7) + 0.30 * (rays - 0.5)
    return list(scaled(tint, light))


def _nose(canvas: Canvas) -> None:
    """Nose leather with its nostrils, and the mouth's line below."""
    nose = blob(
        (0.5, 0.588), (0.552, 0.590), (0.566, 0.606), (0.545, 0.634), (0.512, 0.662), (0.5, 0.668),
        (0.488, 0.662), (0.455, 0.634), (0.434, 0.606), (0.448, 0.590), steps=6,
    )  # fmt: skip
    canvas.fill(nose, rgb(0x3A1E18), 0.7, 0.014)

    def leather(part: Canvas) -> list[Value]:
        x, y = part.grid
        pores = grit(x * 260.0, y * 260.0, 33, 3, part.px * 260.0)
        light = 0.62 + 0.45 * bump(length((x - 0.485) * 0.6, y - 0.604), 0.0, 0.035)
        light = light - 0.35 * smooth(y, 0.625, 0.668) + 0.20 * pores
        return list(
            gradient(light, (0.1, rgb(0x4A211E)), (0.6, rgb(0xB9685C)), (1.1, rgb(0xF0B8A4)))
        )

    canvas.fill(nose, leather, 1.0, 0.003)
    for s in (-1.0, 1.0):
        hole = ribbon(
            (0.5 + s * 0.020, 0.640), (0.5 + s * 0.037, 0.637), (0.5 + s * 0.050, 0.622),
            width=0.017, end_width=0.006,
        )  # fmt: skip
        canvas.fill(hole, rgb(0x180A08), 0.92, 0.004)
        mouth = ribbon(
            (0.5, 0.668), (0.5 + s * 0.002, 0.705), (0.5 + s * 0.035, 0.738),
            (0.5 + s * 0.085, 0.742), (0.5 + s * 0.120, 0.722), width=0.0075, end_width=0.003,
        )  # fmt: skip
        canvas.fill(mouth, rgb(0x20100C), 0.85, 0.004)
        canvas.fill(mouth, rgb(0x20100C), 0.30, 0.016)
        for row in range(3):
            for column in range(4):
                dot = circle(
                    0.5 + s * (0.062 + 0.024 * column), 0.672 + 0.019 * row + 0.004 * column, 0.0032
                )
                canvas.fill(dot, rgb(0x3A2418), 0.6, 0.003)


@cache
def _whiskers() -> Coat:
    """Long white bristles from both pads, and some above the eyes."""
    made: list[Strand] = []
    for side in (-1.0, 1.0):
        for row in range(3):
            for column in range(4):
                dice = Dice(row, column, int(side) + 2, 77)
                reach = dice.roll(0.26, 0.44)
                x = 0.5 + side * (0.062 + 0.024 * column)
                y = 0.672 + 0.019 * row + 0.004 * column
                drop = (row - 1.1) * 0.28 + dice.roll(-0.10, 0.10)
                made.append(
                    Strand(x, y, side * reach, reach * drop, 0.0036, rgb(0xFFFDF6),
                           side * dice.roll(0.05, 0.14), 0.95)
                )  # fmt: skip
        for index in range(4):
            dice = Dice(index, int(side) + 2, 78)
            made.append(
                Strand(0.5 + side * (0.16 + 0.02 * index), 0.335, side * dice.roll(0.05, 0.12),
                       -dice.roll(0.18, 0.28), 0.0030, rgb(0xFFFDF6), -side * 0.12, 0.9)
            )  # fmt: skip
    return coat(made)
