"""A word about a wait, so that nobody takes a command that waits for one that hangs."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Final

QUIET: Final = 120.0
"""Seconds without a word after which the next one is of another wait. Between two tries of a store
that is down there are at most 20, and as long as a connection takes to fail."""


def say(text: str) -> None:
    """Write one line to the error output. Nothing paid for ends because that is closed."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def lasting(seconds: float) -> str:
    """For how long something is waited for, in words."""
    if seconds >= 1e8:
        return "without end"
    if seconds < 60:
        return f"for up to {seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (hours, "h"), (minutes, "min"), (rest, "s")
    return "for up to " + " ".join(f"{count} {unit}" for count, unit in parts if count)


class Waits:
    """Says once that something is waited for, however often and by how many threads it is told.

    Args:
        more: What to say after it.
    """

    def __init__(self, more: str = "") -> None:
        self._more = more
        self._lock = threading.Lock()
        self._last = -QUIET

    def __call__(self, text: str) -> None:
        """Say it, unless it was told within the last `QUIET` seconds."""
        with self._lock:
            now = time.monotonic()
            begins, self._last = now - self._last >= QUIET, now
        if begins:
            say(text + self._more)
