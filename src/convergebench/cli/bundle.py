"""`convergebench bundle` and `convergebench unbundle`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import Display, display, show

EXAMPLES = (
    "Examples:  convergebench bundle my-run   ·   "
    "convergebench bundle my-run --out for-ada.zip --with-report"
)
UNBUNDLE_EXAMPLES = (
    "Examples:  convergebench unbundle my-run.zip   ·   "
    "convergebench unbundle my-run.zip --to from-ada   ·   "
    "convergebench unbundle torn.zip --to rest --salvage"
)
MIB = 2**20


def bundle(
    run: o.RunDirectory,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The archive. (default: the run's name with .zip, in the current directory)",
        ),
    ] = None,
    with_report: Annotated[
        bool, typer.Option("--with-report", help="Take the report's pages along.")
    ] = False,
    damaged: Annotated[
        bool,
        typer.Option("--damaged", help="Bundle a run that is not sound, as far as it is there."),
    ] = False,
    json: o.Json = False,
) -> None:
    """Write a run as one archive to hand on: checkable, and equal for equal runs.

    Interrupted, the same command goes on. Exits with 1 when something of the run is not in it.
    """
    from convergebench import bundler

    with display("bundling (MiB)") as shown:
        result = bundler.bundle(
            run, out, with_report=with_report, damaged=damaged, observe=_mebibytes(shown)
        )
    show(result, json)
    if result.absent:
        raise typer.Exit(1)


def unbundle(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle.", show_default=False)],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="The run directory. (default: the bundle's name, in the current directory)",
        ),
    ] = None,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Take the good files out of a damaged bundle.")
    ] = False,
    max_size: Annotated[
        float | None,
        typer.Option("--max-size", metavar="GIB", help="Refuse what unpacks to more GiB.", min=0),
    ] = None,
    json: o.Json = False,
) -> None:
    """Unpack a bundle into a run directory, trusting nothing in it.

    A damaged or unsafe bundle is refused, with a list of what is wrong. Interrupted, the same
    command goes on. Exits with 1 when a salvaged run is not whole.
    """
    from convergebench import unbundler

    limit = None if max_size is None else int(max_size * 2**30)
    with display("unbundling (MiB)") as shown:
        result = unbundler.unbundle(
            file, to, salvage=salvage, max_size=limit, observe=_mebibytes(shown)
        )
    show(result, json)
    if not result.whole:
        raise typer.Exit(1)


def _mebibytes(shown: Display) -> Callable[[int, int], None]:
    """Progress in bytes, shown in units that can be read."""
    return lambda done, total: shown.update(-(-done // MIB), -(-total // MIB))
