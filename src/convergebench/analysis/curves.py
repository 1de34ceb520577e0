"""Findings by metric and editor: the points of the curves, AUCs and half-lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl

from convergebench.analysis.compare import by_metric
from convergebench.analysis.findings import DIMENSIONS, HEADLINE, RANKED_BY, Finding
from convergebench.analysis.resampling import SHARE, Ends, mean_intervals, ratio_intervals
from convergebench.analysis.roster import COMES_HOME
from convergebench.analysis.rounds import source_means
from convergebench.analysis.survival import Bounds, Survival, bounds, survival

if TYPE_CHECKING:
    from convergebench.analysis.study import Study

NO_ENDS: Final[Ends] = (None, None)
MOST_STEPS: Final = 100
"""Of a survival curve; of longer ones only some are told, evenly chosen."""

_PIXELS: Final = DIMENSIONS["quality"][0]
Lives = tuple[Sequence[float], Sequence[bool], Sequence[str]]


class Planned(NamedTuple):
    """Of one metric and editor: chains that should have values, failed ones, refused; longest N."""

    chains: int
    failed: int
    refused: int
    rounds: int


Plans = Mapping[tuple[str, str], Planned]


def curve_findings(
    kind: str, values: pl.DataFrame, column: str, grid: pl.DataFrame
) -> list[Finding]:
    """The mean of a column per metric, editor and round, of every homecoming expected.

    Each source counts once, as in AUCs, with the mean over its chains.

    Args:
        kind: First part of the ids.
        values: Columns metric, chain, n and the one asked for.
        column: The one asked for.
        grid: What `expected` answered, of the metrics asked for.
    """
    joined = grid.join(
        values.select("metric", "chain", "n", value=pl.col(column)),
        on=["metric", "chain", "n"],
        how="left",
    )
    finite = pl.col("value").is_finite()
    points = source_means(joined, ("metric", "editor", "n"))
    bands = point_bands(joined.filter(finite)) if kind == "convergence" else {}
    return [
        Finding(
            id=f"{kind}/{metric}/{editor}/{n}",
            estimate=mean,
            low=bands.get((editor, metric, n), NO_ENDS)[0],
            high=bands.get((editor, metric, n), NO_ENDS)[1],
            n=count,
            missing=planned - count - infinite,
            failed=failed,
            refused=refused,
            infinite=infinite,
            note=_infinite(metric, infinite),
            metric=metric,
            editor=editor,
            round=n,
        )
        for metric, editor, n, mean, count, infinite, planned, failed, refused in points.iter_rows()
    ]


def curve_grid(main: Study) -> pl.DataFrame:
    """Every homecoming that should have convergence, the dimensions and the headline included."""
    needs = {name: parts[0] for name, parts in DIMENSIONS.items()} | {HEADLINE: _PIXELS}
    there = set(main.curves["metric"].unique())
    wider = [
        main.grid.filter(pl.col("metric") == one).with_columns(metric=pl.lit(name))
        for name, one in needs.items()
        if name in there
    ]
    return pl.concat([main.grid.filter(pl.col("metric").is_in(main.curved)), *wider])


def _infinite(metric: str, count: int) -> str:
    if not count:
        return ""
    what = "identical to home, so infinite" if metric.partition("-")[0] == "psnr" else "infinite"
    return f"{count} more {what}, not in the mean"


def point_bands(rows: pl.DataFrame, by: Sequence[str] = ("editor",)) -> dict[Any, Ends]:
    """95 % intervals of mean curves of C; none where fewer than two sources have a value.

    Whole curves are resampled by source; each source counts once.

    Args:
        rows: Columns metric, source, n, value and `by`.
        by: What tells the curves apart, beside the metric.

    Returns:
        By (*by, metric, n).
    """
    curves = (
        rows.group_by(*by, "metric", "source", "n")
        .agg(pl.col("value").sort().mean())
        .sort(*by, "metric", "n", "source")
        .group_by(*by, maintain_order=True)
        .agg("source", "metric", "n", "value")
    )
    found: dict[Any, Ends] = {}
    for *names, source, metric, n, value in curves.iter_rows():
        sources = {name: i for i, name in enumerate(sorted(set(source)))}
        points = {point: i for i, point in enumerate(dict.fromkeys(zip(metric, n, strict=True)))}
        row = np.array([sources[name] for name in source])
        column = np.array([points[point] for point in zip(metric, n, strict=True)])
        sums = np.zeros((len(sources), len(points)))
        counts = np.zeros_like(sums)
        sums[row, column], counts[row, column] = value, 1.0
        ends = ratio_intervals(sums, counts, SHARE).tolist()
        for point, (low, high) in zip(points, ends, strict=True):
            if low == low:  # no NaN
                found[(*names, *point)] = (low, high)
    return found


def auc_findings(summaries: pl.DataFrame, planned: Plans) -> list[Finding]:
    """The mean AUC of each editor's own complete chains, by metric, each source counting once."""
    whole = summaries.filter(pl.col("auc").is_not_null())
    values = by_metric(whole, "auc")
    ends = dict(zip(values, mean_intervals(list(values.values()), SHARE), strict=True))
    counts = Counter(whole.select("metric", "editor").iter_rows())
    found = []
    for (metric, editor), plan in planned.items():
        mine = values.get((metric, editor))
        low, high = ends.get((metric, editor), NO_ENDS)
        n = counts[metric, editor]
        found.append(
            Finding(
                id=f"auc/{metric}/{editor}",
                estimate=None if mine is None else float(mine.mean()),
                low=low,
                high=high,
                n=n,
                missing=plan.chains - n,
                failed=plan.failed,
                refused=plan.refused,
                metric=metric,
                editor=editor,
            )
        )
    return found


def life_findings(
    summaries: pl.DataFrame, planned: Plans, prefix: str = ""
) -> tuple[list[Finding], dict[str, dict[str, str]]]:
    """Half-lives and restricted means, by metric and editor; and the former as printed."""
    lives = followed_lives(summaries, ("metric", "editor"))
    found: list[Finding] = []
    printed: dict[str, dict[str, str]] = {}
    ends_at = _common_ends(planned)
    for (metric, editor), plan in planned.items():
        times, fell, sources = lives.get((metric, editor), ([], [], []))
        until = ends_at.get(metric, 0)
        curve = survival(times, fell, plan.rounds, until)
        known = curve is not None and curve.restricted_mean is not None
        ends = (
            bounds(times, fell, sources, curve.horizon, mean=known, until=until) if curve else None
        )
        lost = plan.chains - len(times)
        words = life_words(curve, ends)
        if curve:
            printed.setdefault(editor, {})[metric] = curve.label
        if lost:
            words.append(f"{lost} without a first homecoming left out")
        span = f"up to round {until}" if known else "no chain to follow"
        if curve and not known:
            span = f"none up to round {until}: known only up to round {curve.horizon:g}"
        elif curve and curve.horizon > until:  # another editor goes no further
            span += f", known up to round {curve.horizon:g}"
        median, mean = (ends.median, ends.restricted_mean) if ends else (NO_ENDS, NO_ENDS)
        for kind, estimate, note, (low, high) in (
            ("half-life", curve and curve.median, ", ".join(words), median),
            ("restricted-mean", curve and curve.restricted_mean, span, mean),
        ):
            found.append(
                Finding(
                    id=f"{prefix}{kind}/{metric}/{editor}",
                    estimate=estimate,
                    low=low,
                    high=high,
                    n=len(times),
                    missing=lost,
                    failed=plan.failed,
                    refused=plan.refused,
                    censored=curve.censored if curve else 0,
                    note=note,
                    metric=metric,
                    editor=editor,
                )
            )
    return found, printed


def _common_ends(planned: Plans) -> dict[str, int]:
    """By metric the N that restricted means of all editors end at: the least of theirs."""
    found: dict[str, int] = {}
    for (metric, _), plan in planned.items():
        if plan.rounds:
            found[metric] = min(plan.rounds, found.get(metric, plan.rounds))
    return found


def followed_lives(summaries: pl.DataFrame, by: Sequence[str]) -> dict[Any, Lives]:
    """Half-lives, whether they were reached, and their sources, of all chains that came home."""
    lives = (
        summaries.filter(pl.col("followed") > 0)
        .group_by(*by, maintain_order=True)
        .agg("half_life", "fell", "source")
    )
    return {tuple(key): (times, fell, source) for *key, times, fell, source in lives.iter_rows()}


def life_words(curve: Survival | None, ends: Bounds | None) -> list[str]:
    """What a half-life's note says: how many are censored, and what was not reached."""
    if curve is None:
        return []
    words = [f"{curve.censored} censored"]
    if curve.median is None:
        words.append(f"half-life {curve.label}")
    elif ends and ends.median[0] is not None and ends.median[1] is None:
        words.append(f"upper end > {curve.horizon:g}")
    return words


def survival_findings(main: Study) -> list[Finding]:
    """The steps of the survival curves: of the dimensions, the headline and what ranks."""
    shown = [HEADLINE, *DIMENSIONS, *RANKED_BY]
    lives = followed_lives(main.lives.filter(pl.col("metric").is_in(shown)), ("metric", "editor"))
    plans = main.planned(main.lives, main.followed)
    found: list[Finding] = []
    for (metric, editor), plan in plans.items():
        if (metric, editor) not in lives:
            continue
        times, fell, sources = lives[metric, editor]
        curve = survival(times, fell, plan.rounds)
        if curve is None:
            continue
        band = bounds(times, fell, sources, curve.horizon, mean=False).band
        points = [(0.0, 1.0, *NO_ENDS)]
        points += [(t, s, *e) for t, s, e in zip(curve.times, curve.share, band, strict=True)]
        every = -(-len(points) // MOST_STEPS)
        points = [p for i, p in enumerate(points) if i % every == 0 or i == len(points) - 1]
        if points[-1][0] < curve.horizon:
            points.append((curve.horizon, *points[-1][1:]))
        found += [
            Finding(
                id=f"survival/{metric}/{editor}/{i}",
                estimate=share,
                low=low,
                high=high,
                n=curve.chains,
                missing=plan.chains - curve.chains,
                failed=plan.failed,
                refused=plan.refused,
                censored=curve.censored,
                note=f"every {every}th step" if every > 1 else "",
                metric=metric,
                editor=editor,
                at=at,
            )
            for i, (at, share, low, high) in enumerate(points)
        ]
    return found


def planned_chains(table: pl.DataFrame, semantic: Mapping[str, bool]) -> Plans:
    """How many chains should have values of each metric, and how many of them failed.

    Args:
        table: What `chain_table` answered.
        semantic: The metrics (or dimensions) asked for, and whether content is enough for them.
    """
    found: dict[tuple[str, str], Planned] = {}
    homes = table.filter(COMES_HOME)
    for metric, content in sorted(semantic.items()):
        mine = homes if content else homes.filter(~pl.col("content_only"))
        counts = mine.group_by("editor").agg(
            pl.len(), pl.sum("failed"), pl.sum("refused"), pl.max("rounds")
        )
        for editor, *rest in counts.sort("editor").iter_rows():
            found[metric, editor] = Planned(*rest)
    return found
