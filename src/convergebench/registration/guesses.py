"""First guesses of how a frame lies on home: phase correlation, and matched features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.metric import Picture
from convergebench.registration.alignment import Level, Pair
from convergebench.registration.warp import Warp

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURE_PIXELS: Final = 1 << 18
MAX_FEATURES: Final = 800
MIN_MATCHES: Final = 12
"""Matches that must agree on a transform; of 48 pairs of unrelated photographs one reached it."""
MAX_ZOOM: Final = 4.0
"""Zoom beyond which a guess is not worth following."""
FIT: Final = 3.0
"""Pixels by which a match may miss the transform it supports."""


@dataclass(frozen=True)
class Matched:
    """A transform that features agree on, the turn left out of it, and the share that agree."""

    warp: Warp
    turn: float
    agreeing: float


def phase(pair: Pair, unmoved: Warp) -> Warp:
    """The shift at the peak of phase correlation; `unmoved` where the sizes differ."""
    home, frame = pair.home.plane, pair.frame.plane
    if home.shape != frame.shape:
        return unmoved
    height, width = home.shape
    window = cv2.createHanningWindow((width, height), cv2.CV_32F)
    # copies, because OpenCV multiplies with the window in place where it need not pad
    (dx, dy), _ = cv2.phaseCorrelate(home.copy(), frame.copy(), window)
    local = pair.local(unmoved)
    return pair.whole(replace(local, tx=local.tx + dx, ty=local.ty + dy))


def matched(
    home: Picture, homes: Sequence[Level], frames: Sequence[Level], ratio: tuple[float, float]
) -> Matched | None:
    """Scale and shift that the SIFT features of both pictures agree on, if they do."""
    level = next(n for n, h in enumerate(homes) if h.luma.size <= FEATURE_PIXELS)
    if level >= len(frames):
        return None
    points, descriptors = home.shared("registration-sift", lambda _: _features(homes[level]))
    others, their_descriptors = _features(frames[level])
    if min(len(points), len(others)) < MIN_MATCHES:
        return None
    near = cv2.BFMatcher(cv2.NORM_L2).knnMatch(descriptors, their_descriptors, k=2)
    good = [m[0] for m in near if len(m) == 2 and m[0].distance < 0.8 * m[1].distance]
    if len(good) < MIN_MATCHES:
        return None
    # in home's pixels on both sides, so that the only difference left is the one to be found
    source = points[[m.queryIdx for m in good]] / (homes[level].fx, homes[level].fy)
    scale = ratio[0] * frames[level].fx, ratio[1] * frames[level].fy
    target = others[[m.trainIdx for m in good]] / scale
    reach = FIT / min(homes[level].fx, homes[level].fy)
    found, agree = cv2.estimateAffinePartial2D(
        source, target, method=cv2.RANSAC, ransacReprojThreshold=reach
    )
    if found is None or int(agree.sum()) < MIN_MATCHES:
        return None
    turn = math.atan2(found[1, 0], found[0, 0])
    chosen = agree.ravel().astype(bool)
    source, target = source[chosen], target[chosen]
    centred = source - source.mean(axis=0)
    zoom = float((centred * target).sum() / max(1e-9, float((centred * centred).sum())))
    if not 1 / MAX_ZOOM <= zoom <= MAX_ZOOM:  # half a turn, or all matched with one point
        zoom = 1.0
    shift = target.mean(axis=0) - zoom * source.mean(axis=0)
    return Matched(Warp(zoom, zoom, *map(float, shift)).then(*ratio), turn, float(chosen.mean()))


def _features(level: Level) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Points in continuous coordinates, and what they look like."""
    sift: Any = cv2.SIFT.create(MAX_FEATURES)
    found, descriptors = sift.detectAndCompute(level.luma, None)
    if descriptors is None:
        return np.empty((0, 2)), np.empty((0, 128), np.float32)
    return np.array([point.pt for point in found], np.float64) + 0.5, descriptors
