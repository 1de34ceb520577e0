"""`convergebench copy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench copy my-run s3://bucket/my-run   ·   "
    "convergebench copy s3://bucket/my-run my-run"
)


def copy(
    run: o.RunDirectory,
    to: Annotated[Path, typer.Argument(metavar="TO", help="Where to: a directory or an address.")],
    json: o.Json = False,
) -> None:
    """Copy a run between directories and addresses. Goes on where it was interrupted.

    The copy is the same run: it can be gone on with, scored, reported, verified. Do not go on with
    both: they would be two runs of one name.
    """
    from convergebench.copying import copy as copied

    with display("copying") as shown:
        result = copied(run, to, observe=shown.update)
    show(result, json)
