"""The tiny autoencoder as a graph of ours, and in torch, with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional as layer

from convergebench import weights
from convergebench.editors.local.taef2 import autoencoder, replicated
from convergebench.frame import decode
from convergebench.network import Session

Parameters = dict[str, Any]


def block(x: Any, p: Parameters, at: str) -> Any:
    if f"{at}.pool.0.weight" in p:
        wide = layer.conv2d(x, p[f"{at}.pool.0.weight"])
        wide = layer.group_norm(wide, 4, p[f"{at}.pool.1.weight"], p[f"{at}.pool.1.bias"])
        x = x + layer.conv2d(layer.relu(wide), p[f"{at}.pool.3.weight"])
    y = x
    for i in (0, 2, 4):
        y = layer.conv2d(y, p[f"{at}.conv.{i}.weight"], p[f"{at}.conv.{i}.bias"], padding=1)
        y = layer.relu(y) if i < 4 else y
    return layer.relu(y + x)


def encoder(x: Any, p: Parameters) -> Any:
    """Layer by layer as its author's Sequential numbers them."""
    x = layer.conv2d(x, p["0.weight"], p["0.bias"], padding=1)
    x = block(x, p, "1")
    for first in (2, 6, 10):
        x = layer.conv2d(x, p[f"{first}.weight"], stride=2, padding=1)
        for at in range(first + 1, first + 4):
            x = block(x, p, str(at))
    return layer.conv2d(x, p["14.weight"], p["14.bias"], padding=1)


def decoder(x: Any, p: Parameters) -> Any:
    x = torch.tanh(x / 3) * 3
    x = layer.relu(layer.conv2d(x, p["1.weight"], p["1.bias"], padding=1))
    for first in (3, 8, 13):
        for at in range(first, first + 3):
            x = block(x, p, str(at))
        x = layer.interpolate(x, scale_factor=2)
        x = layer.conv2d(x, p[f"{first + 4}.weight"], padding=1)
    x = block(x, p, "18")
    return layer.conv2d(x, p["19.weight"], p["19.bias"], padding=1)


@pytest.fixture
def paths(shared: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(shared / "weights"))
    return [weights.find("taef2", f"taef2_{part}.pth") for part in ("encoder", "decoder")]


def in_torch(pixels: NDArray[np.uint8], paths: list[Path]) -> NDArray[Any]:
    loaded = [torch.load(path, map_location="cpu", weights_only=True) for path in paths]
    encoding, decoding = ({k: v.float() for k, v in part.items()} for part in loaded)
    x = torch.from_numpy(pixels.astype(np.float32) / 255).permute(2, 0, 1)[None]
    with torch.no_grad():
        y = decoder(encoder(x, encoding), decoding)
    levels: NDArray[Any] = (y.clamp(0, 1)[0].permute(1, 2, 0) * 255).numpy()
    return levels


@pytest.mark.parametrize("photograph", ["01", "15", "23"])
def test_the_graph_gives_what_torch_gives(photograph: str, shared: Path, paths: list[Path]) -> None:
    """Before rounding to 8 bits within a hundredth of a level; so at most one level after it."""
    data = (shared / f"data/photos/kodak24/{photograph}.png").read_bytes()
    pixels = np.ascontiguousarray(decode(data)[0][128:384, 192:576])
    graph = Session(autoencoder(weights.arrays(paths[0]), weights.arrays(paths[1])))
    wanted = in_torch(pixels, paths)
    unit = pixels.astype(np.float32).transpose(2, 0, 1)[None] / np.float32(255)
    (exact,) = graph(x=unit)
    found = np.clip(exact[0].transpose(1, 2, 0), 0, 1) * 255
    assert np.abs(found - wanted).max() < 0.01
    made = replicated(graph, pixels)
    assert np.abs(made - np.rint(wanted)).max() <= 1
    assert np.mean(made != np.rint(wanted)) < 0.001
