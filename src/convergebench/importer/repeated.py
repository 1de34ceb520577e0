"""Keys that come several times in a table: equal values collapse, others are conflicts or repeats.

A *chain* here is what all rows of one editor, source and cycle have in common (in long form also
the metric); a *key* is a chain and a step. Rows keep the order of the file in column `row`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from convergebench.importer.found import Conflict

if TYPE_CHECKING:
    import polars as pl

CHAIN: Final = ("editor", "source", "cycle")
ROW: Final = "row"


@dataclass
class Repeats:
    """Rows, each key once, and what became of those that came several times.

    Attributes:
        rows: Each key once; keys with values that differ are absent unless kept as repeats.
        keys: How many keys there are.
        collapsed: How many came several times with equal values.
        conflicts: Those that came with values that differ.
        notes: What the user must know.
    """

    rows: pl.DataFrame
    keys: int = 0
    collapsed: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def settle(
    rows: pl.DataFrame,
    within: Sequence[str],
    values: Mapping[str, str],
    *,
    split: bool,
    place: str = "step",
) -> Repeats:
    """Bring every key to one row.

    Args:
        rows: With columns editor, source, cycle, repeat, step, row and the values.
        within: Further columns of the key: the metric, in long form.
        values: Column of each value, and what to call it in messages.
        split: Whether keys with values that differ become repeats.
        place: What a step is called in messages: `step` or `round`, counted in column `place`.
    """
    import polars as pl

    key = [*CHAIN, "repeat", *within, "step"]
    distinct = rows.group_by([*key, *values]).len("times")
    keys = distinct.group_by(key).agg(pl.col("times").sum(), variants=pl.len())
    counted = rows.join(keys, on=key, how="left", maintain_order="left")
    settled = Repeats(rows, keys.height)
    settled.collapsed = keys.filter(pl.col("times") > 1, pl.col("variants") == 1).height
    differing = counted.filter(pl.col("variants") > 1)
    settled.conflicts = _conflicts(differing, key, values, within, place)
    if settled.collapsed:
        settled.notes.append(
            f"{_keys(settled.collapsed)} several times with equal values: collapsed "
            f"({_by_editor(keys, (pl.col('times') > 1) & (pl.col('variants') == 1))})."
        )
    if settled.conflicts:
        settled.notes.append(
            f"{_keys(len(settled.conflicts))} several times with values that differ "
            f"({_by_editor(keys, pl.col('variants') > 1)})."
        )
    if split and settled.conflicts:
        settled.rows = _as_repeats(rows, within, values, settled.notes)
    else:
        settled.rows = counted.filter(pl.col("variants") == 1).unique(
            key, keep="first", maintain_order=True
        )
    return settled


def _conflicts(
    rows: pl.DataFrame,
    key: Sequence[str],
    values: Mapping[str, str],
    within: Sequence[str],
    place: str,
) -> list[Conflict]:
    """Every key once, with its distinct values: those that differ, and the first row of each."""
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], int]] = {}
    names: dict[tuple[Any, ...], str] = {}
    wanted = rows.select(*key, "place", ROW, *values)
    for line in wanted.iter_rows():
        which, (at, number, *cells) = line[: len(key)], line[len(key) :]
        found.setdefault(which, {}).setdefault(tuple(cells), number)
        if which not in names:
            editor, source, cycle, repeat = which[:4]
            words = [editor, source, cycle, f"repeat {repeat}" if repeat else "", *which[4:-1]]
            names[which] = " · ".join([*(str(w) for w in words if w), f"{place} {at}"])
    return [
        Conflict(names[which], tuple(_in_words(variants, list(values.values()))))
        for which, variants in found.items()
    ]


def _in_words(variants: Mapping[tuple[Any, ...], int], names: Sequence[str]) -> list[str]:
    columns = list(zip(*variants, strict=True))
    told = [index for index, cells in enumerate(columns) if len(set(cells)) > 1]
    return [
        ", ".join(f"{names[i]} {'none' if cells[i] is None else repr(cells[i])}" for i in told)
        + f" (row {number})"
        for cells, number in variants.items()
    ]


def _as_repeats(
    rows: pl.DataFrame, within: Sequence[str], values: Mapping[str, str], notes: list[str]
) -> pl.DataFrame:
    """Tell the repeats of a chain apart by the order of the file; drop those that say nothing new.

    A new repeat begins where the step does not increase. Where steps never decrease, duplicates
    stand side by side, and the j-th of a step belongs to the j-th repeat; so, too, where the rows
    are in no order that would tell.
    """
    import polars as pl

    chain = [*CHAIN, *within]
    before = pl.col("step").shift(1).over(chain)
    ordered = rows.sort(ROW).with_columns(
        nth=pl.int_range(pl.len()).over([*chain, "step"]),
        run=(pl.col("step") <= before).fill_null(False).cast(pl.Int64).cum_sum().over(chain),
        falls=(pl.col("step") < before).fill_null(False).any().over(chain),
    )
    ordered = ordered.with_columns(
        times=pl.col("nth").max().over(chain), runs=pl.col("run").max().over(chain)
    )
    told = pl.col("falls") & (pl.col("runs") == pl.col("times"))
    ordered = ordered.with_columns(repeat=pl.when(told).then("run").otherwise("nth"))
    vague = ordered.filter(pl.col("falls"), pl.col("times") > 0, ~told).unique(CHAIN).height
    if vague:
        notes.append(
            f"Chains whose rows are in no order that tells repeats apart: {vague}. The first row "
            "of each of their steps makes repeat 0, the second repeat 1, and so on."
        )
    kept = _renumbered(ordered, [*within, "step", *values])
    repeats = (
        kept.group_by(CHAIN)
        .agg(pl.col("repeat").n_unique())
        .group_by("editor")
        .agg(chains=pl.len(), repeats=pl.col("repeat").sum())
        .filter(pl.col("repeats") > pl.col("chains"))
        .sort("editor")
    )
    told_of = [
        f"{e}: {c} {'chain' if c == 1 else 'chains'} became {r}" for e, c, r in repeats.iter_rows()
    ]
    if told_of:
        notes.append(f"Values that differ are kept as repeats ({'; '.join(told_of)}).")
    return kept


def _renumbered(rows: pl.DataFrame, content: Sequence[str]) -> pl.DataFrame:
    """Without the repeats all of whose rows another repeat of the chain has; numbered from 0."""
    import polars as pl

    ids = rows.select(content).unique(maintain_order=True).with_row_index("content")
    rows = rows.join(ids, on=list(content), how="left", nulls_equal=True, maintain_order="left")
    grouped = rows.group_by([*CHAIN, "repeat"], maintain_order=True).agg("content")
    chains: dict[tuple[str, ...], list[tuple[int, frozenset[int]]]] = {}
    for *chain, repeat, held in grouped.sort("repeat").rows():
        chains.setdefault(tuple(chain), []).append((repeat, frozenset(held)))
    kept = [
        (*chain, old, new)
        for chain, repeats in chains.items()
        for new, old in enumerate(_telling(repeats))
    ]
    schema = {**{name: pl.String for name in CHAIN}, "repeat": pl.Int64, "number": pl.Int64}
    table = pl.DataFrame(kept, schema=schema, orient="row")
    return (
        rows.join(table, on=[*CHAIN, "repeat"], how="inner", maintain_order="left")
        .with_columns(repeat="number")
        .drop("number", "content")
    )


def _telling(repeats: Sequence[tuple[int, frozenset[int]]]) -> list[int]:
    """The repeats that are not contained in another; of equal ones the first."""
    distinct: dict[frozenset[int], int] = {}
    for repeat, held in repeats:
        distinct.setdefault(held, repeat)
    by_size: Counter[int] = Counter(len(held) for held in distinct)
    if len(by_size) == 1:  # none can be contained in another
        return list(distinct.values())
    return [
        repeat
        for held, repeat in distinct.items()
        if not any(held < other for other in distinct if len(other) > len(held))
    ]


def _by_editor(keys: pl.DataFrame, which: pl.Expr) -> str:
    counts = keys.filter(which).group_by("editor").len().sort("editor")
    return ", ".join(f"{editor} {count:,}" for editor, count in counts.iter_rows())


def _keys(count: int) -> str:
    return f"{count:,} keys come" if count != 1 else "1 key comes"
