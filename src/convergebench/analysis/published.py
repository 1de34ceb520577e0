"""Scores that somebody else measured: of chains whose pictures are not here they are all there is.

Where there are pictures we measure them, and what was published stays in the score files beside
ours. Chains without pictures enter with their published scores, and everything that rests on them
says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from convergebench.analysis.convergence import oriented_means
from convergebench.chain import Chain
from convergebench.comparisons import ANSWERS, FLOOR_PREFIX, GIVEN, PUBLISHED
from convergebench.metric import MetricSpec
from convergebench.registry import names
from convergebench.wording import shown

IS_PUBLISHED: Final = pl.col("version").str.starts_with(PUBLISHED)


@dataclass(frozen=True)
class Promoted:
    """Score rows to analyse, and which of them are not ours.

    Attributes:
        scores: Our rows, and the published ones of chains without pictures under our version.
        origins: Who published the scores of each chain without pictures.
        metrics: The metrics that have such rows, each with its chains' number by origin.
        alone: Of these metrics, those that have no row of ours.
        other: Published metrics that none here is known to equal.
        unmeasured: Published metrics of pictures that are here and were not measured by us.
    """

    scores: pl.DataFrame
    origins: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    other: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()

    def label(self, spec: MetricSpec) -> str:
        """Name and version; of a metric that only others measured, who."""
        if spec.name not in self.alone:
            return spec.label
        return f"{spec.name}@{PUBLISHED}{'+'.join(sorted(self.metrics[spec.name]))}"


def promote(
    scores: pl.DataFrame, chains: Sequence[Chain], specs: Mapping[str, MetricSpec]
) -> Promoted:
    """Let published scores stand in where there are no pictures to measure."""
    published = scores.filter(IS_PUBLISHED)
    ours = scores.filter(~IS_PUBLISHED)
    if published.is_empty():
        return Promoted(scores)
    # A column that was never filled in is no score that somebody published.
    told = published.filter(pl.col("value").is_not_null())
    idle = sorted(set(told["metric"]) - set(specs))
    known = set(names("metrics"))
    unmeasured = [name for name in idle if name.partition(":")[0] in known]
    versions = {name: spec.version for name, spec in specs.items()}
    stand_in = (
        without_pictures(published, chains)
        .filter(pl.col("metric").is_in(list(specs)))
        .with_columns(origin=pl.col("version").str.strip_prefix(PUBLISHED))
        .with_columns(version=pl.col("metric").replace(versions))
        .unique(scores.columns[:6], keep="first", maintain_order=True)
    )
    by_chain = stand_in.group_by("chain", maintain_order=True).agg(pl.col("origin").unique())
    counts = stand_in.group_by("metric", "origin").agg(pl.col("chain").n_unique())
    metrics: dict[str, dict[str, int]] = {}
    for metric, origin, count in counts.sort("metric", "origin").iter_rows():
        metrics.setdefault(metric, {})[origin] = count
    measured = set(ours.filter(~pl.col("chain").str.starts_with(FLOOR_PREFIX))["metric"])
    return Promoted(
        scores=pl.concat([ours, stand_in.select(scores.columns)]),
        origins={chain: ", ".join(sorted(names)) for chain, names in by_chain.iter_rows()},
        metrics=metrics,
        alone=frozenset(metrics) - measured,
        other=tuple(name for name in idle if name not in unmeasured),
        unmeasured=tuple(unmeasured),
    )


def held_frames(chains: Sequence[Chain]) -> pl.DataFrame:
    """Chain and step of every frame whose picture is here."""
    told = {"chain": [c.key.id for c in chains], "step": [list(c.held) for c in chains]}
    schema = {"chain": pl.String(), "step": pl.List(pl.Int32())}
    return pl.DataFrame(told, schema=schema).explode("step").drop_nulls()


def without_pictures(scores: pl.DataFrame, chains: Sequence[Chain]) -> pl.DataFrame:
    """The score rows of these chains' frames that are not here."""
    known = [chain.key.id for chain in chains]
    mine = scores.filter(pl.col("chain").is_in(known))
    return mine.join(held_frames(chains), on=["chain", "step"], how="anti", maintain_order="left")


def measured_metrics(scores: pl.DataFrame, chains: Sequence[Chain]) -> set[str]:
    """The metrics that have rows of ours, or published ones that may stand in for them.

    Answers of people and judges are no metric's: `rate analyze` and `restoration` look at them.
    """
    theirs = without_pictures(scores.filter(IS_PUBLISHED), chains)
    ours = scores.filter(~IS_PUBLISHED)["metric"].unique()
    return {name for name in (*ours, *theirs["metric"].unique()) if not name.startswith(ANSWERS)}


def given_floors(scores: pl.DataFrame, specs: Mapping[str, MetricSpec]) -> dict[str, float]:
    """Oriented floors that came with published scores, by metric."""
    rows = scores.filter(
        (pl.col("chain") == FLOOR_PREFIX + GIVEN)
        & (pl.col("against") == GIVEN)
        & pl.col("value").is_not_null()
    )
    return oriented_means(rows, specs)


def editor_origins(promoted: Promoted, table: pl.DataFrame) -> dict[str, str]:
    """Per editor with published scores who published them, and whether all of its are so."""
    found: dict[str, str] = {}
    for editor, chains in table.group_by("editor").agg("chain").iter_rows():
        theirs = [promoted.origins[chain] for chain in chains if chain in promoted.origins]
        if theirs:
            part = "" if len(theirs) == len(chains) else "partly "
            found[editor] = f"{part}published by {', '.join(sorted(set(theirs)))}"
    return found


def published_notes(
    promoted: Promoted,
    origins: Mapping[str, str],
    ranked: Sequence[str],
    given: Sequence[str],
    closed: Mapping[str, str],
) -> list[str]:
    """What a reader has to know about scores that are not ours.

    Args:
        promoted: What was promoted.
        origins: What `editor_origins` answered.
        ranked: The ranked editors.
        given: The metrics whose floor came with published scores.
        closed: The metrics that cannot be opened, which has a note of its own.
    """
    notes = []
    told: dict[tuple[str, int], list[str]] = {}
    for metric, counts in promoted.metrics.items():
        for origin, count in counts.items():
            told.setdefault((origin, count), []).append(metric)
    for (origin, count), metrics in told.items():
        chains = "1 chain" if count == 1 else f"{count} chains"
        are = "is" if len(metrics) == 1 else "are"
        notes.append(
            f"{', '.join(metrics)} of {chains} {are} as published by {origin}, not measured here."
        )
    theirs = [name for name in ranked if name in origins]
    if theirs and len(theirs) < len(ranked):
        mine = [name for name in ranked if name not in origins]
        notes.append(
            f"The ranking mixes published scores ({shown(theirs)}) with scores measured here "
            f"({shown(mine)}): where their code measures otherwise, so does the rank."
        )
    if given:
        notes.append(
            f"The floor of {', '.join(given)} was given with the published scores, not measured "
            "here."
        )
    if promoted.other:
        notes.append(
            "Published under names that are no metric here, so in the score files only: "
            f"{', '.join(promoted.other)}."
        )
    unmeasured = [name for name in promoted.unmeasured if name not in closed]
    if unmeasured:
        notes.append(
            f"{', '.join(unmeasured)}: published and not measured here, so in the score files "
            f"only. `convergebench score RUN --metrics {','.join(unmeasured)}` measures the "
            "pictures."
        )
    return notes
