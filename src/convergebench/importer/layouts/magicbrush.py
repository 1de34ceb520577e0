"""MagicBrush and what models made of it: `<id>/<id>-input.png`, `<id>-output1.png` and so on.

The dataset's own tree has `images/<id>/` with an input, a mask and an output per turn, and
`edit_sessions.json` or `edit_turns.json` beside it. A model's results are a tree of `<id>/` folders
with `<id>_1.png` and `<id>_iter_2.png` (edits of its own edits: a chain); `<id>_inde_2.png` are
edits of the dataset's outputs, which is no chain.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Final

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, FoundSource, Layout, Look, Wishes
from convergebench.importer.layouts.turns import Session, gather, input_turn, name_editors
from convergebench.wording import counted

ANNOTATIONS: Final = ("edit_sessions.json", "edit_turns.json")
CAPTIONS: Final = "global_descriptions.json"
_NAMED: Final = re.compile(r"(?P<id>.+)-(?P<what>input|output|inpaint|mask)(?P<turn>\d*)")
_NUMBERED: Final = re.compile(r"(?P<id>.+?)_(?:(?P<what>iter|inde)_)?(?P<turn>\d+)")


@dataclass(frozen=True)
class Name:
    """What a picture's name says: whose, what, which turn, and the folder its tree begins in."""

    id: str
    what: str
    turn: int
    tree: str
    path: str


@dataclass
class Annotation:
    """The turns of every session, and what was wrong with them."""

    sessions: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    unclear: int = 0
    different: int = 0


def parse(path: str) -> Name | None:
    """Read a picture's path, or None when it is not named as in MagicBrush."""
    folder, _, file = path.rpartition("/")
    stem = os.path.splitext(file)[0]
    above, _, last = folder.rpartition("/")
    if match := _NAMED.fullmatch(stem):
        tree = above if last == match["id"] else folder
        what, turn = match["what"], int(match["turn"] or 0)
        # `<id>-input` has no number and every other name has one, counted from 1.
        return (
            Name(match["id"], what, turn, tree, path) if (what == "input") == (not turn) else None
        )
    match = _NUMBERED.fullmatch(stem)
    if match and match["id"] == last and int(match["turn"]):
        return Name(last, match["what"] or "output", int(match["turn"]), above, path)
    return None


def _recognise(look: Look) -> str:
    if look.is_file or not look.images:
        return ""
    names = [parse(path) for path in look.images]
    if not all(names):
        return ""
    annotated = [f for f in look.files if f.rpartition("/")[2] in ANNOTATIONS]
    named = [name for name in names if name and _NAMED.fullmatch(_stem(name.path))]
    made = [name for name in named if name.what in ("output", "inpaint")]
    turns = [name for name in names if name and re.search(r"_(iter|inde)_\d+$", _stem(name.path))]
    if annotated:
        return f"{annotated[0]}, and pictures named as in MagicBrush"
    if made and len(named) == len(names):
        return f"pictures named as in MagicBrush ({made[0].path})"
    if turns:
        return f"a model's pictures named as in MagicBrush ({turns[0].path})"
    return ""


def _stem(path: str) -> str:
    return os.path.splitext(path.rpartition("/")[2])[0]


def _read(look: Look, wishes: Wishes) -> Finds:
    names = [name for name in map(parse, look.images) if name]
    made = [name for name in names if name.what in ("output", "inpaint", "iter")]
    if not made:
        raise ImportProblem(
            f"{look.root.name} has no picture named as in MagicBrush: expected "
            "<id>/<id>-output1.png, or <id>/<id>_1.png of a model"
        )
    told = _annotation(look)
    editors, note = name_editors((name.tree for name in made), look, wishes)
    sessions = _sessions(names, editors, told)
    finds = gather(look, list(sessions.values()), wishes)
    _share_sources(finds, look, names)
    finds.notes += [note] if note else []
    finds.notes += _notes(names, sessions, told, editors)
    used = {frame.place.name for frame in finds.frames if frame.place}
    used |= {source.place.name for source in finds.sources.values() if source.place}
    finds.unread = [path for path in look.files if path not in used and path not in told.files]
    return finds


def _sessions(
    names: list[Name], editors: dict[str, str], told: Annotation
) -> dict[tuple[str, str, str], Session]:
    """A session per tree, id and naming; inpainted pictures beside others are another editor's."""
    mixed = {
        tree for tree in editors
        if {"inpaint", "output"} <= {name.what for name in names if name.tree == tree}
    }  # fmt: skip
    sessions: dict[tuple[str, str, str], Session] = {}
    for name in sorted(names, key=lambda name: (name.what == "input", name.path)):
        apart = "inpaint" if name.what == "inpaint" and name.tree in mixed else ""
        if name.what in ("output", "inpaint", "iter"):
            editor = "-".join(filter(None, (editors[name.tree], apart)))
            key = (name.tree, name.id, apart)
            session = sessions.setdefault(key, _session(name.id, editor, told))
            session.add(name.turn, name.path)
        elif name.what == "input":  # inputs come last, when their sessions are known
            for apart in ("", "inpaint"):
                if found := sessions.get((name.tree, name.id, apart)):
                    found.add(0, name.path)
    return sessions


def _session(name: str, editor: str, told: Annotation) -> Session:
    turns = told.sessions.get(name, {})
    session = Session(name, editor, told=max(turns, default=0))
    session.description = told.captions.get(name, "")
    outputs = [turns.get(n, {}).get("output", "") for n in range(1, session.told + 1)]
    source = turns.get(1, {}).get("input", "")
    for number, turn in turns.items():
        about = input_turn(turn.get("input", ""), number, outputs, source)
        session.turns[number] = replace(about, prompt=turn.get("instruction"))
    return session


def _share_sources(finds: Finds, look: Look, names: list[Name]) -> None:
    """Give a model's sessions the dataset's input where their own tree has none."""
    inputs = {name.id: name.path for name in names if name.what == "input"}
    started = {frame.track for frame in finds.frames if frame.step == 0}
    for frame in finds.frames:
        source = frame.track.source
        if frame.track not in started and source in inputs:
            known = finds.sources.get(source, FoundSource())
            finds.sources[source] = replace(known, place=look.place(inputs[source]))


def _annotation(look: Look) -> Annotation:
    told = Annotation()
    for path in look.files:
        name = path.rpartition("/")[2]
        if name == CAPTIONS:
            told.files.append(path)
            _captions(look.json(path), told)
        elif name in ANNOTATIONS:
            told.files.append(path)
            content = look.json(path)
            if name == "edit_turns.json":
                _expect(content, list, path, "a list of turns")
                for turn in content:
                    _turn(turn, None, None, told)
            else:
                _expect(content, dict, path, "an object of sessions by id")
                for key, turns in content.items():
                    _expect(turns, list, path, f"a list of turns for session {key}")
                    for number, turn in enumerate(turns, 1):
                        _turn(turn, key, number, told)
    return told


def _turn(turn: Any, key: str | None, number: int | None, told: Annotation) -> None:
    """Take one annotated turn; the number its output has beats its place in the list."""
    fields = {k: v for k, v in turn.items() if isinstance(v, str)} if isinstance(turn, dict) else {}
    named = parse(fields.get("output", ""))
    if named and named.turn and (key is None or named.id == key):
        key, number = named.id, named.turn
    if key is None or number is None:
        told.unclear += 1
        return
    known = told.sessions.setdefault(key, {}).setdefault(number, fields)
    told.different += known.get("instruction") != fields.get("instruction")


def _captions(content: Any, told: Annotation) -> None:
    for key, captions in content.items() if isinstance(content, dict) else ():
        caption = captions.get(f"{key}-input.png") if isinstance(captions, dict) else None
        if isinstance(caption, str):
            told.captions[key] = caption


def _expect(value: Any, kind: type, path: str, expected: str) -> None:
    if not isinstance(value, kind):
        raise ImportProblem(f"{path}: expected {expected}, got {type(value).__name__}")


def _notes(
    names: list[Name],
    sessions: dict[tuple[str, str, str], Session],
    told: Annotation,
    editors: dict[str, str],
) -> list[str]:
    notes = []
    counts = Counter(name.what for name in names)
    if counts["mask"]:
        notes.append(f"Not read: {counted(counts['mask'], 'mask')}.")
    if counts["inde"]:
        notes.append(
            f"Not read: {counted(counts['inde'], 'picture')} named <id>_inde_N. They are edits of "
            "the dataset's own outputs, not of the editor's last frame: no chain."
        )
    if any(apart for _, _, apart in sessions):
        notes.append("Pictures named <id>-inpaintN beside <id>-outputN are another editor's.")
    found = {session.source for session in sessions.values()}
    if absent := len(set(told.sessions) - found):
        notes.append(f"Left out: {counted(absent, 'annotated session')} without a picture here.")
    if silent := sum(1 for s in sessions.values() if not s.told):
        notes.append(
            f"Not recorded: the instructions of {silent} of {counted(len(sessions), 'session')}."
        )
    if told.unclear:
        notes.append(
            f"Not read: {counted(told.unclear, 'annotated turn')} without an output's name."
        )
    if told.different:
        notes.append(
            f"Two different instructions for {counted(told.different, 'turn')}: that of "
            f"{told.files[0]} is taken."
        )
    if caveats := sum(1 for s in sessions.values() for turn in s.turns.values() if turn.caveats):
        notes.append(
            "Another input than the frame before, recorded with the step: "
            f"{counted(caveats, 'turn')}."
        )
    starts = {name.id for name in names if name.what == "input"}
    if lost := len(found - starts):
        where = "Import the folder that holds the dataset's images/ as well to have them."
        notes.append(f"No <id>-input picture here: {counted(lost, 'source')}. {where}")
    if len(editors) > 1:
        notes.append("Trees without inputs take those of the tree that has them.")
    return notes


LAYOUT: Final = Layout(
    name="magicbrush",
    summary="ID/ID-input.png, ID-output1.png … with edit_sessions.json; a model's ID/ID_1.png",
    recognise=_recognise,
    read=_read,
)
