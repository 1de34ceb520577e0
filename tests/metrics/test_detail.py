"""The detail ratio: by other means, and what moves it."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from convergebench.drawing import scene
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics.detail import detail_ratio
from convergebench.testcard import testcard as card

Pixels = NDArray[np.uint8]


def measured(home: Pixels, frame: Pixels) -> float:
    (found,) = detail_ratio().score([StepView(Picture(frame), Picture(home))])
    assert isinstance(found, float)
    return found


def blurred(pixels: Pixels, sigma: float) -> Pixels:
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma), dtype=np.uint8)


def slowly(home: Pixels, frame: Pixels) -> float:
    """The formula in double precision, for sides that are whole tiles."""
    energies = []
    for pixels in (home, frame):
        weights = np.array([0.299, 0.587, 0.114])
        luma = np.rint(pixels.astype(np.float64) @ weights)
        soft = gaussian_filter(luma, 2, mode="mirror", truncate=4)
        squares = (luma - soft) ** 2
        height, width = squares.shape
        tiles = squares.reshape(height // 16, 16, width // 16, 16).mean(axis=(1, 3))
        energies.append(tiles.ravel())
    ratios = np.sqrt((energies[1] + 4) / (energies[0] + 4))
    most = np.sort(ratios)[-int(np.ceil(ratios.size / 10)) :]
    return max(1.0, float(np.exp(np.log(most).mean())))


def test_the_test_card_by_other_means() -> None:
    home, frame = card()
    assert measured(home, frame) == pytest.approx(slowly(home, frame), rel=2e-3)


def test_identical_blurred_and_recoloured_pictures_have_no_more_detail() -> None:
    home = scene("still-life", 128, 128)
    assert measured(home, home) == 1
    assert measured(home, blurred(home, 1.5)) == 1
    warm = np.clip(home.astype(np.int16) + np.array([6, 0, 0]), 0, 255).astype(np.uint8)
    assert measured(home, warm) < 1.1


@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_detail_of_so_many_times_the_amplitude_has_that_ratio(factor: float) -> None:
    """A fine checkerboard: luma about a grey, so nothing is clipped."""
    board = np.indices((96, 96)).sum(axis=0) % 2 * 2.0 - 1

    def drawn(amplitude: float) -> Pixels:
        grey = np.rint(128 + amplitude * board).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)

    # Against energies of hundreds, the 4 that is added to both hardly counts.
    assert measured(drawn(30), drawn(30 * factor)) == pytest.approx(factor, rel=0.01)


def test_texture_in_a_tenth_of_the_picture_is_enough() -> None:
    home = blurred(scene("still-life", 160, 160), 1)
    frame = home.copy()
    grain = np.random.default_rng(0).normal(0, 25, (48, 64, 3))
    frame[32:80, 32:96] = np.clip(home[32:80, 32:96] + grain, 0, 255).astype(np.uint8)
    assert measured(home, frame) > 3
    assert measured(frame, home) < 1.1


def test_a_picture_that_is_too_small_has_none() -> None:
    tiny = np.zeros((8, 40, 3), np.uint8)
    (found,) = detail_ratio().score([StepView(Picture(tiny), Picture(tiny))])
    assert isinstance(found, NoScore)
