"""MSCN fields."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from convergebench.metric import Picture
from convergebench.metrics import mscn as module
from convergebench.metrics.mscn import OUTERMOST, ZEROS, edges, full, half, mscn
from tests.metrics import naturalness
from tests.metrics.naturalness import drawn, halved, luma
from tests.metrics.pairs import scene

MODES = {ZEROS: "constant", OUTERMOST: "nearest"}
SINGLE = 2e-7
"""Float32, of values up to about 3."""

planes = hnp.arrays(np.uint8, st.tuples(st.integers(1, 24), st.integers(1, 24)))
borders = st.sampled_from([ZEROS, OUTERMOST])


@settings(max_examples=60, deadline=None)
@given(planes, borders)
def test_equals_the_formula(plane: naturalness.Pixels, border: int) -> None:
    want = naturalness.field(plane.astype(np.float64), MODES[border])
    np.testing.assert_allclose(mscn(plane, border), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("border", MODES)
def test_equals_the_formula_on_pictures(border: int) -> None:
    for pixels in (drawn(90, 120), scene()):
        plane = luma(pixels)
        for samples in (plane.astype(np.uint8), halved(plane)):
            want = naturalness.field(samples.astype(np.float64), MODES[border])
            np.testing.assert_allclose(mscn(samples, border), want, rtol=3e-7, atol=SINGLE)


@pytest.mark.parametrize("level", [0, 1, 97, 128, 254, 255])
def test_flat_parts_and_even_slopes_are_exactly_zero(level: int) -> None:
    assert not mscn(np.full((40, 50), level, np.uint8)).any()
    slope = (np.arange(50) * 2 + level) % 256 * np.ones((40, 1))
    found = mscn(slope.astype(np.uint8))
    even = np.ones(50, bool)
    even[[0, 1, 2, -3, -2, -1]] = False
    for jump in np.flatnonzero(np.abs(np.diff(slope[0])) > 2):
        even[max(0, jump - 2) : jump + 4] = False
    assert not found[:, even].any()
    assert found[:, 0].all()


@settings(max_examples=60, deadline=None)
@given(planes, borders, st.integers(3, 6))
def test_edges_give_the_field_another_border(
    plane: naturalness.Pixels, border: int, depth: int
) -> None:
    field = mscn(plane, ZEROS if border == OUTERMOST else OUTERMOST)
    edges(field, plane, border, depth)
    np.testing.assert_allclose(field, mscn(plane, border), atol=SINGLE)


def test_levels_are_computed_once_and_read_only() -> None:
    picture = Picture(drawn(60, 80))
    assert full(picture) is full(picture)
    assert half(picture) is half(picture)
    assert full(picture).plane.shape == (60, 80)
    np.testing.assert_allclose(half(picture).plane, halved(luma(picture.pixels)), atol=1e-10)
    for level in (full(picture), half(picture)):
        assert not level.field.flags.writeable
        np.testing.assert_array_equal(level.field, mscn(level.plane))


@pytest.mark.parametrize("rows", [1, 7, 33, 1000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bands_and_threads_do_not_matter(
    rows: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane = luma(drawn(90, 75)).astype(np.uint8)
    want = mscn(plane)
    before = cv2.getNumThreads()
    monkeypatch.setattr(module, "BAND", rows)
    try:
        cv2.setNumThreads(threads)
        np.testing.assert_array_equal(mscn(plane), want)
    finally:
        cv2.setNumThreads(before)
