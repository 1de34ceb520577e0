"""Noise and sharpness of a frame alone: what editors add, and what they smooth away.

`noise` takes the median of the finest diagonal wavelet details, which edges and objects hardly
move. Immerkær's mean of Laplacians (1996) needs less arithmetic, but counts every edge as noise.
`sharpness` is the variance of the Laplacian, the measure most blur detectors use. It rises with
noise as well as with detail, so the two belong together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.metric import KnownAnswer, MetricSpec, StepView, lift
from convergebench.metrics.ssim import luma8

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROOT3: Final = math.sqrt(3)
_HIGH_PASS: Final = np.array([1 - _ROOT3, _ROOT3 - 3, 3 + _ROOT3, -1 - _ROOT3]) / math.sqrt(32)
"""Daubechies' wavelet of four taps (db2), in the order in which it slides over the samples."""
_TAPS: Final = len(_HIGH_PASS)
_MEDIAN_OF_NORMAL: Final = 0.6744897501960817
"""Median of |x| for a standard normal x."""


@lift(
    MetricSpec(
        name="noise",
        version="2-db2-mad-rgb",
        kind="no-reference",
        higher_is_better=False,
        typical=(0, 30),
        title="Noise level: standard deviation in 8-bit levels, estimated",
        paper="https://doi.org/10.1093/biomet/81.3.425",
        min_side=_TAPS,
        known=KnownAnswer(7.574537, 2e-3, "scikit-image 0.26, estimate_sigma"),
    )
)
def noise(view: StepView) -> float:
    """Estimated standard deviation of Gaussian noise: median(|d|) / 0.6745, mean over R, G and B.

    d are the diagonal details of one level of Daubechies' four-tap wavelet; those of flat and
    clipped fields, exactly 0, are left out, as they tell nothing of noise. From 0 (none seen, as in
    a flat picture) upward, in 8-bit levels. Fine texture that covers most of the picture counts as
    noise. Equals scikit-image's `estimate_sigma(pixels, channel_axis=-1, average_sigmas=True)`,
    which needs PyWavelets, but for flat fields: rounding leaves it 1e-15 there, which it counts.

    Donoho, Johnstone: Ideal spatial adaptation by wavelet shrinkage. Biometrika 81(3), 1994.
    """
    levels = []
    for plane in cv2.split(view.frame.pixels):
        sizes = np.abs(_diagonal_details(plane))
        # Details are (p + q√3) / 32 with whole p, q below 10⁴: 0, or above 1e-6. Double precision
        # leaves 1e-12 of a 0, single precision more than the smallest detail.
        sizes = sizes[sizes > 1e-9]
        levels.append(float(np.median(sizes)) / _MEDIAN_OF_NORMAL if sizes.size else 0.0)
    return sum(levels) / 3


def _diagonal_details(plane: NDArray[Any]) -> NDArray[np.float64]:
    """High-pass along both axes, every second sample; the border is mirrored."""
    before, after = _TAPS - 2, _TAPS - 1
    wide = cv2.copyMakeBorder(plane, before, after, before, after, cv2.BORDER_REFLECT)
    every: NDArray[Any] = cv2.sepFilter2D(wide, cv2.CV_64F, _HIGH_PASS, _HIGH_PASS, anchor=(0, 0))
    height, width = ((side + _TAPS - 1) // 2 for side in plane.shape)
    return every[: 2 * height : 2, : 2 * width : 2]


@lift(
    MetricSpec(
        name="sharpness",
        version="1-laplacian-luma8",
        kind="no-reference",
        higher_is_better=True,
        typical=(0, 5000),
        title="Sharpness: variance of the Laplacian",
        paper="https://doi.org/10.1109/ICPR.2000.903548",
        known=KnownAnswer(544.35715, 1e-3, "SciPy 1.17, ndimage.laplace"),
    )
)
def sharpness(view: StepView) -> float:
    """Variance of the luma's Laplacian.

    The Laplacian is I(x−1) + I(x+1) + I(y−1) + I(y+1) − 4·I in 8-bit levels, borders mirrored: 0
    for a flat picture, and higher for sharper ones.

    Pech-Pacheco, Cristóbal, Chamorro-Martínez, Fernández-Valdivia: Diatom autofocusing in
    brightfield microscopy: a comparative study. ICPR 2000.
    """
    edges = cv2.Laplacian(luma8(view.frame), cv2.CV_16S)
    deviation = cv2.meanStdDev(edges)[1]
    return float(deviation[0, 0]) ** 2
