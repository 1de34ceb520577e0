"""NIMA with MobileNet: how people who rate photographs would like this one.

A network predicts how often each mark from 1 to 10 would be given; the score is the mean mark

    Σᵢ i·pᵢ,    i = 1 … 10,

from 1 to 10, higher is better; the 24 Kodak photographs lie between 4.9 and 5.8. Architecture and
training of idealo's image-quality-assessment: MobileNet (v1, full width) with ten outputs, trained
on the ratings of AVA. Named `nima-mobilenet`, since `nima` is pyiqa's InceptionResNetV2 with other
values.

Talebi, Milanfar: NIMA: neural image assessment. IEEE Transactions on Image Processing 27(8), 2018.

Prepared as idealo does: the whole picture squeezed to 224×224 by taking the nearest pixel (what
Keras did when the network was trained; fine detail aliases), then p / 127.5 − 1. Padding is one
pixel on all four sides of each 3×3 filter, as in the Keras 2.1.6 that wrote the file. Later
versions of Keras pad two sides only where the size is halved, and so run the same weights with
other scores: on Kodak's photographs 0.17 away on average, 0.65 at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from convergebench import weights
from convergebench.metric import KnownAnswer, LiftedMetric, MetricSpec, Needs, Picture, StepView
from convergebench.network import Graph, Session, fold_norm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Parameters = Mapping[str, NDArray[Any]]

SIDE: Final = 224
BLOCKS: Final = 13
HALVING: Final = (2, 4, 6, 12)
"""Blocks that halve the picture's size."""
NORM: Final = ("gamma", "beta", "moving_mean", "moving_variance")
EPSILON: Final = 1e-3
"""Of batch normalisation, Keras's default."""


def prepare(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The whole picture at 224×224, nearest pixels."""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.NEAREST))


def network(parameters: Parameters) -> Graph:
    """`pixels` (n × 224 × 224 × 3, uint8) to `marks` (n × 10), how likely each mark is.

    Parameters are named as Keras saves them, kernels height × width × inputs × outputs.
    """
    graph = Graph()

    def conv(x: str, name: str, *, stride: int = 1) -> str:
        depthwise = "_dw_" in name
        kind = "depthwise_kernel" if depthwise else "kernel"
        stored = parameters[f"{name}/{name}/{kind}:0"]
        norm = [parameters[f"{name}_bn/{name}_bn/{part}:0"] for part in NORM]
        order = (2, 3, 0, 1) if depthwise else (3, 2, 0, 1)
        kernel, bias = fold_norm(stored.transpose(order), norm, EPSILON)
        x = graph.conv(
            x,
            kernel,
            bias,
            stride=stride,
            padding=kernel.shape[2] // 2,
            groups=len(kernel) if depthwise else 1,
        )
        return graph.clip(x, 0, 6)

    pixels = graph.cast(graph.input("pixels", ("n", SIDE, SIDE, 3), np.uint8))
    x = graph.transpose(graph.sub(graph.div(pixels, 127.5), 1.0), (0, 3, 1, 2))
    x = conv(x, "conv1", stride=2)
    for index in range(1, BLOCKS + 1):
        x = conv(x, f"conv_dw_{index}", stride=2 if index in HALVING else 1)
        x = conv(x, f"conv_pw_{index}")
    weight, bias = (parameters[f"dense_1/dense_1/{part}:0"] for part in ("kernel", "bias"))
    graph.output("marks", graph.softmax(graph.linear(graph.mean(x, (2, 3)), weight.T, bias)))
    return graph


class Liking:
    """The mean mark of a frame; parameters are loaded at the first measurement."""

    def __init__(self, load: Callable[[], Parameters]) -> None:
        self._load = load
        self._session: Session | None = None

    def __call__(self, view: StepView) -> float:
        """The mean mark, 1 to 10."""
        return view.frame.shared(("nima-mobilenet", self), self._mark)

    def _mark(self, picture: Picture) -> float:
        if self._session is None:
            self._session = Session(network(self._load()))
        (marks,) = self._session(pixels=prepare(picture.pixels)[None])
        return float(marks[0].astype(np.float64) @ np.arange(1, 11))


SPEC: Final = MetricSpec(
    name="nima-mobilenet",
    version="1",
    kind="no-reference",
    higher_is_better=True,
    typical=(1, 10),
    title="Neural image assessment, idealo's MobileNet trained on AVA (1 to 10)",
    paper="https://arxiv.org/abs/1709.05424",
    needs=Needs(extra="nima", modules=("h5py",), weights=("nima-mobilenet",)),
    known=KnownAnswer(4.399414, 1e-4, "the network written for torch 2.15 (tests/iqa)"),
)


def nima_mobilenet() -> LiftedMetric:
    """Mean mark that idealo's MobileNet, trained on the ratings of AVA, predicts for a frame."""
    path = weights.find("nima-mobilenet")
    return LiftedMetric(SPEC, Liking(lambda: weights.arrays(path)))


nima_mobilenet.spec = SPEC  # type: ignore[attr-defined]
