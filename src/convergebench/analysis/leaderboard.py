"""The leaderboard: who is ranked, on which chains, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.analysis.compare import (
    PAIR,
    Ranked,
    by_metric,
    by_source,
    common_chains,
    rank,
)
from convergebench.analysis.findings import DIMENSIONS, HEADLINE, RANKED_BY, Finding, Standing
from convergebench.analysis.inert import forward_changes, is_inert
from convergebench.analysis.pairs import Pair, compare_pairs
from convergebench.analysis.resampling import SHARE, mean_interval
from convergebench.analysis.roster import COMES_HOME
from convergebench.analysis.study import Study
from convergebench.chain import Chain, count_outcomes
from convergebench.registry import says_control
from convergebench.runspec import CONTROLS, TRANSPORT
from convergebench.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

INERT: Final = "inert"
NOTHING_TO_RANK_BY: Final = "nothing to rank by"
NO_COMPLETE_CHAIN: Final = "no complete chain"
NO_COMMON_CHAIN: Final = "no chain that all editors completed"


@dataclass(frozen=True)
class Ranking:
    """Who stands where.

    Attributes:
        metrics: The metrics whose mean AUC is the score.
        places: The ranked editors' places.
        reasons: Why the others have none.
        common: The chains that all ranked editors completed, one row each, by `PAIR`.
        scores: Per editor its score for each source of the common chains: of the ranked, and of
            the controls that completed them too.
        controls: Which editors are controls.
        pairs: Every two ranked editors compared.
        narrowed: Why a wider measure does not rank, where it could but for its gaps.
    """

    metrics: tuple[str, ...]
    places: Mapping[str, Ranked]
    reasons: Mapping[str, str]
    common: pl.DataFrame
    scores: Mapping[str, NDArray[np.float64]] = field(repr=False)
    controls: frozenset[str] = frozenset()
    pairs: tuple[Pair, ...] = ()
    narrowed: str = ""

    @property
    def sources(self) -> int:
        """How many sources the common chains have."""
        return self.common["source"].n_unique() if len(self.common) else 0


def ranking_of(
    editors: Sequence[str],
    summaries: pl.DataFrame,
    inert: Mapping[str, bool],
    metrics: Sequence[str],
    controls: frozenset[str] = frozenset(),
    narrowed: str = "",
) -> Ranking:
    """Rank editors by the mean AUC of some metrics on the chains that all of them completed.

    Controls are ranked like any other editor: `ref:identity` shows the ceiling, `ref:random` the
    bottom. Inert editors are not ranked; inert controls keep their score, so that the pipe's loss
    shows.
    """
    able = judged(summaries, metrics)
    whole = set(able["editor"])
    reasons: dict[str, str] = {}
    for name in editors:
        if not metrics:
            reasons[name] = NOTHING_TO_RANK_BY
        elif name not in whole:
            reasons[name] = NO_COMPLETE_CHAIN
        elif inert.get(name):
            reasons[name] = INERT
    ranked = [name for name in editors if name not in reasons]
    common = common_chains(able, ranked) if ranked else able.clear()
    pairs = common.select(PAIR).unique(maintain_order=True)
    shown = [name for name in editors if name in ranked or name in controls]
    level = able.filter(pl.col("editor").is_in(shown)).join(pairs, on=PAIR, how="semi")
    level = level.filter(pl.len().over("editor") == len(pairs))
    _, values = by_source(level, "auc")
    mine = {n: v for n, v in values.items() if n in ranked}
    compared = compare_pairs(mine)
    places = {r.editor: r for r in rank(mine, compared)}
    reasons |= {name: NO_COMMON_CHAIN for name in ranked if name not in places}
    return Ranking(
        tuple(metrics), places, reasons, pairs, values, controls, tuple(compared), narrowed
    )


def ranking_metrics(main: Study) -> list[str]:
    """What the mean AUC that ranks is of: the headline, else quality, else single metrics.

    The headline's curve is the lesser of the two dimensions at each homecoming. A dimension that
    only some editors, or some sources, were scored in would leave the others unranked, so it does
    not rank then.
    """
    return chosen_metrics(main)[0]


def chosen_metrics(main: Study, inert: Mapping[str, bool] | None = None) -> tuple[list[str], str]:
    """What `ranking_metrics` answers, and which sources a wider measure would have lost.

    Args:
        main: The study of the chains that the headline is made of.
        inert: The verdict on each editor, where it is known already.
    """
    single: list[str] = [
        name for name in RANKED_BY if name not in main.stale and name in main.curved
    ]
    rated = judged(main.summaries, single)
    able = set(rated["editor"])
    why: list[str] = []
    for wider in (HEADLINE, "quality"):
        if not able or main.stale.keys() & set(_parts(wider)):
            continue
        mine = judged(main.summaries, [wider])
        if not set(mine["editor"]) >= able:
            continue
        inert = _verdicts(main) if inert is None else inert
        ranked = sorted(name for name in able if not inert.get(name))
        there, kept = (common_chains(each, ranked)["source"].n_unique() for each in (rated, mine))
        if kept >= there:
            return [wider], "; ".join(why)
        why.append(
            f"{wider} does not rank: it would leave {kept} of {counted(there, 'source')}, the "
            "others being unscored in part"
        )
    return single, "; ".join(why)


def _verdicts(main: Study) -> dict[str, bool]:
    """Which editors are inert, of those that can be checked."""
    recorded = main.gathered.editors
    transports = [name for name in main.editors if recorded.get(name, name) == TRANSPORT]
    return is_inert(forward_changes(main.scores, main.chains, main.specs, transports))


def _parts(dimension: str) -> list[str]:
    """The metrics that a dimension, or the headline, is made of."""
    wider = DIMENSIONS if dimension == HEADLINE else (dimension,)
    return [name for each in wider for name in DIMENSIONS[each]]


def judged(summaries: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """Per chain that is complete in all of these metrics the mean of their AUCs."""
    return (
        summaries.filter(pl.col("metric").is_in(list(metrics)) & pl.col("complete"))
        .sort("chain", "metric")
        .group_by("chain", "editor", *PAIR, maintain_order=True)
        .agg(pl.col("auc").mean(), pl.len().alias("count"))
        .filter(pl.col("count") == len(metrics))
        .with_columns(metric=pl.lit("mean"), complete=pl.lit(True))
    )


def controls_among(
    editors: Sequence[str], recorded: Mapping[str, str] | None = None
) -> frozenset[str]:
    """The editors that say they are controls, as far as they can be opened here.

    Args:
        editors: Their names.
        recorded: By these names, those that the runs recorded, where they are told apart.
    """
    names = {name: (recorded or {}).get(name, name) for name in editors}
    return frozenset(name for name, own in names.items() if own in CONTROLS or _says_control(own))


_says_control = lru_cache(maxsize=1024)(says_control)


def standings_of(
    table: pl.DataFrame,
    chains: Sequence[Chain],
    ranking: Ranking,
    summaries: pl.DataFrame,
    lives: Mapping[str, Mapping[str, str]],
    whole: Mapping[str, int],
    runs: Mapping[str, tuple[str, ...]] | None = None,
    origins: Mapping[str, str] | None = None,
) -> tuple[list[Standing], list[Finding]]:
    """Every editor's line, the ranked before the others, best first; and findings on the scores.

    Args:
        table: What `chain_table` answered.
        chains: The recorded chains.
        ranking: Who stands where.
        summaries: AUCs per chain and metric.
        lives: Half-lives as printed, per editor and metric.
        whole: How many complete chains each editor has.
        runs: The runs each editor is from, where there are several.
        origins: Who measured each editor's frames, where it was not us.
    """
    measurable = COMES_HOME & ~pl.col("content_only")
    counted_in = set(table.filter(measurable)["chain"])
    outcomes = _outcomes([chain for chain in chains if chain.key.id in counted_in])
    aucs = _aucs(summaries, ranking.common)
    facts = table.group_by("editor").agg(
        measurable.sum().alias("chains"),
        (~measurable).sum().alias("unmeasurable"),
        (measurable & pl.col("failed")).sum().alias("failed"),
        (measurable & pl.col("refused")).sum().alias("refused"),
    )
    standings: list[Standing] = []
    findings: list[Finding] = []
    for name, count, unmeasurable, failed, refused in facts.sort("editor").iter_rows():
        place = ranking.places.get(name)
        mine = ranking.scores.get(name)
        score = None if mine is None else float(mine.mean())
        low, high = (None, None) if mine is None else mean_interval(mine, SHARE)
        used = 0 if mine is None else len(ranking.common)
        why = ranking.reasons.get(name, "")
        over = f"over {counted(ranking.sources, 'source')}"
        findings.append(
            Finding(
                id=f"score/{name}",
                estimate=score,
                low=low,
                high=high,
                n=used,
                missing=count - used,
                failed=failed,
                refused=refused,
                note="; ".join(n for n in (over * bool(used), why, ranking.narrowed) if n),
                editor=name,
            )
        )
        standings.append(
            Standing(
                editor=name,
                control=name in ranking.controls,
                best_rank=place.best_rank if place else None,
                worst_rank=place.worst_rank if place else None,
                score=score,
                low=low,
                high=high,
                auc={metric: values.get(name) for metric, values in aucs.items()},
                half_life=dict(lives.get(name, {})),
                chains=count,
                complete=whole.get(name, 0),
                outcomes=outcomes.get(name, {}),
                why_unranked=why,
                failed=failed,
                unmeasurable=unmeasurable,
                runs=(runs or {}).get(name, ()),
                origin=(origins or {}).get(name, ""),
            )
        )
    standings.sort(
        key=lambda s: (s.best_rank is None, s.score is None, -(s.score or 0.0), s.editor)
    )
    return standings, findings


def _outcomes(chains: Sequence[Chain]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for chain in chains:
        found.setdefault(chain.key.editor, Counter()).update(count_outcomes([chain]))
    return {name: dict(sorted(counts.items())) for name, counts in found.items()}


def _aucs(summaries: pl.DataFrame, pairs: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Per metric the mean AUC, over the common chains, of each editor that has all of them."""
    level = (
        summaries.filter(pl.col("auc").is_not_null())
        .join(pairs, on=PAIR, how="semi")
        .filter(pl.len().over("metric", "editor") == len(pairs))
    )
    means: dict[str, dict[str, float]] = {
        name: {} for name in sorted(set(summaries["metric"].unique()))
    }
    for (metric, editor), values in by_metric(level, "auc").items():
        means[metric][editor] = float(values.mean())
    return means
