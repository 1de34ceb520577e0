"""The pages that stand beside the report's first one, where a run has something for them.

The trial of the metrics is made anew from the scores; failures and self-evaluation are shown as
their own commands have left them in the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from convergebench import failures, trial
from convergebench.errors import ConvergeBenchError
from convergebench.gathering import Gathered
from convergebench.reporter.failures import write_failures
from convergebench.reporter.selfeval import write_self_evaluation
from convergebench.reporter.trial import write_trial
from convergebench.selfeval.evaluation import stored

LEAST: Final = 10
"""Steps that replications must have before their metrics are put on trial in a report."""


@dataclass(frozen=True)
class Companion:
    """A page, and what it tells."""

    page: str
    title: str
    about: str


PAGES: Final = (
    Companion(
        "trial.html",
        "Trial of the metrics",
        "do no-reference metrics notice that replicated frames get worse?",
    ),
    Companion(
        "failures.html",
        "Failures by kind",
        "what went wrong, how often and from which step on, with evidence",
    ),
    Companion(
        "self-evaluation.html", "Self-evaluation", "when the editors themselves noticed the damage"
    ),
)


def standing_companions(folder: Path) -> tuple[Companion, ...]:
    """Those that are there from before: a page that follows a run must not draw them each time."""
    return tuple(one for one in PAGES if (folder / one.page).is_file())


def write_companions(folder: Path, gathered: Gathered) -> tuple[Companion, ...]:
    """Write what there is to be written; says what it was, so that the first page can link it."""
    written: set[str] = set()
    tried = tried_of(gathered)
    if tried is not None:
        trial.write_tables(tried, folder)
        written.add(write_trial(tried, folder, pictures=_pictures(gathered)).name)
    if not gathered.several:
        store = gathered.runs[0].store
        failed, noticed = failures.stored(store.path), stored(store)
        if failed is not None:
            written.add(write_failures(failed, folder).name)
        if noticed is not None:
            written.add(write_self_evaluation(noticed, folder, store.path).name)
    return tuple(one for one in PAGES if one.page in written)


def _pictures(gathered: Gathered) -> dict[str, Path]:
    """The file of each source that is here."""
    return {
        chain.key.source: gathered.stores[chain.key.id].frame_path(chain.source)
        for chain in gathered.chains
        if chain.source
    }


def tried_of(gathered: Gathered) -> trial.Trial | None:
    """The trial, where replications are long enough and no-reference scores are there."""
    kinds = {cycle.name: cycle.kind for cycle in gathered.suite.cycle}
    longest = max(
        (
            chain.length
            for chain in gathered.chains
            if kinds[chain.key.cycle.partition("@")[0]] == "replicate"
        ),
        default=0,
    )
    if longest < LEAST or not gathered.scores.select((pl.col("against") == "none").any()).item():
        return None
    steps = [step for step in trial.STEPS if step <= longest]
    try:
        return trial.try_metrics(*(run.store.path for run in gathered.runs), steps=steps)
    except ConvergeBenchError:  # only controls, say: the report has nothing to tell of it then
        return None
