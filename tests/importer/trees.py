"""Small trees of files for the tests of layouts, which look at names and not into pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from convergebench.importer.found import Finds


def plant(root: Path, names: Iterable[str]) -> Path:
    """Files of these names, each with its own name as content."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def write_json(path: Path, content: Any) -> Path:
    """A JSON file."""
    path.write_text(json.dumps(content))
    return path


def steps_of(finds: Finds) -> dict[str, list[int]]:
    """The steps found of each track, in words."""
    found: dict[str, list[int]] = {}
    for frame in finds.frames:
        found.setdefault(str(frame.track), []).append(frame.step)
    return {track: sorted(steps) for track, steps in found.items()}


def said(finds: Finds, words: str) -> bool:
    """Whether some note has these words."""
    return any(words in note for note in finds.notes)
