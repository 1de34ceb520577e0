"""Scoring throughput: two processes against one, and two Ray actors against two processes.

    python -m benchmarks.engines [--steps 12] [--size 512] [--repeats 5] [--ray]
    python -m benchmarks.engines --repeats 3                       # as in `make bench`

The aim, of the ratio in the middle: two worker processes have at least 1.8 × the throughput of one.
The command ends with 1 when it is missed. What actors come to is told and not judged.

Every worker has one thread, whatever the machine. A run of drawn pictures is made once; each
measurement scores all of it anew, in an order that alternates, and medians of the ratios within one
round are printed, so that a machine that slows down slows both. What starting costs is in it.

On a machine that others use, two processes get a larger share of it than one, but not twice as
large, so seconds of the processor are printed as well: those of the driver are not shared, those of
the workers are, and must not grow with their number. What everybody else took of the processor
meanwhile is printed too: on two cores that have to be free, a missed aim beside it proves nothing.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from convergebench.runner import run
from convergebench.scorer import score

AIM = 1.8
"""Times the throughput of one process that two must have."""
METRICS = ["psnr", "ssim", "ssim-rgb", "ms-ssim", "ciede2000", "noise", "sharpness"]
"""Bound to the CPU, without weights."""


def made(folder: Path, steps: int, size: int) -> Path:
    """24 chains of the starter suite."""
    table = {"editors": ["ref:noise", "ref:blur"], "cycles": ["replicate"], "steps": steps}
    run(folder / "run", table, size=size, controls=False)
    return folder / "run"


@dataclass(frozen=True)
class Taken:
    """Seconds: on the clock, of the driver's processor, of its processes', of everybody else's."""

    clock: float
    driver: float
    workers: float
    others: float
    frames: int


def timed(path: Path, **how: object) -> Taken:
    shutil.rmtree(path / "scores")
    (path / "scores").mkdir()
    begun, before, busy = time.perf_counter(), os.times(), _busy()
    result = score(path, METRICS, **how)  # type: ignore[arg-type]
    clock, after = time.perf_counter() - begun, os.times()
    driver = after.user + after.system - before.user - before.system
    workers = after.children_user + after.children_system
    workers -= before.children_user + before.children_system
    others = _busy() - busy - driver - workers
    return Taken(clock, driver, workers, others, result.decoded)


def _busy() -> float:
    """Seconds that this machine's cores were busy or taken away since it started; Linux alone."""
    try:
        told = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    except OSError:
        return math.nan
    user, nice, system, _idle, _waiting, *interrupts, stolen = map(int, told)
    return (user + nice + system + sum(interrupts) + stolen) / os.sysconf("SC_CLK_TCK")


def compared(path: Path, hows: dict[str, dict[str, object]], repeats: int) -> float:
    """Print what each way takes; how many times the throughput of the first the second has."""
    taken: dict[str, list[Taken]] = {name: [] for name in hows}
    for repeat in range(repeats):
        for name in list(hows) if repeat % 2 == 0 else list(reversed(hows)):
            taken[name].append(timed(path, **hows[name]))
    for name, each in taken.items():
        clock, driver, workers, others = (
            statistics.median(getattr(one, what) for one in each)
            for what in ("clock", "driver", "workers", "others")
        )
        rate = each[0].frames / clock
        print(
            f"{name:12s} {clock:7.2f} s, {rate:6.1f} frames a second; processor: "
            f"driver {driver:.2f} s, its processes {workers:.2f} s, all others {others:.2f} s"
        )
    first, other = taken
    ratios = [a.clock / b.clock for a, b in zip(taken[first], taken[other], strict=True)]
    middle, spread = statistics.median(ratios), f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"{other}: {middle:.2f} × the throughput of {first} ({spread})")
    return middle


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
        ways: dict[str, dict[str, object]] = {
            "1 process": {"workers": 1},
            "2 processes": {"workers": 2},
        }
        found = compared(path, ways, asked.repeats)
        print(f"aim: ≥ {AIM:g} ×: {'met' if found >= AIM else 'MISSED'}")
        if asked.ray:
            import ray

            ray.init("local", log_to_driver=False, include_dashboard=False, num_cpus=2)
            try:  # one Ray for all, as a cluster would be there already
                ways = {"2 processes": {"workers": 2}, "2 actors": {"engine": "ray"}}
                compared(path, ways, asked.repeats)
            finally:
                ray.shutdown()
    if found < AIM:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
