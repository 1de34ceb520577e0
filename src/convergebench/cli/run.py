"""`convergebench run`."""

from __future__ import annotations

import typer

from convergebench.cli import options as o
from convergebench.cli.output import aside, show
from convergebench.cli.watching import logging, watching

EXAMPLES = (
    "Examples:  convergebench run my-run -e ref:jpeg -e ref:latent --rounds 10   ·   "
    "convergebench run my-run --preset banana100/smoke   ·   "
    "convergebench run my-run --config run.toml   ·   convergebench run my-run   (resumes)"
)


def run(
    run: o.RunDirectory,
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
    deadline: o.Deadline = None,
    retries: o.Retries = None,
    repeat_lost: o.RepeatLost = None,
    setting: o.Settings = None,
    controls: o.Controls = None,
    retry_failed: o.RetryFailed = False,
    allow_missing: o.AllowMissing = False,
    engine: o.Engine = "local",
    address: o.Address = None,
    json: o.Json = False,
    log_json: o.LogJson = False,
) -> None:
    """Walk every chain with every editor, keeping every frame. Resumes where it was stopped.

    Ctrl-C once finishes the calls in flight and saves, and nothing paid for is lost; twice stops at
    once, and calls in flight may have been billed: they are counted and made again.
    Exits with 1 when the budget is used up or an account is blocked, with 130 when interrupted.
    """
    from convergebench import runner

    with logging("run", run, log_json) as log:
        with watching("running", log) as shown, aside():
            result = runner.run(
                run,
                o.design(config, preset, arm),
                retry_failed=retry_failed,
                allow_missing=allow_missing,
                engine=engine,
                address=address,
                observe=shown.told,
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
                deadline=deadline,
                retries=retries,
                repeat_lost=repeat_lost,
                settings=o.axes(setting),
                controls=controls,
            )
        show(result, json)
        if result.stopped:
            if log:
                log.closing["stopped"] = result.stopped
            raise typer.Exit(130 if result.interrupted else 1)
