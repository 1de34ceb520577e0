"""`convergebench editors list|show|check`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import aside, say, show

app = typer.Typer(help="List editors and their prices, what one lacks, and try one.")

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="An editor, as family:model,option=value."),
]


@app.command(
    "list",
    epilog="Examples:  convergebench editors list   ·   convergebench editors list banana --ready",
)
def list_(
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="Only editors with this in name or title.")
    ] = "",
    ready: Annotated[bool, typer.Option("--ready", help="Only those that can be called.")] = False,
    json: o.Json = False,
) -> None:
    """List every editor: what it is, its price at 1K, and whether it can be called here."""
    from convergebench.cards.editors import editor_cards

    show(editor_cards(word, ready=ready), json)


@app.command("show", epilog="Examples:  convergebench editors show gemini:gemini-nano-banana-2.1")
def show_(name: Name, json: o.Json = False) -> None:
    """Show all that is known of an editor: what it sends, follows, costs, and cannot switch off."""
    from convergebench.cards.editors import editor_card

    with aside():
        card = editor_card(name)
    show(card, json)


@app.command(
    "check",
    epilog="Examples:  convergebench editors check ref:jpeg   ·   "
    "convergebench editors check gemini:gemini-nano-banana-2.1 --yes",
)
def check(
    name: Name,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Pay without being asked again.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for the answer.", min=1)
    ] = 300.0,
    json: o.Json = False,
) -> None:
    """Try one edit of a 64-pixel picture, after telling its price. Exits with 2 if it fails."""
    from convergebench.cards.trial import trial
    from convergebench.errors import ConvergeBenchError, SettingsError

    with aside():
        offered = trial(name)
    say(offered.offer)
    if not (yes or offered.free):
        if not sys.stdin.isatty():
            raise SettingsError("nothing was called: add --yes to pay for it")
        if not typer.confirm("Make it?", err=True):
            raise ConvergeBenchError("nothing was called")
    with aside():
        tried = offered.make(deadline=timeout)
    show(tried, json)
    if not tried.worked:
        raise ConvergeBenchError(tried.sentence)
