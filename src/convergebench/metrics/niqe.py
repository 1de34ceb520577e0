"""NIQE: how far the statistics of a picture's blocks are from those of pristine photographs.

The luma is cropped to whole blocks of 96×96. In each block, at full and at half size, 18 numbers
describe the MSCN field (`convergebench.metrics.mscn`): shape and mean scale of an asymmetric
generalised Gaussian fitted to it, and shape, mean, left and right scale of one fitted to the
products of neighbours in each of four directions. With ν and Σ the mean and covariance of the 36
over all blocks, and ν₀ and Σ₀ those of sharp blocks of pristine photographs,

    NIQE = √((ν − ν₀)ᵀ ((Σ + Σ₀)/2)⁺ (ν − ν₀)).

Mittal, Soundararajan, Bovik: Making a “completely blind” image quality analyzer. IEEE Signal
Processing Letters 20(3), 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench import weights
from convergebench.bands import Scratch, in_bands
from convergebench.errors import MetricUnavailable
from convergebench.imresize import imresize
from convergebench.metric import (
    KnownAnswer,
    LiftedMetric,
    MetricSpec,
    Needs,
    NoScore,
    Picture,
)
from convergebench.metrics.gaussians import (
    Moments,
    fit_asymmetric,
    neighbour_moments,
    scales,
)
from convergebench.metrics.mscn import OUTERMOST, RADIUS, edges, full, half

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convergebench.metrics.mscn import Field

    Doubles = NDArray[np.float64]

SIDE: Final = 96
FEATURES: Final = 36
REACH: Final = 2
"""Samples of the half-size luma next to a border that depend on what lies beyond it."""


@dataclass(frozen=True)
class Pristine:
    """Mean and covariance of the features of pristine photographs."""

    mean: Doubles
    covariance: Doubles


def read_pristine(path: Path) -> Pristine:
    """The model from the authors' .mat file, or from the .npz that basicsr made of it.

    Raises:
        MetricUnavailable: It is no such file.
    """
    found = weights.arrays(path)
    mean, covariance = (
        next((found[name] for name in (f"{n}_prisparam", f"{n}_pris_param") if name in found), None)
        for n in ("mu", "cov")
    )
    if mean is None or covariance is None:
        raise MetricUnavailable(f"{path} is not NIQE's model: it lacks mu_prisparam, cov_prisparam")
    if mean.size != FEATURES or covariance.shape != (FEATURES, FEATURES):
        raise MetricUnavailable(f"{path} is not NIQE's model: it is not of {FEATURES} features")
    model = Pristine(mean.ravel().astype(np.float64), covariance.astype(np.float64))
    if not (np.isfinite(model.mean).all() and np.isfinite(model.covariance).all()):
        raise MetricUnavailable(f"{path} is not NIQE's model: not all of its numbers are finite")
    return model


def block_features(picture: Picture) -> Doubles:
    """Blocks × 36 features, row by row of blocks, computed once per picture.

    Rows have NaN where a distribution cannot be fitted, as in a block without texture.
    """
    return picture.shared("niqe", _block_features)


def _block_features(picture: Picture) -> Doubles:
    width, height = (side // SIDE * SIDE for side in picture.size)
    if not width * height:
        return np.empty((0, FEATURES))
    fields = _full_field(picture, height, width), _half_field(picture, height // 2, width // 2)
    return np.concatenate(
        [_described(_moments(f, SIDE // scale)) for scale, f in enumerate(fields, 1)], axis=1
    )


def _full_field(picture: Picture, height: int, width: int) -> Field:
    """The field of the cropped luma: that of the whole, but for its new border."""
    level = full(picture)
    if level.plane.shape == (height, width):
        return level.field
    field = level.field[:height, :width].copy()
    edges(field, level.plane[:height, :width], OUTERMOST)
    return field


def _half_field(picture: Picture, height: int, width: int) -> Field:
    """The field of the cropped luma at half the size."""
    level, luma = half(picture), full(picture).plane[: 2 * height, : 2 * width]
    if full(picture).plane.shape == luma.shape:
        return level.field
    plane = level.plane[:height, :width].copy()
    strip = 8 * REACH
    plane[-REACH:] = imresize(luma[-strip:], 0.5)[-REACH:]
    plane[:, -REACH:] = imresize(luma[:, -strip:], 0.5)[:, -REACH:]
    field = level.field[:height, :width].copy()
    edges(field, plane, OUTERMOST, REACH + RADIUS)
    return field


def _moments(field: Field, side: int) -> Moments:
    """5 × blocks: of the field and of its four products, which wrap around each block."""

    def work(top: int, bottom: int, scratch: Scratch) -> Moments:
        return neighbour_moments(field[top:bottom], field[bottom - 1], side, scratch)

    return Moments.joined(in_bands(len(field), side, work), axis=1)


def _described(moments: Moments) -> Doubles:
    shape, left, right = fit_asymmetric(moments)
    ratio, mean = scales(shape)
    left, right = left * ratio, right * ratio
    found = [shape[0], (left[0] + right[0]) / 2]
    for direction in range(1, 5):
        found += [a[direction] for a in (shape, (right - left) * mean, left, right)]
    return np.stack(found, axis=1)


def distance(features: Doubles, model: Pristine) -> float | NoScore:
    """The score of blocks × 36 features."""
    usable = features[np.isfinite(features).all(axis=1)]
    if not len(usable):
        return NoScore(f"every block of {SIDE}×{SIDE} pixels is too flat or too regular")
    spread = np.cov(usable, rowvar=False) if len(usable) > 1 else np.zeros((FEATURES, FEATURES))
    apart = usable.mean(axis=0) - model.mean
    square = float(apart @ np.linalg.pinv((spread + model.covariance) / 2) @ apart)
    return math.sqrt(max(0.0, square))


SPEC: Final = MetricSpec(
    name="niqe",
    version="1-luma8-96",
    kind="no-reference",
    higher_is_better=False,
    typical=(0, 100),
    title="NIQE (Mittal et al. 2013)",
    paper="https://doi.org/10.1109/LSP.2012.2227726",
    min_side=SIDE,
    needs=Needs(weights=("niqe",)),
    known=KnownAnswer(8.07077, 1e-3, "pyiqa 0.1.16, of the 8-bit luma in float64"),
)


def niqe(model: Pristine | None = None, /) -> LiftedMetric:
    """NIQE: distance of a picture's block statistics from natural ones, as its authors computed it.

    From 0 up; about 3 for a good photograph. The luma is MATLAB's `rgb2gray`, rounded to 8 bits,
    with its outermost samples repeated beyond the border; half size is MATLAB's `imresize`; the
    model is the authors'. Not MATLAB's built-in `niqe`, which was trained differently.

    Equals the official value of pyiqa's test set to six digits where a picture has no flat parts,
    and is within 0.6 % of the other four, where the signs of rounding noise seem to be counted (see
    `brisque`); ours counts none. A block too flat or too regular for a fit is left out of mean and
    covariance; a picture of such blocks alone has no score. With a single block Σ is 0.

    Ours because pyiqa may not be used commercially and takes thirty times as long.
    """
    if model is not None:
        return LiftedMetric(SPEC, lambda view: distance(block_features(view.frame), model))
    path = weights.find("niqe")
    load = cache(lambda: read_pristine(path))
    return LiftedMetric(SPEC, lambda view: distance(block_features(view.frame), load()))


niqe.spec = SPEC  # type: ignore[attr-defined]
