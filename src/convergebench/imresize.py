"""MATLAB's `imresize`: bicubic, widened against aliasing where it shrinks.

The published no-reference metrics were trained on pictures resized this way, and no other library
gives the same samples: OpenCV and Pillow differ in the kernel (−0.75 against −0.5), in widening it,
or in the border. Per axis, output sample i of n lies at u = (i + ½)/s − ½ of the input (s is the
scale) and is a weighted mean of the samples around it,

    out[i] = Σⱼ w(u − j)·in[j] / Σⱼ w(u − j),  w(x) = k(x) for s ≥ 1, k(s·x) for s < 1,

where k is Keys' cubic with a = −½, and samples beyond the border are mirrored, the outermost one
included. That is a product with a banded matrix, computed in blocks along its diagonal.

Keys: Cubic convolution interpolation for digital image processing. IEEE Transactions on Acoustics,
Speech, and Signal Processing 29(6), 1981.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from convergebench.bands import in_bands

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from convergebench.bands import Scratch

BLOCK: Final = 16
"""Output samples per block of the matrix: few, so that little of a block is zero, yet enough for
the matrix product to be worth its start."""
BAND: Final = 8 * BLOCK
"""Output rows computed at once: what lies between the two passes stays in cache."""
SMALL: Final = 1 << 18
"""Multiplications in a matrix product up to which OpenBLAS starts no threads: we have our own, and
its threads would wait for them."""


def imresize(
    plane: NDArray[Any],
    scale: float | None = None,
    *,
    size: tuple[int, int] | None = None,
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """A plane (H×W) or a picture (H×W×C) resized as by MATLAB's `imresize`.

    Args:
        plane: Samples of any type.
        scale: By what to multiply both sides; they are rounded up.
        size: Height and width of the result, in place of `scale`.
        dtype: Floating type of the result and of the arithmetic. Samples are neither rounded nor
            clipped: bicubic interpolation overshoots.
    """
    if plane.ndim == 3:
        parts = [
            imresize(plane[..., c], scale, size=size, dtype=dtype) for c in range(plane.shape[2])
        ]
        return np.stack(parts, axis=2)
    height, width = plane.shape
    if size is not None and scale is None:
        scales = size[0] / height, size[1] / width
    elif scale is not None and size is None:
        size = math.ceil(height * scale), math.ceil(width * scale)
        scales = scale, scale
    else:
        raise ValueError("imresize takes either a scale or a size")
    down = _blocks(height, size[0], scales[0], np.dtype(dtype))
    across = _blocks(width, size[1], scales[1], np.dtype(dtype))
    result = np.empty(size, dtype)

    def work(top: int, bottom: int, scratch: Scratch) -> None:
        tall = scratch("tall", (bottom - top, width), np.dtype(dtype).type)
        for start, stop, low, high, weights in down[top // BLOCK : -(-bottom // BLOCK)]:
            columns = max(1, SMALL // weights.size)
            for left in range(0, width, columns):
                part = plane[low:high, left : left + columns].astype(dtype)
                np.matmul(weights, part, out=tall[start - top : stop - top, left : left + columns])
        for start, stop, low, high, weights in across:
            np.matmul(tall[:, low:high], weights.T, out=result[top:bottom, start:stop])

    in_bands(size[0], BAND, work)
    return result


@lru_cache(maxsize=16)
def _blocks(
    length: int, count: int, scale: float, dtype: np.dtype[Any]
) -> list[tuple[int, int, int, int, NDArray[Any]]]:
    """The matrix that takes `length` samples to `count`, as blocks along its diagonal.

    Each is (first and last output sample, first and last input sample, weights).
    """
    widen = min(scale, 1.0)
    taps = math.ceil(4 / widen) + 2
    # MATLAB's own expression: samples halfway between two levels then round as there
    position = (np.arange(count) + 1) / scale + 0.5 * (1 - 1 / scale) - 1
    near = np.floor(position - 2 / widen).astype(np.int64)[:, None] + np.arange(taps)
    weights = _cubic(widen * (position[:, None] - near))
    weights /= weights.sum(axis=1, keepdims=True)
    mirrored = near % (2 * length)
    source = np.minimum(mirrored, 2 * length - 1 - mirrored)
    blocks = []
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        low, high = int(source[start:stop].min()), int(source[start:stop].max()) + 1
        matrix = np.zeros((stop - start, high - low))
        np.add.at(
            matrix,
            (np.arange(stop - start)[:, None], source[start:stop] - low),
            weights[start:stop],
        )
        blocks.append((start, stop, low, high, matrix.astype(dtype)))
    return blocks


def _cubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' kernel with a = −½."""
    x = np.abs(x)
    inner = (1.5 * x - 2.5) * x * x + 1
    outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x <= 1, inner, np.where(x <= 2, outer, 0.0))
