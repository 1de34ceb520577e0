"""CIEDE2000 against its published test data and scikit-image; the cast against its definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import cv2
import numpy as np
import pytest
import skimage.color
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.metric import LiftedMetric, Picture, StepView
from convergebench.metrics.colour import (
    ciede2000,
    ciede2000_p95,
    colour_cast,
    delta_e,
    delta_e_map,
    lab,
)
from convergebench.testing import check_metric
from tests.metrics.pairs import PAIRS, measure, scene

Pixels = NDArray[np.uint8]
Metric = Callable[[], LiftedMetric]

METRICS: Final[list[Metric]] = [ciede2000, ciede2000_p95, colour_cast]
color: Any = skimage.color  # it has no types

# Sharma, Wu, Dalal 2005, table 1: two colours L*, a*, b* and their difference to four digits. The
# pairs 7 to 16 lie on the formula's jumps: greys, and hues opposite to each other.
PUBLISHED: Final = """
50.0000   2.6772 -79.7751  50.0000   0.0000 -82.7485   2.0425
50.0000   3.1571 -77.2803  50.0000   0.0000 -82.7485   2.8615
50.0000   2.8361 -74.0200  50.0000   0.0000 -82.7485   3.4412
50.0000  -1.3802 -84.2814  50.0000   0.0000 -82.7485   1.0000
50.0000  -1.1848 -84.8006  50.0000   0.0000 -82.7485   1.0000
50.0000  -0.9009 -85.5211  50.0000   0.0000 -82.7485   1.0000
50.0000   0.0000   0.0000  50.0000  -1.0000   2.0000   2.3669
50.0000  -1.0000   2.0000  50.0000   0.0000   0.0000   2.3669
50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0009   7.1792
50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0010   7.1792
50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0011   7.2195
50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0012   7.2195
50.0000  -0.0010   2.4900  50.0000   0.0009  -2.4900   4.8045
50.0000  -0.0010   2.4900  50.0000   0.0010  -2.4900   4.8045
50.0000  -0.0010   2.4900  50.0000   0.0011  -2.4900   4.7461
50.0000   2.5000   0.0000  50.0000   0.0000  -2.5000   4.3065
50.0000   2.5000   0.0000  73.0000  25.0000 -18.0000  27.1492
50.0000   2.5000   0.0000  61.0000  -5.0000  29.0000  22.8977
50.0000   2.5000   0.0000  56.0000 -27.0000  -3.0000  31.9030
50.0000   2.5000   0.0000  58.0000  24.0000  15.0000  19.4535
50.0000   2.5000   0.0000  50.0000   3.1736   0.5854   1.0000
50.0000   2.5000   0.0000  50.0000   3.2972   0.0000   1.0000
50.0000   2.5000   0.0000  50.0000   1.8634   0.5757   1.0000
50.0000   2.5000   0.0000  50.0000   3.2592   0.3350   1.0000
60.2574 -34.0099  36.2677  60.4626 -34.1751  39.4387   1.2644
63.0109 -31.0961  -5.8663  62.8187 -29.7946  -4.0864   1.2630
61.2901   3.7196  -5.3901  61.4292   2.2480  -4.9620   1.8731
35.0831 -44.1164   3.7933  35.0232 -40.0716   1.5901   1.8645
22.7233  20.0904 -46.6940  23.0331  14.9730 -42.5619   2.0373
36.4612  47.8580  18.3852  36.2715  50.5065  21.2231   1.4146
90.8027  -2.0831   1.4410  91.1528  -1.6435   0.0447   1.4441
90.9257  -0.5406  -0.9208  88.6381  -0.8985  -0.7239   1.5381
 6.7747  -0.2908  -2.4247   5.8714  -0.0985  -2.2286   0.6377
 2.0776   0.0795  -1.1350   0.9033  -0.0636  -0.5514   0.9082
"""


def their_map(one: Pixels, other: Pixels) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = color.deltaE_ciede2000(
        color.rgb2lab(one), color.rgb2lab(other)
    )
    return distances


@pytest.mark.parametrize("metric", METRICS)
def test_contract(metric: Metric) -> None:
    check_metric(metric())


def test_the_published_pairs() -> None:
    table = np.array([line.split() for line in PUBLISHED.split("\n") if line], np.float64).T
    assert table.shape == (7, 34)
    for one, other in ((table[:3], table[3:6]), (table[3:6], table[:3])):
        np.testing.assert_allclose(delta_e(list(one), list(other)), table[6], rtol=0, atol=5.1e-5)


def test_lab_of_every_channel_level() -> None:
    levels = np.arange(256, dtype=np.uint8)
    grid = np.stack(np.meshgrid(levels, levels[::15], levels[::15]), axis=-1).reshape(256, -1, 3)
    np.testing.assert_allclose(np.dstack(lab(grid)), color.rgb2lab(grid), rtol=0, atol=2e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 10, 40, 255]))
def test_single_precision_is_enough(seed: int, spread: int) -> None:
    """Greys and opposite hues, where the formula is ill-conditioned, count in the mean only."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 256, (40, 40, 3))
    one = levels.astype(np.uint8)
    changes = rng.integers(-spread, spread + 1, levels.shape)
    other = np.clip(levels + changes, 0, 255).astype(np.uint8)
    got, want = delta_e_map(StepView(Picture(other), Picture(one))), their_map(one, other)
    (_, a1, b1), (_, a2, b2) = (np.moveaxis(color.rgb2lab(p), 2, 0) for p in (one, other))
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    clear = (a1 * a2 + b1 * b2 > -0.999 * c1 * c2) & (c1 > 0.1) & (c2 > 0.1)
    np.testing.assert_allclose(got[clear], want[clear], rtol=0, atol=1e-3)
    np.testing.assert_allclose(got.mean(), want.mean(), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", PAIRS)
def test_equals_scikit_image(name: str) -> None:
    one, other = PAIRS[name]
    distances = their_map(one, other)
    assert measure(ciede2000, one, other) == pytest.approx(distances.mean(), abs=1e-3)
    assert measure(ciede2000_p95, one, other) == pytest.approx(
        np.percentile(distances, 95), abs=1e-3
    )
    means = [color.rgb2lab(p).mean(axis=(0, 1)) for p in (one, other)]
    cast = np.linalg.norm(means[0] - means[1])
    assert measure(colour_cast, one, other) == pytest.approx(cast, abs=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_the_test_card(metric: Metric) -> None:
    known = metric().spec.known
    assert known is not None
    value = measure(metric, *testcard.testcard())
    assert value == pytest.approx(known.value, abs=known.tolerance)


def test_the_known_answers_are_those_of_scikit_image() -> None:
    home, frame = testcard.testcard()
    distances = their_map(home, frame)
    means = [color.rgb2lab(p).mean(axis=(0, 1)) for p in (home, frame)]
    want = distances.mean(), np.percentile(distances, 95), np.linalg.norm(means[0] - means[1])
    for metric, value in zip(METRICS, want, strict=True):
        known = metric().spec.known
        assert known is not None
        assert known.value == pytest.approx(value, abs=1e-6)


def test_black_and_white_are_100_apart() -> None:
    black = np.zeros((4, 5, 3), np.uint8)
    for metric in METRICS:
        assert measure(metric, black, 255 - black) == pytest.approx(100, abs=0.01)


@settings(deadline=None)
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12), st.just(3)).flatmap(
        lambda shape: st.tuples(hnp.arrays(np.uint8, shape), hnp.arrays(np.uint8, shape))
    )
)
def test_is_symmetric_and_0_for_identical_pictures(pair: tuple[Pixels, Pixels]) -> None:
    for metric in METRICS:
        value = measure(metric, *pair)
        assert 0 <= value < 150
        assert measure(metric, pair[1], pair[0]) == pytest.approx(value, abs=1e-3)
        assert measure(metric, pair[0], pair[0].copy()) == 0


def test_threads_do_not_matter() -> None:
    one = np.tile(scene(), (5, 4, 1))
    other = np.roll(one, 3, axis=1)
    threads = cv2.getNumThreads()
    found = []
    try:
        for count in (1, 2, 3):
            cv2.setNumThreads(count)
            found.append([measure(metric, one, other) for metric in METRICS])
    finally:
        cv2.setNumThreads(threads)
    assert found[0] == found[1] == found[2]


def test_mean_and_percentile_share_one_map() -> None:
    one, other = PAIRS["noise"]
    view = StepView(Picture(other), Picture(one))
    ciede2000().score([view])
    first = delta_e_map(view)
    ciede2000_p95().score([view])
    assert delta_e_map(view) is first


def test_regions_add_up_to_the_whole() -> None:
    one, other = PAIRS["flatter"]
    mask = np.zeros(one.shape[:2], np.bool_)
    mask[10:50, 20:90:3] = True
    share = mask.mean()
    inside, outside = (measure(ciede2000, one, other, m) for m in (mask, ~mask))
    whole = measure(ciede2000, one, other)
    assert inside * share + outside * (1 - share) == pytest.approx(whole, rel=1e-6)
    want = np.percentile(their_map(one, other)[mask], 95)
    assert measure(ciede2000_p95, one, other, mask) == pytest.approx(want, abs=1e-3)
    means = [color.rgb2lab(p)[mask].mean(axis=0) for p in (one, other)]
    assert measure(colour_cast, one, other, mask) == pytest.approx(
        np.linalg.norm(means[0] - means[1]), abs=1e-4
    )


def test_a_cast_is_seen_through_noise_and_moved_details() -> None:
    one = np.tile(scene(), (2, 2, 1)) // 2 + 50
    moved = np.roll(one, 40, axis=0)
    assert measure(colour_cast, one, moved) == pytest.approx(0, abs=1e-4)
    warm = (moved.astype(np.int64) + np.array([8, 0, -8])).astype(np.uint8)
    assert measure(colour_cast, one, warm) > 3
    assert measure(ciede2000, one, moved) > 3
