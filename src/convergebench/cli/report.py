"""`convergebench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench report my-run   ·   convergebench report my-run --out pages   ·   "
    "convergebench report january february --rounds 5   ·   "
    "convergebench report my-run --format csv,latex,pdf"
)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="The run directory, or several to be compared in one report.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Where it all goes. (default: RUN/report; for several runs RUN+RUN-report here)",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", "-n", help="Look only at the first so many homecomings.", min=1),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="html, csv, latex, md or pdf; several with commas, or by repeating it. "
            "(default: html)",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Print the leaderboard and write one self-contained folder of pages, or other formats.

    Of a run that only restores pictures the methods are printed instead.

    Several runs are compared on what they share: the same pictures, cycles and rounds. Runs that
    share nothing are refused.

    csv gives every table and every finding; latex booktabs tables and vector figures for a paper;
    md one page of Markdown; pdf one file to be mailed.
    """
    from convergebench import reporter

    with display("thumbnails") as shown:
        result = reporter.report(
            *runs, out=out, rounds=rounds, observe=shown.update, formats=formats or ("html",)
        )
    show(result, json)
