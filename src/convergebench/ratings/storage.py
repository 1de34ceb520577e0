"""Answers in SQLite: written once, never changed, acknowledged only when they are on the disk.

Write-ahead log and `synchronous=FULL`: when a commit returns, the answer survives a kill and a
power cut. The first answer to a page stands; a second is told that it came late. Triggers refuse to
change or delete a row. Several processes may use one file: SQLite takes turns.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from convergebench.errors import StoreDamaged, StoreError, StoreMismatch

FILE: Final = "answers.sqlite"
VERSION: Final = 1
BUSY: Final = 20.0
"""Seconds to wait for another process that writes."""

SCHEMA: Final = f"""
CREATE TABLE study (name TEXT NOT NULL, created TEXT NOT NULL);
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

    @classmethod
    def create(cls, folder: Path, name: str, created: str) -> None:
        """Make the empty file of a new study."""
        path = folder / FILE
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection = _connected(path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(SCHEMA)
            connection.execute("INSERT INTO study VALUES (?, ?)", (name, created))
        finally:
            connection.close()

    @classmethod
    def open(cls, folder: Path, name: str, created: str) -> Self:
        """Open the answers of a study, after checking that they are sound and its own.

        Raises:
            StoreError: There is no such file, or it cannot be used.
            StoreDamaged: It is no sound database.
            StoreMismatch: It belongs to another study.
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
            told = connection.execute("SELECT name, created FROM study").fetchone()
            if found != "ok":
                raise StoreDamaged(f"{path} is damaged ({found}). Restore it from a copy.")
            if version != VERSION:
                raise StoreError(f"{path} has version {version}, this program reads {VERSION}")
            if told != (name, created):
                other = told[0] if told else "nobody knows which"
                raise StoreMismatch(f"{path} holds the answers of another study ({other}).")
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
        with self._lock, self._plain_errors():
            return self._connection.execute(query, given).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on the disk when the block has been left."""
        with self._lock, self._plain_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be used now ({error})") from error


def _connected(path: Path) -> sqlite3.Connection:
    """A connection that begins no transaction by itself."""
    return sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)


def _flag(stored: int | None) -> bool | None:
    return None if stored is None else bool(stored)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
