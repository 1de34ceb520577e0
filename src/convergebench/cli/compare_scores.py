"""`convergebench compare-scores`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import say, show

EXAMPLES = (
    "Examples:  convergebench compare-scores my-run   ·   "
    "convergebench compare-scores my-run --as ssim=ssim-uniform --tolerance 0.01 --show 20   ·   "
    "convergebench compare-scores my-run --strict --csv all-rows.csv"
)


def compare_scores(
    run: o.RunDirectory,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", help="Differences up to this count as none.", min=0),
    ] = 1e-6,
    shown: Annotated[
        int,
        typer.Option("--show", metavar="N", help="How many of the worst rows to list.", min=0),
    ] = 10,
    read_as: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="THEIRS=OURS",
            help="Compare their metric with another of ours: ssim=ssim-uniform; may be repeated.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Write every row there, too."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 1 when anything differs by more than that."),
    ] = False,
    json: o.Json = False,
) -> None:
    """Compare the scores that came with an import with ours: where they differ, and by how much.

    Measures nothing. Published scores stay beside ours, under their origin's name.
    """
    from convergebench import agreement
    from convergebench.errors import SettingsError

    pairs = [text.partition("=") for text in read_as or ()]
    for theirs, _, ours in pairs:
        if not (theirs and ours):
            raise SettingsError("--as takes THEIRS=OURS, as in --as ssim=ssim-uniform")
    same = {theirs: ours for theirs, _, ours in pairs}
    result = agreement.compare_scores(run, tolerance=tolerance, show=shown, read_as=same)
    show(result, json)
    if csv:
        result.write_csv(csv)
        say(f"{result.rows.height:,} rows written to {csv}")
    if strict and result.differing:
        raise typer.Exit(1)
