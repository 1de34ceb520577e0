"""Append-only files on object storage, which knows no append.

A log is stored as one object of its own name and, once that has grown to `PART` bytes, as further
objects `NAME@OFFSET`, each the bytes from that offset on. To append, the last part is written anew:
a few KiB, however long the log is. At the end of a session the parts are put together again, so a
run that nobody works on is the same files as in a directory.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from convergebench.errors import StoreDamaged
from convergebench.remote.bucket import Bucket

PART: Final = 64 * 1024
LOOKS: Final = 5
"""How often a log is listed anew whose parts were put together while they were fetched."""
_TAIL: Final = re.compile(r"(.+)@(\d{12})")


def log_of(name: str) -> tuple[str, int]:
    """Which log an object is a part of, and from which byte on."""
    tail = _TAIL.fullmatch(name)
    return (tail[1], int(tail[2])) if tail else (name, 0)


def part_name(log: str, start: int) -> str:
    """The object that holds a log from that byte on."""
    return f"{log}@{start:012d}" if start else log


def joined(log: str, parts: Iterable[tuple[int, bytes]]) -> bytes:
    """A log from its parts. Raises StoreDamaged when one is missing.

    Parts may overlap: a process was killed after it had put them together, before it deleted them.
    """
    data = b""
    for start, part in sorted(parts):
        if start > len(data):
            raise StoreDamaged(f"{log}: the bytes from {len(data)} to {start} are not there")
        data += part[len(data) - start :]
    return data


def fetched(bucket: Bucket, log: str, parts: Callable[[], Iterable[str]]) -> bytes:
    """A log as it is stored now.

    Args:
        bucket: Where it is.
        log: Its name.
        parts: Lists the objects that hold it.

    Raises:
        StoreDamaged: A part is missing.
    """
    for look in range(1, LOOKS + 1):
        try:
            return joined(log, [(log_of(part)[1], bucket.get(part)) for part in parts()])
        except FileNotFoundError:  # its writer has put them together and deleted this one
            if look == LOOKS:
                break
    raise StoreDamaged(f"{log} of {bucket.address} changes too fast, or a part of it is missing")


class Log:
    """A log of which this process is the writer: what is stored of the file on this machine.

    Args:
        bucket: Where it is stored.
        name: Its name there.
        path: The file, which is appended to first.
        starts: Where the stored parts begin.
        stored: How many bytes are stored.
    """

    def __init__(
        self, bucket: Bucket, name: str, path: Path, starts: Iterable[int] = (0,), stored: int = 0
    ) -> None:
        self._bucket = bucket
        self._name = name
        self._path = path
        self._starts = sorted(starts) or [0]
        self._stored = stored
        self._lock = threading.Lock()

    def push(self) -> None:
        """Store what was appended since the last time."""
        with self._lock:
            size = self._path.stat().st_size
            if size <= self._stored:
                return
            if self._stored - self._starts[-1] >= PART:
                self._starts.append(self._stored)
            start = self._starts[-1]
            with open(self._path, "rb") as file:
                file.seek(start)
                data = file.read(size - start)
            data = data[: data.rfind(b"\n") + 1]  # another thread may be writing a line
            self._bucket.put(part_name(self._name, start), data)
            self._stored = start + len(data)

    @property
    def is_behind(self) -> bool:
        """Whether the file here has more than what is stored."""
        try:
            return self._path.stat().st_size > self._stored
        except FileNotFoundError:
            return False

    def compact(self) -> None:
        """Put the parts together."""
        with self._lock:
            if len(self._starts) == 1:
                return
            with open(self._path, "rb") as file:
                self._bucket.put(self._name, file.read(self._stored))
            self._bucket.delete(part_name(self._name, start) for start in self._starts[1:])
            self._starts = [0]
