"""The scene `street`: people who walk past shops, seen from across the road."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, washed
from convergebench.drawing.fields import direction, fbm, grit, noise, smooth, speckle, stripes
from convergebench.drawing.people import Person, somebody
from convergebench.drawing.shapes import box, circle, ellipse, line, melt, outline, ribbon
from convergebench.drawing.shopfronts import sign
from convergebench.drawing.wardrobe import paint_figure

_KERB = 0.800
# Who, where the middle of the face is, its size, where it looks, how much it smiles, the arms.
_WALKERS = (
    (48, 0.075, 0.478, 0.0208, 0.75, 0.4, ("hang", "hang")),
    (36, 0.265, 0.470, 0.0214, 0.30, 0.7, ("hang", "hang")),
    (75, 0.350, 0.482, 0.0204, -0.30, 0.9, ("hip", "hang")),
    (32, 0.545, 0.466, 0.0218, -0.70, 0.1, ("hang", "fold")),
    (27, 0.720, 0.482, 0.0204, 0.10, 0.6, ("hang", "hang")),
    (13, 0.905, 0.468, 0.0214, -0.60, 0.3, ("wave", "hang")),
)


def street(canvas: Canvas) -> None:
    """Six walkers on the pavement, a bicycle at a lamp post, a wet road before them."""
    sign(canvas.placed(0.160, 0.075, 0.615))
    _sky(canvas)
    _ground(canvas)
    _bicycle(canvas)
    for index, (who, x, y, size, turn, smile, arms) in enumerate(_WALKERS):
        person = replace(somebody(who, 3), turn=turn, smile=smile)
        _walk(canvas, person, (x, y, size), arms, index)
    _lamp(canvas)


def _sky(canvas: Canvas) -> None:
    """A cornice, a slate roof and grey sky above the brick wall."""
    part = canvas.crop((-9.0, -9.0, 9.0, 0.075))
    if part is None:
        return
    x, y = part.grid
    row = np.floor(y * 95.0)
    slate = speckle(x * 60.0 + 0.5 * (row - 2.0 * np.floor(row * 0.5)), y * 95.0, 61)
    edge = stripes(y * 95.0, 0.86, part.px * 95.0)
    tint = gradient(slate, (0.0, rgb(0x3E4450)), (1.0, rgb(0x687080)))
    roof = smooth(y, 0.010, 0.012) * smooth(y, 0.060, 0.058)
    cloud = fbm(x * 3.0, y * 6.0, 62, 4, part.px * 6.0)
    part.blend(gradient(cloud, (0.3, rgb(0xA9B8C6)), (0.7, rgb(0xE8ECEE))), smooth(y, 0.012, 0.010))
    part.blend(scaled(tint, 0.70 + 0.30 * edge), roof + 0.0 * x)
    part.blend(rgb(0xE3DCCC), smooth(y, 0.058, 0.060) + 0.0 * x)
    canvas.fill(box(-9.0, 0.075, 9.0, 0.082), (0.05, 0.04, 0.04), 0.5, 0.006)


def _ground(canvas: Canvas) -> None:
    """Paving, kerb and a wet road that mirrors the shops."""
    part = canvas.crop((-9.0, 0.64, 9.0, 9.0))
    if part is None:
        return
    x, y = part.grid
    deep = 1.0 / (y - 0.50)
    u, v = (x - 0.5) * deep * 1.1, deep * 1.4
    rough = grit(x * 150.0, y * 220.0, 63, 3, part.px * 220.0)
    joint = np.maximum(
        stripes(u + 0.01, 0.03, part.px * 8.0), stripes(v + 0.02, 0.06, part.px * 30.0)
    )
    flag = gradient(speckle(u, v, 64), (0.0, rgb(0x857F77)), (1.0, rgb(0xAFA89C)))
    walk = scaled(washed(flag, rgb(0x4A453F), joint * 0.8), 0.92 + 0.2 * rough)
    part.blend(walk, part.cover(0.646 - y + 0.0 * x))
    part.blend((0.05, 0.04, 0.04), 0.5 * smooth(y, 0.668, 0.646) * part.cover(0.646 - y + 0.0 * x))
    road = part.cover(_KERB + 0.016 - y + 0.0 * x)
    wave = noise(x * 40.0, y * 220.0, 65) - 0.5
    mirror = noise((x + 0.02 * wave) * 9.0, y * 0.0 + 2.0, 66)
    wet = gradient(
        mirror + 0.3 * wave,
        (0.2, rgb(0x23262B)),
        (0.5, rgb(0x4A4648)),
        (0.8, rgb(0x9A7A58)),
        (1.0, rgb(0xD9B987)),
    )
    shine = smooth(y, 1.05, 0.82) * 0.75
    part.blend(washed(scaled(rgb(0x3C3F44), 0.85 + 0.5 * rough), wet, shine), road)
    part.blend(
        scaled(rgb(0xB9B2A6), 0.9 + 0.2 * rough), part.cover(np.abs(y - _KERB) - 0.012 + 0.0 * x)
    )
    part.blend(rgb(0x55504A), part.cover(np.abs(y - _KERB - 0.014) - 0.003 + 0.0 * x))
    left, _, right, _ = canvas.extent
    for index in range(math.floor(left / 0.22) - 1, math.ceil(right / 0.22) + 1):
        dash = melt(0.001, line((index * 0.22, 0.925), (index * 0.22 + 0.12, 0.925), 0.014))
        canvas.fill(dash, rgb(0xDAD6CA), 0.75)


def _walk(
    canvas: Canvas,
    person: Person,
    place: tuple[float, float, float],
    arms: tuple[str, str],
    index: int,
) -> None:
    """One walker with a soft shadow."""
    x, y, size = place
    foot = y + 14.4 * size
    canvas.shade(
        (x - 3.2 * size, foot - 0.8 * size, x + 3.2 * size, foot + 1.0 * size), rgb(0x0A0908), 0.8
    )
    figure, stride = canvas.placed(x, y, size), 0.30 if index % 2 else -0.25
    part = paint_figure(figure, person, arms, index % 3 == 1, stride)
    if part is not None and index % 2 == 0:
        bag = box(1.45, 6.9, 2.9, 9.0, 0.15)
        part.fill(bag, rgb(0x0A0808), 0.4, 0.12)
        part.fill(bag, (rgb(0xC9A06A), rgb(0x6A2A30), rgb(0x3A4A5C))[index // 2])
        part.fill(
            ribbon((1.7, 6.9), (2.0, 6.2), (2.4, 6.2), (2.65, 6.9), width=0.14), rgb(0x3A2A1C)
        )
        part.fill(box(1.6, 7.6, 2.75, 7.75), rgb(0xEFE6D2), 0.8)


def _bicycle(canvas: Canvas) -> None:
    """A bicycle that leans on the lamp post."""
    frame, black = rgb(0x1F6A5A), rgb(0x17161A)
    wheels = ((0.405, 0.742), (0.490, 0.742))
    for x, y in wheels:
        canvas.fill(ellipse(x, 0.778, 0.040, 0.006), rgb(0x0A0908), 0.5, 0.006)
        for spoke in range(12):
            dx, dy = direction(spoke / 12.0)
            canvas.fill(line((x, y), (x + 0.033 * dx, y + 0.033 * dy), 0.0009), rgb(0xC9CCD0))
        for radius, width, tint in ((0.0345, 0.0042, black), (0.0315, 0.0014, rgb(0xC9CCD0))):
            canvas.fill(outline(circle(x, y, radius), width), tint)
        canvas.fill(circle(x, y, 0.004), rgb(0x8A8D92))
    (ax, ay), (bx, by) = wheels
    crank, saddle, fork = (0.440, 0.744), (0.427, 0.692), (0.474, 0.690)
    for a, b in (
        ((ax, ay), crank),
        ((ax, ay), saddle),
        (crank, saddle),
        (crank, fork),
        (saddle, fork),
        (fork, (bx, by)),
    ):
        canvas.fill(line(a, b, 0.0046), frame)
    canvas.fill(line((0.415, 0.684), (0.437, 0.686), 0.007, 0.004), black)
    canvas.fill(ribbon((0.474, 0.690), (0.471, 0.672), (0.458, 0.670), width=0.0038), black)
    canvas.fill(circle(*crank, 0.0072), rgb(0x6A6D72))


def _lamp(canvas: Canvas) -> None:
    """An iron lamp post on the kerb."""
    iron = rgb(0x1C2422)
    canvas.fill(line((0.452, 0.235), (0.452, 0.795), 0.009, 0.013), iron)
    canvas.fill(line((0.4500, 0.235), (0.4495, 0.795), 0.0018), rgb(0x6A7672), 0.7)
    canvas.fill(box(0.438, 0.770, 0.466, 0.802, 0.003), iron)
    canvas.glow(0.452, 0.205, 0.085, rgb(0xFFE2A0), 0.55)
    canvas.fill(box(0.436, 0.180, 0.468, 0.232, 0.004), rgb(0xFFF0C4))
    canvas.fill(
        melt(0.004, box(0.430, 0.168, 0.474, 0.182, 0.003), circle(0.452, 0.164, 0.008)), iron
    )
    for x in (0.436, 0.452, 0.468):
        canvas.fill(line((x, 0.180), (x, 0.234), 0.0026), iron)
    canvas.fill(box(0.434, 0.230, 0.470, 0.238, 0.002), iron)
