"""`convergebench self-evaluation`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, say, show

EXAMPLES = (
    "Examples:  convergebench self-evaluation my-run   ·   "
    "convergebench self-evaluation my-run --judge gemini:gemini-3.8-flash --budget 2   ·   "
    "convergebench self-evaluation my-run --json"
)


def self_evaluation(
    run: o.RunDirectory,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="NAME",
            help="A model that is asked the paper's question about every summary. "
            "(default: a list of words, free and offline)",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", help="Answers per summary; the majority counts.", min=1)
    ] = 1,
    all_steps: Annotated[
        bool,
        typer.Option(
            "--all-steps", help="Ask about every step, not only until a chain's first yes."
        ),
    ] = False,
    budget: o.Budget = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again where only a failure is kept.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where the page goes. (default: RUN/report)"
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Say when the editors themselves noticed the damage: the first step whose reasoning says so.

    Mean and standard deviation over repeats, as in the Banana100 paper; chains that never notice
    are censored and counted. With a judge, how often the list of words agrees with it is told.
    """
    from convergebench import selfeval
    from convergebench.reporter.selfeval import write_self_evaluation
    from convergebench.selfeval.asking import opened

    asked = opened(run, judge, samples=samples, budget=budget, retry_failed=retry_failed)
    if asked is not None:
        say(asked.announcement)
    with display("summaries") as shown:
        found = selfeval.evaluate(
            run,
            asked.judge if asked else None,
            samples=samples,
            all_steps=all_steps,
            observe=lambda done, total: shown.update(done, total, "chains"),
        )
    page = write_self_evaluation(found, out or run / "report", run)
    show(found, json)
    say(f"Page: {page}")
