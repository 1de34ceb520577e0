"""A researcher's own numbers: a table of scores, or of people's ratings.

A row says which frame it is of in one of these ways, and has the number:

* `chain`, `step`: a chain's name, as in the score files;
* `editor`, `source`, `step`, and `repeat`, `cycle` and `settings` where there are several (without
  a cycle, replications are meant);
* `sha256`: of the frame's bytes;
* `path`: a file of the run's `frames/`, or any file with the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

import polars as pl

from convergebench.errors import InputError, SettingsError
from convergebench.frame import sha256
from convergebench.importer.found import Place
from convergebench.importer.tablefile import load
from convergebench.trial.material import Tried
from convergebench.trial.reading import Field
from convergebench.wording import counted

NAMED: Final = ("cycle", "settings", "repeat")
"""Columns beside editor, source and step that may be left out where they say nothing."""

KEYS: Final = ("chain", "step", "editor", "source", *NAMED, "sha256", "path")
"""Columns that say which frame a row is of: never the score, even of a metric of that name."""

WAYS: Final = (
    "Say which frame a row is of by the columns chain and step; editor, source, repeat and step; "
    "sha256; or path"
)
_DIGEST: Final = re.compile(r"^[0-9a-f]{64}$")
_MISSING: Final = ("", "nan", "null", "none", "na", "n/a")


@dataclass(frozen=True)
class Reading:
    """How a metric of one's own is to be read: its name, direction and range."""

    name: str
    higher_is_better: bool = True
    typical: tuple[float, float] | None = None

    def with_options(self, options: Sequence[str], what: str) -> Self:
        """The same with options as given: `name=…`, `lower-is-better`, `range=LOW:HIGH`."""
        found = self
        for option in options:
            key, equals, value = (part.strip() for part in option.partition("="))
            if key in ("lower-is-better", "higher-is-better") and not equals:
                found = replace(found, higher_is_better=key.startswith("higher"))
            elif key == "name" and value:
                found = replace(found, name=value)
            elif key == "range" and value:
                found = replace(found, typical=parse_range(value, what))
            else:
                raise SettingsError(
                    f"{what}: {option!r} is no option. Expected name=…, lower-is-better or "
                    "range=LOW:HIGH, with commas between."
                )
        return found

    def tried(self, origin: str) -> Tried:
        """The metric on trial."""
        return Tried(
            name=self.name,
            origin=origin,
            higher_is_better=self.higher_is_better,
            typical=self.typical,
        )


def parse_range(text: str, what: str) -> tuple[float, float]:
    """Two numbers, LOW:HIGH. Raises SettingsError."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise SettingsError(
            f"{what}: a range is two numbers, the lower first, as range=0:100; got {text!r}"
        )
    return low, high


@dataclass(frozen=True)
class ScoreFile:
    """A table of scores, and how they are to be read."""

    path: Path
    reading: Reading

    @classmethod
    def parse(cls, text: str | Path) -> Self:
        """Read `FILE,name=…,lower-is-better,range=LOW:HIGH`. Raises SettingsError."""
        if isinstance(text, Path):
            return cls(text, Reading(text.stem))
        head, *options = text.split(",")
        path = Path(head.strip())
        return cls(path, Reading(path.stem).with_options(options, f"--scores {text}"))

    @property
    def origin(self) -> str:
        """Where the scores are from, for the card."""
        return f"file {self.path.name}"


@dataclass(frozen=True)
class Found:
    """Numbers of frames: chain, step, value (null where there is none), and a note if need be."""

    rows: pl.DataFrame
    notes: tuple[str, ...] = ()


def read_scores(file: ScoreFile, field: Field, runs: str) -> Found:
    """The scores in a table.

    Raises:
        InputError: It cannot be read, lacks a column, or none of its rows is of a frame here.
    """
    own = [file.reading.name] if file.reading.name.lower() not in KEYS else []
    return _read(file.path, field, runs, (*own, "score", "value"))


def read_ratings(path: Path, field: Field, runs: str) -> Found:
    """People's ratings in a table, higher being better; of several of one frame the mean.

    Raises:
        InputError: As of `read_scores`.
    """
    found = _read(path, field, runs, ("rating", "mos", "value"), several=True)
    return replace(found, rows=found.rows.filter(pl.col("value").is_not_null()))


def _read(
    path: Path, field: Field, runs: str, columns: Sequence[str], *, several: bool = False
) -> Found:
    table = load(Place(path.name, path))
    names = {name.strip().lower(): name for name in table.columns}
    column = next((names[name.lower()] for name in columns if name.lower() in names), None)
    if column is None:
        raise InputError(
            f"{path.name} has no column {' or '.join(dict.fromkeys(columns))}; it has "
            f"{', '.join(table.columns)}."
        )
    numbers = [_number(cell, path, line) for line, cell in enumerate(table[column].to_list(), 2)]
    keys = table.select(
        **{key: pl.col(name).cast(pl.String).str.strip_chars() for key, name in names.items()}
    ).with_columns(
        pl.Series("_value", numbers, dtype=pl.Float64()), _line=pl.int_range(2, pl.len() + 2)
    )
    frames = _matched(keys, field, path)
    unknown = len(keys) - frames["_line"].n_unique()
    if frames.is_empty():
        raise InputError(
            f"none of the {counted(len(keys), 'row')} of {path.name} is of a frame of {runs} that "
            f"is on trial. {WAYS}, as in the run."
        )
    notes = []
    if unknown:
        lines = keys.join(frames, on="_line", how="anti")["_line"]
        notes.append(
            f"{path.name}: {counted(unknown, 'row')} of {len(keys):,} "
            f"{'is' if unknown == 1 else 'are'} of no frame on trial, the first in line {lines[0]}."
        )
    grouped = frames.group_by("chain", "step", maintain_order=True).agg(
        value=pl.col("_value").mean(), kinds=pl.col("_value").n_unique(), line=pl.col("_line").max()
    )
    twice = grouped.filter(pl.col("kinds") > 1)
    if len(twice) and not several:
        chain, step, _, _, line = twice.row(0)
        raise InputError(
            f"{path.name}, line {line}: frame {step} of chain {chain} has another score further "
            "up. Give every frame one score."
        )
    return Found(grouped.select("chain", "step", "value"), tuple(notes))


def _number(cell: object, path: Path, line: int) -> float | None:
    text = "" if cell is None else str(cell).strip()
    if text.lower() in _MISSING:
        return None
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{path.name}, line {line}: {text!r} is not a number.") from None
    return value if math.isfinite(value) else None


def _matched(keys: pl.DataFrame, field: Field, path: Path) -> pl.DataFrame:
    """The rows with the chain and step of each frame that they are of: one, or all with its bytes.

    Raises:
        InputError: No set of columns says which frame a row is of.
    """
    there = set(keys.columns)
    kept = ("chain", "step", "_value", "_line")
    if {"chain", "step"} <= there:
        rows = _with_steps(keys, path)
        return rows.join(field.frames, on=["chain", "step"], how="semi").select(kept)
    if {"editor", "source", "step"} <= there:
        return _by_name(_with_steps(keys, path), field, path).select(kept)
    if "sha256" in there:
        rows = keys.with_columns(pl.col("sha256").str.to_lowercase())
    elif "path" in there:
        digests = [_digest(cell, path.parent) for cell in keys["path"].to_list()]
        rows = keys.with_columns(pl.Series("sha256", digests, dtype=pl.String()))
    else:
        shown = [name for name in keys.columns if not name.startswith("_")]
        raise InputError(f"{path.name} has the columns {', '.join(shown)}. {WAYS}.")
    return rows.drop("step", "chain", strict=False).join(field.frames, on="sha256").select(kept)


def _with_steps(keys: pl.DataFrame, path: Path) -> pl.DataFrame:
    steps = keys["step"].str.strip_suffix(".0").cast(pl.Int32, strict=False)
    if steps.null_count():
        row = steps.is_null().arg_max() or 0
        raise InputError(
            f"{path.name}, line {row + 2}: step {keys['step'][row]!r} is not a whole number."
        )
    return keys.with_columns(step=steps)


def _by_name(rows: pl.DataFrame, field: Field, path: Path) -> pl.DataFrame:
    """Rows by editor, source, step, and what else of `NAMED` is told.

    Without a cycle, replications are meant: verdicts are on them.
    """
    chains = field.chains.with_columns(pl.col("repeat").cast(pl.String))
    told = [name for name in NAMED if name in rows.columns]
    if "cycle" not in told:
        chains = chains.filter(pl.col("kind") == "replicate")
    rows = rows.with_columns(pl.col(told).fill_null(""))
    if "repeat" in told:
        rows = rows.with_columns(pl.col("repeat").str.strip_suffix(".0").replace("", "0"))
    on = ["editor", "source", *told]
    found = rows.drop("chain", strict=False).join(chains.select("chain", *on), on=on)
    found = found.join(field.frames.select("chain", "step"), on=["chain", "step"], how="semi")
    doubled = found.filter(pl.col("_line").is_duplicated())
    if len(doubled):
        line = doubled["_line"][0]
        chains_of = doubled.filter(pl.col("_line") == line)["chain"].to_list()
        lacking = ", ".join(name for name in NAMED if name not in told)
        raise InputError(
            f"{path.name}, line {line} is of {len(chains_of)} chains at once (such as "
            f"{chains_of[0]} and {chains_of[1]}). Tell them apart by {lacking}, or use chain and "
            "step."
        )
    return found


def _digest(cell: str | None, beside: Path) -> str | None:
    """The SHA-256 that a path stands for: its name, in a run's frames, or its file's bytes."""
    if not cell:
        return None
    path = Path(cell)
    if _DIGEST.match(path.stem):
        return path.stem
    for place in (beside / path, path):
        try:
            return sha256(place.read_bytes())
        except OSError:
            continue
    return None
