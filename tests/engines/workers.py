"""Workers for tests of engines: factories that a trade can name."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from convergebench.errors import EngineError, StoreError


class Obedient:
    """Does what the task says."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder

    def work(self, task: bytes) -> Iterator[bytes]:
        verb, _, rest = task.decode().partition(" ")
        if verb == "echo":
            yield rest.encode()
        elif verb == "pid":
            yield str(os.getpid()).encode()
        elif verb == "count":
            for n in range(int(rest)):
                yield str(n).encode()
        elif verb == "print":
            print(rest)
            sys.stdout.flush()
            os.write(1, b"\x00garbage\n")
            ctypes.CDLL(None).puts(b"from a library")
            yield b"printed"
        elif verb == "die":  # after some answers
            for n in range(int(rest or 0)):
                yield str(n).encode()
            os.kill(os.getpid(), signal.SIGKILL)
        elif verb == "once":  # kills only the first worker that is asked
            mark = Path(self.folder) / rest
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield rest.encode()
        elif verb == "raise":
            raise ZeroDivisionError(rest)
        elif verb == "unable":
            raise EngineError(rest)
        elif verb == "grab":
            try:
                held = bytearray(int(rest))
                yield str(len(held)).encode()
            except MemoryError:
                yield b"refused"
        elif verb == "sleep":
            time.sleep(float(rest))
            yield b"slept"
        elif verb == "env":
            yield os.environ.get(rest, "").encode()
        else:
            raise ValueError(verb)


def dying() -> Obedient:
    """A worker that dies while it is made."""
    os._exit(7)


def slow() -> Obedient:
    """A worker that takes a minute to make."""
    time.sleep(60)
    return Obedient()


def refusing() -> Obedient:
    """A worker that cannot be made."""
    raise StoreError("nothing is here")


class Task:
    """A task that is tried three times, and then told as given up."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.deaths = 0

    def ask(self) -> bytes:
        return self.text.encode()

    def heard(self, answer: bytes) -> tuple[str, str]:
        return self.text, answer.decode(errors="replace")

    def died(self, why: str) -> tuple[list[Task], list[tuple[str, str]]]:
        self.deaths += 1
        return ([self], []) if self.deaths < 3 else ([], [(self.text, f"given up: {why}")])
