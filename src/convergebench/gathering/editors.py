"""Telling the editors of several runs apart, or together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from convergebench.chain import PAUSES, Chain, ChainKey, Settings
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
    moved: dict[tuple[int, Place], Place] = field(default_factory=dict)

    def join(self, run: int, walks: Mapping[Place, Walked], seats: Mapping[Place, Place]) -> None:
        """Take a run's chains in, at the places they have here."""
        self.runs.append(run)
        for place, walk in walks.items():
            self.chains.setdefault(seats[place], []).append(walk)
            if seats[place] != place:
                self.moved[run, place] = seats[place]


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
        notes += _renumbered(name, kins, runs)
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
        for kin in kins:
            seats = _seats(walks, kin.chains) if kin.versions == versions else None
            if seats is not None:
                kin.join(index, walks, seats)
                break
        else:
            kins.append(_Kin([], versions))
            kins[-1].join(index, walks, {place: place for place in walks})
    return kins


def _seats(
    walks: Mapping[Place, Walked], known: Mapping[Place, Sequence[Walked]]
) -> dict[Place, Place] | None:
    """Where a run's chains belong among known ones; None where they tell something else.

    Repeats are numbered as each run likes: chains of the same frames are the same whatever their
    numbers, and where some are so, the others of that source, cycle and settings are further
    repeats.
    """
    groups: dict[tuple[str, str, Settings], list[Place]] = {}
    there: dict[tuple[str, str, Settings], list[Place]] = {}
    for place in sorted(walks, key=lambda place: place[3]):
        groups.setdefault(place[:3], []).append(place)
    for place in sorted(known, key=lambda place: place[3]):
        there.setdefault(place[:3], []).append(place)
    found: dict[Place, Place] = {}
    for group, places in groups.items():
        theirs = there.get(group, [])
        seats = {
            place: place
            for place in places
            if place in known and all(_same(walks[place], other) for other in known[place])
        }
        for place in places:
            if place in seats:
                continue
            free = (seat for seat in theirs if seat not in seats.values())
            seat = next((s for s in free if _alike(walks[place], known[s])), None)
            if seat is not None:
                seats[place] = seat
        taken = {*theirs, *seats.values()}
        for place in places:
            if place in seats:
                continue
            if place in taken:
                if all(place == seat for place, seat in seats.items()):
                    return None
                place_now = (*group, max(repeat for *_, repeat in (*taken, *places)) + 1)
            else:
                place_now = place
            taken.add(place_now)
            seats[place] = place_now
        found |= seats
    return found


def _alike(walk: Walked, others: Sequence[Walked]) -> bool:
    """Whether chains share a frame, or published scores, and differ in nothing."""
    mine = {told for told in _trail(walk.chain).items() if told[1][1]}
    return all(_same(walk, other) for other in others) and any(
        mine & _trail(other.chain).items() or walk.published.keys() & other.published.keys()
        for other in others
    )


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
        if step.outcome not in PAUSES
    }


def _renumbered(name: str, kins: Sequence[_Kin], runs: Sequence[Run]) -> list[str]:
    """What was matched by its frames, a sentence per run."""
    counts = Counter(run for kin in kins for run, _ in kin.moved)
    return [
        f"{name}: {count} {'repeat' if count == 1 else 'repeats'} of {runs[run].name} "
        f"{'has' if count == 1 else 'have'} another number here, matched by the frames with those "
        "of the other runs."
        for run, count in sorted(counts.items())
    ]


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
