"""The parts of a registration as metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
import scipy.ndimage
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.drawing import scene
from convergebench.frame import resize
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView
from convergebench.metrics import registered
from convergebench.registration import VERSION
from convergebench.testing import check_metric

Metric = Callable[[], LiftedMetric]
ndimage: Any = scipy.ndimage  # it has no types

PARTS: Final[dict[str, Metric]] = {
    "registration-dx": registered.dx,
    "registration-dy": registered.dy,
    "registration-scale": registered.scale,
    "registration-crop": registered.crop,
    "registration-crop-left": registered.crop_left,
    "registration-crop-top": registered.crop_top,
    "registration-crop-right": registered.crop_right,
    "registration-crop-bottom": registered.crop_bottom,
    "registration-confidence": registered.confidence,
}


def parts(home: Picture, frame: Picture, native: Picture | None = None) -> dict[str, Any]:
    view = StepView(frame, home, native=native)
    return {name: metric().score([view])[0] for name, metric in PARTS.items()}


@pytest.mark.parametrize("name", PARTS)
def test_contract(name: str) -> None:
    metric = PARTS[name]()
    assert metric.spec.name == name
    assert metric.spec.version == VERSION
    assert metric.spec.alignment
    assert not metric.spec.regional
    assert PARTS[name].__doc__
    check_metric(metric)


@pytest.mark.parametrize("name", PARTS)
def test_the_test_card(name: str) -> None:
    metric = PARTS[name]()
    home, frame = testcard.testcard()
    assert metric.spec.known is not None
    (value,) = metric.score([StepView(Picture(frame), Picture(home))])
    assert value == pytest.approx(metric.spec.known.value, abs=metric.spec.known.tolerance)


def test_confidence_is_the_correlation_its_card_describes() -> None:
    """With SciPy's filters, independently of ours."""

    def plane(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
        luma = pixels @ np.array([0.299, 0.587, 0.114])
        half = luma.reshape(192, 2, 192, 2).mean(axis=(1, 3))
        values = ndimage.gaussian_filter(half, 1)
        mean = ndimage.uniform_filter(values, 13)
        deviation = np.sqrt(np.maximum(ndimage.uniform_filter(values**2, 13) - mean**2, 0))
        result: NDArray[np.float64] = ((values - mean) / (deviation + 8))[6:-6, 6:-6]
        return result

    one, other = (plane(pixels) for pixels in testcard.testcard())
    want = np.corrcoef(one.ravel(), other.ravel())[0, 1]
    known = registered.confidence().spec.known
    assert known is not None
    assert known.value == pytest.approx(want, abs=1e-6)


def test_all_parts_of_one_registration() -> None:
    pixels = scene("still-life", 400, 300)
    home, native = Picture(pixels), Picture(resize(pixels[30:270, 40:360], 800, 600))
    found = parts(home, Picture(resize(native.pixels, 400, 300)), native)
    assert found == pytest.approx(
        {
            "registration-dx": 0,
            "registration-dy": 0,
            "registration-scale": 1.25,
            "registration-crop": 0.36,
            "registration-crop-left": 0.1,
            "registration-crop-top": 0.1,
            "registration-crop-right": 0.1,
            "registration-crop-bottom": 0.1,
            "registration-confidence": 1,
        },
        abs=0.01,
    )


def test_parts_of_what_cannot_be_registered_have_the_reason() -> None:
    home, other = (Picture(scene(name, 300, 300)) for name in ("still-life", "portrait"))
    for value in parts(home, other).values():
        assert isinstance(value, NoScore)
        assert value.reason.startswith("confidence")


def test_no_change_is_best() -> None:
    home = Picture(scene("still-life", 200, 200))
    found = parts(home, Picture(home.pixels.copy()))
    assert found == {name: metric().spec.identical for name, metric in PARTS.items()}
