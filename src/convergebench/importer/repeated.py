"""Keys that come several times in a table: equal values collapse, others are conflicts or repeats.

A *chain* here is what all rows of one editor, source and cycle have in common (in long form also
the metric); a *key* is a chain and a step. Rows keep the order of the file in column `row`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from convergebench.importer.found import Conflict
from convergebench.wording import counted

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
    joined = rows.join(keys, on=key, how="left", maintain_order="left")
    settled = Repeats(rows, keys.height)
    settled.collapsed = keys.filter(pl.col("times") > 1, pl.col("variants") == 1).height
    differing = joined.filter(pl.col("variants") > 1)
    settled.conflicts = _conflicts(differing, key, values, within, place)
    if settled.collapsed:
        alike = (pl.col("times") > 1) & (pl.col("variants") == 1)
        settled.notes.append(
            f"{counted(settled.collapsed, 'key', 'comes', 'come')} several times with equal "
            f"values: collapsed ({_by_editor(keys, alike)})."
        )
    if settled.conflicts:
        settled.notes.append(
            f"{counted(len(settled.conflicts), 'key', 'comes', 'come')} several times with values "
            f"that differ ({_by_editor(keys, pl.col('variants') > 1)})."
        )
    if split and settled.conflicts:
        # Chains without conflicts are left alone, whatever the rest of the table is like.
        apart = differing.select(CHAIN).unique()
        mixed = rows.join(apart, on=CHAIN, how="semi", maintain_order="left")
        rest = rows.join(apart, on=CHAIN, how="anti", maintain_order="left")
        rest = rest.unique(key, keep="first", maintain_order=True)
        parts = [rest, _as_repeats(mixed, within, values, settled.notes).select(rest.columns)]
        settled.rows = pl.concat(parts).sort(ROW)
        settled.notes += _growth(settled.rows)
    else:
        settled.rows = joined.filter(pl.col("variants") == 1).unique(
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

    The first row whose step does not increase decides. Where that step was there before and is not
    the last one, chains stand one after the other: a new repeat begins wherever the step does not
    increase. Else duplicates stand side by side, or the rows are in no order: the j-th row of a
    step belongs to the j-th repeat. So rows that are added at the end of a file move no others.
    """
    import polars as pl

    chain = [*CHAIN, *within]
    before = pl.col("step").shift(1).over(chain)
    ordered = rows.sort(ROW).with_columns(
        nth=pl.int_range(pl.len()).over([*chain, "step"]),
        run=(pl.col("step") <= before).fill_null(False).cast(pl.Int64).cum_sum().over(chain),
        falls=(pl.col("step") < before).fill_null(False),
    )
    decides = (pl.col("run") == 1) & (pl.col("run").shift(1).over(chain) == 0)
    in_turn = (decides & pl.col("falls") & (pl.col("nth") > 0)).fill_null(False).any().over(chain)
    ordered = ordered.with_columns(
        in_turn=in_turn,
        falls=pl.col("falls").any().over(chain),
        times=pl.col("nth").max().over(chain),
    )
    ordered = ordered.with_columns(repeat=pl.when("in_turn").then("run").otherwise("nth"))
    vague = (
        ordered.filter(pl.col("falls"), pl.col("times") > 0, ~pl.col("in_turn"))
        .unique(CHAIN)
        .height
    )
    if vague:
        notes.append(
            f"Chains whose rows are in no order that tells repeats apart: {vague}. The first row "
            "of each of their steps makes repeat 0, the second repeat 1, and so on."
        )
    return _renumbered(ordered, [*within, "step", *values])


def _growth(kept: pl.DataFrame) -> list[str]:
    """How many chains there are now instead of how many, by editor."""
    import polars as pl

    repeats = (
        kept.group_by(CHAIN)
        .agg(pl.col("repeat").n_unique())
        .group_by("editor")
        .agg(chains=pl.len(), repeats=pl.col("repeat").sum())
        .filter(pl.col("repeats") > pl.col("chains"))
        .sort("editor")
    )
    told = [f"{e}: {counted(c, 'chain')} became {r:,}" for e, c, r in repeats.iter_rows()]
    return [f"Values that differ are kept as repeats ({'; '.join(told)})."] if told else []


def _renumbered(rows: pl.DataFrame, content: Sequence[str]) -> pl.DataFrame:
    """Without the repeats that say nothing new; numbered from 0."""
    import polars as pl

    ids = rows.select(content).unique(maintain_order=True).with_row_index("content")
    rows = rows.join(ids, on=list(content), how="left", nulls_equal=True, maintain_order="left")
    grouped = rows.group_by([*CHAIN, "repeat"], maintain_order=True).agg(ROW, "content")
    chains: dict[tuple[str, ...], list[tuple[int, list[int], list[int]]]] = {}
    for *chain, repeat, places, held in grouped.sort("repeat").rows():
        chains.setdefault(tuple(chain), []).append((repeat, places, held))
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


@dataclass
class _Told:
    """A repeat that says something new: since which row, and all that it holds."""

    since: int
    repeat: int
    held: frozenset[int]


def _telling(repeats: Sequence[tuple[int, Sequence[int], Sequence[int]]]) -> list[int]:
    """The repeats (number, rows, contents) that say something new, in the order they began to.

    One all of whose rows an earlier one has is left out. One that has all rows of an earlier one,
    and more, takes its place: so a file that grew at its end keeps its numbers.
    """
    found: list[_Told] = []
    for repeat, places, contents in repeats:
        like, since = found, None
        for place, content in zip(places, contents, strict=True):
            like = [other for other in like if content in other.held]
            if not like:
                since = place
                break
        if since is None:
            continue
        held = frozenset(contents)
        shorter = next((other for other in found if other.held < held), None)
        if shorter is None:
            found.append(_Told(since, repeat, held))
        else:
            shorter.repeat, shorter.held = repeat, held
    return [told.repeat for told in sorted(found, key=lambda told: told.since)]


def _by_editor(keys: pl.DataFrame, which: pl.Expr) -> str:
    counts = keys.filter(which).group_by("editor").len().sort("editor")
    return ", ".join(f"{editor} {count:,}" for editor, count in counts.iter_rows())
