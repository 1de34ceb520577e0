"""Score rows: their columns, and the Parquet files that hold them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import polars as pl

SCORE_COLUMNS: Final = {
    "chain": "String",
    "step": "Int32",
    "metric": "String",
    "version": "String",
    "against": "String",
    "where": "String",
    "value": "Float64",
    "note": "String",
}
"""Columns of `scores/*.parquet`, in order; the first six are the key."""
TRIES: Final = 5
"""How often files that vanish while they are read are looked for again."""


def rows_frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Score rows as a table with the right columns and types."""
    import polars as pl

    return pl.DataFrame(rows, schema=_schema(), orient="row")


def as_parquet(rows: pl.DataFrame) -> bytes:
    """Score rows as the bytes of a file."""
    out = io.BytesIO()
    rows.select(list(SCORE_COLUMNS)).write_parquet(out)
    return out.getvalue()


def read_parts(folder: Path) -> pl.DataFrame:
    """All score rows in a folder; of rows with equal keys the newest."""
    import polars as pl

    for left in range(TRIES, 0, -1):
        parts = sorted(folder.glob("part-*.parquet"))
        if not parts:
            return pl.DataFrame(schema=_schema())
        try:
            rows = pl.concat([pl.read_parquet(part) for part in parts])
            break
        except FileNotFoundError:  # made one by a process that scores: the whole is there now
            if left == 1:
                raise
    return rows.unique(list(SCORE_COLUMNS)[:6], keep="last", maintain_order=True)


def _schema() -> dict[str, Any]:
    import polars as pl

    return {name: getattr(pl, kind)() for name, kind in SCORE_COLUMNS.items()}
