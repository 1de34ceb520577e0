"""Run directories whose chains, frames and curves are written by hand, for comparing several."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convergebench.chain import Chain, ChainKey, FrameRef, Outcome, Step
from convergebench.comparisons import FLOOR_PREFIX, floor_pairs
from convergebench.cycle import Cycle, Edit
from convergebench.runspec import RunSpec
from convergebench.scoretable import rows_frame
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite
from tests.analysis.handmade import FLOOR, VALUE_AT, installed

COPY = Cycle(name="copy", kind="replicate", edit=(Edit(prompt="Copy the picture."),))
TRIP = Cycle(name="trip", kind="round-trip", edit=(Edit(prompt="Add."), Edit(prompt="Remove.")))


def ref(name: str) -> FrameRef:
    """A frame that is nowhere: only its name counts."""
    digest = (name.encode().hex() * 64)[:64]
    return FrameRef(sha256=digest, format="png", bytes=1, width=8, height=8)


class Made:
    """A run directory whose chains, frames and curves are written by hand."""

    def __init__(
        self,
        path: Path,
        pictures: dict[str, str] | None = None,
        *,
        cycles: Sequence[Cycle] = (COPY, TRIP),
        label: str = "tiny@1",
        description: str = "",
        imported: bool = False,
    ) -> None:
        pictures = {"s0": "p0", "s1": "p1"} if pictures is None else pictures
        name, _, version = label.partition("@")
        self.pictures = pictures
        self.suite = Suite(
            name=name,
            version=int(version),
            description=description,
            source=tuple(
                Source(name=n, file=f"{n}.png", sha256=ref(p).sha256, licence="CC0-1.0")
                if p
                else Source(name=n, elsewhere="scores only", licence="unknown")
                for n, p in pictures.items()
            ),
            cycle=tuple(cycles),
        )
        self.store = RunStore.create(path, self.suite, 32, imported=imported)
        known = {n: [ref(p).model_dump(mode="json"), None] for n, p in pictures.items() if p}
        self.store.write_json("sources.json", known)
        self.path = path
        self.rows: list[dict[str, Any]] = []
        for metric in ("psnr", "ssim"):
            for one, other in floor_pairs(sorted(known)):
                self.row(FLOOR_PREFIX + one, 0, metric, FLOOR[metric], against=other)

    def row(self, chain: str, step: int, metric: str, value: float | None, **more: str) -> None:
        told = {"version": installed(metric), "against": "home", "where": "all", "note": None}
        self.rows.append(
            {"chain": chain, "step": step, "metric": metric, "value": value, **told, **more}
        )

    def walk(
        self,
        source: str,
        cycle: str,
        editor: str,
        curve: Sequence[float],
        *,
        version: str = "1",
        frames: str = "",
        ended: Outcome | None = None,
        metrics: Sequence[str] = ("psnr", "ssim"),
        metric_version: str | None = None,
        cycle_version: int = 1,
        repeat: int = 0,
    ) -> Chain:
        """A chain with that convergence by every metric; `frames` names what the editor made."""
        key = ChainKey(
            suite=self.suite.label,
            source=source,
            cycle=f"{cycle}@{cycle_version}",
            editor=editor,
            repeat=repeat,
        )
        bare = not self.pictures[source]
        chain = Chain(key, None if bare else ref(self.pictures[source]), None, version)
        self.store.start(chain)
        period = self.suite.cycle_named(cycle).period
        count = period * len(curve)
        for n in range(1, count + 1):
            frame = None if bare else ref(f"{frames}{editor}{source}{cycle}{n}")
            outcome: Outcome = "reported" if bare else "edited"
            step = Step(step=n, outcome=outcome, prompt="p", inputs=(), frame=frame)
            self.store.append(key.id, step)
        if ended:
            step = Step(step=count + 1, outcome=ended, prompt="p", inputs=(), detail="no answer")
            self.store.append(key.id, step)
        for n, c in enumerate(curve, 1):
            for metric in metrics:
                more = {"version": metric_version} if metric_version else {}
                self.row(key.id, n * period, metric, VALUE_AT[metric](c), **more)
        return chain

    def plan(self, rounds: int, *editors: str) -> None:
        spec = RunSpec(editors=editors, rounds=rounds, controls=False)
        self.store.write_json("spec.json", spec.model_dump(mode="json"))

    def done(self) -> Path:
        self.store.add_scores(rows_frame(self.rows))
        return self.path


def four_editors(path: Path, editors: Sequence[str] = ("a", "b", "c", "d"), **more: Any) -> Path:
    made = Made(path, **more)
    for editor, source, cycle in itertools.product(editors, ("s0", "s1"), ("copy", "trip")):
        start = {"a": 0.97, "b": 0.83, "c": 0.71, "d": 0.59}[editor]
        start -= 0.03 * (source == "s1") + 0.01 * (cycle == "trip")
        made.walk(source, cycle, editor, (start, start * 0.7, start * 0.4))
    return made.done()
