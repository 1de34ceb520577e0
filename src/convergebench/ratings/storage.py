"""Answers in SQLite: written once, never changed, acknowledged only when they are on the disk.

Write-ahead log and `synchronous=FULL`: when a commit returns, the answer survives a kill and a
power cut. The first answer to a page stands; a second is told that it came late. Triggers refuse to
change or delete a row. Several processes may use one file: SQLite takes turns, and who waits for
another process lets the readers of this one go on.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from convergebench.errors import StoreDamaged, StoreError, StoreMismatch

FILE: Final = "answers.sqlite"
VERSION: Final = 2
BUSY: Final = 6.0
"""Seconds to wait for another process that writes; a page gives up on an attempt after 20."""
PAUSE: Final = 0.02
"""Seconds between two tries."""

SCHEMA: Final = f"""
CREATE TABLE study (name TEXT NOT NULL, created TEXT NOT NULL, plan TEXT NOT NULL);
CREATE TABLE consents (participant TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  participant TEXT NOT NULL,
  item INTEGER NOT NULL,
  at TEXT NOT NULL,
  milliseconds INTEGER NOT NULL,
  answer TEXT NOT NULL,
  comment TEXT,
  passed INTEGER,
  UNIQUE (participant, item)
);
CREATE TRIGGER answers_stay BEFORE UPDATE ON answers
  BEGIN SELECT RAISE(ABORT, 'an answer is never changed'); END;
CREATE TRIGGER answers_are_kept BEFORE DELETE ON answers
  BEGIN SELECT RAISE(ABORT, 'an answer is never deleted'); END;
PRAGMA user_version = {VERSION};
"""


@dataclass(frozen=True)
class Answer:
    """One answer as stored. `item` is its place in the participant's session."""

    participant: str
    item: int
    at: str
    milliseconds: int
    answer: dict[str, Any]
    comment: str | None
    passed: bool | None


class Answers:
    """The file of answers, open. Safe for many threads."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._lock = threading.Lock()
        self._file = _identity(path)

    @classmethod
    def create(cls, folder: Path, name: str, created: str, plan: str = "") -> None:
        """Make the empty file of a new study; `plan` is what its answers get their meaning from."""
        path = folder / FILE
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection = _connected(path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(SCHEMA)
            connection.execute("INSERT INTO study VALUES (?, ?, ?)", (name, created, plan))
        finally:
            connection.close()

    @classmethod
    def open(cls, folder: Path, name: str, created: str, plan: str = "") -> Self:
        """Open the answers of a study, after checking that they are sound and its own.

        Raises:
            StoreError: There is no such file, or it cannot be used.
            StoreDamaged: It is no sound database.
            StoreMismatch: It belongs to another study, or to this one before it was changed.
        """
        path = folder / FILE
        if not path.is_file():
            raise StoreError(
                f"{path} is not there: the answers of this study are missing. Put the file back."
            )
        connection = _connected(path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if found != "ok":
                raise StoreDamaged(f"{path} is damaged ({found}). Restore it from a copy.")
            if version != VERSION:
                raise StoreError(f"{path} has version {version}, this program reads {VERSION}")
            told = connection.execute("SELECT name, created, plan FROM study").fetchone()
            if told is None or told[:2] != (name, created):
                other = told[0] if told else "nobody knows which"
                raise StoreMismatch(f"{path} holds the answers of another study ({other}).")
            if plan and told[2] != plan:
                raise StoreMismatch(
                    f"{folder / 'study.json'} was changed after the study was made, and not in its "
                    "texts alone: its answers would mean something else. Put it back as it was."
                )
            # From here on we wait ourselves, without keeping others from the connection.
            connection.execute(f"PRAGMA busy_timeout = {round(PAUSE * 1000)}")
        except sqlite3.OperationalError as error:
            connection.close()
            raise StoreError(
                f"{path} cannot be used ({error}). The folder must be one that can be written to, "
                "on a disk of this machine."
            ) from error
        except sqlite3.DatabaseError as error:
            connection.close()
            raise StoreDamaged(
                f"{path} cannot be read ({error}). Restore it from a copy; a copy is made of all "
                "files answers.sqlite*."
            ) from error
        except StoreError:
            connection.close()
            raise
        return cls(path, connection)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing ------------------------------------------------------------------------------

    def consent(self, participant: str) -> None:
        """Record that a participant agreed; the first time counts."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO consents VALUES (?, ?) ON CONFLICT DO NOTHING", (participant, _now())
            )

    def add(
        self,
        participant: str,
        item: int,
        answer: dict[str, Any],
        *,
        milliseconds: int,
        comment: str | None = None,
        passed: bool | None = None,
    ) -> bool:
        """Store an answer, on the disk when this returns. False if there was one already."""
        row = (
            *(participant, item, _now(), milliseconds, json.dumps(answer, sort_keys=True)),
            *(comment, None if passed is None else int(passed)),
        )
        with self._writing() as connection:
            made = connection.execute(
                "INSERT INTO answers "
                "(participant, item, at, milliseconds, answer, comment, passed) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (participant, item) DO NOTHING",
                row,
            )
            return made.rowcount == 1

    # -- reading ------------------------------------------------------------------------------

    def consented(self, participant: str) -> bool:
        """Whether a participant has agreed."""
        return bool(self._rows("SELECT 1 FROM consents WHERE participant = ?", participant))

    def answered(self, participant: str) -> frozenset[int]:
        """The places of the pages that a participant has answered."""
        rows = self._rows("SELECT item FROM answers WHERE participant = ?", participant)
        return frozenset(item for (item,) in rows)

    def consents(self) -> dict[str, str]:
        """When each participant agreed."""
        return dict(self._rows("SELECT participant, at FROM consents"))

    def count(self) -> int:
        """How many answers there are."""
        return int(self._rows("SELECT count(*) FROM answers")[0][0])

    def all(self) -> list[Answer]:
        """Every answer, in the order in which they came."""
        rows = self._rows(
            "SELECT participant, item, at, milliseconds, answer, comment, passed "
            "FROM answers ORDER BY id"
        )
        return [
            Answer(who, item, at, ms, json.loads(text), comment, _flag(passed))
            for who, item, at, ms, text, comment, passed in rows
        ]

    def _rows(self, query: str, *given: str) -> list[tuple[Any, ...]]:
        with self._plain_errors(), self._patiently(query, *given) as rows:
            return rows.fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on the disk when the block has been left."""
        with self._plain_errors(), self._patiently("BEGIN IMMEDIATE"):
            try:
                if _identity(self._path) != self._file:
                    raise StoreError(
                        f"{self._path} was moved, deleted or replaced while it was in use: what is "
                        "written now would be lost. Stop the server and start it again."
                    )
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    @contextlib.contextmanager
    def _patiently(self, query: str, *given: str) -> Iterator[sqlite3.Cursor]:
        """Hold the connection once a query has begun; let go of it between two tries."""
        end = time.monotonic() + BUSY
        while True:
            if not self._lock.acquire(timeout=max(0.0, end - time.monotonic())):
                raise StoreError(f"{self._path} cannot be used now (others are writing)")
            try:
                begun = self._connection.execute(query, given)
                break
            except BaseException as error:
                self._lock.release()
                if not _is_busy(error) or time.monotonic() > end:
                    raise
            time.sleep(PAUSE)
        try:
            yield begun
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be used now ({error})") from error


def _connected(path: Path) -> sqlite3.Connection:
    """A connection that begins no transaction by itself."""
    return sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)


def _is_busy(error: BaseException) -> bool:
    return (
        isinstance(error, sqlite3.OperationalError)
        and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    )


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to now."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _flag(stored: int | None) -> bool | None:
    return None if stored is None else bool(stored)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
