"""Processes of this machine: whether one lives, and ending a command with all it has started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any


def is_alive(pid: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(pid, 0)
    except PermissionError:  # somebody else's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def end_group(process: subprocess.Popen[Any]) -> None:
    """End a process that leads a session of its own, and whatever it has left behind.

    Also where the process itself has ended: a child of it would hold its output open, and reading
    that, or closing it, would wait for the child.
    """
    with suppress(OSError):  # all of it has ended
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
