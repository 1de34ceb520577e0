"""The scene `still-life`: a bowl of fruit, a vase of flowers and a cloth on a table."""

from __future__ import annotations

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import (
    Field,
    Value,
    bump,
    fbm,
    length,
    noise,
    ramp,
    sharpen,
    smooth,
    stripes,
    unit,
    wave,
)
from convergebench.drawing.fruit import (
    apple,
    banana,
    cherry,
    grapes,
    lemon,
    orange,
    pear,
    petal_ring,
    plum,
)
from convergebench.drawing.shading import barrel, gleam, lambert, lit, profile, turned_body
from convergebench.drawing.shapes import (
    blob,
    both,
    box,
    circle,
    cut,
    ellipse,
    ribbon,
    turned,
    union,
)

_TABLE = 0.600
_VASE = (
    (0.335, 0.052), (0.350, 0.047), (0.395, 0.033), (0.440, 0.038), (0.550, 0.092), (0.640, 0.078),
    (0.715, 0.050), (0.728, 0.056),
)  # fmt: skip
_VASE_X = 0.245
_BOWL_X, _RIM_Y, _RIM_RX, _RIM_RY = 0.610, 0.600, 0.245, 0.050
_CLOTH = blob(
    (0.330, 0.735), (0.420, 0.665), (0.560, 0.640), (0.760, 0.650), (0.900, 0.700), (0.960, 0.780),
    (0.900, 0.900), (0.840, 1.020), (0.770, 1.000), (0.690, 1.080), (0.600, 1.010), (0.520, 1.060),
    (0.450, 0.950), (0.360, 0.850), steps=6,
)  # fmt: skip


def still_life(canvas: Canvas) -> None:
    """Fruit in a glazed bowl, a vase with flowers, lemons and grapes on a draped cloth."""
    _room(canvas)
    _cloth(canvas)
    _vase(canvas)
    _bowl(canvas)
    for x, y, size, painter in (
        (0.885, 0.790, 0.058, plum),
        (0.800, 0.835, 0.050, cherry),
        (0.395, 0.840, 0.070, lemon),
        (0.520, 0.885, 0.100, grapes),
    ):
        _drop_shadow(canvas, x, y + size * 0.62, size)
        painter(canvas.placed(x, y, size))
    _varnish(canvas)


def _varnish(canvas: Canvas) -> None:
    """Brushwork over all, and darker corners."""
    x, y = canvas.grid
    brush = fbm(x * 30.0 + y * 11.0, y * 52.0 - x * 14.0, 51, 2, canvas.px * 52.0) - 0.5
    corner = length(x - 0.46, (y - 0.48) * 0.9)
    canvas.planes[:] *= (1.0 + 0.075 * brush) * (1.0 - 0.45 * smooth(corner, 0.34, 0.95))


def _drop_shadow(canvas: Canvas, x: float, y: float, size: float) -> None:
    """Shadow on the table, thrown to the right."""
    dark = rgb(0x120A0A)
    canvas.shade((x - size * 1.0, y - size * 0.38, x + size * 2.1, y + size * 0.62), dark, 0.62)
    canvas.shade((x - size * 1.0, y - size * 0.15, x + size * 1.2, y + size * 0.50), dark, 0.70)


def _room(canvas: Canvas) -> None:
    """A brown wall with a pool of light, and the table's worn wood."""
    x, y = canvas.grid
    cloud = fbm(x * 2.4, y * 2.4, 3, 5, canvas.px * 2.4)
    pool = bump(length(x - 0.36, (y - 0.34) * 1.05), 0.0, 0.80)
    tint = gradient(
        0.62 * pool + 0.38 * cloud,
        (0.10, rgb(0x17120F)),
        (0.45, rgb(0x43352A)),
        (0.75, rgb(0x7B6648)),
        (1.0, rgb(0xA98E62)),
    )
    canvas.blend(tint, 1.0)
    part = canvas.crop((-1e6, _TABLE, 1e6, 1e6))
    if part is None:
        return
    x, y = part.grid
    z = 0.5 / np.maximum(y - 0.30, 0.05)
    grain = (
        noise((x - 0.5) * z * 2.0, z * 46.0, 11) * 0.6
        + noise((x - 0.5) * z * 7.0, z * 150.0, 12) * 0.4
    )
    wood = gradient(grain, (0.2, rgb(0x3A1E12)), (0.8, rgb(0x7A4526)))
    light = 1.25 - 0.85 * length(x - 0.25, (y - 0.80) * 0.8)
    sheen = smooth(y, 0.72, _TABLE) * 0.14
    board = washed(scaled(wood, light), rgb(0xB79A72), sheen)
    part.blend(board, part.cover(_TABLE - y))


def _cloth(canvas: Canvas) -> None:
    """A linen cloth with a blue border, hanging in folds over the edge of the table."""
    canvas.fill(_CLOTH, (0.05, 0.03, 0.03), 0.6, 0.030)

    def folds(x: Field, y: Field) -> Field:
        fan = (x - 0.62) / (0.55 + 0.85 * np.maximum(y - 0.64, 0.0))
        hang = smooth(y + 0.10 * wave(x * 2.1), 0.72, 0.98)
        return (
            0.030 * wave(fan * 4.3 + 0.35 * noise(x * 4.0, y * 4.0, 21)) * (0.12 + hang)
            + 0.010 * wave(fan * 9.0 + y * 1.5) * hang
        )

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        step = 0.004
        here = folds(x, y)
        slope_x = (folds(x + step, y) - here) * (1.0 / step)
        slope_y = (folds(x, y + step) - here) * (1.0 / step)
        light = unit(
            0.66 + 0.72 * slope_x + 0.35 * slope_y + 5.0 * here - 0.30 * smooth(x, 0.55, 1.0)
        )
        threads = min(max(1.6 - part.px * 240.0 * 1.2, 0.0), 1.0) * 0.06
        weave = wave(x * 240.0) * wave(y * 240.0) * threads
        tint: list[Value] = list(
            gradient(
                light + weave,
                (0.0, rgb(0x4B3F46)),
                (0.45, rgb(0xA99C94)),
                (0.75, rgb(0xE6DCCB)),
                (1.0, rgb(0xFFF8E8)),
            )
        )
        edge = -_CLOTH.distance(x, y)
        hem = ramp(edge, 0.018, 0.020) * ramp(edge, 0.030, 0.028) + ramp(edge, 0.036, 0.037) * ramp(
            edge, 0.042, 0.041
        )
        return washed(tint, scaled(rgb(0x2F5C8F), 0.45 + 0.75 * light), hem * 0.85)

    canvas.fill(_CLOTH, paint)


def _flower(canvas: Canvas, colour: Colour, heart: Colour) -> None:
    """A full blossom of three rings of petals."""
    petal_ring(canvas, 11, 0.34, (0.22, 0.34), tinted(colour, (0.1, 0.0, 0.1), 0.20), 0.02)
    petal_ring(canvas, 9, 0.16, (0.19, 0.28), colour, 0.06)
    petal_ring(canvas, 7, 0.02, (0.15, 0.20), tinted(colour, (1.0, 0.95, 0.85), 0.30), 0.0)
    canvas.fill(circle(0.0, 0.0, 0.16), lambda part: lit(heart, 0.6 - part.x - part.y))


_BLOOMS = (
    (0.165, 0.215, 0.088, 0xE9E2D0, 0xE0A92E),
    (0.345, 0.205, 0.082, 0xE58A3C, 0x7A3312),
    (0.255, 0.125, 0.086, 0xD8485A, 0xF2C14B),
    (0.250, 0.285, 0.080, 0xF0B7C0, 0xE0A92E),
    (0.405, 0.300, 0.056, 0x8E7CC3, 0xF2D55B),
    (0.110, 0.320, 0.058, 0xD8485A, 0xF2C14B),
)


def _leaf(canvas: Canvas, x: float, y: float, size: float, turns: float) -> None:
    """A pointed leaf that starts at (x, y)."""
    near = canvas.placed(x, y, size)
    leaf = both(circle(0.5, 0.38, 0.63), circle(0.5, -0.38, 0.63))
    near.fill(
        turned(leaf, 0.0, 0.0, turns),
        lambda part: lit(
            rgb(0x4C7A3B),
            0.52 + 0.35 * noise(part.x * 3.0, part.y * 3.0, 4) - 0.25 * part.x - 0.30 * part.y,
        ),
    )
    near.fill(turned(box(0.02, -0.012, 0.92, 0.012), 0.0, 0.0, turns), rgb(0x9DB97A), 0.8)


def _vase(canvas: Canvas) -> None:
    """A slender blue vase with a painted band, and the flowers in it."""
    _drop_shadow(canvas, _VASE_X + 0.01, 0.722, 0.085)
    for x, y, _, _, _ in _BLOOMS:
        stem = ribbon(
            (_VASE_X + (x - _VASE_X) * 0.12, 0.36),
            (_VASE_X + (x - _VASE_X) * 0.55, 0.30),
            (x, y),
            width=0.008,
        )
        canvas.fill(stem, rgb(0x3B5F2F))
    for x, y, size, turns in (
        (0.20, 0.33, 0.13, 0.46),
        (0.29, 0.33, 0.13, 0.06),
        (0.22, 0.29, 0.14, 0.60),
        (0.29, 0.28, 0.15, 0.90),
        (0.25, 0.22, 0.13, 0.80),
        (0.19, 0.24, 0.11, 0.68),
    ):
        _leaf(canvas, x, y, size, turns)
    for x, y, size, colour, heart in reversed(_BLOOMS):
        canvas.shade(
            (x - size * 1.1, y - size * 0.9, x + size * 1.35, y + size * 1.4), rgb(0x120F0C), 0.45
        )
        _flower(canvas.placed(x, y, size), rgb(colour), rgb(heart))

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        across = (x - _VASE_X) / profile(y, *_VASE)
        normal = barrel(across, (y - 0.56) * 2.2)
        light = lambert(normal)
        tint: list[Value] = list(lit(rgb(0x2F6C8C), light, 0.62))
        band = (
            stripes((y - 0.500) * (1.0 / 0.120), 1.0, 0.001)
            * ramp(y, 0.498, 0.500)
            * ramp(y, 0.580, 0.578)
        )
        zig = (
            np.abs(y - 0.539 - 0.020 * wave(across * (0.55 + 0.16 * across * across) * 3.0))
            - 0.0045
        )
        white = lit(rgb(0xEDE6D2), light, 0.55)
        tint = washed(tint, white, band * unit(0.5 - zig / part.px))
        lines = unit(0.5 - (np.abs(np.abs(y - 0.539) - 0.036) - 0.003) / part.px)
        tint = washed(tint, white, lines)
        glint = (
            sharpen(unit(1.0 - np.abs(across + 0.52) * 2.4), 2)
            * smooth(y, 0.37, 0.50)
            * smooth(y, 0.68, 0.56)
        )
        rim = smooth(across, 0.62, 1.0) * 0.25
        tint = washed(tint, rgb(0xB8946A), rim)
        return washed(tint, (1.0, 1.0, 0.97), glint * 0.65)

    canvas.fill(union(turned_body(_VASE_X, _VASE), ellipse(_VASE_X, 0.727, 0.056, 0.011)), paint)
    canvas.fill(ellipse(_VASE_X, 0.337, 0.050, 0.009), rgb(0x0D2230))
    lip = cut(ellipse(_VASE_X, 0.338, 0.053, 0.012), ellipse(_VASE_X, 0.336, 0.047, 0.008))
    canvas.fill(lip, rgb(0x7FB0C4))


def _bowl(canvas: Canvas) -> None:
    """The bowl: its inside, the fruit in it, then its front with a painted rim."""
    dark = rgb(0x120A0A)
    canvas.shade((0.430, 0.730, 0.960, 0.850), dark, 0.75)
    canvas.shade((0.490, 0.755, 0.780, 0.815), dark, 0.70)
    rim = ellipse(_BOWL_X, _RIM_Y, _RIM_RX, _RIM_RY)
    canvas.fill(rim, lambda part: gradient(part.x, (0.36, rgb(0x4A4038)), (0.86, rgb(0xB9AE9A))))
    for x, y, size, painter in (
        (0.735, 0.505, 0.110, pear),
        (0.475, 0.530, 0.125, banana),
        (0.485, 0.552, 0.125, banana),
        (0.520, 0.525, 0.086, orange),
        (0.620, 0.480, 0.098, apple),
        (0.435, 0.582, 0.064, plum),
        (0.795, 0.582, 0.070, orange),
        (0.560, 0.592, 0.080, lemon),
        (0.690, 0.585, 0.085, apple),
    ):
        canvas.shade((x - size * 1.1, y - size, x + size * 1.5, y + size * 1.3), dark, 0.55)
        painter(canvas.placed(x, y, size))
    body = cut(both(ellipse(_BOWL_X, _RIM_Y, _RIM_RX, 0.190), box(0.0, _RIM_Y, 1.0, 0.775)), rim)
    foot = both(box(_BOWL_X - 0.088, 0.760, _BOWL_X + 0.088, 0.792, 0.008), box(0.0, 0.0, 1.0, 1.0))

    def paint(part: Canvas) -> list[Value]:
        x, y = part.grid
        down = unit((y - _RIM_Y) * (1.0 / 0.19))
        wide = np.sqrt(np.maximum(1.0 - down * down, 0.03)) * _RIM_RX
        across = (x - _BOWL_X) / wide
        normal = barrel(across, down * 0.75)
        light = lambert(normal) * (1.05 - 0.25 * down)
        glaze: list[Value] = list(lit(rgb(0xDDD3BE), light, 0.58))
        level = y - _RIM_RY * np.sqrt(np.maximum(1.0 - across * across, 0.0)) - _RIM_Y
        ink = lit(rgb(0x2D4F8C), light, 0.5)
        for low, high in ((0.012, 0.018), (0.062, 0.068)):
            glaze = washed(
                glaze, ink, ramp(level, low - part.px, low) * ramp(level, high + part.px, high)
            )
        bend = across * (0.62 + 0.30 * across * across)
        beads = length((bend * 9.0 - np.floor(bend * 9.0) - 0.5) * 0.045, level - 0.040) - 0.0125
        glaze = washed(glaze, ink, unit(0.5 - beads / part.px))
        shine = sharpen(unit(1.0 - length((across + 0.48) * 1.6, (down - 0.34) * 2.4)), 1)
        return washed(glaze, (1.0, 1.0, 0.98), shine * 0.75 + gleam(normal, 5) * 0.25)

    canvas.fill(foot, paint)
    canvas.fill(body, paint)
    edge = ellipse(_BOWL_X, _RIM_Y, _RIM_RX + 0.006, _RIM_RY + 0.006)
    lip = both(cut(edge, rim), box(0.0, _RIM_Y, 1.0, 1.0))
    canvas.fill(lip, lambda part: gradient(part.x, (0.36, rgb(0xFFF8E8)), (0.86, rgb(0x8F8474))))
