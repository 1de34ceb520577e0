"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunDirectory = Annotated[
    Path, typer.Argument(metavar="RUN", help="The run directory.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout instead of a table.")]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="A run.toml with all settings."),
]
Suite = Annotated[
    str | None,
    typer.Option(
        "--suite", "-s", help="Name of a suite, or path of a suite.toml. (default: starter)"
    ),
]
Editors = Annotated[
    list[str] | None,
    typer.Option(
        "--editor",
        "-e",
        metavar="NAME",
        help="An editor, as family:model,option=value; may be given several times.",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source", metavar="NAME", help="Only this source; may be repeated. (default: all)"
    ),
]
Cycles = Annotated[
    list[str] | None,
    typer.Option(
        "--cycle", metavar="NAME", help="Only this cycle; may be repeated. (default: all)"
    ),
]
Rounds = Annotated[
    int | None, typer.Option("--rounds", "-n", help="Rounds of each cycle. (default: 5)", min=1)
]
Steps = Annotated[
    int | None, typer.Option("--steps", help="Steps of each chain, instead of rounds.", min=1)
]
Repeats = Annotated[
    int | None, typer.Option("--repeats", help="Chains of each kind. (default: 1)", min=1)
]
Size = Annotated[
    int | None,
    typer.Option("--size", help="Side of drawn sources, in pixels. (default: the suite's)"),
]
Budget = Annotated[
    float | None, typer.Option("--budget", help="Dollars; a hard cap, never exceeded.", min=0)
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency", help="Calls in flight per editor. (default: the editor's)", min=1
    ),
]
Deadline = Annotated[
    float | None,
    typer.Option("--deadline", help="Seconds after which a call is given up. (default: 120)"),
]
Retries = Annotated[
    int | None,
    typer.Option(
        "--retries", help="Tries after a call found the editor unavailable. (default: 5)", min=0
    ),
]
Controls = Annotated[
    bool | None,
    typer.Option(
        "--controls/--no-controls",
        help="Whether the free controls ride along. (default: they do)",
        show_default=False,
    ),
]
