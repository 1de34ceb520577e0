"""Telling the editors of several runs apart, or together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from convergebench.chain import Chain, ChainKey, Settings
from convergebench.gathering.body import Run

Place = tuple[str, str, Settings, int]
"""Source, cycle, settings and repeat: what an editor has one chain of."""


@dataclass(frozen=True)
class Walked:
    """A chain with the run it is from, by its number, and its published scores."""

    run: int
    chain: Chain
    old: str
    published: Mapping[tuple[int, str, str], float | None]


@dataclass
class _Kin:
    """Runs in which an editor's name means the same: one version, and no chain that differs."""

    runs: list[int]
    versions: tuple[str, ...]
    chains: dict[Place, list[Walked]] = field(default_factory=dict)


def place_of(key: ChainKey) -> Place:
    """What a chain is one of, whatever its editor and suite."""
    return key.source, key.cycle, key.settings, key.repeat


def editors_of(
    runs: Sequence[Run], walked: Sequence[Sequence[Walked]], notes: list[str]
) -> tuple[dict[tuple[int, str], str], list[_Kin]]:
    """What each run's editors are called here, and the runs that are one under each name."""
    mine: dict[str, dict[int, dict[Place, Walked]]] = {}
    for index, walks in enumerate(walked):
        for walk in walks:
            places = mine.setdefault(walk.chain.key.editor, {}).setdefault(index, {})
            places[place_of(walk.chain.key)] = walk
    calls: dict[tuple[int, str], str] = {}
    every: list[_Kin] = []
    for name in sorted(mine):
        kins = _kins(mine[name])
        by_version = len({kin.versions for kin in kins}) == len(kins)
        for kin in kins:
            call = name if len(kins) == 1 else f"{name} [{_told(kin, kins, runs, by_version)}]"
            calls |= {(index, name): call for index in kin.runs}
        if len(kins) > 1:
            notes.append(_apart(name, kins, runs, by_version))
        every += kins
    for index, run in enumerate(runs):
        for key in run.spec.keys(run.store.suite) if run.spec else ():
            same = {call for (_, name), call in calls.items() if name == key.editor}
            alone = f"{key.editor} [{run.name}]" if same - {key.editor} else key.editor
            calls.setdefault((index, key.editor), alone)
    return calls, every


def _kins(mine: Mapping[int, Mapping[Place, Walked]]) -> list[_Kin]:
    kins: list[_Kin] = []
    for index, walks in mine.items():
        versions = tuple(sorted({walk.chain.editor_version for walk in walks.values()}))
        kin = next(
            (
                kin
                for kin in kins
                if kin.versions == versions
                and all(
                    _same(walk, other)
                    for place, walk in walks.items()
                    for other in kin.chains.get(place, ())
                )
            ),
            None,
        )
        if kin is None:
            kin = _Kin([], versions)
            kins.append(kin)
        kin.runs.append(index)
        for place, walk in walks.items():
            kin.chains.setdefault(place, []).append(walk)
    return kins


def _same(one: Walked, other: Walked) -> bool:
    """Whether two chains tell the same, as far as both go."""
    mine, theirs = _trail(one.chain), _trail(other.chain)
    if any(theirs[step] != told for step, told in mine.items() if step in theirs):
        return False
    if any(outcome == "reported" for outcome, _ in (*mine.values(), *theirs.values())):
        common = one.published.keys() & other.published.keys()
        return bool(common) and all(one.published[k] == other.published[k] for k in common)
    return True


def _trail(chain: Chain) -> dict[int, tuple[str, str]]:
    return {
        step.step: (step.outcome, step.frame.sha256 if step.frame else "")
        for step in chain.final
        if step.outcome != "over-budget"
    }


def _told(kin: _Kin, kins: Sequence[_Kin], runs: Sequence[Run], by_version: bool) -> str:
    version = f"version {', '.join(kin.versions)}"
    if by_version:
        return version
    where = " + ".join(runs[index].name for index in kin.runs)
    return where if len({k.versions for k in kins}) == 1 else f"{where}, {version}"


def _apart(name: str, kins: Sequence[_Kin], runs: Sequence[Run], by_version: bool) -> str:
    where = [" and ".join(runs[index].name for index in kin.runs) for kin in kins]
    if by_version:
        versions = ", ".join(
            f"{', '.join(kin.versions)} in {of}" for kin, of in zip(kins, where, strict=True)
        )
        return f"{name} has other versions in other runs ({versions}) and a line for each."
    return (
        f"{name} gave different frames for the same chains in {', '.join(where)} and has a line "
        "for each."
    )
