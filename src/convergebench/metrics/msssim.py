"""Multi-scale structural similarity.

At scale k = 1 … 5 the luma is compared with the window of `ssim`; between scales it is averaged
over blocks of 2×2 pixels (an odd last row or column counts twice). With the contrast-structure
factor of SSIM, cs = (2σxy + C2) / (σx² + σy² + C2), averaged over the windows of a scale,

    MS-SSIM = cs1^0.0448 · cs2^0.2856 · cs3^0.3001 · cs4^0.2363 · SSIM5^0.1333.

Wang, Simoncelli, Bovik: Multi-scale structural similarity for image quality assessment. Asilomar
Conference on Signals, Systems and Computers, 2003.

Written by hand because pyiqa may not be used commercially and takes about a hundred times as long;
the first scale, three quarters of the work, is the one `ssim` has computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.bands import plane_sum
from convergebench.metric import KnownAnswer, MetricSpec, NoScore, Picture, StepView, lift
from convergebench.metrics.pair import pair
from convergebench.metrics.ssim import luma8, luma_losses
from convergebench.metrics.windows import GAUSSIAN, total_losses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Plane = NDArray[np.uint8] | NDArray[np.float32]
    Floats = NDArray[np.float32]

WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""The paper's exponents, which add up to 1.0001."""
SCALES: Final = len(WEIGHTS)
REACH: Final = GAUSSIAN.radius


@lift(
    MetricSpec(
        name="ms-ssim",
        version="1-luma8-valid-product",
        kind="full-reference",
        higher_is_better=True,
        identical=1,
        typical=(0, 1),
        title="Multi-scale structural similarity, luma (Wang et al. 2003)",
        paper="https://doi.org/10.1109/ACSSC.2003.1292216",
        regional=True,
        min_side=(2 * REACH + 1) * 2 ** (SCALES - 1),
        # pyiqa sets negative contrast terms of single windows to 0, which ours and the authors'
        # code do not; the card has next to none.
        known=KnownAnswer(0.966334, 2e-5, "pyiqa 0.1.16, ms_ssim"),
    )
)
def ms_ssim(view: StepView) -> float | NoScore:
    """MS-SSIM of the luma over five scales, as a product, from 0 to 1 (identical).

    Luma, window and border are those of `ssim`. The mean contrast term of a scale can be negative,
    for a negative of the picture say, and has no real power then: it counts as 0, and so does the
    score. In a region each scale is averaged over its windows, weighted by how much of the centre
    pixel lies in the mask; windows of the last scale reach 80 pixels beyond it.

    The official values of pyiqa's test set are the weighted sum of the same terms (the authors'
    alternative, weights scaled to add up to 1) and not the product of the paper: ours reproduce
    all five to the four digits printed when summed. As the product they differ by at most 0.5 %.
    """
    terms = contrast_terms(view)
    if isinstance(terms, NoScore):
        return terms
    powers = (math.pow(max(0.0, t), w) for t, w in zip(terms, WEIGHTS, strict=True))
    return min(1.0, math.prod(powers))


@dataclass
class Known:
    """What has been computed about a pair: the losses of the scales, and of each of their windows.

    The maps only once a mask has asked for them.
    """

    losses: Sequence[float] | None = None
    maps: Sequence[Floats] | None = None


def contrast_terms(view: StepView) -> Sequence[float] | NoScore:
    """The mean contrast-structure term of each scale but the last, and the last scale's SSIM."""
    known = view.shared("ms-ssim", Known)
    if view.mask is not None and known.maps is None:
        known.losses, known.maps = _losses(view, keep=True)
    elif known.losses is None:
        known.losses, _ = _losses(view, keep=False)
    if view.mask is not None and known.maps is not None:
        losses = _regional(known.maps, view.mask)
    else:
        losses = known.losses
    return losses if isinstance(losses, NoScore) else [1 - loss for loss in losses]


def _losses(view: StepView, *, keep: bool) -> tuple[Sequence[float], Sequence[Floats]]:
    """The mean loss of each scale, and that of each window where they are to be kept."""
    reference, frame = pair(view)
    planes: list[tuple[Plane, Plane]] = [(luma8(reference), luma8(frame))]
    planes += zip(_coarser(reference), _coarser(frame), strict=True)
    found, maps = [], []
    for scale, (x, y) in enumerate(planes, start=1):
        which = 0 if scale == SCALES else 1
        if scale == 1 and not keep:
            found.append(luma_losses(view)[which])
            continue
        shape = x.shape[0] - 2 * REACH, x.shape[1] - 2 * REACH
        kept: list[Floats | None] = [None, None]
        if keep:
            maps.append(np.empty(shape, np.float32))
            kept[which] = maps[-1]
        found.append(total_losses(x, y, GAUSSIAN, keep=kept)[which] / math.prod(shape))
    return found, maps


def _regional(maps: Sequence[Floats], mask: NDArray[np.bool_]) -> Sequence[float] | NoScore:
    weights: Floats = mask.astype(np.float32)
    found = []
    for scale, losses in enumerate(maps, start=1):
        inside = np.ascontiguousarray(weights[REACH:-REACH, REACH:-REACH])
        area = plane_sum(inside)
        if area == 0:
            reach = REACH * 2 ** (scale - 1)
            return NoScore(f"the region lies within {reach} pixels of the border")
        found.append(plane_sum(cv2.multiply(losses, inside)) / area)
        weights = _halved(weights)
    return found


def _coarser(picture: Picture) -> Sequence[Floats]:
    """The luma at scales 2 to 5, computed once per picture."""

    def made(picture: Picture) -> Sequence[Floats]:
        planes = [_halved(luma8(picture).astype(np.float32))]
        while len(planes) < SCALES - 1:
            planes.append(_halved(planes[-1]))
        return planes

    return picture.shared("luma-pyramid", made)


def _halved(plane: Floats) -> Floats:
    """The mean of each block of 2×2; exact, for 8-bit samples take 16 bits after four scales."""
    height, width = plane.shape
    even: NDArray[Any] = plane
    if height % 2 or width % 2:
        even = cv2.copyMakeBorder(plane, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
    size = even.shape[1] // 2, even.shape[0] // 2
    return cv2.resize(even, size, interpolation=cv2.INTER_AREA).astype(np.float32, copy=False)
