"""Suites made of somebody's pictures: clean ones that are damaged, or pairs, or a dataset's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from convergebench import suites
from convergebench.importer.published import Loaded, load_published
from convergebench.importer.restorations import LoadedPairs, load_pairs, restores
from convergebench.preparation.degraded import Degraded, degrade_pictures
from convergebench.registry import names, open_suite
from convergebench.suite import Suite


def degrade(
    clean: str | os.PathLike[str] | Suite,
    to: str | os.PathLike[str],
    *,
    damages: Sequence[Sequence[str]] = (),
    severity: int = 2,
    seed: int = 0,
    size: int = 1024,
    each: bool = False,
    withhold: Sequence[str] = (),
    licence: str = "",
    prompts: str | os.PathLike[str] | None = None,
    observe: Callable[[int, int, str], None] = lambda *_: None,
) -> Degraded:
    """Make a restoration suite of clean pictures: damaged inputs, and the clean ones as truth.

    Args:
        clean: A folder of pictures, whose subfolders are scenes; or a suite, its name or its path.
        to: The folder to make.
        damages: The damages to choose from, each a list of kinds that are applied in order;
            without any, every kind alone.
        severity: 1, 2 or 3.
        seed: Decides all chance.
        size: Pictures are cropped to a square and brought to this side; 0 leaves them as they are.
        each: Give every picture all damages, instead of one after the other in turn.
        withhold: Kinds whose truth is kept back, as where no truth can exist.
        licence: The pictures' licence, where `clean` is a folder.
        prompts: The prompts to restore with, a TOML file; None is the twelve of restoration-v1.
        observe: Told how far things are.

    Raises:
        SuiteError: All that is wrong with what was given, in one list; nothing was written.
    """
    return degrade_pictures(
        clean if isinstance(clean, Suite) else _opened(clean),
        to,
        prompts=Path(prompts or suites.restoration_v1().with_name("prompts.toml")),
        damages=damages,
        severity=severity,
        seed=seed,
        size=size,
        each=each,
        withhold=withhold,
        licence=licence,
        observe=observe,
    )


def load(
    suite: str | Suite,
    origin: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    fill: bool = False,
    first: int = 0,
    allow_missing: bool = False,
) -> Loaded | LoadedPairs:
    """Make a suite of published or own pictures: the cycles of `suite`, no drawn stand-ins.

    Args:
        suite: The suite to follow.
        origin: Of a suite that restores, a folder with input/ and gt/, whose pairs become the
            sources; of another, a dataset in which its initial images are looked for.
        to: The folder to make.
        fill: Of a dataset, keep the drawn source where no picture is found.
        first: Of a dataset, the number that initial images have among the steps.
        allow_missing: Of pairs, take inputs without a truth in scenes where others have one.

    Raises:
        ImportProblem: What is there cannot be used, or the folder is there already.
    """
    like = open_suite(suite) if isinstance(suite, str) else suite
    if restores(like):
        return load_pairs(like, origin, to, allow_missing=allow_missing)
    return load_published(like, origin, to, fill=fill, first=first)


def _opened(place: str | os.PathLike[str]) -> Path | Suite:
    """A folder without a suite.toml is one of pictures; a file, or a name, is of a suite."""
    text, path = os.fspath(place), Path(place)
    known = text in names("suites")
    if text.endswith(".toml") or (path / "suite.toml").is_file() or (known and not path.is_dir()):
        return open_suite(text)
    return path
