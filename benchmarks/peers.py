"""The peers our metrics are compared with: the same picture in, their number out.

pyiqa and lpips would fetch their parameters from a hub; here they are given the very files that
our metrics use, so values can be equal and no network is needed.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convergebench import weights
from convergebench.metrics.brisque import read_regression

Pixels = NDArray[np.uint8]
Peer = Callable[[Pixels, Pixels], Callable[[], float]]
"""Takes home and frame, prepares its favourite input, and answers with what is timed."""

PYIQA = {
    "psnr": "psnr",
    "ssim": "ssim",
    "ms-ssim": "ms_ssim",
    "brisque": "brisque",
    "niqe": "niqe",
    "ilniqe": "ilniqe",
    "piqe": "piqe",
}
"""pyiqa's name of each metric that both compute without a network."""


def tensor(pixels: Pixels) -> Any:
    """1×3×H×W float32 in [0, 1]."""
    import torch

    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float() / 255


@cache
def pyiqa_metric(name: str) -> Any:
    """A pyiqa metric on the CPU, with parameters from our catalogue."""
    import pyiqa

    options = {}
    if name in ("niqe", "ilniqe"):
        options["pretrained_model_path"] = str(_mat(name))
    if name == "brisque":
        options["pretrained_model_path"] = str(_brisque())
    return pyiqa.create_metric(name, device="cpu", **options)


def by_pyiqa(name: str) -> Peer:
    """A metric of pyiqa as a peer."""
    metric = pyiqa_metric(PYIQA[name])
    compares = metric.metric_mode == "FR"

    def prepare(home: Pixels, frame: Pixels) -> Callable[[], float]:
        x, y = tensor(frame), tensor(home)
        return lambda: float(metric(x, y) if compares else metric(x))

    return prepare


def by_piq(name: str) -> Peer:
    """A function of piq as a peer."""
    import piq

    measure = getattr(piq, name)

    def prepare(home: Pixels, frame: Pixels) -> Callable[[], float]:
        x, y = tensor(frame), tensor(home)
        return lambda: float(measure(x, y, data_range=1.0))

    return prepare


def by_skimage(name: str, **options: Any) -> Peer:
    """A function of skimage.metrics as a peer."""
    import skimage.metrics

    measure = getattr(skimage.metrics, name)
    return lambda home, frame: lambda: float(measure(home, frame, data_range=255, **options))


@cache
def lpips_module() -> Any:
    """The lpips package's AlexNet with the backbone of our catalogue instead of torchvision's."""
    import lpips
    import torch

    from convergebench.metrics.lpips import Parameters

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False).eval()
    parameters = Parameters.from_jax(weights.arrays(weights.find("lpips-alex")), "AlexNet_0")
    convolutions = [m for m in module.net.modules() if isinstance(m, torch.nn.Conv2d)]
    for convolution, (kernel, bias) in zip(convolutions, parameters.convs, strict=True):
        convolution.weight.data = torch.from_numpy(np.array(kernel))
        convolution.bias.data = torch.from_numpy(np.array(bias))
    return module


def by_lpips(home: Pixels, frame: Pixels) -> Callable[[], float]:
    """The lpips package as a peer; it computes home's features again for every frame."""
    import torch

    module = lpips_module()
    x, y = tensor(frame) * 2 - 1, tensor(home) * 2 - 1

    def measure() -> float:
        with torch.inference_mode():
            return float(module(x, y))

    return measure


def _mat(name: str) -> Path:
    """The parameters as pyiqa reads them: the .mat file, or made from the .npz that we have."""
    path = weights.find(name)
    if path.suffix == ".mat":
        return path
    import scipy.io

    held = np.load(path)
    out = Path(tempfile.mkdtemp()) / f"{name}.mat"
    scipy.io.savemat(
        out, {"mu_prisparam": held["mu_pris_param"], "cov_prisparam": held["cov_pris_param"]}
    )
    return out


def _brisque() -> Path:
    """The support vectors as pyiqa reads them."""
    import torch

    model = read_regression(weights.find("brisque"))
    out = Path(tempfile.mkdtemp()) / "brisque.pth"
    torch.save((torch.tensor(model.coefficients), torch.tensor(model.vectors)), out)
    return out
