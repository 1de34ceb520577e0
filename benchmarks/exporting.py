"""Exporting 28,000 frames as a dataset: seconds and peak memory, and reading it back with polars.

The run is made in a temporary folder from noise that no compressor helps, with the records of a
paid editor and three scores per frame. Each export is a process of its own.

    python -m benchmarks.exporting                    # 280 chains of 100 steps, 64 × 64 pixels
    python -m benchmarks.exporting --side 1024 --chains 8     # few large frames: memory
    python -m benchmarks.exporting --forms both --patches 32
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from convergebench.chain import Call, ChainHeader, ChainKey, FrameRef, Step
from convergebench.cycle import Cycle, Edit
from convergebench.frame import Frame, encode
from convergebench.scoretable import rows_frame
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite

PROMPT = "Generate an exact copy of this picture."
PEAK = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
)


def make_run(path: Path, chains: int, steps: int, side: int) -> int:
    """A run as an editor would leave it, without the waits; answers with the bytes of frames."""
    edit = Edit(prompt=PROMPT)
    sources = tuple(
        Source(name=f"photo-{n}", draw="dunes", licence="CC0-1.0") for n in range(-(-chains // 4))
    )
    cycle = Cycle(name="replicate", kind="replicate", edit=(edit,))
    suite = Suite(name="noise", version=1, source=sources, cycle=(cycle,))
    store = RunStore.create(path, suite, 512)
    rng, total, scores = np.random.default_rng(4), 0, []
    for number in range(chains):
        key = ChainKey(
            suite=suite.label,
            source=sources[number // 4].name,
            cycle="replicate@1",
            editor=f"editor-{number % 4}",
        )
        refs = []
        for _ in range(steps + 1):
            frame = Frame(encode(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)))
            refs.append(FrameRef.of(frame))
            store.frame_path(refs[-1]).write_bytes(frame.data)
            total += len(frame.data)
        lines = [ChainHeader(chain=key, editor_version="1", source=refs[0]).model_dump_json()]
        for step in range(1, steps + 1):
            call = Call(
                model="noise-2026",
                request_id=f"r{number}-{step}",
                cost=0.04,
                basis="rule",
                reasoning="I look at the picture and make it again, pixel by pixel. " * 8,
                size=f"{side}x{side}",
                latency=3.2,
            )
            made = Step(
                step=step,
                outcome="edited",
                prompt=PROMPT,
                inputs=(refs[step - 1].sha256,),
                seed=key.seed(step),
                frame=refs[step],
                call=call,
                started="2026-01-01T00:00:00Z",
                seconds=3.5,
            )
            lines.append(made.model_dump_json())
            for metric, against in (("psnr", "home"), ("ssim", "home"), ("brisque", "none")):
                value = float(rng.random())
                scores.append((key.id, step, metric, "1", against, "all", value, ""))
        file = store.chain_path(key.id)
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(lines) + "\n")
    store.add_scores(rows_frame(scores))  # type: ignore[arg-type]
    return total


def timed(*words: str | Path) -> tuple[float, float]:
    """Seconds and peak MiB of a process, after a flush."""
    os.sync()
    begun = time.monotonic()
    command = [sys.executable, "-c", PEAK, sys.executable, *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return time.monotonic() - begun, int(done.stdout.split()[-1]) / 1024


def main() -> None:
    """Print seconds and memory of exporting, of polars reading, and of importing again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=280)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--forms", nargs="+", default=["parquet", "webdataset", "both"])
    parser.add_argument("--patches", type=int)
    asked = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="convergebench-export-"))
    try:
        measure(work, asked)
    finally:
        shutil.rmtree(work)


def measure(work: Path, asked: argparse.Namespace) -> None:
    total = make_run(work / "run", asked.chains, asked.steps, asked.side)
    frames = asked.chains * asked.steps
    print(f"{frames:,} frames of {asked.side} × {asked.side}, {total / 1e9:.2f} GB")
    more = ["--patches", str(asked.patches)] if asked.patches else []
    for form in asked.forms:
        out = work / form
        words = ("-m", "convergebench", "export", work / "run", out, "--format", form)
        seconds, peak = timed(*words, *more)
        print(f"export, {form}: {seconds:.1f} s (aim: 300), peak {peak:.0f} MiB (aim: 2048)")
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=out, check=True)
        if form == "parquet":
            read = (
                "import hashlib, polars as pl, sys\n"
                "rows = pl.scan_parquet(sys.argv[1])\n"
                "told = rows.select('sha256', 'prompt', '^score:.*$').collect()\n"
                "assert told.height == int(sys.argv[2]) and told.width == 5, told.shape\n"
                "for start in range(0, told.height, 1000):\n"
                "    part = rows.select('image', 'sha256').slice(start, 1000).collect()\n"
                "    for image, digest in part.iter_rows():\n"
                "        assert hashlib.sha256(image['bytes']).hexdigest() == digest\n"
            )
            count = str(frames + asked.chains)
            seconds, peak = timed("-c", read, out / "frames" / "*.parquet", count)
            print(f"polars reads and re-hashes every frame: {seconds:.1f} s, peak {peak:.0f} MiB")
        seconds, peak = timed("-m", "convergebench", "import", out, "--to", work / f"{form}-back")
        print(f"import again, {form}: {seconds:.1f} s, peak {peak:.0f} MiB")
        same(work / "run", work / f"{form}-back")
        shutil.rmtree(out)
        shutil.rmtree(work / f"{form}-back")


def same(run: Path, back: Path) -> None:
    """Stop unless two runs have the same frames and chains, byte by byte."""
    for part in ("frames", "chains"):
        subprocess.run(["diff", "-rq", run / part, back / part], check=True)
    print("the same chains and frames, byte by byte")


if __name__ == "__main__":
    main()
