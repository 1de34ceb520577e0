"""The loss 1 − SSIM of every window of two pictures, in tiles.

With D = μx − μy, V = the variance of x − y, A1 = 2μxμy + C1, A2 = 2σxy + C2, B1 = A1 + D² and
B2 = A2 + V,

    1 − SSIM = (A1·V + D²·B2) / (B1·B2),

which takes four filterings (x, y, xy, (x − y)²), has no cancellation in its last step, and is
exactly 0 for identical windows. The loss of its second factor alone, contrast and structure, is
1 − A2 / B2 = V / B2: one more division for those who want it (MS-SSIM).

What does cancel, V and σxy, is computed exactly in integers for the uniform window and in float64
for the Gaussian (in float32, a change of brightness in a flat region would cost 3e-5); the rest is
float32, summed in float64. Work is done in tiles that fit the cache, on as many threads as OpenCV
may use (`cv2.setNumThreads`); the result depends on neither.

Written by hand because it is faster than scikit-image and needs no full-size temporaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.bands import MAX_THREADS, Scratch, plane_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plane = NDArray[np.uint8] | NDArray[np.float32]
    Floats = NDArray[np.float32]

SCALE: Final = 400
C1: Final = 2601
C2: Final = 23409
"""(0.01·255)² and (0.03·255)², times 400: integers, so that float32 holds them exactly."""

TILE: Final = (128, 1024)
"""Rows and columns of windows filtered at once: few enough for memory, and so many that starting a
filter costs nothing and threads seldom meet at the interpreter's lock."""
CHUNK: Final = 1 << 15
"""Samples that go through the formula at once: all of its arrays fit a core's cache."""


@dataclass(frozen=True)
class Window:
    """How a window averages.

    Attributes:
        radius: Half its side.
        dtype: Type in which its averages are exact enough to be subtracted from each other.
        average: Filters a plane into an array of that type; sums instead of averages are fine.
        count: What such a sum has to be multiplied with to compare with a product of two sums.
        constants: C1 and C2 in the scale of those products, times `SCALE`.
    """

    radius: int
    dtype: type
    average: Callable[[NDArray[Any], NDArray[Any]], object]
    count: int
    constants: tuple[int, int]


def _gaussian_taps() -> NDArray[np.float64]:
    taps: NDArray[np.float64] = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
    taps /= taps.sum()
    return taps


_TAPS: Final = _gaussian_taps()

GAUSSIAN: Final = Window(
    radius=5,
    dtype=np.float64,
    average=lambda plane, out: cv2.sepFilter2D(plane, cv2.CV_64F, _TAPS, _TAPS, dst=out),
    count=1,
    constants=(C1, C2),
)
# Sums of 49 integers: means are Σx / 49, and sample covariances (49·Σxy − Σx·Σy) / (48·49).
UNIFORM: Final = Window(
    radius=3,
    dtype=np.int32,
    average=lambda plane, out: cv2.boxFilter(plane, cv2.CV_32S, (7, 7), dst=out, normalize=False),
    count=49,
    constants=(C1 * 49**2, C2 * 48 * 49),
)


def _losses(
    x: Plane, y: Plane, window: Window, contrast: bool, scratch: Scratch
) -> Sequence[Floats]:
    """The loss of each window of two planes, and that of its contrast and structure if wanted.

    Windows that stick out left and right are included.
    """
    averages = [scratch(name, x.shape, window.dtype) for name in ("x", "y", "xy", "squares")]
    for plane, out in zip((x, y, *_products(x, y, scratch)), averages, strict=True):
        window.average(plane, out)
    height, width = x.shape[0] - 2 * window.radius, x.shape[1]
    wanted = ("loss", "contrast") if contrast else ("loss",)
    losses: Sequence[Floats] = [scratch(name, (height, width), np.float32) for name in wanted]
    rows = max(1, CHUNK // width)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        part = slice(top + window.radius, bottom + window.radius)
        outs = [loss[top:bottom] for loss in losses]
        _formula([average[part] for average in averages], outs, window, scratch)
    return losses


def _products(x: Plane, y: Plane, scratch: Scratch) -> tuple[NDArray[Any], NDArray[Any]]:
    """Products xy and (x − y)², exact: 16-bit integers of 8-bit planes, doubles of others."""
    if x.dtype != np.uint8:
        xy, squares = (scratch(name, x.shape, np.float64) for name in ("products", "apart²"))
        np.multiply(x, y, out=xy, dtype=np.float64)
        np.subtract(x, y, out=squares, dtype=np.float64)
        squares *= squares
        return xy, squares
    xy = scratch("products", x.shape, np.uint16)
    np.multiply(x, y, out=xy, dtype=np.uint16)
    apart = scratch("apart", x.shape, np.uint8)
    cv2.absdiff(x, y, dst=apart)
    squares = scratch("apart²", x.shape, np.uint16)
    np.multiply(apart, apart, out=squares, dtype=np.uint16)
    return xy, squares


def _formula(
    averages: Sequence[NDArray[Any]], losses: Sequence[Floats], window: Window, scratch: Scratch
) -> None:
    """(A1·V + D²·B2) / (B1·B2) from the averages of x, y, xy and (x − y)², and V / B2 if wanted.

    The averages are overwritten: every pass over memory counts here.
    """
    x, y, covariance, variance = averages
    product = np.multiply(x, y, out=scratch("product", x.shape, window.dtype))
    if window.count != 1:
        covariance *= window.count
        variance *= window.count
    covariance -= product
    x -= y
    x *= x
    variance -= x

    def single(name: str, values: NDArray[Any]) -> Floats:
        out: Floats = scratch(name, values.shape, np.float32)
        np.copyto(out, values, casting="same_kind")
        return out

    a1, a2 = single("a1", product), single("a2", covariance)
    d, v = single("d", x), single("v", variance)
    # In NumPy, whose every element is rounded alike: OpenCV's last few of a row differ in a bit.
    a1 *= 2 * SCALE
    a1 += window.constants[0]
    a2 *= 2 * SCALE
    a2 += window.constants[1]
    d *= SCALE
    v *= SCALE
    b1 = np.add(a1, d, out=scratch("b1", d.shape, np.float32))
    b2 = np.add(a2, v, out=a2)
    a1 *= v
    d *= b2
    a1 += d
    b1 *= b2
    np.divide(a1, b1, out=losses[0])
    for contrast in losses[1:]:
        np.divide(v, b2, out=contrast)


def total_loss(
    x: Plane,
    y: Plane,
    window: Window,
    *,
    keep: Floats | None = None,
    tile: tuple[int, int] = TILE,
) -> float:
    """The loss summed over all window positions and channels of two pictures of one size.

    Args:
        x: A plane (H×W) or a picture (H×W×C).
        y: The other one.
        window: Whose loss.
        keep: Where to write the loss of each position, summed over channels.
        tile: Rows and columns computed at once.
    """
    return _totals(x, y, window, [keep], tile)[0]


def total_losses(
    x: Plane,
    y: Plane,
    window: Window,
    *,
    keep: Sequence[Floats | None] = (None, None),
) -> tuple[float, float]:
    """Like `total_loss`, and the same of contrast and structure alone."""
    loss, contrast = _totals(x, y, window, keep, TILE)
    return loss, contrast


def _totals(
    x: Plane, y: Plane, window: Window, keep: Sequence[Floats | None], tile: tuple[int, int]
) -> list[float]:
    border = 2 * window.radius
    height, width = x.shape[0] - border, x.shape[1] - border
    rows, columns = tile
    corners = [(y0, x0) for y0 in range(0, height, rows) for x0 in range(0, width, columns)]
    threads = max(1, min(cv2.getNumThreads(), MAX_THREADS, len(corners)))

    def work(first: int) -> list[list[float]]:
        scratch = Scratch()
        sums = []
        for top, left in corners[first::threads]:
            bottom, right = min(top + rows, height), min(left + columns, width)
            area = (slice(top, bottom + border), slice(left, right + border))
            planes = _planes(x[area], "x", scratch), _planes(y[area], "y", scratch)
            losses = _summed(*planes, window, len(keep) > 1, scratch)
            for kept, loss in zip(keep, losses, strict=True):
                if kept is not None:
                    kept[top:bottom, left:right] = loss
            sums.append([plane_sum(loss) for loss in losses])
        return sums

    if threads == 1:
        tiles = work(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            tiles = [sums for part in pool.map(work, range(threads)) for sums in part]
    # fsum is exact, so the order in which the tiles are added cannot matter
    return [math.fsum(sums) for sums in zip(*tiles, strict=True)]


def _planes(area: Plane, name: str, scratch: Scratch) -> Sequence[Plane]:
    if area.ndim == 2:
        return [area]
    planes = [scratch(f"{name}{c}", area.shape[:2], np.uint8) for c in range(area.shape[2])]
    cv2.split(area, planes)
    return planes


def _summed(
    x: Sequence[Plane], y: Sequence[Plane], window: Window, contrast: bool, scratch: Scratch
) -> Sequence[Floats]:
    """The losses of the windows that lie inside the planes, summed over planes."""
    losses = _losses(x[0], y[0], window, contrast, scratch)
    if len(x) > 1:
        totals = [scratch(f"total{n}", loss.shape, np.float32) for n, loss in enumerate(losses)]
        for total, loss in zip(totals, losses, strict=True):
            np.copyto(total, loss)
        for one, other in zip(x[1:], y[1:], strict=True):
            more = _losses(one, other, window, contrast, scratch)
            for total, loss in zip(totals, more, strict=True):
                total += loss
        losses = totals
    return [loss[:, window.radius : -window.radius] for loss in losses]
