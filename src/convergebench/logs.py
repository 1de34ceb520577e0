r"""Structured logs: on stderr one JSON object a line, whoever wrote there.

While a log is open, stderr leads into a small process of its own. It passes our lines on and wraps
all others (what editors and metrics print, warnings of libraries, tracebacks) as `text`. A process
and not a thread, so that it still tells what came before a kill, and so that nobody who holds the
interpreter's lock and writes a lot waits for us for ever.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from convergebench.errors import scrub

MARK: Final = b"\x1e"
"""Begins a line of ours, as in JSON text sequences: no text has it."""
LONGEST: Final = 10_000
"""Letters of a line of somebody else's that are kept."""
PATIENCE: Final = 3.0
"""Seconds that the filter has to tell the last lines."""


class Log:
    """Tells events.

    Attributes:
        command: The command that is logged.
        run: The run it works on, as the user named it.
        closing: What the last event says besides, to be filled in on the way.
    """

    def __init__(self, command: str, run: str) -> None:
        self.command = command
        self.run = run
        self.closing: dict[str, Any] = {}
        self._begun = time.monotonic()
        self._guard = threading.RLock()  # re-entered by a signal's handler

    def tell(self, event: str, **facts: Any) -> None:
        """One event, as one line."""
        line = MARK + _line(event, self.command, self.run, facts) + b"\n"
        # Who reads the log may have gone; the work goes on.
        with self._guard, contextlib.suppress(OSError):
            view = memoryview(line)
            while view:
                view = view[os.write(2, view) :]

    def start(self) -> None:
        """The first event."""
        mine = {"pid": os.getpid(), "host": platform.node()}
        self.tell("start", **mine, version=version("convergebench"))

    def error(self, text: str, code: int, **more: Any) -> None:
        """The last event of a command that failed."""
        self.tell("error", text=text, exit=code, seconds=self._seconds(), **more)

    def end(self, code: int) -> None:
        """The last event."""
        self.tell("end", exit=code, seconds=self._seconds(), **self.closing)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._begun, 3)


@contextlib.contextmanager
def opened(command: str, run: str) -> Iterator[Log]:
    """A log on stderr; nothing but its lines gets there while in the block."""
    sys.stderr.flush()
    real = os.dup(2)
    code = f"import sys; sys.path[:] = {sys.path!r}; from convergebench import logs; logs.main()"
    filtering = subprocess.Popen(
        [sys.executable, "-c", code, command, run],
        stdin=subprocess.PIPE,
        stdout=real,
        start_new_session=True,  # Ctrl-C is not for it: it ends when there is nothing more to tell
    )
    if filtering.stdin is not None:
        os.dup2(filtering.stdin.fileno(), 2)
        filtering.stdin.close()
    try:
        yield Log(command, run)
    finally:
        sys.stderr.flush()
        os.dup2(real, 2)
        os.close(real)
        # A process that we started and that outlives us may keep it open.
        with contextlib.suppress(subprocess.TimeoutExpired):
            filtering.wait(PATIENCE)


def main() -> None:
    """The filter: lines from stdin, JSON to stdout, until nobody is left who could write."""
    command, run = sys.argv[1:3]
    gone = False
    for raw in iter(sys.stdin.buffer.readline, b""):
        text, *ours = raw.rstrip(b"\n").split(MARK)
        lines = [line if _is_ours(line) else _text(line, command, run) for line in ours]
        out = [_text(text, command, run), *lines]
        try:
            if not gone:
                sys.stdout.buffer.write(b"".join(line + b"\n" for line in out if line))
                sys.stdout.buffer.flush()
        except OSError:  # nobody reads; go on, so that nobody who writes has to wait
            gone = True
    if gone:
        os._exit(0)  # Python would complain about what it cannot flush


def _is_ours(line: bytes) -> bool:
    """Whether a line came whole: a long one may be mixed with what another process wrote."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _text(line: bytes, command: str, run: str) -> bytes:
    """A line of somebody else's, as an event; nothing for an empty one."""
    # Of bars that are drawn over themselves, the last.
    text = line.decode("utf-8", "replace").rstrip().rpartition("\r")[2][:LONGEST]
    return _line("text", command, run, {"text": text}) if text.strip() else b""


def _line(event: str, command: str, run: str, facts: dict[str, Any]) -> bytes:
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told = {"at": at, "event": event, "command": command, "run": run, **facts}
    return scrub(json.dumps(told, ensure_ascii=False, default=str)).encode("utf-8", "replace")
