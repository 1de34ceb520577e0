"""Too much fine detail: where a restoration has far more of it than the truth.

Over-generation (dense hair, amplified textures, patterns that nothing has) is fine detail beyond
what the truth has. It is local, so pictures are looked at tile by tile.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.metric import KnownAnswer, MetricSpec, Picture, StepView, lift
from convergebench.metrics.pair import pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIGMA: Final = 2.0
"""Detail is what a Gaussian of this standard deviation, in pixels, takes away."""

TILE: Final = 16
"""Pixels of a tile's side, about: a picture is cut into whole tiles."""

CALM: Final = 4.0
"""Added to both energies: nobody sees detail of two 8-bit levels, so nothing is divided by less."""

TOP: Final = 0.1
"""The share of tiles that counts: those with the highest ratios."""


@lift(
    MetricSpec(
        name="detail-ratio",
        version="1-tiles16-top10",
        kind="full-reference",
        higher_is_better=False,
        identical=1,
        typical=(1, 8),
        title="Detail ratio: fine detail beyond home's, in the tenth of tiles with most",
        paper="https://en.wikipedia.org/wiki/High-boost_filter",
        min_side=TILE,
        known=KnownAnswer(2.587533, 2e-3, "NumPy 2, the formula of its card"),
    )
)
def detail_ratio(view: StepView) -> float:
    """How many times home's fine detail the frame has where it has most of it; 1 where no more.

    Detail is luma less its Gaussian blur of 2 pixels; a tile's energy E the mean of its square over
    about 16×16 pixels. Of r = √((E_frame + 4) / (E_home + 4)) the geometric mean over the tenth of
    tiles with the highest r is taken, at least 1. Sharpening, noise and invented texture raise it,
    blur and a shift of colours do not. 2 is detail of twice the amplitude.
    """
    reference, frame = pair(view)
    before, after = (picture.shared("detail-tiles", _tiles) for picture in (reference, frame))
    ratios = np.sort(np.log((after + CALM) / (before + CALM)), axis=None)[::-1] / 2
    most = ratios[: math.ceil(TOP * ratios.size)]
    return max(1.0, math.exp(float(most.mean())))


def _tiles(picture: Picture) -> NDArray[np.float64]:
    """Mean energy of detail in each tile."""
    luma = cv2.cvtColor(picture.pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    soft: NDArray[Any] = cv2.GaussianBlur(luma, (0, 0), SIGMA, borderType=cv2.BORDER_REFLECT_101)
    energy = (luma - soft) ** 2
    height, width = energy.shape
    size = max(1, width // TILE), max(1, height // TILE)
    found: NDArray[np.float64] = cv2.resize(energy, size, interpolation=cv2.INTER_AREA).astype(
        np.float64
    )
    return found
