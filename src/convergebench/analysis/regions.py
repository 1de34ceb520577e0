"""Inside and outside of the region that an edit may touch: what stays, and what the edit changes.

Where both edits of a round trip name a region, PSNR is scored inside and outside of it as well. Its
RMSE against home tells damage where the editor was asked to work from damage elsewhere; that of
the first step against frame 0 tells how large the forward edit is.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from convergebench.analysis.convergence import current, oriented
from convergebench.analysis.findings import Finding
from convergebench.analysis.roster import homecomings
from convergebench.analysis.rounds import mean_finding, round_means
from convergebench.analysis.study import Study
from convergebench.runspec import TRANSPORT

PLACES: Final = ("inside", "outside")
UNIT: Final = "RMSE against home, 8-bit levels"


def region_changes(study: Study) -> pl.DataFrame:
    """The RMSE against home at every homecoming: chain, n, group (inside, outside), value."""
    return (
        _rmse(study)
        .filter((pl.col("against") == "home") & pl.col("group").is_in(PLACES))
        .join(homecomings(study.gathered.chains, study.gathered.suite), on=["chain", "step"])
        .join(study.chains, on="chain", how="semi")
        .select("chain", "n", "group", "value")
        .sort("chain", "n", "group")
    )


def forward_effects(study: Study) -> pl.DataFrame:
    """The RMSE of the first step of every round trip against frame 0.

    Returns:
        Columns chain, group (inside, outside, all) and value.
    """
    trips = study.chains.filter(pl.col("kind") == "round-trip")
    return (
        _rmse(study)
        .filter((pl.col("against") == "previous") & (pl.col("step") == 1))
        .filter(pl.col("group").is_in([*PLACES, "all"]))
        .join(trips, on="chain", how="semi")
        .select("chain", "group", "value")
        .sort("chain", "group")
    )


def _rmse(study: Study) -> pl.DataFrame:
    specs = {name: spec for name, spec in study.specs.items() if name == "psnr"}
    rows = current(study.scores, specs).with_columns(pl.col("value").fill_nan(None))
    size = -oriented(specs["psnr"], pl.col("value")) if specs else pl.col("value")
    return rows.with_columns(value=size, group="where")


def region_findings(study: Study) -> list[Finding]:
    """Per editor the mean change against home inside and outside, by round; and forward edits'."""
    return [*_regions(study), *_forward(study)]


def _regions(study: Study) -> list[Finding]:
    values = region_changes(study)
    # A chain whose cycle has no region has nothing to miss.
    regional = study.chains.filter(pl.col("cycle").is_in(_cycles(study, values)))
    grid = (
        study.grid.filter(pl.col("metric") == "psnr")
        .join(regional, on="chain", how="semi")
        .join(pl.DataFrame({"group": PLACES}), how="cross")
    )
    return [
        mean_finding(
            row,
            f"region/{row['editor']}/{row['group']}/{row['n']}",
            metric="psnr",
            editor=row["editor"],
            group=row["group"],
            round=row["n"],
            note=UNIT,
        )
        for row in round_means(values, grid, ["editor", "group", "n"]).iter_rows(named=True)
    ]


def _forward(study: Study) -> list[Finding]:
    values = forward_effects(study)
    found = []
    for place in (*PLACES, "all"):
        mine = values.filter(pl.col("group") == place)
        trips = study.chains.filter(
            (pl.col("kind") == "round-trip") & pl.col("cycle").is_in(_cycles(study, mine))
        ).with_columns(
            failed=pl.col("failed") & (pl.col("length") == 0),
            refused=pl.col("refused") & (pl.col("length") == 0),
        )
        pipes = _pipe(study, trips, mine)
        for row in round_means(mine, trips, ["editor"]).iter_rows(named=True):
            pipe, count = pipes.get(row["editor"], (None, 0))
            control = (
                f"{TRANSPORT} on the same {count}: {pipe:.2f}"
                if pipe is not None
                else f"no chain of {TRANSPORT} to compare with"
            )
            found.append(
                mean_finding(
                    row,
                    f"forward/{row['editor']}/{place}",
                    metric="psnr",
                    editor=row["editor"],
                    group=place,
                    note=f"RMSE against the frame before, 8-bit levels; {control}",
                )
            )
    return found


def _cycles(study: Study, values: pl.DataFrame) -> list[str]:
    """The cycles, with their versions, that any of these values is of."""
    mine = study.chains.join(values, on="chain", how="semi")
    return mine["cycle"].unique().to_list()


def _pipe(study: Study, trips: pl.DataFrame, values: pl.DataFrame) -> dict[str, tuple[float, int]]:
    """Per editor the transport control's mean change on the chains they share, and how many."""
    opened = study.gathered.editors
    controls = [name for name in study.editors if opened.get(name, name) == TRANSPORT]
    key = ["source", "cycle", "settings", "repeat"]
    sized = trips.join(values.filter(pl.col("value").is_not_null()), on="chain")
    control = (
        sized.filter(pl.col("editor").is_in(controls))
        .sort(*key, "editor")
        .unique(key, keep="first", maintain_order=True)
        .select(*key, pipe="value")
    )
    shared = sized.join(control, on=key).sort("editor", "chain")
    means = shared.group_by("editor", maintain_order=True).agg(
        pl.col("pipe").mean(), count=pl.len()
    )
    return {editor: (pipe, count) for editor, pipe, count in means.iter_rows()}
