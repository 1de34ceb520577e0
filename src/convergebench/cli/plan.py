"""`convergebench plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench plan -e ref:jpeg --rounds 10   ·   "
    "convergebench plan --preset banana100/paper -e gemini:gemini-3-pro-image   ·   "
    "convergebench plan my-run --config run.toml --json"
)


def plan(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="A run directory, to see what is left to do."),
    ] = None,
    config: o.Config = None,
    preset: o.Preset = None,
    arm: o.Arms = None,
    suite: o.Suite = None,
    editor: o.Editors = None,
    source: o.Sources = None,
    cycle: o.Cycles = None,
    rounds: o.Rounds = None,
    steps: o.Steps = None,
    repeats: o.Repeats = None,
    size: o.Size = None,
    prompts: o.Prompts = None,
    budget: o.Budget = None,
    concurrency: o.Concurrency = None,
    setting: o.Settings = None,
    controls: o.Controls = None,
    retry_failed: o.RetryFailed = False,
    json: o.Json = False,
) -> None:
    """Say what a run would do: calls, dollars, time, disk. Calls no editor, writes nothing."""
    from convergebench import planner

    with display("planning") as shown:
        planned = planner.plan(
            run,
            o.design(config, preset, arm),
            retry_failed=retry_failed,
            observe=shown.update,
            suite=suite,
            editors=editor,
            sources=source,
            cycles=cycle,
            rounds=rounds,
            steps=steps,
            repeats=repeats,
            size=size,
            prompts=str(prompts) if prompts else None,
            budget=budget,
            concurrency=concurrency,
            settings=o.axes(setting),
            controls=controls,
        )
    show(planned, json)
