"""A run as its user describes it: a run.toml, expanded to the chains it means."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from convergebench.chain import ChainKey, Settings
from convergebench.cycle import Cycle, Record
from convergebench.errors import SettingsError
from convergebench.registry import PluginName, reads_prompts
from convergebench.suite import Suite

ROUNDS: Final = 5
"""Rounds of a run that does not say."""

DEADLINE: Final = 120.0
"""Seconds after which a call is given up, where neither run nor editor says more."""

PATIENCE: Final = 4.0
"""How many times as long as usual a call may take."""

TRANSPORT: Final = "ref:transport,format=jpeg"
"""The control that only re-saves: what the pipe alone does to a picture."""

CONTROLS: Final = ("ref:identity", "ref:transport,format=png", TRANSPORT, "ref:random")
"""Free editors that ride along in every run, so the model's loss is told apart from the pipe's."""


class Axes(Record):
    """Settings to vary: every combination becomes a chain of its own."""

    phrasing: tuple[Annotated[int, Field(ge=0)], ...] = (0,)
    seed: tuple[Literal["none", "fixed", "per-step"], ...] = ("per-step",)
    temperature: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)] | None, ...] = (None,)
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


class Arm(Record):
    """A part of a design that is no full grid: which sources walk which cycles in which settings.

    What an arm does not say is the run's; without `sources` or `cycles` it has all of the suite.
    `controls` says whether the free controls walk its chains as well, or alone.
    """

    name: str = ""
    sources: tuple[str, ...] = ()
    cycles: tuple[str, ...] = ()
    settings: Axes = Axes()
    repeats: Annotated[int, Field(ge=1)] | None = None
    controls: Literal["with", "without", "only"] = "with"


class RunSpec(Record):
    """A run, as written in run.toml. Give `rounds` or `steps`, not both.

    With `arms` it is their union; `sources` and `cycles` of the run then say which of them are
    walked at all, and a setting of an arm goes before the run's. `prompts` is a file of prompts
    that take the place of a restoration suite's own.
    """

    suite: str = "starter"
    editors: Annotated[tuple[str, ...], Field(min_length=1)]
    sources: tuple[str, ...] = ()
    cycles: tuple[str, ...] = ()
    rounds: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1)] | None = None
    repeats: Annotated[int, Field(ge=1)] = 1
    size: Annotated[int, Field(ge=16, le=8192)] | None = None
    settings: Axes = Axes()
    budget: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=256)] | None = None
    deadline: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    retries: Annotated[int, Field(ge=0, le=50)] = 5
    repeat_lost: Annotated[int, Field(ge=0, le=10)] = 1
    controls: bool = True
    arms: tuple[Arm, ...] = ()
    prompts: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rounds is not None and self.steps is not None:
            raise ValueError("'rounds' and 'steps' contradict each other: give one of them")
        canonical = [str(PluginName.parse(name)) for name in self.editors]
        twice = sorted({name for name in canonical if canonical.count(name) > 1})
        if twice:
            raise ValueError(f"editor {twice[0]!r} is listed twice")
        return self

    @property
    def own_editors(self) -> list[str]:
        """The editors asked for, in our spelling."""
        return [str(PluginName.parse(name)) for name in self.editors]

    def deadline_of(self, seconds: float | None) -> float:
        """Seconds after which a call is given up, of an editor that usually takes so long."""
        return self.deadline or max(DEADLINE, PATIENCE * (seconds or 0.0))

    def steps_of(self, cycle: Cycle) -> int:
        """How many steps a chain of this cycle takes; a picture is restored once, unless told."""
        rounds = self.rounds or (1 if cycle.kind == "restore" else ROUNDS)
        return self.steps or rounds * cycle.period

    def keys(self, suite: Suite) -> list[ChainKey]:
        """Every chain of the run. Raises UnknownName, SettingsError."""
        for name in self.sources:
            suite.source_named(name)
        for name in self.cycles:
            suite.cycle_named(name)
        if self.arms and "phrasing" in self.settings.model_fields_set:
            _require_phrasings(self.settings.phrasing, suite.cycle)
        found: list[ChainKey] = []
        for arm in self.arms or (Arm(),):
            found += self._arm_keys(suite, arm)
        if not found and self.arms:
            raise SettingsError(
                "no arm of the design has any of the sources, cycles and settings asked for. Ask "
                "for others, or leave --source, --cycle and --setting out."
            )
        return list(dict.fromkeys(found))  # a value that was given twice is no chain more

    def _own_cycles(self, arm: Arm, suite: Suite) -> tuple[str, ...]:
        """The cycles that an arm names; of other prompts the first of each group in their place."""
        known = {cycle.name for cycle in suite.cycle}
        if self.prompts is None or not arm.cycles or known.intersection(arm.cycles):
            return arm.cycles
        prompts = [cycle for cycle in suite.cycle if cycle.readers == "prompted"]
        return tuple({cycle.group: cycle.name for cycle in reversed(prompts)}.values())

    def _arm_keys(self, suite: Suite, arm: Arm) -> list[ChainKey]:
        here = [source.name for source in suite.source if source.elsewhere is None]
        names = _both(arm.sources, self.sources)
        sources = [suite.source_named(n) for n in (here if names is None else names)]
        names = _both(self._own_cycles(arm, suite), self.cycles)
        cycles = list(suite.cycle) if names is None else [suite.cycle_named(n) for n in names]
        if not (sources and cycles):
            return []
        own = arm.settings.model_dump(exclude_unset=True)
        axes = self.settings.model_copy(update=own)
        # Of the run's phrasings an arm walks those that it has: others may have more.
        if "phrasing" in own or not self.arms:
            _require_phrasings(axes.phrasing, cycles)
        for cycle in cycles:
            fits = [s for s in sources if suite.applies(cycle, s)]
            if self.cycles and not fits and not self.arms:
                raise SettingsError(
                    f"cycle {cycle.name!r} fits none of the sources asked for: they have no region "
                    "for its edits, or it is for other sources. `convergebench suites show` lists "
                    "both."
                )
        editors = [] if arm.controls == "only" else self.own_editors
        editors += CONTROLS if self.controls and arm.controls != "without" else ()
        return [
            ChainKey(
                suite=suite.label,
                source=source.name,
                cycle=f"{cycle.name}@{cycle.version}",
                editor=editor,
                settings=settings,
                repeat=repeat,
            )
            for repeat in range(arm.repeats or self.repeats)
            for source in sources
            for cycle in cycles
            if suite.applies(cycle, source)
            for settings in axes.combinations()
            if settings.phrasing < cycle.phrasings
            for editor in dict.fromkeys(editors)
            if cycle.readers is None or cycle.suits(reads_prompts(editor))
        ]


def _require_phrasings(asked: tuple[int, ...], cycles: Sequence[Cycle]) -> None:
    most = max(cycle.phrasings for cycle in cycles)
    for phrasing in asked:
        if phrasing >= most:
            raise SettingsError(
                f"phrasing {phrasing} is asked for, but no prompt has more than {most}; they are "
                "counted from 0."
            )


def _both(arm: tuple[str, ...], run: tuple[str, ...]) -> list[str] | None:
    """The names that an arm and its run both allow; None where neither limits them."""
    if not arm and not run:
        return None
    return [name for name in arm or run if not run or name in run]
