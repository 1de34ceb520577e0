"""What the records of imports say: where pictures came from, and what to know about them."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from convergebench.gathering import Gathered
from convergebench.store import RunStore
from convergebench.wording import counted


@dataclass(frozen=True)
class Import:
    """One import into a run.

    Attributes:
        run: The run's name here.
        at: When it was made; empty where the record does not say.
        origin: Whose results they are.
        source: What was read.
        layout: As what it was read.
        notes: What the importer had to say.
    """

    run: str
    at: str
    origin: str
    source: str
    layout: str
    notes: tuple[str, ...]


def imports_of(gathered: Gathered) -> list[Import]:
    """Every import that the runs were made by, the oldest of each run first."""
    return [told for run in gathered.runs for told in read_imports(run.store, run.name)]


def read_imports(store: RunStore, run: str) -> list[Import]:
    """A run's imports; a record that cannot be read is said to be so, never left out."""
    found = []
    folder = store.path / "imports"
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        head: Any = None
        with contextlib.suppress(OSError, ValueError, RecursionError), path.open("rb") as lines:
            head = json.loads(lines.readline())
        if not isinstance(head, dict):
            unread = (f"The record imports/{path.name} cannot be read.",)
            found.append(Import(run, "", path.stem, "", "", unread))
            continue
        at, origin, source, layout = (
            str(head.get(name) or "") for name in ("at", "origin", "source", "layout")
        )
        found.append(Import(run, at, origin, source, layout, _notes(head)))
    return sorted(found, key=lambda told: told.at)


def _notes(head: dict[str, Any]) -> tuple[str, ...]:
    listed = {
        name: told if isinstance(told := head.get(name), list) else []
        for name in ("notes", "missing", "conflicts", "unread")
    }
    notes = [note for note in listed["notes"] if isinstance(note, str)]
    for name, noun, one, more in (
        ("missing", "step", "has no picture.", "have no picture."),
        ("conflicts", "score", "was told in two ways.", "were told in two ways."),
        ("unread", "file", "was not read.", "were not read."),
    ):
        if listed[name]:
            notes.append(counted(len(listed[name]), noun, one, more))
    return tuple(notes)
