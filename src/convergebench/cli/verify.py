"""`convergebench verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench verify my-run   ·   convergebench verify my-run --json   ·   "
    "convergebench verify my-run.zip"
)


def verify(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="The run directory or its address, or a bundle of one.",
            show_default=False,
        ),
    ],
    json: o.Json = False,
) -> None:
    """Re-hash everything and name what is missing, altered, damaged or orphaned.

    A bundle is checked without unpacking it. Exits with 1 when the run is not sound.
    """
    from convergebench import verifier

    with display("hashing") as shown:
        result = verifier.verify(run, observe=shown.update)
    show(result, json)
    if not result.sound:
        raise typer.Exit(1)
