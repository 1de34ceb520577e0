"""Files of lines that several machines add to: sessions, and what judges answered.

They are merged line by line, and their order may differ. Object storage writes them whole, so of
two that fetch, add and write at the same time one would lose its lines, which were paid for. So
whoever adds some holds a lock of its own meanwhile: a lease, and a file lock on this machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from convergebench.errors import StoreBusy
from convergebench.lines import is_json
from convergebench.remote import lease
from convergebench.remote.bucket import Bucket
from convergebench.remote.telling import Waits

ANSWERS: Final = "judgements/answers.jsonl"
UNIONS: Final = ("sessions.jsonl", ANSWERS)
"""The files that several machines may add lines to."""
PATIENCE: Final = 180.0
"""Seconds for which others may be at it before we give up: they take one or two each."""


def bring(bucket: Bucket, copy: Path, name: str) -> bool:
    """Add the lines that are stored to the file here; whether the store has all that are here."""
    return not _brought(bucket, copy, name)[1]


def store(bucket: Bucket, copy: Path, name: str) -> None:
    """Have the lines of both sides on both. Raises StoreBusy when others are at it for minutes."""
    with _alone(bucket, copy) as held:
        there, ours = _brought(bucket, copy, name)
        if ours:
            held.require()
            bucket.put(name, there + ours)


def _brought(bucket: Bucket, copy: Path, name: str) -> tuple[bytes, bytes]:
    """What is stored, which is here as well now, and the lines that are here alone."""
    path, there = copy / name, b""
    with contextlib.suppress(FileNotFoundError):
        there = bucket.get(name)
    if not there and not path.exists():
        return b"", b""
    if there and not there.endswith(b"\n"):
        there += b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # a judge holds it while it writes a line
        file.seek(0)
        here = file.read()
        whole = here[: here.rfind(b"\n") + 1]
        known, stored = set(whole.splitlines()), set(there.splitlines())
        added = b"".join(line + b"\n" for line in there.splitlines() if line not in known)
        if len(whole) < len(here):  # cut off by a kill
            if name == ANSWERS:
                file.truncate(len(whole))
            else:  # somebody may be writing it now: let the next line begin anew
                added = b"\n" + added
        if added:
            file.write(added)
    ours = [line for line in whole.splitlines() if line not in stored and is_json(line)]
    return there, b"".join(line + b"\n" for line in ours)


@contextlib.contextmanager
def _alone(bucket: Bucket, copy: Path) -> Iterator[lease.Lease]:
    """Be the only one who merges, on this machine and elsewhere. A merge takes a moment: wait."""
    end, tell = time.monotonic() + PATIENCE, Waits()
    with contextlib.ExitStack() as held:
        file = held.enter_context(open(copy / "merge.lock", "ab"))
        fcntl.flock(file, fcntl.LOCK_EX)
        while True:
            try:
                taken = lease.hold(bucket, "merge", lease.name_of(copy), tell)
                mine, _ = held.enter_context(taken)
                break
            except StoreBusy:
                if time.monotonic() > end:
                    raise
            time.sleep(random.uniform(0.1, 0.5))
        yield mine
