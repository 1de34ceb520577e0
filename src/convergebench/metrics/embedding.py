"""Whether two pictures show the same, by a small network that a package index carries.

The embedding of a picture is the 1280 features that EfficientNet-Lite0, trained to tell the
thousand classes of ImageNet apart, averages before its classifier; the score is the cosine

    e(x)·e(y) / (|e(x)|·|e(y)|),

from 0 to 1 (features are not negative), 1 for identical pictures. An offline stand-in where no CLIP
weights can be had: it sees objects and textures, knows nothing of words, and its numbers cannot be
compared with CLIP's.

A picture is prepared as in Google's `efficientnet/lite`, where the weights were trained: the
central square of 7/8 of the shorter side, scaled to 224×224, then (p − 127) / 128. It is scaled
with Pillow's bicubic filter, which averages over all pixels that fall together; TensorFlow's skips
most of them in a large picture, and would measure its noise. What lies outside the square is not
seen.

Tan, Le: EfficientNet: rethinking model scaling for convolutional neural networks. ICML 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from convergebench import weights
from convergebench.metric import (
    KnownAnswer,
    LiftedMetric,
    MetricSpec,
    Needs,
    NoScore,
    Picture,
    StepView,
)
from convergebench.metrics.pair import pair
from convergebench.network import Graph, Session, fold_norm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Parameters = Mapping[str, NDArray[Any]]

SIDE: Final = 224
BLOCKS: Final = 16
HALVING: Final = (1, 3, 5, 11)
"""Blocks that halve the picture's size; all else can be told from the parameters."""
NORM: Final = ("weight", "bias", "running_mean", "running_var")
EPSILON: Final = 1e-3
"""Of batch normalisation, as in the original."""


def prepare(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The central square of 7/8 of the shorter side, at 224×224."""
    height, width = pixels.shape[:2]
    side = max(1, min(height, width) * 7 // 8)
    top, left = (height - side + 1) // 2, (width - side + 1) // 2
    square = Image.fromarray(np.ascontiguousarray(pixels[top : top + side, left : left + side]))
    return np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def network(parameters: Parameters) -> Graph:
    """EfficientNet-Lite0 up to its embedding: `pixels` (n × 224 × 224 × 3, uint8) to `embedding`.

    A block expands the channels, filters each on its own, and projects them back; where its input
    and output have the same shape, they are added. Activations are limited to 6.
    """
    graph = Graph()

    def conv(x: str, name: str, norm: str, *, stride: int = 1, act: bool = True) -> str:
        parts = [parameters[f"{norm}.{part}"] for part in NORM]
        kernel, bias = fold_norm(parameters[f"{name}.weight"], parts, EPSILON)
        size = kernel.shape[2]
        # TensorFlow's "same": what cannot be shared equally goes to the bottom and the right.
        before = (size - stride) // 2
        after = size - stride - before
        groups = len(kernel) if "depthwise" in name else 1
        x = graph.conv(
            x, kernel, bias, stride=stride, padding=(before, before, after, after), groups=groups
        )
        return graph.clip(x, 0, 6) if act else x

    pixels = graph.cast(graph.input("pixels", ("n", SIDE, SIDE, 3), np.uint8))
    x = graph.transpose(graph.div(graph.sub(pixels, 127.0), 128.0), (0, 3, 1, 2))
    x = conv(x, "_conv_stem", "_bn0", stride=2)
    for index in range(BLOCKS):
        name, entry, stride = f"_blocks.{index}", x, 2 if index in HALVING else 1
        if f"{name}._expand_conv.weight" in parameters:
            x = conv(x, f"{name}._expand_conv", f"{name}._bn0")
        x = conv(x, f"{name}._depthwise_conv", f"{name}._bn1", stride=stride)
        x = conv(x, f"{name}._project_conv", f"{name}._bn2", act=False)
        previous = f"_blocks.{index - 1}._project_conv.weight"
        same = index > 0 and len(parameters[previous]) == len(
            parameters[f"{name}._project_conv.weight"]
        )
        if stride == 1 and same:
            x = graph.add(x, entry)
    x = conv(x, "_conv_head", "_bn1")
    graph.output("embedding", graph.mean(x, (2, 3)))
    return graph


class Similarity:
    """Cosine of two pictures' embeddings; parameters are loaded at the first measurement."""

    def __init__(self, load: Callable[[], Parameters]) -> None:
        self._load = load
        self._session: Session | None = None

    def __call__(self, view: StepView) -> float | NoScore:
        """The cosine of a view's pictures."""
        reference, frame = pair(view)
        one, other = self.embedding(reference), self.embedding(frame)
        lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
        if lengths == 0:
            return NoScore("the network sees nothing in one of the pictures")
        return max(-1.0, min(1.0, float(one @ other) / lengths))

    def embedding(self, picture: Picture) -> NDArray[np.float64]:
        """A picture's 1280 features, computed once."""
        return picture.shared(("effnet-lite0", self), self._embed)

    def _embed(self, picture: Picture) -> NDArray[np.float64]:
        if self._session is None:
            self._session = Session(network(self._load()))
        (found,) = self._session(pixels=prepare(picture.pixels)[None])
        return np.asarray(found[0], np.float64)


SPEC: Final = MetricSpec(
    name="effnet-lite0",
    version="1",
    kind="semantic",
    higher_is_better=True,
    identical=1,
    typical=(0, 1),
    title="EfficientNet-Lite0 embedding cosine, an offline stand-in; not CLIP",
    paper="https://arxiv.org/abs/1905.11946",
    needs=Needs(weights=("efficientnet-lite0",)),
    known=KnownAnswer(0.8229699, 1e-5, "timm 1.0.30 (tf_efficientnet_lite0) with torch 2.15"),
)


def effnet_lite0() -> LiftedMetric:
    """Cosine of the EfficientNet-Lite0 embeddings of two pictures: a stand-in where CLIP is not."""
    path = weights.find("efficientnet-lite0")
    return LiftedMetric(SPEC, Similarity(lambda: weights.arrays(path)))


effnet_lite0.spec = SPEC  # type: ignore[attr-defined]
