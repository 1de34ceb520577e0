"""Generalised Gaussians fitted by moments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special, stats

from convergebench.metrics.gaussians import (
    Moments,
    block_moments,
    fit_asymmetric,
    fit_symmetric,
    neighbour_moments,
    scales,
)
from tests.metrics.naturalness import asymmetric, symmetric

SIDE = 6
bands = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 9), st.sampled_from([6, 12, 30])),
    elements=st.floats(-3, 3, width=32).map(lambda v: 0.0 if abs(v) < 1e-3 else v),
)


def moments_of(x: np.ndarray) -> Moments:
    one = [x.size, (x < 0).sum(), (x == 0).sum(), np.abs(x).sum()]
    one += [(x[x < 0] ** 2).sum(), (x[x > 0] ** 2).sum()]
    return Moments(*(np.array([float(v)]) for v in one))


def samples(shape: float, left: float, right: float, count: int = 20_000) -> np.ndarray:
    """Evenly spaced quantiles of an asymmetric generalised Gaussian with these scales."""
    on_left = round(count * left / (left + right))
    parts = []
    for size, scale in ((on_left, -left), (count - on_left, right)):
        middle = (np.arange(size) + 0.5) / size
        parts.append(scale * stats.gennorm.ppf(0.5 + middle / 2, shape))
    return np.concatenate(parts)


@pytest.mark.parametrize("shape", [0.7, 1.0, 2.0, 3.5])
@pytest.mark.parametrize(("left", "right"), [(1, 1), (0.4, 1.0), (1.5, 0.7)])
def test_known_parameters_are_recovered(shape: float, left: float, right: float) -> None:
    x = samples(shape, left, right)
    alpha, low, high = fit_asymmetric(moments_of(x))
    ratio, mean = scales(alpha)
    assert alpha[0] == pytest.approx(shape, rel=0.01)
    assert (low * ratio)[0] == pytest.approx(left, rel=0.01)
    assert (high * ratio)[0] == pytest.approx(right, rel=0.01)
    assert ((high - low) * ratio * mean)[0] == pytest.approx(x.mean(), abs=0.01)


@pytest.mark.parametrize("shape", [0.7, 1.0, 2.0, 3.5])
def test_known_symmetric_parameters_are_recovered(shape: float) -> None:
    alpha, variance = fit_symmetric(moments_of(samples(shape, 1, 1)))
    assert alpha[0] == pytest.approx(shape, rel=0.01)
    want = special.gamma(3 / shape) / special.gamma(1 / shape)
    assert variance[0] == pytest.approx(want, rel=0.01)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, st.integers(3, 60), elements=st.floats(-3, 3)), st.floats(0, 1))
def test_fits_equal_a_search_of_the_whole_grid(x: np.ndarray, zeros: float) -> None:
    x = np.where(np.abs(x) < 1e-3, 0, x)
    if not (x < 0).any() or not (x > 0).any():
        return
    found = [float(v[0]) for v in fit_asymmetric(moments_of(x), zeros)]
    want = asymmetric(x, zeros)
    assert found[0] == pytest.approx(want[0], abs=1.1e-3)
    assert found[1:] == pytest.approx(want[1:])
    shape, variance = fit_symmetric(moments_of(x))
    assert (shape[0], variance[0]) == (
        pytest.approx(symmetric(x)[0], abs=1.1e-3),
        pytest.approx(symmetric(x)[1]),
    )


@pytest.mark.parametrize("x", [np.zeros(9), np.ones(9), -np.ones(9), np.array([0.0, 1, 1])])
def test_a_side_without_samples_has_no_fit(x: np.ndarray) -> None:
    shape, left, right = fit_asymmetric(moments_of(x))
    assert math.isnan(shape[0])
    assert math.isnan(left[0]) or math.isnan(right[0])


def test_zeros_have_no_symmetric_fit() -> None:
    shape, variance = fit_symmetric(moments_of(np.zeros(9)))
    assert math.isnan(shape[0])
    assert variance[0] == 0


@settings(max_examples=60, deadline=None)
@given(bands)
def test_moments_of_blocks_and_of_neighbours(band: np.ndarray) -> None:
    found = neighbour_moments(band, band[-1], SIDE)
    assert found.count.shape == (5, band.shape[1] // SIDE)
    for number in range(band.shape[1] // SIDE):
        block = band[:, SIDE * number : SIDE * (number + 1)]
        products = [block]
        for shift in ((0, 1), (1, 0), (1, 1), (1, -1)):
            products.append(block * np.roll(block, shift, (0, 1)))
        for row, values in enumerate(products):
            want = moments_of(values)
            for name, value in vars(want).items():
                got = vars(found)[name][row, number]
                assert got == pytest.approx(value[0], rel=1e-5), (name, row, number)


def test_moments_add_up() -> None:
    band = np.random.default_rng(1).normal(size=(8, 12)).astype(np.float32)
    whole = block_moments(band, 12)
    parts = Moments.joined([block_moments(band[:3], 12), block_moments(band[3:], 12)], axis=1)
    for name, value in vars(parts.summed(axis=1)).items():
        np.testing.assert_allclose(value, vars(whole)[name][:, 0], rtol=1e-6)
