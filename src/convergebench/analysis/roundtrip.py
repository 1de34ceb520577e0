"""The round-trip study: from a scored run to its findings."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
from pydantic import ValidationError

from convergebench.analysis.convergence import checked_threshold, convergence, floors, literal
from convergebench.analysis.curves import (
    auc_findings,
    curve_findings,
    life_findings,
    planned_chains,
)
from convergebench.analysis.findings import DIMENSIONS, HEADLINE, RANKED_BY, Findings
from convergebench.analysis.inert import forward_changes, inert_findings, is_inert
from convergebench.analysis.leaderboard import controls_among, ranking_of, standings_of
from convergebench.analysis.notes import Evidence, notes_of
from convergebench.analysis.roster import chain_table, expected, home_scores, homecomings
from convergebench.analysis.summaries import (
    chain_summaries,
    dimension_curves,
    headline_summaries,
)
from convergebench.errors import ConvergeBenchError, explain
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec
from convergebench.runspec import RunSpec
from convergebench.store import RunStore


def analyze(directory: str | os.PathLike[str], *, threshold: float = 0.5) -> Findings:
    """Analyse a scored run and write `findings.json` into it.

    Args:
        directory: The run directory.
        threshold: Where half-lives are read off.

    Raises:
        ConvergeBenchError: Frames came home, and no score is there yet.
        SettingsError: The threshold is not above 0 and at most 1.
    """
    checked_threshold(threshold)
    store = RunStore.open(Path(directory))
    suite, scores, chains = store.suite, store.scores(), store.chains()
    plan, problems = _plan(store)
    table = chain_table(chains, suite, plan)
    made = homecomings(chains, suite)
    if scores.is_empty() and len(made):
        raise ConvergeBenchError(
            f"{store.path} has no scores yet. Compute them with: convergebench score {store.path}"
        )
    specs, closed = _specs(scores)
    floor = floors(scores, specs)
    homes = home_scores(scores, chains, suite, specs)
    scored = {name: spec for name, spec in specs.items() if (homes["metric"] == name).any()}
    grid = expected(table, made, scored.values())
    aligned = [name for name, spec in specs.items() if spec.alignment]  # no scale to converge on
    curves = convergence(homes.filter(~pl.col("metric").is_in(aligned)), floor, specs)
    curved = sorted(set(curves["metric"]))

    rounds = dict(table.select("chain", "rounds").iter_rows())
    both = pl.concat([curves.select(*_CURVE), dimension_curves(curves)])
    summaries = chain_summaries(both, threshold, rounds=rounds)
    summaries = pl.concat([summaries, headline_summaries(summaries)])
    literally = chain_summaries(literal(homes, specs), threshold, rounds=rounds, interpolate=False)

    changes = forward_changes(scores, table, specs)
    inert = is_inert(changes)
    editors = sorted(set(table["editor"]))
    ranked_by = [name for name in RANKED_BY if name in curved]
    ranking = ranking_of(editors, summaries, inert, ranked_by, controls_among(editors))
    whole = _whole(homes, table, [name for name in RANKED_BY if name in scored])

    planned = planned_chains(table, _kinds(specs, set(summaries["metric"])))
    lives, printed = life_findings(summaries, planned)
    told = planned_chains(table, _kinds(specs, set(literally["metric"])))
    literal_lives, _ = life_findings(literally, told, "literal-")
    standings, found = standings_of(table, chains, ranking, summaries, printed, whole)
    on_curves = grid.filter(pl.col("metric").is_in(curved))
    result = Findings(
        run=store.path.resolve().name,
        suite=store.info.suite,
        metrics=tuple(spec.label for spec in specs.values()),
        common=len(ranking.common) if ranking.places else 0,
        floors=floor,
        standings=tuple(standings),
        findings=(
            *found,
            *auc_findings(summaries, planned),
            *lives,
            *literal_lives,
            *inert_findings(changes, table),
            *curve_findings("value", homes, "value", grid),
            *curve_findings("convergence", curves, "c", on_curves),
        ),
        notes=tuple(
            notes_of(
                Evidence(
                    store.path, scores, table, grid, homes, specs, closed, floor, curved,
                    ranking, inert, whole, problems,
                )
            )
        ),
        sources=ranking.sources if ranking.places else 0,
        ranked_by=ranking.metrics,
        threshold=threshold,
    )  # fmt: skip
    store.write_json("findings.json", result.model_dump(mode="json"))
    return result


_CURVE = ("metric", "chain", "source", "cycle", "editor", "settings", "repeat", "n", "c")


def _plan(store: RunStore) -> tuple[RunSpec | None, list[str]]:
    """What the run was asked to do, if that is known; and a sentence when it cannot be read."""
    told = store.read_json("spec.json")
    if told is None:
        return None, []
    try:
        plan = RunSpec.model_validate(told)
        plan.keys(store.suite)
    except (ValidationError, ConvergeBenchError) as error:
        why = explain(error)
        return None, [f"What was planned is unknown (spec.json: {why}); N is the longest chain's."]
    return plan, []


def _specs(scores: pl.DataFrame) -> tuple[dict[str, MetricSpec], dict[str, str]]:
    """The cards of the metrics that have rows; and why those are missing that have none here.

    Those of the dimensions come first, then the others, last those of the frame's alignment.
    """
    found: dict[str, MetricSpec] = {}
    closed: dict[str, str] = {}
    for name in sorted(set(scores["metric"])):
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


def _kinds(specs: dict[str, MetricSpec], metrics: set[str]) -> dict[str, bool]:
    """Whether content is enough for each metric, dimension and the headline."""
    kinds = {name: spec.kind == "semantic" for name, spec in specs.items()}
    kinds |= {name: all(kinds.get(m, False) for m in DIMENSIONS[name]) for name in DIMENSIONS}
    kinds[HEADLINE] = False
    return {name: kinds[name] for name in metrics}


def _whole(homes: pl.DataFrame, table: pl.DataFrame, metrics: list[str]) -> dict[str, int]:
    """How many chains of each editor came home as often as they should, all of it scored."""
    counts = (
        homes.filter(pl.col("metric").is_in(metrics) & pl.col("value").is_not_null())
        .select("chain", "metric", "n")
        .join(table.select("chain", "editor", "rounds"), on="chain")
        .filter(pl.col("n") <= pl.col("rounds"))
        .group_by("editor", "chain", "rounds")
        .agg(pl.len())
        .filter(pl.col("len") == pl.col("rounds") * len(metrics))
    )
    return dict(counts.group_by("editor").agg(pl.len()).iter_rows())
