"""`convergebench study`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import aside, show
from convergebench.cli.watching import logging, watching

EXAMPLES = (
    "Examples:  convergebench study banana100/smoke my-run   ·   "
    "convergebench study banana100/offline my-run   ·   "
    "convergebench study restoration-v1/smoke my-run   ·   "
    "convergebench study banana100/small my-run -e gemini:gemini-3-pro-image --budget 200"
)


def study(
    preset: Annotated[
        str,
        typer.Argument(
            metavar="PRESET",
            help="A design that comes with a suite, as banana100/offline or "
            "restoration-v1/offline; `convergebench suites show banana100` lists them.",
            show_default=False,
        ),
    ],
    run: o.RunDirectory,
    editor: o.Editors = None,
    source: o.Sources = None,
    steps: o.Steps = None,
    repeats: o.Repeats = None,
    size: o.Size = None,
    prompts: o.Prompts = None,
    budget: o.Budget = None,
    engine: o.Engine = "local",
    address: o.Address = None,
    json: o.Json = False,
    log_json: o.LogJson = False,
) -> None:
    """Do a whole study: run, score, judge what came out, write the report.

    Replications are searched for failures and put no-reference metrics on trial; restorations are
    compared by prompt, method, scene and damage.

    Each part is what its own command does, so the study resumes where it was stopped, and any part
    can be done again alone. Editors that cost money need --budget. Ctrl-C while chains are walked
    finishes the calls in flight and ends the study there.
    """
    from convergebench import studies
    from convergebench.progress import Told

    part = ""
    with logging("study", run, log_json) as log:
        with watching("planning", log) as shown, aside():

            def observe(name: str, told: Told) -> None:
                nonlocal part
                if name != part:
                    part = name
                    shown.begin(name)
                shown.told(told)

            result = studies.study(
                run,
                preset,
                editors=editor or (),
                sources=source,
                steps=steps,
                repeats=repeats,
                size=size,
                prompts=str(prompts) if prompts else None,
                budget=budget,
                engine=engine,
                address=address,
                observe=observe,
            )
        if not json:
            result = replace(result, notes=tuple(shown.untold(result.notes)))
        show(result, json)
        if result.run.stopped:
            if log:
                log.closing["stopped"] = result.run.stopped
            raise typer.Exit(130 if result.run.interrupted else 1)
