"""Printing results, and progress: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

LINE_EVERY: Final = 5.0
"""Seconds between two plain progress lines."""


def show(result: Any, as_json: bool) -> None:
    """Print a result: JSON, a table drawn for the terminal, or the same as plain text."""
    if as_json:
        print(json.dumps(result.to_dict(), indent=1, ensure_ascii=False))
    elif sys.stdout.isatty():
        from rich.console import Console

        from convergebench.table import Table, fitting

        console, table = Console(highlight=False), getattr(result, "table", result)
        whole, drawn = str(result), str(table)
        fits = isinstance(table, Table) and max(map(len, whole.splitlines())) < console.width
        if fits and whole == drawn:
            console.print(table, markup=False)
        else:
            with fitting(console.width):
                console.print(str(result), markup=False, soft_wrap=True)
    else:
        print(result)


def say(text: str) -> None:
    """One line to stderr."""
    print(text, file=sys.stderr, flush=True)


def aside() -> contextlib.redirect_stdout[TextIO]:
    """While in the block, what users' own code prints goes to stderr: stdout is the result."""
    return contextlib.redirect_stdout(sys.stderr)


class Display:
    """One progress line: a bar in a terminal, a plain line every few seconds elsewhere."""

    def __init__(self, title: str, bars: Bars | None) -> None:
        self._title = title
        self._bars = bars
        self._task: TaskID | None = bars.add_task(title, total=None, text="") if bars else None
        self._begun = self._last = time.monotonic()
        self._first: int | None = None
        self._told = ""

    def begin(self, title: str) -> None:
        """Show another part of the work from now on, timed on its own."""
        self._title, self._first, self._begun = title, None, time.monotonic()
        if self._bars is not None and self._task is not None:
            self._bars.reset(self._task, description=title, total=None, text="")

    def update(self, done: int, total: int, text: str = "", event: str = "") -> None:
        """Show how far things are; an event gets a line of its own."""
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=done, total=total, text=text)
            if event:
                self._bars.console.print(f"  {event}", markup=False, highlight=False)
            return
        if event:
            say(f"  {event}")
        now = time.monotonic()
        self._first = done if self._first is None else self._first
        line = f"{self._title}: {done} of {total}{', ' + text if text else ''}"
        if (now - self._last >= LINE_EVERY or done == total) and line != self._told:
            self._last, self._told = now, line
            say(line + self._left(done - self._first, total - done, now - self._begun))

    @staticmethod
    def _left(made: int, missing: int, seconds: float) -> str:
        """How long the rest will take, at the rate so far."""
        if not (made and missing):
            return ""
        left = missing * seconds / made
        return f", about {left:.0f} s left" if left < 120 else f", about {left / 60:.0f} min left"


@contextlib.contextmanager
def display(title: str) -> Iterator[Display]:
    """A progress display on stderr while in the block."""
    if not sys.stderr.isatty():
        yield Display(title, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        yield Display(title, bars)
