"""What a run will do, before it does anything.

`plan` says calls, dollars, hours and disk; nothing is spent without it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from convergebench.chain import Chain, ChainKey, FrameRef
from convergebench.cycle import NOT_RECORDED
from convergebench.editor import Editor, EditorSpec
from convergebench.errors import SettingsError, SuiteError, explain
from convergebench.frame import Frame
from convergebench.registry import open_editor, open_suite
from convergebench.runspec import RunSpec
from convergebench.store import RunStore
from convergebench.subset import chosen, idle_notes, recorded, subset_notes
from convergebench.suite import Suite
from convergebench.table import Table


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
    spent: float = 0.0
    notes: tuple[str, ...] = ()

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
        notes = list(self.notes)
        if self.dollars is None:
            notes.append("A price is unknown: the cost of this run cannot be told.")
        if self.budget is not None:
            short = (self.dollars or 0.0) + self.spent > self.budget + 1e-9
            notes.append(
                f"Budget: ${self.budget:.2f}, never exceeded; ${self.spent:.2f} are spent."
                + (" It will not suffice." if short else "")
            )
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
            "spent": self.spent,
            "notes": list(self.notes),
            "editors": rows,
        }


@dataclass(frozen=True)
class Job:
    """What a command needs to plan or run: spec, suite, and the run directory if there is one.

    `notes` say which subset of the suite it is, and what is missing.
    """

    spec: RunSpec
    suite: Suite
    size: int
    store: RunStore | None
    notes: tuple[str, ...] = ()

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

    The stored settings of an existing run are the basis; `config` replaces them. Overrides that are
    not None replace single keys; but editors, sources and cycles given for an existing run are
    added to those it has, because what was begun is to be finished.

    Raises:
        SettingsError: Something is missing, wrong or contradictory.
        StoreMismatch: The directory belongs to another suite or size.
        SuiteError: The suite was altered, or files that it cannot do without are not here.
    """
    store = RunStore.open(directory) if directory and RunStore.is_run(directory) else None
    base, folder = _read(config) if config is not None else (_stored(store), Path())
    given = {name: value for name, value in overrides.items() if value not in (None, (), [])}
    if "rounds" in given and "steps" not in given:
        base.pop("steps", None)
    if "steps" in given and "rounds" not in given:
        base.pop("rounds", None)
    if base and store is not None and config is None:  # an imported run has no settings yet
        given = _added(base, given)
    table = {**base, **given}
    if "editors" not in table and set(table) <= set(RunSpec.model_fields):
        new = f"{directory} is no run directory yet, and " if directory and not store else ""
        raise SettingsError(
            f"{new}no editor is named. Give --editor (as in --editor ref:noise), or a run.toml "
            "with editors = [...]."
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
        if not suite.intact:
            raise SuiteError(
                f"suite {suite.label} was changed after it was sealed. Raise its 'version', and "
                f"seal it again with what `convergebench suites check {name}` prints."
            )
    whole = suite
    suite = recorded(whole, store.suite) if store else chosen(whole, spec)
    size = spec.size or (store.info.size if store else suite.size)
    if store is not None:
        store.require(suite, size)
    notes = (*subset_notes(suite, whole, resumed=store is not None), *idle_notes(suite, spec))
    return Job(spec, suite, size, store, notes)


def plan(
    directory: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    config: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Plan:
    """What `run` with the same arguments would do. Calls no editor and writes nothing.

    A table or a RunSpec may also be the first argument.
    """
    if isinstance(directory, RunSpec | Mapping):
        directory, config = None, directory
    job = prepare(Path(directory) if directory else None, as_config(config), **overrides)
    keys = job.spec.keys(job.suite)
    editors = {name: open_editor(name) for name in dict.fromkeys(k.editor for k in keys)}
    sizes = {n: len(job.origin(n)[0].data) for n in dict.fromkeys(k.source for k in keys)}
    return plan_job(job, keys, editors, sizes)


def plan_job(
    job: Job, keys: list[ChainKey], editors: Mapping[str, Editor], sizes: Mapping[str, int]
) -> Plan:
    """The plan of a job, given its chains, its editors and its sources' sizes in bytes."""
    _require_prompts(job.suite, keys)
    chains = {c.key: c for c in job.store.chains()} if job.store else {}
    rows = [
        _row(job, name, editor, [k for k in keys if k.editor == name], chains, sizes)
        for name, editor in editors.items()
    ]
    spent = sum(chain.spent for chain in chains.values())
    return Plan(job.suite.full_label, tuple(rows), job.spec.budget, spent, job.notes)


def _require_prompts(suite: Suite, keys: list[ChainKey]) -> None:
    """Raise SettingsError where an editor would be sent a prompt that nobody recorded."""
    for key in keys:
        if key.editor.startswith("ref:"):
            continue  # reference editors read operations, not prompts
        if any(edit.prompt == NOT_RECORDED for edit in suite.cycle_of(key.cycle).edit):
            raise SettingsError(
                f"the prompts of cycle {key.cycle} were not recorded when it was imported, so "
                f"{key.editor} cannot be asked. Import again with --prompt, or choose other cycles."
            )


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


def _added(base: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    for name in ("editors", "sources", "cycles"):
        if name in given and name in base:
            given[name] = list(dict.fromkeys([*base[name], *given[name]]))
        elif name in given and name != "editors":
            del given[name]  # the run has all of them already
    if "repeats" in given:
        given["repeats"] = max(given["repeats"], base.get("repeats", 1))
    return given


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
