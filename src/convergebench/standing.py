"""How a run stands, seen from outside: who works on it, how far that is, what it holds.

Reads the lock, the sign of life that a working process writes, and the records. Writes nothing.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import ValidationError

from convergebench.chain import Chain, ChainKey, count_outcomes
from convergebench.disk import Holder
from convergebench.errors import ConvergeBenchError
from convergebench.heartbeat import COMMANDS, Beat, last_beat
from convergebench.progress import Pace, duration, facts, remaining, speed
from convergebench.runspec import RunSpec
from convergebench.store import RunStore
from convergebench.store.reading import uncollected
from convergebench.table import Cell, Table
from convergebench.wording import counted

SILENT: Final = 5.0
"""Seconds without a word, beyond three beats, after which a process counts as silent."""

LOST: Final = 60.0
"""Seconds without a word after which a process on an address is lost, and may be taken over."""

State = Literal["working", "silent", "killed", "ended"]


@dataclass(frozen=True)
class Work:
    """What one command does to a run, or last did.

    Attributes:
        command: `run` or `score`.
        state: `working`; `silent`: alive, and has told nothing for a while; `killed`: ended without
            letting go; `ended`.
        pid: The process.
        host: Its machine.
        since: When it began, in UTC.
        age: Seconds since its last word; None if it told none, as commands do that only hold the
            lock for a moment.
        ended: When it ended, in UTC; None unless it did.
        why: Why it ended before it was done; empty otherwise.
        pace: How far it is, as of its last word.
    """

    command: str
    state: State
    pid: int
    host: str
    since: str
    age: float | None = None
    ended: str | None = None
    why: str = ""
    pace: Pace | None = None

    @property
    def at_work(self) -> bool:
        """Whether somebody is there."""
        return self.state in ("working", "silent")

    def __str__(self) -> str:
        who = f"process {self.pid} on {self.host}"
        ago = "" if self.age is None else f"{duration(self.age)} ago"
        match self.state:
            case "ended":
                why = f": {self.why}" if self.why else ""
                head = f"nobody; {who} ended at {self.ended}{why}"
            case "killed":
                head = f"nobody; {who} ended without letting go"
                head += f" (its last word came {ago})" if ago else ""
            case "silent":
                head = f"{who} since {self.since}, silent: its last word came {ago}"
            case _:
                head = f"{who} since {self.since}" + (f"; as of {ago}" if ago else "")
        if self.pace is None or not self.pace.now.total:
            return f"{self.command}: {head}{'; it prepares' if self.at_work and self.pace else ''}"
        pace = self.pace
        if self.state == "killed":
            pace = Pace(replace(pace.now, workers=0))
        told = [f"{pace.now.done:,} of {pace.now.total:,} {pace.now.unit}", *facts(pace)]
        if self.at_work and (rest := remaining(pace)):
            told.append(rest)
        return f"{self.command}: {head}\n  {', '.join(told)}"

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "command": self.command,
            "state": self.state,
            "pid": self.pid,
            "host": self.host,
            "since": self.since,
            "age": None if self.age is None else round(self.age, 1),
            "ended": self.ended,
            "why": self.why,
            "progress": self.pace.to_dict() if self.pace else None,
        }


@dataclass(frozen=True)
class EditorStand:
    """What a run holds of one editor. What was planned is None where no settings are stored."""

    editor: str
    chains: int
    chains_done: int
    chains_planned: int | None
    steps: int
    steps_planned: int | None
    failures: int
    spent: float


@dataclass(frozen=True)
class MetricStand:
    """What a run holds of one metric."""

    metric: str
    scores: int
    null: int


@dataclass(frozen=True)
class Status:
    """How a run stands.

    Attributes:
        path: The run.
        at: When it was looked at, in UTC.
        works: What commands do to it, or last did.
        editors: What is stored, by editor.
        metrics: The scores that are stored, by metric.
        outcomes: How many steps came to what.
    """

    path: str
    at: str
    works: tuple[Work, ...]
    editors: tuple[EditorStand, ...]
    metrics: tuple[MetricStand, ...]
    outcomes: Mapping[str, int]

    @property
    def working(self) -> bool:
        """Whether somebody works on it now."""
        return any(work.at_work for work in self.works)

    @property
    def chains(self) -> tuple[int, int | None]:
        """Chains that are done, and how many are planned."""
        planned = [e.chains_planned for e in self.editors]
        known = [number for number in planned if number is not None]
        total = sum(known) if len(known) == len(planned) else None
        return sum(e.chains_done for e in self.editors), total

    @property
    def spent(self) -> float:
        """Dollars, as recorded in the chains."""
        return sum(e.spent for e in self.editors)

    @property
    def table(self) -> Table:
        """What is stored, with the pace of what is being done."""
        done, planned = self.chains
        of = f" of {planned:,}" if planned is not None else ""
        steps = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(self.outcomes.items()))
        scores = sum(m.scores for m in self.metrics)
        title = (
            f"{self.path}: {done:,}{of} chains done, {steps or 'no step'}, ${self.spent:.2f} "
            f"spent, {counted(scores, 'score')}"
        )
        rows: list[tuple[Cell, ...]] = [
            (e.editor, e.steps, e.steps_planned, e.failures, *self._now(e.editor))
            for e in self.editors
        ]
        known = {m.metric for m in self.metrics}
        begun = {
            name: None
            for work in self.works
            if work.at_work and work.pace and work.pace.now.kind == "metric"
            for name in work.pace.now.parts
            if name not in known
        }
        rows += [(m.metric, m.scores, None, m.null, *self._now(m.metric)) for m in self.metrics]
        rows += [(name, 0, None, 0, *self._now(name)) for name in begun]
        columns = ["editor or metric", "stored", "of", "failed or null", "now", "rate"]
        if not self.working:
            columns, rows = columns[:4], [row[:4] for row in rows]
        notes = [str(work) for work in self.works] or [
            "No command has left word of working on this copy."
        ]
        return Table(title, columns, rows, notes)

    def _now(self, name: str) -> tuple[Cell, Cell]:
        for work in self.works:
            if work.at_work and work.pace and name in work.pace.now.parts:
                done, total = work.pace.now.parts[name]
                rate = work.pace.rates.get(name)
                return f"{done:,}/{total:,}", speed(rate) if rate else None
        return None, None

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        done, planned = self.chains
        return {
            "path": self.path,
            "at": self.at,
            "working": self.working,
            "works": [work.to_dict() for work in self.works],
            "chains": sum(e.chains for e in self.editors),
            "chains_done": done,
            "chains_planned": planned,
            "outcomes": dict(self.outcomes),
            "spent": self.spent,
            "editors": [vars(e) for e in self.editors],
            "metrics": [vars(m) for m in self.metrics],
        }


def status(directory: str | os.PathLike[str]) -> Status:
    """Say how a run stands. Writes nothing, and disturbs nobody who works on it.

    Args:
        directory: The run: a directory or an address.

    Raises:
        StoreError: It is none, or cannot be read.
    """
    store = RunStore.open(directory)
    works = at_work(store)
    with uncollected():
        chains = store.chains()
        return Status(
            path=str(store.place),
            at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            works=works,
            editors=_editors(store, chains),
            metrics=_metrics(store),
            outcomes=count_outcomes(chains),
        )


def at_work(store: RunStore) -> tuple[Work, ...]:
    """Who works on a run or last did, command by command: quick, whatever the run holds."""
    found = (_work(store, command) for command in COMMANDS)
    return tuple(work for work in found if work is not None)


def _work(store: RunStore, command: str) -> Work | None:
    holder = store.holder(command)
    beat = last_beat(store, command)
    # Between two reads one process may have given way to another.
    if holder and beat and (holder.pid, holder.host) != (beat.pid, beat.host):
        beat = None
    if beat is None:
        if holder is None:
            return None
        state: State = "working" if holder.alive else "killed"
        return Work(command, state, holder.pid, holder.host, holder.since)
    age = max(0.0, (datetime.now(UTC) - beat.at).total_seconds())
    return Work(
        command=command,
        state=_state(holder, beat, age, LOST if store.is_remote else None),
        pid=beat.pid,
        host=beat.host,
        since=beat.since,
        age=age,
        ended=beat.ended,
        why=beat.why,
        pace=beat.pace,
    )


def _state(holder: Holder | None, beat: Beat, age: float, lost: float | None) -> State:
    if beat.ended is not None:
        return "ended"
    if lost is not None and age > lost:
        return "killed"
    fresh = age <= 3 * beat.every + SILENT
    # Not every file system shows the locks of other machines; there the sign of life decides.
    seen = holder is not None and (holder.alive or (fresh and beat.host != platform.node()))
    if not seen:
        return "killed"
    return "working" if fresh else "silent"


def _planned(store: RunStore) -> dict[ChainKey, int] | None:
    """How many steps every planned chain is to have; None where nobody can say."""
    told = store.read_json("spec.json")
    if not told:
        return None
    try:
        spec = RunSpec.model_validate(told)
        return {
            key: spec.steps_of(store.suite.cycle_of(key.cycle)) for key in spec.keys(store.suite)
        }
    except (ValidationError, ConvergeBenchError):
        return None  # an editor that is not installed here, or settings of another version


def _editors(store: RunStore, chains: list[Chain]) -> tuple[EditorStand, ...]:
    planned = _planned(store)
    by_editor: dict[str, list[Chain]] = {key.editor: [] for key in planned or ()}
    for chain in chains:
        by_editor.setdefault(chain.key.editor, []).append(chain)
    found = []
    for editor, mine in by_editor.items():
        targets = [n for key, n in planned.items() if key.editor == editor] if planned else None
        found.append(
            EditorStand(
                editor=editor,
                chains=len(mine),
                chains_done=sum(
                    chain.ended or chain.length >= (planned or {}).get(chain.key, 0)
                    for chain in mine
                ),
                chains_planned=None if targets is None else len(targets),
                steps=sum(len(chain.reached) for chain in mine),
                steps_planned=None if targets is None else sum(targets),
                failures=sum(
                    step.outcome not in ("edited", "reported")
                    for chain in mine
                    for step in chain.final
                ),
                spent=sum(chain.spent for chain in mine),
            )
        )
    return tuple(found)


def _metrics(store: RunStore) -> tuple[MetricStand, ...]:
    import polars as pl

    value = pl.col("value")
    rows = (
        store.scores()
        .group_by("metric")
        .agg(scores=pl.len(), null=value.is_null().sum())
        .sort("metric")
    )
    return tuple(MetricStand(*row) for row in rows.iter_rows())
