"""pyiqa's networks from files on this machine: nothing is fetched, and no file runs code.

pyiqa builds each network around a backbone whose published weights it downloads, then replaces
them by those of its own checkpoint. Here its loaders find the files they are given, under the names
they ask for; a backbone that a checkpoint replaces entirely is made blank; and any attempt to reach
the network, while loading or scoring, ends in one sentence.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import logging
import pickle
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from convergebench.errors import MetricUnavailable

_thread: Final = threading.local()
_loading: Final = threading.Lock()
"""Held while foreign modules are altered, because that is seen by every thread."""

BACKBONES: Final = ("resnet18", "resnet50", "vgg16")
"""What pyiqa takes from torchvision with ImageNet weights, to replace them at once."""

CLIP: Final = {
    "liqe": (512, 224, 12, 768, 32, 77, 49408, 512, 8, 12),  # ViT-B/32
    "qualiclip": (1024, 224, (3, 4, 6, 3), 64, None, 77, 49408, 512, 8, 12),  # RN50
}
"""Dimensions of the CLIP models whose weights the metric's own checkpoint holds."""


@contextlib.contextmanager
def sealed(metric: str) -> Iterator[None]:
    """Let this thread reach no other machine, and foreign code neither print nor warn.

    An audit hook rather than replaced functions: it also sees the calls of native code, and other
    threads keep their network.

    Raises:
        MetricUnavailable: Something failed after an attempt to reach another machine.
    """
    _watch_sockets()
    before = getattr(_thread, "seal", None)
    _thread.seal = seal = _Seal(metric)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except MetricUnavailable:
        raise
    except Exception as error:
        if seal.attempts:
            raise seal.refusal() from error
        raise
    finally:
        _thread.seal = before


@dataclass
class _Seal:
    """What a thread that scores has tried to reach."""

    metric: str
    attempts: list[str] = field(default_factory=list)

    def refusal(self) -> MetricUnavailable:
        return MetricUnavailable(
            f"{self.metric} tried to download from {self.attempts[0]}; weights are never fetched"
            f" while scoring. Run `convergebench weights pull {self.metric}`."
        )


@functools.cache
def _watch_sockets() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("socket.connect", "socket.getaddrinfo"):
        return
    seal: _Seal | None = getattr(_thread, "seal", None)
    if seal is None:
        return
    if event == "socket.connect" and arguments[0].family == socket.AF_UNIX:
        return
    host = arguments[0] if event == "socket.getaddrinfo" else arguments[1][0]
    seal.attempts.append(str(host))
    raise seal.refusal()  # no kind of error that a downloader would take for one to try again


def build(
    metric: str, network: str, arch: str, options: Mapping[str, Any]
) -> Callable[[Mapping[str, Path], Any], Any]:
    """How to make pyiqa's metric `network`, in evaluation mode, from files.

    Args:
        metric: Our name, for messages.
        network: pyiqa's name of the metric.
        arch: The module of `pyiqa.archs` that defines the network.
        options: For pyiqa's network, beyond its defaults.

    Returns:
        A function of the weights (by the name that pyiqa gives them) and the device. It raises
        MetricUnavailable where a file does not hold what this network needs.
    """
    return functools.partial(_build, metric, network, arch, options)


def _build(
    metric: str,
    network: str,
    arch: str,
    options: Mapping[str, Any],
    files: Mapping[str, Path],
    device: Any,
) -> Any:
    import torch

    with sealed(metric), _loading, tempfile.TemporaryDirectory() as place, torch.random.fork_rng():
        folder, imports = Path(place), list(sys.path)
        for name, path in files.items():
            (folder / name).symlink_to(path.resolve())
        with reading(metric, files), contextlib.ExitStack() as after:
            after.callback(sys.path.__setitem__, slice(None), imports)  # Q-Align's code adds to it
            pyiqa = importlib.import_module("pyiqa")
            pyiqa.utils.get_root_logger(log_level=logging.WARNING)
            # Importing it here spares pyiqa the search through all its networks.
            module = importlib.import_module(f"pyiqa.archs.{arch}_arch")
            with _supplied(arch, module, folder):
                return pyiqa.create_metric(network, device=device, **options).eval()


@contextlib.contextmanager
def reading(metric: str, files: Mapping[str, Path]) -> Iterator[None]:
    """Say in one sentence why a network could not be made of its files."""
    try:
        yield
    except ImportError as error:
        raise MetricUnavailable(
            f"{metric}: pyiqa cannot be loaded ({error}). Run pip install 'convergebench[iqa]',"
            " which also installs what pyiqa does not declare."
        ) from error
    except pickle.UnpicklingError as error:
        raise MetricUnavailable(
            f"{metric}: {_named(files)} is damaged, or holds more than tensors; it is not opened,"
            " because that could run code."
        ) from error
    except (RuntimeError, KeyError, ValueError, OSError) as error:
        if (seal := getattr(_thread, "seal", None)) and seal.attempts:
            raise
        first = str(error).strip().partition("\n")[0]
        raise MetricUnavailable(
            f"{metric}: {_named(files)} does not fit pyiqa's network"
            f" ({type(error).__name__}: {first})."
        ) from error


def _named(files: Mapping[str, Path]) -> str:
    shown = [str(path) for path in files.values()]
    return shown[0] if len(shown) == 1 else f"one of {len(shown)} files such as {shown[0]}"


@contextlib.contextmanager
def _supplied(arch: str, module: Any, folder: Path) -> Iterator[None]:
    """Have foreign loaders take their files from a folder, as tensors only."""
    import timm
    import torch
    import torchvision
    from pyiqa.archs import clip_model
    from pyiqa.utils import download_util

    read, create = torch.load, timm.create_model

    def tensors(file: Any, *_: Any, **__: Any) -> Any:
        return read(file, map_location="cpu", weights_only=True)

    def from_address(url: str, *_: Any, **__: Any) -> Any:
        return tensors(_file(folder, url))

    changes: list[tuple[Any, str, Any]] = [
        (torch, "load", tensors),
        (torch.hub, "load_state_dict_from_url", from_address),
        (download_util, "DEFAULT_CACHE_DIR", str(folder)),
        (clip_model, "_download", lambda url, root: str(_file(folder, url))),
        (timm, "create_model", lambda name, **o: create(name, **{**o, "pretrained": False})),
    ]
    for name in BACKBONES:
        changes.append((torchvision.models, name, _blank(getattr(torchvision.models, name))))
    if arch in CLIP:
        changes.append((module, "load", lambda *_: clip_model.CLIP(*CLIP[arch]).float().eval()))
    if arch == "liqe":  # or it would keep text features of other weights for ever
        changes.append((module, "DEFAULT_CACHE_DIR", str(folder)))
    if arch == "dbcnn":
        load = module.load_pretrained_network
        skip = module.SCNN  # this branch's weights are in the checkpoint that comes after
        changes.append(
            (
                module,
                "load_pretrained_network",
                lambda net, *rest: None if isinstance(net, skip) else load(net, *rest),
            )
        )
    if arch == "qalign":
        changes += _transformers(module, folder)
    with contextlib.ExitStack() as stack:
        for owner, name, value in changes:
            stack.enter_context(_changed(owner, name, value))
        yield


def _file(folder: Path, url: str) -> Path:
    path = folder / url.rpartition("/")[2]
    if not path.exists():
        raise MetricUnavailable(f"pyiqa asks for {path.name}, which is not in the catalogue.")
    return path


def _blank(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_, **__: make(weights=None)


def _transformers(module: Any, folder: Path) -> list[tuple[Any, str, Any]]:
    """Q-Align's parts from the folder, whatever name they ask the hub for, without its code."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    owl = importlib.import_module("pyiqa.archs.q_align.modeling_mplug_owl2")
    abstractor = owl.MplugOwlVisualAbstractorModel
    if not hasattr(abstractor, "invert_attention_mask"):
        # pyiqa 0.1.16 still calls this method, which transformers 5.19 no longer has.
        abstractor.invert_attention_mask = _inverted
    changes: list[tuple[Any, str, Any]] = []
    for kind in (module.MPLUGOwl2LlamaForCausalLM, module.CLIPImageProcessor, owl.LlamaTokenizer):
        original = kind.from_pretrained

        def local(_: str, _original: Any = original, **options: Any) -> Any:
            options.pop("trust_remote_code", None)
            return _original(str(folder), local_files_only=True, **options)

        changes.append((kind, "from_pretrained", staticmethod(local)))
    return changes


def _inverted(model: Any, mask: Any) -> Any:
    """What to add to attention: nothing where the mask is 1, the least number where it is 0."""
    import torch

    hidden = 1 - mask[:, None, None, :].to(model.dtype)
    return hidden * torch.finfo(model.dtype).min


@contextlib.contextmanager
def _changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
