"""`convergebench score`."""

from __future__ import annotations

from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import aside, show
from convergebench.cli.watching import logging, watching

EXAMPLES = (
    "Examples:  convergebench score my-run   ·   "
    "convergebench score my-run --metrics standard   ·   "
    "convergebench score my-run --metrics psnr,lpips --steps 1,5,10-100:10   ·   "
    "convergebench score my-run -m vlm:qwen2.5vl,url=http://localhost:11434/v1,samples=5"
)


def score(
    run: o.RunDirectory,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="SET",
            help="A set (fast, standard, paper, round-trip, replication, restoration, all) or "
            "names, with commas between. (default: fast)",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="One metric, options included; may be repeated."
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            help="Compare with home, previous (the frame before) or homecoming (the one before); "
            "may be repeated. (default: all)",
        ),
    ] = None,
    registered: Annotated[
        bool | None,
        typer.Option(
            "--registered/--no-registered",
            help="Compare also after undoing shift, zoom and crop. (default: as the set says)",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            metavar="1,5,10-50:10",
            help="Score only these steps: numbers and ranges. (default: all)",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="How many at once. (default: one per core)", min=1),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            help="GiB a machine for all workers of learned metrics. (default: 80 % of it)",
            min=0.5,
        ),
    ] = None,
    retry_null: Annotated[
        bool, typer.Option("--retry-null", help="Measure again what came out null.")
    ] = False,
    engine: o.Engine = "local",
    address: o.Address = None,
    json: o.Json = False,
    log_json: o.LogJson = False,
) -> None:
    """Compute every score that is missing. Never calls an editor, never computes twice.

    Ctrl-C keeps what was measured and exits with 130; the same command goes on there.
    """
    from convergebench import scorer
    from convergebench.comparisons import AGAINST
    from convergebench.errors import ConvergeBenchError

    names = [word.strip() for word in (metrics or "").split(",") if word.strip()]
    with logging("score", run, log_json) as log:
        with watching("scoring", log) as shown, aside():
            result = scorer.score(
                run,
                [*names, *(metric or [])],
                against=tuple(against or AGAINST),
                registered=registered,
                steps=scorer.parse_steps(steps) if steps else None,
                workers=workers,
                memory=memory,
                retry_null=retry_null,
                engine=engine,
                address=address,
                observe=shown.told,
            )
        if not json:
            result.problems = shown.untold(result.problems)
        show(result, json)
        if result.new and result.null == result.new:
            raise ConvergeBenchError(
                "every score that was asked for came out null; see the reasons"
            )
