"""The pages that stand beside the report's first one, where a run has something for them.

The trial of the metrics is made anew from the scores; failures and self-evaluation are shown as
their own commands have left them in the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl

from convergebench import failures, opinions, restoration, trial
from convergebench.errors import ConvergeBenchError, InputError
from convergebench.gathering import Gathered
from convergebench.opinions.keeping import answers_in, has_answers
from convergebench.reporter.failures import write_failures
from convergebench.reporter.opinions import write_ratings
from convergebench.reporter.restoration import shots_of, write_restoration
from convergebench.reporter.restoration.words import facts_of, studied
from convergebench.reporter.selfeval import write_self_evaluation
from convergebench.reporter.trial import write_trial
from convergebench.selfeval.evaluation import stored

LEAST: Final = 10
"""Steps that replications must have before their metrics are put on trial in a report."""


@dataclass(frozen=True)
class Companion:
    """A page, and what it tells; `lead` is what it has to say first, where it is the main one."""

    page: str
    title: str
    about: str
    lead: str = ""


PAGES: Final = (
    Companion(
        "restoration.html",
        "Restoration",
        "can it repair? prompts, stability, methods, what people say",
    ),
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
    Companion(
        "ratings.html", "Ratings", "what people say, how far they agree, and which metrics do"
    ),
)


@dataclass(frozen=True)
class Beside:
    """What stands beside the first page, and the studies that were made for it."""

    pages: tuple[Companion, ...] = ()
    trial: trial.Trial | None = None
    restoration: restoration.Restoration | None = None

    @property
    def leads(self) -> bool:
        """Whether one of the pages, and not the first, tells what was found."""
        return any(page.lead for page in self.pages)


def standing_companions(folder: Path) -> Beside:
    """Those that are there from before: a page that follows a run must not draw them each time."""
    return Beside(tuple(one for one in PAGES if (folder / one.page).is_file()))


def write_companions(folder: Path, gathered: Gathered) -> Beside:
    """Write what there is to be written; says what it was, so that the first page can link it."""
    written: set[str] = set()
    leads: dict[str, str] = {}
    restored = restored_of(gathered)
    if restored is not None:
        page = write_restoration(restored, folder, shots=shots_of(restored, gathered)).name
        written.add(page)
        if _kinds(gathered) == {"restore"}:
            leads[page] = studied(facts_of(restored))
    tried = tried_of(gathered)
    if tried is not None:
        trial.write_tables(tried, folder)
        written.add(write_trial(tried, folder, pictures=_pictures(gathered)).name)
    if not gathered.several:
        store = gathered.runs[0].store
        failed, noticed = failures.stored(store.place), stored(store)
        if failed is not None:
            written.add(write_failures(failed, folder).name)
        if noticed is not None:
            written.add(write_self_evaluation(noticed, folder, store.place).name)
        rated = rated_of(gathered)
        if rated is not None:
            written.add(write_ratings(rated, folder).name)
    pages = [replace(one, lead=leads.get(one.page, "")) for one in PAGES if one.page in written]
    return Beside(tuple(pages), tried, restored)


def _kinds(gathered: Gathered) -> set[str]:
    """The kinds of the cycles that were walked."""
    return {gathered.suite.cycle_of(chain.key.cycle).kind for chain in gathered.chains}


def restored_of(gathered: Gathered) -> restoration.Restoration | None:
    """The restoration study, where pictures were restored and there are scores of them."""
    if "restore" not in _kinds(gathered):
        return None
    try:
        return restoration.judge_restorations(gathered)
    except ConvergeBenchError:  # nothing of it is scored, say
        return None


def rated_of(gathered: Gathered) -> opinions.Opinions | None:
    """What people say of a run, where it has their answers."""
    store, scores = gathered.runs[0].store, gathered.scores
    if not has_answers(store, scores):
        return None
    try:
        return opinions.analyse(answers_in(store, scores), scores, title=store.name)
    except InputError:  # only practice and attention items were answered
        return None


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
        return trial.try_metrics(*(run.store.place for run in gathered.runs), steps=steps)
    except ConvergeBenchError:  # only controls, say: the report has nothing to tell of it then
        return None
