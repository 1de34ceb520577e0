"""PIQE: how much of a picture's active area looks distorted, learned from nothing.

The MSCN field (`convergebench.metrics.mscn`) of the luma, scaled so that its brightest sample is
255, is divided into blocks of 16×16. With v the variance of a block, it is

- active if v > 0.1;
- impaired if along one of its four edges 6 neighbouring samples deviate by less than 0.1;
- noisy if √v > 2β, with β = |√v − d| / max(√v, d), and d the deviation of its two middle columns
  divided by that of the others;

and an active block counts 1 − v if it is impaired, plus v if it is noisy. Over N active blocks,

    PIQE = 100·(1 + Σ) / (1 + N).

Venkatanath, Praneeth, Bh, Channappayya, Medasani: Blind image quality evaluation using perception
based features. National Conference on Communications, 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from convergebench.bands import Scratch, in_bands
from convergebench.metric import KnownAnswer, MetricSpec, Picture, StepView, lift
from convergebench.metrics.mscn import full, mscn
from convergebench.metrics.ssim import luma8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convergebench.metrics.mscn import Field

    Doubles = NDArray[np.float64]

SIDE: Final = 16
SEGMENT: Final = 6
ACTIVE: Final = 0.1
"""Variance above which a block is active."""
IMPAIRED: Final = 0.1
"""Deviation below which part of an edge is impaired."""
CENTRE: Final = (7, 8)
AROUND: Final = tuple(column for column in range(SIDE) if column not in (7, 9))
"""Columns of a block that count as its surround: the published program deletes the two middle ones
one after the other, and the second has moved by then."""
BAND: Final = 4 * SIDE


def _field(picture: Picture) -> Field:
    """The field of the scaled luma, mirrored at bottom and right to whole blocks."""
    luma = luma8(picture)
    peak = int(luma.max())
    pad = [(0, -side % SIDE) for side in luma.shape]
    if peak == 255 and not any(after for _, after in pad):
        return full(picture).field
    levels = np.arange(256) * 510 // max(1, peak)  # twice the level, so that halves round up
    scaled = ((levels + 1) // 2).astype(np.uint8)[luma]
    return mscn(np.pad(scaled, pad, mode="symmetric"))


def _variance(count: int, total: Doubles, squares: Doubles) -> Doubles:
    """The sample variance of `count` samples from their sum and sum of squares."""
    return np.maximum(0, squares - total * total / count) / (count - 1)


def _distortions(band: Field) -> tuple[NDArray[np.bool_], Doubles]:
    """Which blocks of a band are active, and the distortion of each that is."""
    blocks = band.reshape(-1, SIDE, band.shape[1])
    columns = [
        sums.reshape(len(blocks), -1, SIDE).astype(np.float64)
        for sums in (blocks.sum(axis=1), np.einsum("rij,rij->rj", blocks, blocks))
    ]

    def variance(which: Sequence[int]) -> Doubles:
        total, squares = (c[..., which].sum(axis=-1) for c in columns)
        return _variance(SIDE * len(which), total, squares)

    varies = variance(range(SIDE))
    deviation = np.sqrt(varies)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.sqrt(variance(CENTRE) / variance(AROUND)))
        beta = np.abs(deviation - ratio) / np.maximum(deviation, ratio)
        noisy = deviation > 2 * beta
    active = varies > ACTIVE
    return active, active * (_impaired(blocks) * (1 - varies) + noisy * varies)


def _impaired(blocks: Field) -> NDArray[np.bool_]:
    """Blocks with a stretch along an edge that hardly varies."""
    shape = len(blocks), -1, SIDE
    rows = (blocks[:, row].reshape(shape) for row in (0, -1))
    columns = (
        blocks.reshape(len(blocks), SIDE, -1, SIDE)[..., column].transpose(0, 2, 1)
        for column in (0, -1)
    )
    edges = np.ascontiguousarray(np.moveaxis(np.stack([*rows, *columns]), -1, 0), np.float64)
    stretches = sliding_window_view(edges, SEGMENT, axis=0)
    total, squares = stretches.sum(axis=-1), np.einsum("...i,...i->...", stretches, stretches)
    still = _variance(SEGMENT, total, squares) < IMPAIRED**2
    return np.asarray(still.any(axis=(0, 1)))


@lift(
    MetricSpec(
        name="piqe",
        version="1-luma8",
        kind="no-reference",
        higher_is_better=False,
        typical=(0, 100),
        title="PIQE (Venkatanath et al. 2015)",
        paper="https://doi.org/10.1109/NCC.2015.7084843",
        min_side=SIDE,
        known=KnownAnswer(31.25242, 1e-3, "pyiqa 0.1.16, of the 8-bit luma in float64"),
    )
)
def piqe(view: StepView) -> float:
    """PIQE: the distortion of a picture's active blocks, as MATLAB's `piqe` computes it.

    From 0 to 100, and 100 for a picture without any active block, as for a constant one: the
    formula says so. The luma is MATLAB's `rgb2gray`, rounded to 8 bits, then scaled and rounded
    again. Equals the five official values of pyiqa's test set to the two digits printed. pyiqa
    differs where a side is no multiple of 16, as none of those pictures has: it pads by the
    remainder and drops what is left, ours pads to a whole block. And it does not round the luma
    before it scales it.

    Ours because pyiqa may not be used commercially and takes ten times as long.
    """
    field = _field(view.frame)

    def work(top: int, bottom: int, scratch: Scratch) -> tuple[NDArray[np.bool_], Doubles]:
        return _distortions(field[top:bottom])

    active, distortion = zip(*in_bands(len(field), BAND, work), strict=True)
    total = float(np.concatenate(distortion).sum())
    return 100 * (total + 1) / (int(np.concatenate(active).sum()) + 1)
