"""ImgEdit's multi-turn data, and a benchmark's turns with a model's pictures.

Two shapes. The dataset has a folder per session with `origin_0.png`, `result_0.png`,
`origin_1.png`, … and a Parquet, JSON or JSONL annotation whose rows are lists of turns under
`data`. The benchmark has `{"1": {"id": "000066341.jpg", "turn1": …, "turn2": …}}`; how a model's
pictures are named there is nowhere written, so several namings are understood.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import Final

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, Layout, Look, Wishes
from convergebench.importer.layouts.imgedit_annotation import (
    ENDINGS,
    Row,
    entries,
    row_of,
    stem_of,
    task_of,
)
from convergebench.importer.layouts.turns import Session, gather, name_editors
from convergebench.wording import counted

PEEKED: Final = 8
"""How many annotations are opened to see whether one is ImgEdit's, the likeliest first."""

PEEK: Final = 8_000_000
"""Largest annotation that is opened to recognise a folder."""

JUDGED: Final = "all_dataset_gpt_score.json"
_STAGED: Final = re.compile(r"(origin|result|mask)_(\d+)")
_PLAIN: Final = re.compile(r"(?:turn|round|edit|edited|output|result|step|iter)?[-_]?(\d+)", re.I)
_KEYED: Final = re.compile(
    r"(?P<key>.+?)[-_](?:(?:turn|round|edit|edited|output|result|step|iter)[-_]?)?(?P<turn>\d+)",
    re.I,
)
_FIRST: Final = frozenset(("origin", "original", "source", "input"))


def _recognise(look: Look) -> str:
    if look.is_file or not look.images:
        return ""
    stems = [stem_of(path) for path in look.images]
    if all(map(_STAGED.fullmatch, stems)):
        if {"origin_0", "result_0"} <= set(stems):
            return "folders with origin_0 and result_0, as in ImgEdit"
        return ""
    told = [p for p in look.files if p.lower().endswith((".json", ".jsonl"))]
    told.sort(key=lambda path: (not task_of(path), "turn" not in path.lower(), path))
    for path in told[:PEEKED]:
        if look.place(path).size > PEEK:
            continue
        try:
            first = next(entries(look, path), None)
        except ImportProblem:
            continue
        if first and isinstance(first[1], dict) and isinstance(first[1].get("turn1"), str):
            return f"{path} has turns as in ImgEdit's benchmark"
    return ""


def _read(look: Look, wishes: Wishes) -> Finds:
    rows: list[Row] = []
    files: list[str] = []
    notes: list[str] = []
    staged = [path for path in look.images if _STAGED.fullmatch(stem_of(path))]
    inside = {path.rpartition("/")[0] for path in staged} - {""}
    for path in look.files:
        folder, _, name = path.rpartition("/")
        # Sessions' own files (result.json, judge.json) and the judge's scores are no annotation.
        if not path.lower().endswith(ENDINGS) or folder in inside or name == JUDGED:
            continue
        found = [row for key, e in entries(look, path) if (row := row_of(key, e, path))]
        files += [path] if found else []
        rows += found
    bench = [row for row in rows if not row.outputs]
    if bench and not any(stem_of(path).startswith("origin_") for path in staged):
        staged = []  # a model's KEY/result_1.png
    if not staged and not bench:
        raise ImportProblem(
            f"{look.root.name} is not laid out as ImgEdit's multi-turn data: expected folders with "
            "origin_0.png and result_0.png, or a JSON with turn1, turn2 … for each key"
        )
    sessions: list[Session] = []
    if staged:
        data = [row for row in rows if row.outputs]
        sessions += _staged(look, staged, data, wishes, notes, files)
    if bench:
        sessions += _keyed(look, bench, wishes, notes)
    finds = gather(look, sessions, wishes)
    used = {frame.place.name for frame in finds.frames if frame.place} | set(files)
    finds.unread = [path for path in look.files if path not in used]
    finds.notes += notes
    if not finds.frames and not bench:
        raise ImportProblem(f"{look.root.name} has pictures origin_N and no result_N")
    if not finds.frames:
        raise ImportProblem(
            f"{files[0]} has {len(bench)} sessions, and no picture is named after one: expected "
            f"{bench[0].key}_turn1.png or {bench[0].key}/turn1.png"
        )
    return finds


# The dataset: origin_N, result_N.


def _staged(
    look: Look,
    pictures: list[str],
    rows: list[Row],
    wishes: Wishes,
    notes: list[str],
    files: list[str],
) -> list[Session]:
    """A session per folder; an annotation's order of turns beats the numbers in file names."""
    folders: dict[str, dict[str, str]] = defaultdict(dict)
    for path in pictures:
        folder, _, file = path.rpartition("/")
        folders[folder][os.path.splitext(file)[0]] = path
    by_folder = _rows_by_folder(rows, folders)
    editors, note = name_editors({""}, look, wishes)
    notes += [note] if note else []
    sessions, silent, present = [], 0, set(look.files)
    for folder, files_here in folders.items():
        row = by_folder.get(folder) or _result_json(look, folder, present, files)
        name = folder.rpartition("/")[2] or look.root.resolve().name
        task = task_of(f"{look.root.resolve().name}/{folder}") or (row.task if row else "")
        session = Session(name, editors[""], task, told=len(row.prompts) if row else 0)
        first = stem_of(row.source) if row and row.outputs else "origin_0"
        if first in files_here:
            session.add(0, files_here[first])
        steps = {
            stem: int(stem.partition("_")[2]) + 1 for stem in files_here if stem[:7] == "result_"
        }
        if row and row.outputs:
            steps = {stem_of(made): number for number, made in enumerate(row.outputs, 1)}
        for stem, step in steps.items():
            if stem in files_here:
                session.add(step, files_here[stem])
        if row:
            session.turns = {n: row.turn(n) for n in range(1, session.told + 1)}
        silent += row is None
        sessions.append(session)
    kept = [session for session in sessions if any(session.pictures)]
    _staged_notes(kept, rows, len(by_folder), silent, pictures, notes)
    return kept


def _staged_notes(
    sessions: list[Session],
    rows: list[Row],
    matched: int,
    silent: int,
    pictures: list[str],
    notes: list[str],
) -> None:
    inputs = sum(1 for path in pictures if re.fullmatch(r"origin_[1-9]\d*", stem_of(path)))
    if inputs:
        notes.append(
            f"Not read: {counted(inputs, 'picture')} origin_1, origin_2 …, the inputs that turns "
            "had of their own. Whether each is the result before it was not checked, so a session "
            "may be no chain of edits on edits."
        )
    if masks := sum(1 for path in pictures if stem_of(path).startswith("mask_")):
        notes.append(f"Not read: {counted(masks, 'mask')}.")
    if absent := len(rows) - matched:
        notes.append(f"Without a picture here: {absent} of {len(rows)} annotated sessions.")
    if silent:
        notes.append(
            f"Not recorded: the instructions of {silent} of {counted(len(sessions), 'session')}."
        )
    if overall := sum(
        1 for s in sessions if s.turns.get(1) and "session_prompt" in s.turns[1].parameters
    ):
        notes.append(
            f"An instruction for all turns begins {counted(overall, 'session')}: it is recorded "
            "with every step as session_prompt, and is no step."
        )


def _rows_by_folder(rows: list[Row], folders: dict[str, dict[str, str]]) -> dict[str, Row]:
    """Which annotated session each folder is: by its name, and the folder's above where given."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        by_name[folder.rpartition("/")[2]].append(folder)
    found: dict[str, Row] = {}
    for row in rows:
        told = row.outputs[0].rpartition("/")[0]
        candidates = by_name.get(told.rpartition("/")[2], [])
        exact = [f for f in candidates if f == told or f.endswith(f"/{told}")]
        for folder in exact or (candidates if len(candidates) == 1 else []):
            found.setdefault(folder, row)
    return found


def _result_json(look: Look, folder: str, present: set[str], files: list[str]) -> Row | None:
    """The instructions the pipeline leaves in a session's folder (`round1_prompt` …)."""
    path = f"{folder}/result.json" if folder else "result.json"
    if path not in present:
        return None
    content = look.json(path)
    row = Row(folder, "")
    while isinstance(content, dict) and f"round{len(row.prompts) + 1}_prompt" in content:
        prompt = content[f"round{len(row.prompts) + 1}_prompt"]
        row.prompts.append(prompt if isinstance(prompt, str) else None)
    if not any(row.prompts):
        return None
    files.append(path)
    return row


# The benchmark: turn1, turn2, turn3 by key.


def _keyed(look: Look, rows: list[Row], wishes: Wishes, notes: list[str]) -> list[Session]:
    known: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        known[row.key].append(row)
    keys = set(known)
    for row in rows:
        if (stem := stem_of(row.source)) and stem not in keys:
            known[stem].append(row)
    made: list[tuple[Row, int, str, str]] = []
    unclear = []
    for path in look.images:
        if not (found := _keyed_name(path, known)):
            continue
        name, step, folder = found
        candidates = known[name]
        if len(candidates) > 1:
            candidates = [row for row in candidates if row.task and row.task == task_of(path)]
        if len(candidates) == 1:
            made.append((candidates[0], step, folder, path))
        else:
            unclear.append(path)
    if unclear:
        notes.append(
            f"Not read: {counted(len(unclear), 'picture')} that could be of several annotated "
            f"sessions, as {unclear[0]}. Name them after the session's key."
        )
    return _keyed_sessions(look, rows, made, wishes, notes)


def _keyed_name(path: str, known: dict[str, list[Row]]) -> tuple[str, int, str] | None:
    """Whose picture it is, its step, and the folder all the pictures are in."""
    folder, _, _ = path.rpartition("/")
    above, _, last = folder.rpartition("/")
    stem = stem_of(path)
    if (match := _KEYED.fullmatch(stem)) and match["key"] in known:
        return match["key"], int(match["turn"]), above if last == match["key"] else folder
    if last in known:
        if stem.lower() in _FIRST:
            return last, 0, above
        if match := _PLAIN.fullmatch(stem):
            return last, int(match[1]), above
    return None


def _keyed_sessions(
    look: Look,
    rows: list[Row],
    made: list[tuple[Row, int, str, str]],
    wishes: Wishes,
    notes: list[str],
) -> list[Session]:
    # A folder named after a task says nothing of who made the pictures in it.
    made = [(row, step, _without_task(folder), path) for row, step, folder, path in made]
    editors, note = name_editors((folder for _, step, folder, _ in made if step), look, wishes)
    notes += [note] if note else []
    stems = [(row.task, stem_of(row.source)) for row in rows]
    sessions: dict[tuple[int, str], Session] = {}
    for row, step, folder, path in sorted(made, key=lambda m: (m[1] == 0, m[3])):
        key = (id(row), editors.get(folder, ""))
        if step and key not in sessions:
            name = stem_of(row.source) or row.key
            if stems.count((row.task, stem_of(row.source))) > 1:  # one picture, several sessions
                name = f"{name}-{row.key}"
            session = sessions[key] = Session(name, key[1], row.task, told=len(row.prompts))
            session.turns = {n: row.turn(n) for n in range(1, session.told + 1)}
            session.pictures.update({0: found} if (found := _source(look, row.source)) else {})
        if key in sessions:
            sessions[key].add(step, path)
    if sessions:
        notes.append(
            "ImgEdit says nowhere how a model's pictures of several turns are named: they were "
            "read as KEY_turnN or KEY/turnN, N from 1, 0 the source."
        )
    if absent := len(rows) - len({key for key, _ in sessions}):
        notes.append(f"Without a picture here: {absent} of {len(rows)} annotated sessions.")
    return list(sessions.values())


def _without_task(folder: str) -> str:
    return "/".join(part for part in folder.split("/") if not task_of(part))


def _source(look: Look, told: str) -> list[str]:
    """The file an annotation's `id` means: the path below the root that ends with it."""
    if not told:
        return []
    return [path for path in look.images if path == told or path.endswith(f"/{told}")][:1]


LAYOUT: Final = Layout(
    name="imgedit",
    summary="ID/origin_0.png, result_0.png, result_1.png …; or turn1, turn2 … in a JSON, by key",
    recognise=_recognise,
    read=_read,
)
