"""Two pictures at one size: how alike they are under a warp, and the warp nearby that is best.

Gauss-Newton steps, inverse compositional: S. Baker, I. Matthews: Lucas-Kanade 20 years on. IJCV
56(3), 2004; weights: S. Geman, D. McClure: Statistical methods for tomographic image
reconstruction, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np
from PIL import Image

from convergebench.metric import Picture
from convergebench.registration.warp import Size, Warp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plane = NDArray[np.float32]

SMALLEST: Final = 32
"""Pixels on the short side that a registration needs."""
STEPS: Final = 12
"""Gauss-Newton steps on a level, at most."""
STILL: Final = 0.003
"""Pixels that a step must move a corner to be followed by another one."""


class Level:
    """A picture at one size.

    Attributes:
        luma: The 8-bit luma.
        fx: Its width, as a share of the picture's.
        fy: Its height, likewise.
    """

    def __init__(self, luma: NDArray[Any], size: Size) -> None:
        self.luma: Final = luma
        self.fx: Final = luma.shape[1] / size[0]
        self.fy: Final = luma.shape[0] / size[1]

    @cached_property
    def plane(self) -> Plane:
        """The luma normalised locally."""
        plane = _normalised(self.luma)
        plane.setflags(write=False)
        return plane


def _luma(picture: Picture) -> NDArray[Any]:
    return picture.shared("registration-luma", lambda p: cv2.cvtColor(p.pixels, cv2.COLOR_RGB2GRAY))


def levels_of(picture: Picture, width: float, height: float) -> Sequence[Level]:
    """The picture at this size and at halves of it, finest first."""
    levels: list[Level] = []
    luma = _luma(picture)
    while not levels or min(width, height) >= SMALLEST:
        size = max(1, round(width)), max(1, round(height))
        shrinks = size[0] < luma.shape[1]
        luma = cv2.resize(luma, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
        levels.append(Level(luma, picture.size))
        width, height = width / 2, height / 2
    return levels


def _normalised(luma: NDArray[Any]) -> Plane:
    """(I − mean) / (deviation + 8) over windows of 13×13, smoothed a little first.

    Smoothed, because otherwise a warp by half a pixel, which smooths, would seem to fit better.
    """
    values: NDArray[Any] = cv2.GaussianBlur(luma.astype(np.float32), (0, 0), 1)
    mean: NDArray[Any] = cv2.blur(values, (13, 13))
    variance: NDArray[Any] = cv2.blur(values * values, (13, 13)) - mean * mean
    plane: Plane = (values - mean) / (np.sqrt(np.maximum(variance, 0)) + 8)
    return plane


@dataclass(frozen=True)
class Pair:
    """Home and frame at one level, with what Gauss-Newton needs of home."""

    home: Level
    frame: Level

    def local(self, warp: Warp) -> Warp:
        """A warp between the pictures as one between these levels."""
        return warp.then(self.frame.fx, self.frame.fy).after(1 / self.home.fx, 1 / self.home.fy)

    def whole(self, local: Warp) -> Warp:
        """The reverse of `local`."""
        there = local.then(1 / self.frame.fx, 1 / self.frame.fy)
        return there.after(self.home.fx, self.home.fy)

    def overlap(self, local: Warp) -> tuple[Plane, Plane, tuple[int, int]] | None:
        """Home and frame over the area they have in common, less a margin, and its corner."""
        height, width = self.home.plane.shape
        frame_height, frame_width = self.frame.plane.shape
        shown = local.shown((width, height), (frame_width, frame_height))
        margin = min(6, width // 8, height // 8)  # windows of the normalisation stick out there
        left, top = math.ceil(shown[0]) + margin, math.ceil(shown[1]) + margin
        right, bottom = math.floor(shown[2]) - margin, math.floor(shown[3]) - margin
        if right - left < 8 or bottom - top < 8:
            return None
        # Pillow's cubic is exact; OpenCV's shifts by up to 0.04 pixels
        brought = Image.fromarray(self.frame.plane).resize(
            (right - left, bottom - top),
            Image.Resampling.BICUBIC,
            box=local.box(left, top, right, bottom),
        )
        return self.home.plane[top:bottom, left:right], np.asarray(brought), (left, top)

    def misfit(self, warp: Warp) -> float:
        """The median difference over the common area, which an inserted object does not move."""
        both = self.overlap(self.local(warp))
        return math.inf if both is None else float(np.median(np.abs(both[0] - both[1])))

    def correlation(self, warp: Warp) -> float:
        """Of the common area; −1 if there is hardly any."""
        both = self.overlap(self.local(warp))
        if both is None:
            return -1.0
        one, other = (plane - plane.mean() for plane in both[:2])
        norm = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
        return float(np.vdot(one, other)) / norm if norm else -1.0

    def refined(self, warp: Warp) -> Warp:
        """The warp that makes the frame most like home, near the one given."""
        local = self.local(warp)
        for _ in range(STEPS):
            step = self._step(local)
            if step is None:
                break
            local, moved = step
            if moved < STILL:
                break
        return self.whole(local)

    def _step(self, local: Warp) -> tuple[Warp, float] | None:
        """One Gauss-Newton step, and how far it moves the corners."""
        both = self.overlap(local)
        if both is None:
            return None
        home, frame, (left, top) = both
        height, width = home.shape
        weights = _weights(home, frame)
        home_mean, frame_mean = (float(np.vdot(weights, p)) for p in (home, frame))
        centred = frame - frame_mean
        spread = float(np.vdot(weights, centred * centred))
        gain = float(np.vdot(weights * centred, home)) / spread if spread else 0
        if gain <= 0:
            return None
        residual = (centred * gain + home_mean - home).ravel()
        across: NDArray[Any] = cv2.Sobel(home, cv2.CV_32F, 1, 0, ksize=3, scale=1 / 8)
        down: NDArray[Any] = cv2.Sobel(home, cv2.CV_32F, 0, 1, ksize=3, scale=1 / 8)
        x = np.arange(width, dtype=np.float32) - (width - 1) / 2
        y = np.arange(height, dtype=np.float32)[:, None] - (height - 1) / 2
        slopes = np.stack([(across * x + down * y).ravel(), across.ravel(), down.ravel()])
        weighted = slopes * weights.ravel()
        try:
            ds, du, dv = np.linalg.solve(
                (weighted @ slopes.T).astype(np.float64), (weighted @ residual).astype(np.float64)
            )
        except np.linalg.LinAlgError:
            return None
        ds = float(np.clip(ds, -0.1, 0.1))
        # home's point P is found where δ(P) = P + ds·(P − P0) + d was: the frame's warp ∘ δ⁻¹
        sx, sy = local.sx / (1 + ds), local.sy / (1 + ds)
        px, py = left + width / 2, top + height / 2
        after = Warp(
            sx, sy, local.tx + sx * (ds * px - float(du)), local.ty + sy * (ds * py - float(dv))
        )
        return after, math.hypot(du, dv) + abs(ds) * math.hypot(width, height) / 2


def _weights(home: Plane, frame: Plane) -> Plane:
    """Geman and McClure's weights, adding up to 1: what differs much counts little."""
    apart = home - frame
    usual = 3 * float(np.median(np.abs(apart[::3, ::3]))) + 1e-3
    apart /= usual
    apart *= apart
    apart += 1
    weights: Plane = np.divide(1, apart * apart, dtype=np.float32)
    weights /= weights.sum()
    return weights
