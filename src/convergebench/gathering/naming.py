"""Telling the sources and cycles of several runs apart, or together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from convergebench.chain import FrameRef
from convergebench.cycle import NOT_RECORDED, Cycle
from convergebench.errors import StoreMismatch
from convergebench.gathering.body import Run
from convergebench.source import Source
from convergebench.wording import shown

Digests = tuple[str, str]
"""SHA-256 of a source's bytes, and of its truth's (empty without one)."""

LONGEST: Final = 60


@dataclass
class _Kin:
    """Runs in which a name means the same thing."""

    runs: list[int]
    digests: Digests | None = None
    cycle: Cycle | None = None


@dataclass
class Names:
    """What sources and cycles are called here.

    Attributes:
        sources: By run and its own name.
        cycles: By run and its own name.
        suite_sources: The sources under their new names.
        suite_cycles: The cycles under their new names.
        notes: What was renamed or taken to be the same, a sentence each.
        clashes: Names that mean different things in different runs, with these runs.
    """

    sources: dict[tuple[int, str], str] = field(default_factory=dict)
    cycles: dict[tuple[int, str], str] = field(default_factory=dict)
    suite_sources: dict[str, Source] = field(default_factory=dict)
    suite_cycles: dict[str, Cycle] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    clashes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def cycle_label(self, run: int, label: str) -> str:
        """A chain's `name@version` as it is called here."""
        cycle = self.suite_cycles[self.cycles[run, label.partition("@")[0]]]
        return f"{cycle.name}@{cycle.version}"


def names_of(runs: Sequence[Run]) -> Names:
    """Names under which nothing different is called the same. Raises StoreMismatch."""
    found = Names()
    _name_sources(runs, found)
    _name_cycles(runs, found)
    return found


# -- sources --------------------------------------------------------------------------------------


def digests_of(run: Run) -> dict[str, Digests | None]:
    """Every source a run uses, by the bytes it stores; None where only scores are there."""
    stored = run.store.read_json("sources.json") or {}
    found: dict[str, Digests | None] = {}
    for name, pair in stored.items():
        source, truth = ((ref["sha256"] if ref else "") for ref in (*pair, None)[:2])
        found[name] = (source, truth) if source else None
    for chain in run.chains:
        if chain.source is not None:
            found[chain.key.source] = (chain.source.sha256, _digest(chain.truth))
        else:
            found.setdefault(chain.key.source, None)
    keys = run.spec.keys(run.store.suite) if run.spec else []
    for key in keys:
        found.setdefault(key.source, None)
    return found


def _digest(ref: FrameRef | None) -> str:
    return ref.sha256 if ref else ""


def _name_sources(runs: Sequence[Run], found: Names) -> None:
    digests = [digests_of(run) for run in runs]
    groups: dict[str, list[_Kin]] = {}
    for name in dict.fromkeys(name for mine in digests for name in mine):
        kins: list[_Kin] = []
        for index, mine in enumerate(digests):
            if (same := mine.get(name)) is not None:
                kin = next((k for k in kins if k.digests == same), None)
                kins.append(_Kin([index], same)) if kin is None else kin.runs.append(index)
        for index, mine in enumerate(digests):
            if name in mine and mine[name] is None:
                if len(kins) == 1:
                    kins[0].runs.append(index)
                else:
                    kins.append(_Kin([index]))
        groups[name] = kins
    _same_pictures(digests, runs, found)
    _by_name_alone(groups, digests, runs, found)
    taken = {name for name, kins in groups.items() if len(kins) == 1}
    for name, kins in groups.items():
        calls = [name] if len(kins) == 1 else _apart(name, kins, runs, taken)
        if len(kins) > 1:
            _refuse_broken_seal("source", name, kins, runs)
            found.clashes[name] = tuple(runs[i].name for kin in kins for i in kin.runs)
            found.notes.append(_different("pictures", name, calls, kins, runs))
        for call, kin in zip(calls, kins, strict=True):
            for index in kin.runs:
                found.sources[index, name] = call
            source = runs[min(kin.runs)].store.suite.source_named(name)
            found.suite_sources[call] = source.model_copy(update={"name": call})


def _same_pictures(
    digests: Sequence[Mapping[str, Digests | None]],
    runs: Sequence[Run],
    found: Names,
) -> None:
    """Note pictures that go by other names elsewhere: they are not paired, and a reader must know.

    The names are the user's to choose: one picture may stand in a run under two of them.
    """
    where: dict[Digests, dict[str, list[str]]] = {}
    for run, mine in zip(runs, digests, strict=True):
        walked = {chain.key.source for chain in run.chains}
        for name, same in mine.items():
            if same is not None and name in walked:
                where.setdefault(same, {}).setdefault(name, []).append(run.name)
    other = [
        " and ".join(f"{name} in {', '.join(of)}" for name, of in names.items())
        for names in where.values()
        if len(names) > 1 and len({run for of in names.values() for run in of}) > 1
    ]
    if other:
        found.notes.append(
            f"The same picture has several names and is not paired: {shown(other, between='; ')}."
        )


def _by_name_alone(
    groups: Mapping[str, list[_Kin]],
    digests: Sequence[Mapping[str, Digests | None]],
    runs: Sequence[Run],
    found: Names,
) -> None:
    bare: dict[str, list[str]] = {}
    for run, mine in zip(runs, digests, strict=True):
        of = {c.key.source for c in run.chains if c.source is None}
        for name in sorted(of):
            if mine[name] is None and len(groups[name]) == 1 and len(groups[name][0].runs) > 1:
                bare.setdefault(run.name, []).append(name)
    for run_name, names in bare.items():
        found.notes.append(
            f"{run_name} has no pictures of {shown(names)}: they are taken to be those of the "
            "other runs by their names alone."
        )


# -- cycles ---------------------------------------------------------------------------------------


def _name_cycles(runs: Sequence[Run], found: Names) -> None:
    used = []
    for run in runs:
        labels = [chain.key.cycle for chain in run.chains]
        labels += [key.cycle for key in (run.spec.keys(run.store.suite) if run.spec else [])]
        used.append({run.store.suite.cycle_of(label).name for label in set(labels)})
    order = [c.name for run in runs for c in run.store.suite.cycle]
    groups: dict[str, list[_Kin]] = {}
    taken_as: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(order):
        mine = [
            (index, run.store.suite.cycle_named(name))
            for index, run in enumerate(runs)
            if name in used[index]
        ]
        kins: list[_Kin] = []
        # Those whose prompts are known first: one that is not may be any of them.
        for index, cycle in sorted(mine, key=lambda told: _unworded(told[1])):
            alike = [k for k in kins if k.cycle and _alike(k.cycle, cycle)]
            if len(alike) == 1 or (alike and not _unworded(cycle)):
                alike[0].runs.append(index)
                if _unworded(cycle) and not _unworded(alike[0].cycle):
                    pair = (runs[index].name, runs[alike[0].runs[0]].name)
                    taken_as.setdefault(pair, []).append(name)
            else:
                kins.append(_Kin([index], cycle=cycle))
        if kins:
            groups[name] = sorted(kins, key=lambda kin: min(kin.runs))
    for (bare, worded), names in taken_as.items():
        found.notes.append(
            f"{bare} has no prompts of {shown(names)}: its cycles are taken to be those of "
            f"{worded} by their names and kinds."
        )
    taken = {name for name, kins in groups.items() if len(kins) == 1}
    for name, kins in groups.items():
        calls = [name] if len(kins) == 1 else _apart(name, kins, runs, taken)
        if len(kins) > 1:
            _refuse_broken_seal("cycle", name, kins, runs)
            found.clashes[name] = tuple(runs[i].name for kin in kins for i in kin.runs)
            found.notes.append(_different("cycles", name, calls, kins, runs))
        for call, kin in zip(calls, kins, strict=True):
            for index in kin.runs:
                found.cycles[index, name] = call
            assert kin.cycle is not None
            update = {"name": call, "sources": None}
            found.suite_cycles[call] = kin.cycle.model_copy(update=update)


def _unworded(cycle: Cycle | None) -> bool:
    return cycle is not None and any(NOT_RECORDED in edit.prompts for edit in cycle.edit)


def _alike(one: Cycle, other: Cycle) -> bool:
    """Whether two cycles ask for the same, and are at home at the same frames."""
    if one.kind != other.kind or one.period != other.period:
        return False
    # Turns come round after four rounds.
    if any(one.home(step) != other.home(step) for step in range(1, 4 * one.period + 1)):
        return False
    if _unworded(one) or _unworded(other):
        return True
    # Neither citation nor caption reaches an editor, and one phrasing is a prompt.
    aside = {"citation", "caption", "prompt", "phrasings"}
    return all(
        a.prompts == b.prompts and a.model_dump(exclude=aside) == b.model_dump(exclude=aside)
        for a, b in zip(one.edit, other.edit, strict=True)
    )


# -- both -----------------------------------------------------------------------------------------


def _apart(name: str, kins: Sequence[_Kin], runs: Sequence[Run], taken: set[str]) -> list[str]:
    """A name for each meaning, after the first run that has it; legal in file names."""
    found = []
    for kin in kins:
        run = re.sub(r"[^a-z0-9._]+", "-", runs[min(kin.runs)].name.lower()).strip("-.") or "run"
        call = f"{name[: LONGEST // 2]}-in-{run}"[:LONGEST]
        number = 1
        while call in taken:
            number += 1
            call = f"{call[: LONGEST - 4].rstrip('-')}-{number}"
        taken.add(call)
        found.append(call)
    return found


def _different(
    plural: str, name: str, calls: Sequence[str], kins: Sequence[_Kin], runs: Sequence[Run]
) -> str:
    told = ", ".join(
        f"{call} ({' and '.join(runs[i].name for i in sorted(kin.runs))})"
        for call, kin in zip(calls, kins, strict=True)
    )
    return f"{name} is the name of {len(kins)} different {plural}, told apart as {told}."


def _refuse_broken_seal(what: str, name: str, kins: Sequence[_Kin], runs: Sequence[Run]) -> None:
    """Two runs of one suite version must not mean different things by one name.

    Suites that an import made up are as different as the folders they were made from.
    """
    seen: dict[str, tuple[int, Run]] = {}
    for number, kin in enumerate(kins):
        for run in (runs[index] for index in kin.runs):
            info = run.store.info
            group, before = seen.setdefault(info.suite, (number, run))
            if group == number or before.store.info.fingerprint == info.fingerprint:
                continue
            if not (run.imported or before.imported):
                raise StoreMismatch(
                    f"{before.name} and {run.name} were both made with suite {info.suite}, but its "
                    f"content differs: {what} {name!r} is not the same in both. Their numbers "
                    "cannot be compared; raise the suite's version where it was changed, and run "
                    "again."
                )
