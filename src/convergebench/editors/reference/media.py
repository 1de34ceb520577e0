"""What a generator does to the whole picture at every call, one effect at a time.

Each medium is a pure function from pixels to pixels. Samples are 8-bit sRGB levels throughout, and
results are rounded to nearest and clipped to 0…255.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np
import scipy.fft

from convergebench.frame import resize

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK: Final = 8
"""Side of the blocks that `latent` codes."""

_TO_YCC: Final = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32
)


def resample(pixels: NDArray[np.uint8], scale: float) -> NDArray[np.uint8]:
    """Down to `scale` of the size and back up, both with Lanczos."""
    height, width = pixels.shape[:2]
    small = resize(pixels, max(1, round(width * scale)), max(1, round(height * scale)))
    return resize(small, width, height)


def blur(pixels: NDArray[np.uint8], sigma: float) -> NDArray[np.uint8]:
    """Gaussian blur of `sigma` pixels, the picture mirrored at its edges."""
    return levels(gaussian(pixels.astype(np.float32), sigma))


def noise(pixels: NDArray[np.uint8], draw: np.random.Generator, sigma: float) -> NDArray[np.uint8]:
    """White Gaussian noise of `sigma` levels on every sample, independent per channel."""
    grain = draw.standard_normal(pixels.shape, dtype=np.float32)
    return levels(pixels + np.float32(sigma) * grain)


def tint(pixels: NDArray[np.uint8], amount: int) -> NDArray[np.uint8]:
    """Towards green: green up by `amount` levels, red and blue down by half of it, rounded down."""
    change = np.array([-(amount // 2), amount, -(amount // 2)], np.int16)
    return levels(pixels + change)


def shift(pixels: NDArray[np.uint8], dx: int, dy: int) -> NDArray[np.uint8]:
    """Move the content right by `dx` and down by `dy` pixels; the edge is repeated."""
    height, width = pixels.shape[:2]
    columns = np.clip(np.arange(width) - dx, 0, width - 1)
    rows = np.clip(np.arange(height) - dy, 0, height - 1)
    return np.ascontiguousarray(pixels[rows][:, columns])


def crop(
    pixels: NDArray[np.uint8], share: float, axis: str, *, keep_size: bool
) -> NDArray[np.uint8]:
    """Cut `share` of the width, the height or both, half at each end; then back to size or not."""
    height, width = pixels.shape[:2]
    columns = width - (round(width * share) if axis != "height" else 0)
    rows = height - (round(height * share) if axis != "width" else 0)
    columns, rows = max(1, columns), max(1, rows)
    left, top = (width - columns) // 2, (height - rows) // 2
    cut = np.ascontiguousarray(pixels[top : top + rows, left : left + columns])
    return resize(cut, width, height) if keep_size else cut


def smooth(pixels: NDArray[np.uint8], contrast: float, radius: int) -> NDArray[np.uint8]:
    """Bilateral filter: texture weaker than about `contrast` levels fades, edges stay."""
    return cv2.bilateralFilter(pixels, 2 * radius + 1, contrast, float(radius)).astype(np.uint8)


def scatter(
    pixels: NDArray[np.uint8], draw: np.random.Generator, density: float, contrast: float
) -> NDArray[np.uint8]:
    """Single pixels made brighter or darker by `contrast` levels, a share `density` of them all."""
    chosen = draw.random(pixels.shape[:2], dtype=np.float32) < density
    sign = draw.integers(0, 2, pixels.shape[:2], dtype=np.int8) * np.float32(2) - np.float32(1)
    return levels(pixels + (chosen * sign * np.float32(contrast))[..., None])


def latent(
    pixels: NDArray[np.uint8], step: int, keep: int, quantum: float, *, moving: bool
) -> NDArray[np.uint8]:
    """A lossy linear block code, as an autoencoder's bottleneck is.

    Luma and chroma (BT.601) are cut into 8×8 blocks; of each block's orthonormal cosine transform
    the coefficients of order u + v < `keep` survive, rounded to multiples of `quantum` levels
    (twice that for chroma). A fixed grid is a projection: its second pass finds nothing left to
    lose but rounding. A moving grid is laid three columns and five rows further at every step, so
    every pass projects onto another space and the loss accumulates.
    """
    offset = (step * 5 % BLOCK, step * 3 % BLOCK) if moving else (0, 0)
    height, width = pixels.shape[:2]
    padding = [(o, -(o + n) % BLOCK) for o, n in zip(offset, (height, width), strict=True)]
    ycc = np.pad(_matrix(pixels, _TO_YCC), (*padding, (0, 0)), mode="edge")
    rows, columns = ycc.shape[0] // BLOCK, ycc.shape[1] // BLOCK
    blocks = ycc.reshape(rows, BLOCK, columns, BLOCK, 3)
    code = scipy.fft.dctn(blocks, axes=(1, 3), norm="ortho")
    order = np.add.outer(np.arange(BLOCK), np.arange(BLOCK))
    grain = np.array([quantum, 2 * quantum, 2 * quantum], np.float32)
    code = np.rint(code / grain) * grain * (order < keep)[None, :, None, :, None]
    decoded = scipy.fft.idctn(code, axes=(1, 3), norm="ortho").reshape(ycc.shape)
    inner = decoded[offset[0] : offset[0] + height, offset[1] : offset[1] + width]
    return levels(_matrix(inner, np.linalg.inv(_TO_YCC)))


def levels(samples: NDArray[np.number]) -> NDArray[np.uint8]:
    """Rounded and clipped to 8 bits."""
    rounded: NDArray[np.uint8] = np.clip(np.rint(samples), 0, 255).astype(np.uint8)
    return rounded


def gaussian(samples: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """Gaussian filter of `sigma` pixels, mirrored at the edges."""
    return cv2.GaussianBlur(samples, (0, 0), sigma).astype(np.float32, copy=False)


def luma(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """BT.601 luma, unrounded."""
    return _matrix(pixels, _TO_YCC[:1])


def _matrix(samples: NDArray[np.number], matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    wide = np.ascontiguousarray(samples, dtype=np.float32)
    return cv2.transform(wide, matrix).astype(np.float32, copy=False)
