"""The process that a calibration is made in: measures as a scoring worker does, and reads a clock.

`python -m convergebench.planner.clocking` reads what to measure as JSON from stdin. On stdout it
says, as JSON, first how long measuring will take once all is loaded, then what was measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from convergebench import registration
from convergebench.chain import FrameRef
from convergebench.errors import ConvergeBenchError
from convergebench.frame import decode
from convergebench.measure import Measurer, Row, Unit
from convergebench.metric import Metric, MetricSpec, NoScore, Picture, StepView, together
from convergebench.registry import metric_spec, open_metric
from convergebench.store import RunStore

LEAST: Final = 3
"""Stretches that are measured even where that takes longer than was meant to be."""
OVERTIME: Final = 5
"""But not longer than so many times."""
PAIRS: Final = 5
"""How often a picture is decoded, and a pair is registered."""

Clock = Callable[[], float]


@dataclass
class Clocked:
    """A metric that notes how long it takes."""

    metric: Metric
    clock: Clock
    seconds: float = 0.0
    scores: int = 0

    @property
    def spec(self) -> MetricSpec:
        """The metric's card."""
        return self.metric.spec

    @property
    def together(self) -> int:
        """As many frames at once as in scoring."""
        return together(self.metric)

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """Measure each view, and note how long it took."""
        before = self.clock()
        try:
            return self.metric.score(views)
        finally:
            self.seconds += self.clock() - before
            self.scores += len(views)

    def taken(self) -> tuple[float, int]:
        """Seconds and scores since the last time."""
        told = self.seconds, self.scores
        self.seconds, self.scores = 0.0, 0
        return told


class ClockedMeasurer(Measurer):
    """A scoring worker whose metrics note how long they take."""

    def __init__(self, path: Path, metrics: Mapping[str, Clocked]) -> None:
        super().__init__(path)
        self._clocked = metrics

    def _metric(self, name: str) -> Metric:
        return self._clocked[name]

    def rows(self, unit: Unit) -> list[Row]:
        """Measure a unit as if its source was met for the first time."""
        self._sources.clear()
        return [row for rows in self.measure(unit) for row in rows]


def clocked(
    path: Path,
    units: Sequence[Unit],
    seconds: float,
    clock: Clock = time.process_time,
    *,
    wall: Clock = time.monotonic,
    loaded: Callable[[float], None] = lambda _seconds: None,
) -> dict[str, Any]:
    """Measure stretches again and again for so many seconds.

    Those are by the clock on the `wall`, so that a busy machine does not make anybody wait longer:
    it is measured fewer times, but every metric at least once. `loaded` is told, before, how many
    seconds it will really be.

    Returns:
        By metric: seconds and scores of each stretch, seconds of loading, and why it could not be
        measured.
    """
    opened: dict[str, Clocked] = {}
    loading: dict[str, float] = {}
    why: dict[str, str] = {}
    for name in dict.fromkeys(name for unit in units for name in unit.metrics):
        before = clock()
        try:
            opened[name] = Clocked(open_metric(name), clock)
        except ConvergeBenchError as error:
            why[name] = str(error)
        loading[name] = clock() - before
    usable = [replace(u, metrics=tuple(n for n in u.metrics if n in opened)) for u in units]
    usable = [unit for unit in usable if unit.metrics]
    measurer = ClockedMeasurer(path, opened)
    rare = _covering(usable)
    usable = rare + [unit for unit in usable if unit not in rare]
    least = max(LEAST, len(rare))
    firsts = [_cut(unit, 1) for unit in rare]
    null: dict[str, str] = {}
    valued: set[str] = set()
    for unit in firsts:
        _noted(measurer.rows(unit), valued, null)
    cold = {name: each.taken()[0] for name, each in opened.items()}
    before = wall()
    for unit in firsts:
        measurer.rows(unit)
    once = wall() - before
    for name, each in opened.items():  # many load their weights when they are first needed
        loading[name] += max(0.0, cold[name] - each.taken()[0])
    each_takes = once / max(1, len(firsts))
    length = max(1, int(seconds / least / max(each_takes, 1e-9)))
    told: dict[str, list[tuple[float, int]]] = {name: [] for name in opened}
    loaded(min(max(seconds, least * length * each_takes), OVERTIME * seconds + length * once))
    since, count = wall(), 0
    while usable:
        spent = wall() - since
        if count >= (len(rare) if spent >= seconds * OVERTIME else least) and spent >= seconds:
            break
        _noted(measurer.rows(_cut(usable[count % len(usable)], length)), valued, null)
        for name, each in opened.items():
            taken, scores = each.taken()
            if scores:
                told[name].append((taken, scores))
        count += 1
    for name, each in opened.items():
        if each.spec.name in null and each.spec.name not in valued:
            why[name] = f"came out null: {null[each.spec.name]}"
            told[name] = []
    return {"metrics": told, "loading": loading, "why": why}


def _noted(rows: Sequence[Row], valued: set[str], null: dict[str, str]) -> None:
    for row in rows:
        if row[6] is None:
            null.setdefault(row[2], row[7] or "no reason given")
        else:
            valued.add(row[2])


def _covering(units: Sequence[Unit]) -> list[Unit]:
    """A few units, such that every metric is met once."""
    found, covered = [], set[str]()
    for unit in units:
        if not covered.issuperset(unit.metrics):
            found.append(unit)
            covered.update(unit.metrics)
    return found


def _cut(unit: Unit, length: int) -> Unit:
    """The last steps of a stretch; of a floor, the first of its others."""
    steps = None if unit.steps is None else unit.steps[-length:]
    return replace(unit, steps=steps, others=unit.others[:length])


def decodings(store: RunStore, copy: FrameRef, clock: Clock) -> Iterator[float]:
    """Seconds of decoding a copy, several times."""
    for _ in range(PAIRS):
        before = clock()
        decode(store.frame(copy).data)
        yield clock() - before


def registrations(
    store: RunStore, source: FrameRef, copy: FrameRef, clock: Clock
) -> Iterator[float]:
    """Seconds of registering a copy, several times."""
    home, frame = (decode(store.frame(ref).data)[0] for ref in (source, copy))
    for _ in range(PAIRS):
        view = StepView(Picture(frame), Picture(home))
        before = clock()
        found = registration.of(view)
        if not isinstance(found, NoScore) and view.reference is not None:
            found.common(view.reference, view.frame)
        yield clock() - before


def _clock() -> tuple[Clock, str]:
    """The clock of what computes: of all this process's threads, or of the room beside a GPU."""
    named = os.environ.get("CONVERGEBENCH_DEVICE", "")
    gpu = named.startswith("cuda") or (
        not named and any(Path("/proc/driver/nvidia/gpus").glob("*"))
    )
    return (time.perf_counter, "gpu") if gpu else (time.process_time, "cpu")


def main() -> None:
    """Read what to measure, answer what it took."""
    # The answer goes to the real stdout; what a metric prints goes to stderr.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    hello = json.loads(sys.stdin.buffer.read())
    sys.path[:] = hello["sys_path"]
    import cv2

    cv2.setNumThreads(1)  # the learned metrics go by it, too
    units = [Unit.from_json(text) for text in hello["units"]]
    path = Path(hello["path"])
    isolated = any(_isolated(name) for name in units[0].metrics) if units else False
    clock, device = _clock() if isolated else (time.process_time, "cpu")

    def say(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what).encode() + b"\n")
        answers.flush()

    told = clocked(
        path, units, hello["seconds"], clock, loaded=lambda seconds: say({"loaded": seconds})
    )
    source, copy = (FrameRef.model_validate(each) for each in hello["pictures"])
    store = RunStore.open(path)
    say(
        {
            **told,
            "decoding": list(decodings(store, copy, time.process_time)),
            "registering": list(registrations(store, source, copy, time.process_time))
            if hello["registering"]
            else [],
            "device": device,
        }
    )


def _isolated(name: str) -> bool:
    with contextlib.suppress(ConvergeBenchError):
        return metric_spec(name).isolated
    return False


if __name__ == "__main__":
    main()
