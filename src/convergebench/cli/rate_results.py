"""`convergebench rate export` and `convergebench rate analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import say, show

EXPORT_EXAMPLES = (
    "Examples:  convergebench rate export my-study > answers.csv   ·   "
    "convergebench rate export my-study --csv answers.csv --parquet answers.parquet   ·   "
    "convergebench rate export my-study --to my-run"
)
ANALYZE_EXAMPLES = (
    "Examples:  convergebench rate analyze my-study --run my-run   ·   "
    "convergebench rate analyze my-run --report my-run/report   ·   "
    "convergebench rate analyze raw-scores.csv --json"
)


def export(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="The folder of the study.", show_default=False)
    ],
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write them as CSV.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write them as Parquet.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="RUN",
            help="Add them to the run that was rated: as rows human/… of its score table, and all "
            "of them as a file in its folder ratings.",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Bring out all answers of a rating study; as CSV on stdout where no place is given.

    Every answer is there, of practice and attention items as well: the column `kind` tells them
    apart. May be repeated while a study is going on; nothing is added twice.
    """
    from convergebench.ratings.export import csv_text
    from convergebench.ratings.results import export as bring_out

    done = bring_out(study, csv=csv, parquet=parquet, to=to)
    if done.kept is not None:
        show(done.kept, json)
    elif json:
        typer.echo(done.answers.write_json())
    elif not done.files:
        typer.echo(csv_text(done.answers), nl=False)
    say(str(done))


def analyze(
    answers: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY|RUN|FILE",
            help="A rating study, a run that has its answers, or a file: as `rate export` writes "
            "it, or a CSV of raw scores (asset_id, content_id, s1, s2 …).",
            show_default=False,
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="RUN", help="The scored run that was rated, to compare metrics with."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write the page ratings.html there."),
    ] = None,
    keep_outliers: Annotated[
        bool,
        typer.Option(
            "--keep-outliers",
            help="Count raters as well that screening or attention checks speak against.",
        ),
    ] = False,
    json: o.Json = False,
) -> None:
    """Say what people think: mean opinions, who agrees, which metrics agree with people.

    Raters that BT.500's screening or failed attention checks speak against are named and left out;
    the results with everybody stand beside. Intervals are 95 % and resample pictures and raters.
    """
    from convergebench.ratings.results import analyze as judge

    told = judge(answers, run, keep_outliers=keep_outliers)
    page = None
    if report:
        from convergebench.reporter.opinions import write_ratings

        page = write_ratings(told, report)
    show(told, json)
    if page:
        say(f"Page: {page}")
