"""Media composed to imitate the decay of real editors.

The manners are those that the Banana100 study describes: static noise with a greenish tint (Nano
Banana Pro), wrinkles along contours (Nano Banana 2 Fast), scatter points on objects (FLUX.2 dev),
simplified texture and colours (Qwen Image Edit). They are caricatures for trying the bench out, not
models of those products, and none of them knows which picture it is given.

Lengths scale with the picture (one *unit* is 1/512 of its short side, at least one pixel), so the
same decay is seen at every resolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.editors.reference.media import gaussian, levels, luma

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GREENISH: Final = np.array([-0.55, 0.6, -0.65], np.float32)
# Red, yellow, green, cyan, blue and magenta lie about 60° apart in the chroma plane of BT.601.
_SECTOR: Final = np.float32(np.pi / 3)
_FIRST_HUE: Final = np.float32(-0.17)


def static(
    pixels: NDArray[np.uint8], draw: np.random.Generator, amount: float
) -> NDArray[np.uint8]:
    """Noise that the next call takes for detail and sharpens, and a greenish tint.

    The grain is mostly luma with a little colour; what is finer than two pixels is amplified by a
    few percent per call, so old grain grows while new grain is added.
    """
    wide = pixels.astype(np.float32)
    fine = wide - gaussian(wide, 1.2)
    grain = draw.standard_normal((*pixels.shape[:2], 1), dtype=np.float32)
    speckle = draw.standard_normal(pixels.shape, dtype=np.float32)
    added = np.float32(3.2 * amount) * grain + np.float32(1.6 * amount) * speckle
    sharpened = np.float32(0.06 * amount) * np.clip(fine, -40, 40)
    return levels(wide + sharpened + added + np.float32(1.2 * amount) * _GREENISH)


def wrinkled(
    pixels: NDArray[np.uint8], draw: np.random.Generator, amount: float
) -> NDArray[np.uint8]:
    """Fine ripples that run along the contours, and that the next call deepens.

    Some fresh grain is added to the picture's own ripples (some six units from crest to crest);
    both are smeared along the local contour and put back, strong where contours are, weak in flat
    areas. A wrinkle once made therefore grows until it saturates.
    """
    unit = _unit(pixels)
    tone = luma(pixels)
    across, down, strength = _contours(tone, unit)
    grain = draw.standard_normal(tone.shape, dtype=np.float32) * np.float32(14 * unit)
    band = _between(tone, 1.0 * unit, 2.2 * unit) + _between(grain, 1.0 * unit, 2.2 * unit)
    ripple = _smeared(band, across, down, 2.0 * unit)
    relief = 8 * np.tanh(ripple / 8) * strength
    return levels(pixels + (np.float32(0.4 * amount) * relief)[..., None])


def _contours(
    tone: NDArray[np.float32], unit: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Unit vectors along the local contours, and how much of a contour there is (0 to 1)."""
    dx = _float(cv2.Sobel(tone, cv2.CV_32F, 1, 0)) * np.float32(unit / 8)
    dy = _float(cv2.Sobel(tone, cv2.CV_32F, 0, 1)) * np.float32(unit / 8)
    xx, yy, xy = (gaussian(p, 3.0 * unit) for p in (dx * dx, dy * dy, dx * dy))
    # The gradient's main direction is half the angle of the tensor; the contour lies across it.
    angle = np.arctan2(2 * xy, xx - yy) / np.float32(2) + np.float32(np.pi / 2)
    power = np.hypot(xx - yy, 2 * xy)
    return np.cos(angle), np.sin(angle), power / (power + np.float32(6))


def _smeared(
    field: NDArray[np.float32],
    across: NDArray[np.float32],
    down: NDArray[np.float32],
    pace: float,
) -> NDArray[np.float32]:
    """The mean of a field over a few paces to both sides along given directions."""
    rows, columns = np.indices(field.shape, dtype=np.float32)
    total = field.copy()
    for sign in (-1.0, 1.0):
        for paces in (1, 2, 3):
            x = columns + np.float32(sign * paces * pace) * across
            y = rows + np.float32(sign * paces * pace) * down
            total += cv2.remap(field, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    return total / np.float32(7)


def _between(tone: NDArray[np.float32], fine: float, coarse: float) -> NDArray[np.float32]:
    """What a Gaussian of `fine` pixels keeps and one of `coarse` pixels loses."""
    return gaussian(tone, fine) - gaussian(tone, coarse)


def dotted(
    pixels: NDArray[np.uint8], draw: np.random.Generator, amount: float
) -> NDArray[np.uint8]:
    """Small bright and dark dots strewn over whatever has structure; flat areas get few."""
    height, width = pixels.shape[:2]
    unit = _unit(pixels)
    tone = luma(pixels)
    detail = np.abs(tone - gaussian(tone, 3.0 * unit))
    busy = gaussian(detail, 6.0 * unit)
    share = 0.003 * amount / unit**2 * (0.15 + busy / (busy + 6.0))
    chosen = draw.random((height, width), dtype=np.float32) < share
    strength = np.where(chosen, draw.choice([-1.0, 1.0], (height, width)), 0.0) * 70
    spread = 0.9 * unit
    dots = gaussian(strength.astype(np.float32), spread) * (5.0 * spread**2)
    return levels(pixels + dots[..., None])


def painted(pixels: NDArray[np.uint8], amount: float) -> NDArray[np.uint8]:
    """Brush strokes for texture, and hues drawn to the nearest of six.

    Texture goes by a Kuwahara filter: each pixel takes the mean of the calmest of the four squares
    that meet in it, which flattens areas and keeps their borders.
    """
    wide = pixels.astype(np.float32)
    calm = _kuwahara(wide, round(3 * _unit(pixels)))
    strokes = wide + np.float32(min(1.0, 0.2 * amount)) * (calm - wide)
    return levels(_fewer_hues(strokes, min(1.0, 0.05 * amount)))


def _kuwahara(wide: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    tone = _float(cv2.cvtColor(wide, cv2.COLOR_RGB2GRAY))
    square = (reach + 1, reach + 1)
    total = np.zeros_like(tone)
    result = np.zeros_like(wide)
    for anchor in ((0, 0), (reach, 0), (0, reach), (reach, reach)):
        mean = _float(cv2.blur(tone, square, anchor=anchor))
        spread = _float(cv2.blur(tone * tone, square, anchor=anchor)) - mean * mean
        weight = (1 + np.maximum(spread, 0)) ** np.float32(-3)
        total += weight
        result += weight[..., None] * _float(cv2.blur(wide, square, anchor=anchor))
    return gaussian(result / total[..., None], 0.25 * reach)


def _fewer_hues(wide: NDArray[np.float32], pull: float) -> NDArray[np.float32]:
    ycc = _float(cv2.cvtColor(wide / np.float32(255), cv2.COLOR_RGB2YCrCb))
    red, blue = ycc[..., 1] - np.float32(0.5), ycc[..., 2] - np.float32(0.5)
    angle, size = np.arctan2(red, blue), np.hypot(red, blue)
    nearest = np.rint((angle - _FIRST_HUE) / _SECTOR) * _SECTOR + _FIRST_HUE
    angle += np.float32(pull) * (nearest - angle)
    ycc[..., 1] = size * np.sin(angle) + np.float32(0.5)
    ycc[..., 2] = size * np.cos(angle) + np.float32(0.5)
    return _float(cv2.cvtColor(ycc, cv2.COLOR_YCrCb2RGB)) * np.float32(255)


def _float(samples: NDArray[Any]) -> NDArray[np.float32]:
    return samples.astype(np.float32, copy=False)


def _unit(pixels: NDArray[np.uint8]) -> float:
    return max(1.0, float(min(pixels.shape[:2])) / 512)
