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
        pull: What `weights pull` brings, where nothing else is lacking.
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
    pull: tuple[str, ...] = ()
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
        every = (c.study_hours if study else c.hours for c in self.costs if c.device == device)
        return total(hours for hours in every if hours)

    def wall(self, device: str = "cpu", *, study: bool = False) -> Estimate:
        """Hours until all workers are done, each of which loads every metric once."""
        mine = [cost for cost in self.costs if cost.device == device]
        loading = sum(cost.loading or 0.0 for cost in mine if cost.scores)
        every = ((c.study_hours if study else c.hours, c.workers) for c in mine)
        spread = total(hours.times(1 / workers) for hours, workers in every if hours)
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
                each(cost.seconds) if not cost.why else "not measured",
                span(cost.hours) if cost.hours else "–",
                "–" if cost.loading is None else f"{cost.loading:.1f} s",
            )
            for cost in self.costs
            if cost.scores or cost.why
        ]
        for device in self._devices:
            made = [c.scores for c in self.costs if c.metric and c.hours and c.device == device]
            rows.append((f"all, {device.upper()}", sum(made), "–", span(self.hours(device)), "–"))
        title = (
            f"Scoring with --engine {self.engine}: {counted(self.scores, 'score')} to make, "
            f"{self.known:,} known before"
        )
        columns = ("metric", "scores", "time each (95 %)", "machine time (95 %)", "loading")
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
            "workers, reading records and saving rows come on top: of a job of a minute or less "
            "that may be as much again, of a long one it is little."
            if measured
            else "Nothing of what is left can be measured here."
        ]
        if measured and self.elsewhere > 0:
            notes.append(
                f"{self.elsewhere:.0%} of the scores are of other sizes: scaled by their pixels, "
                "not measured."
            )
        made = sum(cost.scores for cost in self.costs if cost.metric and cost.hours)
        share = f"{made / self.scores:.0%}" if 200 * made < 199 * self.scores else "more than 99%"
        whole = "" if made == self.scores else f", for {share} of the scores "
        for device in self._devices if made else ():
            unit = "GPU" if device == "gpu" else "core"
            at_once = {cost.workers for cost in self.costs if cost.hours and cost.device == device}
            least = f"{min(at_once)} to " if len(at_once) > 1 else ""
            notes.append(
                f"On {least}{counted(max(at_once), 'worker')} of one {unit} each ({self.whose}): "
                f"about {span(self.wall(device))}{whole and whole + 'that were measured'}."
            )
        left = [cost for cost in self.costs if cost.why]
        if left:
            count = sum(cost.scores for cost in left)
            notes.append(
                f"Not measured, and in no sum: {_names(left)} ({counted(count, 'score')})."
            )
            notes += _reasons(left)
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
        left = any(cost.why and cost.scores for cost in self.costs)
        whose = " for the metrics that were measured" if told and left else ""
        return [
            f"Scoring only the steps that the study compares would take {told or 'less'}{whose}; "
            f"of all metrics it is {self.study_scores:,} scores instead of {self.scores:,}: "
            f"score --steps {self.steps}. Curves then have those points alone."
        ]

    def __str__(self) -> str:
        table = self.table
        return str(table) if table.rows else "\n".join([table.title, *table.notes])

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


def _names(costs: Iterable[Cost]) -> str:
    return ", ".join(cost.name for cost in costs)


def _reasons(costs: Sequence[Cost]) -> list[str]:
    """Why these were not measured, each reason once, and one command for all that it remedies."""
    found = []
    if pulled := [cost for cost in costs if cost.pull]:
        sets = " ".join(dict.fromkeys(name for cost in pulled for name in cost.pull))
        found.append(
            f"{_names(pulled)}: weights are not here. Run `convergebench weights pull {sets}`, or "
            "name a folder that has them in CONVERGEBENCH_WEIGHTS."
        )
    others: dict[str, list[Cost]] = {}
    for cost in costs:
        if not cost.pull:
            others.setdefault(cost.why, []).append(cost)
    return [*found, *(f"{_names(some)}: {why}" for why, some in others.items())]


def span(hours: Estimate) -> str:
    """Hours as people say them, with the interval where it is known and shows."""
    seconds = hours.mean * 3600
    if seconds < 0.01:
        return "< 0.01 s" if seconds > 0 else "0 s"
    unit, name, digits = next(
        (unit, name, digits)
        for least, unit, name, digits in (
            (7200, 3600, "h", 1),
            (60, 60, "min", 1),
            (1, 1, "s", 1),
            (0, 1, "s", 2),
        )
        if seconds >= least
    )
    mean, low, high = (
        f"{x / unit * 3600:,.{digits}f}" for x in (hours.mean, hours.low, hours.high)
    )
    return f"{mean} {name}" if low == high else f"{mean} {name} ({low} to {high})"


def each(seconds: Estimate | None) -> str:
    """Seconds of one score as people say them: `11 ± 2.3 ms`."""
    if seconds is None:
        return "–"
    unit, name = next(
        found
        for found in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
        if seconds.mean >= found[0] or found[0] == 1e-6
    )
    error = "?" if seconds.repeats == 1 else _plain(seconds.half / unit, 2)
    return f"{_plain(seconds.mean / unit, 3)} ± {error} {name}"


def _plain(value: float, digits: int) -> str:
    """A number to so many digits, and never as a power of ten."""
    power = math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(0, digits - 1 - power)}f}"
