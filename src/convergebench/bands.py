"""Work on a picture in bands of rows, each small enough for a core's cache, on several threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

MAX_THREADS: Final = 8
"""Each holds about 8 MB of scratch arrays."""


class Scratch:
    """Arrays used again from tile to tile: allocating them costs more than filling them."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, type], NDArray[Any]] = {}

    def __call__(self, name: str, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
        """An array of this shape with arbitrary content."""
        need = math.prod(shape)
        held = self._held.get((name, dtype))
        if held is None or held.size < need:
            held = self._held[name, dtype] = np.empty(need, dtype)
        return held[:need].reshape(shape)


def plane_sum(plane: NDArray[Any]) -> float:
    """The sum of a plane in double precision, the same wherever in memory it lies.

    That of `cv2.sumElems` is not: its last bit follows the array's address, and so did scores.
    """
    return float(cv2.reduce(plane, 0, cv2.REDUCE_SUM, dtype=cv2.CV_64F).sum())


def in_bands(height: int, rows: int, work: Callable[[int, int, Scratch], T]) -> list[T]:
    """What `work(top, bottom, scratch)` gives for each band of `rows` rows, from top to bottom.

    Runs on as many threads as OpenCV may use (`cv2.setNumThreads`), each with its own scratch
    arrays.
    """
    tops = range(0, height, rows)
    threads = max(1, min(cv2.getNumThreads(), MAX_THREADS, len(tops)))
    found: dict[int, T] = {}

    def share(first: int) -> None:
        scratch = Scratch()
        for top in tops[first::threads]:
            found[top] = work(top, min(top + rows, height), scratch)

    if threads == 1:
        share(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(share, first) for first in range(threads)]:
                done.result()
    return [found[top] for top in tops]
