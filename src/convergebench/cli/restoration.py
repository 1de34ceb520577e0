"""`convergebench restoration`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, say, show
from convergebench.errors import SettingsError

EXAMPLES = (
    "Examples:  convergebench restoration my-run   ·   "
    "convergebench restoration my-run specialists --table overall --table scenes   ·   "
    "convergebench restoration my-run --method SF2 --method hypir --csv tables   ·   "
    "convergebench restoration my-run --metric psnr --metric psnr@registered --json   ·   "
    "convergebench restoration my-run --judge gemini:gemini-3.8-flash --budget 2 -t cases   ·   "
    "convergebench restoration table2.csv"
)


def restoration(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="The scored run, or several together; or a CSV of scores (columns prompt and "
            "group, or method; a column per metric; image, scene, damage, repeat where known).",
            show_default=False,
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help="Only this metric; may be repeated; NAME@registered is it after registration. "
            "(default: the paper's six, as far as they are scored)",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Only this method, by editor, prompt or both; may be repeated. (default: all)",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            metavar="NAME",
            help="Only this table: overall, prompts, effects, stability, outliers, scenes, cases "
            "or tradeoff; may be repeated. (default: all that are short)",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="DIR", help="Write every table there, as CSV and as LaTeX."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="NAME",
            help="A model that is asked first, of every output, whether it is unfaithful "
            "or over-generated; its answers are kept.",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", help="Answers of the judge per output.", min=1)
    ] = 1,
    budget: o.Budget = None,
    json: o.Json = False,
) -> None:
    """Which prompt restores best, how stably, and how does it compare with specialists?

    Means over the same pictures for prompts, their groups, scenes and methods; the effect of what
    prompts differ in; Friedman's test over repeats; cases of infidelity and over-generation.
    """
    from convergebench.restoration import judge_restorations
    from convergebench.restoration.tables import Selection, checked

    wanted = checked(table or ())
    if judge is not None:
        _label(runs, judge, samples, budget)
    elif budget is not None:
        raise SettingsError("--budget is for a judge, and none is named. Give --judge too.")
    study = judge_restorations(*runs, metrics=metric, methods=method)
    if csv is not None:
        from convergebench.reporter.restoration.latex import write_latex
        from convergebench.restoration.files import write_tables

        written = [*write_tables(study, csv), *write_latex(study, csv)]
        say(f"{len(written)} files in {csv}")
    show(study if json or not wanted else Selection(study.tables(wanted)), json)


def _label(runs: list[Path], judge: str, samples: int, budget: float | None) -> None:
    from convergebench.restoration.labelling import label, opened

    if len(runs) > 1:
        raise SettingsError("a judge looks at one run at a time: give --judge with one of them.")
    asking = opened(runs[0], judge, samples=samples, budget=budget)
    say(asking.announcement)
    with display("labels") as shown:
        found = label(asking, shown.update)
    say(str(found))
