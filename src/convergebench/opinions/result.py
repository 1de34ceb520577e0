"""What ratings come to: opinions, who to trust, how far people and metrics agree."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

from convergebench.opinions.choices import Choice
from convergebench.opinions.correlations import Coefficient, Correlation
from convergebench.opinions.labels import LabelAgreement, LabelCount
from convergebench.opinions.means import Difference, Distribution, Mean
from convergebench.opinions.preferences import Preferences
from convergebench.opinions.reliability import Reliability
from convergebench.opinions.screening import Rater
from convergebench.table import Cell, Table
from convergebench.wording import counted, shown

MOST: Final = 12
"""Lines of a long list that a terminal shows."""


@dataclass(frozen=True)
class Quality:
    """Scores on a scale, of one set of raters.

    Attributes:
        overall: The mean over all stimuli.
        methods: By method, the best first; empty where no methods are told.
        images: By source picture.
        stimuli: By stimulus: a method's picture of a source.
        differences: Between every two methods.
        distributions: How often each score was given.
        reliability: How far raters agree.
        raters: Who.
    """

    overall: Mean
    methods: tuple[Mean, ...]
    images: tuple[Mean, ...]
    stimuli: tuple[Mean, ...]
    differences: tuple[Difference, ...]
    distributions: tuple[Distribution, ...]
    reliability: tuple[Reliability, ...]
    raters: tuple[str, ...]


@dataclass(frozen=True)
class Opinions:
    """The statistics of one or more rating studies.

    `quality`, `preferences` and labels are of the raters that were kept; `everyone` and
    `everyone_preferences` have all of them, whatever was said against them.
    """

    title: str
    studies: tuple[str, ...]
    designs: tuple[str, ...]
    answers: int
    raters: tuple[Rater, ...]
    screened: bool
    quality: Quality | None = None
    everyone: Quality | None = None
    preferences: Preferences | None = None
    everyone_preferences: Preferences | None = None
    labels: tuple[LabelCount, ...] = ()
    label_agreement: tuple[LabelAgreement, ...] = ()
    correlations: tuple[Correlation, ...] = ()
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[Rater, ...]:
        """The raters that something speaks against."""
        return tuple(one for one in self.raters if not one.kept)

    @property
    def table(self) -> Table:
        """The first of the tables, with all notes."""
        return self.tables[0]

    @property
    def tables(self) -> tuple[Table, ...]:
        """Everything that a terminal shows."""
        found = []
        if self.quality:
            found += [_means(self), _reliability(self.quality)]
        if self.preferences:
            found.append(_strengths(self.preferences))
        if self.labels:
            found.append(_labels(self))
        if self.left_out:
            found.append(_raters(self))
        for level in ("stimulus", "method"):
            mine = [one for one in self.correlations if one.level == level]
            if mine:
                found.append(_correlations(mine, level))
        if self.choices:
            found.append(_choices(self.choices))
        if not found:
            found.append(Table(self.title, ("answers",), [(self.answers,)]))
        first = dataclasses.replace(found[0], notes=(*found[0].notes, *self.notes))
        return (first, *found[1:])

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables)

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`: all numbers, with None where there is none."""
        told: dict[str, Any] = _plain(dataclasses.asdict(self))
        for one, raw in zip(self.raters, told["raters"], strict=True):
            raw["kept"] = one.kept
            if one.apart is not None:
                raw["apart"] |= {
                    "share": one.apart.share, "lean": one.apart.lean,
                    "rejected": one.apart.rejected,
                }  # fmt: skip
        return told


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def ends(low: float | None, high: float | None, digits: int = 2) -> str:
    """An interval in words: `3.10 to 3.42`."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "–"
    return f"{_number(low, digits)} to {_number(high, digits)}"


def _number(value: float | None, digits: int = 3) -> str | None:
    if value is None or not math.isfinite(value):
        return None
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")  # nothing is minus zero


def _means(found: Opinions) -> Table:
    assert found.quality is not None
    assert found.everyone is not None
    everyone = {one.of: one for one in found.everyone.methods} | {"": found.everyone.overall}
    rows: list[tuple[Cell, ...]] = []
    for one in (*found.quality.methods, found.quality.overall):
        other = everyone.get(one.of)
        rows.append((
            one.of or "all stimuli", _number(one.mean), ends(one.low, one.high), _number(one.sd, 2),
            one.answers, one.raters, one.images, _number(other.mean if other else None),
        ))  # fmt: skip
    head = ("method", "mean opinion", "95 % interval", "sd", "answers", "raters", "pictures",
            "with all raters")  # fmt: skip
    notes = []
    tied = [d for d in found.quality.differences if d.tied]
    if tied:
        pairs = shown((f"{d.one} and {d.other}" for d in tied), 4, "; ")
        notes.append(f"Tied: {pairs}.")
    return Table(f"{found.title}: mean opinion", head, rows, notes)


def _reliability(quality: Quality) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.name, _number(one.value), ends(one.low, one.high, 3), one.title)
        for one in quality.reliability
    ]
    told: dict[str, list[str]] = {}
    for one in quality.reliability:
        if one.note:
            told.setdefault(one.note, []).append(one.name)
    notes = [f"{', '.join(names)}: {note}." for note, names in told.items()]
    head = ("coefficient", "value", "95 % interval", "of")
    return Table("How far raters agree", head, rows, notes)


def _strengths(found: Preferences) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.method, _number(one.theta), ends(one.low, one.high), one.wins, one.ties, one.losses,
         "–" if one.share is None else f"{one.share:.0%}")
        for one in found.strengths
    ]  # fmt: skip
    head = ("method", "strength", "95 % interval", "won", "no difference", "lost", "share")
    title = f"Bradley-Terry strengths, {counted(found.comparisons, 'comparison')}"
    return Table(title, head, rows, found.notes)


def _labels(found: Opinions) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.label, one.method or "all", one.cases, one.split, one.ever, one.stimuli,
         f"{one.yes}/{one.votes}")
        for one in found.labels
    ]  # fmt: skip
    head = ("label", "method", "cases", "half and half", "anybody", "pictures", "votes")
    notes = [
        f"{one.label}: Krippendorff's α {_number(one.alpha) or '–'}, Fleiss' κ "
        f"{_number(one.kappa) or '–'}" + (f" ({one.note})" if one.note else "") + "."
        for one in found.label_agreement
    ]
    return Table("Cases by label: more than half of the raters say yes", head, rows, notes)


def _raters(found: Opinions) -> Table:
    left = found.left_out
    rows: list[tuple[Cell, ...]] = [(one.rater, "; ".join(one.reasons)) for one in left]
    if found.screened and len(left) < len(found.raters):
        note = f"Left out of the results above: {len(left)} of {len(found.raters)} raters."
    else:
        note = "They are in the results above all the same."
    return Table("Raters that something speaks against", ("rater", "why"), rows, (note,))


def _coefficient(one: Coefficient) -> str | None:
    if one.value is None:
        return None
    around = "" if one.low is None else f" ({ends(one.low, one.high)})"
    return f"{_number(one.value)}{around}"


def _correlations(mine: list[Correlation], level: str) -> Table:
    fitted = level == "stimulus"
    rows: list[tuple[Cell, ...]] = [
        (one.metric, _coefficient(one.srcc), _coefficient(one.krcc), _coefficient(one.plcc),
         *([_coefficient(one.fitted)] if fitted else []), one.n, one.sources)
        for one in mine
    ]  # fmt: skip
    head = ("metric", "SRCC", "KRCC", "PLCC", *(["PLCC, fitted"] if fitted else []),
            "stimuli" if fitted else "methods", "pictures")  # fmt: skip
    notes = [f"{one.metric}: {one.note}." for one in mine if one.note][:MOST]
    infinite = [f"{one.metric} ({one.infinite})" for one in mine if one.infinite]
    if infinite:
        notes.append(f"Left out because infinite: {', '.join(infinite)}.")
    over = "stimuli" if fitted else "methods"
    return Table(f"Metrics against people, over {over}; positive agrees", head, rows, notes)


def _choices(mine: tuple[Choice, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.metric, _number(one.share), ends(one.low, one.high), one.n, one.ties) for one in mine
    ]
    head = ("metric", "right", "95 % interval", "choices", "no difference")
    return Table("Metrics in the place of a rater: share of choices they get right", head, rows)
