"""`convergebench failures`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, say, show

if TYPE_CHECKING:
    from convergebench.judging import Judge

EXAMPLES = (
    "Examples:  convergebench failures my-run   ·   "
    "convergebench failures my-run --detector crop --detector mirror-failure --steps 1,5,10   ·   "
    "convergebench failures my-run --judge gemini:gemini-3.8-flash --budget 2   ·   "
    "convergebench failures --list"
)


def failures(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="The run directory.", show_default=False),
    ] = None,
    detector: Annotated[
        list[str] | None,
        typer.Option(
            "--detector", metavar="NAME", help="Only this one; may be repeated. (default: all)"
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            metavar="1,5,10-50:10",
            help="Look only at these steps: numbers and ranges. (default: all)",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="NAME",
            help="A judge for the detectors that ask one, as gemini:MODEL. (default: none)",
        ),
    ] = None,
    budget: o.Budget = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where the page goes. (default: failures in RUN)"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes. (default: one per core)", min=1)
    ] = None,
    retry_null: Annotated[
        bool, typer.Option("--retry-null", help="Measure again what could not be measured.")
    ] = False,
    listed: Annotated[
        bool,
        typer.Option(
            "--list", help="Print every detector with its definition and error rate, and stop."
        ),
    ] = False,
    json: o.Json = False,
) -> None:
    """Look for failures of the taxonomy, and count them by editor and step.

    Only what is missing is computed. Rows are kept in RUN/failures/rows.parquet, and a page with
    rates and evidence is written beside them. Without a judge, what needs one is left out.
    """
    from convergebench import failures as taxonomy
    from convergebench.errors import SettingsError
    from convergebench.scorer import parse_steps

    if listed:
        show(taxonomy.Listing(taxonomy.chosen(detector)), json)
        return
    if run is None:
        raise SettingsError(
            "which run? Expected a run directory, as in `convergebench failures my-run`; or --list."
        )
    if budget is not None and judge is None:
        raise SettingsError("--budget is for the judge's calls: give --judge, too.")
    with display("looking") as shown:
        found = taxonomy.find(
            run,
            detectors=detector,
            steps=parse_steps(steps) if steps else None,
            judge=_judge(judge, budget, run),
            observe=lambda p: shown.update(p.done, p.rows),
            workers=workers,
            retry_null=retry_null,
        )
    from convergebench.reporter.failures import write_failures

    usual = Path(f"{found.path.name}-failures")  # of a run on object storage, here
    if isinstance(found.path, Path):
        usual = found.path / "failures"
    page = write_failures(found, out or usual)
    show(found, json)
    say(f"page: {page}")


def _judge(name: str | None, budget: float | None, run: Path) -> Judge | None:
    if name is None:
        return None
    from convergebench.judging import open_judge
    from convergebench.money.budget import Budget
    from convergebench.store import RunStore

    cap = None if budget is None else Budget(budget, 0.0)
    return open_judge(name, folder=RunStore.open(run).path / "judgements", budget=cap)
