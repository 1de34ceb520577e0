"""Scoring frames with one of pyiqa's networks: the same bits for a frame, whatever its company.

On the CPU frames are scored one by one, because a convolution over a batch may round otherwise
than over one frame; that is slower for small frames only. On a GPU frames of one size are scored
together, as many as the memory bound allows. Whatever a network draws at random comes from the
frame's pixels.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.errors import MetricUnavailable, SettingsError
from convergebench.metric import MetricSpec, NoScore, StepView
from convergebench.metrics.learned import offline

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEVICE: Final = "CONVERGEBENCH_DEVICE"
"""The environment variable that names the device: cpu, cuda, cuda:1."""
BATCH_PIXELS: Final = 1 << 22
"""Pixels scored together on a GPU, at most; one frame is scored whatever its size."""
MANY: Final = 1 << 16
"""More frames than memory holds."""


Build = Callable[[Mapping[str, Path], Any], Any]
"""Makes a network from its weights, by the names pyiqa gives them, on a device."""


class LearnedMetric:
    """A metric that pyiqa computes; the network is loaded at the first score."""

    def __init__(
        self,
        spec: MetricSpec,
        build: Build,
        files: Mapping[str, Path],
        *,
        alone: bool = False,
        batch_pixels: int | None = None,
    ) -> None:
        """Nothing is loaded yet.

        Args:
            spec: The card.
            build: Makes the network.
            files: Its weights.
            alone: Whether the network takes one frame at a time, whatever the device.
            batch_pixels: Pixels scored together; by default one frame on the CPU.
        """
        self._spec = spec
        self._build = build
        self._files = files
        self._alone = alone
        self._batch_pixels = batch_pixels
        self._opened: tuple[Any, Any] | None = None

    @property
    def spec(self) -> MetricSpec:
        """The metric's card."""
        return self._spec

    @property
    def together(self) -> int:
        """All that memory holds on a GPU; on the CPU one is as fast as many."""
        try:
            return 1 if self._alone or choose_device().type == "cpu" else MANY
        except (MetricUnavailable, SettingsError):  # `score` says it
            return 1

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """Measure each frame; one that the network cannot take gets the reason."""
        scores: list[float | NoScore] = [NoScore("not measured")] * len(views)
        wide = list[int]()
        for index, view in enumerate(views):
            side = min(view.frame.size)
            if side < self._spec.min_side:
                scores[index] = NoScore(
                    f"{side} pixels on the short side, {self._spec.min_side} needed"
                )
            else:
                wide.append(index)
        if not wide:
            return scores
        net, device = self._open()
        with offline.sealed(self._spec.name), _steady(device):
            for batch in self._batches(views, wide, device):
                pixels = [views[index].frame.pixels for index in batch]
                for index, score in zip(batch, _measure(net, device, pixels), strict=True):
                    scores[index] = score
        return scores

    def _open(self) -> tuple[Any, Any]:
        if self._opened is None:
            device = choose_device()
            with _steady(device):
                self._opened = self._build(self._files, device), device
        return self._opened

    def _batches(
        self, views: Sequence[StepView], chosen: Sequence[int], device: Any
    ) -> Iterator[list[int]]:
        """Indices of frames to score together: of one size, within the memory bound."""
        bound = self._batch_pixels
        if bound is None:
            bound = 0 if device.type == "cpu" else BATCH_PIXELS
        by_size = sorted(chosen, key=lambda index: views[index].frame.size)
        for (width, height), group in groupby(by_size, lambda index: views[index].frame.size):
            same = list(group)
            count = 1 if self._alone else max(1, bound // (width * height))
            yield from (same[start : start + count] for start in range(0, len(same), count))


def choose_device() -> Any:
    """The device to compute on: what CONVERGEBENCH_DEVICE says, else a GPU where there is one."""
    import torch

    named = os.environ.get(DEVICE, "").strip()
    try:
        device = torch.device(named or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise SettingsError(f"{DEVICE} is {named!r}, expected cpu, cuda or cuda:1.") from error
    if device.type not in ("cpu", "cuda"):
        raise SettingsError(f"{DEVICE} is {named!r}, expected cpu, cuda or cuda:1.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise MetricUnavailable(
            f"{DEVICE} is {named!r}, and this machine has {torch.cuda.device_count()} GPUs that"
            " torch can use."
        )
    return device


def _measure(
    net: Any, device: Any, pixels: Sequence[NDArray[np.uint8]]
) -> Sequence[float | NoScore]:
    """Scores of frames of one size; half as many at once where memory does not suffice."""
    try:
        answers = _forward(net, device, pixels)
    except (
        ArithmeticError,
        AssertionError,
        IndexError,
        MemoryError,
        RuntimeError,
        ValueError,
    ) as error:
        if len(pixels) == 1:
            return [NoScore(_reason(error, pixels[0]))]
    else:
        return [
            value if math.isfinite(value) else NoScore(f"the network answered {value}")
            for value in answers
        ]
    # Outside the handler, so that the failed attempt's tensors are gone.
    _release(device)
    half = len(pixels) // 2
    return [*_measure(net, device, pixels[:half]), *_measure(net, device, pixels[half:])]


def _forward(net: Any, device: Any, pixels: Sequence[NDArray[np.uint8]]) -> list[float]:
    import torch

    with _seeded(pixels, device), torch.inference_mode():
        # Laid out and divided as torchvision's `to_tensor` does it, which pyiqa reads files with.
        planes = np.stack([np.ascontiguousarray(frame.transpose(2, 0, 1)) for frame in pixels])
        unit = torch.from_numpy(planes).to(torch.float32).div(255)
        answers = net(unit.to(device)).reshape(-1)
        if answers.numel() != len(pixels):
            raise ValueError(f"{answers.numel()} answers for {len(pixels)} frames")
        return [float(answer) for answer in answers.double().cpu()]


def _reason(error: Exception, pixels: NDArray[np.uint8]) -> str:
    height, width = pixels.shape[:2]
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, MemoryError) or "memory" in text.lower():
        return f"not enough memory for a frame of {width}×{height}"
    return f"the network cannot take {width}×{height} pixels ({type(error).__name__}: {text})"


def _release(device: Any) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.empty_cache()


@contextlib.contextmanager
def _seeded(pixels: Sequence[NDArray[np.uint8]], device: Any) -> Iterator[None]:
    """Draw random numbers from the frames' own digest, and leave the global generators alone."""
    import torch

    digest = hashlib.sha256()
    for frame in pixels:
        digest.update(repr(frame.shape).encode())
        digest.update(np.ascontiguousarray(frame).data)
    seed = int.from_bytes(digest.digest()[:4], "big")
    before, legacy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            yield
        finally:
            random.setstate(before)
            np.random.set_state(legacy)


@contextlib.contextmanager
def _steady(device: Any) -> Iterator[None]:
    """Settings under which torch repeats itself, for the time of a call.

    Threads are OpenCV's, which the worker sets. Full float32 on a GPU, so that it agrees with the
    CPU to rounding.
    """
    import torch

    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is steady only so
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    coarse = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    try:
        torch.set_num_threads(max(1, cv2.getNumThreads()))
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict, warn_only=warn_only)
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = coarse
