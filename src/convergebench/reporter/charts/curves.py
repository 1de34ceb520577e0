"""Degradation curves: what is left at each homecoming, and the metrics' own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from convergebench.analysis import Finding, Findings
from convergebench.analysis.findings import DIMENSIONS, HEADLINE
from convergebench.reporter.charts import drawing
from convergebench.reporter.charts.drawing import Drawing, Row
from convergebench.reporter.palette import Ink

START: Final = 1.0
"""C(0), by definition: the source is at home."""

KINDS: Final = ("convergence", "value")

MANY_ROUNDS: Final = 15
"""From here on points are drawn small."""


@dataclass(frozen=True)
class Curves:
    """All editors' curves of one kind and metric: findings that have an estimate."""

    kind: str
    metric: str
    points: tuple[Finding, ...]
    threshold: float
    infinite: tuple[tuple[str, int, int], ...] = ()
    """Editors with infinite values, how many these are, and of how many values."""
    parts: tuple[Finding, ...] = ()
    """The same curves of groups of chains, where there are any."""

    @property
    def id(self) -> str:
        """Name in files and pages."""
        return f"{self.kind}-{self.metric.replace('/', '-')}"

    @property
    def left_out(self) -> str:
        """A sentence on the values that are infinite and so in no mean; empty without any."""
        if not self.infinite:
            return ""
        alike = self.metric.partition("-")[0] == "psnr"
        what = "Identical to home, so infinite and" if alike else "Infinite and"
        counts = ", ".join(f"{name} {count} of {total}" for name, count, total in self.infinite)
        frames = "frame" if self.infinite[-1][2] == 1 else "frames"
        return f"{what} left out of the mean: {counts} {frames}."


def metric_names(findings: Findings) -> list[str]:
    """The metrics' names, without their versions."""
    return [label.rpartition("@")[0] for label in findings.metrics]


def wider_names(findings: Findings) -> list[str]:
    """Headline and dimensions first, then the metrics."""
    return [HEADLINE, *DIMENSIONS, *metric_names(findings)]


def curves_of(findings: Findings) -> list[Curves]:
    """The curves among some findings, by metric, convergence before value."""
    points: dict[tuple[str, str], list[Finding]] = {}
    parts: dict[str, list[Finding]] = {}
    infinite: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
    for f in findings.findings:
        kind = f.kind
        if kind == "group-convergence" and f.estimate is not None:
            parts.setdefault(f.metric, []).append(f)
        if kind not in KINDS:
            continue
        if f.estimate is not None:
            points.setdefault((f.metric, kind), []).append(f)
        counts = infinite.setdefault((f.metric, kind), {})
        some, total = counts.get(f.editor, (0, 0))
        counts[f.editor] = (some + f.infinite, total + f.n + f.infinite)
    return [
        Curves(
            kind,
            metric,
            tuple(points[metric, kind]),
            findings.threshold,
            tuple((name, *both) for name, both in infinite[metric, kind].items() if both[0]),
            tuple(parts.get(metric, ())) if kind == "convergence" else (),
        )
        for metric in wider_names(findings)
        for kind in KINDS
        if (metric, kind) in points
    ]


def curve_drawing(curves: Curves, inks: Mapping[str, Ink], about: str = "") -> Drawing:
    """The chart of some curves.

    Args:
        curves: What to draw.
        inks: How each editor is drawn.
        about: What the metric is, for the caption of its values.
    """
    shown = drawing.drawn(inks, curves.points)
    converging = curves.kind == "convergence"
    title = "C(n)" if converging else curves.metric
    what = "Convergence" if converging else "Value"
    return Drawing(
        id=curves.id,
        title=f"Convergence C(n): {curves.metric}" if converging else f"{curves.metric}, as scored",
        about=f"1 is home. Dotted: the threshold {curves.threshold:g}; half-lives come from the "
        "survival curve."
        if converging
        else about,
        alt=f"{what} by {curves.metric} over homecomings, one line per editor",
        rows=tuple([*_starts(shown, converging), *(_row(point) for point in curves.points)]),
        groups=tuple(_part_rows(curves.parts, shown)),
        build=lambda: _chart(curves, shown, title),
        **drawing.colours(shown),
        under=tuple(
            word for word in (*drawing.absent(inks, curves.points), curves.left_out) if word
        ),
    )


def _starts(inks: Sequence[Ink], converging: bool, **more: Any) -> list[Row]:
    return [{"editor": i.editor, **more, "n": 0, "value": START} for i in inks if converging]


def _row(point: Finding) -> Row:
    row = drawing.row_of(point, n=point.round)
    return row | ({"infinite": point.infinite} if point.infinite else {})


def _part_rows(parts: Sequence[Finding], inks: Sequence[Ink]) -> list[Row]:
    """Rows of groups; each editor of a group starts at home."""
    known = {ink.editor: ink for ink in inks}
    whose = dict.fromkeys((p.group, p.editor) for p in parts if p.editor in known)
    starts = [row for g, e in whose for row in _starts([known[e]], True, group=g)]
    return starts + [drawing.row_of(p, group=p.group, n=p.round) for p in parts]


def _chart(curves: Curves, inks: Sequence[Ink], title: str) -> Any:
    rounds = max(point.round or 0 for point in curves.points)
    converging = curves.kind == "convergence"
    n = drawing.homecomings_axis(
        rounds, 0 if converging else min(point.round or 0 for point in curves.points)
    )
    bounds = alt.Scale(domain=[0, 1]) if converging else alt.Scale(zero=False)
    value = alt.Y("value:Q", title=title).scale(bounds)
    inked = drawing.by_editor(inks)
    lines = (
        alt.Chart()
        .mark_line(strokeWidth=2)
        .encode(x=n, y=value, strokeDash=drawing.by_dash(inks), **inked)
    )
    told = drawing.tooltips((*curves.points, *curves.parts), alt.Tooltip("n:Q", title="homecoming"))
    if curves.infinite:
        told.append(alt.Tooltip("infinite:Q", title="infinite, not in the mean"))
    points = (
        alt.Chart()
        .transform_filter("datum.n > 0")
        .mark_point(filled=True, size=46 if rounds <= MANY_ROUNDS else 14)
        .encode(x=n, y=value, shape=drawing.by_shape(inks), tooltip=told, **inked)
    )
    if not converging:
        return alt.layer(lines, points).properties(width=drawing.STILL_WIDTH, height=250)
    bands = (
        alt.Chart()
        .transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area()
        .encode(
            x=n,
            y=alt.Y("low:Q", title=title),
            y2="high:Q",
            color=inked["color"],
            opacity=drawing.band_opacity(inks),
        )
    )
    half = drawing.rule(curves.threshold, "y")
    return alt.layer(bands, half, lines, points).properties(width=drawing.STILL_WIDTH, height=250)
