"""Noise against scikit-image's values and a slow transform, sharpness against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import scipy.ndimage
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.drawing import scene
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView
from convergebench.metrics.grain import noise, sharpness
from convergebench.testing import check_metric
from tests.metrics.test_ssim import slow_luma

Pixels = NDArray[np.uint8]
Metric = Callable[[], LiftedMetric]
ndimage: Any = scipy.ndimage  # it has no types

pictures = hnp.arrays(np.uint8, st.tuples(st.integers(4, 20), st.integers(4, 20), st.just(3)))


def value(metric: Metric, pixels: Pixels) -> float:
    (found,) = metric().score([StepView(Picture(pixels))])
    assert not isinstance(found, NoScore)
    return found


def slow_noise(pixels: Pixels) -> float:
    """Details as sums of mirrored samples, in the order of the wavelet's published taps."""
    taps = [-0.48296291314453416, 0.8365163037378079, -0.2241438680420134, -0.12940952255126037]
    levels = []
    for channel in range(3):
        plane = pixels[..., channel].astype(np.float64)
        for axis in (0, 1):
            side = plane.shape[axis]
            at = 2 * np.arange((side + 3) // 2)[:, None] + 1 - np.arange(4)
            at = np.where(at < 0, -1 - at, at)
            at = np.where(at >= side, 2 * side - 1 - at, at)
            plane = np.moveaxis(np.take(plane, at, axis=axis), axis + 1, -1) @ taps
        sizes = np.abs(plane)
        sizes = sizes[sizes > 1e-9]
        levels.append(np.median(sizes) / 0.6744897501960817 if sizes.size else 0.0)
    return float(np.mean(levels))


@pytest.mark.parametrize("metric", [noise, sharpness])
def test_contract(metric: Metric) -> None:
    check_metric(metric())


@pytest.mark.parametrize("metric", [noise, sharpness])
def test_the_test_card(metric: Metric) -> None:
    known = metric().spec.known
    assert known is not None
    assert value(metric, testcard.testcard()[1]) == pytest.approx(known.value, abs=known.tolerance)


@pytest.mark.parametrize(
    ("shape", "want"), [((16, 16), 75.77138424614208), ((17, 23), 61.57864626761923)]
)
def test_noise_equals_scikit_image(shape: tuple[int, int], want: float) -> None:
    """Values of scikit-image 0.26 with PyWavelets 1.8; the difference is single precision."""
    n = np.arange(1, shape[0] * shape[1] * 3 + 1, dtype=np.uint64)
    mixed = n**3 * np.uint64(2654435761) % np.uint64(2**32) // np.uint64(2**24)
    assert value(noise, mixed.astype(np.uint8).reshape(*shape, 3)) == pytest.approx(want, abs=1e-4)


@settings(deadline=None)
@given(pictures)
def test_noise_equals_the_slow_transform(pixels: Pixels) -> None:
    assert value(noise, pixels) == pytest.approx(slow_noise(pixels), abs=1e-9)


def test_the_smallest_details_count() -> None:
    """97 − 56 √3 is 0.005, so its detail of 0.00016 must not be taken for 0."""
    pixels = np.full((16, 16, 3), 201, np.uint8)
    for at, level in (((3, 4), 186), ((4, 5), 150), ((5, 3), 97), ((6, 6), 56), ((7, 2), 41)):
        pixels[at] = level
    assert value(noise, pixels) == pytest.approx(slow_noise(pixels), abs=1e-9)


@pytest.mark.parametrize("level", [3, 8, 20])
def test_noise_finds_the_level_in_a_picture_full_of_edges(level: float) -> None:
    picture = scene("still-life", 320, 320)
    calm = np.clip(picture, 70, 185).astype(np.float64)  # away from black and white
    grain = np.random.default_rng(3).normal(0, level, calm.shape)
    noisy = np.clip(np.rint(calm + grain), 0, 255).astype(np.uint8)
    assert value(noise, noisy) == pytest.approx(level, rel=0.15)


def test_noise_of_flat_pictures_is_0() -> None:
    for level in (0, 7, 255):
        assert value(noise, np.full((40, 30, 3), level, np.uint8)) == 0


def test_noise_of_tiny_pictures_is_unknown() -> None:
    tiny = Picture(np.zeros((3, 9, 3), np.uint8))
    assert noise().score([StepView(tiny)]) == [NoScore("3 pixels on the short side, 4 needed")]


@settings(deadline=None)
@given(pictures)
def test_sharpness_equals_scipy(pixels: Pixels) -> None:
    want = ndimage.laplace(slow_luma(pixels), mode="mirror").var()
    assert value(sharpness, pixels) == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_sharpness_falls_with_blur() -> None:
    picture = scene("still-life", 256, 256)
    values = [value(sharpness, picture)]
    for sigma in (0.5, 1, 2, 4):
        blurred = cv2.GaussianBlur(picture, (0, 0), sigma)
        values.append(value(sharpness, np.asarray(blurred, np.uint8)))
    assert values == sorted(values, reverse=True)
    assert values[0] > 20 * values[-1]
    assert value(sharpness, np.full((9, 9, 3), 77, np.uint8)) == 0
    assert value(sharpness, np.full((1, 1, 3), 77, np.uint8)) == 0
