"""Equal footing of several runs: half-lives in one column must be cut at the same length."""

from __future__ import annotations

import polars as pl

from convergebench.gathering import Gathered

LIVES = "Half-lives are Kaplan-Meier medians over"


def life_table(gathered: Gathered, table: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The chains that half-lives and restricted means are over, and a sentence on them.

    A half-life that is not reached is printed as `> N`. Of several runs one may have gone through
    cycles that the others have not, and further; so only cycles (with their settings) that all of
    them have are looked at. Where there is no such cycle, all chains are cut at the shortest N.
    Cycles that are only partially reversible are no part of the headline, so they are looked at
    apart from the others: a cycle that all runs have must not take the headline's chains away.

    Args:
        gathered: The runs.
        table: What `chain_table` answered.

    Returns:
        Rows of `table`, with `rounds` cut where need be.
    """
    everything = f"{LIVES} all chains of an editor."
    if not gathered.several:
        return table, everything
    main, rest = table.filter("reversible"), table.filter(~pl.col("reversible"))
    alone = _runs(_having(gathered, table)) - _runs(_having(gathered, main))
    who = "all runs that have fully reversible cycles" if alone else "all runs"
    sort = "cycle" if rest.is_empty() else "fully reversible cycle"
    kept, how = _level(gathered, main, who, sort, ", and so are restricted means")
    others, how_others = _level(gathered, rest, "all runs that have such cycles", "one")
    if not how and not how_others:
        return table, everything
    words = f"{LIVES} {how}" if how else everything
    if how_others:
        words += f" By group, those of cycles that cannot be fully undone are over {how_others}"
    return pl.concat([kept, others]), words


def _having(gathered: Gathered, table: pl.DataFrame) -> dict[tuple[str, str], set[str]]:
    """By cycle and settings the runs that should come home there."""
    found: dict[tuple[str, str], set[str]] = {}
    homes = table.filter(pl.col("rounds") > 0)
    for chain, cycle, label in homes.select("chain", "cycle", "settings").iter_rows():
        found.setdefault((cycle, label), set()).update(gathered.owners.get(chain, ()))
    return found


def _runs(having: dict[tuple[str, str], set[str]]) -> set[str]:
    return {name for mine in having.values() for name in mine}


def _level(
    gathered: Gathered, table: pl.DataFrame, who: str, sort: str, too: str = ""
) -> tuple[pl.DataFrame, str]:
    """Chains of one sort on equal footing, and what they are; no word where they are all.

    Args:
        gathered: The runs.
        table: The chains of the sort.
        who: The runs that have any, in words.
        sort: What a cycle of the sort is called.
        too: What else is over them, in words.
    """
    having = _having(gathered, table)
    runs = _runs(having)
    common = sorted(variant for variant, mine in having.items() if mine == runs)
    if len(common) == len(having):
        return table, ""
    if common:
        named = ", ".join(f"{cycle} ({label})" if label else cycle for cycle, label in common)
        of = pl.DataFrame(common, schema=["cycle", "settings"], orient="row")
        return table.join(of, on=["cycle", "settings"], how="semi", maintain_order="left"), (
            f"an editor's chains through what {who} have ({named}){too}: "
            "chains that only some runs have may be longer."
        )
    least = int(table.filter(pl.col("rounds") > 0).select(pl.col("rounds").min()).item())
    first = "first homecoming" if least == 1 else f"first {least} homecomings"
    return table.with_columns(pl.col("rounds").clip(upper_bound=least)), (
        f"all chains of an editor, cut after the {first}{too}: no {sort} is "
        f"in {who}, and that is as far as every chain should go."
    )
