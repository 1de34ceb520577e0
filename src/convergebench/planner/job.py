"""A run put together: from a run directory, a run.toml and single settings."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from convergebench.chain import Chain, ChainKey, FrameRef
from convergebench.drawing import scene_rows
from convergebench.errors import SettingsError, SuiteError, explain
from convergebench.frame import Frame, encode
from convergebench.prompts import load_prompts
from convergebench.registry import open_suite
from convergebench.remote.address import Place
from convergebench.runspec import Axes, RunSpec
from convergebench.store import RunStore
from convergebench.subset import chosen, idle_notes, recorded, subset_notes
from convergebench.suite import Suite
from convergebench.wording import in_order

DRAWN: Final = 1 << 20
"""Pixels of a source that is drawn to be planned with; a larger one is only sketched."""

DAMAGED: Final = 1 << 17
"""The same of a damaged source: its damage takes as long as its drawing."""

SKETCHED: Final = (8, 4)
"""Strips that a sketch has, over the height of the picture, and rows in each."""


@dataclass(frozen=True)
class Extent:
    """How large a source is: all that a plan needs of it."""

    width: int
    height: int
    bytes: int


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

    @cached_property
    def chains(self) -> dict[ChainKey, Chain]:
        """The chains as recorded when they were first asked for."""
        return {chain.key: chain for chain in self.store.chains()} if self.store else {}

    @cached_property
    def _kept(self) -> Mapping[str, Any]:
        """Which stored frames are which sources."""
        return (self.store.read_json("sources.json") or {}) if self.store else {}

    def origin(self, name: str) -> tuple[Frame, Frame | None]:
        """A source and its truth: from the run directory if they are there, else from the suite."""
        known = self._kept.get(name)
        if self.store and known:
            source, truth = (FrameRef.model_validate(ref) if ref else None for ref in known)
            if source:
                return self.store.frame(source), self.store.frame(truth) if truth else None
        wanted = self.suite.source_named(name)
        return self.suite.frame(wanted, self.size), self.suite.truth(wanted, self.size)

    def extent(self, name: str) -> Extent | None:
        """How large a source is that would take long to draw; None for all others.

        Its bytes are those of a few of its rows, scaled; of a small drawing they would be several
        times too many, because large pictures are smoother and compress better.
        """
        wanted = self.suite.source_named(name)
        width, height = wanted.drawn_size(self.size)
        kept = name in self._kept
        least = DAMAGED if wanted.degrade else DRAWN
        if wanted.draw is None or kept or width * height <= least:
            return None
        return _sketched(wanted.draw, width, height)


@lru_cache(maxsize=256)
def _sketched(scene: str, width: int, height: int) -> Extent:
    """How large a drawing would be; several sources may be of one scene."""
    strips, rows = SKETCHED
    starts = ((2 * n + 1) * height // (2 * strips) - rows // 2 for n in range(strips))
    drawn = (scene_rows(scene, width, height, y, y + rows) for y in starts)
    data = sum(len(encode(strip)) for strip in drawn)
    return Extent(width, height, round(data * height / (strips * rows)))


def prepare(
    directory: Place | None,
    config: Path | RunSpec | Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Job:
    """Put a run together from a run directory, a run.toml (or table) and single settings.

    The stored settings of an existing run are the basis; `config` replaces them. Overrides that are
    not None replace single keys; but editors, sources, cycles and values of settings given for an
    existing run are added to those it has, because what was begun is to be finished.

    Raises:
        SettingsError: Something is missing, wrong or contradictory.
        StoreMismatch: The directory belongs to another suite or size.
        SuiteError: The suite was altered, or files that it cannot do without are not here.
    """
    store = RunStore.open(directory) if directory and RunStore.is_run(directory) else None
    base, folder = _read(config) if config is not None else (_stored(store), Path())
    given = {name: value for name, value in overrides.items() if value not in (None, (), [], {})}
    if "rounds" in given and "steps" not in given:
        base.pop("steps", None)
    if "steps" in given and "rounds" not in given:
        base.pop("rounds", None)
    if base and store is not None and config is None:  # an imported run has no settings yet
        given = _added(base, given)
    elif isinstance(given.get("settings"), Mapping):
        given["settings"] = {**base.get("settings", {}), **given["settings"]}
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
    if spec.prompts is not None:
        if store is not None and "prompts" not in given:  # as they were when the run was begun
            suite = store.suite.model_copy(update={"root": suite.root})
        else:
            near = folder if "prompts" not in given else Path()
            suite = suite.with_prompts(load_prompts(near / spec.prompts))
    whole = suite
    suite = recorded(whole, store.suite) if store else chosen(whole, spec)
    size = spec.size or (store.info.size if store else suite.size)
    if store is not None:
        store.require(suite, size)
    idle = _not_in_arms(suite, spec) if spec.arms else idle_notes(suite, spec)
    notes = (*subset_notes(suite, whole, resumed=store is not None), *idle)
    return Job(spec, suite, size, store, notes)


def _not_in_arms(suite: Suite, spec: RunSpec) -> tuple[str, ...]:
    """Which of the sources, cycles and own prompts asked for the design has no chain of."""
    if not (spec.sources or spec.cycles or spec.prompts):
        return ()
    keys = spec.keys(suite)
    sources = {key.source for key in keys}
    cycles = {suite.cycle_of(key.cycle).name for key in keys}
    lost = [
        *(f"source {name!r}" for name in spec.sources if name not in sources),
        *(f"cycle {name!r}" for name in spec.cycles if name not in cycles),
    ]
    notes = [f"Not part of this design, so left out: {in_order(lost)}."] if lost else []
    if spec.prompts and not spec.cycles:
        own = (cycle for cycle in suite.cycle if cycle.readers == "prompted")
        idle = [cycle.title for cycle in own if cycle.name not in cycles]
        if idle:
            notes.append(
                "Where the design names prompts it takes the first of each group of yours, so "
                f"left out: {in_order(idle)}. With --suite instead of a preset all are asked."
            )
    return tuple(notes)


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
    settings = given.get("settings")
    if isinstance(settings, Axes):
        settings = settings.model_dump(mode="json", exclude_unset=True)
    if isinstance(settings, Mapping):  # one value more of an axis is one chain more of each kind
        before = {**Axes().model_dump(mode="json"), **base.get("settings", {})}
        axes = {
            name: list(dict.fromkeys([*before.get(name, ()), *values]))
            if isinstance(values, list | tuple)
            else values
            for name, values in settings.items()
        }
        given["settings"] = {**base.get("settings", {}), **axes}
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
