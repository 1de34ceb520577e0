"""What a run will do, before it does anything.

`plan` says calls, dollars, hours and disk; nothing is spent without it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from convergebench.chain import Chain, ChainKey
from convergebench.cycle import NOT_RECORDED, Cycle
from convergebench.editor import Editor, EditorSpec, Price
from convergebench.engines import require_engine
from convergebench.errors import SettingsError
from convergebench.frame import Frame
from convergebench.planner.job import Extent, Job, as_config, prepare
from convergebench.planner.plans import Plan, PlanRow
from convergebench.planner.preflight import foreseen
from convergebench.planner.sizes import Sizes
from convergebench.planner.sizes import asked_of as asked_of
from convergebench.registry import open_editor, reads_prompts
from convergebench.remote.address import place_of
from convergebench.runspec import RunSpec
from convergebench.suite import Suite
from convergebench.wording import counted, shown


def plan(
    directory: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    config: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    *,
    retry_failed: bool = False,
    engine: str | None = None,
    metrics: Sequence[str] | None = None,
    sparse: Sequence[str] = (),
    workers: int | None = None,
    address: str | None = None,
    observe: Callable[[int, int], None] | None = None,
    calibrating: Callable[[float, float, str], None] | None = None,
    **overrides: Any,
) -> Plan:
    """What `run` with the same arguments would do. Calls no editor and writes nothing.

    With `metrics` or `engine`, also what scoring will take, in `Plan.scoring`: the
    scores that are missing, times what each takes in a short calibration on this machine.

    Args:
        directory: A run directory, to see what is left to do. May also be what `config` may be.
        config: A run.toml, a table or a RunSpec.
        retry_failed: Whether chains that ended in `failed` go on.
        engine: What will score: `local` or `ray`; `local` by default, where metrics are given.
        metrics: Names of metrics, or of sets of them; the set `fast` by default.
        sparse: Slow metrics, scored only at the steps that the trial compares.
        workers: How many score at once. By default as many as the cluster at `address`, or this
            machine, has room for.
        address: Of a Ray cluster.
        observe: Told how many sources have been looked at, and how many there are.
        calibrating: Told every second for how many seconds was measured, how many it will be, and
            what is being done.
        **overrides: Single settings, named as in run.toml.

    Raises:
        UnknownName: No such engine, metric, suite or editor.
        SettingsError: Settings contradict each other.
        EngineError: The cluster cannot be asked.
    """
    require_engine(engine or "local", address)
    scored = engine is not None or metrics is not None
    if workers and not scored:
        raise SettingsError("workers are for scoring: say which metrics, or --engine, too.")
    if isinstance(directory, RunSpec | Mapping):
        directory, config = None, directory
    job = prepare(place_of(directory) if directory else None, as_config(config), **overrides)
    keys = job.spec.keys(job.suite)
    editors = {name: open_editor(name) for name in dict.fromkeys(k.editor for k in keys)}
    names = dict.fromkeys(key.source for key in keys)
    origins: dict[str, Frame | Extent] = {}
    for name in names:
        origins[name] = job.extent(name) or job.origin(name)[0]
        if observe is not None:
            observe(len(origins), len(names))
    planned = plan_job(job, keys, editors, origins, retry_failed=retry_failed)
    if scored:
        from convergebench.planner.scoring import Asked, plan_scoring  # a clock, and much else

        asked = Asked(engine or "local", tuple(metrics or ()), tuple(sparse), workers, address)
        scoring = plan_scoring(
            job,
            keys,
            editors,
            Sizes(origins),
            asked,
            retry_failed=retry_failed,
            observe=calibrating,
        )
        planned = replace(planned, scoring=scoring)
    lacking = foreseen(job, keys, editors)
    if not lacking:
        return planned
    note = (
        f"{counted(len(lacking), 'picture')} of its methods cannot be used, the first: "
        f"{lacking[0]}. "
        "`run` lists all of them, and with --allow-missing takes them as failures."
    )
    return replace(planned, notes=(*planned.notes, note))


def plan_job(
    job: Job,
    keys: list[ChainKey],
    editors: Mapping[str, Editor],
    origins: Mapping[str, Frame | Extent],
    *,
    retry_failed: bool = False,
) -> Plan:
    """The plan of a job, given its chains, its editors and its sources, or how large they are.

    With `retry_failed`, chains that ended in `failed` go on.

    Raises:
        SettingsError: An editor cannot follow a setting, or a prompt was not recorded.
    """
    _require_prompts(job.suite, keys)
    require_abilities({name: editor.spec for name, editor in editors.items()}, keys)
    chains = job.chains
    ended = {k for k, c in chains.items() if c.ended and not (retry_failed and _failed(c))}
    known = Sizes(origins)
    rows = [
        _row(job, name, editor.spec, [k for k in keys if k.editor == name], chains, ended, known)
        for name, editor in editors.items()
    ]
    spent = sum(chain.spent for chain in chains.values())
    small = _too_small({name: editor.spec for name, editor in editors.items()}, origins, known)
    notes = (*job.notes, *small)
    return Plan(job.suite.full_label, tuple(rows), job.spec.budget, spent, notes)


def _too_small(specs: Mapping[str, EditorSpec], origins: Iterable[str], sizes: Sizes) -> list[str]:
    """Notes on sources that an editor is said not to take; documents err, so it is no error."""
    notes = []
    for name, least in ((name, spec.least_side) for name, spec in specs.items() if spec.least_side):
        small = [source for source in origins if min(sizes.pixels(source)) < least]
        if small:
            notes.append(
                f"{name} is said to take pictures of {least} pixels a side or more; "
                f"{shown(small)} {'has' if len(small) == 1 else 'have'} fewer."
            )
    return notes


def require_abilities(specs: Mapping[str, EditorSpec], keys: list[ChainKey]) -> None:
    """Raise SettingsError where a chain asks for a setting that its editor cannot follow."""
    for name, settings in dict.fromkeys((key.editor, key.settings) for key in keys):
        can = specs[name].abilities
        wanted = {"native": set(), "interleaved": {"1K", "2K", "4K"}}.get(
            settings.resolution, {settings.resolution}
        )
        if settings.temperature is not None and not can.temperature:
            raise SettingsError(
                f"{name} takes no temperature, and {settings.temperature:g} is asked for. Leave "
                "the temperature or the editor out."
            )
        if not wanted <= set(can.resolutions):
            raise SettingsError(
                f"{name} cannot follow resolution {settings.resolution}: it makes "
                f"{', '.join(('native', *can.resolutions))}. Choose one of them, or leave the "
                "editor out."
            )
        if settings.session not in can.sessions:
            raise SettingsError(
                f"{name} cannot follow session {settings.session}: it can "
                f"{' and '.join(can.sessions)}. Choose another, or leave the editor out."
            )
        if settings.seed == "fixed" and not can.seeds:
            raise SettingsError(
                f"{name} takes no seed, and a fixed one is asked for. Use seed per-step (which is "
                "not sent then) or none, or leave the editor out."
            )


def _require_prompts(suite: Suite, keys: list[ChainKey]) -> None:
    """Raise SettingsError where an editor would be sent a prompt that nobody recorded."""
    for key in keys:
        if key.editor.startswith("ref:") or not reads_prompts(key.editor):
            continue  # reference editors read operations, not prompts
        if any(edit.prompt == NOT_RECORDED for edit in suite.cycle_of(key.cycle).edit):
            raise SettingsError(
                f"the prompts of cycle {key.cycle} were not recorded when it was imported, so "
                f"{key.editor} cannot be asked. Import again with --prompt, or choose other cycles."
            )


def _row(
    job: Job,
    name: str,
    spec: EditorSpec,
    keys: list[ChainKey],
    chains: Mapping[ChainKey, Chain],
    ended: Set[ChainKey],
    sizes: Sizes,
) -> PlanRow:
    calls = done = walking = longest = 0
    disk, prices = 0.0, [Price.flat(0.0)]
    known = spec.pricing is not None or spec.price is not None
    alike: dict[tuple[object, ...], tuple[float, Price | None]] = {}
    for key in keys:
        cycle = job.suite.cycle_of(key.cycle)
        chain = chains.get(key)
        length = chain.length if chain else 0
        target = length if key in ended else job.spec.steps_of(cycle)
        left = range(length + 1, target + 1)
        calls += len(left)
        walking += bool(left)
        longest = max(longest, len(left))
        done += length
        same = (key.source, key.cycle, key.settings, left)  # repeats cost the same
        if same not in alike:
            growth = _growth(spec, key, cycle, left, sizes)
            alike[same] = (growth, _chain_price(spec, key, cycle, left, sizes))
        growth, price = alike[same]
        disk += sizes.bytes(key.source) * growth
        known = known and price is not None
        prices += [price] if price else []
    if spec.pricing is None:
        prices = [Price.flat(calls * (spec.price or 0.0))]
    at_once = min(concurrency(job.spec, spec), max(1, walking))
    turns = max(calls / at_once, longest)  # the steps of a chain follow each other
    return PlanRow(
        editor=name,
        chains=len(keys),
        calls=calls,
        done=done,
        price=_sum(prices) if known or not calls else None,
        hours=None if spec.seconds is None else turns * spec.seconds / 3600,
        disk=round(disk),
        spec=spec,
        at_once=at_once,
        limit=concurrency(job.spec, spec),
    )


def _chain_price(
    spec: EditorSpec, key: ChainKey, cycle: Cycle, steps: range, sizes: Sizes
) -> Price | None:
    """What these steps cost where the price depends on the call; None when it is unknown."""
    if spec.pricing is None or not steps:
        return Price.flat(0.0)
    size = sizes.pixels(key.source)
    prices = [spec.price_of(asked_of(key, cycle, step, size)) for step in steps]
    known = [price for price in prices if price is not None]
    return _sum(known) if len(known) == len(prices) else None


def _sum(prices: list[Price]) -> Price:
    low, expected, high = (
        math.fsum(getattr(price, name) for price in prices) for name in ("low", "expected", "high")
    )
    return Price(low, expected, high)


def _failed(chain: Chain) -> bool:
    return chain.last is not None and chain.last.outcome == "failed"


def _growth(spec: EditorSpec, key: ChainKey, cycle: Cycle, steps: range, sizes: Sizes) -> float:
    """How many sources' worth of bytes the frames of these steps take: as many as of pixels."""
    if spec.sizing is None or not steps:
        return float(len(steps))
    width, height = sizes.pixels(key.source)
    asked = (spec.sizing(asked_of(key, cycle, step, (width, height))) for step in steps)
    return sum(across * down for across, down in asked) / (width * height)


def concurrency(spec: RunSpec, editor: EditorSpec) -> int:
    """Calls of one editor in flight: what the user asked for, within what the editor bears."""
    wanted = spec.concurrency or editor.concurrency or os.cpu_count() or 1
    return min(wanted, editor.concurrency or wanted)
