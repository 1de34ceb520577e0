"""Work on a picture in bands of rows, each small enough for a core's cache, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import cv2

from convergebench.metrics.windows import MAX_THREADS, Scratch

T = TypeVar("T")


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
