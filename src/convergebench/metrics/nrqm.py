"""NRQM: a no-reference quality of super-resolved pictures, learned from human scores.

Three sets of features of the luma and of two halvings of it (3×3 Gaussian, σ = ½), each with a
regression forest: DCT blocks (`blockdct`, 3 × 6), oriented bands (`scalemixture`, 45, of the luma
alone) and singular values (3 × 25: of the matrix whose columns are the 5×5 blocks, the last ones
filled up with zeros). With sₙ the answer of forest n,

    NRQM = b₀ + b₁·s₁ + b₂·s₂ + b₃·s₃.

Ma, Yang, Yang, Yang: Learning a no-reference quality metric for single-image super-resolution.
Computer Vision and Image Understanding 158, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench import weights
from convergebench.errors import MetricUnavailable
from convergebench.metric import LiftedMetric, MetricSpec, Needs, Picture
from convergebench.metrics.blockdct import block_features
from convergebench.metrics.forest import Forest
from convergebench.metrics.scalemixture import mixture_features
from convergebench.metrics.ssim import luma8

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

SCALES: Final = 3
BLOCK: Final = 5
COUNTS: Final = (18, 45, 75)
"""Features in each set."""
MIN_SIDE: Final = 84
"""Below this, the smallest of the three scales has fewer blocks than singular values."""


@dataclass(frozen=True)
class Model:
    """Three forests, and the four numbers of the regression on their answers."""

    forests: tuple[Forest, Forest, Forest]
    linear: Doubles

    def score(self, features: tuple[Doubles, Doubles, Doubles]) -> float:
        """The quality of a picture with these features."""
        answers = [f.predict(x) for f, x in zip(self.forests, features, strict=True)]
        return float(self.linear @ [1.0, *answers])


def read_model(path: Path) -> Model:
    """The model from the authors' model.mat, or NRQM_model.mat as pyiqa publishes it.

    Raises:
        MetricUnavailable: It is no such file.
    """
    found = weights.arrays(path)
    linear = found.get("model/linear", np.zeros(0)).ravel().astype(np.float64)
    if len(linear) != 1 + len(COUNTS) or not np.isfinite(linear).all():
        raise MetricUnavailable(f"{path} is not NRQM's model: expected 4 numbers in model.linear")
    try:
        one, two, three = (
            Forest.of(_below(found, f"model/rf/{n}/"), count) for n, count in enumerate(COUNTS)
        )
    except ValueError as error:
        raise MetricUnavailable(f"{path} is not NRQM's model: {error}") from error
    return Model((one, two, three), linear)


def _below(found: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {n.removeprefix(prefix): v for n, v in found.items() if n.startswith(prefix)}


def features(picture: Picture) -> tuple[Doubles, Doubles, Doubles]:
    """The three sets of features of a picture of at least 84×84, computed once."""
    return picture.shared("nrqm", lambda p: plane_features(luma8(p)))


def plane_features(luma: NDArray[np.uint8]) -> tuple[Doubles, Doubles, Doubles]:
    """The three sets of features of 8-bit luma."""
    scales = [luma / 255]
    for _ in range(1, SCALES):
        scales.append(_halved(scales[-1]))
    return (
        np.concatenate([block_features(plane) for plane in scales]),
        mixture_features(luma),
        np.concatenate([_singular_values(plane) for plane in scales]),
    )


def _halved(plane: Doubles) -> Doubles:
    """Smoothed, with zeros beyond the border, and every second sample kept."""
    taps = cv2.getGaussianKernel(3, 0.5)
    smooth = cv2.sepFilter2D(plane, -1, taps, taps, borderType=cv2.BORDER_CONSTANT)
    return np.asarray(smooth, np.float64)[1::2, 1::2]


def _singular_values(plane: Doubles) -> Doubles:
    """Of the matrix of 5×5 blocks, largest first."""
    rows, columns = (-(-length // BLOCK) for length in plane.shape)
    ends = [(0, n * BLOCK - length) for n, length in zip((rows, columns), plane.shape, strict=True)]
    blocks = np.pad(plane, ends).reshape(rows, BLOCK, columns, BLOCK).swapaxes(1, 2)
    triangle = np.linalg.qr(blocks.reshape(-1, BLOCK**2), mode="r")
    values: Doubles = np.linalg.svd(triangle, compute_uv=False)
    return values


SPEC: Final = MetricSpec(
    name="nrqm",
    version="1-luma8",
    kind="no-reference",
    higher_is_better=True,
    typical=(0, 10),
    title="NRQM, Ma's score (Ma et al. 2017)",
    paper="https://doi.org/10.1016/j.cviu.2016.12.009",
    min_side=MIN_SIDE,
    cost="heavy",
    needs=Needs(weights=("nrqm",)),
)


def nrqm(model: Model | None = None) -> LiftedMetric:
    """NRQM: what people would say of a super-resolved picture, as its authors computed it.

    From 0 to 10, where 10 is best. The luma is MATLAB's `rgb2gray`, rounded to 8 bits. Follows the
    authors' program (github.com/chaoma99/sr-metric), not pyiqa's translation, where those differ
    (figures: picture I06 of its test set). In pyiqa the last band of the finer level has a parent,
    which moves two shapes by up to 0.04 and five agreements by up to 0.004; negative agreement
    counts as 0 (up to 0.004); a sample more or less is in the pooled tenths (0.3 %); and blocks lie
    one sample off where a side leaves 1 over threes (up to 4 %). All else is equal to 1e-5. The
    official values of pyiqa's test set have not been compared: the parameters cannot be had on the
    machine this was written on.

    Ours because pyiqa may not be used commercially and is some thirty times slower.
    """
    if model is not None:
        return LiftedMetric(SPEC, lambda view: model.score(features(view.frame)))
    path = weights.find("nrqm")
    load = cache(lambda: read_model(path))
    return LiftedMetric(SPEC, lambda view: load().score(features(view.frame)))


nrqm.spec = SPEC  # type: ignore[attr-defined]
