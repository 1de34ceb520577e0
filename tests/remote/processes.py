"""Commands in processes of their own, which may be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "convergebench", *map(str, words)]


def killed_after(seconds: float, words: list[str], ready: Any = None) -> bool:
    """Whether a command was killed: so many seconds after it was ready, unless it had ended."""
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 60
    while ready and not ready() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(seconds)
    ended = process.poll() is not None
    if not ended:
        os.killpg(process.pid, 9)  # with the workers of this one, which is a group of its own
    process.wait()
    return not ended


def said(*words: object) -> tuple[int, str]:
    """Exit code and all output of a command, in a process of its own."""
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=200)
    return done.returncode, " ".join((done.stdout + done.stderr).split())
