"""The suite an import makes: its sources and cycles, or how they fit a suite that is there.

An imported run's suite grows with every import, and only grows: a source keeps its picture, a cycle
its edits. What would change one is another source or cycle, told apart by its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from convergebench.chain import FrameRef
from convergebench.cycle import CYCLE_EDITS, NOT_RECORDED, Cycle, Edit, Operation
from convergebench.errors import ConvergeBenchError, ImportProblem, MalformedImage, explain
from convergebench.frame import Frame
from convergebench.importer.assembly import Line, legal_names
from convergebench.importer.found import Finds, FoundCycle, FoundSource, Place, Wishes
from convergebench.store import RunStore
from convergebench.suite import Source, Suite

_NO_PICTURE = FoundSource()


@dataclass
class Premises:
    """A suite, and what the imported names are called in it.

    Attributes:
        suite: With all that is imported.
        sources: Source names by the names of tracks.
        cycles: Cycle names by the names of tracks.
        refs: Stored picture and truth by source name; None where there is none.
        frames: Frames of the suite's own to be stored; what is imported is stored from its place.
        notes: What the user has to know.
    """

    suite: Suite
    sources: dict[str, str]
    cycles: dict[str, str]
    refs: Mapping[str, tuple[FrameRef | None, FrameRef | None]]
    frames: list[Frame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Picture:
    """A source as imported: its picture and truth, as far as they are readable."""

    source: FrameRef | None = None
    truth: FrameRef | None = None
    place: Place | None = None


def premises_of(
    lines: list[Line], finds: Finds, wishes: Wishes, origin: str, suite: Suite | None,
    store: RunStore | None,
) -> Premises:  # fmt: skip
    """What the chains stand on. Raises ImportProblem where it cannot be.

    Args:
        lines: The chains to be.
        finds: What the layout said about sources and cycles.
        wishes: What the user said.
        origin: Where all this is from; the name of a new suite.
        suite: The suite that everything must fit, if the user or the run has one.
        store: The run that is extended, if there is one.
    """
    notes: list[str] = []
    pictures = _pictures(lines, notes)
    if suite is not None:
        return _fitting(lines, pictures, suite, store, notes)
    before = store.suite if store else None
    named = legal_names(pictures, "source")
    known = {source.name: source for source in before.source} if before else {}
    stored = _stored(store)
    refs: dict[str, tuple[FrameRef | None, FrameRef | None]] = {}
    for name, picture in pictures.items():
        digest = picture.source.sha256 if picture.source else None
        old = known.get(named[name])
        if old and old.sha256 and digest and old.sha256 != digest:
            named[name] = f"{named[name][:53]}-{digest[:6]}"
            notes.append(
                f"Source {name!r} has another picture than the run's {old.name!r}; it is called "
                f"{named[name]!r} here."
            )
        new = _source(named[name], picture, finds.sources.get(name, _NO_PICTURE), wishes, origin)
        known[new.name] = _grown(known.get(new.name), new)
        source, truth = stored.get(new.name, (None, None))
        refs[new.name] = (source or picture.source, truth or picture.truth)
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
    return Premises(grown, named, called, {**stored, **refs}, [], notes)


def _pictures(lines: list[Line], notes: list[str]) -> dict[str, _Picture]:
    """Every source's picture and truth, read; what cannot be decoded is told and left out."""
    places = list(dict.fromkeys(p for line in lines for p in (line.source, line.truth) if p))
    with ThreadPoolExecutor() as pool:
        read = dict(zip(places, pool.map(_described, places), strict=True))
    refs: dict[Place | None, FrameRef] = {}
    for place, told in read.items():
        if isinstance(told, FrameRef):
            refs[place] = told
        else:
            notes.append(f"{place.name} is no readable picture ({told}); it is left out.")
    found: dict[str, _Picture] = {}
    for line in lines:
        old = found.get(line.track.source, _Picture())
        found[line.track.source] = _Picture(
            old.source or refs.get(line.source),
            old.truth or refs.get(line.truth),
            old.place or (line.source if line.source in refs else None),
        )
    return found


def _described(place: Place) -> FrameRef | str:
    try:
        return FrameRef.of(Frame(place.read()))
    except MalformedImage as error:
        return str(error)


def _source(name: str, picture: _Picture, told: FoundSource, wishes: Wishes, origin: str) -> Source:
    common = {
        "name": name,
        "licence": told.licence or wishes.licence,
        "category": told.category,
        "description": told.description,
    }
    if picture.source is None:
        return Source(**common, elsewhere=f"{origin}: only its name was imported")
    truth = picture.truth.sha256 if picture.truth else None
    return Source(
        **common,
        file=f"{name}.{picture.source.format}",
        sha256=picture.source.sha256,
        truth=f"{name}.truth" if truth else None,
        truth_sha256=truth,
    )


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


def _stored(store: RunStore | None) -> dict[str, tuple[FrameRef | None, FrameRef | None]]:
    told = (store.read_json("sources.json") or {}) if store else {}
    return {name: (_ref(source), _ref(truth)) for name, (source, truth) in told.items()}


def _ref(told: Mapping[str, Any] | None) -> FrameRef | None:
    return FrameRef.model_validate(told) if told else None


# -- cycles -----------------------------------------------------------------------------------


def _cycles(
    lines: list[Line],
    finds: Finds,
    wishes: Wishes,
    cycles: dict[str, Cycle],
    notes: list[str],
) -> dict[str, str]:
    """Add the cycles of these chains to those there are; what each is called."""
    called = legal_names({line.track.cycle for line in lines}, "cycle")
    for name, plain in called.items():
        told = finds.cycles.get(name) or FoundCycle(wishes.kind or "free", wishes.prompts)
        new = _cycle(plain, told)
        old = cycles.get(plain)
        if old is not None and not _same(old, new):
            new = new.model_copy(update={"name": f"{plain[:53]}-{_hash(new)[:6]}"})
            called[name] = new.name
            if new.name not in cycles:
                notes.append(
                    f"Cycle {name!r} has other edits than the run's {plain!r}; it is called "
                    f"{new.name!r} here."
                )
            old = cycles.get(new.name)
        if old is None or (_unrecorded(old) and not _unrecorded(new)):
            cycles[new.name] = new
    return called


def _cycle(name: str, told: FoundCycle) -> Cycle:
    wanted = CYCLE_EDITS.get(told.kind, max(1, len(told.prompts)))
    prompts = told.prompts or (None,) * wanted
    if len(prompts) != wanted:
        raise ImportProblem(
            f"cycle {name!r}: kind {told.kind!r} has {wanted} edits, got {len(prompts)} prompts"
        )
    operations: dict[str, Operation] = {
        "mirror": Operation(kind="flip", axis="horizontal"),
        "rotate": Operation(kind="turn", quarters=1),
    }
    edits = tuple(
        Edit(
            prompt=prompt or NOT_RECORDED,
            operation=operations.get(told.kind),
            inputs=("back 1", "back 2")
            if told.kind == "reconstruct" and index == 2
            else ("previous",),
        )
        for index, prompt in enumerate(prompts)
    )
    return Cycle(
        name=name,
        kind=told.kind,
        category=told.category,
        description=told.description,
        edit=edits,
    )


def _same(old: Cycle, new: Cycle) -> bool:
    """Whether two cycles are one; prompts that nobody recorded may be any."""
    if (old.kind, old.period) != (new.kind, new.period):
        return False
    return all(
        NOT_RECORDED in (a.prompt, b.prompt) or a.prompts == b.prompts
        for a, b in zip(old.edit, new.edit, strict=True)
    )


def _unrecorded(cycle: Cycle) -> bool:
    return any(edit.prompt == NOT_RECORDED for edit in cycle.edit)


def _hash(cycle: Cycle) -> str:
    told = json.dumps(cycle.model_dump(mode="json", exclude={"name"}), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


# -- a suite that is there --------------------------------------------------------------------


def _fitting(
    lines: list[Line],
    pictures: Mapping[str, _Picture],
    suite: Suite,
    store: RunStore | None,
    notes: list[str],
) -> Premises:
    """Names in a given suite: sources by picture or name, cycles by name."""
    own: dict[str, tuple[Frame, Frame | None]] = {}
    stored = _stored(store)
    for source in suite.source:
        kept, truth = stored.get(source.name, (None, None))
        try:
            if store and kept:
                own[source.name] = (store.frame(kept), store.frame(truth) if truth else None)
            else:
                own[source.name] = (suite.frame(source), suite.truth(source))
        except ConvergeBenchError:
            notes.append(f"Source {source.name!r} of suite {suite.label} cannot be had here.")
    sources: dict[str, str] = {}
    plain = legal_names(pictures, "source")
    for name, picture in pictures.items():
        sources[name] = _suite_source(plain[name], name, picture.place, own, suite)
    cycles = legal_names({line.track.cycle for line in lines}, "cycle")
    for line in lines:
        cycle = suite.cycle_named(cycles[line.track.cycle])
        source = suite.source_named(sources[line.track.source])
        if not suite.applies(cycle, source):
            raise ImportProblem(
                f"{line.track}: suite {suite.label} does not walk source {source.name!r} through "
                f"cycle {cycle.name!r}"
            )
    refs = {
        name: (FrameRef.of(frame), FrameRef.of(truth) if truth else None)
        for name, (frame, truth) in own.items()
    }
    frames = [f for pair in own.values() for f in pair if f]
    return Premises(suite, sources, cycles, refs, frames, notes)


def _suite_source(
    plain: str,
    name: str,
    place: Place | None,
    own: Mapping[str, tuple[Frame, Frame | None]],
    suite: Suite,
) -> str:
    if place is None:
        return suite.source_named(plain).name
    picture = Frame(place.read())
    for mine, (frame, _) in own.items():
        if picture.digest == frame.digest or picture.pixel_digest == frame.pixel_digest:
            return mine
    if plain in own:
        raise ImportProblem(
            f"source {name!r} is not the picture that suite {suite.label} has under that name. "
            "Import it without --suite, or with the suite's own source."
        )
    raise ImportProblem(f"source {name!r} is none of the pictures of suite {suite.label}")
