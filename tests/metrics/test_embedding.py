"""The EfficientNet-Lite0 embedding, with few random channels, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from convergebench import testcard
from convergebench.errors import MetricUnavailable
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView
from convergebench.metrics.embedding import SPEC, Similarity, effnet_lite0, prepare
from convergebench.network import Session
from convergebench.testing.metrics import check_metric
from tests.metrics.pairs import CHANGES, scene
from tests.test_network import slow_conv

Array = NDArray[Any]

# kernel, stride, expansion, outputs of each block; the real network has eight times as many.
LAYOUT = [
    (3, 1, 1, 2),
    *[(3, 2, 6, 3), (3, 1, 6, 3)],
    *[(5, 2, 6, 5), (5, 1, 6, 5)],
    *[(3, 2, 6, 6), (3, 1, 6, 6), (3, 1, 6, 6)],
    *[(5, 1, 6, 7), (5, 1, 6, 7), (5, 1, 6, 7)],
    *[(5, 2, 6, 8), (5, 1, 6, 8), (5, 1, 6, 8), (5, 1, 6, 8)],
    (3, 1, 6, 9),
]


def parameters() -> dict[str, Array]:
    random = np.random.default_rng(3)
    found: dict[str, Array] = {}

    def layer(conv: str, norm: str, outputs: int, inputs: int, size: int) -> None:
        spread = np.sqrt(2 / (inputs * size**2))
        kernel = random.normal(0, spread, (outputs, inputs, size, size))
        found[f"{conv}.weight"] = kernel.astype(np.float32)
        found[f"{norm}.weight"] = random.uniform(0.6, 1, outputs).astype(np.float32)
        found[f"{norm}.bias"] = random.normal(0.3, 0.5, outputs).astype(np.float32)
        found[f"{norm}.running_mean"] = random.normal(0, 0.2, outputs).astype(np.float32)
        found[f"{norm}.running_var"] = random.uniform(0.8, 1.5, outputs).astype(np.float32)

    layer("_conv_stem", "_bn0", 4, 3, 3)
    width = 4
    for index, (size, _, expansion, outputs) in enumerate(LAYOUT):
        name, inner = f"_blocks.{index}", width * expansion
        if expansion > 1:
            layer(f"{name}._expand_conv", f"{name}._bn0", inner, width, 1)
        layer(f"{name}._depthwise_conv", f"{name}._bn1", inner, 1, size)
        layer(f"{name}._project_conv", f"{name}._bn2", outputs, inner, 1)
        width = outputs
    layer("_conv_head", "_bn1", 20, width, 1)
    return found


PARAMETERS = parameters()
METRIC = LiftedMetric(SPEC, Similarity(lambda: PARAMETERS))


def slow_embedding(pixels: NDArray[np.uint8]) -> Array:
    """Layer by layer, normalisation apart from convolution, in float64."""

    def layer(x: Array, conv: str, norm: str, stride: int = 1, act: bool = True) -> Array:
        kernel = PARAMETERS[f"{conv}.weight"]
        size = kernel.shape[2]
        total = max((-(-x.shape[1] // stride) - 1) * stride + size - x.shape[1], 0)
        pads = (total // 2, total // 2, total - total // 2, total - total // 2)
        groups = len(kernel) if "depthwise" in conv else 1
        x = slow_conv(x, kernel, np.zeros(len(kernel)), stride, pads, groups)
        scale, bias, mean, variance = (
            PARAMETERS[f"{norm}.{part}"].astype(np.float64).reshape(-1, 1, 1)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        x = (x - mean) / np.sqrt(variance + 1e-3) * scale + bias
        return np.clip(x, 0, 6) if act else x

    x = (pixels.astype(np.float64).transpose(2, 0, 1) - 127) / 128
    x = layer(x, "_conv_stem", "_bn0", 2)
    for index, (_, stride, expansion, _) in enumerate(LAYOUT):
        name, entry = f"_blocks.{index}", x
        if expansion > 1:
            x = layer(x, f"{name}._expand_conv", f"{name}._bn0")
        x = layer(x, f"{name}._depthwise_conv", f"{name}._bn1", stride)
        x = layer(x, f"{name}._project_conv", f"{name}._bn2", act=False)
        if x.shape == entry.shape:
            x = x + entry
    pooled: Array = layer(x, "_conv_head", "_bn1").mean((1, 2))
    return pooled


def test_equals_the_network_layer_by_layer() -> None:
    home = scene(224, 224)
    frame = CHANGES["negative"](home)
    # A picture of 256×256 whose central 224×224 is this one needs no scaling.
    pair = [np.pad(p, ((16, 16), (16, 16), (0, 0)), mode="edge") for p in (home, frame)]
    want = [slow_embedding(p) for p in (home, frame)]
    assert isinstance(METRIC.measure, Similarity)
    for picture, vector in zip(pair, want, strict=True):
        np.testing.assert_allclose(METRIC.measure.embedding(Picture(picture)), vector, atol=1e-4)
    cosine = want[0] @ want[1] / np.sqrt((want[0] @ want[0]) * (want[1] @ want[1]))
    (found,) = METRIC.score([StepView(Picture(pair[1]), Picture(pair[0]))])
    assert found == pytest.approx(cosine, abs=1e-5)


@pytest.mark.parametrize(
    ("height", "width", "box"),
    [(256, 256, (16, 16, 240, 240)), (80, 400, (165, 5, 235, 75)), (9, 1, (0, 4, 1, 5))],
)
def test_preparation_takes_the_central_square(
    height: int, width: int, box: tuple[int, int, int, int]
) -> None:
    picture = scene(height, width)
    square = Image.fromarray(picture).crop(box)
    want = np.asarray(square.resize((224, 224), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(prepare(picture), want)


def test_embeddings_are_computed_once_per_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    call = Session.__call__

    def counted(self: Session, **inputs: Array) -> list[Array]:
        nonlocal count
        count += 1
        return call(self, **inputs)

    monkeypatch.setattr(Session, "__call__", counted)
    home = Picture(scene(64, 64))
    frames = [Picture(change(home.pixels)) for change in list(CHANGES.values())[:5]]
    METRIC.score([StepView(frame, home) for frame in frames])
    METRIC.score([StepView(frame, home) for frame in frames])
    assert count == 6


def test_a_network_that_sees_nothing_has_no_score() -> None:
    blind = PARAMETERS | {"_bn1.bias": np.full(20, -1e6, np.float32)}
    metric = LiftedMetric(SPEC, Similarity(lambda: blind))
    (answer,) = metric.score([StepView(Picture(scene()), Picture(scene()))])
    assert answer == NoScore("the network sees nothing in one of the pictures")


def test_contract() -> None:
    check_metric(METRIC, exempt={"noise": "random parameters have no taste"})


def test_its_title_says_what_it_is_not() -> None:
    assert "not CLIP" in SPEC.title


def test_without_weights_it_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MetricUnavailable, match="convergebench weights pull efficientnet-lite0"):
        effnet_lite0()


@pytest.mark.weights
def test_known_answer_and_contract() -> None:
    metric = effnet_lite0()
    home, frame = testcard.testcard()
    known = SPEC.known
    assert known is not None
    (found,) = metric.score([StepView(Picture(frame), Picture(home))])
    assert found == pytest.approx(known.value, abs=known.tolerance)
    check_metric(metric)
