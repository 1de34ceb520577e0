"""Answers that were paid for, kept by content: the same question is never paid for twice.

A folder with one append-only file, `answers.jsonl`. A line is on the disk before its answer is
used. Whoever asks holds the lock of its question meanwhile, so that neither threads nor processes
ask the same at once. A last line that was not written whole is cut off by whoever writes next.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from convergebench.errors import StoreDamaged, StoreError, explain
from convergebench.judging.verdict import Vote

NAME: Final = "answers.jsonl"
STRIPES: Final = 256
"""Lock files; questions that share one only wait for each other."""


class Answered:
    """The answers in a folder. Safe to use from several threads and processes.

    Args:
        folder: Where they are kept; made when it is not there.

    Raises:
        StoreError: The folder cannot be used.
        StoreDamaged: A line of it is no record.
    """

    def __init__(self, folder: Path) -> None:
        self._path: Final = Path(folder) / NAME
        self._locks: Final = Path(folder) / "locks"
        self._guard = threading.Lock()
        self._read = 0
        self._line = 0
        self._known: dict[str, list[Vote]] = {}
        try:
            self._locks.mkdir(parents=True, exist_ok=True)
            self._path.touch()
        except OSError as error:
            raise StoreError(f"{folder} cannot keep judgements: {error.strerror}") from error
        self._catch_up()

    def find(self, key: str) -> list[Vote]:
        """Every record of a question, oldest first; also what other processes have written."""
        with self._guard:
            self._catch_up()
            return list(self._known.get(key, ()))

    @contextlib.contextmanager
    def asking(self, key: str) -> Iterator[None]:
        """Nobody else asks this question while in the block."""
        path = self._locks / f"{int(key[:8], 16) % STRIPES:02x}"
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"{path} cannot be locked: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def keep(self, vote: Vote) -> None:
        """Write a record; it is on the disk when this returns. Raises StoreError."""
        line = json.dumps(vote.model_dump(mode="json"), ensure_ascii=False).encode() + b"\n"
        with self._guard:
            try:
                with open(self._path, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    self._catch_up()
                    file.truncate(self._read)  # a torn line of a process that was killed
                    file.seek(self._read)
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error
            self._catch_up()

    def _catch_up(self) -> None:
        """Read what was added since the last look, whole lines only."""
        try:
            if self._path.stat().st_size == self._read:
                return
            with open(self._path, "rb") as file:
                file.seek(self._read)
                added = file.read()
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error.strerror}") from error
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._line += 1
            try:
                vote = Vote.model_validate_json(line)
            except ValidationError as error:
                told = f"{self._path} line {self._line} is no judgement: {explain(error)}"
                raise StoreDamaged(f"{told}. Delete the line to go on without it.") from error
            self._known.setdefault(vote.key, []).append(vote)
        self._read += len(whole)
