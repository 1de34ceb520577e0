"""The picture surface: a band of pixels with coordinates, and blending paint into it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from convergebench.drawing.fields import Field, Value, smooth, unit

Colour: TypeAlias = tuple[float, float, float]
Tint: TypeAlias = "Sequence[Value]"
Bounds: TypeAlias = tuple[float, float, float, float]

INK: Colour = (0.165, 0.125, 0.235)

# One band's planes and temporaries then stay within a common second-level cache.
_BAND_PIXELS = 1 << 17


def rgb(code: int) -> Colour:
    """Colour from a hexadecimal literal such as 0xC04A2B."""
    return ((code >> 16 & 255) / 255.0, (code >> 8 & 255) / 255.0, (code & 255) / 255.0)


def tinted(a: Colour, b: Colour, t: float) -> Colour:
    """Colour on the way from `a` (t = 0) to `b` (t = 1)."""
    return (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t)


def gradient(t: Field, *stops: tuple[float, Colour]) -> list[Field]:
    """Colours running through `stops` (position, colour), linear between, constant outside."""
    first = stops[0][1]
    planes = [np.full_like(t, channel) for channel in first]
    position, before = stops[0]
    for stop, colour in stops[1:]:
        share = unit((t - position) * (1.0 / (stop - position)))
        for plane, low, high in zip(planes, before, colour, strict=True):
            plane += (high - low) * share
        position, before = stop, colour
    return planes


def washed(tint: Tint, colour: Tint, t: Value) -> list[Value]:
    """`tint` with `colour` mixed in by `t`."""
    return [a + (b - a) * t for a, b in zip(tint, colour, strict=True)]


def scaled(tint: Tint, factor: Value) -> list[Value]:
    """`tint` made brighter or darker by `factor`."""
    return [channel * factor for channel in tint]


@dataclass(frozen=True, slots=True)
class Shape:
    """A region: its signed distance (negative inside) and a box outside of which it is positive."""

    bounds: Bounds
    distance: Callable[[Field, Field], Field]


@dataclass(frozen=True, slots=True)
class Canvas:
    """A rectangle of pixels with their coordinates.

    Attributes:
        x: Column centres, shape (1, w).
        y: Row centres, shape (h, 1).
        origin: Centre of the whole picture's first pixel, in the units of `x` and `y`.
        corner: Column and row, in the whole picture, of this rectangle's first pixel. Crops are
            worked out from the two, so that they are the same pixels whatever band they fall in.
        px: Size of a pixel in the units of `x` and `y`.
        planes: Colour planes (3, h, w), or (4, h, w) with coverage last and colour premultiplied.
    """

    x: Field
    y: Field
    origin: tuple[float, float]
    corner: tuple[int, int]
    px: float
    planes: Field

    @property
    def grid(self) -> tuple[Field, Field]:
        """Both coordinates, ready to broadcast."""
        return self.x, self.y

    @property
    def extent(self) -> Bounds:
        """The box of coordinates these pixels cover."""
        _, rows, columns = self.planes.shape
        left = self.origin[0] + self.px * (self.corner[0] - 0.5)
        top = self.origin[1] + self.px * (self.corner[1] - 0.5)
        return left, top, left + self.px * columns, top + self.px * rows

    def placed(self, x: float, y: float, scale: float) -> Canvas:
        """The same pixels with (x, y) as origin and `scale` as unit of length."""
        k = 1.0 / scale
        return Canvas(
            (self.x - x) * k,
            (self.y - y) * k,
            ((self.origin[0] - x) * k, (self.origin[1] - y) * k),
            self.corner,
            self.px * k,
            self.planes,
        )

    def crop(self, bounds: Bounds, margin: float = 0.0) -> Canvas | None:
        """The pixels within `margin` and a pixel of `bounds`, or nothing."""
        k = 1.0 / self.px
        reach = margin * k + 1.0
        (left, top), (column, row) = self.origin, self.corner
        _, rows, columns = self.planes.shape
        x0 = max(math.floor((bounds[0] - left) * k - reach) - column, 0)
        x1 = min(math.ceil((bounds[2] - left) * k + reach) + 1 - column, columns)
        if x0 >= x1:
            return None
        y0 = max(math.floor((bounds[1] - top) * k - reach) - row, 0)
        y1 = min(math.ceil((bounds[3] - top) * k + reach) + 1 - row, rows)
        if y0 >= y1:
            return None
        return Canvas(
            self.x[:, x0:x1],
            self.y[y0:y1],
            self.origin,
            (column + x0, row + y0),
            self.px,
            self.planes[:, y0:y1, x0:x1],
        )

    def blend(self, tint: Tint, cover: Value) -> None:
        """Mix `tint` over the pixels by `cover`."""
        for plane, channel in zip(self.planes, tint, strict=False):
            plane += (channel - plane) * cover
        if len(self.planes) == 4:
            alpha = self.planes[3]
            alpha += (1.0 - alpha) * cover

    def cover(self, distance: Field) -> Field:
        """Share of each pixel on the negative side of a signed distance."""
        return unit(0.5 - distance * (1.0 / self.px))

    def fill(
        self,
        shape: Shape,
        paint: Paint,
        opacity: float = 1.0,
        soft: float = 0.0,
    ) -> None:
        """Paint a shape.

        Args:
            shape: What to cover.
            paint: A colour, or a function giving the colours of the cropped canvas.
            opacity: Coverage inside.
            soft: Half the width of the blurred edge; 0 for a crisp one.
        """
        part = self.crop(shape.bounds, soft)
        if part is None:
            return
        distance = shape.distance(part.x, part.y)
        cover = smooth(distance, soft, -soft) if soft > part.px else part.cover(distance)
        if opacity != 1.0:
            cover = cover * opacity
        part.blend(paint(part) if callable(paint) else paint, cover)

    def ink(self, shape: Shape, paint: Paint, pen: float) -> None:
        """Paint a shape with a dark line `pen` wide around it."""
        part = self.crop(shape.bounds, pen)
        if part is None:
            return
        distance = shape.distance(part.x, part.y)
        part.blend(INK, part.cover(distance - pen))
        part.blend(paint(part) if callable(paint) else paint, part.cover(distance))

    def glow(self, x: float, y: float, radius: float, tint: Tint, opacity: float) -> None:
        """Mix in a round soft spot, strongest at its centre and nothing at `radius`."""
        part = self.crop((x - radius, y - radius, x + radius, y + radius))
        if part is not None:
            k = 1.0 / radius
            dx, dy = (part.x - x) * k, (part.y - y) * k
            fall = np.maximum(1.0 - (dx * dx + dy * dy), 0.0)
            part.blend(tint, fall * fall * opacity)

    def shade(self, bounds: Bounds, tint: Tint, opacity: float) -> None:
        """Mix in an elliptic soft spot that fills `bounds`: airbrushed light or shadow."""
        part = self.crop(bounds)
        if part is not None:
            x0, y0, x1, y1 = bounds
            dx = (part.x - 0.5 * (x0 + x1)) * (2.0 / (x1 - x0))
            dy = (part.y - 0.5 * (y0 + y1)) * (2.0 / (y1 - y0))
            fall = np.maximum(1.0 - (dx * dx + dy * dy), 0.0)
            part.blend(tint, fall * fall * opacity)


Paint: TypeAlias = "Tint | Callable[[Canvas], Tint]"
Painter: TypeAlias = Callable[[Canvas], None]


def paint_rows(
    painter: Painter, size: tuple[int, int], rows: tuple[int, int], place: Bounds, channels: int
) -> NDArray[np.uint8]:
    """Pixels of some rows of a picture.

    Args:
        painter: Draws on any band; what it gives a pixel depends on the pixel's place alone.
        size: Width and height of the whole picture.
        rows: First row and the row after the last.
        place: The box of design coordinates that must be seen; it is fitted, centred, without
            stretching, so a picture of another shape shows more around it.
        channels: 3 for opaque colour, 4 for colour with straight alpha.
    """
    width, height = size
    x0, y0, x1, y1 = place
    px = max((x1 - x0) / width, (y1 - y0) / height)
    left = 0.5 * (x0 + x1) + (0.5 - 0.5 * width) * px
    top = 0.5 * (y0 + y1) + (0.5 - 0.5 * height) * px
    x = (left + np.arange(width, dtype=np.float64) * px)[np.newaxis, :]
    out = np.empty((rows[1] - rows[0], width, channels), dtype=np.uint8)
    step = max(_BAND_PIXELS // width, 1)
    for start in range(rows[0], rows[1], step):
        stop = min(start + step, rows[1])
        y = (top + np.arange(start, stop, dtype=np.float64) * px)[:, np.newaxis]
        planes = np.zeros((channels, stop - start, width), dtype=np.float64)
        painter(Canvas(x, y, (left, top), (0, start), px, planes))
        out[start - rows[0] : stop - rows[0]] = _quantise(planes)
    return out


def _quantise(planes: Field) -> NDArray[np.uint8]:
    """Planes in [0, 1] as interleaved bytes, undoing the premultiplication where there is alpha."""
    if len(planes) == 4:
        alpha = planes[3]
        planes[:3] /= np.where(alpha > 0.0, alpha, 1.0)
    levels = np.floor(unit(planes) * 255.0 + 0.5).astype(np.uint8)
    return np.ascontiguousarray(np.moveaxis(levels, 0, -1))
