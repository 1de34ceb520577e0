"""Editors with a known answer: one whose loss is a closed formula, one that is all loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import numpy as np

from convergebench.cycle import flip, turn
from convergebench.editor import EditRequest
from convergebench.editors.media import levels
from convergebench.editors.operations import perform
from convergebench.frame import resize

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    operation = request.edit.operation
    source = request.history[0].load().pixels if request.history else request.inputs[-1].pixels
    pixels = request.inputs[-1].pixels
    if operation is not None and operation.kind == "flip":
        pixels = perform(request)
        source = flip(source, operation.axis or "horizontal") if request.step % 2 else source
    elif operation is not None and operation.kind == "turn":
        pixels = perform(request)
        source = turn(source, request.step * (operation.quarters or 1) % 4)
    source = resize(source, pixels.shape[1], pixels.shape[0])
    change = np.where(source < 128, np.int16(step), np.int16(-step))
    return np.clip(pixels + change, 0, 255).astype(np.uint8)


def unrelated(width: int, height: int, draw: np.random.Generator) -> NDArray[np.uint8]:
    """A picture of nothing: random colour clouds of all sizes, with noise on top."""
    total = np.broadcast_to(draw.uniform(70, 185, 3), (height, width, 3)).astype(np.float32)
    for cells in (2, 4, 8, 16, 32):
        clouds = draw.standard_normal((cells, cells, 3), np.float32) * (70 / math.sqrt(cells))
        total += cv2.resize(clouds, (width, height), interpolation=cv2.INTER_CUBIC)
    total += draw.standard_normal(total.shape, np.float32) * np.float32(6)
    return levels(total)
