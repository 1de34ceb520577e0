"""CLIP's two towers as ONNX graphs, built from the parameters of a checkpoint.

A tower is a transformer of blocks with normalisation in front,

    x ← x + attention(LN(x)),    x ← x + W₂·act(W₁·LN(x) + b₁) + b₂.

The image tower cuts the picture into patches, puts a class token before them, and projects that
token's final state; the text tower looks only backwards and projects the state at the end token.
Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929; Radford et al. 2021,
https://arxiv.org/abs/2103.00020.

Written by hand because `transformers`, `open_clip` and `openai-clip` all need torch, and
checkpoints from each of them are in use.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from convergebench.errors import MetricUnavailable
from convergebench.network import Graph, Session

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Parameters = Mapping[str, NDArray[Any]]

Activation = Literal["quick_gelu", "gelu"]
HEAD_WIDTH: Final = 64
"""Of every CLIP transformer that OpenAI published; checkpoints do not say."""

OPENAI: Final = (
    ("visual.class_embedding", "vision_model.embeddings.class_embedding"),
    ("visual.conv1.", "vision_model.embeddings.patch_embedding."),
    ("visual.positional_embedding", "vision_model.embeddings.position_embedding.weight"),
    ("visual.ln_pre.", "vision_model.pre_layrnorm."),  # spelt like that
    ("visual.transformer.resblocks.", "vision_model.encoder.layers."),
    ("visual.ln_post.", "vision_model.post_layernorm."),
    ("visual.proj", "visual_projection.weight"),
    ("token_embedding.", "text_model.embeddings.token_embedding."),
    ("positional_embedding", "text_model.embeddings.position_embedding.weight"),
    ("transformer.resblocks.", "text_model.encoder.layers."),
    ("ln_final.", "text_model.final_layer_norm."),
    ("text_projection", "text_projection.weight"),
)
"""How names begin in OpenAI's and open_clip's checkpoints, and in Hugging Face's."""

OPENAI_BLOCK: Final = (
    (".attn.", ".self_attn."),
    (".ln_1.", ".layer_norm1."),
    (".ln_2.", ".layer_norm2."),
    (".mlp.c_fc.", ".mlp.fc1."),
    (".mlp.c_proj.", ".mlp.fc2."),
)


def hugging_face_layout(parameters: Parameters) -> dict[str, NDArray[Any]]:
    """Parameters under Hugging Face's names, whichever library saved them.

    OpenAI's and open_clip's keep query, key and value in one array, which is split, and their
    projections transposed; a TorchScript archive's names get their dots back. Nothing is copied.
    """
    # A training checkpoint wraps the parameters in another level or two.
    wrapping = re.compile(r"^(state_dict\.)?(module\.)?")
    dotted = {wrapping.sub("", name.replace("/", ".")): a for name, a in parameters.items()}
    if any(name.startswith(("vision_model.", "text_model.")) for name in dotted):
        return dotted
    found: dict[str, NDArray[Any]] = {}
    for name, array in dotted.items():
        begin, ours = next(((t, o) for t, o in OPENAI if name.startswith(t)), ("", ""))
        renamed = ours + name.removeprefix(begin)
        for theirs, inner in OPENAI_BLOCK:
            renamed = renamed.replace(theirs, inner)
        if (joint := re.fullmatch(r"(.*)\.in_proj_(weight|bias)", renamed)) is not None:
            for part, third in zip("qkv", np.array_split(array, 3), strict=True):
                found[f"{joint[1]}.{part}_proj.{joint[2]}"] = third
        else:
            found[renamed] = array.T if "projection" in renamed else array
    return found


def _of(parameters: Parameters, name: str, shape: Sequence[int] | None = None) -> NDArray[Any]:
    """One parameter, with the shape it must have."""
    if name not in parameters:
        raise MetricUnavailable(f"this is no CLIP checkpoint that we know: it lacks {name}")
    array = parameters[name]
    if shape is not None and array.shape != tuple(shape):
        raise MetricUnavailable(
            f"this CLIP checkpoint contradicts itself: {name} is {_times(array.shape)}, "
            f"expected {_times(shape)}"
        )
    return array


def _times(shape: Iterable[int]) -> str:
    return "×".join(map(str, shape)) or "a single number"


class ImageTower:
    """Prepared pictures to embeddings.

    Args:
        parameters: Of a checkpoint, in Hugging Face's layout. They are not copied where they are
            float32, so of a mapped file only what ONNX Runtime packs for itself takes memory.
        heads: Attention heads; by default as many as OpenAI's models of this width have.
        activation: `quick_gelu` for OpenAI's own weights, `gelu` for most later ones.
    """

    def __init__(
        self,
        parameters: Parameters,
        heads: int | None = None,
        activation: Activation = "quick_gelu",
    ) -> None:
        name = "vision_model.embeddings"
        kernel = _of(parameters, f"{name}.patch_embedding.weight")
        if kernel.ndim != 4 or kernel.shape[1] != 3 or kernel.shape[2] != kernel.shape[3]:
            raise MetricUnavailable(f"expected square RGB patches, got {_times(kernel.shape)}")
        width, patch = kernel.shape[0], kernel.shape[2]
        grid = math.isqrt(max(0, len(_of(parameters, f"{name}.position_embedding.weight")) - 1))
        count = grid * grid
        places = _of(parameters, f"{name}.position_embedding.weight", (count + 1, width))
        self.side: Final = grid * patch
        """Width and height of the pictures it takes."""

        graph = Graph()
        layers = _Layers(graph, parameters, width, count + 1, heads, activation)
        x = graph.input("pictures", ("n", 3, self.side, self.side))
        x = graph.reshape(graph.conv(x, kernel, stride=patch), (0, width, count))
        # The class token joins every picture of the batch: patches get an empty row in front, and
        # the token is part of what is added to them.
        added = places.astype(np.float32)
        added[0] += _of(parameters, f"{name}.class_embedding", (width,))
        front = np.array([0, 1, 0, 0, 0, 0], np.int64)
        x = graph.op("Pad", graph.transpose(x, (0, 2, 1)), front, np.float32(0))
        x = layers.norm(graph.add(x, added), "vision_model.pre_layrnorm")
        x = layers.blocks(x, "vision_model.encoder.layers")
        x = graph.gather(graph.reshape(x, (-1, count + 1, width)), np.int64(0), axis=1)
        x = layers.norm(x, "vision_model.post_layernorm")
        graph.output("states", x)
        self._projection = _projection(parameters, "visual_projection.weight", width)
        self.size: Final = len(self._projection)
        """Numbers in an embedding."""
        self._session = Session(graph)

    def __call__(self, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        """N×3×side×side prepared pictures to N embeddings, not normalised."""
        (states,) = self._session(pictures=pictures)
        return _projected(states, self._projection)


class TextTower:
    """Token numbers to embeddings. The arguments are those of `ImageTower`."""

    def __init__(
        self,
        parameters: Parameters,
        heads: int | None = None,
        activation: Activation = "quick_gelu",
    ) -> None:
        name = "text_model.embeddings"
        table = _of(parameters, f"{name}.token_embedding.weight")
        if table.ndim != 2:
            raise MetricUnavailable(f"expected a table of tokens, got {_times(table.shape)}")
        self.vocabulary, width = table.shape
        self.context: Final = len(_of(parameters, f"{name}.position_embedding.weight"))
        """Tokens it can see."""
        places = _of(parameters, f"{name}.position_embedding.weight", (self.context, width))
        backwards = np.triu(np.full((self.context, self.context), -np.inf, np.float32), 1)

        graph = Graph()
        layers = _Layers(graph, parameters, width, self.context, heads, activation, backwards)
        tokens = graph.input("tokens", ("n", self.context), np.int64)
        ends = graph.input("ends", ("n",), np.int64)
        x = graph.add(graph.gather(table, tokens), places)
        x = graph.gather(layers.blocks(x, "text_model.encoder.layers"), ends)
        x = layers.norm(x, "text_model.final_layer_norm")
        graph.output("states", x)
        self._projection = _projection(parameters, "text_projection.weight", width)
        self._session = Session(graph)

    def __call__(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Token numbers, each text from start to end, to embeddings, not normalised."""
        tokens = np.zeros((len(texts), self.context), np.int64)
        ends = np.empty(len(texts), np.int64)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
            # The end is the largest number; a text that spells it out ends there, as in OpenAI's.
            ends[row] = row * self.context + int(np.argmax(text))
        (states,) = self._session(tokens=tokens, ends=ends)
        return _projected(states, self._projection)


def _projection(parameters: Parameters, name: str, width: int) -> NDArray[np.float32]:
    """Into the space that both towers share."""
    outputs = _of(parameters, name).shape[:1]
    return _of(parameters, name, (*outputs, width)).astype(np.float32)


def _projected(states: NDArray[np.float32], projection: NDArray[np.float32]) -> NDArray[np.float32]:
    # Row by row, so that an embedding has the same bits alone and in a batch of any size.
    return np.stack([projection @ state for state in states])


class _Layers:
    """What both towers are made of. Inside, the states of all tokens of a batch are rows."""

    def __init__(
        self,
        graph: Graph,
        parameters: Parameters,
        width: int,
        tokens: int,
        heads: int | None,
        activation: Activation,
        mask: NDArray[np.float32] | None = None,
    ) -> None:
        self._graph, self._parameters = graph, parameters
        self._width, self._tokens = width, tokens
        self._heads = heads or max(1, width // HEAD_WIDTH)
        if width % self._heads:
            raise MetricUnavailable(f"a width of {width} cannot be shared by {self._heads} heads")
        self._activation, self._mask = activation, mask

    def norm(self, x: str, name: str) -> str:
        """Layer normalisation."""
        names = (f"{name}.weight", f"{name}.bias")
        scale, bias = (_of(self._parameters, part, (self._width,)) for part in names)
        return self._graph.layer_norm(x, scale, bias)

    def blocks(self, x: str, name: str) -> str:
        """All blocks of a transformer, one after another."""
        x = self._graph.reshape(x, (-1, self._width))
        numbered = re.compile(rf"{re.escape(name)}\.(\d+)\.")
        numbers = {int(found[1]) for found in map(numbered.match, self._parameters) if found}
        for number in range(max(numbers, default=0) + 1):
            x = self._block(x, f"{name}.{number}")
        return x

    def _block(self, x: str, name: str) -> str:
        graph, width = self._graph, self._width
        y = self._attention(self.norm(x, f"{name}.layer_norm1"), f"{name}.self_attn")
        x = graph.add(x, self._linear(y, f"{name}.self_attn.out_proj", width, width))
        inner = len(_of(self._parameters, f"{name}.mlp.fc1.bias"))
        y = self._linear(self.norm(x, f"{name}.layer_norm2"), f"{name}.mlp.fc1", inner, width)
        if self._activation == "gelu":
            y = graph.gelu(y)
        else:
            y = graph.mul(y, graph.sigmoid(graph.mul(y, np.float32(1.702))))
        return graph.add(x, self._linear(y, f"{name}.mlp.fc2", width, inner))

    def _linear(self, x: str, name: str, outputs: int, inputs: int) -> str:
        # Not `Graph.linear`, which copies its weight to transpose it: these are a gigabyte.
        weight = _of(self._parameters, f"{name}.weight", (outputs, inputs))
        bias = _of(self._parameters, f"{name}.bias", (outputs,))
        return self._graph.op("Gemm", x, weight, bias, transB=1)

    def _attention(self, x: str, name: str) -> str:
        """softmax(q·kᵀ/√d + mask)·v in each head."""
        graph, size = self._graph, self._width // self._heads

        def heads(part: str, order: tuple[int, ...]) -> str:
            rows = self._linear(x, f"{name}.{part}_proj", self._width, self._width)
            split = graph.reshape(rows, (-1, self._tokens, self._heads, size))
            return graph.transpose(split, order)

        query = graph.mul(heads("q", (0, 2, 1, 3)), np.float32(size**-0.5))
        weights = graph.matmul(query, heads("k", (0, 2, 3, 1)))
        if self._mask is not None:
            weights = graph.add(weights, self._mask)
        mixed = graph.matmul(graph.softmax(weights), heads("v", (0, 2, 1, 3)))
        return graph.reshape(graph.transpose(mixed, (0, 2, 1, 3)), (-1, self._width))
