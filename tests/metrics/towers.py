"""A tiny CLIP with random parameters, and its forward pass written down plainly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WIDTH: Final = 32
HEADS: Final = 2
PATCH: Final = 14
SIDE: Final = 28
SIZE: Final = 24
CONTEXT: Final = 12


def parameters(seed: int = 0, *, vocabulary: int = 520, layers: int = 2) -> dict[str, Array]:
    """In Hugging Face's layout: 2 blocks of width 32, patches of 14 in pictures of 28×28."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}

    def add(name: str, *shape: int, around: float = 0.0) -> None:
        scale = 1 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.2
        found[name] = (around + scale * rng.normal(size=shape)).astype(np.float32)

    def layer(name: str, outputs: int, inputs: int) -> None:
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs)

    def norm(name: str) -> None:
        add(f"{name}.weight", WIDTH, around=1.0)
        add(f"{name}.bias", WIDTH)

    add("vision_model.embeddings.class_embedding", WIDTH)
    add("vision_model.embeddings.patch_embedding.weight", WIDTH, 3, PATCH, PATCH)
    add("vision_model.embeddings.position_embedding.weight", (SIDE // PATCH) ** 2 + 1, WIDTH)
    norm("vision_model.pre_layrnorm")
    norm("vision_model.post_layernorm")
    add("visual_projection.weight", SIZE, WIDTH)
    add("text_model.embeddings.token_embedding.weight", vocabulary, WIDTH)
    add("text_model.embeddings.position_embedding.weight", CONTEXT, WIDTH)
    norm("text_model.final_layer_norm")
    add("text_projection.weight", SIZE, WIDTH)
    for tower in ("vision_model", "text_model"):
        for number in range(layers):
            block = f"{tower}.encoder.layers.{number}"
            norm(f"{block}.layer_norm1")
            norm(f"{block}.layer_norm2")
            for part in ("q", "k", "v", "out"):
                layer(f"{block}.self_attn.{part}_proj", WIDTH, WIDTH)
            layer(f"{block}.mlp.fc1", 4 * WIDTH, WIDTH)
            layer(f"{block}.mlp.fc2", WIDTH, 4 * WIDTH)
    return found


def as_openai(theirs: dict[str, Array]) -> dict[str, Array]:
    """The same parameters as OpenAI's library would save them."""
    found: dict[str, Array] = {
        "visual.class_embedding": theirs["vision_model.embeddings.class_embedding"],
        "visual.conv1.weight": theirs["vision_model.embeddings.patch_embedding.weight"],
        "visual.positional_embedding": theirs["vision_model.embeddings.position_embedding.weight"],
        "visual.proj": theirs["visual_projection.weight"].T,
        "token_embedding.weight": theirs["text_model.embeddings.token_embedding.weight"],
        "positional_embedding": theirs["text_model.embeddings.position_embedding.weight"],
        "text_projection": theirs["text_projection.weight"].T,
        "logit_scale": np.float32(4.6) * np.ones(()),
    }
    pairs = {
        "visual.ln_pre": "vision_model.pre_layrnorm",
        "visual.ln_post": "vision_model.post_layernorm",
        "ln_final": "text_model.final_layer_norm",
    }
    for mine, tower in (("visual.transformer", "vision_model"), ("transformer", "text_model")):
        for number in range(
            sum(f"{tower}.encoder.layers.{n}.mlp.fc1.bias" in theirs for n in range(9))
        ):
            block, other = f"{mine}.resblocks.{number}", f"{tower}.encoder.layers.{number}"
            pairs |= {
                f"{block}.ln_1": f"{other}.layer_norm1",
                f"{block}.ln_2": f"{other}.layer_norm2",
                f"{block}.mlp.c_fc": f"{other}.mlp.fc1",
                f"{block}.mlp.c_proj": f"{other}.mlp.fc2",
                f"{block}.attn.out_proj": f"{other}.self_attn.out_proj",
            }
            for kind in ("weight", "bias"):
                found[f"{block}.attn.in_proj_{kind}"] = np.concatenate(
                    [theirs[f"{other}.self_attn.{part}_proj.{kind}"] for part in "qkv"]
                )
    for mine, other in pairs.items():
        for kind in ("weight", "bias"):
            found[f"{mine}.{kind}"] = theirs[f"{other}.{kind}"]
    return found


# -- the forward pass, in float64 -----------------------------------------------------------------


def _norm(p: dict[str, Array], name: str, x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    unit = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    result: Array = unit * p[f"{name}.weight"] + p[f"{name}.bias"]
    return result


def _linear(p: dict[str, Array], name: str, x: Array) -> Array:
    result: Array = x @ p[f"{name}.weight"].T.astype(np.float64) + p[f"{name}.bias"]
    return result


def _gelu(x: Array, kind: str) -> Array:
    erf: Array = np.vectorize(math.erf)(x / math.sqrt(2))
    share: Array = 1 / (1 + np.exp(-1.702 * x)) if kind == "quick_gelu" else (1 + erf) / 2
    result: Array = x * share
    return result


def _transformer(p: dict[str, Array], name: str, x: Array, kind: str, causal: bool) -> Array:
    """Blocks over tokens × width."""
    for number in range(9):
        block = f"{name}.encoder.layers.{number}"
        if f"{block}.mlp.fc1.bias" not in p:
            break
        y = _norm(p, f"{block}.layer_norm1", x)
        q, k, v = (_linear(p, f"{block}.self_attn.{part}_proj", y) for part in "qkv")
        size, outcome = WIDTH // HEADS, []
        for head in range(HEADS):
            mine = slice(head * size, (head + 1) * size)
            weights = np.exp(q[:, mine] @ k[:, mine].T / math.sqrt(size))
            weights = np.tril(weights) if causal else weights
            outcome.append(weights / weights.sum(1, keepdims=True) @ v[:, mine])
        x = x + _linear(p, f"{block}.self_attn.out_proj", np.concatenate(outcome, 1))
        y = _gelu(_linear(p, f"{block}.mlp.fc1", _norm(p, f"{block}.layer_norm2", x)), kind)
        x = x + _linear(p, f"{block}.mlp.fc2", y)
    return x


def image_embedding(p: dict[str, Array], picture: Array, kind: str = "quick_gelu") -> Array:
    """Of one prepared picture."""
    kernel = p["vision_model.embeddings.patch_embedding.weight"].astype(np.float64)
    patches = [
        (kernel * picture[None, :, y : y + PATCH, x : x + PATCH]).sum((1, 2, 3))
        for y in range(0, SIDE, PATCH)
        for x in range(0, SIDE, PATCH)
    ]
    tokens = np.stack([p["vision_model.embeddings.class_embedding"], *patches])
    tokens = tokens + p["vision_model.embeddings.position_embedding.weight"]
    tokens = _norm(p, "vision_model.pre_layrnorm", tokens)
    state = _transformer(p, "vision_model", tokens, kind, causal=False)[0]
    result: Array = p["visual_projection.weight"] @ _norm(p, "vision_model.post_layernorm", state)
    return result


def text_embedding(p: dict[str, Array], tokens: Sequence[int], kind: str = "quick_gelu") -> Array:
    """Of one text, whose largest token is its end."""
    states = p["text_model.embeddings.token_embedding.weight"][list(tokens)].astype(np.float64)
    states = states + p["text_model.embeddings.position_embedding.weight"][: len(tokens)]
    states = _transformer(p, "text_model", states, kind, causal=True)
    end = _norm(p, "text_model.final_layer_norm", states[int(np.argmax(tokens))])
    result: Array = p["text_projection.weight"] @ end
    return result
