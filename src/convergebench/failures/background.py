"""How far the background has decayed beside an object that was just put in.

The frame is laid on the source and both are cut into blocks. A block's distance is the root of its
mean squared CIELAB difference, made of what is finer than a block (grain, ripples, texture that is
gone) and what is not (colour, light). Blocks in the edited region, and blocks that differ as whole
objects do, are left out; the median of the others is the decay. Where no region is told, it is
estimated: the largest area that changed since the frame before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from convergebench.cycle import Box, pixel_box
from convergebench.failures.aligned import Aligned, Pixels, Plane, lab
from convergebench.failures.situation import sized

BLOCKS: Final = 32
"""Blocks across the short side."""
ACUITY: Final = 1.5
"""Pixels over which differences of colour are averaged: the eye sees no finer."""
HIDING: Final = 0.4
"""Share of the source's own fine contrast below which a fine difference is hidden by it."""
OBJECT: Final = 14.0
"""CIELAB units that a block of an added object differs by at least, beyond the background's."""
CHANGED: Final = 6.0
"""CIELAB units of change since the frame before that begin to count, after smoothing."""
MADS: Final = 6.0
"""How many median deviations above the median change counts."""
LEAST: Final = 5e-4
"""Share of the picture that the changed area must have."""
FEWEST: Final = 0.05
"""Share of blocks that must be background for anything to be said."""
FRESH: Final = 0.6
"""The new object is fresh where its grain is less than this share of the background's."""


@dataclass(frozen=True)
class Decay:
    """How a background stands.

    Attributes:
        total: Median distance of background blocks from the source.
        grain: The fine part of it.
        colour: The coarse part of it.
        share: Share of the picture that counted as background.
        frame_grain: Fine noise of the frame in the background, without looking at the source.
        object_grain: The same inside the edited region; None where there is none.
    """

    total: float
    grain: float
    colour: float
    share: float
    frame_grain: float
    object_grain: float | None

    @property
    def fresh(self) -> bool | None:
        """Whether the new object has clearly less grain than the background."""
        return None if self.object_grain is None else self.object_grain < FRESH * self.frame_grain


def decay_of(laid: Aligned, edited: Box | None) -> Decay | None:
    """The decay outside an edited region (shares of home); None where no background is left."""
    height, width = laid.home.shape[:2]
    side = max(8, min(width, height) // BLOCKS)
    home = lab(laid.home)
    difference = lab(laid.frame) - home
    difference[..., 1:] = cv2.GaussianBlur(difference[..., 1:], (0, 0), ACUITY)
    coarse = cv2.GaussianBlur(difference, (0, 0), side / 3)
    hidden = HIDING**2 * _blocks(
        (home - cv2.GaussianBlur(home, (0, 0), side / 3))[..., 0] ** 2, side
    )
    fine = np.maximum(0, _blocks(((difference - coarse) ** 2).sum(axis=2), side) - hidden)
    drift = _blocks((coarse**2).sum(axis=2), side)
    seen = _blocks(laid.seen.astype(np.float32), side) > 0.999
    inside = _inside(edited, width, height, side, fine.shape)
    background = seen & ~inside
    if background.mean() < FEWEST:
        return None
    usual = float(np.median(np.sqrt(drift[background])))
    background &= np.sqrt(drift) <= usual + max(OBJECT, 2 * usual)
    if background.mean() < FEWEST:
        return None
    noise = _grain(laid.frame, side)
    within = inside & seen
    return Decay(
        total=float(np.median(np.sqrt(fine + drift)[background])),
        grain=float(np.median(np.sqrt(fine)[background])),
        colour=float(np.median(np.sqrt(drift)[background])),
        share=float(background.mean()),
        frame_grain=float(np.percentile(noise[background], 25)),
        object_grain=float(np.percentile(noise[within], 25)) if within.sum() >= 2 else None,
    )


def changed_box(frame: Pixels, previous: Pixels, within: Box | None = None) -> Box | None:
    """The box of the largest area that changed between two frames, as shares; None for none.

    Args:
        frame: The frame.
        previous: The one before.
        within: Where to look; the whole picture by default.
    """
    height, width = frame.shape[:2]
    blur = max(1.0, min(width, height) / 128)
    before = sized(previous, (width, height))
    apart = np.sqrt(((lab(frame, blur) - lab(before, blur)) ** 2).sum(axis=2))
    middle = float(np.median(apart))
    spread = 1.4826 * float(np.median(np.abs(apart - middle)))
    mask = (apart > max(CHANGED, middle + MADS * spread)).astype(np.uint8)
    if within is not None:
        x0, y0, x1, y1 = pixel_box(within, width, height)
        inside = np.zeros_like(mask)
        inside[y0:y1, x0:x1] = 1
        mask &= inside
    reach = 2 * round(1.5 * blur) + 1
    mask = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((reach, reach), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
    if count < 2:
        return None
    weight = np.bincount(labels.ravel(), weights=apart.ravel(), minlength=count)
    weight[0] = 0
    best = int(weight.argmax())
    left, top, wide, high, area = (int(v) for v in stats[best])
    if area < LEAST * width * height:
        return None
    return left / width, top / height, (left + wide) / width, (top + high) / height


def _blocks(plane: NDArray[np.floating], side: int) -> Plane:
    """Means of blocks; what is left over at the right and bottom is not looked at."""
    high, wide = plane.shape[0] // side, plane.shape[1] // side
    cut = plane[: high * side, : wide * side].reshape(high, side, wide, side)
    means: Plane = cut.mean(axis=(1, 3)).astype(np.float32)
    return means


def _inside(
    box: Box | None, width: int, height: int, side: int, shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Which blocks touch a box."""
    found = np.zeros(shape, dtype=bool)
    if box is not None:
        x0, y0, x1, y1 = pixel_box(box, width, height)
        found[y0 // side : -(-y1 // side), x0 // side : -(-x1 // side)] = True
    return found


def _grain(pixels: Pixels, side: int) -> Plane:
    """Noise of each block by Immerkær's mask, which straight edges and ramps do not answer to."""
    luma = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    mask = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], dtype=np.float32)
    answer = np.abs(cv2.filter2D(luma, -1, mask))
    grain: Plane = _blocks(answer, side) * np.float32((np.pi / 2) ** 0.5 / 6)
    return grain
