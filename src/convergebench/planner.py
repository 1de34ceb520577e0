"""What a run will do, before it does anything: `RunSpec` (a run.toml) and `plan`.

`plan` says calls, dollars, hours and disk; nothing is spent without it.
"""

from __future__ import annotations

import itertools
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from convergebench.chain import Chain, ChainKey, FrameRef, Settings
from convergebench.cycle import Cycle, Record
from convergebench.editor import Editor, EditorSpec
from convergebench.errors import SettingsError, explain
from convergebench.frame import Frame
from convergebench.registry import EditorName, open_editor, open_suite
from convergebench.store import RunStore
from convergebench.suite import Suite
from convergebench.table import Table

ROUNDS: Final = 5
"""Rounds of a run that does not say."""

TRANSPORT: Final = "ref:transport,format=jpeg"
"""The control that only re-saves: what the pipe alone does to a picture."""

CONTROLS: Final = ("ref:identity", "ref:transport,format=png", TRANSPORT, "ref:random")
"""Free editors that ride along in every run, so the model's loss is told apart from the pipe's."""


class Axes(Record):
    """Settings to vary: every combination becomes a chain of its own."""

    phrasing: tuple[Annotated[int, Field(ge=0)], ...] = (0,)
    seed: tuple[Literal["none", "fixed", "per-step"], ...] = ("per-step",)
    temperature: tuple[Annotated[float, Field(ge=0)] | None, ...] = (None,)
    resolution: tuple[Literal["native", "1K", "2K", "4K", "interleaved"], ...] = ("native",)
    session: tuple[Literal["stateless", "chat"], ...] = ("stateless",)

    def combinations(self) -> list[Settings]:
        """One Settings per combination."""
        axes = [self.phrasing, self.seed, self.temperature, self.resolution, self.session]
        names = ("phrasing", "seed", "temperature", "resolution", "session")
        return [
            Settings.model_validate(dict(zip(names, values, strict=True)))
            for values in itertools.product(*axes)
        ]


class RunSpec(Record):
    """A run, as written in run.toml. Give `rounds` or `steps`, not both."""

    suite: str = "starter"
    editors: Annotated[tuple[str, ...], Field(min_length=1)]
    sources: tuple[str, ...] = ()
    cycles: tuple[str, ...] = ()
    rounds: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1)] | None = None
    repeats: Annotated[int, Field(ge=1)] = 1
    size: Annotated[int, Field(ge=16, le=8192)] | None = None
    settings: Axes = Axes()
    budget: Annotated[float, Field(ge=0)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=256)] | None = None
    deadline: Annotated[float, Field(gt=0)] = 120.0
    retries: Annotated[int, Field(ge=0, le=50)] = 5
    controls: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rounds is not None and self.steps is not None:
            raise ValueError("'rounds' and 'steps' contradict each other: give one of them")
        canonical = [str(EditorName.parse(name)) for name in self.editors]
        twice = sorted({name for name in canonical if canonical.count(name) > 1})
        if twice:
            raise ValueError(f"editor {twice[0]!r} is listed twice")
        return self

    @property
    def all_editors(self) -> list[str]:
        """The editors asked for, and the controls that ride along."""
        named = [str(EditorName.parse(name)) for name in self.editors]
        return list(dict.fromkeys([*named, *(CONTROLS if self.controls else ())]))

    def steps_of(self, cycle: Cycle) -> int:
        """How many steps a chain of this cycle takes."""
        return self.steps or (self.rounds or ROUNDS) * cycle.period

    def keys(self, suite: Suite) -> list[ChainKey]:
        """Every chain of the run. Raises UnknownName, SettingsError."""
        sources = [suite.source_named(n) for n in self.sources] or list(suite.source)
        cycles = [suite.cycle_named(n) for n in self.cycles] or list(suite.cycle)
        for cycle in cycles:
            fits = [s for s in sources if suite.applies(cycle, s)]
            if self.cycles and not fits:
                raise SettingsError(f"cycle {cycle.name!r} fits none of the sources asked for")
        return [
            ChainKey(
                suite=suite.label,
                source=source.name,
                cycle=f"{cycle.name}@{cycle.version}",
                editor=editor,
                settings=settings,
                repeat=repeat,
            )
            for repeat in range(self.repeats)
            for source in sources
            for cycle in cycles
            if suite.applies(cycle, source)
            for settings in self.settings.combinations()
            for editor in self.all_editors
        ]


@dataclass(frozen=True)
class PlanRow:
    """One editor's share of a plan."""

    editor: str
    chains: int
    calls: int
    done: int
    dollars: float | None
    hours: float | None
    disk: int
    spec: EditorSpec


@dataclass(frozen=True)
class Plan:
    """What a run will do: calls, dollars, hours and disk, per editor and in all."""

    suite: str
    rows: tuple[PlanRow, ...]
    budget: float | None

    @property
    def calls(self) -> int:
        """Calls still to be made."""
        return sum(row.calls for row in self.rows)

    @property
    def done(self) -> int:
        """Steps recorded already."""
        return sum(row.done for row in self.rows)

    @property
    def dollars(self) -> float | None:
        """Expected cost, or None when a price is unknown."""
        known = [row.dollars for row in self.rows]
        return None if None in known else sum(d for d in known if d is not None)

    @property
    def hours(self) -> float | None:
        """How long it will take, or None when an editor's pace is unknown.

        Editors wait for their own servers side by side; those that compute on this machine's cores
        (without a limit of their own) share them.
        """
        if any(row.hours is None for row in self.rows):
            return None
        here = sum(row.hours or 0.0 for row in self.rows if row.spec.concurrency is None)
        return max([here, *(row.hours or 0.0 for row in self.rows)])

    @property
    def disk(self) -> int:
        """Bytes the frames will take."""
        return sum(row.disk for row in self.rows)

    @property
    def table(self) -> Table:
        """The plan as a table."""
        rows = [
            (
                r.editor,
                r.chains,
                r.calls,
                r.done,
                _money(r.dollars),
                _duration(r.hours),
                _size(r.disk),
            )
            for r in self.rows
        ]
        total = (
            "all",
            sum(r.chains for r in self.rows),
            self.calls,
            self.done,
            _money(self.dollars),
            _duration(self.hours),
            _size(self.disk),
        )
        notes = []
        if self.dollars is None:
            notes.append("A price is unknown: the cost of this run cannot be told.")
        if self.budget is not None:
            notes.append(f"Budget: ${self.budget:.2f}, never exceeded.")
        notes += [f"{r.editor}: {c}" for r in self.rows for c in r.spec.caveats]
        return Table(
            f"Plan for suite {self.suite}",
            ("editor", "chains", "calls to make", "done", "dollars", "time", "disk"),
            [*rows, total],
            notes,
        )

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        rows = [
            {
                "editor": r.editor,
                "chains": r.chains,
                "calls": r.calls,
                "done": r.done,
                "dollars": r.dollars,
                "hours": r.hours,
                "disk_bytes": r.disk,
                "caveats": list(r.spec.caveats),
            }
            for r in self.rows
        ]
        return {
            "suite": self.suite,
            "calls": self.calls,
            "done": self.done,
            "dollars": self.dollars,
            "hours": self.hours,
            "disk_bytes": self.disk,
            "budget": self.budget,
            "editors": rows,
        }


@dataclass(frozen=True)
class Job:
    """What a command needs to plan or run: spec, suite, and the run directory if there is one."""

    spec: RunSpec
    suite: Suite
    size: int
    store: RunStore | None

    def origin(self, name: str) -> tuple[Frame, Frame | None]:
        """A source and its truth: from the run directory if they are there, else from the suite."""
        known = (self.store.read_json("sources.json") or {}).get(name) if self.store else None
        if self.store and known:
            source, truth = (FrameRef.model_validate(ref) if ref else None for ref in known)
            if source:
                return self.store.frame(source), self.store.frame(truth) if truth else None
        wanted = self.suite.source_named(name)
        return self.suite.frame(wanted, self.size), self.suite.truth(wanted)


def prepare(
    directory: Path | None,
    config: Path | RunSpec | Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Job:
    """Put a run together from a run directory, a run.toml (or table) and single settings.

    The stored settings of an existing run are the basis; `config` replaces them, overrides that
    are not None replace single keys.

    Raises:
        SettingsError: Something is missing, wrong or contradictory.
        StoreMismatch: The directory belongs to another suite or size.
    """
    store = RunStore.open(directory) if directory and RunStore.is_run(directory) else None
    base, folder = _read(config) if config is not None else (_stored(store), Path())
    given = {name: value for name, value in overrides.items() if value not in (None, (), [])}
    if "rounds" in given and "steps" not in given:
        base.pop("steps", None)
    if "steps" in given and "rounds" not in given:
        base.pop("rounds", None)
    table = {**base, **given}
    if "editors" not in table:
        raise SettingsError(
            "no editor is named. Give --editor (as in --editor ref:jpeg) or a run.toml with "
            "editors = [...]."
        )
    try:
        spec = RunSpec.model_validate(table)
    except ValidationError as error:
        where = f"{config}: " if isinstance(config, Path) else ""
        raise SettingsError(f"{where}{explain(error)}") from error
    if store is not None and "suite" not in table:
        suite = store.suite
    else:
        name = spec.suite
        if "suite" in base and "suite" not in given and ("/" in name or name.endswith(".toml")):
            name = str(folder / name)
        suite = open_suite(name)
    size = spec.size or (store.info.size if store else suite.size)
    if store is not None:
        store.require(suite, size)
    return Job(spec, suite, size, store)


def plan(
    directory: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Plan:
    """What `run` with the same arguments would do. Calls no editor and writes nothing."""
    job = prepare(Path(directory) if directory else None, as_config(config), **overrides)
    keys = job.spec.keys(job.suite)
    editors = {name: open_editor(name) for name in dict.fromkeys(k.editor for k in keys)}
    chains = {c.key: c for c in job.store.chains()} if job.store else {}
    sizes = {n: len(job.origin(n)[0].data) for n in dict.fromkeys(k.source for k in keys)}
    rows = [
        _row(job, name, editor, [k for k in keys if k.editor == name], chains, sizes)
        for name, editor in editors.items()
    ]
    return Plan(job.suite.label, tuple(rows), job.spec.budget)


def _row(
    job: Job,
    name: str,
    editor: Editor,
    keys: list[ChainKey],
    chains: Mapping[ChainKey, Chain],
    sizes: Mapping[str, int],
) -> PlanRow:
    calls = done = disk = 0
    for key in keys:
        cycle = job.suite.cycle_of(key.cycle)
        chain = chains.get(key)
        length = chain.length if chain else 0
        left = 0 if chain and chain.ended else max(0, job.spec.steps_of(cycle) - length)
        calls += left
        done += length
        disk += left * sizes[key.source]
    spec = editor.spec
    at_once = min(concurrency(job.spec, spec), max(1, len(keys)))
    hours = None if spec.seconds is None else calls * spec.seconds / at_once / 3600
    dollars = None if spec.price is None else calls * spec.price
    return PlanRow(name, len(keys), calls, done, dollars, hours, disk, spec)


def concurrency(spec: RunSpec, editor: EditorSpec) -> int:
    """Calls of one editor in flight: what the user asked for, within what the editor bears."""
    wanted = spec.concurrency or editor.concurrency or os.cpu_count() or 1
    return min(wanted, editor.concurrency or wanted)


def as_config(
    value: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None,
) -> Path | RunSpec | Mapping[str, Any] | None:
    """A configuration from what a caller gave: a string is a path."""
    if value is None or isinstance(value, RunSpec | Mapping):
        return value
    return Path(value)


def _stored(store: RunStore | None) -> dict[str, Any]:
    return dict(store.read_json("spec.json") or {}) if store else {}


def _read(config: Path | RunSpec | Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
    if isinstance(config, RunSpec):
        return config.model_dump(mode="json", exclude_unset=True), Path()
    if not isinstance(config, Path):
        return dict(config), Path()
    try:
        return tomllib.loads(config.read_text("utf-8")), config.parent
    except OSError as error:
        raise SettingsError(f"cannot read {config} ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{config} is not valid TOML: {error}") from error


def _money(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"${dollars:,.2f}"


def _duration(hours: float | None) -> str:
    if hours is None:
        return "unknown"
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:.1f} h"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
