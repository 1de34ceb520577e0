"""What a run will do, before it does anything.

`plan` says calls, dollars, hours and disk; nothing is spent without it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from convergebench.chain import Chain, ChainKey
from convergebench.cycle import NOT_RECORDED, Cycle
from convergebench.editor import Asked, Editor, EditorSpec, Price
from convergebench.errors import SettingsError
from convergebench.frame import Frame
from convergebench.planner.job import Extent, Job, as_config, prepare
from convergebench.planner.plans import Plan, PlanRow
from convergebench.planner.preflight import foreseen
from convergebench.registry import open_editor, reads_prompts
from convergebench.runspec import RunSpec
from convergebench.suite import Suite
from convergebench.wording import counted, shown


def plan(
    directory: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    config: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    *,
    retry_failed: bool = False,
    observe: Callable[[int, int], None] | None = None,
    **overrides: Any,
) -> Plan:
    """What `run` with the same arguments would do. Calls no editor and writes nothing.

    A table or a RunSpec may also be the first argument. `observe` is told how many sources have
    been looked at, and how many there are.
    """
    if isinstance(directory, RunSpec | Mapping):
        directory, config = None, directory
    job = prepare(Path(directory) if directory else None, as_config(config), **overrides)
    keys = job.spec.keys(job.suite)
    editors = {name: open_editor(name) for name in dict.fromkeys(k.editor for k in keys)}
    names = dict.fromkeys(key.source for key in keys)
    origins: dict[str, Frame | Extent] = {}
    for name in names:
        origins[name] = job.extent(name) or job.origin(name)[0]
        if observe is not None:
            observe(len(origins), len(names))
    planned = plan_job(job, keys, editors, origins, retry_failed=retry_failed)
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
    chains = {c.key: c for c in job.store.chains()} if job.store else {}
    ended = {k for k, c in chains.items() if c.ended and not (retry_failed and _failed(c))}
    known = _Sizes(origins)
    rows = [
        _row(job, name, editor.spec, [k for k in keys if k.editor == name], chains, ended, known)
        for name, editor in editors.items()
    ]
    spent = sum(chain.spent for chain in chains.values())
    small = _too_small({name: editor.spec for name, editor in editors.items()}, origins, known)
    notes = (*job.notes, *small)
    return Plan(job.suite.full_label, tuple(rows), job.spec.budget, spent, notes)


def _too_small(specs: Mapping[str, EditorSpec], origins: Iterable[str], sizes: _Sizes) -> list[str]:
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


def asked_of(key: ChainKey, cycle: Cycle, step: int, size: tuple[int, int]) -> Asked:
    """The call that makes a frame, as far as its price depends on it."""
    return Asked(
        settings=key.settings,
        step=step,
        width=size[0],
        height=size[1],
        prompt=cycle.edit_at(step).wording(key.settings.phrasing, cycle.round_of(step)),
        inputs=len(cycle.inputs_at(step)),
    )


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


class _Sizes:
    """Bytes and, only where they are needed, width and height of sources."""

    def __init__(self, origins: Mapping[str, Frame | Extent]) -> None:
        self._origins = origins
        self._known: dict[str, tuple[int, int]] = {}

    def bytes(self, name: str) -> int:
        """Bytes of a source."""
        origin = self._origins[name]
        return origin.bytes if isinstance(origin, Extent) else len(origin.data)

    def pixels(self, name: str) -> tuple[int, int]:
        """Its width and height. Decoded pixels are not kept: a suite's would fill the memory."""
        if name not in self._known:
            origin = self._origins[name]
            told = (
                origin
                if isinstance(origin, Extent)
                else Frame(origin.data, digest=origin.digest).facts
            )
            self._known[name] = (told.width, told.height)
        return self._known[name]


def _row(
    job: Job,
    name: str,
    spec: EditorSpec,
    keys: list[ChainKey],
    chains: Mapping[ChainKey, Chain],
    ended: Set[ChainKey],
    sizes: _Sizes,
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
    spec: EditorSpec, key: ChainKey, cycle: Cycle, steps: range, sizes: _Sizes
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


def _growth(spec: EditorSpec, key: ChainKey, cycle: Cycle, steps: range, sizes: _Sizes) -> float:
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
