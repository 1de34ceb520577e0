"""`convergebench score`."""

from __future__ import annotations

from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench score my-run   ·   "
    "convergebench score my-run --metric psnr --metric ssim --steps 1,5,10,20"
)


def score(
    run: o.RunDirectory,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="A metric; may be repeated. (default: built in)"
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", help="Compare with home or previous; may be repeated. (default: both)"
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", metavar="1,5,10", help="Score only these steps. (default: all)"),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes. (default: one per core)", min=1)
    ] = None,
    retry_null: Annotated[
        bool, typer.Option("--retry-null", help="Measure again what came out null.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Compute every score that is missing. Never calls an editor, never computes twice."""
    from convergebench import scorer
    from convergebench.errors import SettingsError

    try:
        wanted = [int(part) for part in steps.split(",")] if steps else None
    except ValueError as error:
        raise SettingsError(
            f"--steps takes numbers with commas between, as in 1,5,10; got {steps!r}"
        ) from error
    with display("scoring") as shown:
        result = scorer.score(
            run,
            metric,
            against=tuple(against or ("home", "previous")),
            steps=wanted,
            workers=workers,
            retry_null=retry_null,
            observe=lambda p: shown.update(p.scores_done, p.scores, "", p.event),
        )
    show(result, json)
