"""`convergebench status`."""

from __future__ import annotations

import json as encoder
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from convergebench.cli import options as o
from convergebench.cli.output import LINE_EVERY, show
from convergebench.cli.watching import Stopped, panel, terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from convergebench.standing import Work
    from convergebench.store import RunStore

LOOK: Final = 1.0
"""Seconds between two looks at a run that is watched."""
LOOK_THERE: Final = 5.0
"""The same on object storage, where each is some requests."""

EXAMPLES = (
    "Examples:  convergebench status my-run   ·   convergebench status my-run --watch   ·   "
    "convergebench status my-run --json"
)


def status(
    run: o.RunDirectory,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on showing it until the work ends.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Say who works on a run now, how far that is, and what the run holds. Writes nothing.

    A process that ended without letting go, by a kill or a power cut, is told as such; the next
    command of its kind takes over. Ctrl-C ends --watch with 130, and not the work.
    """
    from convergebench import standing
    from convergebench.store import RunStore

    if watch:
        try:
            _watch(RunStore.open(run), json)
        except Stopped:
            raise typer.Exit(130) from None
    found = standing.status(run)
    if watch and json:
        print(encoder.dumps(found.to_dict(), ensure_ascii=False))
    else:
        show(found, json)


def _watch(store: RunStore, json: bool) -> None:
    """Show what is being done until nobody does anything."""
    from convergebench.standing import at_work

    console = None if json else terminal()
    if console:
        from rich.live import Live

        with Live(console=console, refresh_per_second=4, transient=True) as live:
            while works := [work for work in at_work(store) if work.at_work]:
                live.update(_drawn(works))
                time.sleep(LOOK_THERE if store.is_remote else LOOK)
        return
    while works := [work for work in at_work(store) if work.at_work]:
        if json:
            print(encoder.dumps({"works": [work.to_dict() for work in works]}), flush=True)
        else:
            for work in works:
                typer.echo(" — ".join(str(work).split("\n  ")), err=True)
        _rest(store)


def _rest(store: RunStore) -> None:
    """Wait for the next line, but not beyond the end of the work."""
    from convergebench.standing import at_work

    end = time.monotonic() + LINE_EVERY
    while time.monotonic() < end and any(work.at_work for work in at_work(store)):
        time.sleep(LOOK_THERE if store.is_remote else LOOK)


def _drawn(works: list[Work]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    lines: list[RenderableType] = []
    for work in works:
        if work.pace is not None:
            lines.append(panel(work.command, work.pace))
        lines.append(Text("  " + str(work).partition("\n")[0], style="dim"))
    return Group(*lines)
