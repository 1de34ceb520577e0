"""`convergebench rate export` and `convergebench rate analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import say, show

if TYPE_CHECKING:
    import polars as pl

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
    from convergebench.opinions.keeping import keep_in_run
    from convergebench.ratings import open_study
    from convergebench.ratings.export import answers, csv_text
    from convergebench.store import RunStore
    from convergebench.wording import counted

    told = open_study(study)
    run = RunStore.open(to) if to else None  # before anything is written
    found = answers(study)
    if csv:
        _write(csv, csv_text(found).encode())
    if parquet:
        _write(parquet, _as_parquet(found))
    if run is not None:
        show(keep_in_run(found, run, partly=len(told.runs) > 1), json)
    elif json:
        import sys

        sys.stdout.write(found.write_json() + "\n")
    elif not (csv or parquet):
        typer.echo(csv_text(found), nl=False)
    places = ", ".join(str(place) for place in (csv, parquet) if place)
    say(f"{counted(found.height, 'row')} of answers" + (f" in {places}" if places else "") + ".")


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
    from convergebench import opinions
    from convergebench.opinions.opening import scores_for
    from convergebench.store import RunStore

    found = _answers(answers)
    place = run or (answers if RunStore.is_run(answers) else None)
    scores = scores_for(found, place) if place else None
    told = opinions.analyse(
        found, scores, title=answers.resolve().name, keep_outliers=keep_outliers
    )
    page = None
    if report:
        from convergebench.reporter.opinions import write_ratings

        page = write_ratings(told, report)
    show(told, json)
    if page:
        say(f"Page: {page}")


def _answers(path: Path) -> pl.DataFrame:
    from convergebench.opinions.opening import answers_at
    from convergebench.ratings import is_study
    from convergebench.ratings.export import answers

    return answers(path) if is_study(path) else answers_at(path)


def _as_parquet(found: pl.DataFrame) -> bytes:
    import io

    out = io.BytesIO()
    found.write_parquet(out)
    return out.getvalue()


def _write(path: Path, data: bytes) -> None:
    """Write a file whole, by way of a rename. Raises StoreError."""
    import os

    from convergebench.disk import plain_errors

    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with plain_errors(path):
        try:
            scratch.write_bytes(data)
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)
