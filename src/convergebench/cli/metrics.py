"""`convergebench metrics list|show|sets`."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import show

app = typer.Typer(help="List metrics and sets of metrics, and why one cannot be used.")


@app.command("list", epilog="Examples:  convergebench metrics list   ·   metrics list --ready")
def list_(
    ready: Annotated[bool, typer.Option("--ready", help="Only those that can be used.")] = False,
    json: o.Json = False,
) -> None:
    """List every installed metric with its range, direction, cost, and why it cannot be used."""
    from convergebench.cards.metrics import cards
    from convergebench.table import Table

    found = [card for card in cards() if not (ready and card.missing)]
    if json:
        print(jsonlib.dumps([card.to_dict() for card in found], indent=1, ensure_ascii=False))
        return
    rows = []
    for card in found:
        spec = card.spec
        span = f"{spec.typical[0]:g} to {spec.typical[1]:g}" if spec and spec.typical else ""
        better = "" if spec is None or spec.alignment else "↑" if spec.higher_is_better else "↓"
        kind, cost = (spec.kind, spec.cost) if spec else ("", "")
        rows.append((card.name, kind, span, better, cost, card.state))
    usable = sum(not card.missing for card in found)
    title = f"{len(found)} metrics, {usable} ready"
    notes = [
        "↑ higher is better, ↓ lower is better.",
        "convergebench metrics show NAME tells more, and how to get what a metric lacks.",
    ]
    heads = ("metric", "kind", "typical range", "", "cost", "state")
    show(Table(title, heads, rows, notes), False)


@app.command("show", epilog="Examples:  convergebench metrics show niqe")
def show_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A metric.")], json: o.Json = False
) -> None:
    """Show a metric's card: definition, range, version, needs, known answer."""
    from convergebench.cards.metrics import card

    show(card(name), json)


@app.command("sets", epilog="Examples:  convergebench metrics sets")
def sets(json: o.Json = False) -> None:
    """List the named sets that `score --metrics` takes."""
    from convergebench.metrics.sets import ALL, SETS, everything
    from convergebench.table import Table

    every = {**SETS, ALL: everything()}
    rows = [
        (name, len(group.metrics), "yes" if group.registered else "", group.title)
        for name, group in every.items()
    ]
    table = Table("Sets of metrics", ("set", "metrics", "registered", "for"), rows)
    if json:
        told = {name: list(group.metrics) for name, group in every.items()}
        print(jsonlib.dumps(told, indent=1, ensure_ascii=False))
    else:
        show(table, False)
        for name, group in every.items():
            print(f"\n{name}: {', '.join(group.metrics)}")
