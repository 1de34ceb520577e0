"""`convergebench suites list|show|check`."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import show

app = typer.Typer(help="List, show and check suites.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Name of a suite, or path of a suite.toml.")]


@app.command("list", epilog="Examples:  convergebench suites list")
def list_(json: o.Json = False) -> None:
    """List the installed suites."""
    from convergebench import registry
    from convergebench.table import Table

    suites = [registry.open_suite(name) for name in registry.names("suites")]
    rows = [(s.label, len(s.source), len(s.cycle), s.description) for s in suites]
    table = Table("Suites", ("suite", "sources", "cycles", "description"), rows)
    if json:
        print(jsonlib.dumps(table.records(), indent=1, ensure_ascii=False))
    else:
        show(table, False)


@app.command("show", epilog="Examples:  convergebench suites show starter")
def show_(suite: Which, json: o.Json = False) -> None:
    """Show a suite's sources and cycles, with every prompt."""
    from convergebench import registry
    from convergebench.table import Table

    found = registry.open_suite(suite)
    if json:
        print(found.model_dump_json(indent=1))
        return
    sources = [(s.name, s.category, s.licence, s.description) for s in found.source]
    show(
        Table(f"{found.label}: sources", ("name", "category", "licence", "description"), sources),
        False,
    )
    print()
    cycles = [
        (f"{c.name}@{c.version}", c.kind, sum(found.applies(c, s) for s in found.source), prompt)
        for c in found.cycle
        for e in c.edit
        for prompt in e.prompts
    ]
    show(Table(f"{found.label}: cycles", ("cycle", "kind", "sources", "prompt"), cycles), False)


@app.command("check", epilog="Examples:  convergebench suites check my-suite/suite.toml")
def check(suite: Which) -> None:
    """Check a suite's files, hashes and seal. Exits with 2 when something is wrong."""
    from convergebench import registry
    from convergebench.errors import SuiteError
    from convergebench.suite import check_suite

    found = registry.open_suite(suite)
    problems = check_suite(found)
    for problem in problems:
        print(problem)
    if problems:
        raise SuiteError(f"{found.label}: {len(problems)} problem(s)")
    print(f"{found.label}: {len(found.source)} sources and {len(found.cycle)} cycles, all sound")
    if found.fingerprint is None:
        print("Not sealed. To seal it, put this line at the top of the file, under version:")
        print(f'fingerprint = "{found.content_hash()}"')
