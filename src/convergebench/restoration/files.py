"""The study's tables as files: a CSV each, and `restoration.json` with everything."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from convergebench.errors import SettingsError
from convergebench.restoration.result import (
    Case,
    CaseCount,
    CaseMean,
    Effect,
    Outlier,
    Point,
    Restoration,
    Score,
    Sheet,
    Stability,
)
from convergebench.restoration.tables import cell_text
from convergebench.table import defused

FILES: Final = {
    "effects": Effect,
    "stability": Stability,
    "outliers": Outlier,
    "tradeoff": Point,
    "counts": CaseCount,
    "case_means": CaseMean,
    "cases": Case,
    "scores": Score,
}
"""The parts that are lists of one kind, each a file."""

CELL: Final = ("low", "high", "n", "place", "infinite")


def sheets(study: Restoration) -> dict[str, tuple[Sheet, ...]]:
    """The tables of means by the name of their file, those that have rows."""
    found = {
        "prompts": study.prompts,
        "overall": (study.overall,) if study.overall else (),
        "scenes": tuple(sheet for sheet in study.scenes if sheet.by == "scene"),
        "damages": tuple(sheet for sheet in study.scenes if sheet.by == "damage"),
    }
    return {name: mine for name, mine in found.items() if any(sheet.rows for sheet in mine)}


def write_tables(study: Restoration, folder: Path) -> list[Path]:
    """Write every table as CSV, and all as `restoration.json`, into a folder that is made.

    Means have all their digits; `/` is where no truth exists, an empty cell where no score is. No
    cell is a formula: names come from users.

    Raises:
        SettingsError: The folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(study.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        written = [folder / "restoration.json"]
        written[0].write_text(text + "\n", encoding="utf-8")
        for name, mine in sheets(study).items():
            written.append(_write(folder / f"{name}.csv", _head(mine[0]), _lines(mine)))
        for name, kind in FILES.items():
            rows = getattr(study, name)
            if rows:
                columns = [field.name for field in fields(kind)]
                lines = [[_plain(getattr(row, column)) for column in columns] for row in rows]
                written.append(_write(folder / f"{name}.csv", columns, lines))
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot be written: {error.strerror or error}. Give another --csv."
        ) from error
    return written


def _head(sheet: Sheet) -> list[str]:
    more = [f"{m.title} {word}" for m in sheet.measures for word in CELL]
    return ["of", "group", "name", "kind", *(m.title for m in sheet.measures), "failed",
            "expected", "control", *more]  # fmt: skip


def _lines(mine: Iterable[Sheet]) -> list[list[Any]]:
    lines = []
    for sheet in mine:
        for row in sheet.rows:
            cells = [row.cells[measure.name] for measure in sheet.measures]
            lines.append(
                [
                    sheet.of,
                    row.group,
                    row.label,
                    row.kind,
                    *(cell_text(c).replace("–", "") if c.mean is None else c.mean for c in cells),
                    row.failed,
                    row.expected,
                    row.control,
                    *(_plain(getattr(c, word)) for c in cells for word in CELL),
                ]
            )
    return lines


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return "; ".join(map(str, value)) if isinstance(value, tuple) else value


def _write(path: Path, columns: Sequence[str], lines: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_defused, columns))
        writer.writerows([_defused(cell) for cell in line] for line in lines)
    return path


def _defused(cell: Any) -> Any:
    return defused(cell) if isinstance(cell, str) else cell
