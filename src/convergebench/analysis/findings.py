"""Findings: every number a report shows, with its interval, its n and what is missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import FiniteFloat, SerializerFunctionWrapHandler, model_serializer

from convergebench.cycle import Record
from convergebench.table import Cell, Table

if TYPE_CHECKING:
    import polars as pl

RANKED_BY: Final = ("psnr", "ssim")
"""Metrics whose mean AUC ranks editors while a dimension is incomplete."""

DIMENSIONS: Final = {"quality": ("psnr", "ssim", "lpips"), "semantic": ("clip",)}
"""The two dimensions of convergence, and the metrics each needs."""

HEADLINE: Final = "headline"
"""The time until the first dimension falls, where metrics have their half-lives."""


HELD: Final = ("edited", "missing", "reported")
"""Outcomes of steps that gave a frame, be it here or not."""

INCOMPLETE: Final = "incomplete"
"""Printed for a dimension that a metric is missing of."""

LITERAL: Final = " (literal)"
"""Ends the name of a half-life by the literal rule, where there is no floor for the other."""


class Finding(Record):
    """One number: what it is, its estimate and interval, over how many, with how many missing.

    Every number is finite, because JSON has no infinity.

    Attributes:
        id: `kind/metric/editor/round`, as far as these apply. A name may hold any sign, so read
            `metric`, `editor` and `round` instead of taking the id apart.
        estimate: The number, or None when there is nothing to estimate it from.
        low: Lower end of the 95 % interval.
        high: Upper end.
        n: How many values (chains, unless `note` says otherwise) the estimate is over.
        missing: How many more there should have been.
        failed: Chains that ended too early because the editor refused or failed; at a round, those
            that ended before it.
        refused: Of the failed, those that the editor refused.
        censored: Of half-lives: how many of the n never fell while they were followed.
        infinite: Values that are infinite (PSNR of identical pictures) and not in the mean.
        note: What a reader has to know.
        metric: The metric, where one is meant.
        editor: The editor, where one is meant.
        round: The homecoming, where one is meant.
        group: The part of the chains (`edit:accessory`, `image:face`, `cycle:add-hat@1`), the
            component of a drift, the shape of a curve: whatever the kind splits by.
        other: The second editor of a comparison.
        at: A place on a continuous axis, such as the time of a step of a survival curve.
        chain: The chain, where one is meant.
        p: The p value, corrected for the number of comparisons.
    """

    id: str
    estimate: FiniteFloat | None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    n: int = 0
    missing: int = 0
    failed: int = 0
    infinite: int = 0
    note: str = ""
    metric: str = ""
    editor: str = ""
    round: int | None = None
    refused: int = 0
    censored: int = 0
    group: str = ""
    other: str = ""
    at: FiniteFloat | None = None
    chain: str = ""
    p: FiniteFloat | None = None

    @model_serializer(mode="wrap")
    def _short(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without(dump(self), "group", "other", "at", "chain", "p")

    @property
    def kind(self) -> str:
        """The first part of the id."""
        return self.id.partition("/")[0]


class Standing(Record):
    """One editor's line in the leaderboard. Ranks are None for the unranked, with the reason.

    Attributes:
        editor: Its name.
        control: Whether it is a control: a known answer that rides along.
        best_rank: One more than the number of editors above it.
        worst_rank: The number of ranked editors not below it.
        score: Mean AUC of the ranking metrics on the common chains, each source counting once.
        low: Lower end of the score's interval; None from a single source.
        high: Upper end.
        auc: Mean AUC by metric on the same chains; None where it lacks one of them.
        half_life: Kaplan-Meier median by metric over all chains of the editor, as printed.
        chains: Chains, begun or planned, that the ranking metrics can measure.
        complete: Chains of them that came home as often as they should, all of it scored.
        outcomes: How its steps ended, over `chains`.
        why_unranked: The reason.
        failed: Chains that ended too early because it refused or failed.
        unmeasurable: Chains whose cycle has no home for the ranking metrics.
        runs: The runs its chains are from, where there are several.
        origin: Who published its scores, where they were not measured here.
    """

    editor: str
    control: bool
    best_rank: int | None
    worst_rank: int | None
    score: FiniteFloat | None
    low: FiniteFloat | None
    high: FiniteFloat | None
    auc: dict[str, FiniteFloat | None]
    half_life: dict[str, str]
    chains: int
    complete: int
    outcomes: dict[str, int]
    why_unranked: str = ""
    failed: int = 0
    unmeasurable: int = 0
    runs: tuple[str, ...] = ()
    origin: str = ""

    @model_serializer(mode="wrap")
    def _short(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without(dump(self), "runs", "origin")

    @property
    def lost(self) -> int:
        """Steps that gave no frame; one that was made and is not here is no failure."""
        return sum(n for outcome, n in self.outcomes.items() if outcome not in HELD)

    @property
    def place(self) -> str:
        """The rank as printed: a range when tied, a dash when unranked."""
        if self.best_rank is None:
            return "–"
        tied = self.worst_rank != self.best_rank
        return f"{self.best_rank}–{self.worst_rank}" if tied else f"{self.best_rank}"


class RunFacts(Record):
    """One of several runs: what it is called here, and what it was made from."""

    name: str
    suite: str
    fingerprint: str
    created: str


class Findings(Record):
    """Everything `report` shows.

    Attributes:
        run: The run directory's name; of several all of them.
        suite: Name and version.
        metrics: Name and version of every metric that has scores and can be opened.
        common: Chains of each ranked editor that the ranking rests on.
        floors: Oriented floor m0 by metric.
        standings: The leaderboard: the ranked from best to worst, then the others.
        findings: All numbers.
        notes: What a reader has to know, a sentence each.
        sources: Source images that the ranking rests on.
        ranked_by: The metrics whose mean AUC is the score; empty when nothing can be ranked.
        threshold: Where half-lives are read off.
        runs: The runs, where there are several.
        rounds: How many homecomings were looked at, where the user said so.
    """

    run: str
    suite: str
    metrics: tuple[str, ...]
    common: int
    floors: dict[str, FiniteFloat]
    standings: tuple[Standing, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    sources: int = 0
    ranked_by: tuple[str, ...] = ()
    threshold: FiniteFloat = 0.5
    runs: tuple[RunFacts, ...] = ()
    rounds: int | None = None

    @model_serializer(mode="wrap")
    def _short(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without(dump(self), "runs", "rounds")

    @property
    def frame(self) -> pl.DataFrame:
        """All findings as one polars frame, for notebooks."""
        import polars as pl

        told = [{"kind": f.kind, **f.model_dump(exclude_none=False)} for f in self.findings]
        rows = [{name: row.get(name) for name in ("kind", *Finding.model_fields)} for row in told]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def table(self) -> Table:
        """The leaderboard."""
        known = {name for s in self.standings for name in s.half_life}
        lives = [*shown_dimensions(known), *RANKED_BY]
        lives += sorted(name for name in known if name.endswith(LITERAL))
        # The headline's AUC never stands alone.
        aucs = list(DIMENSIONS) if self.ranked_by == (HEADLINE,) else []
        censored = self._censored(lives)
        rows: list[tuple[Cell, ...]] = []
        for s in self.standings:
            rows.append(
                (
                    s.place,
                    s.editor + (" (control)" if s.control else ""),
                    ", ".join(s.runs),
                    s.origin or "measured",
                    _score(s),
                    *("–" if (auc := s.auc.get(n)) is None else f"{auc:.3f}" for n in aucs),
                    *(s.half_life.get(name, _lacking(name, s.half_life)) for name in lives),
                    s.complete,
                    s.chains - s.complete,
                    s.lost,
                    s.outcomes.get("refused", 0),
                    censored.get(s.editor),
                    s.why_unranked,
                )
            )
        columns: tuple[str, ...] = (
            "rank",
            "editor",
            "runs",
            "scores",
            "mean AUC [95 %]",
            *(f"AUC {name}" for name in aucs),
            *(f"half-life {name}" for name in lives),
            "n",
            "missing",
            "failed",
            "refused",
            "censored",
            "unranked because",
        )
        idle = {
            "runs": not self.runs,
            "scores": not any(s.origin for s in self.standings),
            "unranked because": not any(s.why_unranked for s in self.standings),
        }
        kept = [i for i, column in enumerate(columns) if not idle.get(column)]
        columns = tuple(columns[i] for i in kept)
        rows = [tuple(row[i] for i in kept) for row in rows]
        suites = "suites" if " + " in self.suite else "suite"
        title = f"Leaderboard of {self.run} ({suites} {self.suite})"
        return Table(title, columns, rows, self.notes)

    def _censored(self, lives: Sequence[str]) -> dict[str, int]:
        """By editor how many chains never fell, by the first of these half-lives that it has."""
        found: dict[str, int] = {}
        numbers = {(f.kind, f.metric, f.editor): f for f in self.findings}
        for s in self.standings:
            name = next((name for name in lives if name in s.half_life), "")
            kind = "literal-half-life" if name.endswith(LITERAL) else "half-life"
            life = numbers.get((kind, name.removesuffix(LITERAL), s.editor))
            if life:
                found[s.editor] = life.censored
        return found

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def shown_dimensions(known: Collection[str]) -> list[str]:
    """The headline, where there is one, and both dimensions, where there is one of them."""
    if not any(name in known for name in (HEADLINE, *DIMENSIONS)):
        return []
    return [*([HEADLINE] if HEADLINE in known else []), *DIMENSIONS]


def _lacking(name: str, lives: Mapping[str, str]) -> str:
    """What is printed for a half-life that an editor lacks, having others or none."""
    return INCOMPLETE if lives and name in (HEADLINE, *DIMENSIONS) else "–"


def _without(told: dict[str, Any], *names: str) -> dict[str, Any]:
    """Without these where they are empty: most findings have none of them."""
    gone = {name for name in names if told[name] is None or told[name] in ("", (), [])}
    return {name: value for name, value in told.items() if name not in gone}


def _score(standing: Standing) -> str:
    if standing.score is None:
        return "–"
    if standing.low is None or standing.high is None:
        return f"{standing.score:.3f}"
    return f"{standing.score:.3f} [{standing.low:.3f}, {standing.high:.3f}]"
