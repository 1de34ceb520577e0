"""What a trial of no-reference metrics found: tables to draw from, and a trust card per metric.

Scores are *normalised*: mapped linearly from the metric's typical range to 0 to 100, flipped where
lower is better. An *arm* is an editor, with its variant (cycle and settings) where it has several.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from convergebench.cycle import Record
from convergebench.table import Table

Verdict = Literal["success", "failure", "incomplete"]
"""Of a cell (metric × arm × source): all gaps negative; one that is not; one that is missing."""


class Estimate(Record):
    """A number over sources, with its 95 % interval where there are enough of them."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0


class Delay(Record):
    """How many steps a metric takes to notice, over chains; censored where it never does.

    `median` is the Kaplan-Meier median over chains, None where fewer than half notice in time;
    `low` and `high` its interval (None above: not reached), `longest` how far chains were followed.
    """

    median: float | None = None
    noticed: int = 0
    chains: int = 0
    longest: int = 0
    low: float | None = None
    high: float | None = None

    @property
    def label(self) -> str:
        """The median as printed: `> N` where it was not reached."""
        if not self.chains:
            return "–"
        return f"> {self.longest}" if self.median is None else f"{self.median:g}"


class Sensitivity(Record):
    """What other choices of steps would have said: pairs (first, later) that fail, of how many.

    A pair fails where the gap of at least one cell is not negative; `worst` is the pair with the
    largest share of failing cells, `worst_share` that share.
    """

    pairs: int
    failing: int
    worst: tuple[int, int] | None = None
    worst_share: float = 0.0


class Content(Record):
    """How much the picture itself moves the score, before any damage.

    `spread` is the standard deviation over initial images at step 1; `drop` the mean fall of the
    score from step 1 to the last step asked for. A spread above the drop means that content hides
    damage. `spikes` counts jumps upwards in chains that add objects, of `additions` steps.
    """

    spread: float
    drop: float | None = None
    spikes: int = 0
    additions: int = 0


class Agreement(Record):
    """Rank agreement with another measure of the same frames, oriented so that 1 is perfect."""

    other: str
    kind: Literal["full-reference", "ratings"]
    spearman: Estimate


class Card(Record):
    """A metric's trust card.

    Attributes:
        origin: Where its scores are from: `an installed metric`, `file …` or `command …`.
        low: What is mapped to 0 (or to 100, where lower is better).
        high: What is mapped to 100 (or to 0).
        cells: Pairs of an arm and a source.
        failed: Cells of which at least one gap is not negative.
        incomplete: Cells without a failure of which a gap is not known.
        failures_by_step: How many cells fail at each of the steps.
        failures_by_arm: How many cells fail in each of the arms.
        tau: Kendall's τ-b of score and step; −1 is a metric that only ever falls.
        later_better: How often the later of two frames of a chain is scored better; 0 is best.
        nulls: Frames that it gave no score.
        outside: Scores outside the range from `low` to `high`.
        doubtful: Failed cells in which full-reference metrics saw no loss either.
        caveats: What a reader must know of it, a sentence each.
        sentence: The verdict in words.
    """

    metric: str
    version: str
    title: str
    origin: str
    higher_is_better: bool
    low: float
    high: float
    verdict: Literal["fully succeeds", "fails", "incomplete", "no data"]
    cells: int
    failed: int
    incomplete: int
    failures_by_step: dict[int, int]
    failures_by_arm: dict[str, int]
    tau: Estimate | None = None
    later_better: Estimate | None = None
    delay: Delay | None = None
    sensitivity: Sensitivity | None = None
    content: Content | None = None
    agreement: tuple[Agreement, ...] = ()
    nulls: int = 0
    outside: int = 0
    doubtful: int = 0
    caveats: tuple[str, ...] = ()
    sentence: str = ""


@dataclass(frozen=True)
class Trial:
    """A finished trial.

    Attributes:
        title: The runs that it is of.
        steps: The later steps that are compared with step 1.
        arms: Editors (and variants) tried on, controls left out, in order.
        controls: Controls that were scored along.
        sources: Initial images, in order.
        cards: One per metric, the most trustworthy first.
        gaps: metric, arm, source, step, gap (mean over the repeats that have both frames), repeats,
            low, high (least and greatest of single repeats), failed (gap ≥ 0; null where unknown).
        individual: metric, arm, source, repeat, step, gap.
        success: metric, arm, source, failures, known (gaps that are known), verdict, premise
            (`sound`, `doubtful` or `unknown`: whether the frames really got worse).
        trajectories: metric, arm, source, kind (`replicate` or `accumulate`), step, mean, low,
            high, repeats (all normalised) and value (mean of the raw scores). Controls and step 0
            too; arms of kind `accumulate` may be others than `arms`.
        single: metric, arm, source, kind, repeat, step, score, value: every chain on its own.
        premise: arm, source, metric, step, change: how much a full-reference metric says that the
            frames really lost since step 1, oriented so that negative is a loss; empty where none
            was scored.
        notes: What a reader must know, a sentence each.
        per_arm: metric, arm, control, cells, failed, incomplete, tau, tau_low, tau_high,
            later_better, later_low, later_high, delay, noticed, chains: the same per arm (the
            paper's Fig. 10), controls too.
    """

    title: str
    steps: tuple[int, ...]
    arms: tuple[str, ...]
    controls: tuple[str, ...]
    sources: tuple[str, ...]
    cards: tuple[Card, ...]
    gaps: pl.DataFrame
    individual: pl.DataFrame
    success: pl.DataFrame
    trajectories: pl.DataFrame
    single: pl.DataFrame
    premise: pl.DataFrame
    notes: tuple[str, ...] = ()
    per_arm: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics' names, the most trustworthy first."""
        return tuple(card.metric for card in self.cards)

    def card(self, metric: str) -> Card:
        """The card of that metric. Raises KeyError."""
        return {card.metric: card for card in self.cards}[metric]

    @property
    def table(self) -> Table:
        """The success table: a row per metric, a column per arm."""
        from convergebench.trial.tables import success_table

        return success_table(self)

    @property
    def overlay(self) -> pl.DataFrame:
        """How many gaps fail, added up over arms and steps: metric, source, failures, known."""
        return self.success.group_by("metric", "source", maintain_order=True).agg(
            pl.col("failures").sum(), pl.col("known").sum()
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the tables: for `--json` and `trial.json`."""
        return {
            "title": self.title,
            "steps": list(self.steps),
            "arms": list(self.arms),
            "controls": list(self.controls),
            "sources": list(self.sources),
            "cards": [card.model_dump(mode="json") for card in self.cards],
            "per_arm": self.per_arm.to_dicts(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()
