"""Our metrics beside pyiqa, piq, scikit-image and lpips: how many times as fast, how different.

    python -m benchmarks.metrics [--size 2048] [--repeats 3] [--threads 2] [--chain 20]
        [--only NAME] [--json]

One process, the same number of threads for everybody (scikit-image uses one). Every repeat takes a
new pair of pictures; a function's time is its best over the repeats, and the difference is the
largest over the pairs. Only ratios are printed, because times belong to a machine. Peers get their
favourite input made beforehand (float tensors); ours start from 8-bit pixels, with nothing shared
between metrics except in the line "seven together". Needs the extra `iqa`, piq, scikit-image,
lpips, and the weights brisque, niqe, ilniqe and lpips-alex.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import cv2
import numpy as np
from benchmarks.peers import Peer, Pixels, by_lpips, by_piq, by_pyiqa, by_skimage

from convergebench.drawing import scene
from convergebench.frame import decode, encode
from convergebench.metric import Metric, NoScore, Picture, StepView
from convergebench.registry import open_metric

SEVEN = ("psnr", "ssim", "ms-ssim", "brisque", "niqe", "ilniqe", "piqe")
SCENES = ("still-life", "foliage", "portrait", "table", "fabric")
GAUSSIAN = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
AIMS = {
    ("psnr", "pyiqa"): 10,
    ("ssim", "pyiqa"): 80,
    ("ms-ssim", "pyiqa"): 50,
    ("brisque", "pyiqa"): 3,
    ("niqe", "pyiqa"): 6,
    ("ilniqe", "pyiqa"): 8,
    ("piqe", "pyiqa"): 3,
    ("lpips", "lpips"): 1.8,
    ("seven together", "pyiqa"): 20,
}


@dataclass
class Row:
    """One of our metrics against one peer: how many times as fast, and how different."""

    metric: str
    peer: str
    ratio: float
    aim: float | None
    ours: float
    difference: float


def pairs(size: int, count: int) -> Iterator[tuple[Pixels, Pixels]]:
    """Drawn scenes with a photograph's grain, each blurred, darkened and noisy in its measure."""
    rng = np.random.default_rng(0)
    for k in range(count):
        grain = rng.normal(0, 2, (size, size, 3))
        home = np.clip(scene(SCENES[k % len(SCENES)], size, size) + grain, 0, 255)
        damaged = cv2.GaussianBlur(home, (0, 0), 0.5 + 0.3 * k) * 0.95
        damaged += rng.normal(0, 3 + k, home.shape)
        yield home.astype(np.uint8), np.clip(damaged, 0, 255).astype(np.uint8)


def timed(work: Callable[[], float]) -> tuple[float, float]:
    """Seconds and value."""
    begun = time.perf_counter()
    value = work()
    return time.perf_counter() - begun, value


def ours(metric: Metric, home: Pixels, frame: Pixels) -> Callable[[], float]:
    """One of our metrics on fresh pictures."""

    def measure() -> float:
        reference = None if metric.spec.kind == "no-reference" else Picture(home)
        (value,) = metric.score([StepView(Picture(frame), reference)])
        assert not isinstance(value, NoScore), value
        return float(value)

    return measure


def together(metrics: Sequence[Metric], home: Pixels, frame: Pixels) -> Callable[[], float]:
    """All of them on one pair, sharing what they can, as the scorer has them."""

    def measure() -> float:
        view = StepView(Picture(frame), Picture(home))
        values = [metric.score([view])[0] for metric in metrics]
        return sum(value for value in values if not isinstance(value, NoScore))

    return measure


def compare(name: str, peers: dict[str, Peer], data: Sequence[tuple[Pixels, Pixels]]) -> list[Row]:
    """Rows of one metric."""
    metric = open_metric(name)
    ours(metric, *data[0])()  # loads parameters
    rows = []
    for peer, prepare in peers.items():
        best, theirs, worst, value = math.inf, math.inf, 0.0, 0.0
        for home, frame in data:
            seconds, value = timed(ours(metric, home, frame))
            best = min(best, seconds)
            seconds, other = timed(prepare(home, frame))
            theirs = min(theirs, seconds)
            worst = max(worst, abs(value - other))
        rows.append(Row(name, peer, theirs / best, AIMS.get((name, peer)), value, worst))
        told = rows[-1]
        print(f"  {name} vs {peer}: {told.ratio:.1f}×, {told.difference:.2g}", file=sys.stderr)
    return rows


def seven(data: Sequence[tuple[Pixels, Pixels]]) -> tuple[Row, float]:
    """All seven beside pyiqa's seven; and their time as a multiple of decoding the frame."""
    metrics = [open_metric(name) for name in SEVEN]
    peers = [by_pyiqa(name) for name in SEVEN]
    best, theirs, decoding, value = math.inf, math.inf, math.inf, 0.0
    for home, frame in data:
        seconds, value = timed(together(metrics, home, frame))
        best = min(best, seconds)
        works = [peer(home, frame) for peer in peers]
        seconds, _ = timed(lambda works=works: sum(work() for work in works))  # type: ignore[misc]
        theirs = min(theirs, seconds)
        stored = encode(frame)
        seconds, _ = timed(lambda stored=stored: float(decode(stored)[0][0, 0, 0]))  # type: ignore[misc]
        decoding = min(decoding, seconds)
    aim = AIMS["seven together", "pyiqa"]
    return Row("seven together", "pyiqa", theirs / best, aim, value, math.nan), best / decoding


def chain(length: int, size: int) -> Row:
    """LPIPS of a chain of frames against one home: we compute home's features once."""
    home, frame = next(pairs(size, 1))
    rng = np.random.default_rng(1)
    shift = rng.integers(-6, 7, (length, 3))
    frames = [np.clip(frame + s, 0, 255).astype(np.uint8) for s in shift]
    metric = open_metric("lpips")
    ours(metric, home[:64, :64], frame[:64, :64])()
    by_lpips(home[:64, :64], frame[:64, :64])()
    reference = Picture(home)
    worst = fast = slow = value = 0.0
    for f in frames:  # in turns, so that both meet the same machine
        seconds, value = timed(
            lambda f=f: float(metric.score([StepView(Picture(f), reference)])[0])  # type: ignore[misc,arg-type]
        )
        fast += seconds
        seconds, other = timed(by_lpips(home, f))
        slow += seconds
        worst = max(worst, abs(value - other))
    return Row("lpips", "lpips", slow / fast, AIMS["lpips", "lpips"], value, worst)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chain", type=int, default=20)
    parser.add_argument("--only", metavar="NAME", help="one metric, or 'seven'")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()

    import torch

    cv2.setNumThreads(asked.threads)
    torch.set_num_threads(asked.threads)
    torch.set_grad_enabled(False)
    data = list(pairs(asked.size, asked.repeats))
    peers: dict[str, dict[str, Callable[[], Peer]]] = {
        "psnr": {
            "pyiqa": lambda: by_pyiqa("psnr"),
            "piq": lambda: by_piq("psnr"),
            "scikit-image": lambda: by_skimage("peak_signal_noise_ratio"),
        },
        "ssim": {"pyiqa": lambda: by_pyiqa("ssim")},
        "ssim-rgb": {
            "scikit-image": lambda: by_skimage("structural_similarity", channel_axis=2, **GAUSSIAN)
        },
        "ms-ssim": {"pyiqa": lambda: by_pyiqa("ms-ssim")},
        **{name: {"pyiqa": partial(by_pyiqa, name)} for name in SEVEN[3:]},
    }
    rows = []
    for name, made in peers.items():
        if asked.only in (None, name):
            rows += compare(name, {peer: make() for peer, make in made.items()}, data)
    if asked.only in (None, "lpips"):
        rows.append(chain(asked.chain, asked.size))
    decodings = math.nan
    if asked.only in (None, "seven"):
        row, decodings = seven(data)
        rows.append(row)
    if asked.json:
        told = {"rows": [asdict(r) for r in rows], "decodings": decodings, "size": asked.size}
        print(json.dumps(told, indent=1))
        return
    print(f"{asked.size}×{asked.size}, {asked.threads} threads, {asked.repeats} pairs of pictures")
    print("| metric | peer | times as fast | aim | largest difference |\n|---|---|---|---|---|")
    for r in rows:
        aim = f"{r.aim:g}" if r.aim else ""
        apart = "" if math.isnan(r.difference) else f"{r.difference:.2g}"
        print(f"| {r.metric} | {r.peer} | {r.ratio:.1f} | {aim} | {apart} |")
    if not math.isnan(decodings):
        print(f"\nThe seven take {decodings:.1f} times as long as decoding the PNG (aim: 12).")


if __name__ == "__main__":
    main()
