"""From lines to the records of a run: what is new, what is known, what contradicts the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from convergebench.chain import IMPORTED, Call, Chain, ChainKey, FrameRef, Step
from convergebench.comparisons import FLOOR_PREFIX, GIVEN, PUBLISHED
from convergebench.cycle import Cycle
from convergebench.errors import ImportProblem
from convergebench.importer import assembly
from convergebench.importer.assembly import Line
from convergebench.importer.deposit import Brought
from convergebench.importer.found import Conflict, Finds, Place, Track
from convergebench.importer.premises import Premises
from convergebench.scoretable import rows_frame
from convergebench.store import RunStore
from convergebench.wording import counted

if TYPE_CHECKING:
    import polars as pl


@dataclass
class Records:
    """What an import adds to a run.

    Attributes:
        chains: By chain id the chain as it will be, and the steps to add.
        scores: New rows of published scores.
        conflicts: Steps of the run that have another picture.
        new: Chains that were not there.
        known: Chains that were there with everything in them.
        known_scores: Rows that were there.
        files: Where every imported file went: (name, sha256, chain id, step; -1 for a truth).
        sizes: Steps whose frame has not the size of their source.
        malformed: Files that are no readable picture, with the reason.
        notes: What the user has to know.
    """

    chains: dict[str, tuple[Chain, Sequence[Step]]] = field(default_factory=dict)
    scores: pl.DataFrame = field(default_factory=lambda: rows_frame([]))
    conflicts: list[Conflict] = field(default_factory=list)
    new: int = 0
    known: int = 0
    known_scores: int = 0
    files: list[tuple[str, str, str, int]] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def records_of(
    lines: Sequence[Line],
    premises: Premises,
    brought: Mapping[Place, Brought],
    store: RunStore | None,
    finds: Finds,
    origin: str,
) -> Records:
    """Everything to be written for these lines; nothing is written here."""
    made = Records()
    stored = store.chains() if store else []
    known: dict[ChainKey, dict[int, Chain]] = {}
    for chain in stored:
        known.setdefault(chain.key.model_copy(update={"repeat": 0}), {})[chain.key.repeat] = chain
    ids: dict[Track, str] = {}
    cycles = {cycle.name: cycle for cycle in premises.suite.cycle}
    for line in lines:
        cycle = cycles[premises.cycles[line.track.cycle]]
        key = _key(line.track, premises, cycle)
        source, truth = premises.refs.get(key.source, (None, None))
        if not line.pictured:
            source = truth = None
        fresh = _Fresh(key, cycle, source, truth, line, brought)
        repeats = known.setdefault(key.model_copy(update={"repeat": 0}), {})
        chain, clash = _place_among(repeats, fresh)
        made.conflicts += [clash] if clash else []
        ids[line.track] = chain.key.id
        repeats[chain.key.repeat] = _add(made, chain, fresh, chain.key.repeat not in repeats)
    _complete(made, stored, premises)
    _tell_strays(made, stored)
    _add_scores(made, finds, ids, store, origin)
    return made


def _tell_strays(made: Records, stored: Sequence[Chain]) -> None:
    """Say where scores alone became chains beside chains with pictures of the same two names."""
    cycles: dict[tuple[str, str], set[str]] = {}
    for chain in stored:
        if len(chain.held) > 1:
            cycles.setdefault((chain.key.editor, chain.key.source), set()).add(chain.key.cycle)
    strays = [
        chain.key
        for chain, _ in made.chains.values()
        if not chain.held and (chain.key.editor, chain.key.source) in cycles
    ]
    if strays:
        first = strays[0]
        there = " and ".join(sorted(cycles[first.editor, first.source]))
        made.notes.append(
            f"{counted(len(strays), 'chain')} of scores found no pictures in the run: of "
            f"{first.editor} and {first.source} it has {there}, these are {first.cycle}, repeat "
            f"{first.repeat}. --cycle, --kind and --column repeat=… say which they are."
        )


def _complete(made: Records, stored: Sequence[Chain], premises: Premises) -> None:
    """Give stored chains the source or truth that came only now."""
    for chain in stored:
        name = chain.key.id
        now, steps = made.chains.get(name, (chain, ()))
        if chain.editor_version != IMPORTED or not now.held:
            continue
        source, truth = premises.refs.get(chain.key.source, (None, None))
        whole = replace(now, source=now.source or source, truth=now.truth or truth)
        if whole != now:
            made.chains[name] = (whole, steps)


def _key(track: Track, premises: Premises, cycle: Cycle) -> ChainKey:
    return ChainKey(
        suite=premises.suite.label,
        source=premises.sources[track],
        cycle=f"{cycle.name}@{cycle.version}",
        editor=track.editor,
        settings=track.settings,
        repeat=track.repeat,
    )


@dataclass(frozen=True)
class _Fresh:
    """A line with the frames it brings, ready to be compared with what is stored."""

    key: ChainKey
    cycle: Cycle
    source: FrameRef | None
    truth: FrameRef | None
    line: Line
    brought: Mapping[Place, Brought]

    def frames(self) -> dict[int, Brought]:
        """Per step what it brings."""
        found = ((step.number, step.place) for step in self.line.steps)
        return {number: self.brought[place] for number, place in found if place}

    def file(self, number: int) -> str:
        """The name of the file of a step."""
        return next(s.place.name for s in self.line.steps if s.number == number and s.place)


def _place_among(repeats: Mapping[int, Chain], fresh: _Fresh) -> tuple[Chain, Conflict | None]:
    """The stored chain that a line continues, or a new one; and the clash if there is one.

    The chain of the same repeat, unless a picture of it differs; then another repeat that has some
    of the pictures and contradicts none (this import was here before), else a new repeat.
    """
    key = fresh.key
    new = Chain(key, fresh.source, fresh.truth, IMPORTED)
    if key.repeat not in repeats:
        return new, None
    frames = fresh.frames()
    clash = _clash(repeats[key.repeat], frames, fresh)
    if clash is None:
        return repeats[key.repeat], None
    for chain in repeats.values():
        shared = any(
            number in chain.held and chain.held[number].sha256 == one.ref.sha256
            for number, one in frames.items()
        )
        if shared and _clash(chain, frames, fresh) is None:
            return chain, None
    beyond = key.model_copy(update={"repeat": max(repeats) + 1})
    return replace(new, key=beyond), clash


def _clash(chain: Chain, frames: Mapping[int, Brought], fresh: _Fresh) -> Conflict | None:
    """Where a line contradicts a chain: another picture, or more of a chain that was run here."""
    what = f"{chain.key.editor} · {chain.key.source} · {chain.key.cycle}"
    ours = chain.editor_version != IMPORTED
    for number, one in frames.items():
        if number in chain.held and chain.held[number].sha256 != one.ref.sha256:
            kept = f"frame {chain.held[number].sha256[:12]}… in the run"
        elif ours and number not in chain.held:
            kept = "a chain that was run here, not imported"
        else:
            continue
        return Conflict(f"{what}: step {number}", (kept, fresh.file(number)))
    return None


def _add(made: Records, chain: Chain, fresh: _Fresh, new: bool) -> Chain:
    """The steps of a line that its chain lacks; answers with the chain as it will be."""
    name = chain.key.id
    completed = replace(
        chain, source=chain.source or fresh.source, truth=chain.truth or fresh.truth
    )
    for where, place in ((0, fresh.line.source), (-1, fresh.line.truth)):
        if place:
            digest = fresh.brought[place].ref.sha256
            made.files.append((place.name, digest, name, where))
    before: dict[int, list[Step]] = {}
    for step in chain.steps:
        before.setdefault(step.step, []).append(step)
    held = {number: ref.sha256 for number, ref in completed.held.items()}
    steps: list[Step] = []
    for told in fresh.line.steps:
        one = fresh.brought[told.place] if told.place else None
        if told.place and one:
            made.files.append((told.place.name, one.ref.sha256, name, told.number))
            if one.problem:
                made.malformed.append(f"{told.place.name}: {one.problem}")
            elif _resized(one.ref, completed.source, fresh.cycle, told.number):
                made.sizes.append(f"{told.place.name}: {one.ref.width}×{one.ref.height}")
        if _is_news(before.get(told.number, ()), told.outcome, one):
            step = _step(chain.key, held, told, one, fresh)
            steps.append(step)
            if step.outcome == "edited" and step.frame:
                held[step.step] = step.frame.sha256
    if chain.editor_version != IMPORTED:
        made.known += 1
        return chain  # run here: it has these frames, and its records are its own
    headed = (completed.source, completed.truth) != (chain.source, chain.truth)
    if not (new or steps or headed):
        made.known += 1
        return chain
    made.new += new
    before_now = made.chains.get(name, (chain, ()))[1]
    whole = replace(completed, steps=(*chain.steps, *steps))
    made.chains[name] = (whole, (*before_now, *steps))
    return whole


def _is_news(before: Sequence[Step], outcome: str, one: Brought | None) -> bool:
    """Whether a step says more than what was recorded of it."""
    if not before:
        return True
    if any(step.outcome == "edited" for step in before):
        return False
    if one is not None:
        return all(step.frame is None or step.frame.sha256 != one.ref.sha256 for step in before)
    return before[-1].outcome == "missing" and outcome not in ("missing", "failed")


def _step(
    key: ChainKey,
    held: Mapping[int, str],
    told: assembly.Step,
    one: Brought | None,
    fresh: _Fresh,
) -> Step:
    cycle, number, found = fresh.cycle, told.number, told.found
    inputs = [held.get(i) for i in cycle.inputs_at(number)]
    outcome, detail, ref = told.outcome, told.detail, one.ref if one else None
    if one and one.problem:
        outcome, detail = "malformed", one.problem
    if ref and found and found.notes:
        ref = ref.model_copy(update={"notes": (*ref.notes, *found.notes)})
    wording = cycle.edit_at(number).wording(key.settings.phrasing, cycle.round_of(number))
    return Step(
        step=number,
        outcome=outcome,
        prompt=(found.prompt if found else None) or wording,
        inputs=tuple(i for i in inputs if i) if all(inputs) else (),
        seed=found.seed if found else None,
        frame=ref,
        detail=detail,
        attempts=0,
        call=found.call if found else Call(),
    )


def _resized(ref: FrameRef, source: FrameRef | None, cycle: Cycle, step: int) -> bool:
    if source is None:
        return False
    home = cycle.home(step)
    turned = home is not None and home.quarters % 2 == 1
    size = (source.height, source.width) if turned else (source.width, source.height)
    return (ref.width, ref.height) != size


# -- scores -----------------------------------------------------------------------------------


def _add_scores(
    made: Records,
    finds: Finds,
    ids: Mapping[Track, str],
    store: RunStore | None,
    origin: str,
) -> None:
    """Published scores as rows; those there with another value are refused, not replaced."""
    version = f"{PUBLISHED}{origin}"
    rows: list[tuple[str, int, str, str, str, str, float | None, str | None]] = [
        (ids[s.track], s.step, s.metric, version, s.against, "all", s.value, s.note or None)
        for s in finds.scores
        if s.track in ids
    ]
    rows += [
        (f"{FLOOR_PREFIX}{GIVEN}", 0, metric, version, GIVEN, "all", value, None)
        for metric, value in finds.floors.items()
    ]
    lost = sum(s.track not in ids for s in finds.scores)
    if lost:
        made.notes.append(f"{lost} published scores belong to no chain that was found.")
    columns = ("chain", "step", "metric", "version", "against", "where", "value")
    kept = store.scores().select(columns).iter_rows() if store else ()
    known = {tuple(key): value for *key, value in kept if key[3] == version}
    fresh: list[dict[str, Any]] = []
    names = ("chain", "step", "metric", "version", "against", "where", "value", "note")
    for row in rows:
        if row[:6] not in known:
            fresh.append(dict(zip(names, row, strict=True)))
        elif known[row[:6]] != row[6]:
            raise ImportProblem(
                f"{row[0]}, step {row[1]}: {row[2]} is {known[row[:6]]} in the run and {row[6]} "
                f"in this import, both from {origin!r}. Give the other one a name of its own with "
                "--origin."
            )
    made.known_scores = len(rows) - len(fresh)
    made.scores = rows_frame(fresh)
