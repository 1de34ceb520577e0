"""Results by group: edit category, image category, cycle, session and settings.

Groups are made of all chains, those of partially reversible cycles too, and of each editor's own:
who lacks the hard half of a group has it easier there, so n and missing stand beside every number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from convergebench.analysis.curves import (
    NO_ENDS,
    curve_grid,
    followed_lives,
    life_words,
    point_bands,
)
from convergebench.analysis.findings import DIMENSIONS, HEADLINE, RANKED_BY, Finding
from convergebench.analysis.leaderboard import judged, ranking_metrics
from convergebench.analysis.resampling import SHARE, mean_intervals
from convergebench.analysis.roster import COMES_HOME
from convergebench.analysis.rounds import source_means
from convergebench.analysis.study import Study
from convergebench.analysis.survival import bounds, survival
from convergebench.wording import counted

SPLITS: Final = ("edit", "image", "cycle", "session", "settings")
"""What chains are grouped by: columns of `chain_table`."""

CURVED_BY: Final = ("edit", "image")
"""The groups that have curves."""

IDLE: Final = ("session", "settings")
"""Groups that say nothing where there is only one."""

UNNAMED: Final = {"image": "no category", "edit": "no category", "settings": "defaults"}
SCORE: Final = "score"
"""The mean of the ranking metrics, where a metric is meant."""

MOST_ROUNDS: Final = 25
"""Of a group's curve; of longer ones only some rounds are told, evenly chosen, and chains' last."""


@dataclass(frozen=True)
class _Size:
    """Of one group and editor: chains, failed ones, refused; not fully reversible; longest N."""

    chains: int
    failed: int
    refused: int
    partial: int
    rounds: int


def group_findings(whole: Study) -> list[Finding]:
    """AUCs and half-lives by group, and curves of the edit and image categories."""
    ranked = ranking_metrics(whole.only(pl.col("reversible")))
    scores = judged(whole.summaries, ranked).with_columns(metric=pl.lit(SCORE)) if ranked else None
    columns = ("metric", "editor", "chain", "source", "auc")
    aucs = whole.summaries.filter(pl.col("auc").is_not_null()).select(columns)
    if scores is not None:
        aucs = pl.concat([scores.select(columns), aucs])
    told = {*ranked, *DIMENSIONS, HEADLINE, *RANKED_BY}
    lives = whole.lives.filter(pl.col("metric").is_in(list(told)))
    found: list[Finding] = []
    for split in SPLITS:
        groups = _groups(whole.chains, split)
        if groups["group"].n_unique() < 1 + (split in IDLE):
            continue
        found += _auc_findings(whole, split, groups, aucs)
        found += _life_findings(whole, split, groups, lives)
        if split in CURVED_BY:
            found += _curve_findings(whole, groups, sorted(told))
    return found


def _groups(chains: pl.DataFrame, split: str) -> pl.DataFrame:
    """Chains that come home, and the group each is in; none of images where none has a category."""
    homes = chains.filter(COMES_HOME)
    if split == "image" and not (homes["image"] != "").any():
        homes = homes.clear()
    named = pl.when(pl.col(split) == "").then(pl.lit(UNNAMED.get(split, ""))).otherwise(split)
    return homes.with_columns(group=pl.lit(f"{split}:") + named)


def _sizes(groups: pl.DataFrame, content: bool) -> dict[tuple[str, str], _Size]:
    """By group and editor how many chains should have values; of content, all with a home."""
    mine = groups if content else groups.filter(~pl.col("content_only"))
    sizes = mine.group_by("group", "editor").agg(
        pl.len(),
        pl.sum("failed"),
        pl.sum("refused"),
        (~pl.col("reversible")).sum(),
        pl.max("rounds"),
    )
    return {(group, editor): _Size(*rest) for group, editor, *rest in sizes.iter_rows()}


def _each(
    whole: Study, groups: pl.DataFrame, metrics: Sequence[str]
) -> Iterator[tuple[str, str, str, _Size]]:
    """Every metric, group and editor that should have values, in order."""
    known: dict[bool, dict[tuple[str, str], _Size]] = {}
    for metric in metrics:
        content = metric in whole.specs and whole.specs[metric].kind == "semantic"
        content = content or metric == "semantic"
        if content not in known:
            known[content] = _sizes(groups, content)
        for (group, editor), size in sorted(known[content].items()):
            yield metric, group, editor, size


def _partial(size: _Size) -> list[str]:
    if not size.partial:
        return []
    return [f"{counted(size.partial, 'chain')} of cycles that cannot be fully undone among them"]


def _auc_findings(
    whole: Study, split: str, groups: pl.DataFrame, aucs: pl.DataFrame
) -> list[Finding]:
    """The mean AUC of each editor's complete chains by group, each source counting once."""
    keys = ("metric", "group", "editor")
    means = (
        aucs.join(groups.select("chain", "group"), on="chain")
        .sort(*keys, "source", "chain")
        .group_by(*keys, "source", maintain_order=True)
        .agg(pl.col("auc").mean(), pl.len().alias("count"))
        .group_by(*keys, maintain_order=True)
        .agg("auc", pl.col("count").sum())
    )
    series = [np.array(values) for values in means["auc"].to_list()]
    ends = mean_intervals(series, SHARE)
    known = {
        tuple(key): (float(mine.mean()), count, *interval)
        for (*key, count), mine, interval in zip(
            means.select(*keys, "count").iter_rows(), series, ends, strict=True
        )
    }
    found = []
    for metric, group, editor, size in _each(whole, groups, sorted(set(aucs["metric"].unique()))):
        mean, n, low, high = known.get((metric, group, editor), (None, 0, *NO_ENDS))
        name = group.partition(":")[2]
        found.append(
            Finding(
                id=f"by-{split}/{name}/{metric}/{editor}",
                estimate=mean,
                low=low,
                high=high,
                n=n,
                missing=size.chains - n,
                failed=size.failed,
                refused=size.refused,
                note=", ".join(_partial(size)),
                metric=metric,
                editor=editor,
                group=group,
            )
        )
    return found


def _life_findings(
    whole: Study, split: str, groups: pl.DataFrame, summaries: pl.DataFrame
) -> list[Finding]:
    """Kaplan-Meier half-lives by group, over the chains that half-lives are over."""
    keys = ("metric", "group", "editor")
    followed = groups.join(whole.followed.select("chain"), on="chain", how="semi")
    joined = summaries.join(followed.select("chain", "group"), on="chain").sort(*keys, "chain")
    lives = followed_lives(joined, keys)
    found = []
    for metric, group, editor, size in _each(
        whole, followed, sorted(set(summaries["metric"].unique()))
    ):
        times, fell, sources = lives.get((metric, group, editor), ([], [], []))
        curve = survival(times, fell, size.rounds)
        ends = bounds(times, fell, sources, curve.horizon, mean=False) if curve else None
        low, high = ends.median if ends else NO_ENDS
        name = group.partition(":")[2]
        found.append(
            Finding(
                id=f"life-by-{split}/{name}/{metric}/{editor}",
                estimate=curve.median if curve else None,
                low=low,
                high=high,
                n=len(times),
                missing=size.chains - len(times),
                failed=size.failed,
                refused=size.refused,
                censored=curve.censored if curve else 0,
                note=", ".join(life_words(curve, ends)[1:] + _partial(size)),
                metric=metric,
                editor=editor,
                group=group,
            )
        )
    return found


def _curve_findings(whole: Study, groups: pl.DataFrame, metrics: Sequence[str]) -> list[Finding]:
    """C(n) by group: the mean over each editor's chains that have a value, by source."""
    grid = curve_grid(whole).filter(pl.col("metric").is_in(metrics))
    last = grid["n"].max() if len(grid) else 0
    every = -(-last // MOST_ROUNDS) if isinstance(last, int) else 1
    keys = ("metric", "group", "editor", "n")
    grid = grid.join(groups.select("chain", "group"), on="chain")
    if every > 1:
        # A round is told of all chains of a group or of none: means of some would mislead.
        at_end = pl.col("n") == pl.col("n").max().over("chain")
        told = grid.filter((pl.col("n") % every == 1) | at_end)
        grid = grid.join(told, on=["group", "n"], how="semi")
    joined = grid.join(
        whole.curves.select("metric", "chain", "n", value="c"),
        on=["metric", "chain", "n"],
        how="left",
    )
    points = source_means(joined, keys).drop("infinite")
    bands: dict[Any, Any] = point_bands(
        joined.filter(pl.col("value").is_not_null()), ("group", "editor")
    )
    return [
        Finding(
            id=f"group-convergence/{group}/{metric}/{editor}/{n}",
            estimate=mean,
            low=bands.get((group, editor, metric, n), NO_ENDS)[0],
            high=bands.get((group, editor, metric, n), NO_ENDS)[1],
            n=count,
            missing=planned - count,
            failed=failed,
            refused=refused,
            metric=metric,
            editor=editor,
            round=n,
            group=group,
        )
        for metric, group, editor, n, mean, count, planned, failed, refused in points.iter_rows()
    ]
