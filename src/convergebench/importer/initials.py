"""The initial images in a published dataset: which picture is which source of a suite.

They are looked for where datasets of replication studies have them, in this order: rows of a
metadata file or of Parquet shards with the number of the initial image (or, in shards with a column
of the pictures that were given to the editor, that of its first step); pictures in a folder of
initial images, or called after a source; the first picture of every run in a tree of runs; the only
picture that has a source's name in its own. A dataset may be far larger than its initial images, so
nothing else is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convergebench.errors import ImportProblem
from convergebench.frame import sha256
from convergebench.importer.found import Look
from convergebench.importer.layouts import hub
from convergebench.importer.layouts.variants import parse_path
from convergebench.wording import counted, in_order

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Initial:
    """An initial image: its bytes as they are, and where they were."""

    source: str
    data: bytes
    place: str
    how: str


@dataclass
class Initials:
    """What was found: an image per source, at most, and what a user must know."""

    images: dict[str, Initial] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_initials(root: Path, sources: Iterable[str], *, first: int = 0) -> Initials:
    """The initial images of these sources in a dataset.

    Args:
        root: A folder, or one Parquet file.
        sources: Names of the sources; case and the words around a name do not matter.
        first: The number that the initial image has among the steps.

    Raises:
        ImportProblem: There is nothing of the kind, or several pictures of one source differ.
    """
    if not root.exists():
        raise ImportProblem(f"{root} does not exist. Give the folder or Parquet file to load from.")
    look = Look(root)
    names = _Names(sources)
    if look.is_file and not root.name.lower().endswith(".parquet"):
        raise ImportProblem(
            f"{root} is neither a folder nor a Parquet file. Give the folder that the dataset was "
            "downloaded to."
        )
    found = Initials()
    ways = (_in_tables(look, names, first), _in_shards(look, names, first), _apart(look, names))
    for way in (*ways, _in_runs(look, names, first), _alone(look, names)):
        several: dict[str, dict[str, Initial]] = {}
        for one in way:
            if one.source not in found.images:
                several.setdefault(one.source, {}).setdefault(sha256(one.data), one)
        for source, kinds in several.items():
            if len(kinds) > 1:
                places = [one.place for one in kinds.values()]
                raise ImportProblem(
                    f"source {source!r} has {len(kinds)} initial images that differ: "
                    f"{in_order(places)}. Give a folder that has only the right one of each."
                )
            (found.images[source],) = kinds.values()
    found.notes += look.notes
    if not found.images:
        raise ImportProblem(
            f"{root} has no initial image that is told by its name "
            f"({counted(len(look.files), 'file')}); expected pictures called after the sources "
            f"({in_order(names.all)}), a metadata.jsonl, or Parquet files with the source and step "
            f"{first} of each."
        )
    return found


class _Names:
    """The sources' names, found again in whatever files and cells call them."""

    def __init__(self, sources: Iterable[str]) -> None:
        self.all = tuple(sources)
        self._known = {name.lower(): name for name in self.all}

    def __call__(self, text: str) -> str | None:
        """The source that a name or a cell is of, where it is of one only."""
        stem = os.path.splitext(text.replace("\\", "/").rpartition("/")[2])[0]
        for told in (text.strip().lower(), stem.strip().lower()):
            if told in self._known:
                return self._known[told]
        words = {w for w in re.split(r"[^a-z]+", stem.lower()) if w in self._known}
        return self._known[words.pop()] if len(words) == 1 else None

    def in_parts(self, parts: Iterable[str]) -> str | None:
        """The source that one of several parts of a path is called after."""
        found = {name for part in parts if (name := self(part))}
        return found.pop() if len(found) == 1 else None


def _in_tables(look: Look, names: _Names, first: int) -> Iterator[Initial]:
    """Rows of metadata files with the initial image's number, or that only name pictures."""
    for table in hub.find_tables(look, {}).metadata:
        for row in hub.metadata_rows(look, table, {}):
            source = names(str(row.fields.get("source", ""))) or names.in_parts(row.name.split("/"))
            if source and row.place and _is_number(row.fields.get("step"), first):
                yield Initial(source, row.place.read(), row.name, f"row of {table}")


def _in_shards(look: Look, names: _Names, first: int) -> Iterator[Initial]:
    """Rows of Parquet files that have pictures; only the pictures that are wanted are read."""
    for shard in (name for name in look.files if name.lower().endswith(".parquet")):
        try:
            yield from _of_shard(look, shard, names, first)
        except OSError as error:
            raise ImportProblem(f"cannot read {shard} ({error.strerror})") from error


def _of_shard(look: Look, shard: str, names: _Names, first: int) -> Iterator[Initial]:
    import polars as pl

    path = look.place(shard).path
    try:
        schema = pl.read_parquet_schema(path)
        pictures = [name for name, kind in schema.items() if _is_picture(kind)]
        if not pictures:
            return
        plain = [name for name in schema if name not in pictures]
        cells = pl.scan_parquet(path).select(
            *plain, *(pl.col(name).struct.field("path").alias(name) for name in pictures)
        )
        rows = cells.with_row_index("row number").collect()
        told = hub.columns_of(plain)
        for row in rows.iter_rows(named=True):
            column = _wanted(row, told, pictures, first)
            if column is None:
                continue
            source = _source_of(row, told, column, names)
            if source is None:
                continue
            number = row["row number"]
            cell = pl.scan_parquet(path).select(column).slice(number, 1).collect().item()
            if cell["bytes"]:
                place = f"{shard}#{number}"
                yield Initial(source, cell["bytes"], place, f"column {column} of {shard}")
            elif cell["path"] in look.files:
                yield Initial(source, look.place(cell["path"]).read(), cell["path"], shard)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise ImportProblem(f"cannot read {shard} as Parquet: {reason}") from error


def _wanted(
    row: Mapping[str, Any], told: Mapping[str, str], pictures: list[str], first: int
) -> str | None:
    """Which column of a row has an initial image, if any."""
    given, made = hub.given_and_made(pictures)
    given = [name for name in given if "mask" not in name.lower()]
    if "step" not in told:
        return (given or pictures)[0] if len(given or pictures) == 1 else None
    step = row[told["step"]]
    if _is_number(step, first):
        return (made or pictures)[0]
    return given[0] if len(given) == 1 and _is_number(step, first + 1) else None


def _source_of(
    row: Mapping[str, Any], told: Mapping[str, str], column: str, names: _Names
) -> str | None:
    texts = [str(row[told["source"]])] if "source" in told and row[told["source"]] else []
    texts += [text for text in (row[column],) if text]
    texts += [text for text in row.values() if isinstance(text, str) and len(text) < 80]
    return next((name for text in texts if (name := names(text))), None)


def _is_picture(kind: polars.DataType) -> bool:
    return {part.name for part in getattr(kind, "fields", ())} >= {"bytes", "path"}


def _apart(look: Look, names: _Names) -> Iterator[Initial]:
    """Pictures in a folder of initial images, or called after a source and nothing else."""
    for name in look.images:
        told = parse_path(name)
        source = names(name) if told.step is None or told.apart else None
        if told.apart and source is None:
            source = names.in_parts([*told.others, *name.split("/")])
        if source:
            yield Initial(source, look.place(name).read(), name, "picture of that name")


def _in_runs(look: Look, names: _Names, first: int) -> Iterator[Initial]:
    """The pictures that runs begin with, in a tree of runs and steps."""
    for name in look.images:
        told = parse_path(name)
        begins = told.is_source or told.step == first
        source = names.in_parts(told.others) if begins and not told.apart else None
        if source:
            yield Initial(source, look.place(name).read(), name, "first picture of a run")


def _alone(look: Look, names: _Names) -> Iterator[Initial]:
    """Pictures that are the only one with a source's name in their own."""
    found: dict[str, list[str]] = {}
    for name in look.images:
        if source := names(name):
            found.setdefault(source, []).append(name)
    for source, called in found.items():
        if len(called) == 1:
            yield Initial(source, look.place(called[0]).read(), called[0], "only one of that name")


def _is_number(value: object, wanted: int) -> bool:
    told = re.fullmatch(r"(?:[A-Za-z]+[-_ ]?)?0*(\d+)(?:\.0)?", str(value))
    return told is not None and int(told[1]) == wanted
