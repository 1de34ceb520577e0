"""A lock on object storage: one process at a time works on a run, on whatever machine.

Object storage has no lock that ends with its holder. So the holder shows that it is alive: it
writes its object anew every `BEAT` seconds, and who finds an object that has not changed for
`LEASE` seconds (by its own clock; clocks are never compared) takes over. Locks are numbered, and a
number can be created once only (the store sees to it), so of several that take over one alone does;
the old holder, should it wake up, finds a higher number, or that its own object is gone, and stops
writing. It looks before it writes when it has not shown itself for `DOUBT` seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from convergebench.disk import replace_file
from convergebench.errors import ConvergeBenchError, StoreBusy
from convergebench.remote.bucket import Bucket

BEAT: Final = 15.0
LEASE: Final = 60.0
DOUBT: Final = 30.0
"""Seconds after which a holder that could not beat (it slept, or was cut off) looks again first."""
LOOK: Final = 2.0
"""Seconds between two looks at a lock that somebody else holds."""


class Lease:
    """A held lock. `lost` says who has taken it over; empty while it is ours."""

    def __init__(self, bucket: Bucket, name: str, facts: dict[str, Any]) -> None:
        self.name: Final = name
        self.lost = ""
        self._bucket = bucket
        self._facts = facts
        self._beating = threading.Lock()
        self._seen = _clocks()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="lease", daemon=True)

    def require(self) -> None:
        """Raise StoreBusy when somebody else has taken over, StoreError when nobody can tell."""
        if self._doubtful():
            with self._beating:  # the thread may be at it
                if self._doubtful():
                    self._beat()
        if self.lost:
            raise StoreBusy(
                f"{self._bucket.address} was taken over by {self.lost}, because this process was "
                "not heard of for too long. Nothing more is written here; what could not be stored "
                "is kept on this machine."
            )

    def _doubtful(self) -> bool:
        """Whether others may have taken us for dead, by any clock: some stop while we sleep."""
        passed = [now - then for now, then in zip(_clocks(), self._seen, strict=True)]
        return not self.lost and not all(0 <= seconds < DOUBT for seconds in passed)

    def _live(self) -> None:
        while not self._over.wait(BEAT):
            # The store may be down: then no one else hears it, either.
            with contextlib.suppress(ConvergeBenchError), self._beating:
                self._beat()

    def _beat(self) -> None:
        """Show that we are alive, or find out that others took over."""
        if self.lost:
            return
        began = _clocks()
        what = self.name.rpartition("-")[0]
        newest = max(self._bucket.list("locks"), default="", key=_number(what))
        if _number(what)(newest) > _number(what)(self.name):
            self.lost = _holder(_read(self._bucket, newest))
            return
        # Numbers begin anew when nobody holds it, so the number alone does not say whose it is.
        mine = _read(self._bucket, self.name)
        if mine is None or mine.get("token") != self._facts["token"]:
            self.lost = _holder(mine)
            return
        self._facts["beat"] += 1
        self._bucket.put(self.name, json.dumps(self._facts).encode(), free=True)
        self._seen = began

    def _begin(self) -> None:
        self._thread.start()

    def _end(self) -> None:
        self._over.set()
        self._thread.join()
        if not self.lost:
            # What is left behind when the store is down holds nobody up for long.
            with contextlib.suppress(ConvergeBenchError):
                self._bucket.delete([self.name], free=True)


@contextlib.contextmanager
def hold(
    bucket: Bucket, what: str, copy: str, tell: Callable[[str], None] = lambda _text: None
) -> Iterator[tuple[Lease, str | None]]:
    """Hold the lock for `run` or `score` while in the block.

    Args:
        bucket: The run's objects.
        what: What the lock is for.
        copy: Names this machine's working copy, whose own lock is held already: a lock in its name
            is of a process that has ended.
        tell: Told when somebody else's lock has to be watched.

    Yields:
        The lease, and a note when the previous holder ended without letting go.

    Raises:
        StoreBusy: Another process holds it.
    """
    number, stale = _number(f"locks/{what}"), None
    while True:
        held = _held(bucket, what)
        newest = max(held, key=number, default="")
        if not newest:
            break
        before = held[newest]
        if before.get("copy") == copy or _watch(bucket, newest, before, what, tell):
            stale = f"took over from {_holder(before)}, which ended without letting go"
            break  # or else it let go, and others may have come since: look again
    me = {
        "pid": os.getpid(),
        "host": platform.node(),
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "copy": copy,
        "token": uuid.uuid4().hex,
        "beat": 0,
    }
    mine = f"locks/{what}-{number(newest) + 1 if newest else 1:012d}.json"
    lease = Lease(bucket, mine, me)
    if not bucket.put_once(mine, json.dumps(me).encode(), free=True):
        # An answer that was lost on the way makes our own object look like somebody else's.
        there = _read(bucket, mine) or {}
        if there.get("token") != me["token"]:
            raise _busy(bucket, there, what)
    # Numbers begin anew when nobody holds it: somebody may have made another one meanwhile, or one
    # of a name that we saw before. Who makes one looks at the others after that, so of two that do
    # at once one sees the other at least.
    others = {name: facts for name, facts in _held(bucket, what).items() if name != mine}
    if rival := next((name for name in others if others[name] != held.get(name)), ""):
        bucket.delete([mine], free=True)
        raise _busy(bucket, others[rival], what)
    lease._begin()
    try:
        bucket.delete(others, free=True)
        yield lease, stale
    finally:
        lease._end()


def holder(bucket: Bucket, what: str) -> dict[str, Any] | None:
    """Who holds a lock, or held it last without letting go; None when nobody does."""
    held = _held(bucket, what)
    return held[max(held, key=_number(f"locks/{what}"))] if held else None


def name_of(copy: Path) -> str:
    """A name of a working copy that no other machine's has."""
    path = copy / ".copy"
    if not path.exists():
        replace_file(path, uuid.uuid4().hex.encode())
    return f"{path.read_text()}@{platform.node()}"


def _held(bucket: Bucket, what: str) -> dict[str, dict[str, Any]]:
    """The locks for a purpose, and what is in them; not those that are let go as we look."""
    number = _number(f"locks/{what}")
    names = [name for name in bucket.list("locks") if number(name) >= 0]
    found = {name: _read(bucket, name) for name in names}
    return {name: facts for name, facts in found.items() if facts is not None}


def _watch(
    bucket: Bucket, name: str, before: dict[str, Any], what: str, tell: Callable[[str], None]
) -> bool:
    """Whether a lock stays as it is for as long as a lease lasts; not if its holder lets it go.

    Raises:
        StoreBusy: Its holder showed itself.
    """
    end, told = time.monotonic() + LEASE, False
    while time.monotonic() < end:
        time.sleep(min(LOOK, LEASE / 4))
        now = _read(bucket, name)
        if now is None:
            return False
        if now != before:
            raise _busy(bucket, now, what)
        if not told:  # after the first look: many let go at once
            tell(
                f"{bucket.address}: waiting up to {LEASE:.0f} s to see whether {_holder(before)} "
                f"is still at work ({what})"
            )
            told = True
    return True


def _clocks() -> tuple[float, float]:
    """One that goes on while the machine sleeps, and one that nobody sets."""
    return time.time(), time.monotonic()


def _busy(bucket: Bucket, facts: dict[str, Any], what: str) -> StoreBusy:
    return StoreBusy(
        f"{bucket.address} is being written by {_holder(facts)} ({what}). "
        "Wait for it, or stop it, then run the same command again."
    )


def _read(bucket: Bucket, name: str) -> dict[str, Any] | None:
    try:
        told = json.loads(bucket.get(name))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _holder(facts: dict[str, Any] | None) -> str:
    if not facts or "pid" not in facts:
        return "another process"
    return f"process {facts['pid']} on {facts.get('host')} since {facts.get('since')}"


def _number(what: str) -> Callable[[str], int]:
    """The number in a lock's name; -1 for names of other things."""

    def number(name: str) -> int:
        head, _, tail = name.removesuffix(".json").rpartition("-")
        return int(tail) if head == what and tail.isdecimal() else -1

    return number
