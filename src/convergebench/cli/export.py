"""`convergebench export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench export my-run my-dataset   ·   "
    "convergebench export my-run my-dataset --format both --licence cc-by-4.0   ·   "
    "convergebench export my-run patches --patches 64 --patch-count 8 --no-scores"
)
PATCHES = "Patches"


def export(
    run: o.RunDirectory,
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The dataset's folder, to be made.", show_default=False),
    ],
    form: Annotated[
        str,
        typer.Option("--format", "-f", metavar="parquet|webdataset|both",
                     help="Parquet with the pictures in it, tar shards, or both."),
    ] = "parquet",
    patches: Annotated[
        int | None,
        typer.Option("--patches", metavar="SIZE", min=1, rich_help_panel=PATCHES,
                     help="Also cut squares of this many pixels from every frame, on a grid."),
    ] = None,
    patch_count: Annotated[
        int | None,
        typer.Option("--patch-count", metavar="N", min=1, rich_help_panel=PATCHES,
                     help="So many at random places of each frame instead of a grid."),
    ] = None,
    patch_seed: Annotated[
        int,
        typer.Option("--patch-seed", metavar="N", rich_help_panel=PATCHES,
                     help="Seed of the random places."),
    ] = 0,
    no_scores: Annotated[
        bool, typer.Option("--no-scores", help="Leave the scores out.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", help="What the dataset is called. (default: as its folder)"),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", help="The licence it is published under, as cc-by-4.0."),
    ] = None,
    json: o.Json = False,
) -> None:  # fmt: skip
    """Write a run as a dataset to publish: pictures, metadata, scores, a card, checksums.

    `datasets.load_dataset` and polars read it as it is; `convergebench import` makes the run again.
    """
    from convergebench import dataset
    from convergebench.errors import InputError

    if patches is None and (patch_count is not None or patch_seed):
        raise InputError("--patch-count and --patch-seed say how --patches SIZE cuts: give SIZE")
    cut = dataset.Patches(patches, patch_count, patch_seed) if patches is not None else None
    with display("exporting") as shown:
        result = dataset.export(
            run,
            out,
            form=form,
            patches=cut,
            scores=not no_scores,
            name=name,
            licence=licence,
            observe=shown.update,
        )
    show(result, json)
