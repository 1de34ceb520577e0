"""A worker process: reads pieces of work, answers rows, as JSON lines; and the crew of them.

Plain subprocesses, as for scoring (`convergebench.workers` says why): a script needs no `__main__`
guard, and a worker that dies is replaced. A piece that kills two of them becomes null rows.
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
from pathlib import Path
from typing import Final

from convergebench.failures.looking import Looker, Piece, Seen

DEATHS: Final = 2
"""How many workers a piece may kill before it is given up."""


def look_at(path: Path, pieces: Sequence[Piece], workers: int) -> Iterator[Seen]:
    """Have all pieces looked at, in any order; in this process when one worker is enough."""
    if workers <= 1 or len(pieces) < 2:
        looker = Looker(path)
        for piece in pieces:
            yield looker.look(piece)
        return
    crew = _Crew(path, pieces, min(workers, len(pieces)))
    try:
        yield from crew.results()
    finally:
        crew.dismiss()


class _Crew:
    """A thread per worker process, all drawing from one queue of pieces."""

    def __init__(self, path: Path, pieces: Sequence[Piece], workers: int) -> None:
        self._path = path
        self._workers = workers
        self._left = len(pieces)
        self._stop = threading.Event()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._todo: queue.SimpleQueue[tuple[Piece, int]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Seen | BaseException] = queue.SimpleQueue()
        for piece in pieces:
            self._todo.put((piece, 0))
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]

    def results(self) -> Iterator[Seen]:
        """What was seen, as it comes. Raises what a thread raised."""
        for thread in self._threads:
            thread.start()
        while self._left:
            got = self._done.get()
            if isinstance(got, BaseException):
                raise got
            self._left -= 1
            yield got

    def dismiss(self) -> None:
        """Stop all workers now."""
        self._stop.set()
        for process in list(self._processes):
            process.kill()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        process: subprocess.Popen[bytes] | None = None
        try:
            while not self._stop.is_set():
                try:
                    piece, deaths = self._todo.get_nowait()
                except queue.Empty:
                    return
                while not self._stop.is_set():
                    process = process or self._start()
                    seen = self._exchange(process, piece)
                    if seen is not None:
                        self._done.put(seen)
                        break
                    code = process.wait()
                    self._end(process)
                    process, deaths = None, deaths + 1
                    if deaths >= DEATHS and not self._stop.is_set():
                        why = f"its worker died {DEATHS} times (exit code {code})"
                        self._done.put(Looker(self._path).given_up(piece, why))
                        break
        except BaseException as error:  # the driver raises it
            self._done.put(error)
        finally:
            if process is not None:
                self._end(process)

    @staticmethod
    def _exchange(process: subprocess.Popen[bytes], piece: Piece) -> Seen | None:
        """Have a worker look at a piece; None when it died over it."""
        try:
            _send(process, piece.to_json())
            line = process.stdout.readline() if process.stdout else b""
        except (BrokenPipeError, ConnectionResetError):
            return None
        return Seen.from_json(line) if line.endswith(b"\n") else None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", "from convergebench.failures.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is the driver's business
        )
        self._processes.add(process)
        threads = max(1, (os.cpu_count() or 1) // self._workers)
        hello = {"path": str(self._path.resolve()), "sys_path": sys.path, "threads": threads}
        with contextlib.suppress(BrokenPipeError):  # the exchange will notice
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


def main() -> None:
    """The worker: one line of introduction, then a piece a line; an answer a line."""
    # Answers go to the real stdout; what a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    hello = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = hello["sys_path"]
    import cv2

    cv2.setNumThreads(hello["threads"])
    looker = Looker(Path(hello["path"]))
    for line in sys.stdin.buffer:
        answers.write(looker.look(Piece.from_json(line)).to_json().encode() + b"\n")
        answers.flush()
