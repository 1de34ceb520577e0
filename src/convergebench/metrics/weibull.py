"""Weibull distributions fitted to many sets of samples at once, by maximum likelihood.

    p(x) = (k/λ)·(x/λ)^(k − 1)·exp(−(x/λ)^k),  x > 0

With l = ln x, the shape k is the root of

    f(k) = Σ l·e^(k·l) / Σ e^(k·l) − mean(l) − 1/k,

which rises with k; then λ = mean(e^(k·l))^(1/k). Halley's method, begun where the deviation of l
would put k and led near the root on a part of the samples, finds it for all sets together, mostly
in two passes over the samples. Those are float32; sums of more than 128 of them are float64.

Written by hand because scipy.stats fits one set at a time, and takes milliseconds for each.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Samples = NDArray[np.float32]

AT_ONCE: Final = 1 << 16
"""Samples gone through at once: all arrays of a pass fit a core's cache."""
STRIDE: Final = 8
"""The first steps look at every eighth sample, where that leaves enough."""
ENOUGH: Final = 500
STEPS: Final = 50
CLOSE: Final = 5e-3
"""Halley's error after a relative step this small is about its cube."""
LONGEST_RUN: Final = 128
"""Samples added in float32."""


def fit_weibull(logs: Samples) -> tuple[Doubles, Doubles]:
    """Scale λ and shape k of each set; k is infinite for samples that are all alike.

    Args:
        logs: Logarithms of the samples, sets × samples, finite.
    """
    rows = max(1, AT_ONCE // logs.shape[1])
    parts = [_fit(logs[n : n + rows]) for n in range(0, len(logs), rows)]
    scale, shape = (np.concatenate(found) for found in zip(*parts, strict=True))
    return scale, shape


def _fit(logs: Samples) -> tuple[Doubles, Doubles]:
    top = logs.max(axis=1, keepdims=True)
    below = logs - top  # so that no exponential overflows
    shape, rise = np.full(len(logs), np.inf), np.zeros(len(logs))
    varied = below.min(axis=1) < 0
    if varied.any():
        some = below if varied.all() else below[varied]
        mean = _total(some) / some.shape[1]
        variance = _total(some * some) / some.shape[1] - mean**2
        guess = math.pi / np.sqrt(6 * np.maximum(variance, 1e-12))
        few = np.ascontiguousarray(some[:, ::STRIDE])
        if few.shape[1] >= ENOUGH:
            guess, _ = _root(few, _total(few) / few.shape[1], guess)
        shape[varied], rise[varied] = _root(some, mean, guess)
    scale: Doubles = np.exp(top[:, 0].astype(np.float64) + rise)
    return scale, shape


def _root(logs: Samples, mean: Doubles, shape: Doubles) -> tuple[Doubles, Doubles]:
    """The shape, from a first guess, and the logarithm of the scale."""
    for _ in range(STEPS):
        weights = logs * shape.astype(np.float32)[:, None]
        np.exp(weights, out=weights)
        total = _total(weights)
        moments = []
        for _ in range(3):
            weights *= logs
            moments.append(_total(weights) / total)
        first, second, third = moments
        value = first - mean - 1 / shape
        slope = np.maximum(second - first**2, 0) + 1 / shape**2
        bend = third - 3 * first * second + 2 * first**3 - 2 / shape**3
        halley = 2 * slope**2 - value * bend
        step = np.where(halley > 0, 2 * value * slope / np.where(halley > 0, halley, 1), 0)
        # where the parabola is no guide, Newton's step; and never too far at once
        step = np.where(halley > slope**2, step, value / slope)
        step = np.clip(step, -3 * shape, 0.75 * shape)
        shape = shape - step
        if np.all(np.abs(step) < CLOSE * shape):
            break
    # the mean of e^(k·l) at the new shape, by its Taylor series
    growth = 1 - step * (first - step * (second / 2 - step * third / 6))
    return shape, np.log(total / logs.shape[1] * growth) / shape


def _total(samples: Samples) -> Doubles:
    """Σ per set: in float32 over short runs, whose sums are added in float64."""
    run = _run(samples.shape[1])
    # not a product with ones: BLAS adds in an order that depends on its threads
    runs = np.einsum("ij->i", samples.reshape(-1, run))
    total: Doubles = runs.reshape(len(samples), -1).sum(axis=1, dtype=np.float64)
    return total


@cache
def _run(count: int) -> int:
    return max(length for length in range(1, LONGEST_RUN + 1) if count % length == 0)
