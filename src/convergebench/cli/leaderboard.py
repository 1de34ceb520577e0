"""`convergebench leaderboard build|pack|check|schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

app = typer.Typer(
    help="Merge runs of one suite version into a static site that others can submit to.",
    no_args_is_help=True,
)
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who submits.")]


@app.command(
    "build",
    epilog="Examples:  convergebench leaderboard build my-run --by Me --out site   ·   "
    "convergebench leaderboard build submissions/* --out site --title 'Round trips'",
)
def build(
    entries: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run directories and submissions.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The site's folder.")],
    title: Annotated[str, typer.Option("--title", help="Of the site.")] = "",
    by: By = "",
    json: o.Json = False,
) -> None:
    """Merge runs and submissions into a static site. All must be of one suite version.

    Submissions are checked first, and every number is computed anew from their score rows.
    """
    from convergebench import leaderboard

    with display("thumbnails") as shown:
        site = leaderboard.build(entries, out, title=title, by=by, observe=shown.update)
    show(site, json)


@app.command(
    "pack",
    epilog="Examples:  convergebench leaderboard pack my-run --to submissions --by 'A. Lab'   ·   "
    "… --frames https://example.org/my-run.zip --licence CC0-1.0",
)
def pack(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A scored run directory.", show_default=False)
    ],
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="The submission becomes DIR/NAME.")
    ],
    by: By,
    name: Annotated[
        str, typer.Option("--name", help="Of the submission. (default: the run directory's)")
    ] = "",
    contact: Annotated[str, typer.Option("--contact", help="Where questions go.")] = "",
    licence: Annotated[
        str, typer.Option("--licence", help="Under which the records may be used.")
    ] = "CC-BY-4.0",
    notes: Annotated[str, typer.Option("--notes", help="What readers have to know.")] = "",
    frames: Annotated[
        str, typer.Option("--frames", metavar="ADDRESS", help="Where the pictures can be had.")
    ] = "",
    json: o.Json = False,
) -> None:
    """Make a submission of a scored run: its records without pictures, with checksums."""
    from convergebench import leaderboard

    told = leaderboard.pack(
        run, to, by=by, name=name, contact=contact, licence=licence, notes=notes, frames=frames
    )
    show(told, json)


@app.command("check", epilog="Examples:  convergebench leaderboard check submissions/my-run")
def check(
    submission: Annotated[
        Path, typer.Argument(metavar="SUBMISSION", help="Its folder.", show_default=False)
    ],
    json: o.Json = False,
) -> None:
    """Check a submission's files, hashes and claims. Exits with 1 when it is not sound."""
    from convergebench import leaderboard

    told = leaderboard.check(submission)
    show(told, json)
    if not told.sound:
        raise typer.Exit(1)


@app.command(
    "schema", epilog="Examples:  convergebench leaderboard schema > submission.schema.json"
)
def schema() -> None:
    """Print the JSON schema of submission.json."""
    from convergebench.leaderboard.site import dump_schema

    print(dump_schema())
