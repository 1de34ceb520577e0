"""Light on surfaces: normals of simple solids, and colours from how much light they get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from convergebench.drawing.canvas import Bounds, Canvas, Colour, Shape, gradient, tinted
from convergebench.drawing.fields import Field, sharpen, smooth, unit

Normal: TypeAlias = tuple[Field, Field, Field]

# Towards the lamp: up, left and in front. Unit length, and so is the half-way vector to the eye.
LIGHT = (-0.48, -0.60, 0.64)
_HALFWAY = (-0.2651, -0.3313, 0.9055)

_NIGHT: Colour = (0.10, 0.07, 0.16)
_SUN: Colour = (1.0, 0.97, 0.88)


def dome(u: Field, v: Field) -> Normal:
    """Normals of the unit half sphere over (u, v); flat outside of it."""
    return u, v, np.sqrt(np.maximum(1.0 - u * u - v * v, 0.0))


def barrel(u: Field, tilt: Field | float = 0.0) -> Normal:
    """Normals of an upright solid of revolution; u runs from -1 to 1 across, `tilt` up its side."""
    u = np.minimum(np.maximum(u, -1.0), 1.0)
    return u, u * 0.0 + tilt, np.sqrt(1.0 - u * u)


def relief(shape: Shape, part: Canvas, depth: float) -> Normal:
    """Normals of a shape blown up like a cushion whose round edge is `depth` wide."""
    step = 0.25 * depth
    x, y = part.grid
    here = shape.distance(x, y)
    slope_x = (shape.distance(x + step, y) - here) * (1.0 / step)
    slope_y = (shape.distance(x, y + step) - here) * (1.0 / step)
    edge = unit(1.0 + here * (1.0 / depth))
    return slope_x * edge, slope_y * edge, np.sqrt(1.0 - edge * edge)


def lambert(normal: Normal, light: tuple[float, float, float] = LIGHT) -> Field:
    """How much light a matt surface gets, in [0, 1], with some wrapping around its edge."""
    nx, ny, nz = normal
    facing = nx * light[0] + ny * light[1] + nz * light[2]
    return unit(facing * 0.80 + 0.20)


def gleam(normal: Normal, doublings: int) -> Field:
    """The highlight of a glossy surface; more doublings make it smaller."""
    nx, ny, nz = normal
    return sharpen(unit(nx * _HALFWAY[0] + ny * _HALFWAY[1] + nz * _HALFWAY[2]), doublings)


def lit(
    colour: Colour, light: Field, night: float = 0.62, sun: float = 0.45, warm: Colour = _SUN
) -> list[Field]:
    """A colour from its shadow tone (light 0) over itself (light 0.6) to its bright tone (1)."""
    dark = tinted(tinted(colour, (0.0, 0.0, 0.0), 0.3), _NIGHT, night)
    return gradient(light, (0.0, dark), (0.62, colour), (1.0, tinted(colour, warm, sun)))


def profile(y: Field, *stops: tuple[float, float]) -> Field:
    """A radius along an axis: eased between (position, radius) stops, constant outside."""
    position, before = stops[0]
    radius: Field = y * 0.0 + before
    for stop, after in stops[1:]:
        radius = radius + (after - before) * smooth(y, position, stop)
        position, before = stop, after
    return radius


def turned_body(x: float, stops: Sequence[tuple[float, float]]) -> Shape:
    """The outline of a solid of revolution about the vertical at `x`, cut at its end stops."""
    low, high = stops[0][0], stops[-1][0]
    reach = max(radius for _, radius in stops)

    def distance(u: Field, v: Field) -> Field:
        # The side's slope would shrink the true distance a little; 0.9 keeps the edge crisp.
        side = (np.abs(u - x) - profile(v, *stops)) * 0.9
        return np.maximum(side, np.maximum(low - v, v - high))

    return Shape((x - reach, low, x + reach, high), distance)


def contact(canvas: Canvas, bounds: Bounds, strength: float) -> None:
    """A shadow on the ground under an object: wide and faint, with a dark narrow core."""
    x0, y0, x1, y1 = bounds
    cx, cy, rx, ry = 0.5 * (x0 + x1), 0.5 * (y0 + y1), 0.5 * (x1 - x0), 0.5 * (y1 - y0)
    ground: Colour = (0.06, 0.05, 0.09)
    canvas.shade(bounds, ground, 0.55 * strength)
    k = 0.72
    canvas.shade((cx - rx * k, cy - ry * k, cx + rx * k, cy + ry * k), ground, 0.6 * strength)
