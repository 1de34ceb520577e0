"""MATLAB's imresize."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench import imresize as module
from convergebench.imresize import imresize
from tests.metrics.naturalness import drawn, resized

sides = st.integers(1, 60)


def plane(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(height * width).uniform(0, 255, (height, width))


@settings(max_examples=40, deadline=None)
@given(sides, sides, sides, sides)
def test_equals_the_loop_for_any_size(height: int, width: int, rows: int, columns: int) -> None:
    x = plane(height, width)
    want = resized(x, rows, columns, (rows / height, columns / width))
    np.testing.assert_allclose(imresize(x, size=(rows, columns)), want, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(sides, sides, st.sampled_from([0.5, 0.25, 0.3, 1.0, 2.0, 1.7]))
def test_equals_the_loop_for_any_scale(height: int, width: int, scale: float) -> None:
    x = plane(height, width)
    size = math.ceil(height * scale), math.ceil(width * scale)
    got = imresize(x, scale)
    assert got.shape == size
    np.testing.assert_allclose(got, resized(x, *size, (scale, scale)), atol=1e-10)


@given(sides, sides, sides, sides, st.floats(0, 255))
def test_constants_stay_constant(h: int, w: int, rows: int, columns: int, level: float) -> None:
    got = imresize(np.full((h, w), level), size=(rows, columns))
    np.testing.assert_allclose(got, level, atol=1e-11)


def test_values_of_a_port() -> None:
    """What pyiqa 0.1.16 gives for a small example; its port says that it equals MATLAB."""
    got = imresize(np.arange(16.0).reshape(4, 4), size=(3, 3))
    want = [[0.7506, 2.1004, 3.4503], [6.1501, 7.5, 8.8499], [11.5497, 12.8996, 14.2494]]
    np.testing.assert_allclose(got, want, atol=6e-5)


def test_channels_are_resized_alike() -> None:
    picture = drawn(40, 50)
    got = imresize(picture, 0.5)
    for channel in range(3):
        np.testing.assert_array_equal(got[..., channel], imresize(picture[..., channel], 0.5))


def test_float32_is_near_float64() -> None:
    picture = drawn(400, 300)[..., 0]
    single = imresize(picture, size=(131, 97), dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, imresize(picture, size=(131, 97)), atol=2e-4)


def test_bands_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = drawn(500, 333)[..., 0]
    whole = imresize(picture, 0.5)
    threads = cv2.getNumThreads()
    try:
        for count, rows in ((1, 16), (2, 32), (5, 64)):
            cv2.setNumThreads(count)
            monkeypatch.setattr(module, "BAND", rows)
            np.testing.assert_allclose(imresize(picture, 0.5), whole, atol=1e-11)
    finally:
        cv2.setNumThreads(threads)


@pytest.mark.parametrize("keywords", [{}, {"scale": 0.5, "size": (3, 3)}])
def test_takes_either_a_scale_or_a_size(keywords: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="either a scale or a size"):
        imresize(np.zeros((4, 4)), **keywords)  # type: ignore[arg-type]
