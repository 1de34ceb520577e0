"""The suite an import makes: its sources and cycles.

An imported run's suite grows with every import, and only grows: a source keeps its picture, a cycle
its edits. What would change one is another source or cycle, told apart by its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from convergebench.chain import FrameRef
from convergebench.cycle import CYCLE_EDITS, NOT_RECORDED, Cycle, Edit, Operation
from convergebench.errors import ImportProblem, MalformedImage, explain
from convergebench.frame import Frame
from convergebench.importer import pairing
from convergebench.importer.assembly import Line
from convergebench.importer.found import (
    Finds,
    FoundCycle,
    FoundSource,
    Place,
    Track,
    Wishes,
)
from convergebench.importer.naming import legal_names, suffixed
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite
from convergebench.wording import counted, shown

Refs = tuple[FrameRef | None, FrameRef | None]
"""A source's picture and its truth."""


@dataclass
class Premises:
    """A suite, and what the imported names are called in it.

    Attributes:
        suite: With all that is imported.
        sources: The source of each track.
        cycles: Cycle names by the names of tracks.
        refs: Picture and truth by source name; None where there is none.
        read: The pictures and truths that were looked at, as they were then.
        frames: Frames of the suite's own to be stored; what is imported is stored from its place.
        notes: What the user has to know.
    """

    suite: Suite
    sources: dict[Track, str]
    cycles: dict[str, str]
    refs: Mapping[str, Refs]
    read: dict[Place, FrameRef]
    frames: list[Frame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def premises_of(
    lines: Sequence[Line],
    finds: Finds,
    wishes: Wishes,
    origin: str,
    store: RunStore | None,
) -> Premises:
    """What the chains stand on, in a suite of their own. Raises ImportProblem where it cannot be.

    Args:
        lines: The chains to be.
        finds: What the layout said about sources and cycles.
        wishes: What the user said.
        origin: Where all this is from; the name of a new suite.
        store: The imported run that is extended, if there is one.
    """
    notes: list[str] = []
    read = pictures_of(lines, notes)
    pairing.refuse(pairing.unfit(lines, finds, read))
    before = store.suite if store else None
    known = {source.name: source for source in before.source} if before else {}
    refs = stored_refs(store)
    sources = _name_sources(lines, read, known, notes)
    for line in lines:
        name = sources[line.track]
        told = finds.sources.get(line.track.source, FoundSource())
        picture, truth = (read.get(p) if p else None for p in (line.source, line.truth))
        new = _source(name, line.track.source, picture, truth, told, wishes, origin)
        known[name] = _grown(known.get(name), new)
        old_picture, old_truth = refs.get(name, (None, None))
        if truth and old_truth and truth.sha256 != old_truth.sha256:
            raise ImportProblem(
                f"source {line.track.source!r} has two different ground truths; "
                f"{line.truth.name if line.truth else 'this one'} is not the one before. Import it "
                "into a run of its own, or under another name."
            )
        refs[name] = (old_picture or picture, old_truth or truth)
    cycles = {cycle.name: cycle for cycle in before.cycle} if before else {}
    called = _cycles(lines, finds, wishes, cycles, notes)
    try:
        grown = Suite(
            name=before.name if before else legal_names([origin], "import")[origin],
            version=before.version if before else 1,
            description=before.description if before else f"Imported from {origin}.",
            source=tuple(known.values()),
            cycle=tuple(cycles.values()),
        )
    except ValidationError as error:
        raise ImportProblem(f"what was found makes no suite: {explain(error)}") from error
    return Premises(grown, sources, called, refs, read, [], notes)


def pictures_of(lines: Sequence[Line], notes: list[str]) -> dict[Place, FrameRef]:
    """Every source's picture and truth, read; what cannot be decoded is told and left out."""
    places = list(dict.fromkeys(p for line in lines for p in (line.source, line.truth) if p))
    with ThreadPoolExecutor() as pool:
        told = zip(places, pool.map(_described, places), strict=True)
        found = {}
        for place, ref in told:
            if isinstance(ref, FrameRef):
                found[place] = ref
            else:
                notes.append(f"{place.name} is no readable picture ({ref}); it is left out.")
    return found


def _described(place: Place) -> FrameRef | str:
    try:
        return FrameRef.of(Frame(place.read()))
    except MalformedImage as error:
        return str(error)


def stored_refs(store: RunStore | None) -> dict[str, Refs]:
    """Pictures and truths that a run has, by source name."""
    told = (store.read_json("sources.json") or {}) if store else {}
    return {name: (_ref(source), _ref(truth)) for name, (source, truth) in told.items()}


def _ref(told: Mapping[str, Any] | None) -> FrameRef | None:
    return FrameRef.model_validate(told) if told else None


# -- sources ----------------------------------------------------------------------------------


def _name_sources(
    lines: Sequence[Line],
    read: Mapping[Place, FrameRef],
    known: Mapping[str, Source],
    notes: list[str],
) -> dict[Track, str]:
    """The source of each track: one name, one picture.

    Chains of one source are compared with each other, so its picture must be one and the same. The
    run's own keeps the name; in a new run that of most chains.
    """
    plain = legal_names(
        {line.track.source for line in lines},
        "source",
        {name: source.called or name for name, source in known.items()},
    )
    variants: dict[str, dict[str, list[Track]]] = {}
    found: dict[Track, str] = {}
    for line in lines:
        found[line.track] = plain[line.track.source]
        if line.source and line.source in read:
            digest = read[line.source].sha256
            variants.setdefault(line.track.source, {}).setdefault(digest, []).append(line.track)
    for name, pictures in sorted(variants.items()):
        order = sorted(pictures, key=lambda digest: (-len(pictures[digest]), digest))
        mine = known.get(plain[name])
        owner = (mine.sha256 if mine else None) or order[0]
        others = [digest for digest in order if digest != owner]
        for digest in others:
            for track in pictures[digest]:
                found[track] = suffixed(plain[name], digest)
        if others:
            calls = shown([suffixed(plain[name], digest) for digest in others])
            notes.append(
                f"Source {name!r} has {counted(len(others), 'other picture')} than "
                f"{plain[name]!r}: chains from it are of another source, {calls}."
            )
    return found


def _source(
    name: str,
    called: str,
    picture: FrameRef | None,
    truth: FrameRef | None,
    told: FoundSource,
    wishes: Wishes,
    origin: str,
) -> Source:
    common: dict[str, Any] = {
        "name": name,
        "licence": told.licence or wishes.licence,
        "category": told.category,
        "description": told.description,
        "degradation": told.degradation or None,
        "called": called if called != name and not name.startswith(f"{called}-") else None,
        "truth": f"{name}.truth" if truth else None,
        "truth_sha256": truth.sha256 if truth else None,
    }
    if picture is None:
        return Source(**common, elsewhere=f"{origin}: only its name was imported")
    return Source(**common, file=f"{name}.{picture.format}", sha256=picture.sha256)


def _grown(old: Source | None, new: Source) -> Source:
    """What is known of a source after another import: nothing is lost, gaps are filled."""
    if old is None:
        return new
    update: dict[str, str | None] = {
        name: getattr(new, name)
        for name in ("category", "description", "truth", "truth_sha256")
        if not getattr(old, name)
    }
    if old.elsewhere and not new.elsewhere:
        update |= {"elsewhere": None, "file": new.file, "sha256": new.sha256}
        update["licence"] = new.licence
    return old.model_copy(update=update)


# -- cycles -----------------------------------------------------------------------------------


def _cycles(
    lines: Sequence[Line],
    finds: Finds,
    wishes: Wishes,
    cycles: dict[str, Cycle],
    notes: list[str],
) -> dict[str, str]:
    """Add the cycles of these chains to those there are; what each is called."""
    known = {name: cycle.called or name for name, cycle in cycles.items()}
    called = legal_names({line.track.cycle for line in lines}, "cycle", known)
    for name, plain in sorted(called.items()):
        told = finds.cycles.get(name) or FoundCycle(wishes.kind or "free", wishes.prompts)
        new = _cycle(plain, name, told)
        old = cycles.get(plain)
        if old is not None and not _same(old, new):
            new = new.model_copy(update={"name": suffixed(plain, _hash(new)), "called": None})
            called[name] = new.name
            if new.name not in cycles:
                notes.append(
                    f"Cycle {name!r} has other edits than the run's {plain!r}; it is called "
                    f"{new.name!r} here."
                )
            old = cycles.get(new.name)
        cycles[new.name] = _worded(old, new)
    return called


def _cycle(name: str, called: str, told: FoundCycle) -> Cycle:
    wanted = CYCLE_EDITS.get(told.kind, max(1, len(told.prompts)))
    prompts = told.prompts or (None,) * wanted
    if len(prompts) != wanted:
        raise ImportProblem(
            f"cycle {called!r}: kind {told.kind!r} has {wanted} edits, got {len(prompts)} prompts"
        )
    operations: dict[str, Operation] = {
        "mirror": Operation(kind="flip", axis="horizontal"),
        "rotate": Operation(kind="turn", quarters=1),
    }
    rebuilt = ("back 1", "back 2")
    try:
        return Cycle(
            name=name,
            called=called if called != name else None,
            kind=told.kind,
            category=told.category,
            description=told.description,
            group=told.group,
            factors=dict(told.factors) if told.factors else None,
            edit=tuple(
                Edit(
                    prompt=prompt or NOT_RECORDED,
                    operation=operations.get(told.kind),
                    inputs=rebuilt if (told.kind, index) == ("reconstruct", 2) else ("previous",),
                )
                for index, prompt in enumerate(prompts)
            ),
        )
    except ValidationError as error:
        raise ImportProblem(f"cycle {called!r}: {explain(error)}") from error


def _same(old: Cycle, new: Cycle) -> bool:
    """Whether two cycles are one; prompts that nobody recorded may be any."""
    if (old.kind, old.period) != (new.kind, new.period):
        return False
    return all(
        NOT_RECORDED in (a.prompt, b.prompt) or a.prompts == b.prompts
        for a, b in zip(old.edit, new.edit, strict=True)
    )


def _worded(old: Cycle | None, new: Cycle) -> Cycle:
    """A cycle with every prompt that either has."""
    if old is None:
        return new
    pairs = zip(old.edit, new.edit, strict=True)
    edits = tuple(b if a.prompt == NOT_RECORDED else a for a, b in pairs)
    update = {"edit": edits, "category": old.category or new.category}
    return old.model_copy(update=update)


def _hash(cycle: Cycle) -> str:
    told = json.dumps(cycle.model_dump(mode="json", exclude={"name", "called"}), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()
