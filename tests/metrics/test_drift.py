"""Parts of the squared error against NumPy and SciPy, and what moves them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from convergebench.drawing import scene
from convergebench.editors.reference import media
from convergebench.metric import Picture, StepView
from convergebench.metrics import drift
from convergebench.testcard import testcard as card
from convergebench.testing import check_metric

Pixels = NDArray[np.uint8]


def measured(home: Pixels, frame: Pixels) -> tuple[float, float]:
    view = StepView(Picture(frame), Picture(home))
    offset, loss = (m.score([view])[0] for m in (drift.colour_offset(), drift.detail_loss()))
    assert isinstance(offset, float)
    assert isinstance(loss, float)
    return offset, loss


def slowly(home: Pixels, frame: Pixels) -> float:
    """Detail loss with SciPy's non-negative least squares on all samples, in double precision."""
    columns: list[list[NDArray[np.float64]]] = [[], [], []]
    for channel in range(3):
        last = home[..., channel].astype(np.float64)
        for band, sigma in enumerate((1, np.sqrt(3), np.sqrt(12))):
            softer = cv2.GaussianBlur(last, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101)
            columns[band].append((last - softer).ravel())
            last = softer.astype(np.float64)
    detail = np.stack([np.concatenate(parts) for parts in columns], axis=1)
    error = home.astype(np.float64) - frame
    error -= error.mean(axis=(0, 1))
    faded, _ = nnls(detail, error.transpose(2, 0, 1).ravel())
    return float(np.sqrt(np.mean((detail @ faded) ** 2)))


def error_of(home: Pixels, frame: Pixels) -> float:
    return float(np.mean((home.astype(np.float64) - frame) ** 2))


def test_the_test_card_by_other_means() -> None:
    home, frame = card()
    means = frame.mean(axis=(0, 1)) - home.mean(axis=(0, 1))
    offset, loss = measured(home, frame)
    assert offset == pytest.approx(float(np.sqrt(np.mean(means**2))))
    assert loss == pytest.approx(slowly(home, frame), rel=1e-5)


def test_strips_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    home = scene("still-life", 96, 700)
    frame = media.blur(home, 1.3)
    whole = measured(home, frame)[1]
    assert whole == pytest.approx(slowly(home, frame), rel=1e-5)
    monkeypatch.setattr(drift, "ROWS", 41)
    assert measured(home, frame)[1] == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("name", ["still-life", "portrait", "text"])
def test_each_part_answers_to_its_own_cause(name: str) -> None:
    home = scene(name, 192, 192)
    noisy = media.noise(home, np.random.default_rng(1), 10)
    tinted, blurred = media.tint(home, 12), media.blur(home, 1.2)
    for frame, colour, detail in ((tinted, 1, 0), (blurred, 0, 1), (noisy, 0, 0)):
        offset, loss = measured(home, frame)
        error = error_of(home, frame)
        assert offset**2 / error == pytest.approx(colour, abs=0.06)
        assert loss**2 / error == pytest.approx(detail, abs=0.06)


def test_sharpening_is_no_loss_of_detail() -> None:
    home = scene("portrait", 128, 128)
    sharper = np.clip(2.0 * home - media.blur(home, 1), 0, 255).astype(np.uint8)
    assert measured(home, sharper)[1] < 0.1 * np.sqrt(error_of(home, sharper))


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), kind=st.sampled_from(["noise", "other", "shift", "flat"]))
def test_both_are_parts_of_the_squared_error(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    home = rng.integers(0, 256, (24, 30, 3), np.uint8)
    frame = {
        "noise": media.noise(home, rng, 20),
        "other": rng.integers(0, 256, home.shape, np.uint8),
        "shift": media.shift(home, 1, 0),
        "flat": np.full_like(home, 90),
    }[kind]
    offset, loss = measured(home, frame)
    assert min(offset, loss) >= 0
    assert offset**2 + loss**2 <= error_of(home, frame) * (1 + 1e-6)


def test_they_keep_the_contract() -> None:
    exempt = {"noise": "noise neither shifts the mean nor fades detail"}
    for metric in (drift.colour_offset(), drift.detail_loss()):
        check_metric(metric, exempt=exempt)
