"""`convergebench import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench import my-images --dry-run   ·   "
    "convergebench import flux-kontext-dev --to flux   ·   "
    "convergebench import frames --to my-run --pattern '{editor}/{source}/step_{step}.png'   ·   "
    "convergebench import scores.csv --to curves --conflicts repeat   ·   "
    "convergebench import outputs --to old-run --suite starter"
)
READ, SAY, TABLE = "Finding frames", "Saying what they are", "Tables of scores"


def import_(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="FROM", help="A folder, a table of scores, an archive or a film."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="RUN", help="Run directory: made, or extended."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only tell what would be read, is missing, conflicts."),
    ] = False,
    layout: Annotated[
        str | None,
        typer.Option("--layout", metavar="NAME", help="How FROM is laid out. (default: recognised)",
                     rich_help_panel=READ),
    ] = None,
    layouts: Annotated[
        bool,
        typer.Option("--layouts", help="List the layouts that are known and stop.",
                     rich_help_panel=READ),
    ] = False,
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", metavar="PATH", rich_help_panel=READ,
                     help="Where frames are, with named fields: {editor}/{source}/step_{step}.png"),
    ] = None,
    sources: Annotated[
        str | None,
        typer.Option("--sources", metavar="PATH", rich_help_panel=READ,
                     help="With --pattern: where sources are, if apart: originals/{source}.png"),
    ] = None,
    truths: Annotated[
        str | None,
        typer.Option("--truths", metavar="PATH", rich_help_panel=READ,
                     help="With --pattern: where ground truths are: gt/{source}.png"),
    ] = None,
    first: Annotated[
        int,
        typer.Option("--first", metavar="N", rich_help_panel=READ,
                     help="The number the source has in numbered files."),
    ] = 0,
    every: Annotated[
        int,
        typer.Option("--every", metavar="N", min=1, rich_help_panel=READ,
                     help="Of a film: every N-th frame is a step."),
    ] = 1,
    editor: Annotated[
        str | None,
        typer.Option("--editor", "-e", rich_help_panel=SAY,
                     help="Who made the frames, where the layout does not tell."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--source", rich_help_panel=SAY,
                     help="Name of the source, where the layout does not tell."),
    ] = None,
    cycle: Annotated[
        str | None,
        typer.Option("--cycle", rich_help_panel=SAY,
                     help="Name of the cycle, where the layout does not tell."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", rich_help_panel=SAY,
                     help="What the cycle is: replicate, round-trip, mirror, rotate, reconstruct, "
                     "recolour, accumulate, cross, restore or free."),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option("--prompt", rich_help_panel=SAY,
                     help="Prompt of the cycle's edits, in order; may be repeated."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", "-s", rich_help_panel=SAY,
                     help="The suite whose sources and cycles these are."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", metavar="N", min=1, rich_help_panel=SAY,
                     help="Steps every chain was meant to have: shorter ones have failed."),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", rich_help_panel=SAY, help="Licence of the sources."),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option("--origin", rich_help_panel=SAY,
                     help="Name of where this is from. (default: the name of FROM)"),
    ] = None,
    conflicts: Annotated[
        str | None,
        typer.Option("--conflicts", metavar="refuse|repeat", rich_help_panel=SAY,
                     help="One step or score with several values: refuse the import, or keep all "
                     "as repeats. (default: refuse)"),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--map", metavar="FILE.toml", rich_help_panel=TABLE,
                     help="Which column is what; see the guide."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="FIELD=COLUMN", rich_help_panel=TABLE,
                     help="One column: editor=model, source=image, step=iteration; repeatable."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="METRIC=COLUMN", rich_help_panel=TABLE,
                     help="One metric's column: clip=clip_similarity; repeatable."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", rich_help_panel=TABLE,
                     help="A column not to read; repeatable."),
    ] = None,
    floor: Annotated[
        list[str] | None,
        typer.Option("--floor", metavar="METRIC=VALUE", rich_help_panel=TABLE,
                     help="The metric's mean between different sources, for scores that come "
                     "without pictures; repeatable."),
    ] = None,
    keep_constant: Annotated[
        bool,
        typer.Option("--keep-constant", rich_help_panel=TABLE,
                     help="Keep a distance that is 0 in every row."),
    ] = False,
    json: o.Json = False,
) -> None:  # fmt: skip
    """Bring images or scores that were made elsewhere into a run.

    Nothing is guessed silently: gaps, repeats and contradictions are told, and --dry-run writes
    nothing. Importing again changes nothing; importing more extends the run.
    """
    from convergebench.errors import ImportProblem
    from convergebench.importer import import_run
    from convergebench.importer import layouts as known
    from convergebench.importer.columns import read_mapping
    from convergebench.table import Table

    if layouts:
        rows = [(one.name, one.summary) for one in known().values()]
        show(Table("Layouts", ("name", "what it looks like"), rows), False)
        return
    if source is None:
        raise ImportProblem("say what to import: convergebench import FROM --to RUN")
    told: dict[str, Any] = read_mapping(mapping) if mapping else {}
    given = {
        "editor": editor, "source": name, "cycle": cycle, "kind": kind, "pattern": pattern,
        "source_pattern": sources, "truth_pattern": truths, "first": first or None,
        "every": every if every > 1 else None, "prompts": tuple(prompt or ()) or None,
        "steps": steps, "licence": licence, "origin": origin, "conflicts": conflicts,
        "drop": tuple(drop or ()) or None, "keep_constant": keep_constant or None,
    }  # fmt: skip
    told |= {field: value for field, value in given.items() if value is not None}
    for field, pairs in (("columns", column), ("metrics", metric)):
        told[field] = {**told.get(field, {}), **_pairs(pairs, field)}
    told["floors"] = {**told.get("floors", {}), **_numbers(floor)}
    with display("files") as shown:
        result = import_run(
            source, to, layout=layout, suite=suite, dry_run=dry_run, observe=shown.update, **told
        )
    show(result, json)


def _pairs(texts: list[str] | None, what: str) -> dict[str, str]:
    from convergebench.errors import ImportProblem

    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not (key.strip() and equals and value.strip()):
            form = "METRIC=VALUE" if what == "floors" else "OURS=COLUMN"
            raise ImportProblem(f"{what} are given as {form}, got {text!r}")
        found[key.strip()] = value.strip()
    return found


def _numbers(texts: list[str] | None) -> dict[str, float]:
    from convergebench.errors import ImportProblem

    found = {}
    for name, value in _pairs(texts, "floors").items():
        try:
            found[name] = float(value)
        except ValueError:
            raise ImportProblem(f"--floor {name}={value}: {value!r} is no number") from None
    return found
