"""28,000 frames: what each stage takes, whether a frame costs the same among many, and memory.

Builds complete runs of 1,000, 5,000 and 28,000 small frames (two editors, 50 steps, 10 to 280
sources; how, and what was left out to be quick, says `scale_run.py`). Every stage is a process of
its own: planning, `run` that finds nothing to do, `status`, scoring five cheap metrics with two
worker processes, scoring again when all is known, analysis, report with cold and with warm
thumbnails, `verify`.

    python -m benchmarks.scale                               # all of it, some 20 minutes
    python -m benchmarks.scale --frames 1000 5000 --repeats 1      # as in `make bench`
    python -m benchmarks.scale --keep DIRECTORY              # the runs are kept, and used again
    python -m benchmarks.scale --stages plan verify --json

Aims, of the largest run unless said otherwise; the command ends with 1 when one is missed:

* *plan* of a complete run in less than 3 s, from the start of its process to the end;
* *flat*: between the two largest sizes a further frame costs at most 15 % more than between the two
  smallest, in processor seconds, in every stage. What a stage costs once however many
  frames there are (imports, worker processes, charts, resamples) thereby drops out; it is not
  hidden, but told: `start-up` is what the stage took on a run of nine frames, in the same process
  and before the clock was started, `once` what is left of it by these slopes. Where a further frame
  costs more than 15 % less, that is told ("falls"), and is no fault: the aim is there to find what
  grows faster than the number of frames, a scan within a scan, which makes large runs impossible. A
  fall only makes them cheaper than small ones let expect;
* *per frame* is told beside it and not judged: all processor seconds of a stage (without its
  start-up) by all frames, of the smallest and of the largest size, and their ratio. It falls where
  something is paid once, and would hide a rise behind that; hence the slopes are what is judged;
* *memory*: the process and its workers together below 1.5 GiB, each at its own peak (pages that
  they share are counted for each);
* *directories*: none in run and report has more than 1,000 entries.

Every figure is that of the repeat in the middle, by processor seconds. (Not the best: on a machine
that does other work short stages find a quiet moment, long ones never do.) There the clock tells
little, and processor seconds are a tenth to a third too many.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.scale_run import EDITORS, make_run
from benchmarks.scale_stage import STAGES, WORKERS

from convergebench.store import RunStore
from convergebench.table import Table

STEPS = 50
SMALL_STEPS = 4
PLAN_SECONDS = 3.0
FLAT = 0.15
MEMORY = 1.5 * 2**30
ENTRIES = 1000
LOOK_EVERY = 0.02
"""Seconds between two looks at the memory of a stage's processes."""


PER_FRAME = ("stage", "smallest", "largest", "ratio", "word")


@dataclass(frozen=True)
class Taken:
    """What one stage took on one run."""

    stage: str
    frames: int
    start_up: float
    start_up_cpu: float
    wall: float
    cpu: float
    items: int
    peak: int
    workers_peak: int

    @property
    def memory(self) -> int:
        """Bytes of the process and its workers, each at its peak."""
        return self.peak + self.workers_peak


@dataclass(frozen=True)
class Aim:
    """What is wanted, what was found, and whether that is good enough."""

    what: str
    wanted: str
    found: str
    met: bool


# -- measuring ------------------------------------------------------------------------------------


def measured(stage: str, run: Path, small: Path, frames: int) -> Taken:
    """Do a stage in a process of its own. Raises SystemExit when it fails."""
    for path in (run, small):
        _reset(stage, path)
    words = (stage, run, small, time.monotonic())
    command = [sys.executable, "-m", "benchmarks.scale_stage", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peaks: dict[int, int] = {}
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
        watcher.start()
        told, _ = process.communicate()
        ended.set()
        watcher.join()
    if process.returncode:
        raise SystemExit(f"the stage {stage!r} failed on {run}")
    own = peaks.pop(process.pid, 0)
    return Taken(
        stage=stage,
        frames=frames,
        peak=own,
        workers_peak=sum(peaks.values()),
        **json.loads(told.splitlines()[-1]),
    )


def _reset(stage: str, path: Path) -> None:
    """Undo what a stage would find done already."""
    if stage == "score":
        for part in (path / "scores").iterdir():
            part.unlink()
    if stage == "report, cold":
        shutil.rmtree(path / "report", ignore_errors=True)


def _watch(pid: int, peaks: dict[int, int], ended: threading.Event) -> None:
    """Keep the highest resident size of a process and of each of its descendants.

    From /proc: `ru_maxrss` of a child begins with that of its parent, and of several children only
    the largest is told.
    """
    own = b""
    while not ended.wait(LOOK_EVERY):
        for each in _family(pid):
            try:
                command = Path(f"/proc/{each}/cmdline").read_bytes()
                status = Path(f"/proc/{each}/status").read_text()
            except OSError:
                continue
            own = command if each == pid else own
            if each != pid and command == own:
                continue  # just born, and still in its parent's memory
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    peaks[each] = int(line.split()[1]) * 1024


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _family(int(child))


def largest_directory(path: Path) -> tuple[int, str]:
    """The directory with the most entries below a path, and how many those are."""
    return max((len(dirs) + len(files), place) for place, dirs, files in os.walk(path))


# -- judging --------------------------------------------------------------------------------------


def slopes(rows: Sequence[Taken]) -> list[float]:
    """Processor seconds of a further frame, from each size to the next."""
    return [
        (after.cpu - before.cpu) / (after.frames - before.frames)
        for before, after in itertools.pairwise(rows)
    ]


def aims(taken: Sequence[Taken], directory: tuple[int, str]) -> list[Aim]:
    """What the issue asks for, as far as it was measured."""
    found = []
    largest = max(row.frames for row in taken)
    for row in taken:
        if row.stage == "plan" and row.frames == largest:
            whole = row.start_up + row.wall
            what = f"plan of {largest:,} frames"
            found.append(Aim(what, f"< {PLAN_SECONDS:g} s", f"{whole:.2f} s", whole < PLAN_SECONDS))
    for stage in dict.fromkeys(row.stage for row in taken):
        costs = slopes([row for row in taken if row.stage == stage])
        if len(costs) > 1:
            ratio = costs[-1] / costs[0] if costs[0] > 0 else float("inf")
            told = f"{ratio:.2f}" + (" (falls)" if ratio < 1 - FLAT else "")
            found.append(Aim(f"flat: {stage}", f"≤ {1 + FLAT:g}", told, ratio <= 1 + FLAT))
    most = max(taken, key=lambda row: row.memory)
    found.append(
        Aim(
            f"peak memory ({most.stage}, {most.frames:,} frames)",
            f"< {MEMORY / 2**30:g} GiB",
            f"{most.memory / 2**30:.2f} GiB",
            most.memory < MEMORY,
        )
    )
    entries, place = directory
    found.append(Aim(f"entries of {place}", f"≤ {ENTRIES:,}", f"{entries:,}", entries <= ENTRIES))
    return found


def per_frame(taken: Sequence[Taken]) -> list[tuple[str, float, float, float, str]]:
    """Of each stage all processor seconds by all frames, at the smallest and the largest size."""
    found = []
    for stage in dict.fromkeys(row.stage for row in taken):
        mine = [row for row in taken if row.stage == stage]
        first, last = (row.cpu / row.frames for row in (mine[0], mine[-1]))
        ratio = last / first if first else math.inf
        word = "falls" if ratio < 1 - FLAT else "flat" if ratio <= 1 + FLAT else "rises"
        found.append((stage, first, last, ratio, word))
    return found


def per_frame_table(taken: Sequence[Taken]) -> Table:
    """The same to be read."""
    rows = [
        (stage, f"{first * 1e6:,.0f}", f"{last * 1e6:,.0f}", f"{ratio:.2f}", word)
        for stage, first, last, ratio, word in per_frame(taken)
    ]
    sizes = (f"µs, of {frames:,} frames" for frames in (taken[0].frames, taken[-1].frames))
    note = f"flat: within ± {FLAT:.0%}. Told and not judged: see the aims for further frames."
    return Table("Processor time per frame", ("stage", *sizes, "ratio", ""), rows, [note])


def table(taken: Sequence[Taken]) -> Table:
    """A row per stage and size."""
    rows = []
    for stage in dict.fromkeys(row.stage for row in taken):
        mine = [row for row in taken if row.stage == stage]
        further = [None, *slopes(mine)]
        for row, cost in zip(mine, further, strict=True):
            once = "" if cost is None else f"{row.cpu - cost * row.frames:.2f}"
            rows.append(
                (
                    stage,
                    f"{row.frames:,}",
                    f"{row.start_up:.2f}",
                    f"{row.wall:.2f}",
                    f"{row.cpu:.2f}",
                    f"{row.frames / row.wall:,.0f}",
                    f"{row.cpu / row.frames * 1e6:.0f}",
                    "" if cost is None else f"{cost * 1e6:.0f}",
                    once,
                    f"{row.peak / 2**20:.0f}",
                    f"{row.workers_peak / 2**20:.0f}" if row.workers_peak else "",
                )
            )
    columns = (
        *("stage", "frames", "start-up s", "s", "cpu s", "frames/s", "µs/frame"),
        *("further µs", "once s", "MiB", "workers MiB"),
    )
    notes = [
        "s and frames/s: clock; µs: processor time of all processes, per frame, and per further "
        "frame since the size above; once: what the stage costs beside that."
    ]
    return Table("Scale", columns, rows, notes)


# -- the command ----------------------------------------------------------------------------------


def main() -> None:
    """Measure, print, and end with 1 when an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, nargs="+", default=[1000, 5000, 28000])
    parser.add_argument("--stages", nargs="+", default=list(STAGES), choices=STAGES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="where the runs are, or are to stay")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="convergebench-scale-") as temporary:
        place = told.keep or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        finish(told, *measure(place, sorted(set(told.frames)), told.stages, told.repeats))


def measure(
    place: Path, sizes: Sequence[int], stages: Sequence[str], repeats: int
) -> tuple[list[Taken], tuple[int, str]]:
    """Build the runs, do every stage on each; the middle repeats, and the largest directory."""
    small = _built(place / "small", 1, SMALL_STEPS)[0]
    runs = [_built(place / f"run-{size}", _sources(size), STEPS) for size in sizes]
    found: dict[tuple[str, int], list[Taken]] = {}
    for repeat in range(repeats):
        for stage in stages:
            for run, frames in runs:
                took = measured(stage, run, small, frames)
                _say(f"{repeat + 1}: {stage}, {frames:,} frames: {took.wall:.2f} s")
                found.setdefault((stage, frames), []).append(took)
    order = {stage: number for number, stage in enumerate(stages)}
    middle = [
        sorted(all_of, key=lambda row: row.cpu)[(repeats - 1) // 2] for all_of in found.values()
    ]
    taken = sorted(middle, key=lambda row: (order[row.stage], row.frames))
    return taken, largest_directory(runs[-1][0])


def _sources(frames: int) -> int:
    return max(1, round(frames / (STEPS * len(EDITORS))))


def _built(path: Path, sources: int, steps: int) -> tuple[Path, int]:
    begun = time.monotonic()
    if not RunStore.is_run(path):
        frames = make_run(path, sources, steps)
        _say(f"made {frames:,} frames in {time.monotonic() - begun:.0f} s, without flushes")
    return path, sources * (1 + len(EDITORS) * steps)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def finish(told: argparse.Namespace, taken: Sequence[Taken], directory: tuple[int, str]) -> None:
    """Print all of it; SystemExit with 1 when an aim is missed."""
    judged = aims(taken, directory)
    if told.json:
        whole: dict[str, Any] = {
            "taken": [asdict(row) for row in taken],
            "aims": [asdict(aim) for aim in judged],
            "per_frame": [dict(zip(PER_FRAME, row, strict=True)) for row in per_frame(taken)],
            "workers": WORKERS,
            "repeats": told.repeats,
        }
        print(json.dumps(whole, indent=1))
    else:
        print(table(taken), per_frame_table(taken), sep="\n\n")
        rows = [(aim.what, aim.wanted, aim.found, "met" if aim.met else "MISSED") for aim in judged]
        print()
        sizes = len({row.frames for row in taken})
        notes = () if sizes > 2 else ("Whether costs are flat takes three sizes to tell.",)
        print(Table("Aims", ("aim", "wanted", "found", ""), rows, notes))
    if not all(aim.met for aim in judged):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
