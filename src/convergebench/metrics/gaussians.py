"""Generalised Gaussians fitted to a field by their moments.

The asymmetric generalised Gaussian has shape α and a scale on either side,

    p(x) ∝ exp(−(−x/βl)^α) for x < 0, exp(−(x/βr)^α) for x ≥ 0,  β = σ·√(Γ(1/α) / Γ(3/α)),

with σl² the mean of x² over x < 0 and σr² over x > 0. With γ = σl/σr, α is where

    Γ(2/α)² / (Γ(1/α)·Γ(3/α)) = (E|x|)² / E[x²] · (γ³ + 1)(γ + 1) / (γ² + 1)²,

searched, as the published programs do, on a grid of 0.2 to 10 in steps of 0.001 (Lasmar, Stitou,
Berthoumieu: Multiscale skewed heavy tailed model for texture analysis. ICIP 2009). For γ = 1 that
is the symmetric one (Sharifi, Leon-Garcia 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from convergebench.bands import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Field = NDArray[np.float32]

SHAPES: Final[Doubles] = np.arange(200, 10001) / 1000


@dataclass(frozen=True)
class Moments:
    """What a fit needs to know of samples; arrays of one shape, an entry per set of samples.

    Attributes:
        count: How many samples.
        negative: How many of them are below zero.
        zero: How many are zero.
        absolute: Σ|x|.
        left: Σx² over x < 0.
        right: Σx² over x > 0.
    """

    count: Doubles
    negative: Doubles
    zero: Doubles
    absolute: Doubles
    left: Doubles
    right: Doubles

    def summed(self, axis: int) -> Moments:
        """The moments of all sets along an axis taken together."""
        return Moments(**{name: value.sum(axis=axis) for name, value in vars(self).items()})

    @staticmethod
    def joined(parts: Sequence[Moments], axis: int = 0) -> Moments:
        """The sets of several moments as one, along an axis."""
        return Moments(
            **{n: np.concatenate([vars(p)[n] for p in parts], axis) for n in vars(parts[0])}
        )


def block_moments(band: Field, side: int, scratch: Scratch | None = None) -> Moments:
    """Moments of each block of `side` columns of a band, over all of its rows (at most 255).

    Returns:
        1 × blocks.
    """
    scratch = scratch or Scratch()
    rows, width = band.shape

    def per_block(columns: NDArray[Any]) -> Doubles:
        sums: Doubles = columns.reshape(1, -1, side).sum(axis=2, dtype=np.float64)
        return sums

    def counted(where: NDArray[np.bool_]) -> Doubles:
        return per_block(np.add.reduce(where.view(np.uint8), axis=0, dtype=np.uint8))

    flags = scratch("flags", band.shape, np.bool_)
    negative = counted(np.less(band, 0, out=flags))
    zero = counted(np.equal(band, 0, out=flags))
    sums, squares = [], []
    for clip in (np.minimum, np.maximum):
        part = clip(band, 0, out=scratch("part", band.shape, np.float32))
        sums.append(per_block(np.add.reduce(part, axis=0)))
        squares.append(per_block(np.einsum("ij,ij->j", part, part)))
    count = np.full((1, width // side), float(rows * side))
    return Moments(count, negative, zero, sums[1] - sums[0], *squares)


def neighbour_moments(
    band: Field, before: Field, side: int, scratch: Scratch | None = None
) -> Moments:
    """Moments of a band's blocks and of the products of neighbours in them.

    Args:
        band: Rows of a field, as many blocks wide as there are.
        before: The row before its first: the band's last where blocks are rolled on their own.
        side: Width of a block. Left and right neighbours wrap around inside it.
        scratch: Arrays to work in.

    Returns:
        5 × blocks: the field itself, and its products with the neighbour to the left, above, above
        left and above right.
    """
    scratch = scratch or Scratch()
    rows, width = band.shape
    field: Field = scratch("field", (rows + 1, width), np.float32)
    field[0], field[1:] = before, band
    here, above = field[1:], field[:-1]
    product: Field = scratch("product", band.shape, np.float32)
    parts = [block_moments(here, side, scratch)]
    for other, step in ((here, 1), (above, 0), (above, 1), (above, -1)):
        _product(here, other, step, side, product)
        parts.append(block_moments(product, side, scratch))
    return Moments.joined(parts)


def _product(here: Field, other: Field, step: int, side: int, out: Field) -> None:
    """Each sample times that `step` columns to the left in another row, around inside blocks."""
    if step == 0:
        np.multiply(here, other, out=out)
        return
    near, far = (slice(1, None), slice(None, -1))[::step]
    np.multiply(here[:, near], other[:, far], out=out[:, near])
    first, last = (0, -1)[::step]
    shape = len(here), -1, side
    np.multiply(
        here.reshape(shape)[..., first],
        other.reshape(shape)[..., last],
        out=out.reshape(shape)[..., first],
    )


@cache
def _ratios() -> Doubles:
    """Γ(2/α)² / (Γ(1/α)·Γ(3/α)) on the grid; it rises with α."""
    from scipy.special import gammaln

    log = 2 * gammaln(2 / SHAPES) - gammaln(1 / SHAPES) - gammaln(3 / SHAPES)
    ratios: Doubles = np.exp(log)
    return ratios


def _nearest(values: Doubles, table: Doubles) -> NDArray[np.intp]:
    """Where a rising table is nearest to each value; the first where two are alike."""
    right = np.clip(np.searchsorted(table, values), 1, len(table) - 1)
    return right - (values - table[right - 1] <= table[right] - values)


def fit_symmetric(moments: Moments) -> tuple[Doubles, Doubles]:
    """Shape α and variance σ² of the symmetric generalised Gaussian; NaN for samples all zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (moments.left + moments.right) / moments.count
        ratio = variance / (moments.absolute / moments.count) ** 2
    # nearest in this ratio, not in its inverse as below: that is what either program searches
    falling = 1 / _ratios()
    shape = SHAPES[len(SHAPES) - 1 - _nearest(ratio, falling[::-1])]
    return np.where(np.isnan(ratio), np.nan, shape), variance


def fit_asymmetric(moments: Moments, zeros: float = 0) -> tuple[Doubles, Doubles, Doubles]:
    """Shape α and the deviations σl and σr; NaN where either side has no samples.

    Args:
        moments: Of the samples.
        zeros: Which part of the zeros is counted among the positive samples.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        positive = moments.count - moments.negative - (1 - zeros) * moments.zero
        left = np.sqrt(moments.left / moments.negative)
        right = np.sqrt(moments.right / positive)
        skew = left / right
        squares = (moments.left + moments.right) / moments.count
        ratio = (moments.absolute / moments.count) ** 2 / squares
        ratio *= (skew**3 + 1) * (skew + 1) / (skew**2 + 1) ** 2
    shape = np.where(np.isfinite(ratio), SHAPES[_nearest(ratio, _ratios())], np.nan)
    return shape, left, right


def scales(shape: Doubles) -> tuple[Doubles, Doubles]:
    """β/σ of a shape, and the mean of the distribution over βr − βl: Γ(2/α) / Γ(1/α)."""
    from scipy.special import gammaln

    return (
        np.exp((gammaln(1 / shape) - gammaln(3 / shape)) / 2),
        np.exp(gammaln(2 / shape) - gammaln(1 / shape)),
    )
