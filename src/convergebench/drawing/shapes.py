"""Shapes by signed distance, and the ways to combine them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from convergebench.drawing.canvas import Bounds, Shape
from convergebench.drawing.fields import Field, direction, length

Point = tuple[float, float]

_FAR = 1e3
_FEW_EDGES = 12


def circle(x: float, y: float, radius: float) -> Shape:
    """A disc."""
    return Shape(
        (x - radius, y - radius, x + radius, y + radius),
        lambda u, v: length(u - x, v - y) - radius,
    )


def ellipse(x: float, y: float, rx: float, ry: float) -> Shape:
    """An ellipse; the distance is to first order, exact on the outline."""

    def distance(u: Field, v: Field) -> Field:
        a, b = (u - x) * (1.0 / rx), (v - y) * (1.0 / ry)
        value = np.sqrt(a * a + b * b)
        slope = np.sqrt((a * (1.0 / rx)) * (a * (1.0 / rx)) + (b * (1.0 / ry)) * (b * (1.0 / ry)))
        return value * (value - 1.0) / np.maximum(slope, 1e-9)

    return Shape((x - rx, y - ry, x + rx, y + ry), distance)


def box(x0: float, y0: float, x1: float, y1: float, radius: float = 0.0) -> Shape:
    """A rectangle with rounded corners."""
    cx, cy = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
    hx, hy = 0.5 * (x1 - x0) - radius, 0.5 * (y1 - y0) - radius

    def distance(u: Field, v: Field) -> Field:
        dx, dy = np.abs(u - cx) - hx, np.abs(v - cy) - hy
        outside = length(np.maximum(dx, 0.0), np.maximum(dy, 0.0))
        return outside + np.minimum(np.maximum(dx, dy), 0.0) - radius

    return Shape((x0, y0, x1, y1), distance)


def line(a: Point, b: Point, width: float, end_width: float | None = None) -> Shape:
    """A stroke with round ends, `width` thick at `a` and `end_width` at `b`."""
    first = 0.5 * width
    last = first if end_width is None else 0.5 * end_width
    dx, dy = b[0] - a[0], b[1] - a[1]
    square = max(dx * dx + dy * dy, 1e-18)

    def distance(u: Field, v: Field) -> Field:
        p, q = u - a[0], v - a[1]
        t = np.minimum(np.maximum((p * dx + q * dy) * (1.0 / square), 0.0), 1.0)
        return length(p - dx * t, q - dy * t) - (first + (last - first) * t)

    reach = max(first, last)
    return Shape(
        (
            min(a[0], b[0]) - reach,
            min(a[1], b[1]) - reach,
            max(a[0], b[0]) + reach,
            max(a[1], b[1]) + reach,
        ),
        distance,
    )


def polyline(points: Sequence[Point], width: float, end_width: float | None = None) -> Shape:
    """A stroke through points with round joints, thinning evenly to `end_width`."""
    last = width if end_width is None else end_width
    pieces = len(points) - 1
    widths = [width + (last - width) * (i / pieces) for i in range(pieces + 1)]
    return union(*(line(points[i], points[i + 1], widths[i], widths[i + 1]) for i in range(pieces)))


def curve(points: Sequence[Point], steps: int = 6, closed: bool = False) -> list[Point]:
    """Points of a Catmull-Rom spline through `points`."""
    count = len(points)
    spans = count if closed else count - 1
    track: list[Point] = []
    for i in range(spans):
        around = [
            points[(i + k) % count] if closed else points[min(max(i + k, 0), count - 1)]
            for k in (-1, 0, 1, 2)
        ]
        for step in range(steps):
            t = step / steps
            track.append((_spline(t, *(p[0] for p in around)), _spline(t, *(p[1] for p in around))))
    if not closed:
        track.append(points[-1])
    return track


def _spline(t: float, a: float, b: float, c: float, d: float) -> float:
    """Catmull-Rom interpolation between `b` and `c`."""
    return b + 0.5 * t * (
        c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a))
    )


def polygon(points: Sequence[Point]) -> Shape:
    """The inside of a closed polygon.

    With many edges, the distance further than an eighth of the polygon's size from its outline is
    only known to be large: each edge is then looked at near itself, which is much cheaper.
    """
    ends = [*points[1:], points[0]]
    edges = [(a, b) for a, b in zip(points, ends, strict=True) if a != b]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    bounds = (min(xs), min(ys), max(xs), max(ys))
    reach = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
    if len(edges) > _FEW_EDGES:
        reach *= 0.125

    def distance(u: Field, v: Field) -> Field:
        size = np.broadcast_shapes(u.shape, v.shape)
        nearest = np.full(size, _FAR * _FAR)
        inside = np.zeros(size, dtype=np.bool_)
        # Plain axes, not turned or mirrored ones: parts of them can be picked by position.
        apart = u.shape[0] == 1 and v.shape[1] == 1 and bool(u[0, 0] <= u[0, -1])
        rows, columns = slice(None), slice(None)
        for (x0, y0), (x1, y1) in edges:
            ex, ey = x1 - x0, y1 - y0
            if apart:
                columns = _between(u[0], min(x0, x1) - reach, max(x0, x1) + reach)
                rows = _between(v[:, 0], min(y0, y1) - reach, max(y0, y1) + reach)
            near = nearest[rows, columns]
            if near.size:
                p, q = (u[:, columns] - x0, v[rows] - y0) if apart else (u - x0, v - y0)
                np.minimum(near, _gap(p, q, ex, ey), out=near)
            if ey != 0.0:
                # A ray to the right crosses this edge where the row is between its ends.
                if apart:
                    rows = _between(v[:, 0], min(y0, y1), max(y0, y1))
                    inside[rows] ^= (u - x0) < (v[rows] - y0) * (ex / ey)
                else:
                    crossed = (v >= min(y0, y1)) & (v < max(y0, y1))
                    inside ^= crossed & ((u - x0) < (v - y0) * (ex / ey))
        np.sqrt(nearest, out=nearest)
        return np.where(inside, -nearest, nearest)

    return Shape(bounds, distance)


def _between(values: Field, low: float, high: float) -> slice:
    """Where ascending `values` are in [low, high)."""
    start, stop = values.searchsorted((low, high)).tolist()
    return slice(start, stop)


def _gap(p: Field, q: Field, ex: float, ey: float) -> Field:
    """Squared distance from (p, q) to the segment from the origin to (ex, ey)."""
    square = ex * ex + ey * ey
    t = p * (ex / square) + q * (ey / square)
    np.maximum(t, 0.0, out=t)
    np.minimum(t, 1.0, out=t)
    a = p - ex * t
    t *= ey
    np.subtract(q, t, out=t)
    a *= a
    t *= t
    a += t
    return a


def blob(*points: Point, steps: int = 6) -> Shape:
    """The inside of a smooth closed curve through `points`."""
    return polygon(curve(points, steps, closed=True))


def ribbon(*points: Point, width: float, end_width: float | None = None, steps: int = 6) -> Shape:
    """A stroke along a smooth curve through `points`."""
    return polyline(curve(points, steps), width, end_width)


def _hull(shapes: Sequence[Shape]) -> Bounds:
    """The box around some shapes."""
    return (
        min(s.bounds[0] for s in shapes),
        min(s.bounds[1] for s in shapes),
        max(s.bounds[2] for s in shapes),
        max(s.bounds[3] for s in shapes),
    )


def union(*shapes: Shape) -> Shape:
    """Everything inside any of the shapes."""

    def distance(u: Field, v: Field) -> Field:
        nearest = shapes[0].distance(u, v)
        for shape in shapes[1:]:
            nearest = np.minimum(nearest, shape.distance(u, v))
        return nearest

    return Shape(_hull(shapes), distance)


def melt(radius: float, *shapes: Shape) -> Shape:
    """A union whose inner corners are filled to about `radius`."""

    def distance(u: Field, v: Field) -> Field:
        nearest = shapes[0].distance(u, v)
        for shape in shapes[1:]:
            other = shape.distance(u, v)
            near = np.maximum(radius - np.abs(nearest - other), 0.0)
            nearest = np.minimum(nearest, other) - near * near * (0.25 / radius)
        return nearest

    x0, y0, x1, y1 = _hull(shapes)
    swell = 0.25 * radius
    return Shape((x0 - swell, y0 - swell, x1 + swell, y1 + swell), distance)


def both(a: Shape, b: Shape) -> Shape:
    """What lies inside `a` and inside `b`."""
    bounds = (
        max(a.bounds[0], b.bounds[0]),
        max(a.bounds[1], b.bounds[1]),
        min(a.bounds[2], b.bounds[2]),
        min(a.bounds[3], b.bounds[3]),
    )
    return Shape(bounds, lambda u, v: np.maximum(a.distance(u, v), b.distance(u, v)))


def cut(a: Shape, b: Shape) -> Shape:
    """`a` without `b`."""
    return Shape(a.bounds, lambda u, v: np.maximum(a.distance(u, v), -b.distance(u, v)))


def grown(shape: Shape, margin: float) -> Shape:
    """The shape with its outline moved outwards by `margin` (inwards when negative)."""
    x0, y0, x1, y1 = shape.bounds
    return Shape(
        (x0 - margin, y0 - margin, x1 + margin, y1 + margin),
        lambda u, v: shape.distance(u, v) - margin,
    )


def outline(shape: Shape, width: float) -> Shape:
    """A line of `width` centred on the shape's edge."""
    x0, y0, x1, y1 = shape.bounds
    half = 0.5 * width
    return Shape(
        (x0 - half, y0 - half, x1 + half, y1 + half),
        lambda u, v: np.abs(shape.distance(u, v)) - half,
    )


def turned(shape: Shape, x: float, y: float, turns: float) -> Shape:
    """The shape rotated about (x, y); positive turns run from the x axis to the y axis."""
    c, s = direction(turns)
    x0, y0, x1, y1 = shape.bounds
    corners = [
        (x + (p - x) * c - (q - y) * s, y + (p - x) * s + (q - y) * c)
        for p in (x0, x1)
        for q in (y0, y1)
    ]
    inner: Callable[[Field, Field], Field] = shape.distance

    def distance(u: Field, v: Field) -> Field:
        p, q = u - x, v - y
        return inner(x + p * c + q * s, y + q * c - p * s)

    xs, ys = [p for p, _ in corners], [q for _, q in corners]
    return Shape((min(xs), min(ys), max(xs), max(ys)), distance)


def mirrored(shape: Shape, x: float) -> Shape:
    """The shape reflected in the vertical line at `x`."""
    x0, y0, x1, y1 = shape.bounds
    return Shape((2.0 * x - x1, y0, 2.0 * x - x0, y1), lambda u, v: shape.distance(2.0 * x - u, v))
