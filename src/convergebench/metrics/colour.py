"""Colour differences in CIELAB: CIEDE2000 of each pixel, and the cast of the whole picture.

sRGB is linearised (IEC 61966-2-1), brought to XYZ of white D65 and to L*a*b*; matrix and white are
those of scikit-image, so that its users' numbers are ours.

Sharma, Wu, Dalal: The CIEDE2000 color-difference formula: implementation notes, supplementary test
data, and mathematical observations. Color Research & Application 30(1), 2005.

Written by hand because it is about 20 times as fast as scikit-image, in pieces that fit the cache
and in float32. A pixel is good to 1e-3 of a unit, but to 0.01 where one colour is grey and the
other strong (its hue is undetermined), and to 0.5 where two hues lie opposite to within 0.3° (the
formula itself jumps). Angles are avoided: a hue is its unit vector u in the (a', b) plane, so that
2·sin(Δh/2) = |u2 − u1| and the mean hue is the direction of u1 + u2; both keep their precision
whatever the angle, and identical colours give exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import cv2
import numpy as np

from convergebench.bands import plane_sum
from convergebench.metric import KnownAnswer, MetricSpec, StepView, lift
from convergebench.metrics.pair import pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.floating[Any]]
    Floats = NDArray[np.float32]

T = TypeVar("T")

PAPER: Final = "https://doi.org/10.1002/col.20070"
MAX_THREADS: Final = 8
CHUNK: Final = 1 << 14
"""Pixels that go through the formula at once: small enough for the cache and for the allocator to
hand out the same pages again and again."""

_WHITE: Final = np.array([0.95047, 1.0, 1.08883])
_XYZ: Final = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
)
_KNEE: Final = 0.008856
"""Below it the cube root of CIELAB is replaced by a line of slope 7.787."""
_TO_RELATIVE: Final = (_XYZ / _WHITE[:, None]).astype(np.float32)


def _linear_levels() -> Floats:
    level = np.arange(256) / 255
    curve = np.where(level > 0.04045, ((level + 0.055) / 1.055) ** 2.4, level / 12.92)
    return curve.astype(np.float32)


_LINEAR: Final = _linear_levels()


def lab(pixels: NDArray[np.uint8]) -> Sequence[Floats]:
    """Planes L*, a* and b* of 8-bit sRGB pixels (H×W×3)."""
    # CIELAB's f(t) is the cube root above the knee and a line below: a sum of two one-sided parts.
    relative: NDArray[Any] = cv2.transform(cv2.LUT(pixels, _LINEAR), _TO_RELATIVE)
    line = np.minimum(relative, np.float32(_KNEE))
    line -= np.float32(_KNEE)
    line *= np.float32(7.787)
    np.maximum(relative, np.float32(_KNEE), out=relative)
    np.cbrt(relative, out=relative)
    relative += line
    x, y, z = cast("Sequence[Floats]", cv2.split(relative))
    return y * 116 - 16, (x - y) * 500, (y - z) * 200


def delta_e(one: Sequence[Values], other: Sequence[Values]) -> Values:
    """CIEDE2000 between colours given as planes L*, a*, b*, with all weights kL, kC, kH at 1."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    tiny = np.finfo(l1.dtype).tiny
    mean_chroma = (np.sqrt(a1 * a1 + b1 * b1) + np.sqrt(a2 * a2 + b2 * b2)) * 0.5
    stretch = 1.5 - 0.5 * _saturation(mean_chroma)
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = np.sqrt(a1 * a1 + b1 * b1), np.sqrt(a2 * a2 + b2 * b2)

    per1, per2 = 1 / np.maximum(c1, tiny), 1 / np.maximum(c2, tiny)
    u1, v1, u2, v2 = a1 * per1, b1 * per1, a2 * per2, b2 * per2
    apart = np.sqrt((u2 - u1) ** 2 + (v2 - v1) ** 2)
    hue = np.copysign(np.sqrt(c1 * c2) * apart, u1 * v2 - u2 * v1)

    cos, sin = u1 + u2, v1 + v2
    length = np.sqrt(cos * cos + sin * sin)
    opposite = (length == 0) & (c1 * c2 > 0)
    if opposite.any():
        # Both halves are the mean of such hues; the formula takes 90° from the one below 180°.
        upper = np.where((v1 > 0) | ((v1 == 0) & (u1 > 0)), 1, -1)[opposite]
        cos[opposite], sin[opposite] = -v1[opposite] * upper, u1[opposite] * upper
        length[opposite] = 1
    np.maximum(length, tiny, out=length)
    cos /= length
    sin /= length

    mean_chroma = (c1 + c2) * 0.5
    lightness = (l1 + l2) * 0.5 - 50
    lightness *= lightness
    dl = (l2 - l1) / (1 + 0.015 * lightness / np.sqrt(20 + lightness))
    dc = (c2 - c1) / (1 + 0.045 * mean_chroma)
    dh = hue / (1 + 0.015 * mean_chroma * _hue_weight(cos, sin))
    turn = -2 * _saturation(mean_chroma) * np.sin(_blue_rotation(cos, sin))
    squared = dl * dl + dc * dc + dh * dh + turn * dc * dh
    distance: Values = np.sqrt(np.maximum(squared, 0))
    return distance


def _saturation(chroma: Values) -> Values:
    """√(C⁷ / (C⁷ + 25⁷))."""
    seventh = chroma * chroma
    seventh *= seventh * seventh
    seventh *= chroma
    ratio: Values = np.sqrt(seventh / (seventh + 25**7))
    return ratio


def _hue_weight(cos: Values, sin: Values) -> Values:
    """T = 1 − 0.17·cos(h − 30°) + 0.24·cos 2h + 0.32·cos(3h + 6°) − 0.20·cos(4h − 63°)."""
    cos2, sin2 = cos * cos - sin * sin, 2 * cos * sin
    cos3, sin3 = cos * cos2 - sin * sin2, sin * cos2 + cos * sin2
    cos4, sin4 = cos2 * cos2 - sin2 * sin2, 2 * cos2 * sin2
    weight: Values = 1 + 0.24 * cos2
    for factor, degrees, c, s in (
        (-0.17, -30, cos, sin),
        (0.32, 6, cos3, sin3),
        (-0.20, -63, cos4, sin4),
    ):
        shift = math.radians(degrees)
        weight += factor * math.cos(shift) * c - factor * math.sin(shift) * s
    return weight


def _blue_rotation(cos: Values, sin: Values) -> Values:
    """2Δθ = 60°·exp(−((h − 275°) / 25°)²), for h from 0° to 360°."""
    angle = np.arctan2(-sin, -cos)  # h − 180°, from −180° to 180°
    angle -= math.radians(95)
    angle *= 1 / math.radians(25)
    angle *= angle
    # beyond is nothing, and the denormal numbers it would lead to take ten times as long
    np.minimum(angle, 40, out=angle)
    rotation: Values = math.radians(60) * np.exp(-angle)
    return rotation


def _over_bands(pixels: NDArray[np.uint8], work: Callable[[slice], T]) -> list[T]:
    """Do a picture's rows, about `CHUNK` pixels at once, on as many threads as OpenCV may use."""
    rows, width = pixels.shape[:2]
    step = max(1, CHUNK // width)
    bands = [slice(top, min(top + step, rows)) for top in range(0, rows, step)]
    threads = max(1, min(cv2.getNumThreads(), MAX_THREADS, len(bands)))
    if threads == 1:
        return [work(band) for band in bands]
    with ThreadPoolExecutor(threads) as pool:
        # one task per thread, not per band: those are too short to be worth handing over
        parts = pool.map(lambda first: [work(b) for b in bands[first::threads]], range(threads))
        return [done for part in parts for done in part]


def delta_e_map(view: StepView) -> Floats:
    """ΔE of every pixel, computed once per pair."""
    reference, frame = pair(view)

    def made() -> Floats:
        one, other = reference.pixels, frame.pixels
        distances: Floats = np.empty(one.shape[:2], np.float32)

        def work(band: slice) -> None:
            distances[band] = delta_e(lab(one[band]), lab(other[band]))

        _over_bands(one, work)
        return distances

    return view.shared("delta-e-2000", made)


@lift(
    MetricSpec(
        name="ciede2000",
        version="1-srgb-d65",
        kind="full-reference",
        higher_is_better=False,
        identical=0,
        typical=(0, 30),
        title="Colour difference CIEDE2000, mean over pixels",
        paper=PAPER,
        regional=True,
        known=KnownAnswer(6.997705, 1e-3, "scikit-image 0.26, deltaE_ciede2000"),
    )
)
def ciede2000(view: StepView) -> float:
    """Mean over pixels of the colour difference ΔE00; 0 for identical pictures.

    About 1 is just noticeable between large patches seen side by side; black against white is 100.
    """
    where = None if view.mask is None else np.ascontiguousarray(view.mask).view(np.uint8)
    return cv2.mean(delta_e_map(view), where)[0]


@lift(
    MetricSpec(
        name="ciede2000-p95",
        version="1-srgb-d65",
        kind="full-reference",
        higher_is_better=False,
        identical=0,
        typical=(0, 60),
        title="Colour difference CIEDE2000, 95th percentile of pixels",
        paper=PAPER,
        regional=True,
        known=KnownAnswer(13.222311, 1e-3, "scikit-image 0.26, deltaE_ciede2000"),
    )
)
def ciede2000_p95(view: StepView) -> float:
    """The colour difference ΔE00 that 95 % of the pixels stay below; 0 for identical pictures.

    Interpolated linearly between neighbours in order, as NumPy's percentile is. It sees a local
    change of colour that the mean dilutes.
    """
    distances = delta_e_map(view)
    chosen = distances.ravel() if view.mask is None else distances[view.mask]
    return float(np.percentile(chosen, 95))


@lift(
    MetricSpec(
        name="colour-cast",
        version="1-srgb-d65",
        kind="full-reference",
        higher_is_better=False,
        identical=0,
        typical=(0, 20),
        title="Colour cast: length of the mean shift in CIELAB",
        paper="https://en.wikipedia.org/wiki/CIELAB_color_space",
        regional=True,
        known=KnownAnswer(4.543347, 1e-3, "scikit-image 0.26, rgb2lab"),
    )
)
def colour_cast(view: StepView) -> float:
    """Distance in CIELAB between the mean colours of home and frame; 0 for equal means.

    √(ΔL² + Δa² + Δb²) of the pictures' mean L*, a*, b*: what the whole picture has drifted, warmer,
    greener or darker, where noise and moved details cancel.
    """
    reference, frame = pair(view)
    mask = view.mask
    if mask is None:
        means = [p.shared("mean-lab", lambda p: _mean_lab(p.pixels)) for p in (reference, frame)]
    else:
        means = [_mean_lab(p.pixels[mask][:, None]) for p in (reference, frame)]
    return float(np.linalg.norm(means[1] - means[0]))


def _mean_lab(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Mean L*, a*, b*."""
    sums = _over_bands(pixels, lambda band: [plane_sum(p) for p in lab(pixels[band])])
    count = pixels.shape[0] * pixels.shape[1]
    return np.array([math.fsum(column) / count for column in zip(*sums, strict=True)])
