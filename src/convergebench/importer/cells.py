"""The cells of somebody's score table, brought to texts, whole numbers and scores.

What cannot be a score becomes null with the reason in its note, and is counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, get_args

from convergebench.cycle import CycleKind
from convergebench.errors import ImportProblem
from convergebench.importer.columns import POSSIBLE, Columns, our_metric, spec_of
from convergebench.importer.found import IMAGES
from convergebench.wording import counted

if TYPE_CHECKING:
    import polars as pl

_AGAINST: Final = {
    "home": "home", "source": "home", "original": "home", "reference": "home",
    "previous": "previous", "before": "previous",
    "none": "none", "nothing": "none",
}  # fmt: skip


# -- keys -------------------------------------------------------------------------------------


def texts(table: pl.DataFrame, column: str) -> pl.Series:
    """A column as texts; empty ones are null, and 1.0 is `1`."""
    import polars as pl

    cells = table[column]
    if cells.dtype.is_nested():
        raise ImportProblem(f"the cells of column {column!r} are lists or records, not names")
    if cells.dtype.is_float() and (cells.drop_nulls() == cells.drop_nulls().round()).all():
        cells = cells.cast(pl.Int64, strict=False)
    told = cells.cast(pl.String).str.strip_chars()
    return told.set(told == "", None)


def bare(name: str, *, folder: bool) -> str:
    """A file's name without its ending, with or without its folder."""
    stem, ending = os.path.splitext(name)
    stem = stem if ending.lower() in IMAGES else name
    return stem if folder else stem.replace("\\", "/").rpartition("/")[2] or stem


def places(table: pl.DataFrame, column: str, first: int, notes: list[str]) -> pl.Series:
    """Where in its chain each row is: a whole number, `first` being the source."""
    import polars as pl

    told = texts(table, column)
    numbers = told.cast(pl.Float64, strict=False)
    worded = told.str.extract(r"^[^\d.-]*?(\d+)$").cast(pl.Float64, strict=False)
    strange = told.filter(numbers.is_null() & told.is_not_null())
    odd = strange.filter(worded.filter(numbers.is_null() & told.is_not_null()).is_null())
    broken = numbers.filter(numbers.is_not_null() & ~(numbers == numbers.round()))
    for cell in [*odd.head(1), *broken.head(1)]:
        raise ImportProblem(
            f"column {column!r} should say where in its chain a row is, in whole numbers; it has "
            f"{cell!r}"
        )
    if strange.len():
        notes.append(f"Column {column!r} has words around its numbers, as {strange[0]!r}.")
    found = numbers.fill_null(worded).cast(pl.Int64) - first
    lowest = found.min()
    if isinstance(lowest, int) and lowest < 0:
        raise ImportProblem(
            f"column {column!r} begins with {lowest + first}, before the source, which is {first}. "
            "Say with --first which number the source has."
        )
    return found


def repeats(table: pl.DataFrame, column: str, notes: list[str]) -> pl.Series:
    """The repeat of each row: a whole number as it is, or a letter counted from A = 0.

    Never numbered by order: a table that has only trial B has only repeat 1.
    """
    import polars as pl

    told = texts(table, column)
    found = {name: _repeat(name) for name in told.drop_nulls().unique(maintain_order=True)}
    for name, meant in found.items():
        if meant is None:
            raise ImportProblem(
                f"column {column!r} is taken for the repeat, which is a whole number from 0, one "
                f"letter counted from A = 0, or words that end with a number; it has {name!r}. "
                f"Leave the column out with --drop {column!r}, or number its repeats."
            )
    # Of each way of writing an example; the words before a number are a way of their own.
    ways = {meant[0]: name for name, meant in found.items() if meant}
    if len(ways) > 1:
        one, two = list(ways.values())[:2]
        raise ImportProblem(
            f"column {column!r} writes its repeats in several ways ({one!r}, {two!r}), so that "
            "different ones could have the same number. Write them all in one way."
        )
    numbers = {name: meant[1] for name, meant in found.items() if meant}
    for way, name in ways.items():
        if way == "A":
            notes.append(
                f"Repeats in column {column!r} are letters, counted from A = 0: {name!r} is "
                f"{numbers[name]}."
            )
        elif way:
            notes.append(
                f"Column {column!r} has words before the number of the repeat: {name!r} is "
                f"{numbers[name]}."
            )
    return told.replace_strict(numbers, default=None, return_dtype=pl.Int64)


def _repeat(text: str) -> tuple[str, int] | None:
    """How a repeat is written (`A`, nothing, or the words before its number), and its number."""
    if re.fullmatch(r"[A-Za-z]", text):
        return "A", ord(text.lower()) - ord("a")
    if number := re.fullmatch(r"([0-9]{1,9})(?:\.0+)?", text):
        return "", int(number[1])
    if words := re.fullmatch(r"([^\W\d_](?:.*[^\d.,])?)([0-9]{1,9})", text):
        return words[1].lower(), int(words[2])
    return None


def kinds_of(rows: pl.DataFrame, unsaid: CycleKind) -> dict[str, CycleKind]:
    """The kind of each cycle, as its rows say. Raises ImportProblem."""
    known: dict[str, CycleKind] = {kind: kind for kind in get_args(CycleKind)}
    known |= {"roundtrip": "round-trip", "replication": "replicate", "restoration": "restore"}
    found: dict[str, CycleKind] = {}
    told = rows.select("cycle", "told:kind").unique(maintain_order=True)
    for cycle, word in told.iter_rows():
        plain = unsaid if word is None else word.lower().replace("_", "-").replace(" ", "-")
        if plain not in known:
            raise ImportProblem(
                f"cycle {cycle!r} is of kind {word!r}; the kinds are {', '.join(known)}"
            )
        if found.setdefault(cycle, known[plain]) != known[plain]:
            raise ImportProblem(
                f"cycle {cycle!r} is of kind {found[cycle]!r} in one row and of {known[plain]!r} "
                "in another"
            )
    return found


def categories(rows: pl.DataFrame, of: str, name: str, notes: list[str]) -> dict[str, str]:
    """The category of each source or cycle: the first its rows tell."""
    import polars as pl

    told = rows.select(of, f"told:{name}").drop_nulls().unique(maintain_order=True)
    several = told.group_by(of, maintain_order=True).agg(f"told:{name}")
    more = several.filter(pl.col(f"told:{name}").list.len() > 1)
    if more.height:
        first, words = more.row(0)
        notes.append(
            f"{counted(more.height, of, 'has', 'have')} several categories; the first counts: "
            f"{first!r} is {words[0]!r} and {words[1]!r}."
        )
    return {which: words[0] for which, words in several.iter_rows()}


# -- scores -----------------------------------------------------------------------------------


def decimal_points(cells: pl.Series, column: str, separator: str, notes: list[str]) -> pl.Series:
    """Cells with decimal commas as ones with points, where that is what all of them mean."""
    import polars as pl

    if cells.dtype != pl.String:
        return cells
    text = cells.str.strip_chars()
    commas = text.str.contains(r"^-?\d+,\d+$").fill_null(False)
    if not commas.any():
        return cells
    example = text.filter(commas)[0]
    if separator == ",":
        notes.append(
            f"Column {column!r} has decimal commas (as {example!r}), which are not read in a file "
            "separated by commas: write decimal points, or separate the columns with ; or tabs."
        )
        return cells
    # 1,234 beside 999.5 is rather a thousand than one and a bit: so points are no company, either.
    other = text.filter(~commas & (text != "") & ~text.str.contains(r"^[+-]?(\d+|∞|(?i:inf|nan))$"))
    if other.len():
        notes.append(
            f"Column {column!r} has decimal commas (as {example!r}) and also {other[0]!r}, so the "
            "commas are not read. Write all its numbers in one way, and leave cells without a "
            "number empty."
        )
        return cells
    notes.append(f"Column {column!r} is read with decimal commas: {example!r} is "
                 f"{example.replace(',', '.')}.")  # fmt: skip
    return text.str.replace(",", ".", literal=True)


def clean(
    rows: pl.DataFrame, columns: Columns, keep_constant: bool, notes: list[str]
) -> pl.DataFrame:
    """Wide form: `value:METRIC` and `note:METRIC` for each metric."""
    found = rows
    for metric, column in columns.metrics.items():
        told = _scores(rows[f"cell:{column}"], metric, f"column {column}", notes, rows["row"])
        found = found.with_columns(
            told[0].alias(f"value:{metric}"), told[1].alias(f"note:{metric}")
        )
    values = {metric: found[f"value:{metric}"] for metric in columns.metrics}
    for metric in () if keep_constant else never_computed(values):
        why = _never(metric, f"column {columns.metrics[metric]!r}", notes)
        found = found.with_columns(_null(f"value:{metric}"), _text(why).alias(f"note:{metric}"))
    return found.drop([f"cell:{column}" for column in set(columns.metrics.values())])


def clean_long(
    rows: pl.DataFrame, columns: Columns, keep_constant: bool, notes: list[str]
) -> tuple[pl.DataFrame, list[str]]:
    """Long form: `metric`, `against`, `value`, `note`; and the metrics there are."""
    import polars as pl

    rows = rows.with_columns(texts(rows, "cell:metric").alias("cell:metric"))
    named = rows.drop_nulls("cell:metric")
    if named.height < rows.height:
        left = counted(rows.height - named.height, "row", "names", "name")
        notes.append(f"{left} no metric: left out.")
    theirs = {told: ours for ours, told in columns.metrics.items()}
    names: dict[str, str] = {}
    for told in named["cell:metric"].unique(maintain_order=True):
        ours = theirs.get(told) or our_metric(told) or told
        if ours in names.values():
            other = next(name for name, same in names.items() if same == ours)
            raise ImportProblem(
                f"metrics {other!r} and {told!r} could both be {ours}. Say which with "
                f"--metric {ours}={other} --metric NAME={told}."
            )
        names[told] = ours
    absent = [told for told in theirs if told not in names]
    if absent:
        raise ImportProblem(
            f"metric {theirs[absent[0]]} is to be read from rows of {absent[0]!r}, of which there "
            f"are none. The metrics are: {', '.join(repr(name) for name in names)}."
        )
    parts = []
    for told, ours in names.items():
        part = named.filter(pl.col("cell:metric") == told)
        values, remarks = _scores(part["cell:value"], ours, f"metric {told}", notes, part["row"])
        against = _against(part, ours)
        added = (values.alias("value"), remarks.alias("note"), against.alias("against"))
        parts.append(part.with_columns(*added, _text(ours).alias("metric")))
    found = pl.concat(parts).sort("row")
    series = {ours: found.filter(pl.col("metric") == ours)["value"] for ours in names.values()}
    for ours in () if keep_constant else never_computed(series):
        why = _never(ours, f"metric {ours}", notes)
        mine = pl.col("metric") == ours
        found = found.with_columns(
            value=pl.when(~mine).then("value"),
            note=pl.when(mine).then(_text(why)).otherwise("note"),
        )
    return found.drop([c for c in found.columns if c.startswith("cell:")]), list(names.values())


def never_computed(values: Mapping[str, pl.Series]) -> list[str]:
    """Metrics with the value of identical pictures in every row, while others vary."""
    known = {metric: cells.drop_nulls() for metric, cells in values.items()}
    varying = {metric for metric, cells in known.items() if cells.n_unique() > 1}
    found = []
    for metric, cells in known.items():
        spec = spec_of(metric)
        same = cells.len() > 1 and cells.n_unique() == 1 and spec is not None
        if same and varying and spec is not None and cells[0] == spec.identical:
            found.append(metric)
    return found


def _never(metric: str, where: str, notes: list[str]) -> str:
    spec = spec_of(metric)
    value = spec.identical if spec else None
    notes.append(
        f"{where[0].upper()}{where[1:]} is {value:g} in every row while others vary: {metric} was "
        "never computed. Its values are null; --keep-constant keeps them."
    )
    return f"{where}: {value:g} in every row, never computed there"


def _scores(
    cells: pl.Series, metric: str, where: str, notes: list[str], row: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Cells as scores, with the reason in the note where there is none."""
    import polars as pl

    if cells.dtype.is_nested():
        raise ImportProblem(f"{where}: its cells are lists or records, not scores")
    spec = spec_of(metric)
    endless = spec is not None and spec.identical == float("inf")
    low, high = POSSIBLE.get(metric, (float("-inf"), float("inf")))
    text = cells.cast(pl.String).str.strip_chars().str.replace("^[+]?∞$", "inf")
    number = text.cast(pl.Float64, strict=False) if cells.dtype == pl.String else cells
    told = pl.DataFrame({"text": text, "number": number.cast(pl.Float64), "row": row})
    empty = pl.col("text").is_null() | (pl.col("text") == "")
    infinite = pl.col("number").is_infinite()
    if endless:
        infinite &= pl.col("number") < 0
    reasons = {
        "empty": empty,
        "not a number": ~empty & pl.col("number").is_null(),
        "NaN": pl.col("number").is_nan(),
        "infinite": infinite,
    }
    reason = pl.coalesce(*(pl.when(test).then(pl.lit(why)) for why, test in reasons.items()))
    told = told.with_columns(reason=reason)
    valid, number_of = pl.col("reason").is_null(), pl.col("number")
    told = told.with_columns(
        value=pl.when(valid).then("number"),
        strange=(valid & ((number_of < low) | (number_of > high))).fill_null(False),
    )
    _report(told, where, metric, (low, high), notes)
    remark = (
        pl.when(~valid).then(pl.concat_str(pl.lit(f"{where}: "), "reason"))
        .when("strange").then(pl.lit(f"{where}; impossible for {metric}"))
        .otherwise(pl.lit(where))
    )  # fmt: skip
    return told["value"], told.select(note=remark)["note"]


def _report(
    told: pl.DataFrame, where: str, metric: str, bounds: tuple[float, float], notes: list[str]
) -> None:
    """One note on all cells that are no scores, one on those that cannot be right."""
    import polars as pl

    bad = told.filter(pl.col("reason").is_not_null())
    if bad.height:
        counts = bad.group_by("reason", maintain_order=True).len()
        said = ", ".join(f"{count:,} {why}" for why, count in counts.iter_rows())
        example = next((t for t in bad.filter(pl.col("reason") != "empty")["text"]), None)
        shown = f" (as {example[:40]!r})" if example else ""
        notes.append(f"Cells of {where} without a score: {said}{shown}; kept as null.")
    strange = told.filter("strange")
    if strange.height:
        low, high = bounds
        verb = "lies" if strange.height == 1 else "lie"
        notes.append(
            f"{counted(strange.height, 'value')} of {where} {verb} outside {low:g} to {high:g}, "
            f"which is all that {metric} can be: kept (the first: {strange['value'][0]:g}, row "
            f"{strange['row'][0]})."
        )


def against_of(metric: str) -> Literal["home", "none"]:
    """What a metric compares with, where the table does not say."""
    spec = spec_of(metric)
    return "none" if spec and spec.kind == "no-reference" else "home"


def _against(rows: pl.DataFrame, metric: str) -> pl.Series:
    unsaid = against_of(metric)
    if "cell:against" not in rows.columns:
        return rows.select(a=_text(unsaid)).to_series().new_from_index(0, rows.height)
    told = texts(rows, "cell:against").str.to_lowercase()
    for word in told.drop_nulls().unique():
        if word not in _AGAINST:
            raise ImportProblem(
                f"frames are compared with home, previous or none; the table has {word!r}"
            )
    return told.replace_strict(_AGAINST, default=None).fill_null(unsaid)


def _text(value: str) -> pl.Expr:
    import polars as pl

    return pl.lit(value, pl.String)


def _null(name: str) -> pl.Expr:
    import polars as pl

    return pl.lit(None, pl.Float64).alias(name)
