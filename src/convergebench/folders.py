"""Folders on this machine that the user may name, and those we use by ourselves."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

DATA: Final = "CONVERGEBENCH_DATA"
"""The environment variable that names folders of suites' files."""


def named_folders(variable: str) -> list[Path]:
    """The folders that an environment variable names, separated as those of PATH are."""
    named = os.environ.get(variable, "").split(os.pathsep)
    return [Path(folder).expanduser() for folder in named if folder.strip()]


def first_writable(folders: Iterable[Path]) -> Path | None:
    """The first that can be written to, or made."""
    for folder in folders:
        nearest = next(p for p in (folder, *folder.parents) if p.exists())
        if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
            return folder
    return None


def data_folders() -> list[Path]:
    """Where suites' files are looked for, as FOLDER/SUITE/FILE: the user's folders, then ours."""
    return [*named_folders(DATA), own_data()]


def own_data() -> Path:
    """The folder that suites' files are brought to when no other is named."""
    named = os.environ.get("XDG_DATA_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share"
    return base / "convergebench" / "suites"
