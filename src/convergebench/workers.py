"""Worker processes for scoring: plain subprocesses that read units and answer rows, as JSON lines.

Isolated metrics (large networks) get workers of their own: fewer of them, each under a memory
limit that the system enforces, one for each GPU where there are some. A metric that wants more
memory than that gets an error for that frame, and the run goes on.

Ours rather than multiprocessing because it is safer: a script needs no `__main__` guard, nothing is
pickled, a foreign metric that prints cannot garble the answers, and a worker that dies (out of
memory, a crash in a native library) is replaced and its unit tried again, metric by metric; what
kills three workers becomes null rows with that reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from convergebench.errors import ConvergeBenchError
from convergebench.measure import Measurer, Row, Unit

DEATHS: Final = 3
"""How many workers a unit may kill before it is given up."""
APART_BYTES: Final = 6 << 30
"""Memory that a worker of isolated metrics should have at least; fewer are started otherwise."""


@dataclass(frozen=True)
class Measured:
    """Some rows of a unit, as they come; the last piece of a unit says so."""

    unit: Unit
    rows: Sequence[Row]
    problem: str = ""
    decoded: int = 0
    last: bool = False


def measure_all(path: Path, units: Sequence[Unit], workers: int) -> Iterator[Measured]:
    """Measure units of a run, in any order; in this process when one worker is enough."""
    if workers <= 1:
        measurer = Measurer(path)
        for unit in units:
            yield from _pieces(measurer, unit)
        return
    crew = _Crew(path, units, workers)
    try:
        yield from crew.results()
    finally:
        crew.dismiss()


def measure_apart(
    path: Path, units: Sequence[Unit], workers: int, memory: float | None
) -> Iterator[Measured]:
    """Measure units of isolated metrics, always in processes of their own.

    Args:
        path: The run directory.
        units: The work, metric by metric.
        workers: How many processes at most.
        memory: GiB for all of them together; four fifths of the machine's by default.
    """
    total = int(memory * 2**30) if memory else _machine_memory() * 4 // 5
    gpus = _gpus()
    count = min(workers, len(gpus) or max(1, total // APART_BYTES))
    crew = _Crew(path, units, count, memory=total // count, devices=gpus)
    try:
        yield from crew.results()
    finally:
        crew.dismiss()


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gpus() -> list[str]:
    """The GPUs a worker may be given; none when the user chose a device."""
    if os.environ.get("CONVERGEBENCH_DEVICE") or "CUDA_VISIBLE_DEVICES" in os.environ:
        return []
    found = sorted(Path("/proc/driver/nvidia/gpus").glob("*"))
    return [f"cuda:{index}" for index in range(len(found))]


def _pieces(measurer: Measurer, unit: Unit) -> Iterator[Measured]:
    """Measure a unit here; one that cannot be read ends with its problem."""
    before, problem = measurer.decoded, ""
    try:
        for rows in measurer.measure(unit):
            yield Measured(unit, rows)
    except ConvergeBenchError as error:
        problem = str(error)
    yield Measured(unit, (), problem, measurer.decoded - before, last=True)


class _Crew:
    """A thread of the driver per worker process, all drawing from one queue of units."""

    def __init__(
        self,
        path: Path,
        units: Sequence[Unit],
        workers: int,
        *,
        memory: int = 0,
        devices: Sequence[str] = (),
    ) -> None:
        self._path = path
        self._workers = workers
        self._memory = memory
        self._devices = devices
        self._left = len(units)
        self._stop = threading.Event()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._todo: queue.SimpleQueue[tuple[Unit, int]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Measured | int | BaseException] = queue.SimpleQueue()
        for unit in units:
            self._todo.put((unit, 0))
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), daemon=True)
            for number in range(workers)
        ]

    def results(self) -> Iterator[Measured]:
        """Pieces of all units as they come. Raises what a thread raised."""
        for thread in self._threads:
            thread.start()
        while self._left:
            got = self._done.get()
            if isinstance(got, BaseException):
                raise got
            if isinstance(got, int):  # a unit was split into so many more
                self._left += got
                continue
            self._left -= got.last
            yield got

    def dismiss(self) -> None:
        """Stop all workers now."""
        self._stop.set()
        for process in list(self._processes):
            process.kill()
        for thread in self._threads:
            thread.join()

    def _serve(self, number: int) -> None:
        process: subprocess.Popen[bytes] | None = None
        try:
            while not self._stop.is_set():
                try:
                    unit, deaths = self._todo.get_nowait()
                except queue.Empty:
                    return
                process = process or self._start(number)
                left = self._exchange(process, unit)
                if left is not None and not self._stop.is_set():
                    self._buried(left, deaths + 1, process.wait())
                    self._end(process)
                    process = None
        except BaseException as error:  # the driver raises it
            self._done.put(error)
        finally:
            if process is not None:
                self._end(process)

    def _exchange(self, process: subprocess.Popen[bytes], unit: Unit) -> Unit | None:
        """Have a worker measure a unit and pass its answers on as they come.

        Returns None when it is whole, or, when the worker died over it, what is left of it.
        """
        known = set(unit.known)
        try:
            _send(process, unit.to_json())
            for line in process.stdout or ():
                if not line.endswith(b"\n"):
                    break
                told: dict[str, Any] = json.loads(line)
                piece = Measured(unit, [tuple(row) for row in told.pop("rows")], **told)
                known |= {(row[1], f"{row[2]}@{row[3]}", row[4], row[5]) for row in piece.rows}
                self._done.put(piece)
                if piece.last:
                    return None
        except (BrokenPipeError, ConnectionResetError):
            pass
        return replace(unit, known=frozenset(known))

    def _buried(self, unit: Unit, deaths: int, code: int) -> None:
        """What to do with a unit whose worker died: try its metrics one by one, or give it up."""
        if len(unit.metrics) > 1:
            self._done.put(len(unit.metrics) - 1)
            for metric in unit.metrics:
                self._todo.put((replace(unit, metrics=(metric,)), 1))
        elif deaths < DEATHS:
            self._todo.put((unit, deaths))
        else:
            problem = f"its worker died {DEATHS} times (exit code {code})"
            rows = Measurer(self._path).nulls(unit, problem)
            self._done.put(Measured(unit, rows, problem, last=True))

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        device = {"CONVERGEBENCH_DEVICE": self._devices[number]} if self._devices else {}
        process = subprocess.Popen(
            [sys.executable, "-m", "convergebench.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **device},
            start_new_session=True,  # Ctrl-C is the driver's business
        )
        self._processes.add(process)
        hello = {
            "path": str(self._path.resolve()),
            "sys_path": sys.path,
            "threads": max(1, (os.cpu_count() or 1) // self._workers),
            "memory": self._memory,
        }
        _send(process, json.dumps(hello))
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._processes.discard(process)
        with contextlib.suppress(OSError):
            if process.stdin:
                process.stdin.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def _send(process: subprocess.Popen[bytes], text: str) -> None:
    if process.stdin:
        process.stdin.write(text.encode() + b"\n")
        process.stdin.flush()


def _limit(memory: int) -> None:
    """Have the system refuse this process more memory than that; not every system can."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def main() -> None:
    """The worker: one line of introduction, then a unit a line; answers a line each."""
    # Answers go to the real stdout; what a metric prints goes to stderr.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    hello = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = hello["sys_path"]
    if hello["memory"]:
        _limit(hello["memory"])
    import cv2

    cv2.setNumThreads(hello["threads"])
    measurer = Measurer(Path(hello["path"]))
    for line in sys.stdin.buffer:
        for piece in _pieces(measurer, Unit.from_json(line)):
            told = {"rows": piece.rows, "problem": piece.problem, "decoded": piece.decoded}
            answers.write(json.dumps({**told, "last": piece.last}).encode() + b"\n")
            answers.flush()


if __name__ == "__main__":
    main()
