"""Distinct hues in a part of a picture, and how much of each is left in another.

Hues are angles in the a-b plane of OKLab, where purple and blue lie well apart (in CIELAB they do
not), of pixels with at least `CHROMA`, after smoothing. A hue of home is a peak of their histogram
that has enough of the part; pixels belong to the nearest peak within `REACH`. A hue is lost where a
patch of its pixels has become grey in the frame, or taken a hue that home's part has elsewhere; so
orange eyes are missed beside orange skin. The cast and the fading that the whole picture has are
taken out first, so that a tint which leaves the hues distinct is no loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from convergebench.cycle import Box, pixel_box
from convergebench.failures.aligned import Pixels, Plane

T = TypeVar("T", bound=np.generic)

CHROMA: Final = 4.0
"""Of a pixel that has a hue at all; vivid colours have 15 to 30."""
FAINT: Final = 0.6
"""Share of that below which a pixel of the frame has lost it, so that pale hues last a while."""
BINS: Final = 72
SPREAD: Final = 2.0
"""Smoothing of the histogram of hues, in bins of 5 degrees."""
APART: Final = 28.0
"""Degrees between two hues that count as two."""
REACH: Final = 22.0
"""Degrees within which a pixel belongs to a hue."""
ENOUGH: Final = 0.03
"""Share of the part that a hue of home must have."""
TURNED: Final = 20.0
"""Degrees by which a pixel's hue must turn to be another one."""
SOME: Final = 0.01
"""Share of the part within 15 degrees from which home has a hue somewhere."""
PATCH: Final = 0.015
LEAST: Final = 36
"""Share of the part, and pixels, that a patch must have; JPEG alone takes the colour of less."""
GAIN: Final = (0.45, 1.6)
"""Overall changes of chroma that are taken out; beyond them only so much."""
SAMPLE: Final = 1 << 12
FEW: Final = 64
"""Pixels that a cast is estimated from, at most and at least."""
NONE: Final = -1
"""Label of pixels that belong to no hue."""
WINDOW: Final = 1 / 7
"""Side of the patches that are looked for, in shares of the short side."""
PATCHES: Final = 4
FEWEST: Final = 3
"""Hues that a part must have for losing one to be told."""

NAMES: Final = (
    (12, "pink"), (42, "red"), (84, "orange"), (116, "yellow"), (132, "lime"), (165, "green"),
    (212, "teal"), (248, "light blue"), (284, "blue"), (316, "purple"), (345, "magenta"),
    (360, "pink"),
)  # fmt: skip
"""What hues are called, each up to an angle."""


_TO_CONES: Final = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    dtype=np.float32,
)
_TO_OKLAB: Final = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ],
    dtype=np.float32,
)
"""Björn Ottosson's matrices (2020)."""


def oklab(pixels: Pixels, blur: float) -> Plane:
    """OKLab times 100 of sRGB pixels, smoothed first by a Gaussian of so many pixels."""
    unit = cv2.GaussianBlur(pixels.astype(np.float32) / np.float32(255), (0, 0), blur)
    linear = np.where(unit <= 0.04045, unit / 12.92, ((unit + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(cv2.transform(linear.astype(np.float32), _TO_CONES))
    found: Plane = cv2.transform(cones, _TO_OKLAB).astype(np.float32) * np.float32(100)
    return found


@dataclass(frozen=True)
class Hue:
    """A hue of home.

    Attributes:
        angle: In degrees.
        area: Share of the part that has it at home.
        gone: Share of the part that the largest patch has in which it is lost; 0 for none.
    """

    angle: float
    area: float
    gone: float = 0.0

    @property
    def lost(self) -> bool:
        """Whether it has gone from a patch."""
        return self.gone > 0

    @property
    def name(self) -> str:
        """As people call it."""
        return next(name for end, name in NAMES if self.angle <= end)


def hues_of(part: Plane) -> list[Hue]:
    """The distinct hues of a part of home (H×W×3 OKLab), by angle."""
    angle, chroma = _polar(part)
    where = chroma >= CHROMA
    if not where.any():
        return []
    counts = np.bincount((angle[where] * BINS / 360).astype(int) % BINS, minlength=BINS)
    curve = _round_about(counts.astype(float))
    peaks = [
        n
        for n in range(BINS)
        if curve[n] > curve[n - 1] and curve[n] >= curve[(n + 1) % BINS] and curve[n] > 0
    ]
    found: list[float] = []
    for peak in sorted(peaks, key=lambda n: -curve[n]):
        centre = (peak + 0.5) * 360 / BINS
        if all(_apart(centre, other) >= APART for other in found):
            found.append(centre)
    label = _labels(part, found)
    shares = [float((label == number).mean()) for number in range(len(found))]
    kept = [(centre, share) for centre, share in zip(found, shares, strict=True) if share >= ENOUGH]
    return [Hue(centre, share) for centre, share in sorted(kept)]


def compared(part: Plane, frame: Plane, known: Sequence[Hue]) -> list[Hue]:
    """The hues of a part of home, and whether the frame lacks them in a patch."""
    before = _labels(part, [hue.angle for hue in known])
    angle, chroma = _polar(part)
    now, colour = _polar(frame)
    turned = np.abs((now - angle + 180) % 360 - 180) > TURNED
    # what has turned into a hue that home's part does not have is changed, but no simpler
    gone = (colour < FAINT * CHROMA) | (turned & _present(angle, chroma, now))
    found = []
    for number, hue in enumerate(known):
        mine = before == number
        patch = _largest(mine & gone)
        found.append(Hue(hue.angle, hue.area, patch / mine.size if patch else 0.0))
    return found


def _present(angle: Plane, chroma: Plane, now: Plane) -> NDArray[np.bool_]:
    """Which pixels of the frame have a hue that home's part has somewhere."""
    where = chroma >= CHROMA
    counts = np.bincount((angle[where] * BINS / 360).astype(int) % BINS, minlength=BINS)
    near = sum(np.roll(counts, shift) for shift in range(-3, 4))
    there: NDArray[np.bool_] = (np.asarray(near) >= SOME * angle.size)[
        (now * BINS / 360).astype(int) % BINS
    ]
    return there


def _largest(mask: NDArray[np.bool_]) -> int:
    """Pixels of the largest patch of a mask; 0 where all are small, or lines, or specks."""
    core = cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(core, connectivity=8)
    if count < 2:
        return 0
    # an eroded square of LEAST pixels has about LEAST / 2
    area = 2 * int(stats[1:, cv2.CC_STAT_AREA].max())
    return area if area >= max(LEAST, PATCH * mask.size) else 0


def uncast(home: Plane, frame: Plane, seen: NDArray[np.bool_]) -> Plane:
    """The frame without its colour cast and fading, as far as the whole picture has them.

    The frame's a and b are taken for one gain times home's and two offsets, fitted so that what
    fits worst loses its weight.
    """
    step = max(1, round((seen.sum() / SAMPLE) ** 0.5))
    where = seen[::step, ::step]
    x = home[::step, ::step, 1:][where].astype(float)
    y = frame[::step, ::step, 1:][where].astype(float)
    if len(x) < FEW:
        return frame
    weight = np.ones((len(x), 1))
    gain, offset = 1.0, np.zeros(2)
    for _ in range(8):
        total = weight.sum()
        mx, my = (weight * x).sum(axis=0) / total, (weight * y).sum(axis=0) / total
        spread = float((weight * (x - mx) ** 2).sum())
        slope = float((weight * (x - mx) * (y - my)).sum()) / spread if spread > 0 else 1.0
        gain = float(np.clip(slope, *GAIN))
        offset = my - gain * mx
        away = np.hypot(*(y - gain * x - offset).T)
        scale = max(0.15, 1.5 * float(np.median(away)))
        weight = 1 / np.maximum(1.0, away[:, None] / scale) ** 2
    made = frame.copy()
    made[..., 1:] = (made[..., 1:] - offset.astype(np.float32)) / np.float32(gain)
    return made


def colourful_patches(home: Plane) -> list[Box]:
    """The parts of home with most distinct hues, none on another, the richest first."""
    height, width = home.shape[:2]
    side = max(8, round(min(width, height) * WINDOW))
    if side > min(width, height):
        return []
    angle, chroma = _polar(home)
    bins = 12
    label = np.where(chroma >= CHROMA, (angle * bins / 360).astype(int) % bins, -1)
    rich = np.zeros((height, width), dtype=np.float32)
    for number in range(bins):
        share = cv2.boxFilter((label == number).astype(np.float32), -1, (side, side))
        rich += np.minimum(share / 0.08, 1.0)
    found: list[Box] = []
    half = side // 2
    rich[:half], rich[height - half :] = -1, -1
    rich[:, :half], rich[:, width - half :] = -1, -1
    for _ in range(3 * PATCHES):
        y, x = np.unravel_index(int(rich.argmax()), rich.shape)
        if rich[y, x] < 2 or len(found) == PATCHES:
            break
        x0, y0 = max(0, int(x) - half), max(0, int(y) - half)
        x1, y1 = min(width, x0 + side), min(height, y0 + side)
        box = (x0 / width, y0 / height, x1 / width, y1 / height)
        if len(hues_of(cut(home, box))) >= FEWEST:
            found.append(box)
        rich[max(0, y - side) : y + side, max(0, x - side) : x + side] = -1
    return found


def cut(plane: NDArray[T], box: Box) -> NDArray[T]:
    """The part of a picture in a box of shares."""
    x0, y0, x1, y1 = pixel_box(box, plane.shape[1], plane.shape[0])
    return plane[y0:y1, x0:x1]


def _polar(part: Plane) -> tuple[Plane, Plane]:
    """Angle in degrees from 0 to 360, and chroma."""
    a, b = part[..., 1], part[..., 2]
    return np.degrees(np.arctan2(b, a)) % 360, np.hypot(a, b)


def _labels(part: Plane, centres: Sequence[float]) -> NDArray[np.int64]:
    """Which hue each pixel has: the nearest within reach, or `NONE`."""
    angle, chroma = _polar(part)
    if not centres:
        return np.full(angle.shape, NONE)
    away = np.abs((angle[..., None] - np.asarray(centres) + 180) % 360 - 180)
    near = (away.min(axis=-1) <= REACH) & (chroma >= CHROMA)
    return np.where(near, away.argmin(axis=-1), NONE)


def _apart(one: float, other: float) -> float:
    return abs((one - other + 180) % 360 - 180)


def _round_about(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """A circular histogram, smoothed."""
    reach = np.arange(-6, 7)
    kernel = np.exp(-0.5 * (reach / SPREAD) ** 2)
    kernel /= kernel.sum()
    return sum(
        (weight * np.roll(counts, int(k)) for k, weight in zip(reach, kernel, strict=True)),
        np.zeros(BINS),
    )
