"""`convergebench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = "Examples:  convergebench report my-run   ·   convergebench report my-run --out pages"


def report(
    run: o.RunDirectory,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where the pages go. (default: RUN/report)"
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Print the leaderboard and write one self-contained folder of pages."""
    from convergebench import reporter

    with display("thumbnails") as shown:
        result = reporter.report(run, out, observe=shown.update)
    show(result, json)
