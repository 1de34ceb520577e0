"""Worker processes for scoring: plain subprocesses that read units and answer rows, as JSON lines.

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


@dataclass(frozen=True)
class Measured:
    """A unit's rows; or, when it could not be measured, why."""

    unit: Unit
    rows: Sequence[Row]
    problem: str = ""
    decoded: int = 0


def measure_all(path: Path, units: Sequence[Unit], workers: int) -> Iterator[Measured]:
    """Measure units of a run, in any order; in this process when one worker is enough."""
    if workers <= 1:
        measurer = Measurer(path)
        for unit in units:
            before = measurer.decoded
            yield Measured(unit, measurer.measure(unit), "", measurer.decoded - before)
        return
    todo: queue.SimpleQueue[tuple[Unit, int]] = queue.SimpleQueue()
    for unit in units:
        todo.put((unit, 0))
    done: queue.SimpleQueue[Measured | int | BaseException] = queue.SimpleQueue()
    stop = threading.Event()
    threads = [
        threading.Thread(target=_serve, args=(path, workers, todo, done, stop), daemon=True)
        for _ in range(workers)
    ]
    try:
        for thread in threads:
            thread.start()
        left = len(units)
        while left:
            got = done.get()
            if isinstance(got, BaseException):
                raise got
            if isinstance(got, int):
                left += got
                continue
            left -= 1
            yield got
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=10)


def _serve(
    path: Path,
    workers: int,
    todo: queue.SimpleQueue[tuple[Unit, int]],
    done: queue.SimpleQueue[Measured | int | BaseException],
    stop: threading.Event,
) -> None:
    """Keep one worker process busy; runs in a thread of the driver."""
    process: subprocess.Popen[bytes] | None = None
    try:
        while not stop.is_set():
            try:
                unit, deaths = todo.get_nowait()
            except queue.Empty:
                return
            process = process or _start(path, workers)
            answer = _exchange(process, unit)
            if answer is not None:
                rows = [tuple(row) for row in answer["rows"]]
                done.put(Measured(unit, rows, answer["problem"], answer["decoded"]))
                continue
            code = process.wait()
            _end(process)
            process = None
            if len(unit.metrics) > 1:  # find out which of them it was
                done.put(len(unit.metrics) - 1)
                for metric in unit.metrics:
                    todo.put((replace(unit, metrics=(metric,)), 1))
            elif deaths + 1 < DEATHS:
                todo.put((unit, deaths + 1))
            else:
                problem = f"its worker died {DEATHS} times (exit code {code})"
                done.put(Measured(unit, Measurer(path).nulls(unit, problem), problem))
    except BaseException as error:  # the driver raises it
        done.put(error)
    finally:
        if process is not None:
            _end(process)


def _start(path: Path, workers: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "convergebench.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the driver's business
    )
    threads = max(1, (os.cpu_count() or 1) // workers)
    _send(process, {"path": str(path.resolve()), "sys_path": sys.path, "threads": threads})
    return process


def _exchange(process: subprocess.Popen[bytes], unit: Unit) -> dict[str, Any] | None:
    """A worker's answer to a unit, or None when it died."""
    try:
        _send(process, unit.to_json())
        line = process.stdout.readline() if process.stdout else b""
    except (BrokenPipeError, ConnectionResetError):
        return None
    if not line.endswith(b"\n"):
        return None
    answer: dict[str, Any] = json.loads(line)
    return answer


def _send(process: subprocess.Popen[bytes], value: dict[str, Any] | str) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    if process.stdin:
        process.stdin.write(text.encode() + b"\n")
        process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
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


def main() -> None:
    """The worker: one line of introduction, then a unit a line; an answer a line, until the end."""
    # Answers go to the real stdout; what a metric prints goes to stderr.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    hello = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = hello["sys_path"]
    import cv2

    cv2.setNumThreads(hello["threads"])
    measurer = Measurer(Path(hello["path"]))
    for line in sys.stdin.buffer:
        before = measurer.decoded
        answer: dict[str, Any] = {"rows": [], "problem": ""}
        try:
            answer["rows"] = measurer.measure(Unit.from_json(line))
        except ConvergeBenchError as error:
            answer["problem"] = str(error)
        answer["decoded"] = measurer.decoded - before
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
