"""Checkpoints with random values for each of pyiqa's networks, laid out as the published ones are.

Each comes with the pyiqa metric it was saved from, so that a value can be compared with pyiqa's
own call on the very same parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyiqa
import timm
import torch
import torchvision
from pyiqa.archs import (
    arniqa_arch,
    clip_model,
    clipiqa_arch,
    dbcnn_arch,
    hypernet_arch,
    liqe_arch,
    maniqa_arch,
    musiq_arch,
    nima_arch,
    paq2piq_arch,
    qualiclip_arch,
    topiq_arch,
    tres_arch,
    wadiqam_arch,
)
from pyiqa.archs.cnniqa_arch import CNNIQA

RN50 = (1024, 224, (3, 4, 6, 3), 64, None, 77, 49408, 512, 8, 12)
VIT_B32 = (512, 224, 12, 768, 32, 77, 49408, 512, 8, 12)

FILES: dict[str, tuple[str, str, bool]] = {
    "cnniqa": ("cnniqa", "CNNIQA_koniq10k-e6f14c91.pth", True),
    "dbcnn": ("dbcnn", "DBCNN_KonIQ10k-2de81c0a.pth", True),
    "hyperiqa": ("hyperiqa", "HyperIQA-resnet50-koniq10k-c96c41b1.pth", True),
    "liqe": ("liqe", "liqe_koniq.pt", True),
    "maniqa": ("maniqa", "ckpt_koniq10k.pt", False),
    "musiq": ("musiq", "musiq_koniq_ckpt-e95806b9.pth", False),
    "nima": ("nima", "NIMA_InceptionV2_ava-b0c77c00.pth", True),
    "paq2piq": ("paq2piq", "P2P_RoIPoolModel-fit.10.bs.120-ca69882e.pth", False),
    "topiq-nr": ("topiq_nr", "cfanet_nr_koniq_res50-9a73138b.pth", True),
    "tres": ("tres", "tres_koniq-f0502926.pth", False),
    "wadiqam": ("wadiqam_nr", "WaDIQaM-NR-koniq-aaffea29.pth", True),
}
"""Our name: pyiqa's name, the file, and whether its tensors lie below the key `params`."""


def make(name: str, folder: Path, seed: int = 1) -> Any:
    """Write the files of a metric into a folder; the pyiqa metric they were saved from."""
    torch.manual_seed(seed)
    folder.mkdir(parents=True, exist_ok=True)
    special: dict[str, Callable[[Path], Any]] = {
        "arniqa": _arniqa,
        "clipiqa": _clipiqa,
        "qualiclip": _qualiclip,
    }
    if name in special:
        return special[name](folder)
    network, file, below = FILES[name]
    metric = _blank(network, folder)
    state = _stir(metric.net)
    torch.save({"params": state} if below else state, folder / file)
    if name == "liqe":  # its text features follow from the weights; ours are made from the file
        with torch.no_grad():
            metric.net.text_features = metric.net.get_text_features(metric.net.joint_texts)
    return metric


def _blank(network: str, folder: Path, **more: Any) -> Any:
    """A pyiqa metric whose backbones and checkpoint are left as they are initialised."""
    create = timm.create_model
    modules = (
        *(dbcnn_arch, hypernet_arch, liqe_arch, maniqa_arch, musiq_arch, nima_arch, paq2piq_arch),
        *(topiq_arch, tres_arch, wadiqam_arch, __import__("pyiqa").archs.cnniqa_arch),
    )
    with _all(
        *(mock.patch.object(m, "load_pretrained_network") for m in modules),
        mock.patch.object(timm, "create_model", lambda n, **o: create(n, **o | {"pretrained": 0})),
        *(_plain(n) for n in ("resnet18", "resnet50", "vgg16")),
        mock.patch.object(liqe_arch, "load", lambda *_: clip_model.CLIP(*VIT_B32).eval()),
        mock.patch.object(liqe_arch, "DEFAULT_CACHE_DIR", str(folder / "text")),
    ):
        (folder / "text").mkdir(exist_ok=True)
        return pyiqa.create_metric(network, device=torch.device("cpu"), **more)


def _arniqa(folder: Path) -> Any:
    encoder = torch.nn.Sequential(*list(torchvision.models.resnet50().children())[:-1])
    state = {f"model.{k}": v for k, v in _stir(encoder).items()}
    torch.save(state, folder / "ARNIQA.pth")
    torch.jit.script(torch.nn.Linear(4096, 1)).save(folder / "regressor_koniq10k.pth")
    with _all(
        _plain("resnet50"),
        mock.patch.object(torch.hub, "load_state_dict_from_url", lambda *_, **__: state),
        mock.patch.object(
            arniqa_arch,
            "load_file_from_url",
            lambda *_, **__: str(folder / "regressor_koniq10k.pth"),
        ),
    ):
        return pyiqa.create_metric("arniqa", device=torch.device("cpu"))


def _clipiqa(folder: Path) -> Any:
    clip = clip_model.CLIP(*RN50).eval()
    _stir(clip)
    example = (torch.zeros(1, 3, 224, 224), torch.ones(1, 77, dtype=torch.long))
    torch.jit.trace(clip, example, check_trace=False).save(str(folder / "RN50.pt"))
    halved = clip_model.build_model(dict(clip.state_dict())).float()  # as pyiqa's loader does
    with mock.patch.object(clipiqa_arch, "load", lambda *_: halved):
        return pyiqa.create_metric("clipiqa", device=torch.device("cpu"))


def _qualiclip(folder: Path) -> Any:
    clip = clip_model.CLIP(*RN50).eval()
    state = {f"clip_model.{k}": v for k, v in _stir(clip).items()}
    state["prompts_features"] = torch.nn.functional.normalize(torch.randn(14, 1024), dim=1)
    torch.save(state, folder / "QualiCLIP.pth")
    with _all(
        mock.patch.object(qualiclip_arch, "load", lambda *_: clip_model.CLIP(*RN50).eval()),
        mock.patch.object(
            qualiclip_arch, "load_file_from_url", lambda *_: str(folder / "QualiCLIP.pth")
        ),
    ):
        return pyiqa.create_metric("qualiclip", device=torch.device("cpu"))


def _stir(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Move every value a little, so that none is as an untouched network would have it."""
    with torch.no_grad():
        for value in net.state_dict().values():
            if value.is_floating_point():
                value += 0.01 * (torch.rand_like(value) - 0.5)
    return {k: v.clone() for k, v in net.state_dict().items()}


def _plain(backbone: str) -> Any:
    make = getattr(torchvision.models, backbone)
    return mock.patch.object(torchvision.models, backbone, lambda **_: make())


class _all:
    """Several context managers as one."""

    def __init__(self, *contexts: Any) -> None:
        self._contexts = contexts

    def __enter__(self) -> None:
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *problem: object) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*problem)


assert CNNIQA
