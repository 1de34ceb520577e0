"""`convergebench spend`."""

from __future__ import annotations

from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import show

EXAMPLES = (
    "Examples:  convergebench spend my-run   ·   convergebench spend my-run --calls   ·   "
    "convergebench spend my-run --json"
)


def spend(
    run: o.RunDirectory,
    calls: Annotated[
        bool, typer.Option("--calls", help="List every call of the ledger, one a line.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Say what a run has cost: by editor, and by how sure the figure is. Calls no editor."""
    from convergebench.money import spending

    spent = spending.spend(run)
    show(spent.calls if calls else spent, json)
