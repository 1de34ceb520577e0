"""The scene `face-small`: eight people in a park, seen from some way off."""

from __future__ import annotations

import math
from functools import lru_cache

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, tinted, washed
from convergebench.drawing.fields import (
    Dice,
    bump,
    direction,
    fbm,
    grit,
    noise,
    smooth,
)
from convergebench.drawing.people import Person, facing, somebody
from convergebench.drawing.shapes import box, ellipse, ribbon, union
from convergebench.drawing.strands import Coat, Strand, coat, paint_coat
from convergebench.drawing.wardrobe import paint_figure

_SHORE = 0.470
# Who, where the middle of the face is, its size, where it looks, how much it smiles, the arms.
_GROUP = (
    (17, 0.235, 0.392, 0.0252, 0.30, 0.3, ("hang", "hang")),
    (68, 0.440, 0.402, 0.0246, -0.10, 0.8, ("hang", "hang")),
    (3, 0.655, 0.388, 0.0256, -0.30, 0.2, ("hang", "hang")),
    (41, 0.125, 0.424, 0.0266, 0.45, 0.7, ("wave", "hang")),
    (22, 0.335, 0.416, 0.0280, 0.15, 0.9, ("hang", "hang")),
    (25, 0.545, 0.436, 0.0262, 0.05, 0.6, ("fold", "hip")),
    (29, 0.752, 0.420, 0.0274, -0.35, 0.5, ("hang", "hip")),
    (35, 0.885, 0.432, 0.0262, -0.50, 0.9, ("hip", "hang")),
)


def face_small(canvas: Canvas) -> None:
    """A group of friends on a lawn by a lake, with trees and houses behind."""
    _far(canvas)
    _lawn(canvas)
    paint_coat(canvas, _blades(0.48, 0.80, 0))
    for index, (who, x, y, size, turn, smile, arms) in enumerate(_GROUP):
        person = facing(somebody(who, 3), turn, smile)
        _stand(canvas, person, (x, y, size), arms, index % 2)
    paint_coat(canvas, _blades(0.76, 1.12, 1))


def _stand(
    canvas: Canvas,
    person: Person,
    place: tuple[float, float, float],
    arms: tuple[str, str],
    stance: int,
) -> None:
    """One of them, with the shadow on the grass."""
    x, y, size = place
    foot = y + 14.4 * size
    canvas.shade(
        (x - 1.2 * size, foot - 1.1 * size, x + 7.5 * size, foot + 1.3 * size), rgb(0x0C1A08), 0.75
    )
    paint_figure(canvas.placed(x, y, size), person, arms, stance == 0, 0.10 if stance else -0.15)


def _far(canvas: Canvas) -> None:
    """Sky, hills, a lake and a line of trees on its other shore."""
    x, y = canvas.grid
    cloud = fbm(x * 2.6, y * 7.0, 21, 5, canvas.px * 7.0)
    blue = gradient(y, (-0.1, rgb(0x5E97CF)), (0.36, rgb(0xCFE0EC)))
    canvas.blend(washed(blue, rgb(0xFBFAF6), smooth(cloud, 0.48, 0.72) * 0.85), 1.0)
    ridge = 0.250 + 0.07 * (fbm(x * 3.0, 0.0 * y, 22, 4) - 0.5)
    canvas.blend(rgb(0x8FA6B8), smooth(y - ridge, -0.002, 0.002) * 0.85)
    water = smooth(y, 0.376, 0.379)
    ripple = noise(x * 24.0, y * 300.0, 23) * 0.6 + noise(x * 60.0, y * 520.0, 24) * 0.4
    canvas.blend(
        gradient(ripple + (y - 0.42) * 2.0, (0.2, rgb(0x52788E)), (0.8, rgb(0xC6D8E0))), water
    )
    left, _, right, _ = canvas.extent
    step = 0.021
    for index in range(math.floor(left / step) - 3, math.ceil(right / step) + 3):
        dice = Dice(index, 2207)
        tall = dice.roll(0.05, 0.115)
        _tree(canvas, (index + dice.roll()) * step, 0.380, tall, dice.pick(4))
    for index in range(math.floor(left / 0.31) - 1, math.ceil(right / 0.31) + 1):
        _house(canvas, index * 0.31 + 0.11, Dice(index, 2209).pick(3))
    canvas.blend(
        rgb(0x2E4A34), 0.5 * bump((y - 0.386) * 1.0, 0.0, 0.014) * smooth(ripple, 0.2, 0.7)
    )


_GREENS = (rgb(0x3C6B35), rgb(0x527F3A), rgb(0x2F5A3C), rgb(0x6B8A3E))


def _tree(canvas: Canvas, x: float, foot: float, tall: float, kind: int) -> None:
    """A round tree: a crown of tufts lit from the left, and its trunk."""
    crown = ellipse(x, foot - 0.58 * tall, 0.30 * tall, 0.44 * tall)
    part = canvas.crop(crown.bounds, 0.06 * tall)
    canvas.fill(box(x - 0.02 * tall, foot - 0.3 * tall, x + 0.02 * tall, foot), rgb(0x3A2C22))
    if part is None:
        return
    u, v = part.grid
    k = 1.0 / tall
    tuft = grit(u * 6.5 * k, v * 6.5 * k, 31 + kind, 4, part.px * 6.5 * k)
    gap = crown.distance(u, v) - 0.10 * tall * tuft
    light = 0.46 - 0.8 * (u - x) * k - 0.7 * (v - foot + 0.58 * tall) * k + 0.55 * tuft
    green = _GREENS[kind]
    tint = gradient(
        light,
        (0.0, tinted(green, rgb(0x0C1E18), 0.75)),
        (0.5, green),
        (1.0, tinted(green, rgb(0xEAF0A0), 0.55)),
    )
    part.blend(tint, part.cover(gap))


def _house(canvas: Canvas, x: float, kind: int) -> None:
    """A house on the far shore: gable, windows, red roof."""
    wall = (rgb(0xEDE3D0), rgb(0xD9B48C), rgb(0xC9CFD6))[kind]
    canvas.fill(box(x, 0.338, x + 0.062, 0.380), wall)
    roof = ribbon((x - 0.004, 0.336), (x + 0.031, 0.318), (x + 0.066, 0.336), width=0.010, steps=1)
    canvas.fill(union(roof, box(x + 0.004, 0.328, x + 0.058, 0.338)), rgb(0x9A4A36))
    for column in range(3):
        for row in range(2):
            left, top = x + 0.009 + 0.018 * column, 0.344 + 0.016 * row
            canvas.fill(box(left, top, left + 0.009, top + 0.010), rgb(0x3A4652))


def _lawn(canvas: Canvas) -> None:
    """Grass that runs from the shore to the viewer, with a sandy path and mottled shade."""
    part = canvas.crop((-9.0, _SHORE - 0.02, 9.0, 9.0))
    if part is None:
        return
    x, y = part.grid
    shore = _SHORE + 0.010 * (noise(x * 9.0, 0.0 * y, 41) - 0.5)
    deep = 1.0 / (y - _SHORE + 0.16)
    u, v = (x - 0.5) * deep * 2.0, deep * 3.0
    patch = fbm(u * 3.0, v * 3.0, 42, 4)
    blade = grit(x * 130.0, y * 60.0, 43, 3, part.px * 130.0)
    light = 0.36 + 0.42 * patch + 0.20 * blade + 0.10 * smooth(y, 0.5, 0.6)
    tint = gradient(
        light,
        (0.15, rgb(0x24401C)),
        (0.45, rgb(0x4C7A2C)),
        (0.70, rgb(0x7FA03C)),
        (0.95, rgb(0xC3CF6E)),
    )
    part.blend(tint, part.cover(shore - y))
    part.blend(rgb(0x14280F), 0.55 * smooth(fbm(u * 1.4, v * 1.2, 45, 3), 0.56, 0.72))


@lru_cache(maxsize=2)
def _blades(top: float, bottom: float, seed: int) -> Coat:
    """Single blades of grass, longer towards the viewer, and some daisies' stalks."""
    made = []
    count = 2600 if seed else 1500
    for index in range(count):
        dice = Dice(index, 5003, seed)
        x, t = dice.roll(-0.5, 1.5), dice.roll()
        y = top + (bottom - top) * t
        tall = (0.006 + 0.050 * (y - _SHORE)) * dice.roll(0.6, 1.4)
        c, s = direction(dice.roll(-0.29, -0.21))
        shade: Colour = tinted(rgb(0x2C5A1E), rgb(0xB4C860), dice.roll() * dice.roll() + 0.1)
        made.append(
            (y, Strand(x, y, c * tall, s * tall, 0.0016 + 0.0018 * (y - _SHORE), shade,
                       dice.roll(-0.15, 0.15), 0.85))
        )  # fmt: skip
    made.sort(key=lambda entry: entry[0])
    return coat([strand for _, strand in made])
