"""`convergebench trial`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, say, show
from convergebench.errors import SettingsError

EXAMPLES = (
    "Examples:  convergebench trial my-run   ·   "
    "convergebench trial my-run --steps 5,10,20 --metric brisque --metric niqe   ·   "
    "convergebench trial my-run --scores mine.csv,lower-is-better,range=0:100   ·   "
    "convergebench trial my-run --command 'mine=python my_metric.py' --ratings people.csv"
)


def trial(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="The scored run, or several together.", show_default=False
        ),
    ],
    steps: Annotated[
        str,
        typer.Option("--steps", metavar="5,10,20", help="Later steps to compare with step 1."),
    ] = "5,10,20",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help="Only this scored metric; may be repeated; none: only your own. (default: all "
            "no-reference ones)",
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--scores",
            metavar="FILE",
            help="A table of your own metric's scores, as FILE,name=…,lower-is-better,"
            "range=LOW:HIGH; may be repeated.",
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            metavar="NAME=COMMAND",
            help="A command that reads paths of pictures from stdin, a line each, and prints a "
            "number for each; with {} in it the paths are its arguments. May be repeated.",
        ),
    ] = None,
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(
            "--lower-is-better",
            metavar="NAME",
            help="Of your own metrics, one that is the better the lower; may be repeated.",
        ),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option("--ratings", metavar="FILE", help="People's ratings of frames, as a table."),
    ] = None,
    cycle: Annotated[
        list[str] | None,
        typer.Option("--cycle", metavar="NAME", help="Only this cycle; may be repeated."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", help="Seconds a command may print nothing.", min=0.1),
    ] = 600.0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Where page and tables go. (default: RUN/trial; of several RUN+RUN-trial here)",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Do no-reference metrics notice the damage? Print who is fooled, write a page and tables.

    A metric succeeds on an initial image when it scores every later frame below frame 1. Your own
    metric joins as an installed plug-in, as a table of scores or as a command.
    """
    from convergebench.trial import try_metrics, write_tables

    with display("measuring") as shown:
        found = try_metrics(
            *runs,
            steps=_steps(steps),
            metrics=None if metric is None else [name for name in metric if name != "none"],
            scores=scores or (),
            commands=command or (),
            ratings=ratings,
            lower_is_better=lower_is_better or (),
            cycles=cycle,
            patience=timeout,
            observe=lambda done, total, name: shown.update(done, total, name),
        )
    folder = out or _folder(runs)
    written = write_tables(found, folder)
    say("drawing the figures …")
    from convergebench.reporter.trial import write_trial

    page = write_trial(found, folder)
    show(found, json)
    say(f"{page} shows it all; {len(written)} tables are beside it")


def _folder(runs: list[Path]) -> Path:
    if len(runs) == 1:
        return runs[0] / "trial"
    return Path("+".join(run.resolve().name for run in runs) + "-trial")


def _steps(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise SettingsError(
            f"--steps {text}: expected whole numbers with commas between, as 5,10,20"
        ) from None
