"""MobileNet NIMA, with few random channels, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.errors import MetricUnavailable
from convergebench.metric import LiftedMetric, Picture, StepView
from convergebench.metrics.nima import SPEC, Liking, nima_mobilenet, prepare
from convergebench.testing.metrics import check_metric
from tests.metrics.pairs import scene
from tests.test_network import slow_conv

Array = NDArray[Any]

WIDTHS = (3, 4, 5, 5, 6, 6, 7, 7, 7, 7, 7, 7, 8, 8)
"""Of the first convolution and the thirteen blocks; the real ones are 32 to 1024."""
PARTS = ("gamma", "beta", "moving_mean", "moving_variance")


def parameters() -> dict[str, Array]:
    random = np.random.default_rng(5)
    found: dict[str, Array] = {}

    def layer(name: str, kind: str, shape: tuple[int, ...], outputs: int) -> None:
        kernel = random.normal(0, np.sqrt(2 / np.prod(shape[:3])), shape)
        found[f"{name}/{name}/{kind}:0"] = kernel.astype(np.float32)
        low, high = (0.8, -0.5, -0.2, 0.2), (1.5, 0.8, 0.2, 1.0)
        for part, least, most in zip(PARTS, low, high, strict=True):
            values = random.uniform(least, most, outputs).astype(np.float32)
            found[f"{name}_bn/{name}_bn/{part}:0"] = values

    layer("conv1", "kernel", (3, 3, 3, WIDTHS[0]), WIDTHS[0])
    for block in range(1, 14):
        inputs, outputs = WIDTHS[block - 1], WIDTHS[block]
        name = f"conv_dw_{block}"
        layer(name, "depthwise_kernel", (3, 3, inputs, 1), inputs)
        found[f"{name}/{name}/depthwise_kernel:0"] *= np.float32(np.sqrt(inputs))
        layer(f"conv_pw_{block}", "kernel", (1, 1, inputs, outputs), outputs)
    found["dense_1/dense_1/kernel:0"] = random.normal(0, 1, (WIDTHS[-1], 10)).astype(np.float32)
    found["dense_1/dense_1/bias:0"] = random.normal(0, 0.5, 10).astype(np.float32)
    return found


PARAMETERS = parameters()
METRIC = LiftedMetric(SPEC, Liking(lambda: PARAMETERS))


def slow_mark(pixels: NDArray[np.uint8]) -> float:
    """Layer by layer, normalisation apart from convolution, in float64."""

    def layer(x: Array, name: str, stride: int = 1) -> Array:
        depthwise = name.startswith("conv_dw")
        stored = PARAMETERS[f"{name}/{name}/{'depthwise_' * depthwise}kernel:0"]
        kernel = np.einsum("hwio->iohw" if depthwise else "hwio->oihw", stored)
        padding = 1 if kernel.shape[2] == 3 else 0
        groups = len(kernel) if depthwise else 1
        x = slow_conv(x, kernel, np.zeros(len(kernel)), stride, padding, groups)
        gamma, beta, mean, variance = (
            PARAMETERS[f"{name}_bn/{name}_bn/{part}:0"].astype(np.float64).reshape(-1, 1, 1)
            for part in PARTS
        )
        found: Array = np.clip((x - mean) / np.sqrt(variance + 1e-3) * gamma + beta, 0, 6)
        return found

    x = layer(pixels.astype(np.float64).transpose(2, 0, 1) / 127.5 - 1, "conv1", 2)
    for block in range(1, 14):
        x = layer(x, f"conv_dw_{block}", 2 if block in (2, 4, 6, 12) else 1)
        x = layer(x, f"conv_pw_{block}")
    logits = x.mean((1, 2)) @ PARAMETERS["dense_1/dense_1/kernel:0"]
    shares = np.exp(logits + PARAMETERS["dense_1/dense_1/bias:0"])
    return float((shares / shares.sum()) @ np.arange(1, 11))


def score(metric: LiftedMetric, pixels: NDArray[np.uint8]) -> float:
    (found,) = metric.score([StepView(Picture(pixels))])
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize("change", ["plain", "negative"])
def test_equals_the_network_layer_by_layer(change: str) -> None:
    picture = scene(224, 224) if change == "plain" else 255 - scene(224, 224)
    assert score(METRIC, picture) == pytest.approx(slow_mark(picture), abs=1e-4)


def test_preparation_takes_the_nearest_pixels() -> None:
    picture = scene(448, 672)
    np.testing.assert_array_equal(prepare(picture), picture[1::2, 1::3])
    assert prepare(scene(1, 1)).shape == (224, 224, 3)


def test_contract() -> None:
    check_metric(METRIC)


def test_it_is_never_called_nima() -> None:
    assert SPEC.name == "nima-mobilenet"
    assert "MobileNet" in SPEC.title


def test_without_weights_it_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MetricUnavailable, match="convergebench weights pull nima-mobilenet"):
        nima_mobilenet()


@pytest.mark.weights
def test_known_answer_and_contract() -> None:
    pytest.importorskip("h5py")
    metric = nima_mobilenet()
    known = SPEC.known
    assert known is not None
    found = score(metric, testcard.testcard()[1])
    assert found == pytest.approx(known.value, abs=known.tolerance)
    check_metric(metric)
