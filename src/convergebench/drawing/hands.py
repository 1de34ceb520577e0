"""The scene `hands`: two hands laid on a table, seen by their owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from convergebench.drawing.canvas import Canvas, Shape, gradient, rgb, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    bump,
    direction,
    fbm,
    grit,
    noise,
    smooth,
    speckle,
    stripes,
    unit,
    wave,
)
from convergebench.drawing.people import tones
from convergebench.drawing.shading import gleam, lambert, relief
from convergebench.drawing.shapes import Point, blob, circle, grown, line, melt, ribbon, union

_SKIN = rgb(0xDDA582)
# Joints of a left hand seen from above: knuckle, two joints, tip; in lengths of the hand, the
# wrist at (0, 0), the fingers upwards.
_FINGERS: tuple[tuple[tuple[Point, ...], float], ...] = (
    (((0.146, -0.520), (0.190, -0.712), (0.216, -0.826), (0.234, -0.916)), 0.098),
    (((0.040, -0.550), (0.052, -0.774), (0.058, -0.902), (0.061, -1.006)), 0.100),
    (((-0.070, -0.525), (-0.100, -0.735), (-0.119, -0.854), (-0.133, -0.950)), 0.094),
    (((-0.166, -0.460), (-0.228, -0.612), (-0.262, -0.700), (-0.288, -0.776)), 0.081),
)
_THUMB: tuple[Point, ...] = ((0.115, -0.120), (0.245, -0.300), (0.338, -0.428), (0.388, -0.520))


@dataclass(frozen=True, slots=True)
class _Hand:
    """Where a hand lies: wrist, length, turn, and `side` 1 for a left or -1 for a right one."""

    x: float
    y: float
    size: float
    turns: float
    side: float
    seed: int

    def at(self, point: Point) -> Point:
        """A point of the hand's own plan in the picture."""
        c, s = direction(self.turns)
        p, q = point[0] * self.side * self.size, point[1] * self.size
        return self.x + p * c - q * s, self.y + p * s + q * c

    def track(self, *points: Point) -> list[Point]:
        """Several points."""
        return [self.at(point) for point in points]

    def plan(self, part: Canvas) -> tuple[Field, Field]:
        """The pixels' places on the hand's own plan."""
        c, s = direction(self.turns)
        p, q = part.x - self.x, part.y - self.y
        k = 1.0 / self.size
        return (p * c + q * s) * (k * self.side), (q * c - p * s) * k


_HANDS = (
    _Hand(0.248, 0.800, 0.625, 0.002, 1.0, 1),
    _Hand(0.772, 0.822, 0.625, -0.010, -1.0, 2),
)


def hands(canvas: Canvas) -> None:
    """The backs of two hands in woollen sleeves on old boards, one with a ring."""
    _boards(canvas)
    for hand in _HANDS:
        body = _body(hand)
        canvas.fill(_moved(body, 0.010, 0.014), rgb(0x140A06), 0.78, 0.018)
        canvas.fill(body, _flesh(hand, body))
        _creases(canvas, hand)
        _nails(canvas, hand)
        _sleeve(canvas, hand)
    _ring(canvas, _HANDS[0])


def _moved(shape: Shape, dx: float, dy: float) -> Shape:
    """The shape shifted."""
    x0, y0, x1, y1 = shape.bounds
    inner: Callable[[Field, Field], Field] = shape.distance
    return Shape((x0 + dx, y0 + dy, x1 + dx, y1 + dy), lambda u, v: inner(u - dx, v - dy))


def _body(hand: _Hand) -> Shape:
    """The outline of the whole hand and the wrist."""
    k = hand.size
    bones = []
    for joints, wide in _FINGERS:
        # Joints are a little wider than the bones between them.
        a, b, c, d = joints
        points = hand.track(a, _between(a, b, 0.62), b, _between(b, c, 0.5), c, d)
        widths = [wide * share * k for share in (1.10, 0.97, 1.05, 0.93, 0.94, 0.76)]
        bones.append(
            union(*(line(points[i], points[i + 1], widths[i], widths[i + 1]) for i in range(5)))
        )
    points = hand.track(*_THUMB)
    widths = [0.150 * k, 0.118 * k, 0.114 * k, 0.080 * k]
    bones.append(
        union(*(line(points[i], points[i + 1], widths[i], widths[i + 1]) for i in range(3)))
    )
    for root, knuckle, wa, wb in (
        ((0.085, -0.06), (0.140, -0.520), 0.17, 0.125),
        ((0.025, -0.03), (0.038, -0.545), 0.18, 0.125),
        ((-0.035, -0.03), (-0.070, -0.520), 0.18, 0.120),
        ((-0.085, -0.06), (-0.160, -0.455), 0.16, 0.115),
        ((0.06, -0.12), (0.185, -0.345), 0.17, 0.12),
        ((0.0, 0.05), (0.0, 0.60), 0.345, 0.40),
    ):
        bones.append(line(hand.at(root), hand.at(knuckle), wa * k, wb * k))
    return melt(0.034 * k, *bones)


def _between(a: Point, b: Point, t: float) -> Point:
    """The point at a share `t` of the way."""
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t


def _flesh(hand: _Hand, body: Shape) -> Callable[[Canvas], list[Value]]:
    """Skin over knuckles, tendons and veins, with its fine lines."""

    def paint(part: Canvas) -> list[Value]:
        u, v = hand.plan(part)
        normal = relief(body, part, 0.062 * hand.size)
        light = 0.20 + 0.66 * lambert(normal)
        rose: Field = u * 0.0
        for joints, wide in _FINGERS:
            (kx, ky), (px, py), (dx, dy), (tx, ty) = joints
            light = light + 0.16 * _mound(u - kx + 0.012, v - ky + 0.012, wide * 0.62)
            light = light - 0.13 * _mound(u - kx - 0.02, v - ky - 0.035, wide * 0.70)
            light = light + 0.07 * _mound(u - px, v - py, wide * 0.55)
            rose = rose + 0.34 * _mound(u - kx, v - ky, wide * 0.8)
            rose = rose + 0.30 * _mound(u - px, v - py, wide * 0.7)
            rose = rose + 0.30 * _mound(u - tx, v - ty, wide * 0.9)
            rose = rose + 0.12 * _mound(u - dx, v - dy, wide * 0.6)
            # Tendons run from the middle of the wrist to each knuckle.
            t = unit((0.06 - v) * (1.0 / (0.06 - ky)))
            off = u - (0.18 * kx + (kx - 0.18 * kx) * t)
            run = smooth(t, 0.30, 0.62) * smooth(t, 1.02, 0.86)
            light = light + run * (0.055 * bump(off + 0.006, 0.0, 0.016))
            light = light - run * (0.065 * bump(off - 0.014, 0.0, 0.018))
            # Hollows between the knuckles.
        for hx, hy in ((0.095, -0.500), (-0.016, -0.515), (-0.125, -0.470)):
            light = light - 0.11 * _mound(u - hx, (v - hy) * 0.55, 0.040)
        light = light - 0.12 * _mound((u - 0.150) * 0.8, (v + 0.330) * 0.6, 0.075)
        light = light + 0.09 * _mound((u - 0.02) * 1.2, v + 0.30, 0.34)
        light = light + 0.06 * _mound(u - 0.235, v + 0.290, 0.075)
        pores = grit(u * 95.0, v * 95.0, 3, 3, part.px * 95.0 / hand.size)
        weave = noise(u * 130.0 + v * 60.0, v * 40.0 - u * 20.0, 4) * 0.5
        weave = weave + noise(v * 130.0 - u * 70.0, u * 40.0 + v * 15.0, 5) * 0.5
        fine = min(max(1.6 - 1.6 * 130.0 * part.px / hand.size, 0.0), 1.0)
        light = light + 0.045 * pores + 0.16 * fine * (weave - 0.5)
        blotch = fbm(u * 14.0, v * 14.0, 6 + hand.seed, 3)
        rose = rose + 0.34 * (blotch - 0.42)
        tint = washed(gradient(light, *tones(_SKIN)), rgb(0xB5483C), unit(rose) * 0.62)
        blue = _veins(hand, u, v)
        return washed(tint, rgb(0x6E7F86), blue)

    return paint


def _mound(u: Field, v: Field, radius: float) -> Field:
    """A soft round rise of height 1."""
    k = 1.0 / radius
    fall = np.maximum(1.0 - (u * u + v * v) * (k * k), 0.0)
    return fall * fall


def _veins(hand: _Hand, u: Field, v: Field) -> Field:
    """Faint blue lines under the back of the hand."""
    bend = 0.05 * (noise(u * 9.0, v * 9.0, 31 + hand.seed) - 0.5)
    total: Field = u * 0.0
    for start, lean in ((-0.055, 0.10), (0.012, -0.10), (-0.005, 0.25)):
        off = u - start + lean * (v + 0.15) + bend + 0.012 * wave(v * 4.0 + start * 9.0)
        total = total + bump(off, 0.0, 0.017) * smooth(v, -0.50, -0.40) * smooth(v, 0.02, -0.10)
    return np.minimum(total, 1.0) * 0.15


def _creases(canvas: Canvas, hand: _Hand) -> None:
    """Wrinkles over each joint of each finger, bent around it."""
    deep = rgb(0x7A3E2C)
    k = hand.size
    for number, (joints, wide) in enumerate((*_FINGERS, (_THUMB, 0.112))):
        thumb = joints is _THUMB
        for joint, count, spread in ((1, 6, 0.019), (2, 4, 0.011)):
            if thumb and joint == 1:
                continue
            (x, y), (bx, by) = joints[joint], joints[joint + 1]
            reach = float(np.sqrt((bx - x) * (bx - x) + (by - y) * (by - y)))
            ux, uy = (bx - x) / reach, (by - y) / reach
            for index in range(count):
                dice = Dice(number, joint, index, hand.seed, 71)
                off = (index - 0.5 * (count - 1)) * spread * (0.75 if joint == 2 else 0.85)
                half = wide * dice.roll(0.22, 0.36) * (1.0 if joint == 1 else 0.9)
                lift = off * dice.roll(0.25, 0.5)
                points = [
                    hand.at(
                        (x + ux * (off + bow) - uy * s * half, y + uy * (off + bow) + ux * s * half)
                    )
                    for s, bow in ((-1.0, 0.0), (0.0, lift), (1.0, 0.0))
                ]
                canvas.fill(ribbon(*points, width=0.0042 * k, end_width=0.002 * k, steps=3), deep,
                            dice.roll(0.22, 0.46), 0.0032 * k)  # fmt: skip
                lit_up = [(p, q + 0.0040 * k) for p, q in points]
                canvas.fill(
                    ribbon(*lit_up, width=0.003 * k, steps=3), rgb(0xFFE6D2), 0.20, 0.004 * k
                )


def _nails(canvas: Canvas, hand: _Hand) -> None:
    """A nail on each finger: its bed, half-moon, white edge and shine."""
    for joints, wide in (*_FINGERS, (_THUMB, 0.110)):
        (ax, ay), (bx, by) = joints[2], joints[3]
        reach = float(np.sqrt((bx - ax) * (bx - ax) + (by - ay) * (by - ay)))
        ux, uy = (bx - ax) / reach, (by - ay) / reach
        w = wide * 0.305
        cx, cy = bx + ux * wide * 0.02, by + uy * wide * 0.02

        def spot(
            along: float, across: float, cx: float = cx, cy: float = cy, ux: float = ux,
            uy: float = uy, w: float = w,
        ) -> Point:  # fmt: skip
            return hand.at(
                (cx + ux * along * w - uy * across * w, cy + uy * along * w + ux * across * w)
            )

        def plate(low: float, high: float, wide: float) -> Shape:
            return blob(
                spot(low, 0.0), spot(low + 0.18, -0.70 * wide), spot(0.2, -0.98 * wide),
                spot(high - 0.35, -0.92 * wide), spot(high, 0.0), spot(high - 0.35, 0.92 * wide),
                spot(0.2, 0.98 * wide), spot(low + 0.18, 0.70 * wide), steps=4,
            )  # fmt: skip

        nail = plate(-1.05, 1.32, 1.0)
        unit_length = w * hand.size
        canvas.fill(grown(nail, 0.16 * unit_length), rgb(0x8A4636), 0.55, 0.22 * unit_length)
        x0, _ = spot(0.0, -1.0)
        x1, _ = spot(0.0, 1.0)

        def bed(part: Canvas, x0: float = x0, x1: float = x1) -> list[Value]:
            t = (part.x - 0.5 * (x0 + x1)) * (2.0 / abs(x1 - x0))
            ridge = noise(t * 9.0 + 40.0, part.y * 0.0 + 2.0, 8) - 0.5
            light = 0.62 - 0.30 * t * t - 0.16 * t + 0.08 * ridge
            return list(
                gradient(light, (0.1, rgb(0xA8604F)), (0.55, rgb(0xE7A893)), (0.9, rgb(0xFBDCCB)))
            )

        canvas.fill(nail, bed, 1.0, 0.05 * unit_length)
        moon = circle(*spot(-0.88, 0.0), 0.42 * unit_length)
        canvas.fill(moon, rgb(0xFBE9DD), 0.40, 0.22 * unit_length)
        edge = ribbon(
            spot(0.98, -0.80), spot(1.26, 0.0), spot(0.98, 0.80), width=0.15 * unit_length
        )
        canvas.fill(edge, rgb(0xFFF6EC), 0.85, 0.07 * unit_length)
        shine = ribbon(
            spot(-0.5, -0.42), spot(0.3, -0.46), spot(0.8, -0.40), width=0.24 * unit_length
        )
        canvas.fill(shine, (1.0, 0.99, 0.97), 0.55, 0.16 * unit_length)
        cuticle = ribbon(
            spot(-0.45, -0.95), spot(-1.05, -0.4), spot(-1.05, 0.4), spot(-0.45, 0.95),
            width=0.10 * unit_length,
        )  # fmt: skip
        canvas.fill(cuticle, rgb(0x96503E), 0.65, 0.08 * unit_length)


def _sleeve(canvas: Canvas, hand: _Hand) -> None:
    """A knitted cuff, row by row."""
    k = hand.size
    cuff = line(hand.at((0.0, 0.235)), hand.at((0.0, 0.9)), 0.50 * k, 0.60 * k)

    def distance(p: Field, q: Field) -> Field:
        c, s = direction(hand.turns)
        down = ((q - hand.y) * c - (p - hand.x) * s) * (1.0 / k)
        across = ((p - hand.x) * c + (q - hand.y) * s) * (1.0 / k)
        return np.maximum(cuff.distance(p, q), (0.125 - 0.10 * across * across - down) * k)

    wool = Shape(cuff.bounds, distance)
    canvas.fill(_moved(wool, 0.006, -0.004), rgb(0x100608), 0.55, 0.014)

    def knit(part: Canvas) -> list[Value]:
        u, v = hand.plan(part)
        rib = u * 26.0
        column = np.abs(rib - np.floor(rib) - 0.5) * 2.0
        loops = v * 46.0 + 0.55 * column
        within = loops - np.floor(loops)
        fine = min(max(1.6 - 46.0 * 2.0 * part.px / k, 0.0), 1.0)
        stitch = (bump(within, 0.45, 0.55) - 0.5) * fine
        groove = smooth(column, 0.70, 1.0)
        fuzz = grit(u * 110.0, v * 110.0, 12, 2, part.px * 110.0 / k)
        light = (
            0.66 - 3.6 * u * u - 0.5 * u * hand.side + 0.26 * stitch - 0.30 * groove + 0.14 * fuzz
        )
        light = light - 0.22 * smooth(v, 0.165, 0.125)
        return list(
            gradient(
                light,
                (0.05, rgb(0x1B2A33)),
                (0.45, rgb(0x3F6470)),
                (0.75, rgb(0x7FA3A6)),
                (1.0, rgb(0xC3D6D2)),
            )
        )

    canvas.fill(wool, knit, 1.0, 0.004)


def _ring(canvas: Canvas, hand: _Hand) -> None:
    """A gold band on the ring finger."""
    (ax, ay), (bx, by) = _FINGERS[2][0][0], _FINGERS[2][0][1]
    cx, cy = ax + (bx - ax) * 0.40, ay + (by - ay) * 0.40
    k = hand.size
    band = ribbon(
        hand.at((cx - 0.047, cy + 0.008)), hand.at((cx + 0.001, cy + 0.013)),
        hand.at((cx + 0.045, cy - 0.006)),
        width=0.020 * k,
    )  # fmt: skip
    canvas.fill(_moved(band, 0.002, 0.004), rgb(0x3A180C), 0.6, 0.006)

    def gold(part: Canvas) -> list[Value]:
        normal = relief(band, part, 0.011 * k)
        light = 0.25 + 0.65 * lambert(normal) + 0.25 * wave(part.x * 40.0)
        tint = gradient(light, (0.1, rgb(0x5A3A10)), (0.5, rgb(0xC9983A)), (0.9, rgb(0xFBE7A4)))
        return washed(tint, (1.0, 1.0, 0.95), gleam(normal, 4) * 0.8)

    canvas.fill(band, gold)


def _boards(canvas: Canvas) -> None:
    """Old planks with their grain, knots and joints."""
    x, y = canvas.grid
    plank = np.floor(x * 4.4 + 0.3)
    tone = speckle(x * 4.4 + 0.3, 0.0 * y, 41)
    warp = fbm(x * 2.0 + plank * 3.1, y * 1.2, 42, 3)
    ring = (x * 9.0 + plank * 5.7 + 1.6 * warp) * 6.0
    grain = noise(ring, y * 1.6 + plank * 7.0, 43) * 0.6 + noise(ring * 3.1, y * 5.0, 44) * 0.4
    fibre = grit(x * 220.0, y * 9.0, 45, 2, canvas.px * 220.0)
    light = (
        0.30 + 0.42 * grain + 0.20 * (tone - 0.5) + 0.16 * fibre + 0.10 * smooth(x + y, 1.6, 0.0)
    )
    tint = gradient(
        light,
        (0.10, rgb(0x2B1A10)),
        (0.40, rgb(0x5C3A22)),
        (0.65, rgb(0x8A6038)),
        (0.95, rgb(0xB98D58)),
    )
    canvas.blend(tint, 1.0)
    gap = stripes(x * 4.4 + 0.3 + 0.010, 0.020, canvas.px * 4.4)
    canvas.blend(rgb(0x0E0805), gap * 0.9)
