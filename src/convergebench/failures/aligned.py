"""A frame laid on what it should equal: the same place shows the same thing, at one size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from convergebench.cycle import Box, Home
from convergebench.failures.situation import Situation, sized
from convergebench.metric import NoScore, Picture
from convergebench.registration import register

Pixels = NDArray[np.uint8]
Plane = NDArray[np.float32]

WORK: Final = 1 << 18
"""Pixels at which a frame is laid on home."""
MOST_CROPPED: Final = 0.25
"""Share of home that may be cropped away; a frame that shows less is looked at unregistered."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """A frame laid on home.

    Attributes:
        home: What it should equal.
        frame: The frame on home's pixels; black where it shows nothing.
        shown: The part of home that the frame shows, as shares.
        place: Where the frame shows home's left, top, right and bottom edge, in shares of itself.
        likeness: How well it fits there, from 0 to 1; 0 where it could not be registered.
    """

    home: Pixels
    frame: Pixels
    shown: Box
    place: Box
    likeness: float

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Which pixels of home the frame shows, a pixel of safety left out at its edges."""
        height, width = self.home.shape[:2]
        x0, y0, x1, y1 = self.shown
        left, top = int(np.ceil(x0 * width)), int(np.ceil(y0 * height))
        right, bottom = int(x1 * width), int(y1 * height)
        mask = np.zeros((height, width), dtype=bool)
        mask[top + (top > 0) : bottom - (bottom < height), left + (left > 0) : right] = True
        if right < width:
            mask[:, right - 1 :] = False
        return mask

    def in_frame(self, box: Box) -> Box | None:
        """A box of home in shares of the frame; None where it lies outside."""
        left, top, right, bottom = self.place
        wide, high = right - left, bottom - top
        x0, y0, x1, y1 = box
        return _within((left + x0 * wide, top + y0 * high, left + x1 * wide, top + y1 * high))

    def in_home(self, box: Box) -> Box | None:
        """A box of the frame in shares of home; None where it lies outside."""
        left, top, right, bottom = self.place
        wide, high = right - left, bottom - top
        x0, y0, x1, y1 = box
        return _within(
            ((x0 - left) / wide, (y0 - top) / high, (x1 - left) / wide, (y1 - top) / high)
        )


def _within(box: Box) -> Box | None:
    x0, y0, x1, y1 = (min(1.0, max(0.0, edge)) for edge in box)
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def aligned(situation: Situation, kind: Home) -> Aligned | None:
    """The frame laid on home of a kind, computed once per step; None where home is not here."""

    def make() -> Aligned | None:
        home = small_home(situation, kind)
        return None if home is None else _laid(home, situation.frame)

    return situation.memo.recall(("aligned", kind), make)


def small_home(situation: Situation, kind: Home) -> Picture | None:
    """Home of a kind with `WORK` pixels at most, kept for the whole chain."""

    def make() -> Picture | None:
        whole = situation.home_picture(kind)
        return None if whole is None else Picture(_small(whole.pixels))

    found: Picture | None = situation.shared(("aligned-home", kind), make)
    return found


def _small(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    factor = min(1.0, (WORK / (width * height)) ** 0.5)
    return sized(pixels, (max(1, round(width * factor)), max(1, round(height * factor))))


def _laid(home: Picture, frame: Pixels) -> Aligned:
    pixels = _small(frame)
    size = home.size
    found = register(home, Picture(pixels))
    if isinstance(found, NoScore) or found.cropped > MOST_CROPPED:
        return Aligned(home.pixels, sized(pixels, size), (0, 0, 1, 1), (0, 0, 1, 1), 0.0)
    warp, (height, width) = found.warp, pixels.shape[:2]
    left, top, right, bottom = warp.shown(size, (width, height))
    shown = (left / size[0], top / size[1], right / size[0], bottom / size[1])
    x0, y0, x1, y1 = warp.box(0, 0, *size)
    place = (x0 / width, y0 / height, x1 / width, y1 / height)
    if place == (0, 0, 1, 1):
        return Aligned(home.pixels, sized(pixels, size), (0, 0, 1, 1), place, found.confidence)
    # from home's pixel centres to the frame's
    matrix = np.array(
        [
            [warp.sx, 0, warp.tx + 0.5 * warp.sx - 0.5],
            [0, warp.sy, warp.ty + 0.5 * warp.sy - 0.5],
        ],
        dtype=np.float64,
    )
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    laid = cv2.warpAffine(pixels, matrix, size, flags=flags, borderMode=cv2.BORDER_CONSTANT)
    made = laid.astype(np.uint8, copy=False)
    return Aligned(home.pixels, made, shown, place, found.confidence)


def lab(pixels: Pixels, blur: float = 0.0) -> Plane:
    """CIELAB of sRGB pixels, smoothed first by a Gaussian of so many pixels."""
    unit = pixels.astype(np.float32) / np.float32(255)
    if blur > 0:
        unit = cv2.GaussianBlur(unit, (0, 0), blur).astype(np.float32, copy=False)
    return cv2.cvtColor(unit, cv2.COLOR_RGB2LAB).astype(np.float32, copy=False)


def at_home(box: Box, kind: Home) -> Box:
    """Where a box of the source lies at home: flipped and turned as home is."""
    x0, y0, x1, y1 = box
    if kind.flip == "horizontal":
        x0, x1 = 1 - x1, 1 - x0
    elif kind.flip == "vertical":
        y0, y1 = 1 - y1, 1 - y0
    for _ in range(kind.quarters % 4):  # clockwise: (x, y) goes to (1 - y, x)
        x0, y0, x1, y1 = 1 - y1, x0, 1 - y0, x1
    return x0, y0, x1, y1
