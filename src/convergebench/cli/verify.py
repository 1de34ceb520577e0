"""`convergebench verify`."""

from __future__ import annotations

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = "Examples:  convergebench verify my-run   ·   convergebench verify my-run --json"


def verify(run: o.RunDirectory, json: o.Json = False) -> None:
    """Re-hash everything and name what is missing, altered, damaged or orphaned.

    Exits with 1 when the run is not sound.
    """
    from convergebench import verifier

    with display("hashing") as shown:
        result = verifier.verify(run, observe=shown.update)
    show(result, json)
    if not result.sound:
        raise typer.Exit(1)
