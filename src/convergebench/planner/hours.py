"""What scoring will take: machine hours by metric, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from convergebench.table import Table
from convergebench.wording import counted

CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % interval; `repeats` 1 is a mean of one, whose interval nobody knows."""

    mean: float
    half: float = 0.0
    repeats: int = 0

    @property
    def low(self) -> float:
        """Lower end; nothing takes less than no time."""
        return max(0.0, self.mean - self.half)

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half

    def times(self, factor: float) -> Estimate:
        """So many times as much."""
        return Estimate(self.mean * factor, self.half * factor, self.repeats)

    def to_dict(self) -> dict[str, float | int | None]:
        """For `--json`."""
        known = self.repeats != 1
        return {
            "mean": self.mean,
            "low": self.low if known else None,
            "high": self.high if known else None,
            "repeats": self.repeats,
        }


def ratio(samples: Sequence[tuple[float, int]]) -> Estimate | None:
    """Seconds per score from stretches of seconds and scores; None without any.

    The ratio of the sums, with Student's t on the residuals: stretches differ in length.
    """
    count, scores = len(samples), sum(number for _, number in samples)
    if not scores:
        return None
    rate = math.fsum(seconds for seconds, _ in samples) / scores
    if count < 2:
        return Estimate(rate, 0.0, count)
    from scipy.stats import t

    residual = math.fsum((seconds - rate * number) ** 2 for seconds, number in samples)
    error = math.sqrt(residual / (count - 1) / count) / (scores / count)
    return Estimate(rate, float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error, count)


def total(parts: Iterable[Estimate]) -> Estimate:
    """A sum of what was measured independently: half widths add as squares do."""
    found = list(parts)
    half = math.sqrt(math.fsum(part.half**2 for part in found))
    return Estimate(math.fsum(part.mean for part in found), half)


@dataclass(frozen=True)
class Cost:
    """What one metric takes, or the decoding or the registration that metrics share.

    Attributes:
        name: Of the metric; or what else is done.
        scores: Scores to make, or pictures, or pairs.
        study: Those of them at the study's steps.
        seconds: Of one, at the size that was measured; None where it was not measured.
        hours: Of all of them.
        study_hours: Of those at the study's steps.
        loading: Seconds until a worker can begin; None where it was not measured alone.
        device: Whose hours they are: `cpu` (of one core) or `gpu`.
        why: Why it was not measured.
        metric: Whether it is a metric.
        workers: How many measure it at once.
    """

    name: str
    scores: int
    study: int
    seconds: Estimate | None = None
    hours: Estimate | None = None
    study_hours: Estimate | None = None
    loading: float | None = None
    device: str = "cpu"
    why: str = ""
    metric: bool = True
    workers: int = 1

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "name": self.name,
            "metric": self.metric,
            "scores": self.scores,
            "study_scores": self.study,
            "seconds": self.seconds.to_dict() if self.seconds else None,
            "hours": self.hours.to_dict() if self.hours else None,
            "study_hours": self.study_hours.to_dict() if self.study_hours else None,
            "loading_seconds": self.loading,
            "device": self.device,
            "workers": self.workers,
            "not_measured": self.why,
        }


@dataclass(frozen=True)
class Scoring:
    """What scoring will take.

    Attributes:
        engine: Which engine will do it.
        costs: By metric, and what metrics share.
        size: Width and height that were measured.
        elsewhere: Share of the scores that are of other sizes, scaled by their pixels.
        steps: What to give to `score --steps` for the study's steps alone; empty where those
            are all.
        whose: What the number of workers was taken from.
        known: Scores that are there already, and not counted again.
        notes: What was left out, and why.
    """

    engine: str
    costs: tuple[Cost, ...]
    size: tuple[int, int]
    elsewhere: float
    steps: str
    whose: str
    known: int = 0
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> int:
        """Scores to make."""
        return sum(cost.scores for cost in self.costs if cost.metric)

    @property
    def study_scores(self) -> int:
        """Scores to make at the study's steps."""
        return sum(cost.study for cost in self.costs if cost.metric)

    def hours(self, device: str = "cpu", *, study: bool = False) -> Estimate:
        """Hours of one core, or of a GPU, for all that was measured."""
        each = (c.study_hours if study else c.hours for c in self.costs if c.device == device)
        return total(hours for hours in each if hours)

    def wall(self, device: str = "cpu", *, study: bool = False) -> Estimate:
        """Hours until all workers are done, each of which loads every metric once."""
        mine = [cost for cost in self.costs if cost.device == device]
        loading = sum(cost.loading or 0.0 for cost in mine if cost.scores)
        each = ((c.study_hours if study else c.hours, c.workers) for c in mine)
        spread = total(hours.times(1 / workers) for hours, workers in each if hours)
        return Estimate(spread.mean + loading / 3600, spread.half, spread.repeats)

    @property
    def _devices(self) -> list[str]:
        return sorted({cost.device for cost in self.costs if cost.hours})

    @property
    def table(self) -> Table:
        """The costs as a table."""
        rows = [
            (
                cost.name,
                cost.scores,
                _seconds(cost.seconds) if not cost.why else "not measured",
                span(cost.hours) if cost.hours else "–",
                "–" if cost.loading is None else f"{cost.loading:.1f} s",
            )
            for cost in self.costs
        ]
        for device in self._devices:
            made = [c.scores for c in self.costs if c.metric and c.hours and c.device == device]
            rows.append((f"all, {device.upper()}", sum(made), "–", span(self.hours(device)), "–"))
        title = (
            f"Scoring with --engine {self.engine}: {counted(self.scores, 'score')} to make, "
            f"{self.known:,} known before"
        )
        columns = ("metric", "scores", "seconds each", "machine time (95 %)", "loading")
        return Table(title, columns, rows, self._told)

    @property
    def _told(self) -> list[str]:
        if not self.scores and not any(cost.why for cost in self.costs):
            return ["Nothing is left to score, so nothing was measured.", *self.notes]
        width, height = self.size
        measured = any(cost.hours for cost in self.costs)
        notes = [
            f"Measured on this machine, one core, at {width}×{height}; metrics that share frames "
            "together, and what they share with the first that needs it. Intervals: Student's t "
            "over repeats of this calibration; another machine takes what it takes. Starting "
            "workers, reading records and saving rows come on top: half of a short job."
            if measured
            else "Nothing of what is left can be measured here."
        ]
        if measured and self.elsewhere > 0:
            notes.append(
                f"{self.elsewhere:.0%} of the scores are of other sizes: scaled by their pixels, "
                "not measured."
            )
        for device in self._devices:
            unit = "GPU" if device == "gpu" else "core"
            at_once = {cost.workers for cost in self.costs if cost.hours and cost.device == device}
            least = f"{min(at_once)} to " if len(at_once) > 1 else ""
            notes.append(
                f"On {least}{counted(max(at_once), 'worker')} of one {unit} each ({self.whose}): "
                f"about {span(self.wall(device))}."
            )
        left = [cost for cost in self.costs if cost.why]
        if left:
            names = ", ".join(cost.name for cost in left)
            count = sum(cost.scores for cost in left)
            notes.append(
                f"Not measured, and in no sum: {names} ({counted(count, 'score')}). "
                f"{left[0].name}: {left[0].why}"
            )
        notes += [*self._saved(), *self.notes]
        return notes

    def _saved(self) -> list[str]:
        if not self.steps or self.study_scores == self.scores:
            return []
        told = " and ".join(
            f"{span(self.hours(device, study=True))} instead of {span(self.hours(device))} "
            f"({device.upper()})"
            for device in self._devices
        )
        return [
            f"Scoring only the steps that the study compares would take {told or 'less'}, "
            f"{self.study_scores:,} scores instead of {self.scores:,}: score --steps {self.steps}. "
            "Curves then have those points alone."
        ]

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        devices = {
            device: {
                "hours": self.hours(device).to_dict(),
                "study_hours": self.hours(device, study=True).to_dict(),
                "wall_hours": self.wall(device).to_dict(),
                "study_wall_hours": self.wall(device, study=True).to_dict(),
            }
            for device in self._devices
        }
        return {
            "engine": self.engine,
            "scores": self.scores,
            "known": self.known,
            "study_scores": self.study_scores,
            "study_steps": self.steps,
            "workers_from": self.whose,
            "measured_size": list(self.size),
            "scaled_share": self.elsewhere,
            "devices": devices,
            "metrics": [cost.to_dict() for cost in self.costs],
            "notes": self._told,
        }


def span(hours: Estimate) -> str:
    """Hours as people say them, with the interval where it is known and shows."""
    unit, name, digits = next(
        (unit, name, digits)
        for least, unit, name, digits in (
            (2.0, 1.0, "h", 1),
            (2 / 60, 1 / 60, "min", 1),
            (2 / 3600, 1 / 3600, "s", 1),
            (0.0, 1 / 3600, "s", 3),
        )
        if hours.mean >= least
    )
    mean, low, high = (f"{x / unit:,.{digits}f}" for x in (hours.mean, hours.low, hours.high))
    return f"{mean} {name}" if low == high else f"{mean} {name} ({low} to {high})"


def _seconds(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    error = "?" if estimate.repeats == 1 else f"{estimate.half:.2g}"
    return f"{estimate.mean:.3g} ± {error}"
