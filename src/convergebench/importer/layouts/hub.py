"""Datasets as the Hugging Face Hub keeps them: a metadata file beside pictures, or Parquet shards.

In the first form `metadata.jsonl`, `.csv` or `.parquet` has a row per picture and names it in
`file_name`. In the second the pictures are in the Parquet file, as a column of {bytes, path}.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from convergebench.errors import ImportProblem
from convergebench.importer.found import Look, Place

if TYPE_CHECKING:
    import polars

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "file": ("file_name", "image_file_name", "filename", "image_path"),
    "source": ("source", "initial_image", "source_image", "image_name", "initial", "image"),
    "variant": ("variant", "task", "setting", "arm", "experiment"),
    "run": ("run", "repeat", "run_id", "run_index", "trial"),
    "step": ("step", "iteration", "iter", "step_index", "edit_step"),
    "prompt": ("prompt", "instruction", "edit_prompt"),
    "reasoning": ("reasoning", "reasoning_summary", "thoughts", "thinking"),
    "seed": ("seed",),
    "temperature": ("temperature",),
    "resolution": ("resolution", "image_size"),
    "session": ("session",),
    "model": ("model", "editor", "model_name"),
}
"""What columns may be called, by what they mean; the first that is there is taken."""

_SYNONYMS: Final = {"editor": "model", "cycle": "variant", "repeat": "run"}
"""What users call some of these when they name a column, as for tables of scores."""

_MADE: Final = frozenset(("output", "edited", "result", "generated"))
_GIVEN: Final = frozenset(("input", "source", "original", "initial", "reference", "mask"))
"""Words in the names of columns of pictures: made by the editor, or given to it."""

ROWS_AT_ONCE: Final = 16
"""Rows of pictures held in memory at a time."""

_METADATA: Final = ("metadata.jsonl", "metadata.csv", "metadata.parquet")


@dataclass(frozen=True)
class Row:
    """A row: what its columns say, by our names, and its picture.

    Attributes:
        fields: By the keys of `COLUMNS`; empty cells are left out.
        name: The picture's path below the root, as the row gives it.
        place: Where the picture is; None when it is not there.
        table: The file that has the row.
    """

    fields: Mapping[str, Any]
    name: str
    place: Place | None
    table: str


@dataclass
class Tables:
    """All tables of a dataset, by what they are."""

    metadata: list[str] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)


def find_tables(look: Look, columns: Mapping[str, str]) -> Tables:
    """The tables that say which step each picture is; others are left alone."""
    found = Tables()
    for name in look.files:
        base = name.rpartition("/")[2].lower()
        if base in _METADATA and not look.is_file:
            if {"file", "step"} <= set(_mapped(_header(look, name), columns)):
                found.metadata.append(name)
        elif base.endswith(".parquet"):
            schema = _schema(look, name)
            if _pictures(schema) and "step" in _mapped(list(schema), columns):
                found.shards.append(name)
    return found


def metadata_rows(look: Look, table: str, columns: Mapping[str, str]) -> Iterator[Row]:
    """The rows of a metadata file. Raises ImportProblem."""
    folder, _, _ = table.rpartition("/")
    known = set(look.files)
    mapped = _mapped(_header(look, table), columns)
    for told in _table(look, table):
        fields = _fields(told, mapped)
        file = fields.pop("file", "")
        name = os.path.normpath(f"{folder}/{file}".lstrip("/")).replace("\\", "/") if file else ""
        yield Row(fields, name, look.place(name) if name in known else None, table)


def shard_rows(
    look: Look, shards: list[str], columns: Mapping[str, str], notes: list[str]
) -> tuple[list[Row], Callable[[], None]]:
    """The rows of Parquet shards, their pictures spooled; and how to remove those.

    What was chosen among several columns of pictures goes to `notes`. Raises ImportProblem.
    """
    import polars as pl

    chosen = {name: _chosen(look, name, columns, notes) for name in shards}
    needed = sum(os.stat(look.place(name).path).st_size for name in shards)
    if shutil.disk_usage(tempfile.gettempdir()).free < needed:
        raise ImportProblem(
            f"the pictures in {len(shards)} Parquet files need {needed / 1e9:.1f} GB of scratch "
            f"space, which {tempfile.gettempdir()} does not have; set TMPDIR to a folder that does"
        )
    spool = Path(tempfile.mkdtemp(prefix="convergebench-parquet-"))
    rows: list[Row] = []
    try:
        for number, shard in enumerate(shards):
            (folder := spool / f"{number}").mkdir()
            rows += _spooled(look, shard, chosen[shard], columns, folder)
    except BaseException as error:
        shutil.rmtree(spool, ignore_errors=True)
        if isinstance(error, pl.exceptions.PolarsError | OSError):
            raise ImportProblem(f"cannot read the Parquet files: {_short(error)}") from error
        raise
    return rows, lambda: shutil.rmtree(spool, ignore_errors=True)


def _spooled(
    look: Look, shard: str, picture: str, columns: Mapping[str, str], folder: Path
) -> Iterator[Row]:
    import polars as pl

    schema = _schema(look, shard)
    pictures = _pictures(schema)
    scan = pl.scan_parquet(look.place(shard).path)
    mapped = _mapped([name for name in schema if name not in pictures], columns)
    wanted = [*dict.fromkeys(mapped.values()), picture]
    known = set(look.files)
    count = int(scan.select(pl.len()).collect().item())
    for start in range(0, count, ROWS_AT_ONCE):
        part = scan.select(wanted).slice(start, ROWS_AT_ONCE).collect()
        for number, told in enumerate(part.iter_rows(named=True), start):
            image = told.pop(picture) or {}
            name = str(image.get("path") or "")
            place = look.place(name) if name in known else None
            if image.get("bytes"):
                file = folder / f"{number}"
                file.write_bytes(image["bytes"])
                place = Place(f"{shard}#{number}", file)
            yield Row(_fields(told, mapped), name, place, shard)


def _schema(look: Look, name: str) -> Mapping[str, polars.DataType]:
    import polars as pl

    try:
        return pl.read_parquet_schema(look.place(name).path)
    except (pl.exceptions.PolarsError, OSError):
        return {}


def _pictures(schema: Mapping[str, polars.DataType]) -> list[str]:
    """The columns of {bytes, path}."""
    return [
        name
        for name, kind in schema.items()
        if {f.name for f in getattr(kind, "fields", ())} >= {"bytes", "path"}
    ]


def _chosen(look: Look, shard: str, columns: Mapping[str, str], notes: list[str]) -> str:
    """The column of the pictures that were made; with several, names must leave no doubt."""
    pictures = _pictures(_schema(look, shard))
    said = columns.get("image")
    if said is not None:
        if said not in pictures:
            raise ImportProblem(
                f"{shard} has no column of pictures called {said!r} (--column image); it has "
                f"{', '.join(pictures)}"
            )
        return said
    if len(pictures) == 1:
        return pictures[0]
    given, made = given_and_made(pictures)
    plain = [name for name in pictures if name not in given + made and name.lower() == "image"]
    best = made or plain
    if len(best) != 1 or len(given + made + plain) < len(pictures):
        raise ImportProblem(
            f"{shard} has several columns of pictures ({', '.join(pictures)}): say which one has "
            f"the edited ones, as in --column image=NAME{' --layout banana100' * look.is_file}"
        )
    others = ", ".join(name for name in pictures if name != best[0])
    note = (
        f"Of several columns of pictures {best[0]} is read, by its name, and {others} is not; "
        "--column image=NAME says otherwise."
    )
    if note not in notes:
        notes.append(note)
    return best[0]


def given_and_made(pictures: list[str]) -> tuple[list[str], list[str]]:
    """Of columns of pictures those given to the editor, and those it made, by their names."""
    words = {name: set(re.split(r"[^a-z]+", name.lower())) for name in pictures}
    given = [name for name in pictures if words[name] & _GIVEN]
    return given, [name for name in pictures if name not in given and words[name] & _MADE]


def columns_of(names: list[str]) -> dict[str, str]:
    """Which of these columns has what, by the keys of `COLUMNS`."""
    return _mapped(names, {})


def _header(look: Look, name: str) -> list[str]:
    """The columns of a table; of JSON lines the keys of all of them."""
    if name.lower().endswith(".parquet"):
        return list(_schema(look, name))
    with open(look.place(name).path, encoding="utf-8-sig", errors="replace", newline="") as file:
        if name.lower().endswith(".csv"):
            return next(csv.reader(file), [])
        found: dict[str, None] = {}
        for number, line in enumerate(file, 1):
            try:
                told = _json(line, f"{name}, line {number}")
            except ValueError:
                continue  # whoever reads the rows says so
            found |= dict.fromkeys(told) if isinstance(told, dict) else {}
    return list(found)


def _json(line: str, where: str) -> Any:
    """What a line says; nothing for a blank one. Raises ValueError, ImportProblem."""
    try:
        return json.loads(line) if line.strip() else {}
    except RecursionError as error:
        raise ImportProblem(f"{where}: nested too deeply to be read") from error


def _table(look: Look, name: str) -> Iterator[Mapping[str, Any]]:
    if name.lower().endswith(".parquet"):
        import polars as pl

        yield from pl.read_parquet(look.place(name).path).iter_rows(named=True)
        return
    text = io.StringIO(look.place(name).read().decode("utf-8-sig", "replace"), newline="")
    if name.lower().endswith(".csv"):
        yield from csv.DictReader(text)
        return
    for number, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            told = _json(line, f"{name}, line {number}")
        except ValueError as error:
            raise ImportProblem(f"{name}, line {number}: not valid JSON: {error}") from error
        if not isinstance(told, dict):
            raise ImportProblem(f"{name}, line {number}: expected an object, got {line[:40]!r}")
        yield told


def _mapped(names: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Which column has what; the user's word beats the table."""
    columns = {_SYNONYMS.get(meaning, meaning): name for meaning, name in columns.items()}
    small = {name.lower(): name for name in reversed(names)}
    found: dict[str, str] = {}
    for meaning, called in COLUMNS.items():
        for name in (columns[meaning].lower(),) if meaning in columns else called:
            if name in small and small[name] not in found.values():
                found[meaning] = small[name]
                break
    return found


def _fields(told: Mapping[str, Any], mapped: Mapping[str, str]) -> dict[str, Any]:
    cells = {meaning: told.get(column) for meaning, column in mapped.items()}
    return {meaning: cell for meaning, cell in cells.items() if cell not in (None, "")}


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
