"""Pairs of pictures to compare: the same on every machine, made of integer arithmetic alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench.metric import LiftedMetric, NoScore, Picture, StepView

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Mask = NDArray[np.bool_]


def scene(height: int = 80, width: int = 96) -> Pixels:
    """A gradient, a fine texture, a flat dark field and a flat white one, one in each quarter."""
    y, x = np.mgrid[:height, :width]
    texture = (x * x * 7 + y * y * 13 + x * y * 5) // 11 % 256
    picture = np.stack([2 * x + y, texture, 255 - (x + 2 * y) % 256], axis=2) % 256
    picture[height // 2 :, : width // 2] = (3, 5, 2)
    picture[height // 2 :, width // 2 :] = 255
    return picture.astype(np.uint8)


def noise(height: int, width: int) -> NDArray[np.int64]:
    """Integers from −8 to 8 in no visible order."""
    n = np.arange(height * width * 3, dtype=np.uint64)
    mixed = (n * np.uint64(2654435761) + np.uint64(12345)) % np.uint64(2**32)
    return (mixed // np.uint64(65536) % np.uint64(17)).astype(np.int64).reshape(
        height, width, 3
    ) - 8


def _clip(values: NDArray[np.int64]) -> Pixels:
    return np.clip(values, 0, 255).astype(np.uint8)


def _noisy(picture: Pixels) -> Pixels:
    return _clip(picture + noise(*picture.shape[:2]))


CHANGES: Final[dict[str, Callable[[Pixels], Pixels]]] = {
    "noise": _noisy,
    "darker": lambda p: _clip(p.astype(np.int64) - 40),
    "flatter": lambda p: (p.astype(np.int64) // 2 + 64).astype(np.uint8),
    "coarser": lambda p: (p // 32 * 32).astype(np.uint8),
    "shifted": lambda p: np.roll(p, (1, 2), axis=(0, 1)),
    "negative": lambda p: 255 - p,
    "swapped": lambda p: np.ascontiguousarray(p[..., ::-1]),
}

PAIRS: Final[dict[str, tuple[Pixels, Pixels]]] = {
    name: (scene(), change(scene())) for name, change in CHANGES.items()
}


def measure(
    metric: Callable[[], LiftedMetric],
    reference: Pixels,
    frame: Pixels,
    mask: Mask | None = None,
) -> float:
    """One score, which must be a number."""
    (value,) = metric().score([StepView(Picture(frame), Picture(reference), mask)])
    if isinstance(value, NoScore):
        raise AssertionError(f"expected a number, got no score: {value.reason}")
    return value
