"""`convergebench demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli.output import display, show

EXAMPLES = "Examples:  convergebench demo   ·   convergebench demo look"


def demo(
    run: Annotated[Path, typer.Argument(metavar="[RUN]", help="Where to put the run.")] = Path(
        "demo-run"
    ),
) -> None:
    """Run, score and report the starter suite with reference editors. No key, no network."""
    from convergebench.demonstration import SPEC
    from convergebench.reporter import report
    from convergebench.runner import run as walk
    from convergebench.scorer import score

    with display("running") as shown:
        ran = walk(run, SPEC, observe=lambda p: shown.update(p.steps_done, p.steps, "", p.event))
    if ran.stopped:
        show(ran, False)
        raise typer.Exit(130)
    with display("scoring") as shown:
        score(run, observe=lambda p: shown.update(p.scores_done, p.scores, "", p.event))
    with display("thumbnails") as shown:
        result = report(run, observe=shown.update)
    show(result, False)
