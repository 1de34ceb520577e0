"""PSNR and SSIM against other libraries: how many times as fast, and how different.

    python benchmarks/ssim.py [--size 2048] [--repeats 3] [--threads 2] [--cpu] [--json]

Every repeat takes a new pair of pictures and measures each pair of functions on it one right after
the other; a function's time is its best over the repeats. Only ratios are printed, because times
belong to a machine and its load. The difference is the largest over the pairs. Peers get whatever
input they like best, made beforehand: piq float tensors, scikit-image the luma plane; our functions
always start from RGB pixels. OpenCV and PyTorch may use the same number of threads; scikit-image
uses one. On a busy machine, `--cpu` counts processor time instead of time that passed: it tells
how much less is computed, whoever else is computing, but not what threads gain.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import cv2
import numpy as np
import skimage.metrics
from numpy.typing import NDArray

from convergebench.metric import LiftedMetric, Picture, StepView
from convergebench.metrics.pixel import psnr
from convergebench.metrics.ssim import luma8, ssim, ssim_rgb, ssim_uniform

Pixels = NDArray[np.uint8]
Peer = Callable[[Pixels, Pixels], Callable[[], float]]
"""Prepares a pair and answers with what is timed."""

GAUSSIAN = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}


@dataclass
class Row:
    """One of our functions against one peer."""

    metric: str
    peer: str
    ratio: float | None
    difference: float | None
    remark: str = ""


def pairs(size: int, count: int) -> Iterator[tuple[Pixels, Pixels]]:
    """Drawn pictures, each blurred, shifted, darkened and noisy in its own measure."""
    rng = np.random.default_rng(0)
    for k in range(count):
        coarse = rng.integers(0, 256, (size // 32 + 2, size // 32 + 2, 3), dtype=np.uint8)
        smooth = cv2.resize(coarse, (size, size), interpolation=cv2.INTER_CUBIC)
        grain = rng.normal(0, 8, smooth.shape)
        one = np.clip(smooth + grain, 0, 255).astype(np.uint8)
        other = cv2.GaussianBlur(np.roll(one, k, axis=1), (0, 0), 0.5 + k)
        noise = rng.normal(0, 3 + 4 * k, other.shape)
        yield one, np.clip(other * (1 - 0.05 * k) + noise, 0, 255).astype(np.uint8)


def ours(metric: Callable[[], LiftedMetric]) -> Peer:
    def prepare(one: Pixels, other: Pixels) -> Callable[[], float]:
        # New pictures every time, so that nothing is remembered between two measurements.
        return lambda: float(metric().score([StepView(Picture(other), Picture(one))])[0])  # type: ignore[arg-type]

    return prepare


def scikit_image(**options: Any) -> Peer:
    similarity: Any = skimage.metrics.structural_similarity
    return lambda one, other: (
        lambda: float(similarity(one, other, data_range=255, channel_axis=2, **options))
    )


def scikit_image_luma(one: Pixels, other: Pixels) -> Callable[[], float]:
    similarity: Any = skimage.metrics.structural_similarity
    x, y = luma8(Picture(one)), luma8(Picture(other))
    return lambda: float(similarity(x, y, data_range=255, **GAUSSIAN))


def scikit_image_psnr(one: Pixels, other: Pixels) -> Callable[[], float]:
    ratio: Any = skimage.metrics.peak_signal_noise_ratio
    return lambda: float(ratio(one, other, data_range=255))


def piq(threads: int) -> Peer:
    """The SSIM of piq. Raises ImportError where it or PyTorch is absent.

    Importing piq imports torchvision, for metrics that are not compared here; where that fails, its
    SSIM module is loaded without the package's own start.
    """
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(threads)
    try:
        module: Any = importlib.import_module("piq")
    except ImportError:
        spec = importlib.util.find_spec("piq")
        if spec is None or spec.submodule_search_locations is None:
            raise
        bare = types.ModuleType("piq")
        bare.__path__ = list(spec.submodule_search_locations)
        sys.modules["piq"] = bare
        module = importlib.import_module("piq.ssim")

    def tensor(pixels: Pixels) -> Any:
        return torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float().contiguous()

    def prepare(one: Pixels, other: Pixels) -> Callable[[], float]:
        x, y = tensor(one), tensor(other)
        return lambda: float(module.ssim(x, y, data_range=255, downsample=False))

    return prepare


def compare(size: int, repeats: int, threads: int, clock: Callable[[], float]) -> Iterator[Row]:
    """Measure everything, a row per comparison."""
    version = f"scikit-image {metadata.version('scikit-image')}"
    contests: list[tuple[str, Callable[[], LiftedMetric], str, Peer]] = [
        ("psnr", psnr, version, scikit_image_psnr),
        ("ssim", ssim, f"{version}, Gaussian, luma", scikit_image_luma),
        ("ssim-rgb", ssim_rgb, f"{version}, Gaussian", scikit_image(**GAUSSIAN)),
        ("ssim-uniform", ssim_uniform, f"{version}, defaults", scikit_image()),
    ]
    missing = None
    try:
        contests.append(("ssim-rgb", ssim_rgb, "piq", piq(threads)))
    except ImportError as error:
        missing = Row("ssim-rgb", "piq", None, None, f"not compared: {error}")
    best: dict[int, list[float]] = {n: [math.inf, math.inf] for n in range(len(contests))}
    apart = dict.fromkeys(best, 0.0)
    for one, other in pairs(size, repeats):
        for n, (_, metric, _, peer) in enumerate(contests):
            values = []
            for side, prepare in enumerate((ours(metric), peer)):
                run = prepare(one, other)
                start = clock()
                values.append(run())
                best[n][side] = min(best[n][side], clock() - start)
            apart[n] = max(apart[n], abs(values[0] - values[1]))
    for n, (name, _, peer_name, _) in enumerate(contests):
        yield Row(name, peer_name, best[n][1] / best[n][0], apart[n])
    if missing:
        yield missing


def main() -> None:
    """Parse, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=2048, help="side of the pictures")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=cv2.getNumThreads())
    parser.add_argument("--cpu", action="store_true", help="processor time, not time that passed")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    cv2.setNumThreads(asked.threads)
    clock = time.process_time if asked.cpu else time.perf_counter
    rows = list(compare(asked.size, asked.repeats, asked.threads, clock))
    if asked.json:
        print(json.dumps({**vars(asked), "rows": [asdict(row) for row in rows]}, indent=2))
        return
    counted = "processor time" if asked.cpu else "time passed"
    print(
        f"{asked.size}×{asked.size}, threads: {asked.threads}, {counted}, best of {asked.repeats}\n"
    )
    print(f"{'metric':<14}{'peer':<38}{'times as fast':>14}{'largest difference':>20}")
    for row in rows:
        if row.ratio is None or row.difference is None:
            print(f"{row.metric:<14}{row.peer:<38}{row.remark}")
        else:
            print(f"{row.metric:<14}{row.peer:<38}{row.ratio:>14.1f}{row.difference:>20.1e}")


if __name__ == "__main__":
    main()
