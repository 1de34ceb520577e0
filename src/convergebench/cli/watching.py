"""Watching long work: a live display in a terminal, plain lines elsewhere, or a JSON log."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from convergebench.cli.output import LINE_EVERY, say
from convergebench.errors import ConvergeBenchError
from convergebench.progress import (
    Pace,
    Snapshot,
    Tally,
    Told,
    facts,
    line,
    parts,
    remaining,
    speed,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.live import Live

    from convergebench.logs import Log

STILL: Final = 60.0
"""Seconds after which a plain line is repeated although nothing has changed."""


REST_WIDTH: Final = len("about 12 min left")
"""Letters that are kept free for the time left."""
NUMBER_WIDTH: Final = 9
"""Letters that are kept free for a number."""


class Stopped(BaseException):
    """Ctrl-C, or SIGTERM. Not a KeyboardInterrupt, which the command-line library would swallow."""


class Watch:
    """Takes what observers are told, and shows it; what is shown is up to the subclasses."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._tally = Tally(time.monotonic())
        self._events: set[str] = set()
        self._guard = threading.RLock()  # re-entered by a signal's handler

    def told(self, progress: Told) -> None:
        """An observer for `run` and `score`."""
        step = getattr(progress, "step", None)
        self.see(progress.snapshot, progress.event, step)
        if code := getattr(progress, "last", 0):
            self.close()
            self.exits(code)

    def exits(self, code: int) -> None:
        """The process ends now, without leaving this block."""

    def see(self, now: Snapshot, event: str = "", step: Any = None) -> None:
        """Things are that far; an event gets a line of its own."""
        with self._guard:
            self._tally.add(time.monotonic(), now)
        if event:
            self._events.add(event)
            self.happened(event, step)

    def untold(self, notes: Iterable[str]) -> list[str]:
        """Those that were not told on the way: on the screen once is enough."""
        return [note for note in notes if note not in self._events]

    def begin(self, title: str) -> None:
        """Show another part of the work from now on, timed on its own."""
        with self._guard:
            self._title, self._tally = title, Tally(time.monotonic())

    def pace(self) -> tuple[str, Pace]:
        """The part that is shown, and its pace now."""
        with self._guard:
            return self._title, self._tally.pace(time.monotonic())

    def happened(self, event: str, step: Any) -> None:
        """Tell an event."""
        raise NotImplementedError

    def close(self) -> None:
        """No more will come."""


class _Ticking(Watch):
    """Tells the pace every few seconds, whether anything happens or not."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._closed = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
        self._ticker.start()

    def _tick(self) -> None:
        while not self._closed.wait(LINE_EVERY):
            with self._guard:
                if not self._closed.is_set():
                    self.tell()

    def tell(self) -> None:
        """Tell the pace."""
        raise NotImplementedError

    def begin(self, title: str) -> None:
        with self._guard:
            self.tell()
            super().begin(title)

    def close(self) -> None:
        with self._guard:
            if not self._closed.is_set():
                self._closed.set()
                self.tell()


class _Lines(_Ticking):
    """Plain lines on stderr."""

    def __init__(self, title: str) -> None:
        self._told: tuple[str, Snapshot] | None = None
        self._last = 0.0
        super().__init__(title)

    def tell(self) -> None:
        title, pace = self.pace()
        same = self._told == (title, pace.now) and time.monotonic() - self._last < STILL
        if pace.now.total and not same:
            self._told, self._last = (title, pace.now), time.monotonic()
            say(line(title, pace))

    def happened(self, event: str, step: Any) -> None:
        say(f"  {event}")


class _Logged(_Ticking):
    """Events of a JSON log."""

    def __init__(self, title: str, log: Log) -> None:
        self._log = log
        super().__init__(title)

    def tell(self) -> None:
        title, pace = self.pace()
        if pace.now.total:
            self._log.tell("progress", part=title, **pace.to_dict())
            self._log.closing = {name: pace.to_dict()[name] for name in ("done", "total", "unit")}
            self._log.closing["failures"] = pace.now.failures
            self._log.closing["dollars"] = pace.now.dollars

    def happened(self, event: str, step: Any) -> None:
        if step:
            self._log.tell("step", part=self._title, **step)
        else:
            self._log.tell("problem", part=self._title, text=event)

    def exits(self, code: int) -> None:
        self._log.closing["stopped"] = "interrupted"
        self._log.end(code)


class _Drawn(Watch):
    """A display that is drawn over itself, in a terminal."""

    def __init__(self, title: str, console: Console) -> None:
        from rich.live import Live

        super().__init__(title)
        self._live: Live = Live(
            get_renderable=lambda: panel(*self.pace()), console=console, refresh_per_second=4
        )
        self._live.start()

    def happened(self, event: str, step: Any) -> None:
        self._live.console.print(f"  {event}", markup=False, highlight=False)

    def close(self) -> None:
        if self._live.is_started:
            # What stays on the screen: how it ended, without the list.
            self._live.get_renderable = lambda: panel(*self.pace(), whole=False)  # type: ignore[method-assign]
            self._live.stop()


def panel(title: str, pace: Pace, *, whole: bool = True) -> RenderableType:
    """A bar, what is known in one line, and a short list of the parts.

    The last line never fills the terminal: a Ctrl-C that is echoed behind it would begin another
    line, and the next drawing would miss the first one by that much.
    """
    from rich.console import Group
    from rich.padding import Padding
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    now = pace.now
    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column(no_wrap=True)
    head.add_column(ratio=1)
    # Of a width that hardly changes, so that the bar does not, either.
    head.add_column(no_wrap=True, justify="right")
    head.add_column(no_wrap=True, justify="right", min_width=REST_WIDTH if whole else 0)
    bar = ProgressBar(total=now.total or None, completed=now.done, pulse=not now.total)
    if not now.total:
        head.add_row(Text(title), bar, "", "")
        return Group(head, Text("  preparing", style="dim")) if whole else head
    total = f"{now.total:,}"
    share = f"{now.done:>{len(total)},} of {total} {now.unit}".rstrip()
    head.add_row(Text(title), bar, Text(share), Text(remaining(pace) if whole else ""))
    known = Text(" · ".join(facts(pace)), style="dim")
    lines: list[RenderableType] = [head, Padding(known, (0, 0, 0, 2), expand=False)]
    if whole and len(now.parts) > 1:
        lines.append(_Listed(pace))
    return Group(*lines)


class _Listed:
    """The parts, one a line, in a terminal of any width."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column(f"  {self._pace.now.kind}", no_wrap=True)
        for name in ("done", "of", "rate"):
            table.add_column(name, justify="right", no_wrap=True, min_width=NUMBER_WIDTH)
        room = options.max_width - 3 * (NUMBER_WIDTH + 2) - 4
        for part in parts(self._pace):
            rate = speed(part.rate) if part.rate else ""
            style = "dim" if part.done >= part.total else ""
            cells = (f"  {_cut(part.name, room)}", f"{part.done:,}", f"{part.total:,}", rate)
            table.add_row(*(Text(cell) for cell in cells), style=style)
        yield table


def _cut(name: str, room: int) -> str:
    """A name without its middle, where it is too long: options, which tell it apart, come last."""
    if len(name) <= room:
        return name
    tail = max(0, room - 1) // 2
    return name[: max(0, room - 1 - tail)] + "…" + (name[-tail:] if tail else "")


def terminal() -> Console | None:
    """The terminal that stderr is, if it is one that can be drawn on."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None
    from rich.console import Console

    return Console(stderr=True)


@contextlib.contextmanager
def watching(title: str, log: Log | None = None) -> Iterator[Watch]:
    """Show how far things are while in the block."""
    console = None if log else terminal()
    shown: Watch
    if log:
        shown = _Logged(title, log)
    elif console:
        shown = _Drawn(title, console)
    else:
        shown = _Lines(title)
    try:
        yield shown
    finally:
        shown.close()


@contextlib.contextmanager
def looking() -> Iterator[None]:
    """What only looks ends at Ctrl-C without a word: there is nothing to keep or to resume."""
    try:
        yield
    except Stopped:
        raise typer.Exit(130) from None


@contextlib.contextmanager
def logging(command: str, run: Path | str, asked: bool) -> Iterator[Log | None]:
    """A JSON log of a command, if one was asked for; its errors are told there."""
    if not asked:
        yield None
        return
    from convergebench import logs
    from convergebench.remote.address import place_of

    with logs.opened(command, str(place_of(run))) as log:
        log.start()
        try:
            yield log
        except ConvergeBenchError as error:
            log.error(str(error), 2)
            raise typer.Exit(2) from error
        except Stopped:
            log.closing["stopped"] = "interrupted"
            log.end(130)
            raise typer.Exit(130) from None
        except typer.Exit as done:
            log.end(done.exit_code)
            raise
        except BrokenPipeError:  # `convergebench … | head`
            log.end(0)
            raise
        except Exception as error:
            log.error(f"{type(error).__name__}: {error}", 1, traceback=traceback.format_exc())
            raise typer.Exit(1) from error
        log.end(0)
