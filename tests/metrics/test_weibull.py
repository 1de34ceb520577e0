"""Fits of Weibull distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

from convergebench.metrics.weibull import fit_weibull

Doubles = NDArray[np.float64]


def slow_weibull(x: Doubles) -> tuple[float, float]:
    """Scale and shape: the root of the likelihood's derivative, bracketed."""
    logs = np.log(x)

    def slope(k: float) -> float:
        weights = np.exp(k * (logs - logs.max()))
        return float((weights * logs).sum() / weights.sum() - logs.mean() - 1 / k)

    shape = optimize.brentq(slope, 1e-2, 1e3, xtol=1e-12)
    return float(np.mean(x**shape) ** (1 / shape)), shape


@settings(max_examples=40, deadline=None)
@given(st.floats(0.2, 20), st.floats(-20, 20), st.integers(20, 5000), st.integers(0, 99))
def test_weibull_is_the_most_likely_one(shape: float, log: float, count: int, seed: int) -> None:
    x = np.exp(log) * np.random.default_rng(seed).weibull(shape, (2, count))
    logs = np.log(np.maximum(x, 1e-300)).astype(np.float32)
    scales, shapes = fit_weibull(logs)
    for row, scale, found in zip(logs, scales, shapes, strict=True):
        centred = row - row.astype(np.float64).mean()
        want_scale, want = slow_weibull(np.exp(centred))
        assert found == pytest.approx(want, rel=2e-6)
        want_scale *= math.exp(row.astype(np.float64).mean())
        assert scale == pytest.approx(want_scale, rel=1e-5)


def test_weibull_parameters_are_recovered() -> None:
    x = 3 * np.random.default_rng(0).weibull(1.7, (1, 200_000))
    scale, shape = fit_weibull(np.log(x).astype(np.float32))
    assert (scale[0], shape[0]) == pytest.approx((3, 1.7), rel=0.01)
    like, _, like_scale = stats.weibull_min.fit(x[0, :2000], floc=0)
    scale, shape = fit_weibull(np.log(x[:, :2000]).astype(np.float32))
    assert (scale[0], shape[0]) == pytest.approx((like_scale, like), rel=1e-4)


def test_samples_that_are_all_alike_have_an_infinite_shape() -> None:
    logs = np.log(np.array([[5.0] * 84, [5.0] * 83 + [4.0], [2.0**-52] * 80 + [1.0] * 4]))
    scale, shape = fit_weibull(logs.astype(np.float32))
    assert shape[0] == np.inf
    assert np.isfinite(shape[1:]).all()
    assert (shape[1:] > 0).all()
    assert scale[0] == pytest.approx(5)
