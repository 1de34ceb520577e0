"""`convergebench view`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = (
    "Examples:  convergebench view my-run   ·   convergebench view my-run --open --port 8765   ·   "
    "convergebench view january february --out both"
)


def view(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="The run directory, or several to be compared in one report.",
            show_default=False,
        ),
    ],
    port: Annotated[
        int, typer.Option("--port", "-p", help="Port on 127.0.0.1; 0 is any that is free.", min=0)
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the page in this machine's browser.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where the pages are made. (default: RUN/report)"
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", "-n", help="Look only at the first so many homecomings.", min=1),
    ] = None,
) -> None:
    """Serve the report on this machine, and make it again as frames and scores arrive.

    It only reads the run, so it can stay open beside `run` and `score`. Nothing outside this
    machine can reach it. Stop it with Ctrl-C; the pages stay in their folder.
    """
    from convergebench.cli.output import say
    from convergebench.live import Live, served, wait_for_a_signal

    live = Live(runs, out=out, rounds=rounds)
    with served(live, port) as address:
        print(f"{address}  (Ctrl-C stops)", flush=True)
        if open_:
            import webbrowser

            webbrowser.open(address)
        wait_for_a_signal()
    say(f"The pages stay in {live.folder}." if live.version else "No page was made.")
