"""Runner overhead per step, relative to plainly writing and fsyncing the same bytes.

    python benchmarks/runner.py [--size 512] [--steps 40] [--json]

Both sides keep the same replies, one after the other, on the same disk, in turns: the runner with
its hashing, decoding, records, locks and directory syncs; the peer with open, write, fsync, close.
The editor replays prepared replies, so the editing itself costs neither side anything.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from convergebench.chain import Chain, ChainKey, FrameRef
from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.frame import Frame, encode
from convergebench.registry import open_suite
from convergebench.runspec import RunSpec
from convergebench.store import RunStore
from convergebench.walk import Walk


class Replay:
    """Answers step k with the k-th prepared reply."""

    spec = EditorSpec("replay", "1", price=0.0, concurrency=1)

    def __init__(self, replies: list[bytes]) -> None:
        self._replies = replies

    def edit(self, request: EditRequest) -> EditReply:
        """The prepared reply."""
        return EditReply(self._replies[request.step - 1])


def prepared(size: int, steps: int, seed: int) -> list[bytes]:
    """Replies like a generator's: a photograph-like PNG, different every time."""
    rng = np.random.default_rng(seed)
    suite = open_suite("starter")
    base = suite.frame(suite.source_named("still-life"), size).pixels.astype(np.int16)
    noisy = (base + rng.integers(-4, 5, base.shape) for _ in range(steps))
    return [encode(np.clip(pixels, 0, 255).astype(np.uint8)) for pixels in noisy]


def with_runner(folder: Path, replies: list[bytes]) -> float:
    """Seconds to walk one chain over the replies."""
    suite = open_suite("starter")
    store = RunStore.create(folder / "run", suite, 64)
    source = Frame(encode(np.zeros((64, 64, 3), np.uint8)))
    key = ChainKey(suite=suite.label, source="grid", cycle="replicate@1", editor="replay")
    spec = RunSpec(editors=("replay",), steps=len(replies), controls=False)
    with store.writing("run"):
        store.put(source)
        chain = Chain(key, FrameRef.of(source), None, "1")
        walk = Walk(store, spec, {"replay": Replay(replies)}, {key: chain}, begun=set())
        clock = time.perf_counter()
        walk.go()
        return time.perf_counter() - clock


def plainly(folder: Path, replies: list[bytes]) -> float:
    """Seconds to write and fsync the same bytes."""
    folder.mkdir()
    clock = time.perf_counter()
    for index, data in enumerate(replies):
        fd = os.open(folder / f"{index}.png", os.O_WRONLY | os.O_CREAT)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
    return time.perf_counter() - clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--dir", default=".", help="where to write; the disk that is measured")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory(dir=chosen.dir, prefix="bench-") as place:
        for turn in range(chosen.turns):
            replies = prepared(chosen.size, chosen.steps, turn)
            ours = with_runner(Path(place) / f"a{turn}", replies)
            peer = plainly(Path(place) / f"b{turn}", replies)
            ratios.append(ours / peer)
    median = statistics.median(ratios)
    megabytes = sum(map(len, replies)) / chosen.steps / 1e6
    if chosen.json:
        print(json.dumps({"ratio": median, "ratios": ratios, "megabytes": megabytes}))
        return
    print(f"runner ÷ plain write and fsync, {megabytes:.2f} MB a reply, {chosen.steps} steps:")
    print(f"  median {median:.2f}  (turns: {', '.join(f'{r:.2f}' for r in ratios)})")


if __name__ == "__main__":
    main()
