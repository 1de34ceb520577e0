"""The local engine: workers are plain subprocesses that are spoken to through pipes.

Ours rather than multiprocessing because it is safer: a script needs no `__main__` guard, nothing is
pickled, and a foreign metric that prints cannot garble the answers.

Workers of large networks (trades that tell their memory) are fewer, each under a limit that the
system enforces, one for each GPU where there are some. Work that wants more memory than that gets
an error, and the run goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from convergebench.engines import Trade, WorkerDied
from convergebench.engines.host import ANSWER, END, REFUSED, receive, send
from convergebench.errors import EngineError
from convergebench.processes import end_group

SLICE: Final = 0.2
"""Seconds after which who waits for a process looks whether it is still wanted."""


class LocalEngine:
    """Hires processes on this machine.

    Args:
        workers: How many at most; one per core by default.
        memory: GiB for all workers of large networks together.
    """

    name = "local"
    together = False

    def __init__(self, workers: int | None = None, memory: float | None = None) -> None:
        self._workers = workers or os.cpu_count() or 1
        self._memory = int(memory * 2**30) if memory else machine_memory() * 4 // 5
        self._gpus = gpus()

    @property
    def gpus(self) -> bool:
        """Whether this machine has one."""
        return bool(self._gpus)

    def hands(self, trade: Trade, tasks: int) -> int:
        """One per core; of large networks as many as there are GPUs, or as memory holds."""
        count = max(1, min(self._workers // max(1, int(trade.resources.cpus)), tasks))
        if trade.resources.memory:
            count = min(count, len(self._gpus) or max(1, self._memory // trade.resources.memory))
        return count

    def hire(
        self, trade: Trade, number: int, of: int, unless: Callable[[], bool]
    ) -> LocalHand | None:
        """Start a process; a death before it is ready says nothing about any task."""
        if unless():
            return None
        large = trade.resources.memory > 0
        device = {"CONVERGEBENCH_DEVICE": self._gpus[number]} if large and self._gpus else {}
        told = {
            "factory": trade.factory,
            "hello": dict(trade.hello),
            "threads": max(1, int(trade.resources.cpus)),
            "memory": self._memory // of if large else 0,
            "paths": sys.path,
            "settings": device,
        }
        hand = LocalHand(json.dumps(told))
        try:
            while not hand.is_there(SLICE):
                if unless():
                    hand.end()
                    return None
        except BaseException:
            hand.end()
            raise
        return hand

    def close(self) -> None:
        """Nothing is held."""


class LocalHand:
    """A process that works."""

    def __init__(self, told: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "convergebench.engines.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is the driver's business
        )
        with contextlib.suppress(OSError):  # who asks will notice
            self._send(told.encode())

    def is_there(self, seconds: float) -> bool:
        """Whether it is ready, after waiting so long at most. Raises WorkerDied."""
        assert self._process.stdout is not None
        waiting = select.poll()
        waiting.register(self._process.stdout, select.POLLIN)
        told = bool(waiting.poll(seconds * 1000))
        if told and self._receive() is None:
            raise WorkerDied(f"exit code {self._process.wait()}")
        return told

    def ask(self, task: bytes) -> Iterator[bytes]:
        """Its answers as they come."""
        with contextlib.suppress(OSError, ValueError):  # a broken pipe, or one closed by `end`
            self._send(task)
            while (message := self._receive()) is not None:
                kind, body = message
                if kind == END:
                    return
                if kind == REFUSED:
                    raise EngineError(body.decode())
                if kind != ANSWER:
                    raise WorkerDied(body.decode())
                yield body
        raise WorkerDied(f"exit code {self._process.wait()}")

    def end(self) -> None:
        """Kill it and what it has started: it writes nothing, and so leaves nothing behind."""
        end_group(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()

    def _send(self, body: bytes) -> None:
        if self._process.stdin:
            send(self._process.stdin, ANSWER, body)

    def _receive(self) -> tuple[bytes, bytes] | None:
        return receive(self._process.stdout) if self._process.stdout else None


def machine_memory() -> int:
    """Bytes of main memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def gpus() -> list[str]:
    """The GPUs a worker may be given; none when the user chose a device."""
    if os.environ.get("CONVERGEBENCH_DEVICE") or "CUDA_VISIBLE_DEVICES" in os.environ:
        return []
    found = sorted(Path("/proc/driver/nvidia/gpus").glob("*"))
    return [f"cuda:{index}" for index in range(len(found))]
