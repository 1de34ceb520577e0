"""`convergebench suites list|show|check|prepare|load|classify|degrade`."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import classify, degrade
from convergebench.cli import options as o
from convergebench.cli.output import display, show

app = typer.Typer(help="List, show, check, prepare, load and make suites.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Name of a suite, or path of a suite.toml.")]
app.command("classify", epilog=classify.EXAMPLES)(classify.classify)
app.command("degrade", epilog=degrade.EXAMPLES)(degrade.degrade)


@app.command("list", epilog="Examples:  convergebench suites list   ·   … list --json")
def list_(json: o.Json = False) -> None:
    """List the installed suites, and how many of their sources are here."""
    from convergebench import registry
    from convergebench.table import Table

    suites = [registry.open_suite(name) for name in registry.names("suites")]
    here = [len(s.source) - len(s.missing()) for s in suites]
    if json:
        records = [
            {
                "suite": s.label,
                "sources": len(s.source),
                "here": count,
                "cycles": len(s.cycle),
                "description": s.description,
            }
            for s, count in zip(suites, here, strict=True)
        ]
        print(jsonlib.dumps(records, indent=1, ensure_ascii=False))
        return
    rows = [
        (s.label, f"{count}/{len(s.source)}", len(s.cycle), s.description)
        for s, count in zip(suites, here, strict=True)
    ]
    show(Table("Suites", ("suite", "sources here", "cycles", "description"), rows), False)


@app.command(
    "show", epilog="Examples:  convergebench suites show starter   ·   … show starter --json"
)
def show_(suite: Which, json: o.Json = False) -> None:
    """Show a suite's sources and cycles, with every prompt, and which sources are not here."""
    from convergebench import registry
    from convergebench.presets import open_preset, preset_names
    from convergebench.table import Table
    from convergebench.wording import counted

    found = registry.open_suite(suite)
    presets = [open_preset(name) for name in preset_names(found)]
    missing = [s.name for s in found.missing()]
    if json:
        told = {**found.model_dump(mode="json"), "missing": missing}
        told["presets"] = {preset.name: preset.about.title for preset in presets}
        print(jsonlib.dumps(told, indent=1, ensure_ascii=False))
        return
    sources = [
        (s.name, "no" if s.name in missing else "yes", s.category, s.licence, s.description)
        for s in found.source
    ]
    head = ("name", "here", "category", "licence", "description")
    lack = f"{counted(len(missing), 'source', 'is', 'are')} not here: {found.preparing}"
    show(Table(f"{found.label}: sources", head, sources, [lack] if missing else []), False)
    print()
    cycles = [
        (f"{c.name}@{c.version}", c.kind, sum(found.applies(c, s) for s in found.source), prompt)
        for c in found.cycle
        for e in c.edit
        for prompt in e.prompts
    ]
    show(Table(f"{found.label}: cycles", ("cycle", "kind", "sources", "prompt"), cycles), False)
    if presets:
        print()
        rows = [(preset.name, preset.about.title) for preset in presets]
        use = "A preset is run with: convergebench run RUN --preset NAME --editor …"
        show(Table(f"{found.label}: presets", ("preset", "what it is"), rows, [use]), False)


@app.command("check", epilog="Examples:  convergebench suites check my-suite/suite.toml")
def check(suite: Which, json: o.Json = False) -> None:
    """Check a suite's files, hashes and seal. Exits with 2 when something is wrong.

    Files that are not here, and have an address, are counted; they are no fault.
    """
    from convergebench import registry
    from convergebench.errors import SuiteError
    from convergebench.suite import check_suite
    from convergebench.wording import counted

    found = registry.open_suite(suite)
    problems = check_suite(found)
    missing = [s.name for s in found.missing()]
    if json:
        told = {
            "suite": found.label,
            "sources": len(found.source),
            "cycles": len(found.cycle),
            "missing": missing,
            "problems": problems,
            "sealed": found.fingerprint is not None,
            "content_hash": found.content_hash(),
        }
        print(jsonlib.dumps(told, indent=1, ensure_ascii=False))
    else:
        for problem in problems:
            print(problem)
    if problems:
        raise SuiteError(f"{found.label}: {len(problems)} problem(s)")
    if json:
        return
    here = len(found.source) - len(missing)
    print(f"{found.label}: {here} sources and {len(found.cycle)} cycles, all sound")
    if missing:
        lack = f"{counted(len(missing), 'more source', 'is', 'are')} not here, so not checked"
        print(f"{lack}. To bring them: {found.preparing}")
    if found.fingerprint is None:
        print("Not sealed. To seal it, put this line at the top of the file, under version:")
        print(f'fingerprint = "{found.content_hash()}"')


@app.command(
    "prepare",
    epilog="Examples:  convergebench suites prepare my-suite/suite.toml   ·   "
    "… prepare my-suite --from ~/Pictures --from /media/disk --offline   ·   "
    "… prepare my-suite --to data",
)
def prepare(
    suite: Which,
    search: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Take files from here that have the right SHA-256, whatever they are called; "
            "may be repeated.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="Gather all of it in this folder, which CONVERGEBENCH_DATA must then name. "
            "(default: a folder of CONVERGEBENCH_DATA, else the user's data folder)",
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Download nothing: only look into folders.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Downloads at a time.", min=1, max=32)] = 4,
    json: o.Json = False,
) -> None:
    """Bring a suite's files here, verified; what was cut short goes on where it stopped.

    Exits with 2 when something could not be had; the rest is in place, and the suite runs on it.
    """
    from convergebench import registry
    from convergebench.errors import SuiteError
    from convergebench.preparation import prepare_suite

    found = registry.open_suite(suite)
    with display("preparing") as shown:
        done = prepare_suite(
            found, search=search or (), to=to, offline=offline, jobs=jobs, observe=shown.update
        )
    show(done, json)
    if not done.complete:
        raise SuiteError(
            f"could not get {len(done.missing)} of {len(done.files)} files. The same command tries "
            "again; --from FOLDER takes them from a folder; until then the suite runs on the rest."
        )


@app.command(
    "load",
    epilog="Examples:  convergebench suites load banana100 --from ~/datasets/banana100 --to "
    "banana   ·   … load banana100 --from train-00000-of-00001.parquet --to banana --fill   ·   "
    "… load restoration-v1 --from my-pairs --to my-suite",
)
def load(
    suite: Which,
    origin: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="DATASET",
            help="The published dataset as it was downloaded, a folder of pictures, or a Parquet "
            "file.",
        ),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="The suite to make.")],
    fill: Annotated[
        bool,
        typer.Option("--fill", help="Keep the drawn source where no picture is found."),
    ] = False,
    first: Annotated[
        int,
        typer.Option("--first", help="The number that initial images have among the steps.", min=0),
    ] = 0,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing",
            help="Take inputs without a truth in scenes where others have one.",
        ),
    ] = False,
    json: o.Json = False,
) -> None:
    """Make a suite of published or own pictures: the same cycles, no drawn stand-ins.

    The pictures are copied as they are. Of a suite that restores, DATASET is a folder with input/
    and gt/: its pairs become the sources, and what is wrong with them is listed, nothing made. Of
    another, its initial images are looked for; those that are not found are listed and left out.
    """
    from convergebench.making import load as make

    show(make(suite, origin, to, fill=fill, first=first, allow_missing=allow_missing), json)
