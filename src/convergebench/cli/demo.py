"""`convergebench demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli.output import display, show
from convergebench.cli.watching import watching

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

    with watching("running") as shown:
        ran = walk(run, SPEC, observe=shown.told)
    if ran.stopped:
        show(ran, False)
        raise typer.Exit(130)
    with watching("scoring") as shown:
        score(run, observe=shown.told)
    with display("thumbnails") as bar:
        result = report(run, observe=bar.update)
    show(result, False)
