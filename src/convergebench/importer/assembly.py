"""From what a layout found to chains: legal names, gaps, repeats, contradictions.

Nothing is guessed silently. A step without a picture becomes a record that says so; a step with
two equal pictures becomes one, with a note; with two that differ it is a conflict, refused or kept
as a repeat as the user chooses.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from convergebench.chain import Outcome
from convergebench.errors import ImportProblem
from convergebench.frame import sha256
from convergebench.importer.found import Conflict, Finds, FoundFrame, Place, Track, Wishes

NAME_LENGTH = 60


@dataclass(frozen=True)
class Step:
    """One step of a line: what is known, and the place of its bytes if there are any."""

    number: int
    found: FoundFrame | None
    outcome: Outcome
    detail: str = ""

    @property
    def place(self) -> Place | None:
        """Where its bytes are."""
        return self.found.place if self.found else None


@dataclass(frozen=True)
class Line:
    """A chain to be: its track, its source and truth, and every step up to its last.

    `found_as` is the track as the layout has it: sources of one name may have to be told apart.
    """

    track: Track
    found_as: Track
    source: Place | None
    truth: Place | None
    steps: tuple[Step, ...]

    @property
    def places(self) -> list[Place]:
        """Every place it needs, source and truth first."""
        steps = [step.place for step in self.steps]
        return [place for place in (self.source, self.truth, *steps) if place]


@dataclass
class Assembly:
    """Chains to be, and what the user has to know about them."""

    lines: list[Line] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def assemble(finds: Finds, wishes: Wishes) -> Assembly:
    """Bring what was found into chains. Reads bytes only to compare what claims to be the same."""
    made = Assembly(notes=list(finds.notes))
    tracks: dict[Track, dict[int, list[FoundFrame]]] = {}
    for frame in finds.frames:
        tracks.setdefault(frame.track, {}).setdefault(frame.step, []).append(frame)
    split = _distinct(tracks, wishes, made)
    apart = _sources_apart(split, finds, made)
    for track, steps in split.items():
        known = finds.sources.get(track.source)
        first = steps.pop(0, None)
        source = (first.place if first else None) or (known.place if known else None)
        told = replace(track, source=apart.get(track, track.source))
        meant = max(finds.expected.get(track, 0), wishes.steps or 0)
        line = Line(told, track, source, known.truth if known else None, _steps(steps, meant))
        made.lines.append(line)
        if source is None and any(step.place for step in line.steps):
            made.missing.append(f"{told}: no picture of the source (step 0)")
        made.missing += [f"{told}: step {s.number}" for s in line.steps if s.outcome == "missing"]
        made.failed += [
            f"{told}: step {s.number}: {s.detail or s.outcome}"
            for s in line.steps
            if s.outcome not in ("edited", "missing", "reported")
        ]
    made.lines.sort(key=lambda line: _order(line.track))
    return made


def _order(track: Track) -> tuple[str, str, str, str, int]:
    return (track.source, track.cycle, track.editor, track.settings.label, track.repeat)


def _steps(found: dict[int, FoundFrame], meant: int) -> tuple[Step, ...]:
    """Every step up to the last found or meant, gaps and early ends included."""
    last = max(found, default=0)
    steps = []
    for number in range(1, last + 1):
        frame = found.get(number)
        if frame is None:
            steps.append(Step(number, None, "missing", "imported without this frame"))
        else:
            steps.append(Step(number, frame, frame.outcome, frame.detail))
    ended = bool(steps) and steps[-1].outcome not in ("edited", "reported", "missing")
    if last < meant and not ended:
        why = f"the import has no frame from here on; {meant} steps were expected"
        steps.append(Step(last + 1, None, "failed", why))
    return tuple(steps)


def _distinct(
    tracks: dict[Track, dict[int, list[FoundFrame]]], wishes: Wishes, made: Assembly
) -> dict[Track, dict[int, FoundFrame]]:
    """Each step once: equal pictures collapse, different ones are conflicts or repeats."""
    split: dict[Track, dict[int, FoundFrame]] = {}
    collapsed: list[str] = []
    last: dict[Track, int] = {}
    for track in tracks:
        alike = replace(track, repeat=0)
        last[alike] = max(last.get(alike, 0), track.repeat)
    for track, steps in tracks.items():
        for number, frames in steps.items():
            variants = _variants(frames) if len(frames) > 1 else frames
            if len(variants) < len(frames):
                collapsed.append(f"{track}: step {number}")
            if len(variants) > 1:
                names = tuple(_name(frame) for frame in variants)
                made.conflicts.append(Conflict(f"{track}: step {number}", names))
            for index, frame in enumerate(variants):
                beyond = last[replace(track, repeat=0)] + index
                other = replace(track, repeat=beyond) if index else track
                split.setdefault(other, {})[number] = frame
    if collapsed:
        made.notes.append(
            f"{_count(len(collapsed), 'step')} come several times with equal bytes and are taken "
            f"once: {shown(collapsed)}."
        )
    if made.conflicts and wishes.conflicts == "repeat":
        made.notes.append(
            f"{_count(len(made.conflicts), 'step')} with different pictures: the further ones are "
            "kept as repeats, in the order of their names."
        )
    return split


def _variants(frames: Sequence[FoundFrame]) -> list[FoundFrame]:
    """The frames of one step that differ, in the order of their names."""
    ordered = sorted(frames, key=_name)
    known: dict[str, FoundFrame] = {}
    for frame in ordered:
        told = sha256(frame.place.read()) if frame.place else f"{frame.outcome}: {frame.detail}"
        known.setdefault(told, frame)
    # A record without a picture adds nothing where there is a picture.
    pictured = [frame for frame in known.values() if frame.place]
    return pictured or list(known.values())


def _name(frame: FoundFrame) -> str:
    return frame.place.name if frame.place else frame.outcome


def _sources_apart(
    tracks: dict[Track, dict[int, FoundFrame]], finds: Finds, made: Assembly
) -> dict[Track, str]:
    """New names for the sources of tracks whose picture is not the one of that name.

    Chains of one source are compared with each other, so its picture must be one and the same.
    """
    pictures: dict[str, dict[str, list[Track]]] = {}
    digests: dict[Place, str] = {}
    for track, steps in tracks.items():
        known = finds.sources.get(track.source)
        place = steps[0].place if 0 in steps else None
        for where in (place, known.place if known else None):
            if where:
                digests.setdefault(where, sha256(where.read()))
        place = place or (known.place if known else None)
        if place:
            pictures.setdefault(track.source, {}).setdefault(digests[place], []).append(track)
    renamed: dict[Track, str] = {}
    for name, variants in pictures.items():
        # The picture most chains have keeps the name; of equals the first by its hash.
        order = sorted(variants, key=lambda digest: (-len(variants[digest]), digest))
        for digest in order[1:]:
            for track in variants[digest]:
                renamed[track] = f"{name}-{digest[:6]}"
        if len(order) > 1:
            made.notes.append(
                f"Source {name!r} has {len(order)} different pictures; chains from a different "
                f"one are of another source: {', '.join(f'{name}-{d[:6]}' for d in order[1:])}."
            )
    return renamed


def legal_names(names: Iterable[str], what: str) -> dict[str, str]:
    """A legal name for each name: lower case, few signs, no two alike."""
    found: dict[str, str] = {}
    for name in sorted(set(names)):
        plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or what
        if len(plain) > NAME_LENGTH:
            plain = f"{plain[: NAME_LENGTH - 7].rstrip('-._')}-{_short(name)}"
        found[name] = plain
    counts = Counter(found.values())
    for name, plain in found.items():
        if counts[plain] > 1 and plain != name:
            found[name] = f"{plain[: NAME_LENGTH - 7]}-{_short(name)}"
    if len(set(found.values())) < len(found):
        raise ImportProblem(f"the names of the {what}s are too alike: {shown(sorted(found))}")
    return found


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:6]


def shown(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
