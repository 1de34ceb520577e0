"""CNNIQA as its PyTorch port was trained on LIVE: pyiqa's network, one channel, patches.

The port (github.com/lidq92/CNNIQA) looks at luma, cuts it into 32×32 patches, normalises each
locally, and averages the patches' scores. Its target was LIVE's realigned DMOS, the loss of quality
that people saw: about 0 for a pristine picture, 100 for the worst.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from convergebench.metrics.learned import offline

NAME: Final = "cnniqa-live"
FILE: Final = "cnniqa_LIVE_lidq92.pth"
PATCH: Final = 32
TOGETHER: Final = 512
"""Patches that the network sees at once: bounds the memory, and is always cut the same way."""


def build(files: Mapping[str, Path], device: Any) -> Any:
    """The network with LIVE's weights, as a function from frames in [0, 1] to scores."""
    import torch

    net = offline.build(NAME, "cnniqa", "cnniqa", {"pretrained": None})({}, device).net
    net.conv1 = torch.nn.Conv2d(1, 50, 7)  # pyiqa's takes three channels
    with offline.reading(NAME, files):
        net.load_state_dict(torch.load(files[FILE], map_location="cpu", weights_only=True))
    net.to(device).eval()

    def score(frames: Any) -> Any:
        return torch.stack([_mean_score(net, frame) for frame in frames])

    return score


def _mean_score(net: Any, frame: Any) -> Any:
    import torch

    patches = _normalised(_patches(_luma(frame)))
    return torch.cat([net(part) for part in patches.split(TOGETHER)]).mean()


def _luma(frame: Any) -> Any:
    """Pillow's luma in 65536ths of a level, rounded to 8 bits, and brought to [0, 1]."""
    import torch

    red, green, blue = (frame * 255).round().to(torch.int32)
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).float() / 255


def _patches(luma: Any) -> Any:
    """Patches side by side. The port stops one short where the last would just fit; so do we."""
    rows, columns = ((side - 1) // PATCH for side in luma.shape)
    whole = luma[: rows * PATCH, : columns * PATCH]
    grid = whole.unflatten(0, (rows, PATCH)).unflatten(2, (columns, PATCH))
    return grid.transpose(1, 2).reshape(-1, 1, PATCH, PATCH)


def _normalised(patches: Any) -> Any:
    """Each value less the mean of its 3×3 neighbours, over their standard deviation plus 1.

    In float64, because the variance is a difference of two close numbers.
    """
    import torch.nn.functional as functional

    exact = patches.double()
    padded = functional.pad(exact, (1, 1, 1, 1), mode="replicate")
    mean = functional.avg_pool2d(padded, 3, stride=1)
    square = functional.avg_pool2d(padded**2, 3, stride=1)
    deviation = (square - mean**2).clamp(min=0).sqrt()
    return ((exact - mean) / (deviation + 1)).float()
