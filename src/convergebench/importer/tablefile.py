"""Table files: CSV, TSV, Parquet and JSON lines, read whole."""

from __future__ import annotations

import csv
import json
import os
from typing import TYPE_CHECKING, Any

from convergebench.errors import ImportProblem
from convergebench.importer.found import Place

if TYPE_CHECKING:
    import polars as pl


def peek(place: Place) -> list[str]:
    """The names of a table's columns. Raises ImportProblem."""
    import polars as pl

    ending = os.path.splitext(place.name)[1].lower()
    try:
        if ending == ".parquet":
            return list(pl.read_parquet_schema(place.path))
        with open(place.path, encoding="utf-8-sig", newline="") as file:
            line = file.readline(1_000_000)
        if ending == ".jsonl":
            told = json.loads(line)
            return list(told) if isinstance(told, dict) else []
        return next(csv.reader([line], delimiter=_separator(line, ending)), [])
    except (OSError, ValueError, csv.Error, pl.exceptions.PolarsError) as error:
        raise _unreadable(place, error) from error


def load(place: Place) -> pl.DataFrame:
    """The whole table; cells of CSV and TSV as texts. Raises ImportProblem."""
    import polars as pl

    names = peek(place)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ImportProblem(
            f"{place.name} has several columns called {twice[0]!r}. Give each a name of its own."
        )
    ending = os.path.splitext(place.name)[1].lower()
    try:
        if ending == ".parquet":
            table = pl.read_parquet(place.path)
        elif ending == ".jsonl":
            table = _lines(place)
        else:
            table = pl.read_csv(place.path, separator=separator(place), infer_schema=False)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise _unreadable(place, error) from error
    if not table.height:
        raise ImportProblem(f"{place.name} has no rows")
    return table


def separator(place: Place) -> str:
    """What stands between the cells of a CSV or TSV; empty for other files."""
    ending = os.path.splitext(place.name)[1].lower()
    if ending in (".parquet", ".jsonl"):
        return ""
    with open(place.path, encoding="utf-8-sig") as file:
        return _separator(file.readline(1_000_000), ending)


def _lines(place: Place) -> pl.DataFrame:
    """JSON lines, also with the NaN and Infinity that Python writes and JSON has not."""
    import polars as pl

    try:
        return pl.read_ndjson(place.path, infer_schema_length=None)
    except pl.exceptions.PolarsError:
        found: list[dict[str, Any]] = []
        with open(place.path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                told = json.loads(line)
                if not isinstance(told, dict):
                    raise ImportProblem(
                        f"{place.name}, line {number} is no object with names and values"
                    ) from None
                found.append(told)
        return pl.DataFrame(found, infer_schema_length=None, strict=False)


def _separator(header: str, ending: str) -> str:
    if ending == ".tsv":
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def _unreadable(place: Place, error: Exception) -> ImportProblem:
    why = error.strerror if isinstance(error, OSError) else str(error).strip().splitlines()
    told = why if isinstance(why, str) else (why[0] if why else type(error).__name__)
    return ImportProblem(f"cannot read {place.name} as a table ({told})")
