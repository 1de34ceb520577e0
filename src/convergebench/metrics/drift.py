"""Parts of the squared error between home and frame: a shift of colours, and faded detail.

Both are in 8-bit levels, as the RMSE is, and their squares are parts of its square. With e the
difference of the samples of one channel, the mean of e² is the square of e's mean plus its
variance: the first, over the channels, is `colour-offset`². What is left is projected onto home's
own detail: `detail-loss`² is what a fading of it explains.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.metric import KnownAnswer, MetricSpec, StepView, lift
from convergebench.metrics.pair import pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

BANDS: Final = (1.0, 2.0, 4.0)
"""Standard deviations, in pixels, of the Gaussians between which a band of detail lies."""

ROWS: Final = 256
MARGIN: Final = 32
"""Rows around a strip that the Gaussians reach: four deviations of each, 25 in all."""


@lift(
    MetricSpec(
        name="colour-offset",
        version="1-rgb",
        kind="full-reference",
        higher_is_better=False,
        identical=0,
        typical=(0, 60),
        title="Colour offset: shift of the mean colour, RMS over R, G and B",
        paper="https://en.wikipedia.org/wiki/Bias%E2%80%93variance_tradeoff",
        known=KnownAnswer(5.038137, 1e-6, "NumPy 2, the formula of its card"),
    )
)
def colour_offset(view: StepView) -> float:
    """Root mean square over R, G and B of the difference of the means; 0 for equal means.

    In 8-bit levels. Its square is the part of the mean squared error that one constant per channel
    makes up: MSE = offset² + variance of the difference.
    """
    reference, frame = pair(view)
    before, after = (np.array(cv2.mean(p.pixels)[:3]) for p in (reference, frame))
    return float(np.sqrt(np.mean((after - before) ** 2)))


@lift(
    MetricSpec(
        name="detail-loss",
        version="1-3-bands-rgb",
        kind="full-reference",
        higher_is_better=False,
        identical=0,
        typical=(0, 40),
        title="Detail loss: error that fading of home's detail explains",
        paper="https://en.wikipedia.org/wiki/Non-negative_least_squares",
        known=KnownAnswer(6.594754, 1e-3, "SciPy 1.17, the formula of its card"),
    )
)
def detail_loss(view: StepView) -> float:
    """Root mean square, in 8-bit levels, of the error that fading of home's detail explains.

    Home's detail is cut into three bands by Gaussians of 1, 2 and 4 pixels. The difference between
    frame and home, less its mean, is projected onto −(f1·band1 + f2·band2 + f3·band3) with no f
    below 0, all channels together. 0 where no band has faded; blur moves it, noise, shifts of
    colour and sharpening do not. Its square is a part of the mean squared error.
    """
    reference, frame = pair(view)
    offset = np.array(cv2.mean(reference.pixels)[:3]) - np.array(cv2.mean(frame.pixels)[:3])
    gram, product = np.zeros((3, 3)), np.zeros(3)
    height = len(reference.pixels)
    for top in range(0, height, ROWS):
        # Beyond its reach a Gaussian sees nothing, so a strip with a margin is as good as all.
        first, last = max(0, top - MARGIN), min(height, top + ROWS + MARGIN)
        inner = slice(top - first, min(top + ROWS, height) - first)
        planes = (cv2.split(p.pixels[first:last]) for p in (reference, frame))
        for before, after, mean in zip(*planes, offset.tolist(), strict=True):
            home = before.astype(np.float32)
            error = (home - after - np.float32(mean))[inner]
            bands = [band[inner] for band in _bands(home)]
            for i, one in enumerate(bands):
                product[i] += _dot(one, error)
                for j, other in enumerate(bands[: i + 1]):
                    gram[i, j] = gram[j, i] = gram[i, j] + _dot(one, other)
    return math.sqrt(_explained(gram, product) / reference.pixels.size)


def _bands(plane: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """What each Gaussian takes away from the one before."""
    found, last = [], plane
    for sigma in BANDS:
        # only the difference to the last one: variances of Gaussians add up
        missing = sigma if last is plane else math.sqrt(sigma**2 - (sigma / 2) ** 2)
        softer: NDArray[Any] = cv2.GaussianBlur(
            last, (0, 0), missing, borderType=cv2.BORDER_REFLECT_101
        )
        found.append(last - softer)
        last = softer
    return found


def _dot(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(np.einsum("ij,ij->i", one, other).sum(dtype=np.float64))


def _explained(gram: NDArray[np.float64], product: NDArray[np.float64]) -> float:
    """‖H·f‖² of the f ≥ 0 nearest to the error, given HᵀH and Hᵀe."""
    best = 0.0
    for chosen in range(1, 8):
        mine = [i for i in range(3) if chosen >> i & 1]
        try:
            faded = np.linalg.solve(gram[np.ix_(mine, mine)], product[mine])
        except np.linalg.LinAlgError:  # a flat picture has no detail to lose
            continue
        if (faded > 0).all():
            best = max(best, float(faded @ product[mine]))
    return best
