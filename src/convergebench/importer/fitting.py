"""Importing into a suite that is there: sources are matched by their picture, cycles by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convergebench.chain import FrameRef
from convergebench.errors import ConvergeBenchError, ImportProblem
from convergebench.frame import Frame
from convergebench.importer.assembly import Line
from convergebench.importer.found import Place
from convergebench.importer.naming import legal_names
from convergebench.importer.premises import Premises, Refs, pictures_of, stored_refs
from convergebench.store import RunStore
from convergebench.suite import Suite

Own = Mapping[str, tuple[Frame, Frame | None]]
"""A suite's own pictures and truths, by source name."""


def fitting(lines: Sequence[Line], suite: Suite, store: RunStore | None) -> Premises:
    """What the chains stand on, in a given suite. Raises ImportProblem where they do not fit.

    Args:
        lines: The chains to be.
        suite: The suite that everything must fit.
        store: The run that is extended, if there is one.
    """
    notes: list[str] = []
    own = _own(suite, store, notes)
    read = pictures_of(lines, notes)
    plain = legal_names({line.track.source for line in lines}, "source")
    cycles = legal_names({line.track.cycle for line in lines}, "cycle")
    matched: dict[tuple[str, Place | None], str] = {}
    sources = {}
    for line in lines:
        place = line.source if line.source in read else None
        if (line.track.source, place) not in matched:
            name = _match(line.track.source, plain[line.track.source], place, own, suite)
            matched[line.track.source, place] = name
        sources[line.track] = matched[line.track.source, place]
        cycle = suite.cycle_named(cycles[line.track.cycle])
        source = suite.source_named(sources[line.track])
        if not suite.applies(cycle, source):
            raise ImportProblem(
                f"{line.track}: suite {suite.label} does not walk source {source.name!r} through "
                f"cycle {cycle.name!r}"
            )
    refs: dict[str, Refs] = {
        name: (FrameRef.of(frame), FrameRef.of(truth) if truth else None)
        for name, (frame, truth) in own.items()
    }
    frames = [f for pair in own.values() for f in pair if f]
    return Premises(suite, sources, cycles, refs, read, frames, notes)


def _own(suite: Suite, store: RunStore | None, notes: list[str]) -> Own:
    found: dict[str, tuple[Frame, Frame | None]] = {}
    stored = stored_refs(store)
    for source in suite.source:
        kept, truth = stored.get(source.name, (None, None))
        try:
            if store and kept:
                found[source.name] = (store.frame(kept), store.frame(truth) if truth else None)
            else:
                found[source.name] = (suite.frame(source), suite.truth(source))
        except ConvergeBenchError:
            notes.append(f"Source {source.name!r} of suite {suite.label} cannot be had here.")
    return found


def _match(name: str, plain: str, place: Place | None, own: Own, suite: Suite) -> str:
    remedy = f"Only its own sources fit suite {suite.label}; choose another --to for others."
    if place is None:
        if plain not in {source.name for source in suite.source}:
            raise ImportProblem(f"source {name!r} comes without a picture. {remedy}")
        return plain
    picture = Frame(place.read())
    for mine, (frame, _) in own.items():
        if picture.digest == frame.digest or picture.pixel_digest == frame.pixel_digest:
            return mine
    if plain in own:
        raise ImportProblem(
            f"source {name!r} is not the picture that suite {suite.label} has under that name. "
            f"{remedy}"
        )
    raise ImportProblem(f"source {name!r} is none of the pictures of suite {suite.label}. {remedy}")
