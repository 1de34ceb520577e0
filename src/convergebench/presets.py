"""Presets: designs that come with a suite, each a run.toml beside it.

`banana100/small` is the file `presets/small.toml` in the folder of the suite `banana100`. Its keys
are those of a run.toml; a table `[about]` says what it is, and which metrics its study wants.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from convergebench.cycle import Record
from convergebench.errors import SuiteError, UnknownName, explain
from convergebench.registry import names, open_suite
from convergebench.runspec import CONTROLS, RunSpec
from convergebench.suite import Suite


class About(Record):
    """What a preset tells about itself.

    `metrics` are what its study measures; `sparse` are slow ones, measured only at the steps that
    the trial compares.
    """

    title: str
    citation: str = ""
    metrics: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preset:
    """A design: `table` holds the keys of a run.toml, the suite's name among them."""

    name: str
    about: About
    table: dict[str, Any]

    @property
    def arms(self) -> list[str]:
        """The names of its arms."""
        return [arm["name"] for arm in self.table.get("arms", ()) if arm.get("name")]

    def only(self, arms: Sequence[str]) -> dict[str, Any]:
        """The table with these arms alone; with all of them where none is named.

        Raises:
            UnknownName: It has no such arm.
        """
        for name in arms:
            if name not in self.arms:
                raise UnknownName("arm", name, self.arms, f"Preset: {self.name}.")
        if not arms:
            return self.table
        kept = [arm for arm in self.table["arms"] if arm.get("name") in arms]
        return {**self.table, "arms": kept}


def preset_names(suite: Suite) -> list[str]:
    """The presets of a suite, as `suite/preset`."""
    folder = (suite.root or Path()) / "presets"
    return [f"{_called(suite)}/{path.stem}" for path in sorted(folder.glob("*.toml"))]


def _called(suite: Suite) -> str:
    return (suite.opened_as or suite.name).removesuffix("/suite.toml")


def open_preset(name: str) -> Preset:
    """The preset `SUITE/PRESET`. Raises UnknownName, SuiteError."""
    head, _, tail = name.rpartition("/")
    if not head:  # a word alone: of all the presets that there are, the nearest
        found = [each for suite in names("suites") for each in preset_names(open_suite(suite))]
        raise UnknownName("preset", name, found)
    suite = open_suite(head)
    known = preset_names(suite)
    full = f"{_called(suite)}/{tail}"
    if full not in known:
        raise UnknownName("preset", name, known)
    path = (suite.root or Path()) / "presets" / f"{tail}.toml"
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuiteError(f"cannot read preset {path}: {error}") from error
    try:
        about = About.model_validate(table.pop("about", {}))
    except ValidationError as error:
        raise SuiteError(f"{path}: about: {explain(error)}") from error
    try:  # whoever runs it need not name an editor here
        RunSpec.model_validate({"editors": CONTROLS, **table})
    except ValidationError as error:
        raise SuiteError(f"{path}: {explain(error)}") from error
    return Preset(full, about, {"suite": head, **table})
