"""PIQE."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from convergebench import testcard
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import piqe as module
from convergebench.metrics.mscn import full
from convergebench.metrics.piqe import piqe
from convergebench.testing import check_metric
from tests.metrics.naturalness import drawn, measured, official, piqe_score
from tests.metrics.pairs import scene

EQUAL = 1e-4
"""Float32 in a percentage."""


@pytest.mark.parametrize("size", [(64, 80), (61, 47), (16, 256), (200, 17), (97, 128)])
@pytest.mark.parametrize("noise", [0, 3, 20])
def test_equals_the_paper(size: tuple[int, int], noise: float) -> None:
    pixels = drawn(*size, noise)
    assert measured(piqe(), pixels) == pytest.approx(piqe_score(pixels), abs=EQUAL)


@pytest.mark.parametrize("peak", [30, 127, 254, 255])
def test_luma_is_scaled_to_its_brightest(peak: int) -> None:
    """With 254 there are halves to round."""
    pixels = (drawn(80, 96, 8).astype(np.int64) * peak // 255).astype(np.uint8)
    pixels[40, 40] = peak
    assert measured(piqe(), pixels) == pytest.approx(piqe_score(pixels), abs=EQUAL)


def test_equals_the_paper_where_parts_are_flat() -> None:
    assert measured(piqe(), scene()) == pytest.approx(piqe_score(scene()), abs=EQUAL)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_constant_picture_has_the_worst_score(level: int) -> None:
    assert measured(piqe(), np.full((40, 300, 3), level, np.uint8)) == 100


def test_it_uses_the_field_of_the_other_metrics() -> None:
    pixels = drawn(64, 64)
    pixels[0, 0] = 255
    picture = Picture(pixels)
    assert module._field(picture) is full(picture).field


def test_the_contract() -> None:
    check_metric(piqe())


def test_pictures_smaller_than_a_block_have_no_score() -> None:
    assert piqe().score([StepView(Picture(drawn(15, 300)))]) == [
        NoScore("15 pixels on the short side, 16 needed")
    ]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("rows", [16, 48, 160])
def test_bands_and_threads_do_not_matter(
    threads: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = drawn(150, 100)
    want = measured(piqe(), pixels)
    before = cv2.getNumThreads()
    monkeypatch.setattr(module, "BAND", rows)
    try:
        cv2.setNumThreads(threads)
        assert measured(piqe(), pixels) == want
    finally:
        cv2.setNumThreads(before)


def test_the_test_card() -> None:
    metric = piqe()
    known = metric.spec.known
    assert known is not None
    assert measured(metric, testcard.testcard()[1]) == pytest.approx(
        known.value, abs=known.tolerance
    )


@pytest.mark.shared
def test_official_values_to_the_last_digit_printed(shared: Path) -> None:
    values, pictures = official(shared)
    for picture, want in zip(pictures, values["piqe"], strict=True):
        assert f"{measured(piqe(), picture):.2f}" == f"{want:.2f}"
