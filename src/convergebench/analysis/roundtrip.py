"""The round-trip study: from a scored run to its findings."""

from __future__ import annotations

import os

import polars as pl

from convergebench.analysis.convergence import checked_threshold, convergence, floors, literal
from convergebench.analysis.curves import (
    auc_findings,
    curve_findings,
    life_findings,
    planned_chains,
)
from convergebench.analysis.findings import (
    DIMENSIONS,
    HEADLINE,
    LITERAL,
    RANKED_BY,
    Findings,
    RunFacts,
)
from convergebench.analysis.footing import life_table
from convergebench.analysis.inert import forward_changes, inert_findings, is_inert
from convergebench.analysis.leaderboard import controls_among, ranking_of, standings_of
from convergebench.analysis.notes import Evidence, notes_of
from convergebench.analysis.published import (
    IS_PUBLISHED,
    editor_origins,
    given_floors,
    measured_metrics,
    promote,
    published_notes,
    without_pictures,
)
from convergebench.analysis.roster import chain_table, expected, home_scores, homecomings
from convergebench.analysis.staleness import stale_metrics
from convergebench.analysis.summaries import (
    chain_summaries,
    dimension_curves,
    headline_summaries,
)
from convergebench.errors import ConvergeBenchError, StoreError
from convergebench.gathering import Gathered, gather
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec
from convergebench.runspec import TRANSPORT
from convergebench.store import RunStore


def analyze(
    *directories: str | os.PathLike[str], threshold: float = 0.5, rounds: int | None = None
) -> Findings:
    """Analyse a scored run and write `findings.json` into it; or several runs together.

    Args:
        directories: The run directories. What several find is written nowhere.
        threshold: Where half-lives are read off.
        rounds: Look only at the first so many homecomings.

    Raises:
        ConvergeBenchError: Frames came home, and no score is there yet; or an import was
            interrupted before the first chain.
        SettingsError: The threshold is not above 0 and at most 1, or `rounds` is below 1.
        StoreMismatch: The runs cannot be compared.
    """
    checked_threshold(threshold)
    return analyze_gathered(gather(directories, rounds=rounds), threshold)


def analyze_gathered(
    gathered: Gathered, threshold: float = 0.5, *, insist: bool = True
) -> Findings:
    """Analyse what was gathered; the findings of a single run are written into it.

    Args:
        gathered: The runs.
        threshold: Where half-lives are read off.
        insist: Whether a run that cannot be written to is an error; a note otherwise.
    """
    suite, chains = gathered.suite, gathered.chains
    table = chain_table(chains, suite, gathered.plan)
    made = homecomings(chains, suite)
    _require_scores(gathered)
    specs, closed = _specs(measured_metrics(gathered.scores, chains))
    promoted = promote(gathered.scores, chains, specs)
    scores = promoted.scores
    floor = floors(scores, specs)
    given = {n: m for n, m in given_floors(gathered.scores, specs).items() if n not in floor}
    floor |= given
    homes = home_scores(scores, chains, suite, specs)
    scored = {name: spec for name, spec in specs.items() if (homes["metric"] == name).any()}
    grid = expected(table, made, scored.values())
    aligned = [name for name, spec in specs.items() if spec.alignment]  # no scale to converge on
    curves = convergence(homes.filter(~pl.col("metric").is_in(aligned)), floor, specs)
    curved = sorted(set(curves["metric"]))

    limits = dict(table.select("chain", "rounds").iter_rows())
    both = pl.concat([curves.select(*_CURVE), dimension_curves(curves)])
    summaries = chain_summaries(both, threshold, rounds=limits)
    summaries = pl.concat([summaries, headline_summaries(summaries)])
    followed, on_lives = life_table(gathered, table)
    limits = dict(followed.select("chain", "rounds").iter_rows())
    lasting = summaries
    if followed is not table:
        lasting = chain_summaries(both, threshold, rounds=limits)
        lasting = pl.concat([lasting, headline_summaries(lasting)])
    literally = chain_summaries(literal(homes, specs), threshold, rounds=limits, interpolate=False)

    editors = sorted(set(table["editor"]))
    transports = [name for name in editors if gathered.editors.get(name, name) == TRANSPORT]
    changes = forward_changes(scores, table, specs, transports)
    inert = is_inert(changes)
    stale = stale_metrics(gathered, specs)
    ranking_metrics = [name for name in RANKED_BY if name not in stale]
    ranked_by = [name for name in ranking_metrics if name in curved]
    controls = controls_among(editors, gathered.editors)
    ranking = ranking_of(editors, summaries, inert, ranked_by, controls)
    whole = _whole(homes, table, [name for name in ranking_metrics if name in scored])

    planned = planned_chains(table, _kinds(specs, set(summaries["metric"])))
    lives, printed = life_findings(
        lasting, planned_chains(followed, _kinds(specs, set(lasting["metric"])))
    )
    told = planned_chains(followed, _kinds(specs, set(literally["metric"])))
    literal_lives, plainly = life_findings(literally, told, "literal-")
    for editor, mine in plainly.items():
        plain = {n: life for n, life in mine.items() if n in promoted.metrics and n not in curved}
        printed.setdefault(editor, {}).update({n + LITERAL: life for n, life in plain.items()})
    origins = editor_origins(promoted, table)
    standings, found = standings_of(
        table, chains, ranking, summaries, printed, whole, _runs(gathered, table), origins
    )
    on_curves = grid.filter(pl.col("metric").is_in(curved))
    result = Findings(
        run=gathered.name,
        suite=gathered.suites,
        metrics=tuple(promoted.label(spec) for spec in specs.values()),
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
                    gathered, scores, table, grid, homes, specs, closed, floor, curved,
                    ranking, inert, whole, on_lives, stale,
                    published_notes(promoted, origins, list(ranking.places), list(given), closed),
                )
            )
        ),
        sources=ranking.sources if ranking.places else 0,
        ranked_by=ranking.metrics,
        threshold=threshold,
        runs=_facts(gathered),
        rounds=gathered.rounds,
    )  # fmt: skip
    return result if gathered.several else _written(result, gathered.runs[0].store, insist)


def _written(result: Findings, store: RunStore, insist: bool) -> Findings:
    """The findings, with a note if they cannot be written into their run."""
    try:
        store.write_json("findings.json", result.model_dump(mode="json"))
    except StoreError as error:
        if insist:
            raise
        note = f"These findings are not in the run's own findings.json: {error}"
        return result.model_copy(update={"notes": (*result.notes, note)})
    return result


_CURVE = ("metric", "chain", "source", "cycle", "editor", "settings", "repeat", "n", "c")


def _require_scores(gathered: Gathered) -> None:
    """Raise where a run's frames came home, and it has no score of them; or nothing at all."""
    for run in gathered.runs:
        if run.imported and not any(chain.steps for chain in run.chains):
            raise ConvergeBenchError(
                f"{run.store.path} has no chains: its import was interrupted. Run the same import "
                "again."
            )
        # What was published of pictures that are here is for comparison with ours, later.
        theirs = without_pictures(run.scores.filter(IS_PUBLISHED), run.chains)
        rows = len(run.scores.filter(~IS_PUBLISHED)) + len(theirs)
        if not rows and len(homecomings(run.chains, run.store.suite)):
            path = run.store.path
            raise ConvergeBenchError(
                f"{path} has no scores yet. Compute them with: convergebench score {path}"
            )


def _runs(gathered: Gathered, table: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """The runs of each editor; nothing to tell where there is only one."""
    if not gathered.several:
        return {}
    mine = table.group_by("editor").agg("chain").iter_rows()
    return {editor: gathered.runs_of(chains) for editor, chains in mine}


def _facts(gathered: Gathered) -> tuple[RunFacts, ...]:
    return tuple(
        RunFacts(
            name=run.name,
            suite=run.store.info.suite,
            fingerprint=run.store.info.fingerprint,
            created=run.store.info.created,
        )
        for run in gathered.runs
        if gathered.several
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
