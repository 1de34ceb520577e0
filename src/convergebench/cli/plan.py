"""`convergebench plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show
from convergebench.cli.watching import looking
from convergebench.progress import duration

EXAMPLES = (
    "Examples:  convergebench plan -e ref:jpeg --rounds 10   ·   "
    "convergebench plan --preset banana100/paper -e gemini:gemini-3-pro-image   ·   "
    "convergebench plan my-run --config run.toml --json   ·   "
    "convergebench plan my-run --engine ray --metrics standard --workers 64"
)


def plan(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]", help="A run directory or its address, to see what is left to do."
        ),
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
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="local|ray",
            help="Say also what scoring will take with it, measured here for a minute or so. "
            "(default: local, where --metrics is given; else nothing of scoring)",
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="ADDRESS",
            help="Of a Ray cluster, whose room is counted where --workers is not given: auto, "
            "HOST:PORT or ray://HOST:PORT.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="SET",
            help="Say also what scoring these will take: sets or names, with commas between. "
            "(default, with --engine: the preset's; else fast)",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            help="How many will score at once. (default: as many as the cluster, or this "
            "machine, has room for)",
            min=1,
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Say what a run would do: calls, dollars, time, disk. Calls no editor, writes nothing."""
    names, sparse = _measured(metrics, preset)
    scoring = engine is not None or metrics is not None
    begun = False
    with looking(), display("planning") as shown:
        from convergebench import planner

        def calibrating(done: float, total: float, text: str) -> None:
            nonlocal begun
            event = ""
            if not begun:
                begun = True
                shown.begin("calibrating, seconds")
                event = f"{text}; measuring will take about {duration(total)}"
            shown.update(round(done), round(total), text, event)

        planned = planner.plan(
            run,
            o.design(config, preset, arm),
            retry_failed=retry_failed,
            engine=engine,
            metrics=names if scoring else None,
            sparse=sparse,
            workers=workers,
            address=address,
            observe=shown.update,
            calibrating=calibrating,
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


def _measured(metrics: str | None, preset: str | None) -> tuple[list[str], tuple[str, ...]]:
    """What will be scored, and what of it only at the steps that the trial compares."""
    if metrics is not None:
        return [word.strip() for word in metrics.split(",") if word.strip()], ()
    if preset is None:
        return [], ()
    from convergebench.presets import open_preset

    about = open_preset(preset).about
    return list(about.metrics), about.sparse
