"""A short measured calibration: how long metrics take on this machine.

A small run is made for it in a scratch directory, of the very chains that are planned: their
source is a real one of the suite at the size that most pixels will have, their frames are copies
of it, slightly degraded, all encoded as PNG. Stretches of those chains are then measured as a
scoring worker measures them, in a process of its own with one thread, and a clock is read before
and after each metric. Metrics that share frames are measured together, so that what they share is
made once, as in scoring, and told with the first of them that needs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.chain import FrameRef, Step
from convergebench.comparisons import FLOOR_PREFIX
from convergebench.frame import Frame, encode, resize
from convergebench.measure import Unit
from convergebench.planner.workload import Group, Piece
from convergebench.processes import end_group
from convergebench.store import RunStore
from convergebench.suite import Suite

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED: Final = 9
SECONDS: Final = 2.0
"""How long each metric is measured, after it was loaded."""
MOST_SECONDS: Final = 30.0
"""How long a group of metrics is measured at most, however many they are."""
STRETCHES: Final = 24
"""How many chains (or floors) stretches are taken from."""
STRETCH: Final = 4
"""Steps of a stretch: frames next to each other share what was made of the one before."""
LOADING: Final = 4.0
"""Seconds that starting a process and loading metrics is taken to be until it is known."""
PATIENCE: Final = 900.0
"""Seconds after which a calibration is given up: something hangs."""
TICK: Final = 1.0
"""Seconds after which is told how long it will still take."""

Tell = Callable[[float, str], None]
"""Told how many seconds a calibration will still take, and what it does."""


@dataclass(frozen=True)
class Timing:
    """What was measured of one group of metrics.

    Attributes:
        metrics: By metric, seconds and scores of each stretch.
        decoding: Seconds of each picture decoded.
        registering: Seconds of each pair brought into register.
        loading: By metric, seconds until its first score, less what the next one took.
        device: `cpu`, or `gpu` where seconds are those of a GPU.
        why: By metric, why it could not be measured.
    """

    metrics: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    decoding: list[float] = field(default_factory=list)
    registering: list[float] = field(default_factory=list)
    loading: dict[str, float] = field(default_factory=dict)
    device: str = "cpu"
    why: dict[str, str] = field(default_factory=dict)


def scratch_run(
    path: Path, suite: Suite, size: int, origin: Frame, pixels: tuple[int, int]
) -> tuple[RunStore, FrameRef, tuple[FrameRef, ...]]:
    """A run directory with a source and copies of it in that size, and nothing else yet."""
    store = RunStore.create(path, suite, size)
    drawn = origin.pixels
    if drawn.shape[1::-1] != pixels:
        drawn = resize(drawn, *pixels)
    frames = [Frame(encode(drawn)), *(Frame(encode(_worse(drawn, n))) for n in (1, 2))]
    for frame in frames:
        store.put(frame)
    source, *copies = (FrameRef.of(frame) for frame in frames)
    told = source.model_dump(mode="json")
    store.write_json("sources.json", {each.name: [told, None] for each in suite.source})
    return store, source, tuple(copies)


def _worse(pixels: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """A copy as a good editor returns it: a little softer, with a little noise of its own."""
    soft = cv2.GaussianBlur(pixels, (0, 0), 0.6).astype(np.int16)
    noise = np.random.default_rng(seed).normal(0, 2, pixels.shape).round().astype(np.int16)
    worse: NDArray[np.uint8] = np.clip(soft + noise, 0, 255).astype(np.uint8)
    return worse


def stretches(
    store: RunStore, group: Group, source: FrameRef, copies: Sequence[FrameRef]
) -> list[Unit]:
    """Units of the group's work, drawn at random, whose chains are put into the scratch run."""
    draw = random.Random(SEED)
    weights = [len(piece.steps) + len(piece.others) for piece in group.pieces]
    order = sorted(  # without replacement, by weight (Efraimidis and Spirakis)
        range(len(weights)), key=lambda n: draw.random() ** (1 / weights[n]), reverse=True
    )
    chosen = order[:STRETCHES]
    covered = {name for n in chosen for name in group.pieces[n].metrics}
    for n in order[STRETCHES:]:  # rare work: every metric has to be met
        if not group.pieces[n].metrics <= covered:
            chosen.append(n)
            covered |= group.pieces[n].metrics
    return [_unit(store, group, group.pieces[n], draw, source, copies) for n in chosen]


def _unit(
    store: RunStore,
    group: Group,
    piece: Piece,
    draw: random.Random,
    source: FrameRef,
    copies: Sequence[FrameRef],
) -> Unit:
    names = tuple(name for name in group.specs if name in piece.metrics)
    none: frozenset[tuple[int, str, str, str]] = frozenset()
    if piece.chain is None:
        others = piece.others[:STRETCH]
        return Unit(FLOOR_PREFIX + piece.floor, names, group.wanted, None, others, none)
    first = draw.randrange(max(1, len(piece.steps) - STRETCH + 1))
    steps = piece.steps[first : first + STRETCH]
    chain = piece.chain
    period = store.suite.cycle_of(chain.key.cycle).period
    shown = [
        Step(
            step=step,
            outcome="edited",
            prompt="",
            inputs=(),
            frame=copies[step % len(copies)],
        )
        for step in sorted(chain.held)
        if steps[0] - period <= step <= steps[-1] and step > 0
    ]
    truth = source if chain.truth else None
    path = store.chain_path(chain.key.id)
    if not path.exists():
        store.start(replace(chain, source=source, truth=truth, steps=()))
        for step in shown:
            store.append(chain.key.id, step)
    return Unit(chain.key.id, names, group.wanted, steps, (), none)


def calibrate(
    store: RunStore,
    group: Group,
    units: Sequence[Unit],
    picture: FrameRef,
    copy: FrameRef,
    tell: Tell = lambda _left, _text: None,
) -> Timing:
    """Measure a group in a process of its own; where that dies, its metrics one by one."""
    names = tuple(group.specs)
    hello: dict[str, Any] = {
        "path": store.anywhere,
        "sys_path": sys.path,
        "pictures": [ref.model_dump(mode="json") for ref in (picture, copy)],
        "registering": bool(group.registered.whole),
    }
    timing = _ask(hello, units, tell)
    if isinstance(timing, Timing):
        return timing
    if len(names) == 1:
        return Timing(why={names[0]: timing})
    merged = Timing()
    for name in names:
        own = [replace(unit, metrics=(name,)) for unit in units if name in unit.metrics]
        told = _ask(hello, own, tell)
        one = told if isinstance(told, Timing) else Timing(why={name: told})
        merged.metrics.update(one.metrics)
        merged.why.update(one.why)
        merged.decoding.extend(one.decoding)
        merged.registering.extend(one.registering)
        merged.loading.update(one.loading)
    return merged


def budget(metrics: int) -> float:
    """Seconds that so many metrics are measured together, after they were loaded."""
    return min(MOST_SECONDS, SECONDS * metrics)


def expected(metrics: int) -> float:
    """Seconds that measuring so many metrics together is likely to take in all."""
    return LOADING + budget(metrics)


def together(names: Sequence[str]) -> str:
    """Metrics in a few words."""
    return names[0] if len(names) == 1 else f"{len(names)} metrics together"


def _ask(hello: Mapping[str, Any], units: Sequence[Unit], tell: Tell) -> Timing | str:
    """What a process measures of these units, or why it does not."""
    process = subprocess.Popen(
        [sys.executable, "-m", "convergebench.planner.clocking"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the driver's business
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # as workers have it
    )
    names = sorted({name for unit in units for name in unit.metrics})
    whole = {**hello, "units": [u.to_json() for u in units], "seconds": budget(len(names))}
    try:
        answer = _heard(process, json.dumps(whole).encode() + b"\n", names, tell)
    finally:
        end_group(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what it did not read is still to be flushed
                    pipe.close()
    if isinstance(answer, str):
        return answer
    answer["metrics"] = {
        name: [(seconds, scores) for seconds, scores in each]
        for name, each in answer["metrics"].items()
    }
    return Timing(**answer)


def _heard(
    process: subprocess.Popen[bytes], hello: bytes, names: Sequence[str], tell: Tell
) -> dict[str, Any] | str:
    """What a process answers in the end, or why not; until then is told how long it will be."""
    said: queue.Queue[bytes] = queue.Queue()

    def talk() -> None:
        with contextlib.suppress(OSError, ValueError):  # it died, or was ended
            if process.stdin is not None:
                process.stdin.write(hello)
                process.stdin.close()
            for line in process.stdout or ():
                said.put(line)
        said.put(b"")

    threading.Thread(target=talk, name="calibration", daemon=True).start()
    begun = time.monotonic()
    doing, ready = "loading", begun + expected(len(names))
    while (now := time.monotonic()) - begun < PATIENCE:
        tell(max(TICK, ready - now), f"{doing} {together(names)}")
        try:
            line = said.get(timeout=TICK)
        except queue.Empty:
            if doing == "loading":  # what comes after it takes no less for that
                ready = max(ready, time.monotonic() + budget(len(names)))
            continue
        answer = json.loads(line) if line.endswith(b"\n") else {}
        if "loaded" not in answer:
            return answer or "its process died"
        doing, ready = "measuring", time.monotonic() + answer["loaded"]
    return f"given up after {PATIENCE / 60:.0f} min"
