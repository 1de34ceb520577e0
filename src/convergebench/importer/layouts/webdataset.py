"""A WebDataset: tar shards whose members of one name are one sample.

`key.png` is a step's picture, `key.json` says which, `key.txt` is its prompt. One sample may hold
several steps: `key.0.png`, `key.1.png`. See `samples` for the fields, `shards` for the archives.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from convergebench.cycle import CYCLE_EDITS, CycleKind
from convergebench.errors import ImportProblem
from convergebench.importer.found import (
    IMAGES,
    Finds,
    FoundCycle,
    FoundFrame,
    FoundScore,
    Layout,
    Look,
    Place,
    Track,
    Wishes,
)
from convergebench.importer.layouts.samples import (
    STEP_LIMIT,
    Told,
    compared_with,
    from_json,
    from_key,
    our_metric,
    settle,
)
from convergebench.importer.layouts.shards import SHARDS, Member, Shard, Stream
from convergebench.wording import counted, in_order

KINDS: Final = get_args(CycleKind)
_FIRST: Final = frozenset(("source", "input", "original"))
_MADE: Final = frozenset(("", "output", "edited", "frame"))
_NUMBER: Final = re.compile(r"(?:step|turn|output|frame)?[-_]?(\d{1,9})", re.I)


@dataclass
class Sample:
    """The members of one key, as they come."""

    key: str
    shard: Shard
    pictures: list[tuple[str, Place]] = field(default_factory=list)
    about: tuple[bytes, str] | None = None
    text: str | None = None


@dataclass
class _Reading:
    """An import under way: what was found, and what has to be said about it at the end."""

    look: Look
    wishes: Wishes
    finds: Finds = field(default_factory=Finds)
    spool: Path | None = None
    spooled: int = 0
    kinds: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    prompts: dict[str, dict[int, set[str | None]]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    scores: dict[tuple[Track, int, str], list[FoundScore]] = field(default_factory=dict)
    adrift: Counter[str] = field(default_factory=Counter)
    early: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    unused: Counter[str] = field(default_factory=Counter)
    assumed: Counter[str] = field(default_factory=Counter)


def _recognise(look: Look) -> str:
    shards = [path for path in look.files if path.lower().endswith(SHARDS)]
    if not shards or look.images:
        return ""
    return f"{len(shards)} tar shards" if len(shards) > 1 else f"a tar archive ({shards[0]})"


def _read(look: Look, wishes: Wishes) -> Finds:
    shards = [path for path in look.files if path.lower().endswith(SHARDS)]
    if not shards:
        raise ImportProblem(
            f"{look.root.name} has no tar shard: expected files ending in {', '.join(SHARDS)}"
        )
    reading = _Reading(look, wishes)
    reading.finds.unread += [path for path in look.files if path not in set(shards)]
    try:
        for path in shards:
            _read_shard(Shard(Path(look.place(path).path), path), reading)
        if not reading.finds.frames:
            raise ImportProblem(
                f"{look.root.name} has no sample with a picture: expected members such as "
                "key.png and key.json. If it is a packed folder, unpack it and import the folder."
            )
        _finish(reading)
    except BaseException:
        _sweep(reading.spool)
        raise
    if spool := reading.spool:
        reading.finds.cleanup = lambda: _sweep(spool)
    return reading.finds


def _sweep(spool: Path | None) -> None:
    if spool:
        shutil.rmtree(spool, ignore_errors=True)


def _read_shard(shard: Shard, reading: _Reading) -> None:
    """Take every sample of a shard; the members of one follow each other."""
    sample: Sample | None = None
    for member, stream in shard.members():
        folder, slash, file = member.name.rpartition("/")
        stem, _, ending = file.partition(".")
        key = f"{folder}{slash}{stem}"
        if not stem or not ending:
            reading.unread[f"{shard.name}: without a key or an ending"] += 1
            continue
        if sample is None or sample.key != key:
            _take(sample, reading)
            sample = Sample(key, shard)
        _add(sample, member, ending.lower(), stream, reading)
    _take(sample, reading)
    reading.finds.notes += shard.notes
    reading.finds.notes += [
        f"{shard.name}: not read: {count} {why}." for why, count in sorted(shard.refused.items())
    ]


def _add(sample: Sample, member: Member, ending: str, stream: Stream, reading: _Reading) -> None:
    name = f"{sample.shard.name}/{member.name}"
    variant, last = os.path.splitext(f".{ending}" if "." not in ending else ending)
    if last == "":
        variant, last = "", variant
    if last in IMAGES:
        sample.pictures.append((variant.strip("."), _place(name, member, last, stream, reading)))
    elif ending == "json":
        sample.about = stream.text(member), name
    elif ending == "txt":
        sample.text = stream.text(member).decode("utf-8", "replace").strip() or None
    else:
        reading.unread[f"{sample.shard.name}: .{ending}"] += 1


def _place(name: str, member: Member, ending: str, stream: Stream, reading: _Reading) -> Place:
    """Where a picture's bytes are: in the tar itself, or spooled under a number of our own."""
    if not stream.shard.compressed:
        return Place(name, stream.shard.path, member.offset, member.size)
    if reading.spool is None:
        reading.spool = Path(tempfile.mkdtemp(prefix="convergebench-import-"))
    reading.spooled += 1
    path = reading.spool / f"{reading.spooled:07d}{ending}"
    stream.spool(member, path)
    return Place(name, path)


def _take(sample: Sample | None, reading: _Reading) -> None:
    """Turn a sample into frames and scores."""
    if sample is None:
        return
    where, ruled = f"{sample.shard.name}: sample {sample.key}", from_key(sample.key)
    told = _told(sample, ruled)
    own = ruled.step if told is None or told.step is None else told.step
    if told is None or (not sample.pictures and (own is None or sample.about is None)):
        # A file about the whole dataset (info.json), or a text alone, is no step of a chain.
        if sample.about or sample.text is not None:
            reading.unread[f"{sample.shard.name}: samples without a picture"] += 1
        reading.adrift.update(list(told.scores) if told else ())
        return
    reading.unused.update(told.unused)
    track = _track(told, ruled, reading, where)
    prompt = told.prompt or sample.text
    first, placed = reading.wishes.first, 0
    if own is not None:
        own -= first
    for variant, place in sample.pictures:
        step = _step(variant, own, len(sample.pictures), first)
        if step is None and variant.lower() in _MADE:
            raise ImportProblem(
                f"{where} does not say its step: expected a field 'step' in its JSON, a name as in "
                "source__editor__step_003, or pictures as in key.0.png, key.1.png"
            )
        if step is None:
            reading.unread[f"{sample.shard.name}: .{variant}{os.path.splitext(place.name)[1]}"] += 1
            continue
        if step < 0:
            reading.unread[f"{sample.shard.name}: pictures before the source"] += 1
            reading.early["picture"] += 1
            continue
        _frame(track, step, place, prompt, told, reading, where)
        placed += 1
    if own is None:
        reading.adrift.update(list(told.scores))
        return
    if own < 0:
        reading.early["score"] += len(told.scores)
        return
    if not placed and (told.outcome or told.scores):
        _frame(track, own, None, prompt, told, reading, where)
    elif not placed:
        reading.unread[f"{sample.shard.name}: samples without a picture"] += 1
    for name, value in told.scores.items():
        _score(track, own, name, value, reading)


def _told(sample: Sample, ruled: Told) -> Told | None:
    """What a sample's JSON says; None for one that is none of ours. Raises ImportProblem."""
    if sample.about is None:
        return Told()
    try:
        return from_json(*sample.about)
    except ImportProblem:
        if sample.pictures or ruled.step is not None:
            raise
        return None


def _step(variant: str, own: int | None, pictures: int, first: int) -> int | None:
    """The step of one of a sample's pictures, by the word or number before its ending."""
    if match := _NUMBER.fullmatch(variant):
        return int(match[1]) - first
    if variant.lower() in _FIRST:
        return 0
    if variant.lower() not in _MADE:
        return None
    return 1 if own is None and variant and pictures > 1 else own


def _track(told: Told, ruled: Told, reading: _Reading, where: str) -> Track:
    wishes = reading.wishes
    source = told.source or ruled.source or wishes.source
    if source is None:
        raise ImportProblem(
            f"{where} does not say its source: expected a field 'source' or 'image' in its JSON, a "
            "name as in source__editor__step_003, or --source NAME for all"
        )
    editor = told.editor or ruled.editor or wishes.editor
    if editor is None:
        editor = _archive(reading.look)
        reading.assumed["editor"] += 1
    cycle = told.cycle or ruled.cycle or wishes.cycle
    if cycle is None:
        cycle = wishes.kind or "free"
        reading.assumed["cycle"] += 1
    else:
        reading.named.add(cycle)
    if told.kind is not None and told.kind not in KINDS:
        raise ImportProblem(f"{where}: kind {told.kind[:40]!r} is none of {', '.join(KINDS)}")
    reading.kinds[cycle] |= {told.kind} if told.kind else set()
    repeat = told.repeat or ruled.repeat
    return Track(source, cycle, editor, repeat, told.settings)


def _archive(look: Look) -> str:
    return re.split(r"\.t(?:ar|gz|xz)", look.root.resolve().name)[0]


def _frame(
    track: Track,
    step: int,
    place: Place | None,
    prompt: str | None,
    told: Told,
    reading: _Reading,
    where: str,
) -> None:
    if step > STEP_LIMIT:
        raise ImportProblem(f"{where}: step {step} is beyond {STEP_LIMIT:,}")
    outcome = told.outcome or ("edited" if place else "reported")
    if place and outcome not in ("edited", "malformed"):
        reading.unread[f"pictures of steps that are {outcome}"] += 1
        place = None
    reading.finds.frames.append(
        FoundFrame(
            track,
            step,
            place,
            prompt=prompt if step else None,
            outcome=outcome,
            detail=told.detail,
            call=told.call,
            seed=told.seed,
        )
    )
    if step:
        reading.prompts.setdefault(track.cycle, {}).setdefault(step, set()).add(prompt)


def _score(track: Track, step: int, name: str, value: float | None, reading: _Reading) -> None:
    metric = our_metric(name)[0]
    score = FoundScore(track, step, metric, value, f"field {name}", compared_with(metric))
    known = reading.scores.setdefault((track, step, metric), [])
    if any(other.value == value for other in known):
        reading.finds.collapsed += 1
    else:
        known.append(score)


def _finish(reading: _Reading) -> None:
    """Cycles, scores and everything that has to be said."""
    finds, notes = reading.finds, reading.finds.notes
    settle(reading.scores, finds, repeat=reading.wishes.conflicts == "repeat")
    for cycle in sorted({frame.track.cycle for frame in finds.frames}):
        kind = _kind(cycle, reading)
        finds.cycles[cycle] = FoundCycle(kind, _prompts(cycle, kind, reading))
    if reading.assumed["editor"]:
        notes.append(
            f"No editor is named by {counted(reading.assumed['editor'], 'sample')}: called "
            f"{_archive(reading.look)!r} after the archive. --editor NAME says otherwise."
        )
    if reading.assumed["cycle"]:
        samples = counted(reading.assumed["cycle"], "sample")
        notes.append(f"No cycle is named by {samples}. --cycle NAME names it.")
    if reading.adrift:
        count = counted(reading.adrift.total(), "score")
        notes.append(
            f"{count} not read, since nothing says of which step: {in_order(reading.adrift)}. A "
            "field 'step' in the sample's JSON says it."
        )
    if early := [one for one in reading.early.items() if one[1]]:
        notes.append(
            f"{' and '.join(counted(count, what) for what, count in early)} not "
            f"read: they come before number {reading.wishes.first}, which is the source's."
        )
    if reading.unused:
        names = [name for name, _ in reading.unused.most_common(8)]
        more = f" and {len(reading.unused) - 8} more" if len(reading.unused) > 8 else ""
        notes.append(f"Fields of the JSON that are not read: {', '.join(names)}{more}.")
    if reading.spool:
        notes.append(f"Unpacked for the import: {counted(reading.spooled, 'picture')}.")
    finds.unread += [
        f"{what} ({counted(count, 'member')})" for what, count in sorted(reading.unread.items())
    ]


def _kind(cycle: str, reading: _Reading) -> CycleKind:
    """What a cycle is: as wished, as its samples say, as it is called, else `free`."""
    told = reading.kinds[cycle]
    if reading.wishes.kind:
        return reading.wishes.kind
    if len(told) > 1:
        raise ImportProblem(f"cycle {cycle!r} has several kinds: {', '.join(sorted(told))}")
    for kind in KINDS:
        if kind in told or (not told and kind == cycle.lower() and cycle in reading.named):
            found: CycleKind = kind
            return found
    reading.finds.notes.append(
        f"Nothing says what cycle {cycle!r} is: taken as free, with no home to compare with. "
        "--kind says otherwise."
    )
    return "free"


def _prompts(cycle: str, kind: CycleKind, reading: _Reading) -> tuple[str | None, ...]:
    """The edits' prompts, where all chains agree on them."""
    if reading.wishes.prompts:
        return reading.wishes.prompts
    said = reading.prompts.get(cycle, {})
    every = set().union(*said.values()) if said else set()
    edits = CYCLE_EDITS.get(kind) or (1 if len(every) < 2 else max(said))
    asked: list[set[str | None]] = [set() for _ in range(edits)]
    for step, texts in said.items():
        asked[(step - 1) % edits] |= texts
    return tuple(texts.pop() if len(texts) == 1 else None for texts in asked)


LAYOUT: Final = Layout(
    name="webdataset",
    summary="tar shards of samples: key.png with key.json or key.txt, or source__editor__step_003",
    recognise=_recognise,
    read=_read,
)
