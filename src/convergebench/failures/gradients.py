"""Smooth colour gradients of home, and whether the frame still has them.

Home is looked at through windows. In each a plane is fitted to smoothed CIELAB; the window shows a
gradient where the plane rises by `RISE` at least from end to end, explains nearly all of what
varies, and no spot is much steeper than the rest, as an edge would be. In the frame such a window
has lost its gradient when the plane's rise along home's direction is nearly gone (flat colour), or
when most spots do not rise although the window as a whole does (banding).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from convergebench.failures.aligned import Plane

WINDOWS: Final = 28
"""Windows across the short side; they overlap by half."""
SMALLEST: Final = 9
"""Pixels of a window's side."""
RISE: Final = 3.0
"""CIELAB units from one end of a window to the other: less is flat to begin with."""
EXPLAINED: Final = 0.9
"""Share of a window's variance that the plane must explain at home."""
STEEPEST: Final = 2.5
"""How much steeper than the mean a spot of a gradient may be."""
KEPT: Final = 0.35
"""Share of the rise below which a window has gone flat."""
STILL: Final = 0.25
"""Share of the mean slope below which a spot does not rise."""
FLAT: Final = 0.5
"""Share of a window's spots that do not rise, from which it is banded."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """The windows of home that show a gradient.

    Attributes:
        side: Pixels of a window's side.
        corners: Left and top of each window (N×2).
        slopes: Slope of L, a and b in x and y (N×2×3), per pixel.
        blur: Gaussian by which pictures are smoothed, in pixels.
    """

    side: int
    corners: NDArray[np.int64]
    slopes: NDArray[np.float64]
    blur: float


def blur_for(width: int, height: int) -> float:
    """The smoothing that suits windows of a picture of this size."""
    return max(0.8, _side(width, height) / 9)


def _side(width: int, height: int) -> int:
    return max(SMALLEST, round(min(width, height) / WINDOWS))


def gradients_of(home: Plane) -> Gradients:
    """The windows of home, as smoothed CIELAB, that show a gradient."""
    height, width = home.shape[:2]
    side = _side(width, height)
    corners = _grid(width, height, side)
    values = _cut(home, corners, side)
    slopes, explained = _planes(values)
    rise = _rise(slopes, side)
    along = _along(values, slopes)
    mean = np.maximum(np.abs(along).mean(axis=1), 1e-9)
    even = np.percentile(np.abs(along), 98, axis=1) <= STEEPEST * mean
    chosen = (rise >= RISE) & (explained >= EXPLAINED) & even
    return Gradients(side, corners[chosen], slopes[chosen], blur_for(width, height))


def vanished(
    known: Gradients, frame: Plane, seen: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which windows the frame shows, and which of all have lost their gradient in it."""
    shown = _cut(seen[..., None].astype(np.float32), known.corners, known.side)
    visible: NDArray[np.bool_] = shown.min(axis=(1, 2, 3), initial=1.0) > 0
    values = _cut(frame, known.corners, known.side)
    slopes, _ = _planes(values)
    square = np.maximum((known.slopes**2).sum(axis=(1, 2)), 1e-12)
    kept = (slopes * known.slopes).sum(axis=(1, 2)) / square
    along = _along(values, known.slopes)
    expected = np.sqrt(square)[:, None]
    still = (np.abs(along) < STILL * expected).mean(axis=1)
    gone: NDArray[np.bool_] = visible & ((kept < KEPT) | (still > FLAT))
    return visible, gone


def _grid(width: int, height: int, side: int) -> NDArray[np.int64]:
    step = max(1, side // 2)
    xs, ys = np.arange(0, width - side + 1, step), np.arange(0, height - side + 1, step)
    return np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2).astype(np.int64)


def _cut(plane: Plane, corners: NDArray[np.int64], side: int) -> Plane:
    """The windows at these corners (N×side×side×C)."""
    views = np.lib.stride_tricks.sliding_window_view(plane, (side, side), axis=(0, 1))
    found = views[corners[:, 1], corners[:, 0]]  # N×C×side×side
    return np.moveaxis(found, 1, -1)


def _planes(values: Plane) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slopes of the plane fitted to each window (N×2×3), and the share it explains."""
    side = values.shape[1]
    place = np.arange(side) - (side - 1) / 2
    square = float((place**2).sum()) * side
    middle = values.mean(axis=(1, 2), keepdims=True, dtype=np.float64)
    centred = values - middle
    in_x = np.einsum("nyxc,x->nc", centred, place) / square
    in_y = np.einsum("nyxc,y->nc", centred, place) / square
    slopes = np.stack([in_x, in_y], axis=1)
    whole = (centred**2).sum(axis=(1, 2, 3))
    fitted = (slopes**2).sum(axis=(1, 2)) * square
    return slopes, np.where(whole > 1e-9, fitted / np.maximum(whole, 1e-9), 0.0)


def _rise(slopes: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    rise: NDArray[np.float64] = np.sqrt((slopes**2).sum(axis=(1, 2))) * (side - 1)
    return rise


def _along(values: Plane, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Slope of every inner spot in the direction, and in the colours, of given slopes (N×spots)."""
    norm = np.sqrt((slopes**2).sum(axis=(1, 2), keepdims=True))
    unit = slopes / np.maximum(norm, 1e-12)
    in_x = (values[:, 1:-1, 2:] - values[:, 1:-1, :-2]) / 2
    in_y = (values[:, 2:, 1:-1] - values[:, :-2, 1:-1]) / 2
    found = np.einsum("nyxc,nc->nyx", in_x, unit[:, 0]) + np.einsum(
        "nyxc,nc->nyx", in_y, unit[:, 1]
    )
    flat: NDArray[np.float64] = found.reshape(len(found), found.shape[1] * found.shape[2])
    return flat


def largest_patch(
    known: Gradients, gone: NDArray[np.bool_], width: int, height: int
) -> tuple[float, float, float, float] | None:
    """Box of the largest connected area of windows that lost their gradient, as shares."""
    mask = np.zeros((height, width), dtype=np.uint8)
    for x, y in known.corners[gone]:
        mask[y : y + known.side, x : x + known.side] = 1
    count, _, stats, _ = cv2.connectedComponentsWithStats(mask)
    if count < 2:
        return None
    best = 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
    left, top, wide, high = (int(v) for v in stats[best, :4])
    return left / width, top / height, (left + wide) / width, (top + high) / height
