"""From what a layout found to chains: legal names, gaps, repeats, contradictions.

Nothing is guessed silently. A step without a picture becomes a record that says so; a step with
two equal pictures becomes one, with a note; with two that differ it is a conflict, refused or kept
as a repeat as the user chooses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from convergebench.chain import PASSED, Outcome
from convergebench.errors import ImportProblem
from convergebench.frame import sha256
from convergebench.importer.found import Conflict, Finds, FoundFrame, Place, Track, Wishes
from convergebench.wording import counted, shown

MOST_GAPS = 10_000
"""So many steps may be missing before a number is no longer taken for a step."""


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

    `pictured` tells whether it brings pictures of its own, and not scores alone.
    """

    track: Track
    pictured: bool
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
    for track, steps in _distinct(tracks, wishes, made).items():
        known = finds.sources.get(track.source)
        first = steps.pop(0, None)
        source = (first.place if first else None) or (known.place if known else None)
        meant = max(finds.expected.get(track, 0), wishes.steps or 0)
        whole = _steps(track, steps, meant)
        pictured = first is not None or any(step.place for step in whole)
        line = Line(track, pictured, source, known.truth if known else None, whole)
        made.lines.append(line)
        if source is None and any(step.place for step in line.steps):
            made.missing.append(f"{track}: no picture of the source (step 0)")
        made.missing += [f"{track}: step {s.number}" for s in line.steps if s.outcome == "missing"]
        made.failed += [
            f"{track}: step {s.number}: {s.detail or s.outcome}"
            for s in line.steps
            if s.outcome not in PASSED
        ]
    used = {line.track.source for line in made.lines}
    spare = sorted(name for name in finds.sources if name not in used)
    if spare:
        made.notes.append(f"{counted(len(spare), 'source')} without a chain: {shown(spare)}.")
    made.lines.sort(key=lambda line: _order(line.track))
    return made


def _order(track: Track) -> tuple[str, str, str, str, int]:
    return (track.source, track.cycle, track.editor, track.settings.label, track.repeat)


def _steps(track: Track, found: dict[int, FoundFrame], meant: int) -> tuple[Step, ...]:
    """Every step up to the last found or meant, gaps and early ends included."""
    last = max(found, default=0)
    if last > MOST_GAPS + 100 * len(found):
        raise ImportProblem(
            f"{track}: {_name(found[last])} would be step {last}, with {len(found)} found in all. "
            "Numbers that do not count from the source are no steps: say what to read with "
            "--pattern, or where counting begins with --first."
        )
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
        once = {number: _variants(frames) for number, frames in steps.items()}
        collapsed += [f"{track}: step {n}" for n in steps if len(once[n]) < len(steps[n])]
        clashing = {number: frames for number, frames in once.items() if len(frames) > 1}
        made.conflicts += [
            Conflict(f"{track}: step {number}", tuple(_name(frame) for frame in frames))
            for number, frames in clashing.items()
        ]
        first, *others = _lanes(steps) if clashing else [{n: once[n][0] for n in once}]
        split[track] = first
        for lane in others:
            last[replace(track, repeat=0)] += 1
            start = {0: first[0]} if 0 in first else {}
            split[replace(track, repeat=last[replace(track, repeat=0)])] = start | lane
    if collapsed:
        made.notes.append(
            f"{counted(len(collapsed), 'step')} with several files of equal bytes, taken once: "
            f"{shown(collapsed)}."
        )
    if made.conflicts and wishes.conflicts == "repeat":
        made.notes.append(
            f"{counted(len(made.conflicts), 'step')} with different pictures: files are told apart "
            "by their folder and name, and each series is a repeat, the longest first."
        )
    return split


def _lanes(steps: dict[int, list[FoundFrame]]) -> list[dict[int, FoundFrame]]:
    """The chains that a track with conflicts really has, the longest first.

    Files that differ only by the numbers in their own name, in one folder, are one series.
    """
    series: dict[str, dict[int, list[FoundFrame]]] = {}
    for number, frames in steps.items():
        for frame in frames:
            folder, _, name = _name(frame).rpartition("/")
            kind = f"{folder}/{re.sub('[0-9]+', '#', name)}"
            series.setdefault(kind, {}).setdefault(number, []).append(frame)
    found: list[dict[int, FoundFrame]] = []
    for kind in sorted(series, key=lambda kind: (-len(series[kind]), kind)):
        mine = {number: _variants(frames) for number, frames in series[kind].items()}
        found += [
            {number: frames[index] for number, frames in mine.items() if len(frames) > index}
            for index in range(max(len(frames) for frames in mine.values()))
        ]
    return found


def _variants(frames: Sequence[FoundFrame]) -> list[FoundFrame]:
    """The frames of one step that differ, in the order of their names."""
    if len(frames) == 1:
        return list(frames)
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
