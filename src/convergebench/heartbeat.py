"""A sign of life: what a working process tells about itself, for `convergebench status`.

`status/run.json` and `status/score.json` are written every few seconds by a thread, by rename and
without a flush: they say how far things are, not what was done. They stay when the work ends, and
say how it did; a killed process leaves them as they were.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from convergebench.errors import ConvergeBenchError, scrub
from convergebench.progress import Pace, Tally, Told
from convergebench.store import RunStore

EVERY: Final = 2.0
"""Seconds between two beats."""
EVERY_THERE: Final = 10.0
"""The same on object storage, where each is a request."""
FOLDER: Final = "status"
COMMANDS: Final = ("run", "score")


T = TypeVar("T", bound=Told)


class Heart:
    """Beats while a command works.

    Attributes:
        stopped: Why the work ended before it was done; to be set by whoever knows.
    """

    def __init__(self, store: RunStore, command: str) -> None:
        self.stopped = ""
        self._store = store
        self._every = EVERY_THERE if store.is_remote else EVERY
        self._name = f"{FOLDER}/{command}.json"
        self._tally = Tally(time.monotonic())
        self._counting = threading.RLock()  # re-entered by a signal's handler
        self._writing = threading.Lock()  # another, because a write may take long
        self._ending = threading.Event()
        self._me: dict[str, Any] = {
            "command": command,
            "pid": os.getpid(),
            "host": platform.node(),
            "since": _now(),
            "every": self._every,
        }
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def around(self, observe: Callable[[T], None] | None) -> Callable[[T], None]:
        """An observer that hears what is told, and passes it on."""

        def hear(told: T) -> None:
            with self._counting:
                self._tally.add(time.monotonic(), told.snapshot)
            if observe is not None:
                observe(told)
            if getattr(told, "last", 0):
                self.end(told.event)

        return hear

    def end(self, why: str = "") -> None:
        """Say that it is over, once."""
        if not self._ending.is_set():
            self._ending.set()
            with self._writing:
                self._write(ended=_now(), why=scrub(why))

    def _beat(self) -> None:
        while True:
            with self._writing:
                if self._ending.is_set():
                    return
                self._write()
            self._ending.wait(self._every)

    def _write(self, ended: str | None = None, why: str = "") -> None:
        with self._counting:
            pace = self._tally.pace(time.monotonic())
        told = {**self._me, "at": _now(), "ended": ended, "why": why, "progress": pace.to_dict()}
        # Whatever happens, work that may have been paid for must not end because of this.
        with contextlib.suppress(Exception):
            if (self._store.path / "run.json").exists():  # a deleted run is not made again
                self._store.write_file(self._name, json.dumps(told).encode(), durable=False)


@contextlib.contextmanager
def beating(store: RunStore, command: str) -> Iterator[Heart]:
    """Tell how far a command is while in the block, and how it ended."""
    heart = Heart(store, command)
    try:
        yield heart
    except ConvergeBenchError as error:
        heart.end(str(error))
        raise
    except Exception as error:
        heart.end(f"{type(error).__name__}: {error}")
        raise
    except BaseException:
        heart.end("interrupted")
        raise
    heart.end(heart.stopped)


@dataclass(frozen=True)
class Beat:
    """The last sign of life of a process."""

    command: str
    pid: int
    host: str
    since: str
    every: float
    at: datetime
    ended: str | None
    why: str
    pace: Pace


def last_beat(store: RunStore, command: str) -> Beat | None:
    """What the last process that did this command on a run told; None if there was none."""
    try:
        told = json.loads(store.frame_bytes(f"{FOLDER}/{command}.json"))  # as it is now
        return Beat(
            command=command,
            pid=int(told["pid"]),
            host=str(told["host"]),
            since=str(told["since"]),
            every=float(told["every"]),
            at=datetime.fromisoformat(told["at"]),
            ended=told["ended"],
            why=str(told["why"]),
            pace=Pace.from_dict(told["progress"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # not there, or of another version


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
