"""`UNSTORED`: the file in a working copy that says that the copy must not be deleted.

It is made before a session writes anything and removed at its end when all is stored. So it stays
when the store fails, when the process is killed and when another machine has taken over; the next
session that finds, or makes, everything stored removes it. It may be there without need; it is
never missing while something that a session wrote is on this machine alone.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from convergebench.disk import lock_holder, sync_directory

NAME: Final = "UNSTORED"
_TEXT: Final = """\
Something in this folder may be nowhere else: do not delete it. The next `convergebench run` with
the address in ADDRESS, on this machine, stores what can be stored and removes this file.
"""
_KEPT: Final = ("frames/[0-9a-f][0-9a-f]/*", "*.diverged-*", "chains/*/*.diverged-*")
"""What is here and not in the store, whatever else is known."""


def mark(copy: Path) -> None:
    """Say that something here may not be stored; on the disk when this returns."""
    with _alone(copy):
        if not (copy / NAME).exists():
            (copy / NAME).write_text(_TEXT, "utf-8")
            sync_directory(copy)


def unmark(copy: Path, what: str) -> None:
    """Remove it at the end of a session for `what`, unless another is at work or files are left."""
    with _alone(copy):  # a session that begins now makes it again after us
        if not any(busy(copy, but=what)) and not any(
            found for pattern in _KEPT for found in copy.glob(pattern)
        ):
            (copy / NAME).unlink(missing_ok=True)


def busy(copy: Path, *, but: str = "") -> Iterator[str]:
    """Who works on a copy on this machine, for another purpose than that one."""
    for path in copy.glob("*.lock"):
        holder = lock_holder(path)
        if path.stem != but and holder is not None and holder.alive:
            yield f"process {holder.pid} ({path.stem})"


@contextlib.contextmanager
def _alone(copy: Path) -> Iterator[None]:
    with open(copy / "marker.lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
