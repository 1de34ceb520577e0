"""`convergebench analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import say, show

EXAMPLES = (
    "Examples:  convergebench analyze my-run   ·   convergebench analyze my-run --json   ·   "
    "convergebench analyze january february --rounds 5 --out findings.json"
)


def analyze(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="The run directory, or several to be compared.",
            show_default=False,
        ),
    ],
    threshold: Annotated[
        float,
        typer.Option("--threshold", "-t", help="Where half-lives are read off, above 0 to 1."),
    ] = 0.5,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", "-n", help="Look only at the first so many homecomings.", min=1),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write all findings into this file, too: .json, or .csv with a row for each.",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Print who is better than whom, by how much, and how sure that is.

    The leaderboard, every pair of editors tested, half-lives, results by group, the variance's
    sources and the worst chains. All findings are in findings.json of a single run, and in what
    --json prints. No page is drawn: that is what report does.
    """
    from convergebench.analysis.roundtrip import analyze_gathered
    from convergebench.analysis.tables import Analysis, write_findings
    from convergebench.gathering import gather

    found = analyze_gathered(gather(runs, rounds=rounds), threshold, insist=False)
    if out is not None:
        write_findings(found, out)
        say(f"{len(found.findings):,} findings are in {out}")
    show(Analysis(found), json)
