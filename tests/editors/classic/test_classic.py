"""`classic:`: every filter against a known answer that somebody else gives."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
import pytest
import skimage.restoration
from hypothesis import given
from hypothesis import strategies as st

from convergebench.chain import Settings
from convergebench.degrading.light import convolved, encoded, linear, to_bytes
from convergebench.drawing import scene
from convergebench.editor import Asked
from convergebench.editors.classic import filters, open_editor
from convergebench.errors import EditorFailed, SettingsError, UnknownName
from convergebench.frame import Frame
from convergebench.metric import Picture, StepView
from convergebench.metrics.pixel import psnr
from convergebench.registry import open_editor as open_registered
from convergebench.registry import reads_prompts, says_control
from convergebench.testing import check_editor
from tests.editors.own.asking import request

restoration: Any = skimage.restoration  # it has no types


def made(name: str, pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, Any]:
    reply = open_registered(name).edit(request(inputs=(Frame.of_pixels(pixels),)))
    assert reply.cost == 0.0
    return Frame(reply.data).pixels


def likeness(home: Any, frame: Any) -> float:
    value = psnr().score([StepView(Picture(frame), Picture(home))])[0]
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize("model", open_editor.models)
def test_filters_keep_the_contract(model: str) -> None:
    check_editor(open_editor(model))


@pytest.mark.parametrize("model", open_editor.models)
def test_filters_are_free_read_no_prompt_and_are_no_controls(model: str) -> None:
    spec = open_registered(f"classic:{model}").spec
    assert (spec.price, spec.deterministic, spec.control) == (0.0, True, False)
    assert not reads_prompts(f"classic:{model}")
    assert not says_control(f"classic:{model}")


def test_unsharp_adds_what_a_gaussian_takes_away() -> None:
    """By hand: a bright line, blurred with the taps exp(−m²/2σ²) that OpenCV's size cuts off."""
    line = np.full(41, 100.0)
    line[20] = 180.0
    taps = np.exp(-0.5 * (np.arange(-8, 9) / 2.0) ** 2)
    taps /= taps.sum()
    blurred = np.array([sum(taps[m + 8] * line[np.clip(i + m, 0, 40)] for m in range(-8, 9))
                        for i in range(41)])  # fmt: skip
    want = np.clip(np.floor(line + 1.5 * (line - blurred) + 0.5), 0, 255)
    pixels = np.repeat(np.repeat(line[None, :, None], 9, axis=0), 3, axis=2).astype(np.uint8)
    got = made("classic:unsharp,amount=1.5,radius=2", pixels)
    np.testing.assert_array_equal(got, np.broadcast_to(want[None, :, None], got.shape))
    assert got[4, 20, 0] == 255
    assert got[4, 19, 0] < 100


def test_unsharp_by_nothing_is_nothing() -> None:
    pixels = scene("still-life", 60, 50)
    np.testing.assert_array_equal(made("classic:unsharp,amount=0", pixels), pixels)


def test_non_local_means_is_opencvs_with_its_channels_in_order() -> None:
    noise = np.random.default_rng(1).normal(0, 12, (90, 110, 3))
    clean = np.broadcast_to(np.array([90, 140, 60]), (90, 110, 3)).astype(np.uint8)
    pixels = np.clip(clean + noise, 0, 255).astype(np.uint8)
    blue_first = np.ascontiguousarray(pixels[..., ::-1])
    theirs = cv2.fastNlMeansDenoisingColored(blue_first, None, 12, 12, 7, 21)[..., ::-1]
    got = made("classic:nlm,strength=12", pixels)
    np.testing.assert_array_equal(got, theirs)
    assert likeness(clean, got) > likeness(clean, pixels) + 6


def test_median_takes_single_pixels_away() -> None:
    pixels = np.full((9, 9, 3), 90, np.uint8)
    pixels[4, 4] = 255
    assert (made("classic:median", pixels) == 90).all()


def test_bilateral_keeps_an_edge_and_smooths_what_is_alike() -> None:
    pixels = np.full((20, 20, 3), 50, np.uint8)
    pixels[:, 10:] = 200
    pixels[::2, ::2] += 4
    got = made("classic:bilateral,contrast=20,radius=3", pixels).astype(int)
    assert np.ptp(got[5:15, 2:8]) < 3
    assert got[:, 10:].min() - got[:, :10].max() > 140


def test_bicubic_is_matlabs() -> None:
    """`imresize(uint8([0 100; 200 255]), 2)` by hand.

    Keys' kernel at distances 1/4, 3/4, 5/4 and 7/4 is 111, 29, −9 and −3 of 128. The border is
    mirrored, so of a line (a, b) the first sample, at −1/4, sees b a a b, and the second a a b b.
    """
    quarter, three, five, seven = 111 / 128, 29 / 128, -9 / 128, -3 / 128
    first = np.array([three + quarter, seven + five])
    second = np.array([five + quarter, three + seven])
    matrix = np.array([first, second, second[::-1], first[::-1]])
    values = np.array([[0, 100], [200, 255]], float)
    want = np.clip(np.floor(matrix @ values @ matrix.T + 0.5), 0, 255)
    pixels = np.repeat(values[..., None], 3, axis=2).astype(np.uint8)
    np.testing.assert_array_equal(made("classic:bicubic,scale=2", pixels)[..., 0], want)


def test_bicubic_tells_the_size_of_what_it_makes() -> None:
    spec = open_registered("classic:bicubic,scale=3").spec
    assert spec.sizing is not None
    assert spec.sizing(Asked(Settings(), 1, 20, 10)) == (60, 30)
    assert spec.sizing(Asked(Settings(), 2, 20, 10)) == (180, 90)
    assert made("classic:bicubic,scale=3", scene("still-life", 20, 16)).shape == (48, 60, 3)


def test_bicubic_makes_nothing_that_is_no_frame() -> None:
    pixels = np.zeros((700, 700, 3), np.uint8)
    with pytest.raises(EditorFailed, match="700×700 enlarged 16 times has more than 89,478,485"):
        made("classic:bicubic,scale=16", pixels)


@pytest.mark.parametrize("kernel", [filters.disc(2.3), filters.gaussian(1.2)])
def test_wiener_is_scikit_images(kernel: Any) -> None:
    """Of the picture and its mirror images, with a flat regulariser."""
    plane = scene("portrait", 61, 48)[..., 1] / 255
    mirrored = np.pad(plane, ((0, 48), (0, 61)), mode="symmetric")
    mean = plane.mean()
    flat = np.ones((1, 1))
    theirs = restoration.wiener(mirrored - mean, kernel, 0.01, reg=flat, clip=False) + mean
    got = filters.deconvolved(plane, kernel, 0.01)
    np.testing.assert_allclose(got, theirs[:48, :61], atol=1e-10)


@given(st.floats(0.05, 12))
def test_kernels_are_even_and_sum_to_one(radius: float) -> None:
    for kernel in (filters.disc(radius), filters.gaussian(radius)):
        assert kernel.sum() == pytest.approx(1)
        np.testing.assert_allclose(kernel, kernel[::-1], atol=1e-15)
        np.testing.assert_allclose(kernel, kernel.T, atol=1e-15)


def test_a_disc_has_the_area_of_one() -> None:
    kernel = filters.disc(5)
    assert 1 / kernel[5, 5] == pytest.approx(math.pi * 25, rel=0.005)
    assert kernel[0, 0] == 0


@pytest.mark.parametrize(("kernel", "light"), [("disc", "linear"), ("gaussian", "encoded")])
def test_wiener_undoes_a_blur_that_it_is_told(kernel: str, light: str) -> None:
    clean = scene("still-life", 200, 160)
    point = filters.disc(3) if kernel == "disc" else filters.gaussian(1.5)
    if light == "linear":
        blurred = to_bytes(encoded(convolved(linear(clean), point)))
    else:
        blurred = to_bytes(convolved(clean / 255, point))
    radius = 3 if kernel == "disc" else 1.5
    name = f"classic:wiener,radius={radius},noise=0.003,kernel={kernel},light={light}"
    assert likeness(clean, made(name, blurred)) > likeness(clean, blurred) + 3


def test_wiener_assumes_a_slight_blur_that_grows_with_the_picture() -> None:
    small, large = (scene("still-life", side, side) for side in (128, 256))
    for pixels, radius in ((small, 0.375), (large, 0.75)):
        told = made(f"classic:wiener,radius={radius}", pixels)
        np.testing.assert_array_equal(made("classic:wiener", pixels), told)


def test_wiener_leaves_a_flat_picture_as_it_is() -> None:
    flat = np.full((30, 40, 3), 77, np.uint8)
    np.testing.assert_array_equal(made("classic:wiener,noise=0.5", flat), flat)


def test_mistakes_in_the_name_are_one_sentence() -> None:
    with pytest.raises(UnknownName, match=r"no classical filter called 'unsharpen'\. Did you mean"):
        open_registered("classic:unsharpen")
    with pytest.raises(SettingsError, match=r"has no option 'scal'\. Did you mean scale"):
        open_registered("classic:bicubic,scal=2")
    with pytest.raises(SettingsError, match="kernel must be disc or gaussian, got 'box'"):
        open_registered("classic:wiener,kernel=box")
