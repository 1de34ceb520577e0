"""EfficientNet-Lite0 and MobileNet NIMA beside the same networks in torch, with real weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from convergebench import testcard, weights
from convergebench.frame import Frame
from convergebench.metric import LiftedMetric, Picture, StepView
from convergebench.metrics import embedding, nima
from convergebench.metrics.embedding import Similarity, effnet_lite0
from convergebench.metrics.nima import nima_mobilenet

torch: Any = pytest.importorskip("torch")
timm: Any = pytest.importorskip("timm")
skimage: Any = pytest.importorskip("skimage.data")
F: Any = torch.nn.functional

Pixels = NDArray[np.uint8]

# Two libraries add up the same 300 million products in another order; 2e-6 was the most seen.
TOLERANCE = 1e-4

pytestmark = pytest.mark.weights


def photographs(shared: Path) -> list[Pixels]:
    files = sorted((shared / "data/photos/kodak24").glob("*.png"))
    return [Frame(files[number].read_bytes()).pixels for number in (2, 4, 8)]


def picture_of(pixels: Pixels, side: int, how: Any) -> Any:
    small = Image.fromarray(pixels).resize((side, side), how)
    return torch.from_numpy(np.array(small)).permute(2, 0, 1)[None].float()


# -- EfficientNet-Lite0 ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lite0() -> Any:
    """Timm's network with our file's parameters, which are in the same order."""
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    stored = weights.arrays(weights.find("efficientnet-lite0"))
    names = model.state_dict()
    assert [v.shape for v in names.values()] == [v.shape for v in stored.values()]
    values = (torch.from_numpy(np.array(value)) for value in stored.values())
    model.load_state_dict(dict(zip(names, values, strict=True)))
    return model.eval()


def embed(model: Any, pixels: Pixels) -> NDArray[np.float64]:
    height, width = pixels.shape[:2]
    side = int(224 / 256 * min(height, width))
    y, x = (height - side + 1) // 2, (width - side + 1) // 2
    crop = np.ascontiguousarray(pixels[y : y + side, x : x + side])
    with torch.no_grad():
        features = model.forward_features(
            (picture_of(crop, 224, Image.Resampling.BICUBIC) - 127) / 128
        )
        found: NDArray[np.float64] = model.forward_head(features, pre_logits=True)[0].numpy()
    return found


def cosine(one: NDArray[Any], other: NDArray[Any]) -> float:
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def test_the_embedding_is_timms(lite0: Any) -> None:
    metric = effnet_lite0()
    assert isinstance(metric.measure, Similarity)
    for picture in testcard.testcard():
        found = metric.measure.embedding(Picture(picture))
        assert np.abs(found - embed(lite0, picture)).max() < TOLERANCE


def test_the_cosine_on_the_test_card(lite0: Any) -> None:
    home, frame = testcard.testcard()
    known = embedding.SPEC.known
    assert known is not None
    assert cosine(embed(lite0, home), embed(lite0, frame)) == pytest.approx(known.value, abs=1e-6)


@pytest.mark.shared
def test_the_cosine_of_photographs(lite0: Any, shared: Path) -> None:
    photos = photographs(shared)
    metric = effnet_lite0()
    for one in photos:
        for other in photos:
            if one.shape == other.shape:
                want = cosine(embed(lite0, one), embed(lite0, other))
                (found,) = metric.score([StepView(Picture(other), Picture(one))])
                assert found == pytest.approx(want, abs=TOLERANCE)


@pytest.mark.parametrize(("name", "classes"), [("coffee", {967}), ("chelsea", {281, 282, 285})])
def test_padding_and_preparation_suit_the_weights(lite0: Any, name: str, classes: set[int]) -> None:
    """An espresso, and a cat."""
    pixels = np.ascontiguousarray(getattr(skimage, name)())
    with torch.no_grad():
        found = lite0.classifier(torch.from_numpy(embed(lite0, pixels))).softmax(0)
    assert found[sorted(classes)].sum() > 0.9


# -- NIMA -----------------------------------------------------------------------------------------


def mark(parameters: dict[str, NDArray[Any]], pixels: Pixels) -> float:
    """The network as Keras 2.1.6 had it, layer by layer: padding, filter, norm, ReLU6."""

    def tensor(name: str) -> Any:
        return torch.from_numpy(np.array(parameters[name]))

    def layer(x: Any, name: str, stride: int = 1) -> Any:
        if "_dw_" in name:
            kernel = tensor(f"{name}/{name}/depthwise_kernel:0").permute(2, 3, 0, 1)
        else:
            kernel = tensor(f"{name}/{name}/kernel:0").permute(3, 2, 0, 1)
        if kernel.shape[2] == 3:
            x = F.pad(x, (1, 1, 1, 1))
        x = F.conv2d(x, kernel, stride=stride, groups=x.shape[1] if "_dw_" in name else 1)
        gamma, beta, mean, variance = (
            tensor(f"{name}_bn/{name}_bn/{part}:0")
            for part in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        return F.relu6(F.batch_norm(x, mean, variance, gamma, beta, eps=1e-3))

    with torch.no_grad():
        x = layer(picture_of(pixels, 224, Image.Resampling.NEAREST) / 127.5 - 1, "conv1", 2)
        for block in range(1, 14):
            x = layer(x, f"conv_dw_{block}", 2 if block in (2, 4, 6, 12) else 1)
            x = layer(x, f"conv_pw_{block}")
        logits = x.mean((2, 3)) @ tensor("dense_1/dense_1/kernel:0")
        marks = (logits + tensor("dense_1/dense_1/bias:0")).softmax(1)[0].numpy()
    return float(sum((place + 1) * float(share) for place, share in enumerate(marks)))


@pytest.fixture(scope="module")
def keras() -> dict[str, NDArray[Any]]:
    return weights.arrays(weights.find("nima-mobilenet"))


def score(metric: LiftedMetric, pixels: Pixels) -> float:
    (found,) = metric.score([StepView(Picture(pixels))])
    assert isinstance(found, float)
    return found


def test_the_mark_of_the_test_card(keras: dict[str, NDArray[Any]]) -> None:
    known = nima.SPEC.known
    assert known is not None
    assert mark(keras, testcard.testcard()[1]) == pytest.approx(known.value, abs=1e-5)


@pytest.mark.shared
def test_the_mark_of_photographs(keras: dict[str, NDArray[Any]], shared: Path) -> None:
    metric = nima_mobilenet()
    for photo in (*testcard.testcard(), *photographs(shared)):
        assert score(metric, photo) == pytest.approx(mark(keras, photo), abs=TOLERANCE)
