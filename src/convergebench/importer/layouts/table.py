"""Layout `table`: scores without pictures, as CSV, TSV, Parquet or JSON lines.

One row per step or round, with a column per metric (wide) or a metric and a value column (long).
Every row's step becomes a `reported` one: it was made, its picture is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from convergebench.chain import Call
from convergebench.cycle import CYCLE_EDITS, CycleKind
from convergebench.errors import ImportProblem
from convergebench.importer import cells
from convergebench.importer.columns import (
    Columns,
    find_columns,
    looks_like_scores,
    our_metric,
    spec_of,
    strange_metrics,
)
from convergebench.importer.found import (
    Finds,
    FoundCycle,
    FoundFrame,
    FoundScore,
    FoundSource,
    Layout,
    Look,
    Track,
    Wishes,
)
from convergebench.importer.repeated import CHAIN, ROW, settle
from convergebench.importer.tablefile import load, peek, separator
from convergebench.wording import counted

if TYPE_CHECKING:
    import polars as pl

ENDINGS: Final = (".csv", ".tsv", ".parquet", ".jsonl")
SHOWN: Final = 5
_UNSAID: Final[Mapping[str, CycleKind]] = {"round": "round-trip", "step": "replicate"}


def _table_of(look: Look) -> str:
    """The one table there is, or an empty text."""
    found = [name for name in look.files if name.lower().endswith(ENDINGS)]
    return found[0] if len(found) == 1 and not look.images else ""


def recognise(look: Look) -> str:
    """Why this is a table of scores."""
    name = _table_of(look)
    if not name:
        return ""
    try:
        header = peek(look.place(name))
    except ImportProblem:
        return ""
    return f"{name} has columns of editors or sources and of metrics" * looks_like_scores(header)


def read(look: Look, wishes: Wishes) -> Finds:
    """The table as steps and scores."""
    import polars as pl

    name = _table_of(look)
    if not name:
        raise ImportProblem(
            f"{look.root} is not one table of scores. Give a single {', '.join(ENDINGS)} file."
        )
    finds = Finds(unread=[other for other in look.files if other != name])
    table = load(look.place(name))
    columns = find_columns(table.columns, wishes)
    finds.notes += _reading(columns, wishes)
    table = _with_points(table, columns, separator(look.place(name)), finds.notes)
    rows, kinds = _keyed(table, columns, wishes, finds.notes)
    if columns.long:
        rows, metrics = cells.clean_long(rows, columns, wishes.keep_constant, finds.notes)
        within, values = ["metric", "against"], {"value": "value"}
    else:
        rows = cells.clean(rows, columns, wishes.keep_constant, finds.notes)
        metrics, within = list(columns.metrics), []
        values = {f"value:{metric}": metric for metric in metrics}
    finds.notes += strange_metrics(metrics)
    periods = {cycle: _period(kind, wishes) for cycle, kind in kinds.items()}
    steps = pl.col("place") * pl.col("cycle").replace_strict(periods, return_dtype=pl.Int64)
    rows = rows.with_columns(step=steps if columns.place == "round" else pl.col("place"))
    _source_is_home(rows, metrics, columns)
    split = wishes.conflicts == "repeat" and "repeat" not in columns.fields
    settled = settle(rows, within, values, split=split, place=columns.place)
    if wishes.conflicts == "repeat" and not split and settled.conflicts:
        keys = counted(len(settled.conflicts), "key", "has", "have")
        raise ImportProblem(
            f"{keys} values that differ within one repeat of column "
            f"{columns.fields['repeat']!r}, the first: {settled.conflicts[0].key}. Leave that "
            f"column out with --drop {columns.fields['repeat']} to tell repeats by the rows' order."
        )
    finds.keys, finds.collapsed = settled.keys, settled.collapsed
    finds.conflicts = settled.conflicts
    finds.notes += settled.notes
    kept = settled.rows if split else rows
    tracks = _tracks(kept, finds, periods, columns)
    _scores(settled.rows, tracks, columns, finds)
    finds.cycles = _cycles(rows, kinds, wishes, finds.notes)
    if "source_category" in columns.fields:
        told = cells.categories(rows, "source", "source_category", finds.notes)
        finds.sources = {source: FoundSource(category=text) for source, text in told.items()}
    finds.floors = _floors(wishes)
    return finds


def _period(kind: CycleKind, wishes: Wishes) -> int:
    return CYCLE_EDITS.get(kind, max(1, len(wishes.prompts)))


def _reading(columns: Columns, wishes: Wishes) -> list[str]:
    """What each column was taken for, and which were not."""
    told = [f"{name} from {column!r}" for name, column in columns.fields.items()]
    if not columns.long:
        told += [f"{metric} from {column!r}" for metric, column in columns.metrics.items()]
    notes = [f"Read as: {', '.join(told)}."]
    if columns.unused:
        notes.append(f"Columns not read: {', '.join(repr(name) for name in columns.unused)}.")
    notes += [
        f"--{name} {getattr(wishes, name)} is only for rows without one: column "
        f"{columns.fields[name]!r} names the {name}s."
        for name in ("editor", "source", "cycle")
        if name in columns.fields and getattr(wishes, name) is not None
    ]
    if columns.metrics.get("clip", "clip").lower() != "clip":
        notes.append(
            f"Column {columns.metrics['clip']!r} is taken for clip; which network made it, the "
            "table does not say."
        )
    return notes


def _with_points(
    table: pl.DataFrame, columns: Columns, mark: str, notes: list[str]
) -> pl.DataFrame:
    """The table with decimal points in the columns of scores."""
    scores = [columns.fields["value"]] if columns.long else dict.fromkeys(columns.metrics.values())
    return table.with_columns(
        cells.decimal_points(table[column], column, mark, notes) for column in scores
    )


def _keyed(
    table: pl.DataFrame, columns: Columns, wishes: Wishes, notes: list[str]
) -> tuple[pl.DataFrame, dict[str, CycleKind]]:
    """The table with our columns: editor, source, cycle, repeat, place, row; cycles' kinds."""
    import polars as pl

    fields = columns.fields
    unsaid: CycleKind = wishes.kind or _UNSAID[columns.place]
    defaults = {"editor": wishes.editor, "source": wishes.source, "cycle": wishes.cycle or unsaid}
    made: list[pl.Series] = [pl.int_range(1, table.height + 1, eager=True).alias(ROW)]
    for name, default in defaults.items():
        names = cells.texts(table, fields[name]) if name in fields else None
        if names is None:
            names = pl.Series([default], dtype=pl.String).new_from_index(0, table.height)
        elif getattr(wishes, name) is not None:
            names = names.fill_null(default)
        made.append(names.alias(name))
    if "cycle" not in fields and wishes.cycle is None:
        notes.append(f"No column names the cycles: all rows are of one, called {unsaid!r}.")
    made.append(cells.places(table, fields[columns.place], wishes.first, notes).alias("place"))
    repeat = cells.repeats(table, fields["repeat"], notes) if "repeat" in fields else None
    made.append((pl.zeros(table.height, pl.Int64, eager=True) if repeat is None else repeat)
                .alias("repeat"))  # fmt: skip
    also = [f for f in ("prompt", "kind", "source_category", "cycle_category") if f in fields]
    made += [cells.texts(table, fields[name]).alias(f"told:{name}") for name in also]
    cells_of = {f"cell:{c}": table[c] for c in columns.metrics.values() if not columns.long}
    if columns.long:
        wanted = [name for name in ("metric", "value", "against") if name in fields]
        cells_of = {f"cell:{name}": table[fields[name]] for name in wanted}
    made += [given.alias(name) for name, given in cells_of.items()]
    rows = pl.DataFrame(made)
    whole = rows.drop_nulls([*CHAIN, "place", "repeat"])
    if whole.height < rows.height:
        first = rows.join(whole.select(ROW), on=ROW, how="anti")[ROW][0]
        lacking = counted(rows.height - whole.height, "row", "lacks", "lack")
        notes.append(
            f"{lacking} an editor, source, cycle, repeat or {columns.place}: left out; the first "
            f"is row {first}."
        )
    if not whole.height:
        raise ImportProblem("the table has no row with an editor, a source and a place in a chain")
    called = _source_names(list(whole["source"].unique(maintain_order=True)))
    whole = whole.with_columns(pl.col("source").replace_strict(called, return_dtype=pl.String))
    if "kind" in fields and wishes.kind is None:
        kinds = cells.kinds_of(whole, unsaid)
    else:
        kinds = {cycle: unsaid for cycle in whole["cycle"].unique(maintain_order=True)}
        if wishes.kind is None:
            notes.append(
                f"A column of {columns.place}s means cycles of kind {unsaid!r}; say --kind where "
                "they are something else."
            )
    return whole, kinds


def _source_names(given: list[str]) -> dict[str, str]:
    """File names without folder and ending, as far as they stay different."""
    for folder in (False, True):
        names = {name: cells.bare(name, folder=folder) for name in given}
        if len(set(names.values())) == len(given):
            return names
    return {name: name for name in given}


def _source_is_home(rows: pl.DataFrame, metrics: list[str], columns: Columns) -> None:
    """Raise where step 0 has scores that no source can have against itself."""
    import polars as pl

    start = rows.filter(pl.col("step") == 0)
    for metric in metrics if start.height else ():
        spec = spec_of(metric)
        if spec is None or spec.identical is None:
            continue
        if columns.long:
            told = start.filter(pl.col("metric") == metric, pl.col("against") == "home")["value"]
        else:
            told = start[f"value:{metric}"]
        best = spec.identical
        # Some cap the PSNR of identical pictures at 100 dB or so instead of infinity.
        far = told < 60 if best == float("inf") else (told - best).abs() > 1e-3
        if far.any():
            raise ImportProblem(
                f"{columns.place} 0 is the source itself, but the table gives it a {metric} of "
                f"{told.filter(far.fill_null(False))[0]:g}. If 0 is the first edit, say --first -1."
            )


def _tracks(
    rows: pl.DataFrame, finds: Finds, periods: Mapping[str, int], columns: Columns
) -> pl.DataFrame:
    """One line per chain; its steps go to `finds`, and what is unequal about them to the notes."""
    import polars as pl

    asks = "told:prompt" in rows.columns and columns.place == "step"
    if "prompt" in columns.fields and not asks:
        finds.notes.append(
            f"Column {columns.fields['prompt']!r} is not read: a round has several edits, and the "
            "table does not say whose prompt it is."
        )
    prompt = pl.col("told:prompt") if asks else pl.lit(None, pl.String)
    grouped = (
        rows.with_columns(prompt=prompt)
        .unique([*CHAIN, "repeat", "step"], keep="first", maintain_order=True)
        .group_by([*CHAIN, "repeat"], maintain_order=True)
        .agg("step", "prompt")
        .with_row_index("track")
    )
    tracks: list[Track] = []
    gaps, call = 0, Call()  # one for all: a table may have millions of rows
    for _, editor, source, cycle, repeat, steps, prompts in grouped.iter_rows():
        track = Track(source, cycle, editor, repeat)
        tracks.append(track)
        period, asked = periods[cycle], dict(zip(steps, prompts, strict=True))
        if 0 in asked:
            finds.frames.append(FoundFrame(track, 0, None, None, "reported", "", call))
        for step in range(1, max(steps) + 1):
            ahead = range(step, -(-step // period) * period + 1)
            if any(later in asked for later in ahead):
                frame = FoundFrame(track, step, None, asked.get(step), "reported", "", call)
            else:
                gaps += 1
                detail = "the table has no row for it"
                frame = FoundFrame(track, step, None, None, "missing", detail, call)
            finds.frames.append(frame)
    finds.notes += _coverage(grouped, columns.place, periods)
    if gaps:
        told = counted(gaps, "step", "has", "have")
        finds.notes.append(f"{told} no row although later ones have: a gap.")
    return grouped.select("track", *CHAIN, "repeat").with_columns(
        object=pl.Series(tracks, dtype=pl.Object)
    )


def _coverage(grouped: pl.DataFrame, place: str, periods: Mapping[str, int]) -> list[str]:
    """Chains per editor where they differ, and which end before the others."""
    import polars as pl

    period = pl.col("cycle").replace_strict(periods, return_dtype=pl.Int64)
    ends = grouped.select(
        *CHAIN, "repeat",
        last=pl.col("step").list.max() // (period if place == "round" else 1),
    )  # fmt: skip
    chains = ends.unique(CHAIN, maintain_order=True)
    counts = chains.group_by("editor").len().sort("editor")
    notes = []
    if counts["len"].n_unique() > 1:
        told = ", ".join(f"{editor} {count}" for editor, count in counts.iter_rows())
        notes.append(f"Unequal coverage, in chains per editor: {told}.")
    short = ends.with_columns(most=pl.col("last").max().over("cycle"))
    short = short.filter(pl.col("last") < pl.col("most"))
    if short.height:
        shown = [
            f"{Track(source, cycle, editor, repeat)} at {place} {last} of {most}"
            for editor, source, cycle, repeat, last, most in short.head(SHOWN).iter_rows()
        ]
        more = f" and {short.height - SHOWN} more" if short.height > SHOWN else ""
        notes.append(f"Chains that stop early: {'; '.join(shown)}{more}.")
    return notes


def _scores(rows: pl.DataFrame, tracks: pl.DataFrame, columns: Columns, finds: Finds) -> None:
    """Every cell of a metric as a published score."""
    objects = tracks["object"].to_list()
    keyed = rows.join(tracks.drop("object"), on=[*CHAIN, "repeat"], maintain_order="left")
    if columns.long:
        wanted = keyed.select("track", "step", "metric", "value", "note", "against")
        finds.scores = [FoundScore(objects[track], *rest) for track, *rest in wanted.iter_rows()]
        return
    for metric in columns.metrics:
        wanted = keyed.select("track", "step", f"value:{metric}", f"note:{metric}")
        against = cells.against_of(metric)
        finds.scores += [
            FoundScore(objects[track], step, metric, value, note, against)
            for track, step, value, note in wanted.iter_rows()
        ]


def _cycles(
    rows: pl.DataFrame, kinds: Mapping[str, CycleKind], wishes: Wishes, notes: list[str]
) -> dict[str, FoundCycle]:
    import polars as pl

    told: dict[str, str] = {}
    if "told:cycle_category" in rows.columns:
        told = cells.categories(rows, "cycle", "cycle_category", notes)
    one: dict[str, str] = {}
    if "told:prompt" in rows.columns and not wishes.prompts:
        asked = rows.group_by("cycle").agg(pl.col("told:prompt").drop_nulls().unique())
        one = {cycle: prompts[0] for cycle, prompts in asked.iter_rows() if len(prompts) == 1}
    return {
        cycle: FoundCycle(
            kind,
            wishes.prompts
            or ((one[cycle],) if cycle in one and _period(kind, wishes) == 1 else ()),
            category=told.get(cycle, ""),
        )
        for cycle, kind in kinds.items()
    }


def _floors(wishes: Wishes) -> dict[str, float]:
    for metric, value in wishes.floors.items():
        if not abs(value) < float("inf"):
            raise ImportProblem(f"the floor of {metric} must be a finite number, got {value}")
    return {our_metric(metric) or metric: float(v) for metric, v in wishes.floors.items()}


LAYOUT = Layout(
    name="table",
    summary="scores without pictures: a .csv, .tsv, .parquet or .jsonl, any column names",
    recognise=recognise,
    read=read,
)
