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

    Args:
        gathered: The runs.
        table: What `chain_table` answered.

    Returns:
        Rows of `table`, with `rounds` cut where need be.
    """
    everything = f"{LIVES} all chains of an editor."
    if not gathered.several:
        return table, everything
    homes = table.filter(pl.col("rounds") > 0)
    having: dict[tuple[str, str], set[str]] = {}
    for chain, *variant in homes.select("chain", "cycle", "settings").iter_rows():
        having.setdefault((variant[0], variant[1]), set()).update(gathered.owners.get(chain, ()))
    runs = {name for mine in having.values() for name in mine}
    common = sorted(variant for variant, mine in having.items() if mine == runs)
    if len(common) == len(having):
        return table, everything
    if common:
        named = ", ".join(f"{cycle} ({label})" if label else cycle for cycle, label in common)
        of = pl.DataFrame(common, schema=["cycle", "settings"], orient="row")
        return table.join(of, on=["cycle", "settings"], how="semi", maintain_order="left"), (
            f"{LIVES} an editor's chains through what all runs have ({named}), and so are "
            "restricted means: chains that only some runs have may be longer."
        )
    least = int(homes.select(pl.col("rounds").min()).item())
    first = "first homecoming" if least == 1 else f"first {least} homecomings"
    return table.with_columns(pl.col("rounds").clip(upper_bound=least)), (
        f"{LIVES} all chains of an editor, cut after the {first}, and so are restricted means: no "
        "cycle is in all runs, and that is as far as every chain should go."
    )
