"""Tables as CSV (RFC 4180, UTF-8): every digit of every number, and no cell that is a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from convergebench.analysis import Finding, Findings
from convergebench.reporter.export.sheets import Cell, Column, Estimate, Sheet
from convergebench.table import defused


def sheet_csv(sheet: Sheet) -> bytes:
    """A table; an estimate takes three columns, and a fourth where it is printed in words."""
    names: list[str] = []
    for column in sheet.columns:
        names += _names(column)
    rows = [
        [
            part
            for cell, column in zip(row, sheet.columns, strict=True)
            for part in _cells(cell, column)
        ]
        for row in sheet.rows
    ]
    return _written(names, rows)


def findings_csv(findings: Findings) -> bytes:
    """Every finding, every field."""
    fields = list(Finding.model_fields)
    rows = [[f.kind, *(getattr(f, name) for name in fields)] for f in findings.findings]
    return _written(["kind", *fields], rows)


def _names(column: Column) -> list[str]:
    if column.kind != "estimate":
        return [column.key]
    names = [column.key, f"{column.key}_low", f"{column.key}_high"]
    return [*names, f"{column.key}_printed"] if column.worded else names


def _cells(cell: Cell, column: Column) -> list[str | float | int | None]:
    if not isinstance(cell, Estimate):
        return [cell]
    parts: list[str | float | int | None] = [cell.value, cell.low, cell.high]
    return [*parts, cell.text] if column.worded else parts


def _written(names: Sequence[str], rows: Iterable[Sequence[str | float | int | None]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_field(cell) for cell in row])
    return out.getvalue().encode()


def _field(cell: str | float | int | None) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return defused(cell)
    return repr(cell)
