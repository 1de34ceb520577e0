"""PSNR and SSIM of the luma, against scikit-image and NumPy, and what shaving does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import skimage.color
import skimage.metrics
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.errors import SettingsError
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics.luma import psnr_y, ssim_y, studio_luma
from convergebench.registry import metric_spec, open_metric
from convergebench.testing import check_metric
from tests.metrics.pairs import PAIRS

Pixels = NDArray[np.uint8]

similarity: Any = skimage.metrics.structural_similarity  # it has no types
colours: Any = skimage.color


def luma(pixels: Pixels) -> NDArray[np.float64]:
    """By scikit-image's own matrix, rounded half up."""
    plane: NDArray[np.float64] = np.floor(colours.rgb2ycbcr(pixels)[..., 0] + 0.5)
    return plane


def measured(name: str, reference: Pixels, frame: Pixels, mask: Any = None) -> float | NoScore:
    return open_metric(name).score([StepView(Picture(frame), Picture(reference), mask)])[0]


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3))))
def test_luma_is_that_of_the_matrix_in_matlab(pixels: Pixels) -> None:
    wide = pixels.astype(object)
    exact = 65481 * wide[..., 0] + 128553 * wide[..., 1] + 24966 * wide[..., 2]
    want = [[16 + (2 * int(v) + 255_000) // 510_000 for v in row] for row in exact]
    np.testing.assert_array_equal(studio_luma(Picture(pixels)), want)


def test_luma_of_some_colours() -> None:
    # The last lies halfway, at 52.5, and goes up as in MATLAB.
    half = next(
        [r, g, b]
        for r in range(256)
        for g in range(256)
        for b in range(256)
        if 299 * r + 587 * g + 114 * b == 42_500
    )
    colour = [[0, 0, 0], [255] * 3, [255, 0, 0], [0, 255, 0], [0, 0, 255], half]
    got = studio_luma(Picture(np.array([colour], np.uint8)))
    np.testing.assert_array_equal(got, [[16, 235, 81, 145, 41, 53]])


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("shave", [0, 2, 5])
def test_psnr_is_that_of_scikit_images_luma(name: str, shave: int) -> None:
    pair = [luma(pixels) for pixels in PAIRS[name]]
    inner = slice(shave, -shave or None)
    error = np.mean((pair[0][inner, inner] - pair[1][inner, inner]) ** 2)
    want = 10 * math.log10(255**2 / error) if error else math.inf
    assert measured(f"psnr-y,shave={shave}", *PAIRS[name]) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("shave", [0, 3])
def test_ssim_is_that_of_scikit_image(name: str, shave: int) -> None:
    inner = slice(shave, -shave or None)
    x, y = (luma(pixels)[inner, inner] for pixels in PAIRS[name])
    want = similarity(
        x, y, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
    )
    assert measured(f"ssim-y,shave={shave}", *PAIRS[name]) == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("name", ["psnr-y", "ssim-y", "psnr-y,shave=2", "ssim-y,shave=4"])
def test_contract(name: str) -> None:
    metric = open_metric(name)
    assert metric.spec.name == name
    assert metric_spec(name) == metric.spec
    check_metric(metric)


@pytest.mark.parametrize("name", ["psnr-y", "ssim-y"])
def test_the_test_card(name: str) -> None:
    home, frame = testcard.testcard()
    known = open_metric(name).spec.known
    assert known is not None
    assert measured(name, home, frame) == pytest.approx(known.value, abs=known.tolerance)


def test_nothing_shaved_is_the_plain_metric() -> None:
    assert psnr_y("0").spec == psnr_y.spec
    assert open_metric("ssim-y, shave=0").spec == ssim_y.spec


@pytest.mark.parametrize("name", ["psnr-y", "ssim-y"])
def test_what_is_shaved_off_does_not_count(name: str) -> None:
    home, frame = (pixels.copy() for pixels in testcard.testcard())
    before = measured(f"{name},shave=4", home, frame)
    frame[:4] = frame[-4:] = 0
    frame[:, :4] = frame[:, -4:] = 255
    assert measured(f"{name},shave=4", home, frame) == before
    assert measured(f"{name},shave=3", home, frame) != before


@pytest.mark.parametrize("name", ["psnr-y", "ssim-y"])
def test_a_mask_is_shaved_too(name: str) -> None:
    home, frame = testcard.testcard()
    mask = np.zeros(home.shape[:2], np.bool_)
    mask[2:5] = True
    value = measured(f"{name},shave=5", home, frame, mask)
    assert isinstance(value, NoScore)
    assert "shaved off" in value.reason
    mask[:] = True
    whole = measured(f"{name},shave=5", home, frame)
    assert measured(f"{name},shave=5", home, frame, mask) == pytest.approx(whole, abs=1e-6)


def test_a_masked_region_near_the_border_has_no_ssim() -> None:
    mask = np.zeros((384, 384), np.bool_)
    mask[:3] = True
    value = measured("ssim-y", *testcard.testcard(), mask)
    assert isinstance(value, NoScore)
    assert "within 5 pixels of the border" in value.reason


def test_a_picture_that_is_all_border_has_no_score() -> None:
    small = np.zeros((8, 8, 3), np.uint8)
    value = measured("psnr-y,shave=4", small, small)
    assert isinstance(value, NoScore)
    assert "9 needed" in value.reason


@pytest.mark.parametrize("text", ["-1", "two", "1.5", "257", ""])
def test_a_wrong_border_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="shave must be a whole number of pixels from 0 to 256"):
        open_metric(f"psnr-y,shave={text}")
