"""A study: the tables of one or several scored runs, from which every finding is made.

The tables are made once; findings are pure functions of them. In a notebook they are the place to
begin: `study("my-run").curves` is a polars frame.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import polars as pl

from convergebench.analysis.convergence import checked_threshold, convergence, floors, literal
from convergebench.analysis.curves import Plans, planned_chains
from convergebench.analysis.findings import DIMENSIONS, HEADLINE
from convergebench.analysis.footing import life_table
from convergebench.analysis.published import (
    IS_PUBLISHED,
    Promoted,
    given_floors,
    measured_metrics,
    promote,
    without_pictures,
)
from convergebench.analysis.roster import chain_table, expected, home_scores, homecomings
from convergebench.analysis.staleness import stale_metrics
from convergebench.analysis.summaries import (
    KEYS,
    chain_summaries,
    dimension_curves,
    headline_curves,
    headline_summaries,
)
from convergebench.errors import ConvergeBenchError
from convergebench.gathering import Gathered, gather
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec

_CURVE: Final = (*KEYS, "n", "c")
_BY_CHAIN: Final = ("chains", "homes", "grid", "curves", "summaries", "followed", "lives", "plain")


@dataclass(frozen=True)
class Study:
    """The tables of a study.

    Attributes:
        gathered: The runs.
        threshold: Where half-lives are read off.
        specs: The metrics that have rows and can be opened.
        closed: Why the others cannot.
        promoted: What was published elsewhere and stands in for scores of ours.
        stale: Per metric the runs that have it in other versions only, and in which.
        floor: Oriented floors m0 by metric.
        given: Those of them that came with published scores.
        scores: All score rows, in all versions: every frame against home, the frame before …
        chains: One row per chain, recorded or planned (`roster.CHAIN_COLUMNS`).
        homes: The scores at homecomings, in current versions: metric, chain …, n, value.
        grid: Every homecoming expected, by metric.
        curves: C(n) by chain and metric; the dimensions and the headline are metrics here too.
        summaries: One row per chain and metric: AUC, half-life, completeness.
        followed: The chains that half-lives are over; `rounds` is cut where runs differ.
        on_lives: A sentence on these.
        lives: The summaries that half-lives are read from, over `followed`.
        plain: The same by the literal rule.
    """

    gathered: Gathered
    threshold: float
    specs: Mapping[str, MetricSpec]
    closed: Mapping[str, str]
    promoted: Promoted
    stale: Mapping[str, Mapping[str, tuple[str, ...]]]
    floor: Mapping[str, float]
    given: Mapping[str, float]
    scores: pl.DataFrame
    chains: pl.DataFrame
    homes: pl.DataFrame
    grid: pl.DataFrame
    curves: pl.DataFrame
    summaries: pl.DataFrame
    followed: pl.DataFrame
    on_lives: str
    lives: pl.DataFrame
    plain: pl.DataFrame

    def only(self, which: pl.Expr) -> Self:
        """The same study of some chains, chosen by columns of `chains`. Floors stay."""
        kept = self.chains.filter(which).select("chain")
        tables = {
            name: getattr(self, name).join(kept, on="chain", how="semi", maintain_order="left")
            for name in _BY_CHAIN
        }
        return dataclasses.replace(self, **tables)

    @property
    def editors(self) -> list[str]:
        """Their names, in order."""
        return sorted(set(self.chains["editor"].unique()))

    @property
    def curved(self) -> list[str]:
        """The metrics that have convergence; dimensions and headline aside."""
        return sorted(set(self.curves["metric"].unique()) - {*DIMENSIONS, HEADLINE})

    def planned(self, summaries: pl.DataFrame, table: pl.DataFrame | None = None) -> Plans:
        """How many chains should have values of each metric that some summaries have."""
        kinds = {name: spec.kind == "semantic" for name, spec in self.specs.items()}
        kinds |= {name: all(kinds.get(m, False) for m in DIMENSIONS[name]) for name in DIMENSIONS}
        kinds[HEADLINE] = False
        wanted = {name: kinds[name] for name in set(summaries["metric"].unique())}
        return planned_chains(self.chains if table is None else table, wanted)


def study(
    *directories: str | os.PathLike[str], threshold: float = 0.5, rounds: int | None = None
) -> Study:
    """The tables of a scored run, or of several together. Nothing is written.

    Args:
        directories: The run directories.
        threshold: Where half-lives are read off.
        rounds: Look only at the first so many homecomings.

    Raises:
        ConvergeBenchError: Frames came home, and no score is there yet.
        SettingsError: The threshold is not above 0 and at most 1, or `rounds` is below 1.
        StoreMismatch: The runs cannot be compared.
    """
    checked_threshold(threshold)
    return study_of(gather(directories, rounds=rounds), threshold)


def study_of(gathered: Gathered, threshold: float = 0.5, *, partial: bool = False) -> Study:
    """The tables of what was gathered; `partial` takes runs without any score as well."""
    suite, chains = gathered.suite, gathered.chains
    table = chain_table(chains, suite, gathered.plan)
    if not partial:
        _require_scores(gathered)
    specs, closed = _specs(measured_metrics(gathered.scores, chains))
    promoted = promote(gathered.scores, chains, specs)
    floor = floors(promoted.scores, specs)
    given = {n: m for n, m in given_floors(gathered.scores, specs).items() if n not in floor}
    floor |= given
    homes = home_scores(promoted.scores, chains, suite, specs)
    scored = [spec for name, spec in specs.items() if (homes["metric"] == name).any()]
    aligned = [name for name, spec in specs.items() if spec.alignment]  # no scale to converge on
    curves = convergence(homes.filter(~pl.col("metric").is_in(aligned)), floor, specs)
    curves = pl.concat([curves.select(_CURVE), dimension_curves(curves)])
    curves = pl.concat([curves, headline_curves(curves)])
    followed, on_lives = life_table(gathered, table)
    summaries = _summaries(curves, table, threshold)
    ends = dict(followed.select("chain", "rounds").iter_rows())
    return Study(
        gathered=gathered,
        threshold=threshold,
        specs=specs,
        closed=closed,
        promoted=promoted,
        stale=stale_metrics(gathered, specs),
        floor=floor,
        given=given,
        scores=promoted.scores,
        chains=table,
        homes=homes,
        grid=expected(table, homecomings(chains, suite), scored),
        curves=curves,
        summaries=summaries,
        followed=followed,
        on_lives=on_lives,
        lives=summaries if followed is table else _summaries(curves, followed, threshold),
        plain=chain_summaries(literal(homes, specs), threshold, rounds=ends, interpolate=False),
    )


def _summaries(curves: pl.DataFrame, table: pl.DataFrame, threshold: float) -> pl.DataFrame:
    ends = dict(table.select("chain", "rounds").iter_rows())
    found = chain_summaries(curves, threshold, rounds=ends)
    return pl.concat([found.filter(pl.col("metric") != HEADLINE), headline_summaries(found)])


def _require_scores(gathered: Gathered) -> None:
    """Raise where a run's frames came home, and it has no score of them; or nothing at all."""
    for run in gathered.runs:
        if run.imported and not any(chain.steps for chain in run.chains):
            raise ConvergeBenchError(
                f"{run.store.place} has no chains: its import was interrupted. Run the same import "
                "again."
            )
        # What was published of pictures that are here is for comparison with ours, later.
        theirs = without_pictures(run.scores.filter(IS_PUBLISHED), run.chains)
        rows = len(run.scores.filter(~IS_PUBLISHED)) + len(theirs)
        if not rows and len(homecomings(run.chains, run.store.suite)):
            path = run.store.place
            raise ConvergeBenchError(
                f"{path} has no scores yet. Compute them with: convergebench score {path}"
            )


def _specs(names: set[str]) -> tuple[dict[str, MetricSpec], dict[str, str]]:
    """The cards of the metrics that have rows; and why those are missing that have none here.

    Those of the dimensions come first, then the others, last those of the frame's alignment.
    """
    found: dict[str, MetricSpec] = {}
    closed: dict[str, str] = {}
    for name in sorted(names):
        try:
            found[name] = metric_spec(name)
        except ConvergeBenchError as error:
            closed[name] = str(error)
        except Exception as error:  # foreign code must not take the other metrics' numbers away
            closed[name] = f"{type(error).__name__}: {error}"
    first = [name for group in DIMENSIONS.values() for name in group]
    order = sorted(
        found,
        key=lambda name: (
            first.index(name) if name in first else len(first),
            found[name].alignment,
            name,
        ),
    )
    return {name: found[name] for name in order}, closed
