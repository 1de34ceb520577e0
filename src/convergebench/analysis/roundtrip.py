"""The round-trip study: from a scored run to its findings."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import polars as pl

from convergebench.analysis.contraction import contraction_findings
from convergebench.analysis.curves import (
    auc_findings,
    curve_findings,
    curve_grid,
    life_findings,
    survival_findings,
)
from convergebench.analysis.drift import drift_findings
from convergebench.analysis.evidence import Evidence
from convergebench.analysis.findings import (
    LITERAL,
    RANKED_BY,
    Finding,
    Findings,
    RunFacts,
)
from convergebench.analysis.groups import group_findings
from convergebench.analysis.inert import forward_changes, inert_findings, is_inert
from convergebench.analysis.leaderboard import (
    chosen_metrics,
    controls_among,
    ranking_of,
    standings_of,
)
from convergebench.analysis.notes import notes_of
from convergebench.analysis.pairs import pair_findings
from convergebench.analysis.presence import is_bare
from convergebench.analysis.published import editor_origins, published_notes
from convergebench.analysis.regions import region_findings
from convergebench.analysis.shape import shape_findings
from convergebench.analysis.study import Study, study, study_of
from convergebench.analysis.variance import variance_findings
from convergebench.analysis.worst import worst_findings
from convergebench.errors import StoreError
from convergebench.gathering import Gathered
from convergebench.runspec import TRANSPORT
from convergebench.store import RunStore

Finder = Callable[[Study], list[Finding]]

ON_THE_REVERSIBLE: Final[tuple[Finder, ...]] = (
    survival_findings,
    contraction_findings,
    shape_findings,
    drift_findings,
    region_findings,
    variance_findings,
    worst_findings,
)
"""What else is found on the chains that the headline is made of."""

ON_ALL: Final[tuple[Finder, ...]] = (group_findings,)
"""What else is found on all chains, the partially reversible among them."""


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
    found = study(*directories, threshold=threshold, rounds=rounds)
    return _kept(findings_of(found), found.gathered, insist=True)


def analyze_gathered(
    gathered: Gathered, threshold: float = 0.5, *, insist: bool = True, partial: bool = False
) -> Findings:
    """Analyse what was gathered; the findings of a single run are written into it.

    Args:
        gathered: The runs.
        threshold: Where half-lives are read off.
        insist: Whether a run that cannot be written to is an error; a note otherwise.
        partial: Whether a run without any score is looked at all the same.
    """
    return _kept(findings_of(study_of(gathered, threshold, partial=partial)), gathered, insist)


def findings_of(whole: Study) -> Findings:
    """Everything a report shows, from the tables alone.

    Cycles that are only partially reversible are kept out of all but the numbers by group.
    """
    main = whole.only(pl.col("reversible"))
    gathered, specs, promoted = whole.gathered, whole.specs, whole.promoted
    transports = [n for n in main.editors if gathered.editors.get(n, n) == TRANSPORT]
    changes = forward_changes(main.scores, main.chains, specs, transports)
    inert = is_inert(changes)
    controls = controls_among(main.editors, gathered.editors)
    metrics, narrowed = chosen_metrics(main, inert)
    ranking = ranking_of(main.editors, main.summaries, inert, metrics, controls, narrowed)
    scored = set(main.homes["metric"].unique())
    measured = [name for name in RANKED_BY if name not in main.stale and name in scored]
    complete = _complete(main.homes, main.chains, measured)

    lives, printed = life_findings(main.lives, main.planned(main.lives, main.followed))
    plain, plainly = life_findings(main.plain, main.planned(main.plain, main.followed), "literal-")
    for editor, mine in plainly.items():
        shown = {
            n: life for n, life in mine.items() if n in promoted.metrics and n not in main.curved
        }
        printed.setdefault(editor, {}).update({n + LITERAL: life for n, life in shown.items()})
    origins = editor_origins(promoted, main.chains)
    standings, found = standings_of(
        main.chains, gathered.chains, ranking, main.summaries, printed, complete,
        _runs(gathered, main.chains), origins,
    )  # fmt: skip
    said = published_notes(promoted, origins, list(ranking.places), list(whole.given), whole.closed)
    return Findings(
        run=gathered.name,
        suite=gathered.suites,
        metrics=tuple(promoted.label(spec) for spec in specs.values()),
        common=len(ranking.common) if ranking.places else 0,
        floors=dict(whole.floor),
        standings=tuple(standings),
        findings=(
            *found,
            *pair_findings(ranking.pairs, len(ranking.common)),
            *auc_findings(main.summaries, main.planned(main.summaries)),
            *lives,
            *plain,
            *inert_findings(changes, main.chains),
            *(finding for finder in ON_THE_REVERSIBLE for finding in finder(main)),
            *(finding for finder in ON_ALL for finding in finder(whole)),
            *curve_findings("value", main.homes, "value", main.grid),
            *curve_findings("convergence", main.curves, "c", curve_grid(main)),
        ),
        notes=tuple(notes_of(Evidence(main, whole, ranking, inert, complete, said))),
        sources=ranking.sources if ranking.places else 0,
        ranked_by=ranking.metrics,
        threshold=whole.threshold,
        runs=_facts(gathered),
        rounds=gathered.rounds,
    )


def _kept(result: Findings, gathered: Gathered, insist: bool) -> Findings:
    """The findings, written into their run if it is a single one; with a note if they cannot be."""
    if gathered.several:
        return result
    store: RunStore = gathered.runs[0].store
    if is_bare(gathered.runs[0]):
        return result  # a submission: its files are what its checksums say
    try:
        store.write_json("findings.json", result.model_dump(mode="json"), indent=None)
    except StoreError as error:
        if insist:
            raise
        note = f"These findings are not in the run's own findings.json: {error}"
        return result.model_copy(update={"notes": (*result.notes, note)})
    return result


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


def _complete(homes: pl.DataFrame, table: pl.DataFrame, metrics: list[str]) -> dict[str, int]:
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
