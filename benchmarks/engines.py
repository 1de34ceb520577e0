"""Scoring throughput: two processes against one, and two Ray actors against two processes.

    python -m benchmarks.engines [--steps 12] [--size 512] [--repeats 5] [--ray]

Every worker has one thread, whatever the machine. A run of drawn pictures is made once; each
measurement scores all of it anew, in an order that alternates, and medians of the ratios within one
round are printed, so that a machine that slows down slows both. What starting costs is in it.

On a machine that others use, two processes get a larger share of it than one, but not twice as
large, so seconds of the processor are printed as well: those of the driver are not shared, those of
the workers are, and must not grow with their number.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from convergebench.runner import run
from convergebench.scorer import score

METRICS = ["psnr", "ssim", "ssim-rgb", "ms-ssim", "ciede2000", "noise", "sharpness"]
"""Bound to the CPU, without weights."""


def made(folder: Path, steps: int, size: int) -> Path:
    """24 chains of the starter suite."""
    table = {"editors": ["ref:noise", "ref:blur"], "cycles": ["replicate"], "steps": steps}
    run(folder / "run", table, size=size, controls=False)
    return folder / "run"


@dataclass(frozen=True)
class Taken:
    """Seconds: on the clock, of the driver's processor, of its processes'."""

    clock: float
    driver: float
    workers: float
    frames: int


def timed(path: Path, **how: object) -> Taken:
    shutil.rmtree(path / "scores")
    (path / "scores").mkdir()
    begun, before = time.perf_counter(), os.times()
    result = score(path, METRICS, **how)  # type: ignore[arg-type]
    clock, after = time.perf_counter() - begun, os.times()
    driver = after.user + after.system - before.user - before.system
    workers = after.children_user + after.children_system
    workers -= before.children_user + before.children_system
    return Taken(clock, driver, workers, result.decoded)


def compared(path: Path, hows: dict[str, dict[str, object]], repeats: int) -> None:
    taken: dict[str, list[Taken]] = {name: [] for name in hows}
    for repeat in range(repeats):
        for name in list(hows) if repeat % 2 == 0 else list(reversed(hows)):
            taken[name].append(timed(path, **hows[name]))
    for name, each in taken.items():
        clock, driver, workers = (
            statistics.median(getattr(one, what) for one in each)
            for what in ("clock", "driver", "workers")
        )
        rate = each[0].frames / clock
        print(
            f"{name:12s} {clock:7.2f} s, {rate:6.1f} frames a second; processor: "
            f"driver {driver:.2f} s, its processes {workers:.2f} s"
        )
    first, *others = taken
    for other in others:
        ratios = [a.clock / b.clock for a, b in zip(taken[first], taken[other], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{other}: {statistics.median(ratios):.2f} × the throughput of {first} ({spread})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ray", action="store_true", help="also two actors against two processes")
    asked = parser.parse_args()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, load before: {load}")
    with tempfile.TemporaryDirectory() as folder:
        path = made(Path(folder), asked.steps, asked.size)
        compared(path, {"1 process": {"workers": 1}, "2 processes": {"workers": 2}}, asked.repeats)
        if asked.ray:
            import ray

            ray.init("local", log_to_driver=False, include_dashboard=False, num_cpus=2)
            try:  # one Ray for all, as a cluster would be there already
                both: dict[str, dict[str, object]] = {
                    "2 processes": {"workers": 2},
                    "2 actors": {"engine": "ray"},
                }
                compared(path, both, asked.repeats)
            finally:
                ray.shutdown()


if __name__ == "__main__":
    main()
