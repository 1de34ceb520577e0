"""Which of the runs' scores count: current versions, published ones for want of pictures, labels.

Scores are of the frame that counts of every chain, against the truth where a measure compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from convergebench.analysis.published import Promoted, measured_metrics, promote
from convergebench.comparisons import row_version
from convergebench.errors import ConvergeBenchError, InputError
from convergebench.gathering import Gathered
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec, metric_specs
from convergebench.restoration import measures as m
from convergebench.restoration.material import NEEDS_TRUTH, Attempt, Key, Label
from convergebench.restoration.result import Measure
from convergebench.wording import counted, in_order, shown

LABELS: Final = {
    f"{who}/{kind}": kind
    for who in ("human", "judge")
    for kind in ("infidelity", "over-generation")
}
"""Metrics of the score table that are labels, with what they label."""

_NOT_MEASURED: Final = ("human/", "judge/")


@dataclass(frozen=True)
class Scored:
    """What the score files say of these chains."""

    measures: tuple[Measure, ...]
    values: Mapping[Key, Mapping[int, float]]
    labels: tuple[Label, ...]
    detail: Mapping[str, float]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        gathered: Gathered,
        attempts: Sequence[Attempt],
        steps: Mapping[str, int],
        metrics: Sequence[str] | None,
    ) -> Scored:
        """What is known of these outputs; `steps` has the frame that counts of every chain."""
        rows = _rows_of(gathered, steps)
        told = pl.col("metric").str.starts_with
        measured = rows.filter(~pl.any_horizontal(*(told(head) for head in _NOT_MEASURED)))
        specs, closed = metric_specs(measured_metrics(measured, gathered.chains))
        promoted = promote(measured, gathered.chains, specs)
        known = _measured(promoted.scores, specs)
        known |= _ratings(rows)
        names = _chosen(known, specs, metrics, gathered)
        place = {one.chain: one for one in attempts}
        values: dict[Key, dict[int, float]] = {}
        for name in names:
            _, mine = known[name]
            for chain, value in mine.items():
                one = place[chain]
                values.setdefault((name, one.method, one.source), {})[one.repeat] = value
        return cls(
            measures=m.in_columns(known[name][0] for name in names),
            values=values,
            labels=_labels(rows),
            detail=known[m.DETAIL][1] if m.DETAIL in known else {},
            notes=(*_score_notes(promoted, closed, known, names), *_rated(rows, names)),
        )


def _rows_of(gathered: Gathered, steps: Mapping[str, int]) -> pl.DataFrame:
    """Score rows of the frame that counts of every chain."""
    ends = pl.DataFrame(
        [(chain, step) for chain, step in steps.items() if step],
        schema={"chain": pl.String(), "step": gathered.scores.schema["step"]},
        orient="row",
    )
    return gathered.scores.join(ends, on=["chain", "step"], how="semi", maintain_order="left")


Known = dict[str, tuple[Measure, dict[str, float]]]
"""By name, a measure and its value of each chain."""


def _measured(scores: pl.DataFrame, specs: Mapping[str, MetricSpec]) -> Known:
    """The scores of current versions, raw and registered."""
    found: Known = {}
    there = scores.filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())
    for name, spec in specs.items():
        if spec.directional:
            continue
        against = "home" if spec.kind in NEEDS_TRUTH else "none"
        for where in ("all", "registered"):
            mine = there.filter(
                (pl.col("metric") == name)
                & (pl.col("version") == row_version(spec, where))
                & (pl.col("against") == against)
                & (pl.col("where") == where)
            )
            if mine.is_empty():
                continue
            column = m.measure_of(spec)
            if where == "registered":
                title = f"{column.title} (registered)"
                column = Measure(name + m.REGISTERED, title, column.kind, column.higher_is_better)
            found[column.name] = (column, dict(mine.select("chain", "value").iter_rows()))
    return found


def _ratings(rows: pl.DataFrame) -> Known:
    mine = rows.filter((pl.col("metric") == m.QUALITY) & pl.col("value").is_not_null())
    if mine.is_empty():
        return {}
    means = mine.group_by("chain", maintain_order=True).agg(pl.col("value").mean())
    return {m.QUALITY: (m.HUMAN, dict(means.iter_rows()))}


def _rated(rows: pl.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """A word where ratings of several studies are in one mean: their scales may differ."""
    if m.QUALITY not in names:
        return ()
    mine = rows.filter((pl.col("metric") == m.QUALITY) & pl.col("value").is_not_null())
    studies = mine["version"].str.replace(r":[^:]*$", "").unique(maintain_order=True).to_list()
    if len(studies) < 2:
        return ()
    return (
        f"people: scores of {len(studies)} studies are taken together as they are: "
        f"{shown(studies)}. convergebench rate analyze tells them apart.",
    )


def _labels(rows: pl.DataFrame) -> tuple[Label, ...]:
    """Labels of people and judges. A row's version is who: `STUDY:RATER`, or the judge."""
    found = []
    mine = rows.filter(pl.col("metric").is_in(list(LABELS)) & pl.col("value").is_not_null())
    for chain, metric, version, value, note in mine.select(
        "chain", "metric", "version", "value", "note"
    ).iter_rows():
        study, _, rater = version.partition(":")
        human = metric.startswith("human/")
        found.append(
            Label(
                kind=LABELS[metric],
                chain=chain,
                by=f"people ({study})" if human else version,
                rater=rater if human else "",
                value=value,
                comment=note or "",
            )
        )
    return tuple(found)


def _chosen(
    known: Known,
    specs: Mapping[str, MetricSpec],
    metrics: Sequence[str] | None,
    gathered: Gathered,
) -> list[str]:
    if metrics is None:
        there = {name: spec for name, spec in specs.items() if name in known}
        found = m.usual(there) + ([m.QUALITY] if m.QUALITY in known else [])
        if not found:
            raise ConvergeBenchError(
                f"{gathered.name} has no scores of its restorations. {score_hint(gathered)}"
            )
        return found
    wanted = []
    for name in dict.fromkeys(metrics):
        ours = m.asked(name, known)
        if ours not in known:
            registered = ours.endswith(m.REGISTERED)
            plain = ours.removesuffix(m.REGISTERED)
            if metric_spec(plain).directional:
                raise InputError(f"{name} measures the direction of an edit, not a restoration.")
            hint = score_hint(gathered, plain, registered=registered)
            raise InputError(f"{gathered.name} has no scores of {ours}. {hint}")
        wanted.append(ours)
    return wanted


def score_hint(gathered: Gathered, *metrics: str, registered: bool = False) -> str:
    """The command that computes scores of these metrics."""
    words = " ".join(f"--metric {name}" for name in metrics) or "--metrics restoration"
    paths = [str(run.store.place) for run in gathered.runs]
    more = " --registered" if registered else ""
    return f"Compute them with: convergebench score {paths[0]} {words}{more}" + (
        " (and so for each run)." if len(paths) > 1 else "."
    )


def _score_notes(
    promoted: Promoted, closed: Mapping[str, str], known: Known, names: Sequence[str]
) -> tuple[str, ...]:
    """What is not ours, what is not shown, what cannot be opened."""
    notes = [
        f"{known[name][0].title} of {counted(count, 'chain')}: as published by {origin}, not "
        "measured here."
        for name in names
        for origin, count in promoted.metrics.get(name, {}).items()
    ]
    rest = [name for name in known if name not in names and name != m.DETAIL]
    if rest:
        notes.append(f"Scored, too: {shown(rest, 6)}. --metric NAME shows a measure.")
    if closed:
        notes.append(
            f"Scored, but not installed here, so left out: {in_order(closed)}. "
            "convergebench plugins says why."
        )
    return tuple(notes)
