"""The worst chains: which edit, of which image, and how fast."""

from __future__ import annotations

from typing import Final

import polars as pl

from convergebench.analysis.findings import DIMENSIONS, HEADLINE, Finding
from convergebench.analysis.groups import SCORE
from convergebench.analysis.leaderboard import controls_among, judged, ranking_metrics
from convergebench.analysis.study import Study

OVERALL: Final = 12
EACH: Final = 3
"""How many are named, of all editors together and of each."""


def worst_findings(main: Study) -> list[Finding]:
    """The chains with the lowest AUC of what ranks, worst first; those of controls are not news.

    A chain that is not complete has no AUC: who refuses or fails is counted, not shown here.
    """
    metrics = ranking_metrics(main)
    if not metrics:
        return []
    controls = controls_among(main.editors, main.gathered.editors)
    rated = judged(main.summaries, metrics).filter(~pl.col("editor").is_in(list(controls)))
    # Of several metrics the first to fall counts; of two equal times the one that fell.
    falls = (
        main.summaries.filter(pl.col("metric").is_in(metrics))
        .sort("chain", "half_life", ~pl.col("fell"))
        .group_by("chain", maintain_order=True)
        .agg(pl.col("half_life").first(), pl.col("fell").first())
    )
    ordered = (
        rated.select("chain", "editor", "source", "cycle", "auc")
        .join(falls, on="chain")
        .join(main.chains.select("chain", "image", "edit", "rounds"), on="chain")
        .sort("auc", "half_life", "chain")
        .with_columns(place=pl.int_range(pl.len()).over("editor"))
    )
    some = ordered.with_row_index("at").filter((pl.col("at") < OVERALL) | (pl.col("place") < EACH))
    name = metrics[0] if len(metrics) == 1 else SCORE
    beside = _dimensions(main) if metrics == [HEADLINE] else {}
    found = []
    for i, row in enumerate(some.iter_rows(named=True), 1):
        fell = (
            f"below {main.threshold:g} after {row['half_life']:.2f} rounds"
            if row["fell"]
            else f"still above {main.threshold:g} after {row['rounds']} rounds"
        )
        image = f"{row['source']} ({row['image']})" if row["image"] else row["source"]
        found.append(
            Finding(
                id=f"worst/{i}",
                estimate=row["auc"],
                n=1,
                note=f"{row['cycle']} of {image}: {fell}{beside.get(row['chain'], '')}",
                metric=name,
                editor=row["editor"],
                group=f"{row['cycle']} / {row['image'] or row['source']}",
                at=row["half_life"] if row["fell"] else None,
                chain=row["chain"],
            )
        )
    return found


def _dimensions(main: Study) -> dict[str, str]:
    """By chain what quality and semantic say, because the headline is never told alone."""
    told: dict[str, str] = {}
    for name in DIMENSIONS:
        mine = main.summaries.filter((pl.col("metric") == name) & pl.col("auc").is_not_null())
        for chain, auc, time, fell in mine.select("chain", "auc", "half_life", "fell").iter_rows():
            when = f"after {time:.2f}" if fell else "not yet"
            told[chain] = f"{told.get(chain, '')}; {name} {when}, AUC {auc:.3f}"
    return told
