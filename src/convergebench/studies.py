"""A whole study in one command: run, score, look for failures, try the metrics, report.

What is looked for follows from the chains: replications are searched for failures and put metrics
on trial; restorations are judged.

Every part is what its own command does, and resumes as it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from convergebench import failures, selfeval, trial
from convergebench.engines import open_engine
from convergebench.errors import MetricUnavailable, SettingsError
from convergebench.planner import plan
from convergebench.presets import About, open_preset
from convergebench.progress import Snapshot, Stand, Told
from convergebench.registry import open_editor
from convergebench.reporter import Report, report
from convergebench.restoration import Restoration
from convergebench.runner import RunResult, run
from convergebench.scorer import ScoreProgress, score
from convergebench.selfeval.evaluation import stored, summaries
from convergebench.store import RunStore
from convergebench.table import Table
from convergebench.wording import in_order

Observe = Callable[[str, Told], None]
"""Told the part that is being done, and how far it is."""


@dataclass(frozen=True)
class Studied:
    """A study, as far as it went.

    Attributes:
        run: How the chains' walk ended.
        report: The report that was written, with its findings; None where somebody interrupted.
        trial: The trial of the metrics; None where the chains are too short for one.
        restoration: What restorations came to; None where nothing was restored.
        notes: What was left out, and why.
    """

    run: RunResult
    report: Report | None = None
    trial: trial.Trial | None = None
    restoration: Restoration | None = None
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """The study's own table; the leaderboard where it has none; else how the run ended."""
        if self.report is None:
            return self.run.table
        told = (self.trial or self.restoration or self.report).table
        walked = self.run.table.notes if self.run.stopped or not self.run.complete else ()
        notes = [*told.notes, *self.notes, *walked, f"Report: {self.report.path}"]
        return Table(told.title, told.columns, told.rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            **(self.report.to_dict() if self.report else {}),
            "trial": self.trial.to_dict() if self.trial else None,
            "restoration": self.restoration.to_dict() if self.restoration else None,
            "notes": list(self.notes),
            "run": self.run.to_dict(),
        }


def study(
    directory: str | os.PathLike[str],
    preset: str,
    *,
    editors: Sequence[str] = (),
    budget: float | None = None,
    engine: str = "local",
    address: str | None = None,
    observe: Observe | None = None,
    **overrides: Any,
) -> Studied:
    """Walk a preset's chains, measure all of it, and write the report. Resumes where it stopped.

    Args:
        directory: The run directory; made if it is not there.
        preset: A design that comes with a suite, as `banana100/offline`.
        editors: Editors instead of the preset's own.
        budget: Dollars; needed where an editor costs money.
        engine: Where local editors and metrics work: `local` or `ray`, as of `run` and `score`.
        address: Of the Ray cluster.
        observe: Told how far each part is.
        **overrides: Single settings, named as in run.toml.

    Raises:
        SettingsError: No editor is named, or they cost money and no budget is given.
    """
    chosen = open_preset(preset)
    tell = observe or (lambda _part, _told: None)

    def count(part: str) -> Callable[[int, int], None]:
        return lambda done, total: tell(part, Stand(Snapshot(done, total)))

    table, notes = dict(chosen.table), list[str]()
    if editors:
        table["editors"] = list(editors)
    else:
        table["editors"], notes = _usable(table.get("editors", ()))
    if not table["editors"]:
        why = f" {notes[0]}" if notes else f" {chosen.name} has none of its own."
        raise SettingsError(f"no editor to study: name one with --editor.{why}")
    _announce(directory, table, budget, overrides)
    open_engine(engine, address).close()  # a wrong address shows before the chains are walked
    done = run(
        directory,
        table,
        observe=lambda p: tell("running", p),
        budget=budget,
        engine=engine,
        address=address,
        **overrides,
    )
    if done.interrupted:  # who stops the run stops the study
        return Studied(done, notes=tuple(notes))
    notes += _scored(directory, chosen.about, tell, engine=engine, address=address)
    store = RunStore.open(directory)
    before = stored(store)
    # What a judge was paid for is not replaced by the list of words.
    if not (before and before.judge) and any(summaries(chain) for chain in store.chains()):
        selfeval.evaluate(directory, observe=count("self-evaluation"))
    kinds = {store.suite.cycle_of(chain.key.cycle).kind for chain in store.chains()}
    if kinds != {"restore"}:  # its detectors look for what repetition does
        look = count("failures")
        failures.find(directory, observe=lambda p: look(p.done, p.rows))
    told = report(directory, observe=count("thumbnails"))
    return Studied(done, told, told.beside.trial, told.beside.restoration, tuple(notes))


def _scored(
    directory: str | os.PathLike[str], about: About, tell: Observe, **where: Any
) -> list[str]:
    """Measure what the preset wants; says what could not be."""

    def observe(p: ScoreProgress) -> None:
        tell("scoring", p)

    problems = list(score(directory, about.metrics or None, observe=observe, **where).problems)
    if not about.sparse:
        return problems
    try:
        slow = score(directory, about.sparse, steps=(0, 1, *trial.STEPS), observe=observe, **where)
    except MetricUnavailable as error:
        return [*problems, str(error)]
    return [*problems, *slow.problems]


def _usable(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The editors that can be called here, and why the others are left out."""
    usable, notes = [], []
    for name in names:
        lacks = open_editor(name).spec.lacks
        if lacks:
            notes.append(f"Left out: {name}. {lacks}")
        else:
            usable.append(name)
    return usable, notes


def _announce(
    directory: str | os.PathLike[str],
    table: dict[str, Any],
    budget: float | None,
    overrides: dict[str, Any],
) -> None:
    """Raise SettingsError where money would be spent that nobody has allowed."""
    if budget is not None:
        return
    planned = plan(directory, table, **overrides)
    price = planned.price
    unknown = [row.editor for row in planned.rows if row.price is None]
    if unknown:  # no budget could be held: `run` refuses one
        raise SettingsError(
            f"the price of {in_order(unknown)} is unknown, so no budget can be held. Walk its "
            "chains with `convergebench run` and the same --preset, in a directory of its own; "
            "then `convergebench study` on that directory does the rest."
        )
    if price is not None and price.high > 0:
        paid = sum(row.calls for row in planned.rows if row.price and row.price.high > 0)
        raise SettingsError(
            f"{paid:,} calls will cost about ${price.expected:,.2f}. Say how much may be spent, "
            "with --budget; `convergebench plan` with the same --preset shows the details."
        )
