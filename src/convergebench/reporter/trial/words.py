"""What the page says of a trial: the verdict, the success table, the cards, the premise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from convergebench.reporter.printing import listed, number
from convergebench.reporter.trial.dots import other_name
from convergebench.reporter.trial.heat import finite
from convergebench.trial.result import Card, Delay, Estimate, Trial
from convergebench.wording import counted

CLASSES: Final = {
    "fully succeeds": "good",
    "fails": "bad",
    "incomplete": "part",
    "no data": "none",
}
DEEP: Final = 0.5
"""Above this share of failures words stand on a strong colour."""

VARIANT: Final = " · "
"""What stands between an editor and its variant in the name of an arm."""

MOST_NAMES: Final = 12


def verdict_of(trial: Trial) -> list[str]:
    """What a hurried reader should know."""
    cards = trial.cards
    if not cards:
        return ["No metric was tried: there are no scores of no-reference metrics."]
    of = {name: [c.metric for c in cards if c.verdict == name] for name in CLASSES}
    fooled = len(of["fails"])
    verb = ("is", "are")
    told = [
        f"{fooled} of {counted(len(cards), 'metric', *verb)} fooled by at least one editor, on "
        f"{counted(len(trial.sources), 'initial image')} and {editors_of(trial)}."
    ]
    if of["fully succeeds"]:
        told.append(f"Fully succeeding: {_some(of['fully succeeds'])}.")
    else:
        told.append("No metric fully succeeds.")
    if of["incomplete"]:
        told.append(f"Not caught, but with gaps missing: {_some(of['incomplete'])}.")
    if of["no data"]:
        told.append(f"Without data: {_some(of['no data'])}.")
    worst = max(cards, key=lambda c: c.failed / c.cells if c.cells else 0)
    if worst.failed:
        told.append(
            f"Most often fooled is {worst.metric}: in {worst.failed:,} of {worst.cells:,} cells "
            "(editor × image)."
        )
    return told


def editors_of(trial: Trial) -> str:
    """How many editors were tried on, and in how many variants."""
    editors = len({arm.partition(VARIANT)[0] for arm in trial.arms})
    if editors == len(trial.arms):
        return counted(editors, "editor")
    return f"{counted(len(trial.arms), 'variant')} of {counted(editors, 'editor')}"


def _some(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMES:
        return listed(list(names))
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"


@dataclass(frozen=True)
class Tally:
    """How a metric did on an arm: cells that failed, of how many, and those not fully known.

    Attributes:
        failed: Cells with a gap that is not negative.
        incomplete: Cells without one, but with a gap that is missing.
        doubtful: Failed cells whose frames full-reference metrics do not see getting worse.
        cells: All of them.
        more: What else is known of the metric on this arm, in words.
    """

    failed: int
    incomplete: int
    doubtful: int
    cells: int
    more: str = ""

    @property
    def share(self) -> float:
        """Of the cells that failed."""
        return self.failed / self.cells if self.cells else 0.0

    @property
    def css(self) -> str:
        """How it is coloured."""
        if not self.cells or self.incomplete == self.cells:
            return "none"
        if self.failed:
            return "deep" if self.share > DEEP else "some"
        return "part" if self.incomplete else "good"

    @property
    def about(self) -> str:
        """In words."""
        if not self.cells:
            return "no data"
        words = f"{self.failed} of {counted(self.cells, 'cell', 'fails', 'fail')}"
        words += f", {self.incomplete} incomplete" if self.incomplete else ""
        words += f", {self.doubtful} doubtful" if self.doubtful else ""
        return "; ".join(part for part in (words, self.more) if part)


@dataclass(frozen=True)
class Line:
    """A metric in the success table."""

    card: Card
    css: str
    place: int
    tallies: tuple[Tally, ...]
    tau: tuple[str, str]
    later: tuple[str, str]
    delay: tuple[str, str]


def lines_of(trial: Trial) -> list[Line]:
    """The success table, a line for each metric in the order of the cards."""
    counts = {
        (row["metric"], row["arm"]): Tally(
            failed=row["failed"],
            incomplete=row["incomplete"],
            doubtful=row["doubtful"],
            cells=row["cells"],
        )
        for row in _counts(trial).iter_rows(named=True)
    }
    more = _more(trial)
    none = Tally(failed=0, incomplete=0, doubtful=0, cells=0)
    return [
        Line(
            card=card,
            css=CLASSES[card.verdict],
            place=place,
            tallies=tuple(
                replace(counts.get((card.metric, arm), none), more=more.get((card.metric, arm), ""))
                for arm in trial.arms
            ),
            tau=estimate(card.tau),
            later=estimate(card.later_better),
            delay=delay(card.delay),
        )
        for place, card in enumerate(trial.cards, 1)
    ]


def _counts(trial: Trial) -> pl.DataFrame:
    """Cells of every metric on every arm."""
    failed = pl.col("verdict") == "failure"
    return trial.success.group_by("metric", "arm").agg(
        failed=failed.sum(),
        incomplete=(pl.col("verdict") == "incomplete").sum(),
        doubtful=(failed & (pl.col("premise") == "doubtful")).sum(),
        cells=pl.len(),
    )


def _more(trial: Trial) -> dict[tuple[str, str], str]:
    """What is known of each metric on each arm beside its cells."""
    found = {}
    for row in trial.per_arm.iter_rows(named=True):
        parts = (
            ("τ", row["tau"], row["tau_low"], row["tau_high"]),
            ("P(later better)", row["later_better"], row["later_low"], row["later_high"]),
        )
        told = [
            f"{name} {' '.join(w for w in estimate(Estimate(value=v, low=a, high=b)) if w)}"
            for name, v, a, b in parts
            if v is not None
        ]
        if row["chains"]:
            late = "never" if row["delay"] is None else f"{row['delay']:g} steps"
            told.append(f"delay {late}, noticed in {row['noticed']} of {row['chains']} chains")
        found[row["metric"], row["arm"]] = "; ".join(told)
    return found


def estimate(told: Estimate | None, digits: int = 2) -> tuple[str, str]:
    """A number and its interval, as printed."""
    if told is None or finite(told.value) is None:
        return "–", ""
    if told.low is None or told.high is None:
        return number(told.value, digits), ""
    return number(told.value, digits), f"[{number(told.low, digits)}, {number(told.high, digits)}]"


def delay(told: Delay | None) -> tuple[str, str]:
    """The median delay, and in how many chains the metric noticed at all."""
    if told is None or not told.chains:
        return "–", ""
    median = f"> {told.longest}" if told.median is None else f"{told.median:g}"
    return median, f"noticed in {told.noticed:,} of {told.chains:,}"


def facts_of(card: Card) -> list[tuple[str, str]]:
    """All of a card but its name, verdict, sentence and caveats: what, and how much."""
    better = "higher is better" if card.higher_is_better else "lower is better"
    cells = f"{card.failed:,} of {card.cells:,} fail"
    if card.incomplete:
        cells += f", {card.incomplete:,} incomplete"
    found = [("Cells (editor × image)", cells)]
    if card.doubtful:
        words = f"{card.doubtful:,}, where full-reference metrics saw no loss either"
        found.append(("Doubtful failures", words))
    steps = ", ".join(f"Δ{step}: {n:,}" for step, n in sorted(card.failures_by_step.items()))
    found += [("Failing gaps by step", steps)] if steps else []
    worst = sorted(((n, arm) for arm, n in card.failures_by_arm.items() if n), reverse=True)
    arms = ", ".join(f"{arm} ({n:,})" for n, arm in worst[:MOST_NAMES])
    more = f" and {len(worst) - MOST_NAMES} more" if len(worst) > MOST_NAMES else ""
    found += [("Failures by editor", arms + more if worst else "none")] if card.cells else []
    for name, told in (("Kendall τ with step", card.tau),
                       ("P(later frame scored better)", card.later_better)):  # fmt: skip
        if told is not None:
            found.append((name, " ".join(w for w in estimate(told) if w)))
    if card.delay is not None and card.delay.chains:
        median, noticed = delay(card.delay)
        found.append(("Detection delay, median", f"{median} steps; {noticed} chains"))
    if card.sensitivity is not None and card.sensitivity.pairs:
        s = card.sensitivity
        words = f"{s.failing:,} of {s.pairs:,} pairs of steps fail"
        if s.worst is not None:
            words += f"; worst {s.worst[0]} → {s.worst[1]} ({s.worst_share:.0%})"
        found.append(("Choice of steps", words))
    if card.content is not None:
        c = card.content
        drop = "unknown" if c.drop is None else number(c.drop, 1)
        found.append(("Content", f"spread {number(c.spread, 1)}, fall {drop}"))
        if c.additions:
            found.append(
                (
                    "While adding",
                    f"{counted(c.spikes, 'jump')} up in {counted(c.additions, 'step')}",
                )
            )
    for a in card.agreement:
        words = " ".join(w for w in estimate(a.spearman) if w)
        found.append((f"ρ with {other_name(a.other, a.kind)}", words))
    found.append(("Typical range", f"{card.low:g} to {card.high:g}, {better}"))
    found.append(("From", card.origin or "unknown"))
    found.append(("Scores missing", f"{card.nulls:,}"))
    found.append(("Scores outside the range", f"{card.outside:,}"))
    return [(name, told.replace("-", "−") if name == "Typical range" else told)
            for name, told in found]  # fmt: skip


@dataclass(frozen=True)
class Loss:
    """What a full-reference metric says of an arm: its mean change, and sources that lost."""

    arm: str
    metric: str
    cells: tuple[tuple[str, str], ...]


def premise_of(trial: Trial) -> list[Loss]:
    """Whether the frames really lost, per arm and full-reference metric, at each step."""
    if trial.premise.is_empty():
        return []
    known = trial.premise.filter(pl.col("change").is_finite())
    grouped = known.group_by("metric", "arm", "step").agg(
        mean=pl.col("change").mean(), lost=(pl.col("change") < 0).sum(), n=pl.len()
    )
    by = {(r["metric"], r["arm"], r["step"]): r for r in grouped.iter_rows(named=True)}
    found = []
    for metric in sorted({key[0] for key in by}):
        for arm in trial.arms:
            if not any((metric, arm, step) in by for step in trial.steps):
                continue
            cells = []
            for step in trial.steps:
                told = by.get((metric, arm, step))
                if told is None:
                    cells.append(("–", ""))
                else:
                    change = f"{told['mean']:+.3g}".replace("-", "−")
                    cells.append((change, f"{told['lost']} of {told['n']} lost"))
            found.append(Loss(arm, metric, tuple(cells)))
    return found
