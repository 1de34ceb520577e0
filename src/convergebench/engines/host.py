"""Inside a worker: makes the object that does the work, and speaks for it, whatever the engine.

Answers are messages of a kind and some bytes: `ANSWER`, `END` of a task, `RAISED` (the work raised
what it should not), `REFUSED` (the worker cannot be made, or its machine cannot do this work).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, Protocol

from convergebench.errors import ConvergeBenchError, EngineError, scrub

ANSWER: Final = b"a"
END: Final = b"e"
RAISED: Final = b"x"
REFUSED: Final = b"r"
Message = tuple[bytes, bytes]
_HEAD: Final = struct.Struct(">cQ")


class Worker(Protocol):
    """What a trade's factory makes."""

    def work(self, task: bytes) -> Iterator[bytes]:
        """The answers to a task, as they come."""
        ...


class Host:
    """A worker and its surroundings, as the engine wants them.

    Args:
        told: JSON: the trade's `factory` and `hello`, and how to work: `threads` of OpenCV and ONNX
            Runtime, `memory` in bytes that the system grants (0: no limit), `paths` to be found on
            sys.path, `settings` for the environment, `defaults` where it does not have its own.
    """

    def __init__(self, told: str) -> None:
        self._refused = ""
        self._worker: Worker | None = None
        try:
            self._worker = _prepared(json.loads(told))
        except ConvergeBenchError as error:
            self._refused = str(error)
        except Exception as error:  # a plug-in is foreign code
            self._refused = f"{type(error).__name__}: {error}"

    def messages(self, task: bytes) -> Iterator[Message]:
        """What is to be told of a task; the last message is no `ANSWER`."""
        if self._worker is None:
            yield REFUSED, scrub(self._refused).encode()
            return
        try:
            for answer in self._worker.work(task):
                yield ANSWER, answer
        except EngineError as error:
            yield REFUSED, scrub(str(error)).encode()
            return
        except Exception as error:  # its bugs must not look like the machine's
            yield RAISED, scrub(f"{type(error).__name__}: {error}").encode()
            return
        yield END, b""


def _prepared(told: Mapping[str, Any]) -> Worker:
    # How many threads a product of matrices is made with moves its last bits: one, everywhere. That
    # is read when NumPy is loaded, so nothing above may import it.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ.update(told.get("settings", {}))
    for name, value in told.get("defaults", {}).items():
        os.environ.setdefault(name, value)
    known = set(sys.path)
    sys.path += [path for path in told.get("paths", ()) if path not in known]
    if told.get("memory"):
        limit_memory(told["memory"])
    import cv2

    cv2.setNumThreads(told["threads"])
    module, _, name = told["factory"].partition(":")
    made: Worker = getattr(importlib.import_module(module), name)(**told["hello"])
    return made


def limit_memory(memory: int) -> None:
    """Have the system refuse this process more memory than that, beside what it has now.

    Not every system can.
    """
    import resource

    with contextlib.suppress(OSError, ValueError):
        memory += _held()
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _held() -> int:
    """Bytes that count against the limit already: stacks of an engine's threads are many."""
    with open("/proc/self/status") as file:
        found = re.search(r"^VmData:\s+(\d+) kB", file.read(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


# -- messages on a pipe ---------------------------------------------------------------------------


def send(pipe: IO[bytes], kind: bytes, body: bytes) -> None:
    """Write a message."""
    pipe.write(_HEAD.pack(kind, len(body)) + body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Message | None:
    """Read a message; None where the pipe ends, be it in the middle of one."""
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack(head)
    body = pipe.read(length)
    return (kind, body) if len(body) == length else None


def main() -> None:
    """The process of the local engine: an introduction, then tasks, on stdin; answers on stdout.

    The first message says that it is there.
    """
    # Answers go to the real stdout; what a metric prints goes to stderr.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    hello = receive(sys.stdin.buffer)
    if hello is None:
        return
    sys.path[:] = json.loads(hello[1])["paths"]
    host = Host(hello[1].decode())
    try:
        send(answers, END, b"")
        while (task := receive(sys.stdin.buffer)) is not None:
            for kind, body in host.messages(task[1]):
                send(answers, kind, body)
    except BrokenPipeError:  # the driver was killed: nobody wants to hear of it
        os._exit(1)


if __name__ == "__main__":
    main()
