"""`convergebench suites degrade`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, show

EXAMPLES = (
    "Examples:  convergebench suites degrade photos my-pairs   ·   "
    "… degrade photos my-pairs --kind defocus --kind motion --severity 3 --each   ·   "
    '… degrade photos my-pairs --mix "defocus+digital-zoom" --size 0   ·   '
    "… degrade starter my-pairs --kind old-film --withhold old-film"
)


def degrade(
    clean: Annotated[
        str,
        typer.Argument(
            metavar="CLEAN",
            help="A folder of clean pictures, whose subfolders are scenes; or the name or path of "
            "a suite.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The suite's folder to make.", show_default=False),
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            "-k",
            metavar="KIND",
            help="A kind of damage; may be repeated: defocus, motion, digital-zoom, old-film, "
            "old-photo-bw, old-photo-colour, surveillance. (default: all)",
        ),
    ] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(
            "--mix",
            metavar="KIND+KIND",
            help="Several kinds on one picture, in that order; may be repeated.",
        ),
    ] = None,
    severity: Annotated[
        int, typer.Option("--severity", help="How bad the damage is: 1, 2 or 3.")
    ] = 2,
    seed: Annotated[int, typer.Option("--seed", help="Decides all chance.")] = 0,
    size: Annotated[
        int,
        typer.Option(
            "--size",
            help="Crop to the middle square and bring it to this side; 0 leaves the pictures as "
            "they are.",
        ),
    ] = 1024,
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="Every picture with every damage; without it they take turns, one per picture.",
        ),
    ] = False,
    withhold: Annotated[
        list[str] | None,
        typer.Option(
            "--withhold", metavar="KIND", help="Keep no truth for this kind; may be repeated."
        ),
    ] = None,
    licence: Annotated[
        str,
        typer.Option("--licence", metavar="TEXT", help="The licence of the pictures of a folder."),
    ] = "",
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="The prompts to restore with. (default: the twelve of restoration-v1)",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Make a restoration suite of clean pictures: damaged inputs, and the clean ones as truth.

    The same seed gives the same damage. All that is wrong with what was given is named in one list
    before anything is written.
    """
    from convergebench.making import degrade as make

    recipes = [*((name,) for name in kind or ()), *(one.split("+") for one in mix or ())]
    with display("degrading") as shown:
        done = make(
            clean,
            out,
            damages=[[name.strip() for name in recipe if name.strip()] for recipe in recipes],
            severity=severity,
            seed=seed,
            size=size,
            each=each,
            withhold=withhold or (),
            licence=licence,
            prompts=prompts,
            observe=shown.update,
        )
    show(done, json)
