"""Frames of a run on object storage that were fetched, kept on this machine up to a limit.

The folder is shared by all processes that read the run here. What was used last is kept longest;
what is deleted is fetched again when somebody asks for it.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from pathlib import Path
from typing import Final

from convergebench.archive.contents import digest_in
from convergebench.disk import replace_file
from convergebench.errors import SettingsError
from convergebench.frame import sha256

LIMIT: Final = "CONVERGEBENCH_CACHE_GIB"
"""The environment variable that says how many GiB of fetched frames are kept for a run."""
USUAL_LIMIT: Final = 10.0
SLACK: Final = 20
"""The folder is looked through after every such part of the limit that a process has added."""


class FrameCache:
    """Fetched frames, by their name in the run (`frames/ab/abcd….png`)."""

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self._folder = folder
        self._limit = _limit() if limit is None else limit
        self._added = self._limit  # look through it before the first one is added
        self._lock = threading.Lock()
        self._whole: dict[str, tuple[int, int]] = {}

    def path(self, name: str) -> Path:
        """Where a frame is, if it is here."""
        return self._folder / name.removeprefix("frames/")

    def get(self, name: str) -> bytes | None:
        """A frame's bytes, or None when it is not here."""
        path = self.path(name)
        try:
            data = path.read_bytes()
            os.utime(path)  # used now
        except OSError:  # never fetched, or just deleted by another process
            return None
        return data

    def file(self, name: str) -> Path | None:
        """The file of a frame that is here and what its name says, or None.

        Hashed when it is first asked for, not for every use. What is torn is deleted: whoever
        links it would keep it for good.
        """
        path = self.path(name)
        try:
            facts = path.stat()
            seen = facts.st_ino, facts.st_size
            if self._whole.get(name) != seen:
                if sha256(path.read_bytes()) != digest_in(name):
                    path.unlink()
                    return None
                self._whole[name] = seen
            os.utime(path)  # used now
        except OSError:  # never fetched, or just deleted by another process
            return None
        return path

    def add(self, name: str, data: bytes) -> Path:
        """Keep a frame. Where the disk will not take it, nothing is kept."""
        path = self.path(name)
        self._make_room(len(data))
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        return path

    def adopt(self, name: str, file: Path) -> None:
        """Take over a file that is on object storage now."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, path)
        self._make_room(path.stat().st_size)

    def _make_room(self, size: int) -> None:
        with self._lock:
            self._added += size
            if self._added * SLACK < self._limit:
                return
            self._added = 0
        found = []
        for folder in _folders(self._folder):
            for entry in _entries(folder):
                with contextlib.suppress(FileNotFoundError):
                    facts = entry.stat()
                    found.append((facts.st_mtime_ns, facts.st_size, entry.path))
        total = size + sum(size for _, size, _ in found)
        if total <= self._limit:
            return
        for _, bytes_, path in sorted(found):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= bytes_
            if total <= self._limit * (SLACK - 2) / SLACK:
                return


def _folders(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _entries(folder)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _limit() -> int:
    told = os.environ.get(LIMIT, "").strip()
    try:
        gib = float(told) if told else USUAL_LIMIT
        if not (math.isfinite(gib) and gib >= 0):
            raise ValueError
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"{LIMIT} is a number of GiB, got {told!r}") from error
    return max(1 << 20, int(gib * 2**30))
