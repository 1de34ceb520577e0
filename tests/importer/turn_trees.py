"""Trees of sessions on the disk, and what a layout made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from convergebench.importer.found import Finds, Layout, Look, Wishes


def tree(root: Path, files: Iterable[str], **told: Any) -> Path:
    """Files of a byte or two each; `told` are JSON files, by their names without ending."""
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    for name, content in told.items():
        (root / f"{name}.json").write_text(json.dumps(content))
    return root


def read(layout: Layout, root: Path, **wishes: Any) -> Finds:
    return layout.read(Look(root), Wishes(**wishes))


def walks(finds: Finds) -> dict[tuple[str, str, str], dict[int, tuple[str, str | None]]]:
    """Per editor, source and cycle: each step's file and prompt."""
    found: dict[tuple[str, str, str], dict[int, tuple[str, str | None]]] = {}
    for frame in finds.frames:
        assert frame.place is not None
        key = (frame.track.editor, frame.track.source, frame.track.cycle)
        assert frame.step not in found.setdefault(key, {})
        found[key][frame.step] = (frame.place.name, frame.prompt)
    return found
