"""What a drift is made of: the squared error against home, taken apart at each homecoming.

In this order, each part of what the ones before have left (`docs/method.md` says why):

    geometry    what undoing shift, zoom and crop takes away: MSE − registered MSE
    colour      the square of `colour-offset`: one constant per channel
    sharpness   the square of `detail-loss`: fading of home's own detail
    noise       by how much the squared noise level has grown since frame 0
    rest        what is left: content, structure, artefacts

The five add up to the mean squared error. `semantics`, 1 − similarity, is told beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.analysis.convergence import current
from convergebench.analysis.findings import Finding
from convergebench.analysis.resampling import SHARE, ratio_intervals
from convergebench.analysis.roster import homecomings
from convergebench.analysis.rounds import mean_finding, round_means
from convergebench.analysis.study import Study
from convergebench.comparisons import row_version

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS: Final = ("geometry", "colour", "sharpness", "noise", "rest")
"""They add up to the mean squared error."""
SEMANTICS: Final = "semantics"
SIMILARITIES: Final = ("clip", "effnet-lite0")
"""What semantics are measured with: the first that is scored."""
UNIT: Final = "mean squared error, 8-bit levels²"

_PREFIX: Final = "registration-"
_MOVES: Final = {
    "shift": "pixels of home",
    "zoom": "share by which it is larger or smaller",
    "crop": "share of home's area that is lost",
}


def drift_parts(study: Study) -> pl.DataFrame:
    """The squared error of every homecoming, taken apart.

    Chains that were never scored after registration keep their geometry in the rest. Where that
    score is null, because no registration was believed, nothing can be told of the homecoming.
    What else was not scored stays in the rest, too. Chains whose home is a truth that they did not
    begin with have no drift.

    Returns:
        Columns chain, n, total, and one for each of `PARTS`, null where it cannot be told.
    """
    raw, fitted = study.homes.select("metric", "chain", "n", "value"), _registered(study)
    having = fitted.filter(pl.col("metric") == "psnr")["chain"].unique().to_list()
    known = pl.col("chain").is_in(having)
    where = pl.concat([fitted, raw.filter(~known)])
    parts = {"total": (raw, "psnr"), "fitted": (where, "psnr")}
    parts |= {"colour": (where, "colour-offset"), "sharpness": (where, "detail-loss")}
    keys = ["chain", "n"]
    table = raw.filter(pl.col("metric") == "psnr").select(keys).sort(keys)
    for column, (rows, metric) in parts.items():
        mine = rows.filter(pl.col("metric") == metric).select(*keys, pl.col("value").alias(column))
        table = table.join(mine, on=keys, how="left", maintain_order="left")
    table = table.filter(pl.col("chain").is_in(_begun_at_home(study))).join(
        _noise_gain(study), on=keys, how="left", maintain_order="left"
    )
    total, unmoved = (_mse(_numbers(table, name)) for name in ("total", "fitted"))
    left = np.minimum(total, unmoved)  # NaN, as all that is null here, where either is
    found = {"geometry": np.where(table["chain"].is_in(having).to_numpy(), total - left, np.nan)}
    for part, power in (("colour", 2), ("sharpness", 2), ("noise", 1)):
        found[part] = np.minimum(_numbers(table, part) ** power, left)
        left = left - np.nan_to_num(found[part])
    return table.select(keys).with_columns(
        pl.Series(name, values, dtype=pl.Float64).fill_nan(None)
        for name, values in {"total": total, **found, "rest": left}.items()
    )


def _mse(decibels: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = 255.0**2 * 10 ** (decibels / -10)
    return squares


def _numbers(table: pl.DataFrame, column: str) -> NDArray[np.float64]:
    return table[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _registered(study: Study) -> pl.DataFrame:
    """Scores at homecomings after shift, zoom and crop were undone: metric, chain, n, value."""
    versions = pl.DataFrame(
        [(name, row_version(spec, "registered")) for name, spec in study.specs.items()],
        schema={"metric": pl.String(), "version": pl.String()},
        orient="row",
    )
    return (
        study.scores.filter((pl.col("where") == "registered") & (pl.col("against") == "home"))
        .join(versions, on=["metric", "version"], how="semi")
        .join(homecomings(study.gathered.chains, study.gathered.suite), on=["chain", "step"])
        .join(study.chains, on="chain", how="semi")
        .with_columns(pl.col("value").fill_nan(None))
        .select("metric", "chain", "n", "value")
    )


def _begun_at_home(study: Study) -> list[str]:
    """The chains whose home is the source, not a truth that they never saw."""
    suite = study.gathered.suite
    cycles = {name: suite.cycle_of(name) for name in set(study.chains["cycle"])}
    homes = {name: cycle.home(cycle.period) for name, cycle in cycles.items()}
    mine = [name for name, home in homes.items() if home is None or home.of == "source"]
    return study.chains.filter(pl.col("cycle").is_in(mine))["chain"].to_list()


def _noise_gain(study: Study) -> pl.DataFrame:
    """By how much the squared noise level has grown since frame 0: chain, n, noise."""
    specs = {name: spec for name, spec in study.specs.items() if name == "noise"}
    rows = current(study.scores, specs).filter(pl.col("against") == "none")
    first = rows.filter(pl.col("step") == 0).select("chain", first="value")
    return (
        rows.join(homecomings(study.gathered.chains, study.gathered.suite), on=["chain", "step"])
        .join(first, on="chain")
        .select(
            "chain", "n", noise=(pl.col("value") ** 2 - pl.col("first") ** 2).clip(lower_bound=0.0)
        )
    )


def drift_findings(study: Study) -> list[Finding]:
    """Per editor the mean of each part at each round, their shares at the end, and semantics."""
    parts = drift_parts(study)
    home = pl.col("chain").is_in(_begun_at_home(study))
    grid = study.grid.filter((pl.col("metric") == "psnr") & home).drop("metric")
    lacking = _lacking(study, parts)
    values = parts.unpivot(PARTS, index=["chain", "n"], variable_name="group")
    means = round_means(
        values, grid.join(pl.DataFrame({"group": PARTS}), how="cross"), ["editor", "group", "n"]
    )
    order = {part: i for i, part in enumerate(PARTS)}
    found = [
        mean_finding(
            row,
            f"drift/{row['editor']}/{row['group']}/{row['n']}",
            editor=row["editor"],
            group=row["group"],
            round=row["n"],
            note=_joined(UNIT, _not_scored(lacking[row["editor"]], row["group"])),
        )
        for row in sorted(
            means.iter_rows(named=True), key=lambda r: (r["editor"], order[r["group"]], r["n"])
        )
        if row["group"] not in lacking.get(row["editor"], PARTS)
    ]
    return [*found, *_shares(study, parts, grid, lacking), *_semantics(study), *_moves(study)]


def _lacking(study: Study, parts: pl.DataFrame) -> dict[str, list[str]]:
    """The parts that no chain of an editor was scored for; editors with scores only."""
    counts = (
        parts.join(study.chains.select("chain", "editor"), on="chain")
        .group_by("editor")
        .agg(pl.col(*PARTS[:-1]).count())
    )
    return {
        row["editor"]: [part for part in PARTS[:-1] if not row[part]]
        for row in counts.iter_rows(named=True)
    }


def _not_scored(names: list[str], part: str) -> str:
    if part != "rest" or not names:
        return ""
    return f"with {', '.join(names)}, which {'was' if len(names) == 1 else 'were'} not scored"


def _joined(*words: str) -> str:
    return "; ".join(word for word in words if word)


def _shares(
    study: Study, parts: pl.DataFrame, grid: pl.DataFrame, lacking: dict[str, list[str]]
) -> list[Finding]:
    """Each part's share of all squared error at the last homecoming that chains should reach."""
    last = grid.filter(pl.col("n") == pl.col("n").max().over("chain"))
    joined = last.join(parts, on=["chain", "n"], how="left", maintain_order="left")
    found = []
    for editor in sorted(lacking):
        mine = joined.filter(pl.col("editor") == editor)
        told = mine.filter(pl.col("rest").is_not_null()).with_columns(pl.col(*PARTS).fill_null(0.0))
        sums = told.group_by("source").agg(pl.col("total", *PARTS).sum()).sort("source")
        names = [part for part in PARTS if part not in lacking[editor]]
        total = sums["total"].to_numpy()
        cells = sums.select(names).to_numpy()
        whole = float(total.sum())
        ends = np.full((len(names), 2), np.nan)
        if whole:
            ends = ratio_intervals(cells, np.repeat(total[:, None], len(names), axis=1), SHARE)
        for index, part in enumerate(names):
            low, high = (None if np.isnan(end) else float(end) for end in ends[index])
            found.append(
                Finding(
                    id=f"drift-share/{editor}/{part}",
                    estimate=float(cells[:, index].sum()) / whole if whole else None,
                    low=low,
                    high=high,
                    n=len(told),
                    missing=len(mine) - len(told),
                    failed=int(mine["failed"].sum()),
                    refused=int(mine["refused"].sum()),
                    note=_joined(
                        "share of the squared error at the last round, parts taken in order"
                        if whole
                        else "no error to take apart" * bool(len(told)),
                        _not_scored(lacking[editor], part),
                    ),
                    editor=editor,
                    group=part,
                )
            )
    return found


def _semantics(study: Study) -> list[Finding]:
    """1 − similarity at each round, by the best metric of content that was scored."""
    scored = set(study.homes["metric"])
    name = next((metric for metric in SIMILARITIES if metric in scored), None)
    if name is None:
        return []
    values = study.homes.filter(pl.col("metric") == name).with_columns(value=1 - pl.col("value"))
    grid = study.grid.filter(pl.col("metric") == name)
    return [
        mean_finding(
            row,
            f"drift/{row['editor']}/{SEMANTICS}/{row['n']}",
            editor=row["editor"],
            group=SEMANTICS,
            round=row["n"],
            metric=name,
            note=f"1 − {name}; no part of the squared error",
        )
        for row in round_means(values, grid, ["editor", "n"]).iter_rows(named=True)
    ]


def _moves(study: Study) -> list[Finding]:
    """How far frames have moved, as registration has it: shift, zoom and crop."""
    rows = study.homes.filter(pl.col("metric").str.starts_with("registration-"))
    wide = (
        rows.select("metric", "chain", "n", "value").pivot("metric", index=["chain", "n"])
        if len(rows)
        else pl.DataFrame()
    )
    needs = {
        "shift": (pl.col(f"{_PREFIX}dx") ** 2 + pl.col(f"{_PREFIX}dy") ** 2).sqrt(),
        "zoom": (pl.col(f"{_PREFIX}scale") - 1).abs(),
        "crop": pl.col(f"{_PREFIX}crop"),
    }
    found = []
    for name, size in needs.items():
        if not set(size.meta.root_names()) <= set(wide.columns):
            continue
        grid = study.grid.filter(pl.col("metric") == size.meta.root_names()[0])
        means = round_means(wide.with_columns(value=size), grid, ["editor", "n"])
        found += [
            mean_finding(
                row,
                f"registration/{row['editor']}/{name}/{row['n']}",
                editor=row["editor"],
                group=name,
                round=row["n"],
                note=_MOVES[name],
            )
            for row in means.iter_rows(named=True)
        ]
    return found
