"""Results by part of the chains: by edit category, image category, session, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from convergebench.analysis import Finding, Findings
from convergebench.reporter.charts import drawing
from convergebench.reporter.charts.drawing import Drawing
from convergebench.reporter.charts.dynamics import first_metric, of_kind, parts_drawing, present
from convergebench.reporter.charts.heatmap import MARK, PARTIAL, STARRED
from convergebench.reporter.palette import Ink

SPLITS: Final = {
    "by-edit": "edit category",
    "by-image": "image category",
    "by-session": "session",
    "by-settings": "settings",
}
VARIANCE: Final = ("source", "edit", "repeat", "rest")


def group_name(group: str) -> str:
    """A group without the word that says what it is a group of."""
    return group.partition(":")[2] or group


def group_drawings(findings: Findings, inks: Mapping[str, Ink]) -> list[Drawing]:
    """Scores by group; nothing where there is only one."""
    found = []
    for kind, words in SPLITS.items():
        points = [f for f in of_kind(findings, kind) if f.metric == "score"]
        if len({f.group for f in points}) > 1:
            found.append(_dots(kind, words, points, inks))
    return found


def _dots(kind: str, words: str, points: Sequence[Finding], inks: Mapping[str, Ink]) -> Drawing:
    shown = drawing.drawn(inks, points)
    partial = {f.group for f in points if PARTIAL in f.note}
    label = {f.group: group_name(f.group) + (MARK if f.group in partial else "") for f in points}
    names = [label[g] for g in sorted(label, key=lambda g: (g in partial, g))]

    def chart() -> Any:
        x = alt.X("value:Q", title="score (mean AUC)").scale(domain=[0, 1])
        x = x.axis(tickCount=6, labelOverlap=True)
        axis = alt.Axis(labelLimit=150, ticks=False, domain=False, grid=True, gridDash=[1, 3])
        y = alt.Y("part:N", title=None, sort=names, axis=axis)
        inked = drawing.by_editor(shown)
        told = drawing.tooltips(points, alt.Tooltip("part:N", title=words), value="mean AUC")
        base = alt.Chart().encode(y=y, color=inked["color"])
        spans = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
        spans = spans.encode(x=alt.X("low:Q"), x2="high:Q", opacity=drawing.whisker_opacity(shown))
        dots = base.mark_point(filled=True, size=55).encode(
            x=x, shape=drawing.by_shape(shown), opacity=inked["opacity"], tooltip=told
        )
        return alt.layer(spans, dots).properties(
            width=drawing.STILL_WIDTH, height=drawing.tall(len(names), 26)
        )

    return Drawing(
        id=kind,
        title=f"Score by {words}",
        about="Mean AUC over all chains of the group. Choose editors to see their intervals.",
        alt=f"Score by {words}, one point per editor",
        rows=tuple(drawing.row_of(f, part=label[f.group]) for f in points),
        build=chart,
        **drawing.colours(shown),
        under=(STARRED,) if partial else (),
    )


def variance_drawing(findings: Findings, inks: Mapping[str, Ink]) -> Drawing | None:
    """What makes chains of one editor differ."""
    points = of_kind(findings, "variance")
    if not points:
        return None
    metric = first_metric(points, "score", "headline", "quality", "psnr")
    points = [f for f in points if f.metric == metric]
    parts = present(points, VARIANCE)
    return parts_drawing(
        findings,
        inks,
        "variance",
        points,
        parts,
        title=f"What makes chains differ, by {metric}",
        about="Share of the variance of AUC that goes with the source picture, the edit and the "
        "repeat.",
        value="share of the variance",
        known=VARIANCE,
    )
