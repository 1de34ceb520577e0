"""The table of answers: one row per answer that a person gave, whatever the design was.

Answers come from a rating study, from the files that `rate export` writes, from the rows `human/…`
of a run's score table, or from a wide table of raw scores as subjective databases publish them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from convergebench.errors import InputError
from convergebench.table import FORMULA
from convergebench.wording import counted, in_order, shown

SCHEMA: Final[dict[str, pl.DataType]] = {
    "study": pl.String(),
    "rater": pl.String(),
    "order": pl.Int64(),
    "at": pl.String(),
    "seconds": pl.Float64(),
    "design": pl.String(),
    "kind": pl.String(),
    "question": pl.String(),
    "image": pl.String(),
    "scene": pl.String(),
    "damage": pl.String(),
    "method": pl.String(),
    "chain": pl.String(),
    "step": pl.Int64(),
    "other_method": pl.String(),
    "other_chain": pl.String(),
    "value": pl.Float64(),
    "comment": pl.String(),
    "passed": pl.Boolean(),
}
"""Columns of the table of answers, in order."""

KINDS: Final = ("item", "repeat", "attention", "practice")
QUALITY: Final = "quality"
PREFERENCE: Final = "preference"
LABELS: Final = ("infidelity", "over-generation")
QUESTIONS: Final = (QUALITY, PREFERENCE, *LABELS)
NEEDED: Final = ("rater", "question", "chain", "value")
"""Columns that a table of answers must have; the others have defaults."""

_DEFAULTS: Final[dict[str, object]] = {
    "study": "",
    "order": 0,
    "at": "",
    "seconds": None,
    "design": "",
    "kind": "item",
    "image": "",
    "scene": "",
    "damage": "",
    "method": "",
    "step": 1,
    "other_method": None,
    "other_chain": None,
    "comment": None,
    "passed": None,
}
_MISSING: Final = ("", "NaN", "nan", "NA", "null", "-")
"""What a table may have for a value that is not there."""


def empty() -> pl.DataFrame:
    """A table of answers without a row."""
    return pl.DataFrame(schema=SCHEMA)


def read_answers(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Answers from a file: our export as CSV or Parquet, or a wide CSV of raw scores.

    A wide table has a row per stimulus, `asset_id`, `content_id` (the picture it was made from), a
    `method` if it is known, and a column `s1` … `sN` for each rater. Empty and NaN is missing.

    Raises:
        InputError: The file cannot be read, or is neither.
    """
    path = Path(path)
    try:
        table = _read(path)
    except OSError as error:
        raise InputError(
            f"cannot read {path} ({error.strerror or error}); expected a rating study, a run, or a "
            "CSV or Parquet file of answers"
        ) from error
    except pl.exceptions.PolarsError as error:
        told = str(error).partition("\n")[0]
        raise InputError(f"{path} is no table of answers: {told}") from error
    if "asset_id" in table.columns:
        return _from_wide(table, path)
    return _checked(table, str(path))


def checked(table: pl.DataFrame, name: str = "the answers") -> pl.DataFrame:
    """A table with the columns of `SCHEMA`, in order and of their types. Raises InputError."""
    return _checked(table, name)


def counting(answers: pl.DataFrame, question: str) -> pl.DataFrame:
    """The answers to a question that count: no practice, no attention check, no repeat."""
    return answers.filter(
        pl.col("question") == question, pl.col("kind") == "item", pl.col("value").is_not_null()
    )


def _read(path: Path) -> pl.DataFrame:
    if path.suffix.lower() in (".parquet", ".pq"):
        return pl.read_parquet(path)
    if not path.read_bytes().strip():
        raise InputError(f"{path} is empty, and a table of answers is needed.")
    # As text, so that a rater called 07 stays one and an empty column gets its own type.
    table = pl.read_csv(path, infer_schema=False, null_values=[""])
    # What begins like a formula was written with an apostrophe before it.
    return table.with_columns(pl.col(pl.String()).str.replace(f"^'({FORMULA})", "${1}"))


def _checked(table: pl.DataFrame, name: str) -> pl.DataFrame:
    lacking = [column for column in NEEDED if column not in table.columns]
    if lacking:
        raise InputError(
            f"{name} has no column {in_order(lacking)}. A table of answers has "
            f"{', '.join(NEEDED)} and more, as `rate export` writes it; a table of raw scores has "
            "asset_id, content_id and a column s1, s2 … for each rater."
        )
    made = []
    for column, kind in SCHEMA.items():
        if column in table.columns:
            made.append(_typed(table[column], kind, name))
        else:
            made.append(pl.Series(column, [_DEFAULTS[column]] * table.height, dtype=kind))
    found = pl.DataFrame(made).with_columns(
        pl.col("value").fill_nan(None),
        pl.col("kind").fill_null("item"), pl.col("order").fill_null(0), pl.col("step").fill_null(1),
        *(pl.col(c).fill_null("") for c in ("study", "at", "design", "image", "scene", "damage",
                                            "method", "rater", "chain")),
    )  # fmt: skip
    for column, known in (("kind", KINDS), ("question", QUESTIONS)):
        strange = found.filter(~pl.col(column).is_in(known).fill_null(False))
        if strange.height:
            values = shown(str(value) for value in strange[column])
            raise InputError(
                f"{name}: {counted(strange.height, 'row', 'has', 'have')} the {column} {values}; "
                f"known are {', '.join(known)}."
            )
    earnest = found["kind"].is_in(["item", "repeat"])  # a check may show no method's picture
    for column in ("rater", "chain"):
        hollow = (found[column] == "") & earnest
        if hollow.any():
            at = int(hollow.arg_max() or 0) + 1
            raise InputError(f"{name}, row {at}: the {column} is empty.")
    if found["value"].is_infinite().any():
        raise InputError(f"{name} has an infinite value; answers are finite numbers or missing.")
    alone = found.filter(
        (pl.col("question") == PREFERENCE)
        & pl.col("kind").is_in(["item", "repeat"])
        & (pl.col("other_chain").is_null() | ~pl.col("value").is_in([0.0, 0.5, 1.0]))
    )
    if alone.height:
        raise InputError(
            f"{name}: {counted(alone.height, 'preference')} without other_chain, or with a value "
            "that is not 1 (preferred), 0 or 0.5 (no difference)."
        )
    neither = found.filter(
        pl.col("question").is_in(LABELS)
        & pl.col("kind").is_in(["item", "repeat"])
        & ~pl.col("value").is_in([0.0, 1.0])
    )
    if neither.height:
        raise InputError(
            f"{name}: {counted(neither.height, 'label')} with a value that is not 1 (yes) or 0 "
            f"(no), such as {neither['value'][0]:g}."
        )
    return found


def _typed(column: pl.Series, kind: pl.DataType, name: str) -> pl.Series:
    if kind == pl.Boolean() and column.dtype == pl.String():
        words = {"true": True, "1": True, "false": False, "0": False}
        return column.str.to_lowercase().replace_strict(words, default=None, return_dtype=kind)
    if kind == pl.Float64() and column.dtype == pl.String():
        column = pl.select(
            pl.when(column.is_in(_MISSING)).then(None).otherwise(column).alias(column.name)
        ).to_series()
    try:
        return column.cast(kind, strict=True)
    except pl.exceptions.PolarsError:
        bad = column.filter(column.cast(kind, strict=False).is_null() & column.is_not_null())
        raise InputError(
            f"{name}: column {column.name} has {bad[0]!r}, and numbers are expected."
        ) from None


def _from_wide(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    raters = [c for c in table.columns if c[:1] in "sS" and c[1:].isdigit()]
    if not raters:
        raise InputError(f"{path} has asset_id, but no raters: columns s1, s2 … are expected.")
    twice = table["asset_id"].filter(table["asset_id"].is_duplicated())
    if len(twice):
        raise InputError(f"{path} has several rows for asset_id {shown(map(str, twice))}.")
    content = "content_id" if "content_id" in table.columns else "asset_id"
    method = pl.col("method") if "method" in table.columns else pl.lit("")
    scores = [_typed(table[rater], pl.Float64(), str(path)) for rater in raters]
    long = (
        table.select(
            chain=pl.col("asset_id").cast(pl.String()),
            image=pl.col(content).cast(pl.String()),
            method=method.cast(pl.String()),
        )
        .with_columns(scores)
        .unpivot(raters, index=["chain", "image", "method"], variable_name="rater")
        .with_columns(
            pl.col("value").fill_nan(None),
            study=pl.lit(path.stem),
            design=pl.lit("single"),
            question=pl.lit(QUALITY),
        )
        .filter(pl.col("value").is_not_null())
    )
    return _checked(long, str(path))


def raters_of(answers: pl.DataFrame) -> Sequence[str]:
    """Who answered, in a natural order: s2 before s10."""
    names = answers["rater"].unique().to_list()
    return sorted(names, key=natural)


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sorts names with numbers in them as people do."""
    import re

    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(p)) if p.isdecimal() else (1, p) for p in parts)
