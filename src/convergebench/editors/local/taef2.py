"""`taef2`: the tiny FLUX.2 autoencoder as a neural replicator on the CPU.

The picture is encoded to FLUX.2's latents (32 channels at an eighth of the size) and decoded again,
which is what every edit by a latent model does to the pixels it means to leave alone. Prompt, edit,
seed and settings are not looked at; of several inputs the last one is taken.

The network is written here as an ONNX graph (`convergebench.network`), in float32, because torch
would bring gigabytes for 5 MB of weights. Its layers follow from the names in the weights' files:
https://github.com/madebyollin/taesd. Sides that are no multiple of 8 are filled up by repeating
the last row and column, and the result is cut back, so a picture keeps its size.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from convergebench import weights
from convergebench.editor import Abilities, EditorSpec, EditReply, EditRequest
from convergebench.editors.local.missing import lacking
from convergebench.errors import AccountBlocked, MetricUnavailable
from convergebench.frame import encode
from convergebench.network import Graph, Session
from convergebench.resources import Resources

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION: Final = "1"
THREADS: Final = 2
"""On every machine: with another number some pixels differ by a level."""
STRIDE: Final = 8
"""How many pixels a latent stands for, along each side."""
GROUPS: Final = 4
"""Of the normalisation inside a pooling branch; each is a quarter of its channels."""
BOUND: Final = 3.0
"""Latents are squeezed to ±3 by a hyperbolic tangent before they are decoded."""

Parameters = Mapping[str, "NDArray[Any]"]


class Taef2:
    """The autoencoder, opened when it is first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        return EditorSpec(
            name="taef2",
            version=VERSION,
            description="the tiny FLUX.2 autoencoder: encodes and decodes, ignores the prompt",
            concurrency=1,
            seconds=3.0,
            price=0.0,
            deterministic=True,
            caveats=("performs no edit: every step is a replication",),
            abilities=Abilities(False, False, (), ("stateless",)),
            account="local/taef2",
            lacks=lacking("taef2"),
            resources=Resources(cpus=THREADS, memory=2 << 30),
        )

    def edit(self, request: EditRequest) -> EditReply:
        """Encode and decode the last input."""
        pixels = request.inputs[-1].pixels
        with self._lock:
            try:
                network = self._network
            except MetricUnavailable as error:
                raise AccountBlocked(str(error)) from error
            made = replicated(network, pixels)
        height, width = pixels.shape[:2]
        return EditReply(
            encode(made),
            model="taef2",
            parameters={"dtype": "float32", "stride": STRIDE},
            cost=0.0,
            caveats=self.spec.caveats,
            size=f"{width}x{height}",
            format="png",
        )

    @cached_property
    def _network(self) -> Session:
        encoder, decoder = (
            weights.arrays(weights.find("taef2", f"taef2_{part}.pth"))
            for part in ("encoder", "decoder")
        )
        return Session(autoencoder(encoder, decoder), threads=THREADS)


def open_editor() -> Taef2:
    """The tiny FLUX.2 autoencoder: encodes and decodes, ignores the prompt."""
    return Taef2()


def replicated(network: Session, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pixels after one pass through the autoencoder, of the same size."""
    height, width = pixels.shape[:2]
    filling = ((0, -height % STRIDE), (0, -width % STRIDE), (0, 0))
    unit = np.pad(pixels, filling, mode="edge").astype(np.float32) / np.float32(255)
    (out,) = network(x=np.ascontiguousarray(unit.transpose(2, 0, 1)[None]))
    levels: NDArray[np.uint8] = np.rint(np.clip(out[0], 0, 1) * 255).astype(np.uint8)
    return np.ascontiguousarray(levels.transpose(1, 2, 0)[:height, :width])


def autoencoder(encoder: Parameters, decoder: Parameters) -> Graph:
    """The graph from a picture in [0, 1], sides divisible by 8, to its reconstruction."""
    graph = Graph()
    x = graph.input("x", (1, 3, "h", "w"))
    latents = encoded(graph, x, encoder)
    graph.output("y", decoded(graph, latents, decoder))
    return graph


def encoded(graph: Graph, x: str, parameters: Parameters) -> str:
    """Latents of a picture. A convolution without a bias is one that halves the size."""
    for layer in layers(parameters):
        if f"{layer}.conv.0.weight" in parameters:
            x = _block(graph, x, parameters, f"{layer}.")
        else:
            bias = parameters.get(f"{layer}.bias")
            stride = 1 if bias is not None else 2
            x = graph.conv(x, parameters[f"{layer}.weight"], bias, stride=stride, padding=1)
    return x


def decoded(graph: Graph, x: str, parameters: Parameters) -> str:
    """The picture of latents. Before a convolution without a bias the size is doubled."""
    x = graph.mul(graph.op("Tanh", graph.div(x, np.float32(BOUND))), np.float32(BOUND))
    first = layers(parameters)[0]
    for layer in layers(parameters):
        if f"{layer}.conv.0.weight" in parameters:
            x = _block(graph, x, parameters, f"{layer}.")
            continue
        bias = parameters.get(f"{layer}.bias")
        x = x if bias is not None else _doubled(graph, x)
        x = graph.conv(x, parameters[f"{layer}.weight"], bias, padding=1)
        x = graph.relu(x) if layer == first else x
    return x


def layers(parameters: Parameters) -> list[int]:
    """Numbers of the layers that have parameters, in order."""
    return sorted({int(name.partition(".")[0]) for name in parameters})


def _block(graph: Graph, x: str, parameters: Parameters, at: str) -> str:
    """Three convolutions beside the way around them, with a global branch before where it has one.

    The branch's normalisation sees the whole picture: a latent depends on all of it.
    """
    if f"{at}pool.0.weight" in parameters:
        wide = graph.conv(x, parameters[f"{at}pool.0.weight"])
        scale, shift = (parameters[f"{at}pool.1.{name}"] for name in ("weight", "bias"))
        wide = graph.relu(_group_norm(graph, wide, scale, shift))
        x = graph.add(x, graph.conv(wide, parameters[f"{at}pool.3.weight"]))
    inner = x
    for index in (0, 2, 4):
        kernel, bias = (parameters[f"{at}conv.{index}.{name}"] for name in ("weight", "bias"))
        inner = graph.conv(inner, kernel, bias, padding=1)
        inner = graph.relu(inner) if index < 4 else inner
    return graph.relu(graph.add(inner, x))


def _group_norm(
    graph: Graph, x: str, scale: NDArray[Any], shift: NDArray[Any], epsilon: float = 1e-5
) -> str:
    """Zero mean and unit variance over each group of channels, then scale and shift."""
    shape = graph.op("Shape", x)
    folded = graph.reshape(x, (0, GROUPS, -1))
    ones, zeros = np.ones(GROUPS, np.float32), np.zeros(GROUPS, np.float32)
    normed = graph.op("InstanceNormalization", folded, ones, zeros, epsilon=epsilon)
    normed = graph.op("Reshape", normed, shape)
    per_channel = (1, len(scale), 1, 1)
    return graph.add(
        graph.mul(normed, scale.astype(np.float32).reshape(per_channel)),
        shift.astype(np.float32).reshape(per_channel),
    )


def _doubled(graph: Graph, x: str) -> str:
    """Every value four times, in a square."""
    scales = np.array([1, 1, 2, 2], np.float32)
    return graph.op(
        "Resize",
        x,
        None,
        scales,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
