"""Score rows: their columns, and the Parquet files that hold them."""

from __future__ import annotations

import io
import re
import time
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


def parts_in(folder: Path) -> list[Path]:
    """The files of score rows in a folder; of two that tell the same score, the later counts."""
    return sorted(folder.glob("part-*.parquet"))


def next_part(folder: Path) -> str:
    """The name of one more file there: the time, but after all others whatever the clocks say.

    Machines that score a run one after the other do not agree on the time, and clocks are set back.
    """
    told = [re.fullmatch(r"part-([0-9a-f]{1,16})", path.stem) for path in parts_in(folder)]
    last = max((int(found[1], 16) for found in told if found), default=0)
    return f"part-{max(time.time_ns(), last + 1):x}.parquet"


def read_parts(folder: Path) -> pl.DataFrame:
    """All score rows in a folder; of rows with equal keys the newest."""
    import polars as pl

    for left in range(TRIES, 0, -1):
        parts = parts_in(folder)
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
