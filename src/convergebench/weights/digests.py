"""SHA-256 of files, remembered so that a big file is hashed once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from convergebench.weights.entries import Form

BLOCK: Final = 1 << 20


def digest(path: Path, observe: Callable[[int], None] = lambda _: None) -> str:
    """The file's SHA-256, read now; `observe` is told the bytes of each block."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            total.update(block)
            observe(len(block))
    return total.hexdigest()


class Stamps:
    """Digests of files that have not changed since: same path, size, inode and times.

    They live in one small file; where it cannot be written, files are hashed again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def digest(self, path: Path, fresh: bool = False) -> str:
        """The file's SHA-256, from memory unless `fresh` is asked for."""
        key, stamp = str(path.resolve()), _stamp(path)
        known = self._read()
        if not fresh and known.get(key, [])[:-1] == stamp:
            return str(known[key][-1])
        found = digest(path)
        if stamp == _stamp(path):  # not written to meanwhile
            self._write(key, [*stamp, found])
        return found

    def note(self, path: Path, found: str) -> None:
        """Remember the digest of a file that was hashed while it was written."""
        self._write(str(path.resolve()), [*_stamp(path), found])

    def _read(self) -> dict[str, list[int | str]]:
        try:
            found = json.loads(self._path.read_text("utf-8"))
            return {k: v for k, v in found.items() if isinstance(v, list)}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write(self, key: str, entry: list[int | str]) -> None:
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            known = {k: v for k, v in self._read().items() if os.path.exists(k)}
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".stamps")
            with open(handle, "w", encoding="utf-8") as file:
                json.dump({**known, key: entry}, file)
            os.replace(temporary, self._path)


def _stamp(path: Path) -> list[int | str]:
    info = path.stat()
    return [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


def mismatch(path: Path, form: Form, found: Callable[[Path], str]) -> str:
    """Why the file is not what the catalogue describes; empty when it is.

    Where the digest is unknown, its first digits are compared, else the size.

    Args:
        path: The file.
        form: What the catalogue says.
        found: Gives the file's digest; asked only when its size is right.
    """
    size = path.stat().st_size
    if form.size and size != form.size:
        return f"it has {size} bytes instead of {form.size}"
    expected = form.sha256 or form.prefix
    if expected:
        if not (actual := found(path)).startswith(expected):
            return f"its SHA-256 is {actual[: len(expected)]} instead of {expected}"
    elif not size:
        return "it is empty"
    return ""
