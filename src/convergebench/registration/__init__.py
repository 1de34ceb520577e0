"""How a frame lies on home: shifted, zoomed, cropped.

The model is a translation and one zoom factor, on top of the ratio of the two sizes; turning and
bending are not modelled. With X and Y in home's pixels, the frame shows at (Qx, Qy) in its own

    Qx = ρx·(s·X + tx),   Qy = ρy·(s·Y + ty),

where ρ is the size ratio; a frame of another shape counts as a crop at the larger of the two
ratios, or as stretched, whichever fits better. Both lumas are brought to at most `WORK` pixels and
normalised locally, so that light, contrast and colour hardly matter. Guesses are: no change, the
peak of phase correlation, and matched SIFT features; the best one is refined from coarse to fine by
Gauss-Newton steps in which what differs, such as an object put in, loses its weight.

No change is kept in place of the estimate where that moves no corner by more than `NEAR` and no
change raises the misfit (the median difference) by 1 % at most, so that noise is not answered by a
warp. Whole pixels, and a shift without zoom, are kept where no corner is moved by more than `SAME`.

Written by hand because OpenCV's ECC has no model between shift and affine, counts every pixel
alike, and so follows an inserted object.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PIL import Image

from convergebench.metric import NoScore, Picture, StepView
from convergebench.registration.alignment import SMALLEST, Pair, levels_of
from convergebench.registration.guesses import matched, phase
from convergebench.registration.warp import Box, Size, Warp

__all__ = ["VERSION", "Registration", "of", "register"]

VERSION: Final = "1"
"""Raised whenever a registration can come out differently; part of every registered row."""

WORK: Final = 1 << 20
"""Pixels at which pictures are compared at most."""
JUDGED: Final = 1 << 17
"""Pixels at which guesses and the result are judged at most: there, noise is averaged out."""
SAME: Final = 0.02
"""Pixels of the compared pictures within which two transforms are the same."""
NEAR: Final = 1.0
"""Pixels of the compared pictures within which no change may stand for the estimate."""
AS_GOOD: Final = 1.01
"""What no change may multiply the misfit with, then."""
SCALES: Final = (0.5, 2.0)
MIN_COMMON: Final = 0.4
MIN_CONFIDENCE: Final = 0.4
SURE: Final = 0.9
"""Confidence from which no further guess is tried."""
MAX_TURN: Final = 2.0

IDENTITY: Final = Warp(1, 1, 0, 0)


@dataclass(frozen=True)
class Registration:
    """How a frame lies on home.

    Attributes:
        dx: How far the content at home's centre has moved right, in home's pixels, once the frame
            is brought to home's size.
        dy: The same, down.
        scale: 1 if unchanged once the size ratio is taken out, more if zoomed in.
        crop: Shares of home's width and height lost at left, top, right and bottom.
        confidence: Correlation of the locally normalised lumas over the common area, at `JUDGED`
            pixels: 1 for identical content, about 0 for unrelated.
        warp: Home's pixels to the frame's.
    """

    dx: float
    dy: float
    scale: float
    crop: Box
    confidence: float
    warp: Warp

    @property
    def cropped(self) -> float:
        """The share of home's area that the frame does not show."""
        left, top, right, bottom = self.crop
        return 1 - (1 - left - right) * (1 - top - bottom)

    def common(self, home: Picture, frame: Picture) -> tuple[Picture, Picture]:
        """Home over the whole pixels that both show, and the frame brought onto exactly those.

        Pillow's Lanczos filter, as for raw metrics: exact for shifts by whole pixels, and widened
        where the frame is finer than home. Without any change both are returned as they are.
        """
        if self.warp == IDENTITY and home.size == frame.size:
            return home, frame
        shown = self.warp.shown(home.size, frame.size)
        left, top = math.ceil(shown[0]), math.ceil(shown[1])
        right, bottom = math.floor(shown[2]), math.floor(shown[3])
        box = self.warp.box(left, top, right, bottom)
        width, height = frame.size
        image = Image.fromarray(np.ascontiguousarray(frame.pixels)).resize(
            (right - left, bottom - top),
            Image.Resampling.LANCZOS,
            box=(max(0.0, box[0]), max(0.0, box[1]), min(width, box[2]), min(height, box[3])),
        )
        return Picture(home.pixels[top:bottom, left:right]), Picture(np.asarray(image))


def of(view: StepView) -> Registration | NoScore:
    """The registration of a pair, computed once; of the frame as its editor made it."""
    home = view.reference
    if home is None:
        return NoScore("nothing to register with")
    return view.shared("registration", lambda: register(home, view.native or view.frame))


def register(home: Picture, frame: Picture) -> Registration | NoScore:
    """Find how a frame of any size lies on home; no score where nothing certain can be said."""
    if home.size == frame.size and np.array_equal(home.pixels, frame.pixels):
        return _described(IDENTITY, 1.0, home.size, frame.size, (1, 1))
    side = min(*home.size, *frame.size)
    if side < SMALLEST:
        return NoScore(f"{side} pixels on the short side, {SMALLEST} needed to register")
    ratio = frame.size[0] / home.size[0], frame.size[1] / home.size[1]
    found = _fit(home, frame, ratio)
    if max(ratio) > 1.02 * min(ratio):
        cropped = _fit(home, frame, (max(ratio), max(ratio)))
        if isinstance(found, NoScore) or (
            isinstance(cropped, Registration) and cropped.confidence >= found.confidence
        ):
            return cropped
    return found


def _fit(home: Picture, frame: Picture, ratio: tuple[float, float]) -> Registration | NoScore:
    """The registration if the size ratio of the two pictures is this one."""
    pairs = _pairs(home, frame, ratio)
    for name, plane in (("home", pairs[0].home.plane), ("the frame", pairs[0].frame.plane)):
        if float(np.abs(plane).mean()) < 0.01:
            return NoScore(f"{name} is flat: there is nothing to register by")
    judged = next((n for n, p in enumerate(pairs) if p.home.luma.size <= JUDGED), len(pairs) - 1)

    def followed(guess: Warp, start: int) -> _Candidate:
        warp = _refined(guess, pairs[judged : start + 1])
        zoom = warp.sx / ratio[0]
        if not 0.2 < zoom < 5:  # a picture shrunk to a point fits anything
            return _Candidate(guess, pairs, -1)
        closer = pairs
        if abs(zoom - 1) > 0.02:
            # over windows of another size the same thing looks different: zoom the frame back
            closer = _pairs(home, frame, (ratio[0] * zoom, ratio[1] * zoom))
            warp = _refined(warp, closer[judged : judged + 1])
        return _Candidate(warp, closer, closer[judged].correlation(warp))

    unmoved = _centred(ratio, home.size, frame.size)
    best = max(
        _Candidate(unmoved, pairs, pairs[judged].correlation(unmoved)),
        followed(unmoved, len(pairs) - 1),
        followed(phase(pairs[judged], unmoved), judged),
        key=lambda candidate: candidate.correlation,
    )
    features = None
    if best.correlation < SURE:
        features = matched(home, [p.home for p in pairs], [p.frame for p in pairs], ratio)
    if features is not None:
        other = followed(features.warp, judged + 1)
        best = other if other.correlation > best.correlation else best
    finest, closest = best.pairs[0], best.pairs[judged]
    warp = _refined(best.warp, best.pairs[: judged + 1]) if best.warp is not unmoved else unmoved
    warp = _simplest(warp, unmoved, home.size, finest, closest)
    confidence = max(0.0, min(1.0, closest.correlation(warp)))
    if confidence < MIN_CONFIDENCE and features is not None and features.agreeing > 0.8:
        turn = math.degrees(features.turn)
        if abs(turn) > MAX_TURN:
            return NoScore(f"turned by {turn:.0f}°, which is not modelled")
    return _described(warp, confidence, home.size, frame.size, ratio)


@dataclass(frozen=True)
class _Candidate:
    """A warp, the pictures that suit its zoom, and how well it fits them."""

    warp: Warp
    pairs: Sequence[Pair]
    correlation: float


def _pairs(home: Picture, frame: Picture, ratio: tuple[float, float]) -> Sequence[Pair]:
    """Both pictures at sizes that correspond, finest first."""
    width, height = home.size
    factor = min(1.0, math.sqrt(WORK / (width * height)))
    homes = home.shared(
        "registration-levels", lambda p: levels_of(p, width * factor, height * factor)
    )
    fx, fy = homes[0].fx / ratio[0], homes[0].fy / ratio[1]
    frames = levels_of(frame, frame.size[0] * fx, frame.size[1] * fy)
    return [Pair(h, f) for h, f in zip(homes, frames, strict=False)]


def _centred(ratio: tuple[float, float], home: Size, frame: Size) -> Warp:
    """Centre on centre, not zoomed."""
    left, top = (f - r * h for f, r, h in zip(frame, ratio, home, strict=True))
    return Warp(*ratio, left / 2, top / 2)


def _refined(warp: Warp, pairs: Sequence[Pair]) -> Warp:
    for pair in reversed(pairs):
        warp = pair.refined(warp)
    return warp


def _simplest(found: Warp, unmoved: Warp, home: Size, finest: Pair, judged: Pair) -> Warp:
    """The simplest warp as good as the one found: unmoved, by whole pixels, not zoomed."""
    x, y, _, _ = found.box(home[0] / 2, home[1] / 2, 0, 0)
    sx, sy = unmoved.sx, unmoved.sy
    whole = Warp(1, 1, float(round(x - home[0] / 2)), float(round(y - home[1] / 2)))
    shifted = Warp(sx, sy, x - sx * home[0] / 2, y - sy * home[1] / 2)
    corners = (0.0, 0.0, float(home[0]), float(home[1]))
    factors = (finest.frame.fx, finest.frame.fy) * 2

    def apart(simpler: Warp) -> float:
        ends = zip(simpler.box(*corners), found.box(*corners), factors, strict=True)
        return float(max(abs(one - other) * factor for one, other, factor in ends))

    if apart(unmoved) <= NEAR and judged.misfit(unmoved) <= AS_GOOD * judged.misfit(found):
        return unmoved
    return next((w for w in (unmoved, whole, shifted) if apart(w) <= SAME), found)


def _described(
    warp: Warp, confidence: float, home: Size, frame: Size, ratio: tuple[float, float]
) -> Registration | NoScore:
    """The registration in words of the picture, if it is one to rely on."""
    scale = warp.sx / ratio[0]
    left, top, right, bottom = warp.shown(home, frame)
    common = max(0.0, right - left) * max(0.0, bottom - top) / (home[0] * home[1])
    if confidence < MIN_CONFIDENCE:
        return NoScore(f"confidence {confidence:.2f}, {MIN_CONFIDENCE} needed")
    if not SCALES[0] <= scale <= SCALES[1]:
        return NoScore(f"zoomed by {scale:.3g}, {SCALES[0]:g} to {SCALES[1]:g} is believed")
    if common < MIN_COMMON or right - left < 1 or bottom - top < 1:
        return NoScore(f"{common:.0%} of home in common, {MIN_COMMON:.0%} needed")
    x, y, _, _ = warp.box(home[0] / 2, home[1] / 2, 0, 0)
    return Registration(
        dx=(x - frame[0] / 2) / ratio[0],
        dy=(y - frame[1] / 2) / ratio[1],
        scale=scale,
        crop=(left / home[0], top / home[1], 1 - right / home[0], 1 - bottom / home[1]),
        confidence=confidence,
        warp=warp,
    )
