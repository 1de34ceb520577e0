from __future__ import annotations

import numpy as np
import pytest

from convergebench.bands import plane_sum
from convergebench.drawing import scene
from convergebench.metric import Picture, StepView
from convergebench.registry import open_metric


def placed(array: np.ndarray, offset: int) -> np.ndarray:
    """A copy that begins so many bytes behind a cache line."""
    buffer = np.empty(array.nbytes + 128, np.uint8)
    start = -buffer.ctypes.data % 64 + offset
    copy = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    return copy


def test_a_sum_does_not_depend_on_where_in_memory_it_is_taken() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        height, width = rng.integers(20, 200, 2)
        plane = rng.random((height, width)).astype(np.float32) ** 3
        sums = {plane_sum(placed(plane, at)[:, 5:-5]) for at in (0, 4, 8, 16, 32, 48)}
        assert len(sums) == 1
        assert sums.pop() == pytest.approx(float(plane[:, 5:-5].sum(dtype=np.float64)), rel=1e-14)


@pytest.mark.parametrize("name", ["ssim", "ssim-rgb", "ms-ssim", "colour-cast"])
def test_nor_does_a_score(name: str) -> None:
    home, frame = scene("still-life", 180, 180), scene("portrait", 180, 180)
    metric, found = open_metric(name), set()
    for at in (0, 8, 16, 32, 48) * 3:
        view = StepView(Picture(placed(frame, at)), Picture(placed(home, at)))
        found.add(metric.score([view])[0])
    assert len(found) == 1
