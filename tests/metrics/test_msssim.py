"""MS-SSIM against the paper's formula written down slowly, and the authors' own values."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.frame import Frame
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView
from convergebench.metrics import windows
from convergebench.metrics.msssim import WEIGHTS, contrast_terms, ms_ssim
from convergebench.metrics.ssim import ssim
from convergebench.testing import check_metric
from tests.metrics.pairs import CHANGES, measure, scene
from tests.metrics.test_ssim import slow_luma, slow_ssim, windowed

Pixels = NDArray[np.uint8]
Doubles = NDArray[np.float64]
Metric = Callable[[], LiftedMetric]

# Float32 in the last steps of each window, as for `ssim`.
TOLERANCE: Final = 1e-6


def slow_contrast(x: Doubles, y: Doubles) -> Doubles:
    dy, dx = np.mgrid[-5:6, -5:6]
    weights = np.exp(-(dx**2 + dy**2) / (2 * 1.5**2))
    weights /= weights.sum()
    mx, my = windowed(x, weights), windowed(y, weights)
    vx, vy = windowed(x * x, weights) - mx**2, windowed(y * y, weights) - my**2
    cov = windowed(x * y, weights) - mx * my
    c2 = (0.03 * 255) ** 2
    contrast: Doubles = (2 * cov + c2) / (vx + vy + c2)
    return contrast


def slow_halved(plane: Doubles) -> Doubles:
    even = np.pad(plane, ((0, plane.shape[0] % 2), (0, plane.shape[1] % 2)), mode="edge")
    half: Doubles = (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4
    return half


def slow_terms(one: Pixels, other: Pixels, mask: NDArray[np.bool_] | None = None) -> list[float]:
    x, y = slow_luma(one), slow_luma(other)
    share = np.ones(x.shape) if mask is None else mask.astype(np.float64)
    terms = []
    for scale in range(5):
        quality = slow_ssim(x, y) if scale == 4 else slow_contrast(x, y)
        terms.append(float(np.average(quality, weights=share[5:-5, 5:-5])))
        x, y, share = slow_halved(x), slow_halved(y), slow_halved(share)
    return terms


def slow_ms_ssim(one: Pixels, other: Pixels, mask: NDArray[np.bool_] | None = None) -> float:
    terms = slow_terms(one, other, mask)
    return math.prod(math.pow(max(0.0, t), w) for t, w in zip(terms, WEIGHTS, strict=True))


def test_contract() -> None:
    check_metric(ms_ssim())


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("size", [(176, 201), (193, 180)])
def test_equals_the_formula(name: str, size: tuple[int, int]) -> None:
    one = scene(*size)
    other = CHANGES[name](one)
    assert measure(ms_ssim, one, other) == pytest.approx(slow_ms_ssim(one, other), abs=TOLERANCE)


def test_the_test_card() -> None:
    known = ms_ssim().spec.known
    assert known is not None
    home, frame = testcard.testcard()
    value = measure(ms_ssim, home, frame)
    assert value == pytest.approx(known.value, abs=known.tolerance)
    assert value == pytest.approx(slow_ms_ssim(home, frame), abs=TOLERANCE)


@pytest.mark.shared
def test_official_values(shared: Path) -> None:
    """The official table holds the weighted sum of our terms; the product is within 1 % of it."""
    folder = shared / "data/iqa/official"
    with (folder / "results_official.csv").open() as lines:
        table = {row[0]: row[1:] for row in csv.reader(lines)}
    for name, official in zip(table["Method"], table["ms_ssim"], strict=True):
        one, other = (
            Frame((folder / side / name).read_bytes()).pixels for side in ("ref_dir", "dist_dir")
        )
        terms = contrast_terms(StepView(Picture(other), Picture(one)))
        assert not isinstance(terms, NoScore)
        summed = sum(w * t for w, t in zip(WEIGHTS, terms, strict=True)) / sum(WEIGHTS)
        assert f"{summed:.4f}" == official, name
        assert measure(ms_ssim, one, other) == pytest.approx(float(official), rel=0.006), name


def test_a_negative_scores_0() -> None:
    assert measure(ms_ssim, scene(180, 180), 255 - scene(180, 180)) == 0.0


def test_flat_pictures_compare_by_luminance_alone() -> None:
    one, other = np.full((180, 180, 3), 60, np.uint8), np.full((180, 180, 3), 120, np.uint8)
    c1 = (0.01 * 255) ** 2
    luminance = (2 * 60 * 120 + c1) / (60**2 + 120**2 + c1)
    assert measure(ms_ssim, one, one.copy()) == 1.0
    assert measure(ms_ssim, one, other) == pytest.approx(luminance ** WEIGHTS[-1], abs=TOLERANCE)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(176, 190), st.integers(176, 190))
def test_is_symmetric_bounded_and_1_for_identical_pictures(seed: int, h: int, w: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 256, (2, h, w, 3), dtype=np.uint8)
    value = measure(ms_ssim, one, other)
    assert 0 <= value < 1
    assert measure(ms_ssim, other, one) == pytest.approx(value, abs=1e-12)
    assert measure(ms_ssim, one, one) == 1.0


def test_small_pictures_have_no_score() -> None:
    small = Picture(scene(175, 300))
    assert ms_ssim().score([StepView(small, small)]) == [
        NoScore("175 pixels on the short side, 176 needed")
    ]


@pytest.mark.parametrize("order", [(ssim, ms_ssim), (ms_ssim, ssim)])
def test_the_first_scale_is_shared_with_ssim(
    order: tuple[Metric, Metric], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = scene(180, 190), CHANGES["noise"](scene(180, 190))
    alone = [measure(metric, one, other) for metric in order]
    calls = []

    def counted(*args: Any) -> tuple[float, float]:
        calls.append(args)
        return windows.total_losses(*args)

    monkeypatch.setattr("convergebench.metrics.ssim.total_losses", counted)
    view = StepView(Picture(other), Picture(one))
    assert [metric().score([view])[0] for metric in order] == alone
    assert len(calls) == 1


# -- regions --------------------------------------------------------------------------------------


def test_a_region_is_weighted_at_each_scale() -> None:
    one, other = scene(256, 250), CHANGES["shifted"](scene(256, 250))
    mask = np.zeros((256, 250), np.bool_)
    mask[60:181, 71:203:3] = True
    value = measure(ms_ssim, one, other, mask)
    assert value == pytest.approx(slow_ms_ssim(one, other, mask), abs=TOLERANCE)
    assert value != pytest.approx(measure(ms_ssim, one, other), abs=1e-3)
    whole = measure(ms_ssim, one, other, np.ones_like(mask))
    assert whole == pytest.approx(measure(ms_ssim, one, other), abs=1e-6)


def test_a_region_near_the_border_has_no_score() -> None:
    picture = Picture(scene(300, 300))
    mask = np.zeros((300, 300), np.bool_)
    mask[:40] = True
    assert ms_ssim().score([StepView(picture, picture, mask)]) == [
        NoScore("the region lies within 40 pixels of the border")
    ]
