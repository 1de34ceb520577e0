"""Survival curves: the share of chains that are still above the threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from convergebench.analysis import Finding, Findings
from convergebench.reporter.charts import drawing
from convergebench.reporter.charts.curves import wider_names
from convergebench.reporter.charts.drawing import Drawing
from convergebench.reporter.palette import Ink
from convergebench.wording import shown


def survival_drawings(findings: Findings, inks: Mapping[str, Ink]) -> dict[str, Drawing]:
    """A chart per metric that has survival curves."""
    steps: dict[str, list[Finding]] = {}
    lives: dict[str, list[Finding]] = {}
    for f in findings.findings:
        if f.kind == "survival" and f.estimate is not None and f.at is not None:
            steps.setdefault(f.metric, []).append(f)
        if f.kind == "half-life":
            lives.setdefault(f.metric, []).append(f)
    known = wider_names(findings)
    order = sorted(steps, key=lambda m: (known.index(m) if m in known else len(known), m))
    return {
        metric: _drawing(metric, steps[metric], lives.get(metric, []), inks) for metric in order
    }


def _drawing(
    metric: str, steps: Sequence[Finding], lives: Sequence[Finding], inks: Mapping[str, Ink]
) -> Drawing:
    drawn = drawing.drawn(inks, steps)
    censored = [f"{f.editor} {f.censored} of {f.n}" for f in lives if f.censored]
    told = "Followed to the end and never fell (censored): " + shown(censored, 4) + "."
    return Drawing(
        id=f"survival-{metric.replace('/', '-')}",
        title=f"Survival: {metric}",
        about="Share of chains still above the threshold. A curve crosses the dotted line at the "
        "editor's half-life.",
        alt=f"Share of chains still above the threshold by {metric}, one step curve per editor",
        rows=tuple(drawing.row_of(f, at=f.at) for f in steps),
        build=lambda: _chart(steps, drawn),
        **drawing.colours(drawn),
        under=(*drawing.absent(inks, steps), *([told] if censored else [])),
    )


def _chart(steps: Sequence[Finding], inks: Sequence[Ink]) -> Any:
    x = drawing.homecomings_axis(max(step.at or 0 for step in steps), field="at:Q")
    share = "share above the threshold"
    y = alt.Y("value:Q", title=share).scale(domain=[0, 1]).axis(format="%")
    inked = drawing.by_editor(inks)
    bands = (
        alt.Chart()
        .transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area(interpolate="step-after")
        .encode(
            x=x,
            y=alt.Y("low:Q", title=share).scale(domain=[0, 1]),
            y2="high:Q",
            color=inked["color"],
            opacity=drawing.band_opacity(inks),
        )
    )
    lines = (
        alt.Chart()
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(x=x, y=y, strokeDash=drawing.by_dash(inks), **inked)
    )
    # Steps have no marks of their own to point at: unseen ones tell.
    told = drawing.tooltips(
        steps, alt.Tooltip("at:Q", title="from homecoming", format=".2f"), value="still above",
        form=".1%",
    )  # fmt: skip
    hover = (
        alt.Chart()
        .mark_point(filled=True, size=90, opacity=0)
        .encode(x=x, y=y, color=inked["color"], tooltip=told)
    )
    half = drawing.rule(0.5, "y")
    layers = alt.layer(bands, half, lines, hover)
    return layers.properties(width=drawing.STILL_WIDTH, height=250)
