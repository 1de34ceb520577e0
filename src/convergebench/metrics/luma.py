"""PSNR and SSIM of the luma alone, as papers on super-resolution print them.

Both look at Y of MATLAB's `rgb2ycbcr`: studio range, rounded to 8 bits,

    Y = round(16 + (65.481·R + 128.553·G + 24.966·B) / 255),  from 16 to 235,

and leave out `shave` pixels at every border (0 unless told): those papers cut off as many as the
picture was enlarged by, as in `psnr-y,shave=2`. The peak stays 255 although Y reaches 235 only, as
in those papers.

Of the conventions in use this one is nearest to the literature's bicubic values for Set5 (33.66,
30.39 and 28.42 dB for ×2, ×3 and ×4): it gives 33.65, 30.39 and 28.42, where Y that is not rounded
gives 33.68, 30.41 and 28.43. docs/verification.md has all the digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import cv2
import numpy as np

from convergebench.errors import SettingsError
from convergebench.metric import (
    KnownAnswer,
    LiftedMetric,
    MetricSpec,
    NoScore,
    Picture,
    StepView,
)
from convergebench.metrics.pair import pair
from convergebench.metrics.pixel import PEAK, squared_error
from convergebench.metrics.windows import GAUSSIAN, total_loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plane = NDArray[np.uint8]
    Mask = NDArray[np.bool_]

T = TypeVar("T", bound=np.generic)

WIDEST: Final = 256
"""Most pixels that may be shaved off a border."""

_MEASURE = Callable[["Plane", "Plane", "Mask | None"], float | NoScore]


def studio_luma(picture: Picture) -> Plane:
    """Y of MATLAB's `rgb2ycbcr` for 8-bit pictures, computed once per picture."""
    return picture.shared("studio-luma", _studio_luma)


def _studio_luma(picture: Picture) -> Plane:
    # All three coefficients are 0.219 times whole numbers, so integers give the exact value, and
    # colours that lie halfway between two levels are rounded up as MATLAB's `round` does.
    pixels = picture.pixels
    luma = np.empty(pixels.shape[:2], np.uint8)
    rows = max(1, (1 << 18) // pixels.shape[1])
    for top in range(0, len(pixels), rows):
        red, green, blue = (plane.astype(np.int32) for plane in cv2.split(pixels[top : top + rows]))
        exact = 219 * (299 * red + 587 * green + 114 * blue)
        luma[top : top + rows] = 16 + (exact + 127_500) // 255_000
    luma.setflags(write=False)
    return luma


def _psnr(reference: Plane, frame: Plane, mask: Mask | None) -> float | NoScore:
    error = squared_error(reference, frame, mask)
    if error == 0:
        return math.inf
    pixels = frame.size if mask is None else int(np.count_nonzero(mask))
    return 10 * math.log10(PEAK**2 * pixels / error)


def _ssim(reference: Plane, frame: Plane, mask: Mask | None) -> float | NoScore:
    radius = GAUSSIAN.radius
    height, width = (side - 2 * radius for side in frame.shape)
    if mask is None:
        loss: float = total_loss(reference, frame, GAUSSIAN) / (height * width)
    else:
        centres = np.ascontiguousarray(mask[radius : radius + height, radius : radius + width])
        if not centres.any():
            return NoScore(f"the region lies within {radius} pixels of the border")
        losses = np.empty((height, width), np.float32)
        total_loss(reference, frame, GAUSSIAN, keep=losses)
        loss = cv2.mean(losses, centres.view(np.uint8))[0]
    return max(-1.0, min(1.0, 1 - loss))


class LumaMetric:
    """A metric of two planes of luma, less their borders; also the factory of its variants."""

    def __init__(self, spec: MetricSpec, measure: _MEASURE, doc: str) -> None:
        self.spec: Final = spec
        self._measure: Final = measure
        self.__doc__ = doc

    def __call__(self, shave: str = "0") -> LiftedMetric:
        """The metric with that many pixels cut off at every border.

        Raises:
            SettingsError: `shave` is no whole number from 0 to 256.
        """
        text = str(shave).strip()
        if not (text.isascii() and text.isdecimal() and int(text) <= WIDEST):
            raise SettingsError(
                f"metric {self.spec.name}: option shave must be a whole number of pixels from 0 "
                f"to {WIDEST}, got {shave!r}."
            )
        border = int(text)
        spec = self.spec
        if border:
            spec = replace(
                spec,
                name=f"{spec.name},shave={border}",
                title=f"{spec.title}, {border} px shaved off",
                min_side=spec.min_side + 2 * border,
                known=None,  # the card's value is that of the whole picture
            )

        def measure(view: StepView) -> float | NoScore:
            reference, frame = pair(view)
            x, y = (_inner(studio_luma(one), border) for one in (reference, frame))
            mask = None if view.mask is None else _inner(view.mask, border)
            if mask is not None and not mask.any():
                return NoScore(f"the region lies within the {border} pixels that are shaved off")
            return self._measure(x, y, mask)

        return LiftedMetric(spec, measure)


def _inner(plane: NDArray[T], border: int) -> NDArray[T]:
    height, width = plane.shape
    return np.ascontiguousarray(plane[border : height - border, border : width - border])


psnr_y: Final = LumaMetric(
    MetricSpec(
        name="psnr-y",
        version="1-studio8",
        kind="full-reference",
        higher_is_better=True,
        identical=math.inf,
        typical=(10, 50),
        title="Peak signal-to-noise ratio of the luma Y (dB)",
        paper="https://doi.org/10.1109/TPAMI.2015.2439281",
        regional=True,
        known=KnownAnswer(29.209902138318, 1e-9, "NumPy 2, the formula of its card"),
    ),
    _psnr,
    """Peak signal-to-noise ratio in decibels of the luma, as papers on super-resolution print it.

    10·log10(255² / MSE) of Y as MATLAB's `rgb2ycbcr` gives it for 8-bit pictures (studio range, 16
    to 235, rounded to whole levels), with `shave` pixels left out at every border: `psnr-y,shave=2`
    is what they print for ×2. From 1.3 (black against white) to infinity (identical). About 1.3 dB
    above `psnr` of the same luma in full range, because 219 levels stand for 255.
    """,
)

ssim_y: Final = LumaMetric(
    MetricSpec(
        name="ssim-y",
        version="1-studio8-gaussian11-valid",
        kind="full-reference",
        higher_is_better=True,
        identical=1,
        typical=(0, 1),
        title="Structural similarity of the luma Y",
        paper="https://doi.org/10.1109/TPAMI.2015.2439281",
        regional=True,
        min_side=11,
        known=KnownAnswer(0.8180645587, 1e-6, "scikit-image 0.26, Gaussian, of the 8-bit Y"),
    ),
    _ssim,
    """Structural similarity of the luma, as papers on super-resolution print it.

    SSIM with a Gaussian window (11×11, σ = 1.5) of Y as MATLAB's `rgb2ycbcr` gives it for 8-bit
    pictures (studio range, 16 to 235, rounded to whole levels), with `shave` pixels left out at
    every border: `ssim-y,shave=2` is what they print for ×2. From −1 to 1, 1 for identical
    pictures.
    """,
)
