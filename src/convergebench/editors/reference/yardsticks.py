"""Editors with a known answer: some whose loss is a closed formula, one that is all loss.

`ramp` moves every sample a little. The others move a growing share of the samples, each once and by
`DEPTH` levels: a share f makes an RMSE of DEPTH·√f, and as no sample is moved twice, squared
distances add up, d² = r(n)² − r(n−1)² between calls n − 1 and n. So any loss that never shrinks can
be had, exact but for half a sample, where a change of all samples by less than a level cannot.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

import cv2
import numpy as np

from convergebench.editor import EditRequest
from convergebench.editors.reference.media import levels
from convergebench.editors.reference.operations import perform
from convergebench.editors.reference.seeding import generator_of
from convergebench.frame import resize

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number = TypeVar("Number", np.uint8, np.uint32)

DEPTH: Final = 127
"""Levels by which any sample can be moved, up from below 128 or down from above, unclipped."""


def ramp_psnr(n: int, step: int = 1) -> float:
    """PSNR in dB against home after `n` calls of `ref:ramp,step=…`: 20·log10(255 / (n·step)).

    It holds while n·step ≤ 127; up to there no sample can clip.
    """
    if n * step > 127:
        raise ValueError(f"the formula holds up to n·step = 127, got {n}·{step} = {n * step}")
    return 20 * math.log10(255 / (n * step)) if n * step else math.inf


def ramp(request: EditRequest, step: int) -> NDArray[np.uint8]:
    """Move every sample by `step` levels: up where the source is below 128, down elsewhere.

    The direction is read from the source (frame 0), so it is the same at every call, and after n
    calls every sample is exactly n·`step` levels from home. Of the operations only flips and turns
    are performed, and the source is flipped and turned along (a cycle is taken to repeat the one
    edit at hand); the others would change the source's values and are left out.
    """
    pixels, source = _with_source(request)
    change = np.where(source < 128, np.int16(step), np.int16(-step))
    return np.clip(pixels + change, 0, 255).astype(np.uint8)


def geometric_rmse(n: int, step: float, factor: float) -> float:
    """RMSE against home after `n` calls of `ref:geometric`: step·√(1 + f² + f⁴ + … + f²⁽ⁿ⁻¹⁾).

    Call n moves the picture by step·factorⁿ⁻¹, so the factor is the contraction factor.
    """
    return step * math.sqrt(math.fsum(factor ** (2 * i) for i in range(n)))


def plateau_rmse(n: int, level: float, factor: float) -> float:
    """RMSE against home after `n` calls of `ref:plateau`: level·(1 − factorⁿ)."""
    return level * (1 - factor**n)


def cliff_rmse(n: int, at: int, loss: float) -> float:
    """RMSE against home after `n` calls of `ref:cliff`: nothing before call `at`, then `loss`."""
    return loss if n >= at else 0.0


def moved(request: EditRequest, before: float, after: float) -> NDArray[np.uint8]:
    """Bring a frame whose RMSE against home is `before` to `after`, by moving further samples.

    Which ones is a fixed order of the picture's samples, flipped and turned along as the source is
    (see `ramp`). The formulas end where all are moved, at an RMSE of `DEPTH`.
    """
    pixels, source = _with_source(request)
    height, width = pixels.shape[:2]
    turned = _quarters(request) % 2
    place = _lying(request, _order(*((width, height) if turned else (height, width))))
    first, last = (min(1.0, (rmse / DEPTH) ** 2) * place.size for rmse in (before, after))
    chosen = (place >= round(first)) & (place < round(last))
    change = np.where(source < 128, np.int16(DEPTH), np.int16(-DEPTH))
    result: NDArray[np.uint8] = np.clip(pixels + change * chosen, 0, 255).astype(np.uint8)
    return result


@lru_cache(maxsize=2)
def _order(height: int, width: int) -> NDArray[np.uint32]:
    """A place in a random order for every sample of a picture; the same for every picture."""
    places = generator_of(f"yardstick/{height}/{width}").permutation(height * width * 3)
    return places.astype(np.uint32).reshape(height, width, 3)


def _with_source(request: EditRequest) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The frame after a flip or turn, and the source flipped, turned and sized like it."""
    operation = request.edit.operation
    exact = operation is not None and operation.kind in ("flip", "turn")
    pixels = perform(request) if exact else request.inputs[-1].pixels
    source = request.history[0].load().pixels if request.history else request.inputs[-1].pixels
    return pixels, resize(_lying(request, source), pixels.shape[1], pixels.shape[0])


def _lying(request: EditRequest, samples: NDArray[Number]) -> NDArray[Number]:
    """Samples in the source's orientation, brought to that of the frame after this call."""
    operation = request.edit.operation
    if operation is not None and operation.kind == "flip" and request.step % 2:
        across = operation.axis != "vertical"
        return np.ascontiguousarray(samples[:, ::-1] if across else samples[::-1])
    return np.ascontiguousarray(np.rot90(samples, -_quarters(request)))


def _quarters(request: EditRequest) -> int:
    """By how many quarter turns the frame lies turned after this call."""
    operation = request.edit.operation
    if operation is None or operation.kind != "turn":
        return 0
    return request.step * (operation.quarters or 1) % 4


def unrelated(width: int, height: int, draw: np.random.Generator) -> NDArray[np.uint8]:
    """A picture of nothing: random colour clouds of all sizes, with noise on top."""
    total = np.broadcast_to(draw.uniform(70, 185, 3), (height, width, 3)).astype(np.float32)
    for cells in (2, 4, 8, 16, 32):
        clouds = draw.standard_normal((cells, cells, 3), np.float32) * (70 / math.sqrt(cells))
        total += cv2.resize(clouds, (width, height), interpolation=cv2.INTER_CUBIC)
    total += draw.standard_normal(total.shape, np.float32) * np.float32(6)
    return levels(total)
