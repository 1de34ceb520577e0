"""Importing 28,000 frames against `cp -r` plus `sha256sum` of the same files.

The import reads, hashes, checks and copies every frame, writes a record for each, and flushes all
of it to the disk; the peer copies and hashes only. Both read from a warm cache, in turns, in one
run; each turn begins with a flush, so that none pays for what the other left behind.

    python -m benchmarks.importing              # 280 chains of 100 steps, 64 × 64 pixels
    python -m benchmarks.importing --side 192 --chains 40
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from convergebench.frame import encode

TURNS = 3


def make_tree(root: Path, chains: int, steps: int, side: int) -> int:
    """Chains of noisy pictures that no compressor helps; answers with the bytes written."""
    rng = np.random.default_rng(4)
    total = 0
    for chain in range(chains):
        folder = root / f"editor-{chain % 4}" / f"photo-{chain // 4:03d}"
        folder.mkdir(parents=True)
        for step in range(steps + 1):
            pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
            data = encode(pixels) if step else encode(_source(chain // 4, side))
            (folder / f"step_{step:03d}.png").write_bytes(data)
            total += len(data)
    return total


def _source(number: int, side: int) -> np.ndarray:
    return np.random.default_rng(1000 + number).integers(0, 256, (side, side, 3), dtype=np.uint8)


def timed(command: str) -> float:
    """Seconds a shell command takes, after a flush."""
    os.sync()
    begun = time.monotonic()
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def main() -> None:
    """Print both times, their ratio, and the import's peak memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=280)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--keep", type=Path, help="where to work (default: a temporary folder)")
    asked = parser.parse_args()
    work = asked.keep or Path(tempfile.mkdtemp(prefix="convergebench-import-"))
    tree = work / "frames"
    total = make_tree(tree, asked.chains, asked.steps, asked.side)
    count = asked.chains * (asked.steps + 1)
    print(f"{count:,} frames of {asked.side} × {asked.side}, {total / 1e9:.2f} GB")
    pattern = "{editor}/{source}/step_{step}.png"
    command = f"{sys.executable} -m convergebench import {tree} --pattern '{pattern}'"
    subprocess.run(f"find {tree} -type f -exec cat {{}} + >/dev/null", shell=True, check=True)
    ratios = []
    for turn in range(TURNS):
        copy, run = work / f"copy-{turn}", work / f"run-{turn}"
        copied = timed(f"cp -r {tree} {copy}")
        hashed = timed(f"find {copy} -type f -print0 | xargs -0 sha256sum")
        imported = timed(f"{command} --to {run}")
        ratios.append(imported / (copied + hashed))
        print(
            f"cp -r {copied:.2f} s + sha256sum {hashed:.2f} s, import {imported:.2f} s: "
            f"ratio {ratios[-1]:.2f}"
        )
        shutil.rmtree(copy)
        if turn < TURNS - 1:
            shutil.rmtree(run)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"median ratio {sorted(ratios)[TURNS // 2]:.2f} (aim: at most 2); peak {peak:.0f} MiB")
    if not asked.keep:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
