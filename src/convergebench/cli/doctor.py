"""`convergebench doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench doctor   ·   convergebench doctor lpips niqe --json   ·   "
    "convergebench doctor --online"
)


def doctor(
    metrics: Annotated[
        list[str] | None,
        typer.Argument(metavar="METRIC…", help="Metrics to check. (default: all)"),
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Ask providers when their models go (free of charge).")
    ] = False,
    json: o.Json = False,
) -> None:
    """Check that every metric gives its known answer on this machine. Exits with 2 if not.

    Also says which keys are set (never their value), which libraries editors and judges find, and
    which models are near their shutdown.
    """
    from convergebench import doctor as self_test
    from convergebench.errors import ConvergeBenchError

    with display("checking") as shown:
        found = self_test.doctor(metrics or (), online=online, observe=shown.update)
    show(found, json)
    if found.failed:
        names = ", ".join(check.metric for check in found.failed)
        raise ConvergeBenchError(
            f"{names} failed; do not trust scores of this machine before that is mended"
        )
