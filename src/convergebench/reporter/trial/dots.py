"""Dot plots by metric: order, content, sensitivity, spikes, agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from convergebench.reporter.charts import drawing
from convergebench.reporter.charts.drawing import Row
from convergebench.reporter.palette import PARTS_DARK, PARTS_LIGHT
from convergebench.reporter.trial.figure import Figure
from convergebench.reporter.trial.heat import LABEL
from convergebench.trial.result import Card, Trial

LINE: Final = 24
SPREAD, DROP = "spread over images at step 1", "fall of the score"
SHAPES: Final = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")


def dot_figures(trial: Trial) -> list[Figure]:
    """All that there are data for, in the page's order."""
    made = (_order, _content, _spikes, _sensitivity, _agreement)
    return [figure for make in made if (figure := make(trial)) is not None]


def _order(trial: Trial) -> Figure | None:
    rows = [
        {"metric": c.metric, "part": "all", "value": c.later_better.value,
         "low": c.later_better.low, "high": c.later_better.high, "n": c.later_better.n}
        for c in trial.cards if c.later_better is not None
    ]  # fmt: skip
    return _figure(
        "order", rows, ("all",),
        title="P(a later frame is scored better)",
        about="Of two frames of one chain. 0 is right; at one half (dotted) the score knows "
        "nothing of the order; beyond it the metric prefers damage. 95 % intervals over images.",
        axis="probability", domain=(0, 1), rule=0.5, form=".3f",
    )  # fmt: skip


def _content(trial: Trial) -> Figure | None:
    rows: list[Row] = []
    for c in trial.cards:
        if c.content is None:
            continue
        for part, value in ((SPREAD, c.content.spread), (DROP, c.content.drop)):
            if value is not None:
                rows.append({"metric": c.metric, "part": part, "value": value})
    return _figure(
        "content", rows, (SPREAD, DROP),
        title="Robustness to content",
        about="Where the spread over images is more than the fall, what a picture shows hides "
        "what has happened to it. In normalised points.",
        axis="normalised points", form=".1f", joined=True,
    )  # fmt: skip


def _spikes(trial: Trial) -> Figure | None:
    rows = [
        {"metric": c.metric, "part": "all", "value": c.content.spikes / c.content.additions,
         "told": f"{c.content.spikes} of {c.content.additions} steps"}
        for c in trial.cards if c.content is not None and c.content.additions
    ]  # fmt: skip
    return _figure(
        "spikes", rows, ("all",),
        title="Jumps upwards while objects are added",
        about="Share of the steps at which a picture that only decays is suddenly scored better.",
        axis="share of the steps", domain=(0, 1), form=".1%",
    )  # fmt: skip


def _sensitivity(trial: Trial) -> Figure | None:
    rows = [
        {"metric": c.metric, "part": "all", "value": c.sensitivity.failing / c.sensitivity.pairs,
         "told": _pairs(c)}
        for c in trial.cards if c.sensitivity is not None and c.sensitivity.pairs
    ]  # fmt: skip
    return _figure(
        "sensitivity", rows, ("all",),
        title="Sensitivity to the choice of steps",
        about="Share of all pairs of steps (first, later) for which the metric would fail. Point "
        "at one for its worst pair.",
        axis="share of the pairs", domain=(0, 1), form=".1%",
    )  # fmt: skip


def _pairs(card: Card) -> str:
    told = card.sensitivity
    if told is None:
        return ""
    words = f"{told.failing:,} of {told.pairs:,} pairs"
    if told.worst is not None:
        first, later = told.worst
        words += f"; worst: {first} → {later} ({told.worst_share:.0%})"
    return words


def _agreement(trial: Trial) -> Figure | None:
    rows = [
        {"metric": c.metric, "part": other_name(a.other, a.kind), "value": a.spearman.value,
         "low": a.spearman.low, "high": a.spearman.high, "n": a.spearman.n}
        for c in trial.cards for a in c.agreement
    ]  # fmt: skip
    parts = sorted({str(row["part"]) for row in rows})
    return _figure(
        "agreement", rows, parts,
        title="Agreement with other measures",
        about="Spearman's ρ on the same frames; 1 is the same order, 0 none, below 0 the "
        "opposite. 95 % intervals where there are enough images.",
        axis="Spearman ρ", domain=(-1, 1), rule=0, form=".2f",
    )  # fmt: skip


def other_name(other: str, kind: str) -> str:
    """Another measure as it is told: people first."""
    return f"ratings: {other}" if kind == "ratings" else other


def _figure(
    kind: str, rows: Sequence[Row], parts: Sequence[str], *, title: str, about: str, axis: str,
    form: str, domain: tuple[float, float] | None = None, rule: float | None = None,
    joined: bool = False,
) -> Figure | None:  # fmt: skip
    if not rows:
        return None
    metrics = list(dict.fromkeys(str(row["metric"]) for row in rows))
    values = [float(row[k]) for row in rows for k in ("value", "low", "high")
              if row.get(k) is not None]  # fmt: skip
    ends = domain or (min(0.0, *values), max(0.0, *values))
    ends = (min(ends[0], *values), max(ends[1], *values))
    colours = [PARTS_LIGHT, PARTS_DARK]
    light, dark = ([some[i % len(some)] for i in range(len(parts))] for some in colours)
    offset = len(parts) > 1 and not joined
    height = max(LINE, (11 * len(parts) + 8) if offset else 0) * len(metrics)

    def chart() -> Any:
        lines = alt.Axis(labelLimit=LABEL, ticks=False, domain=False, grid=True, gridDash=[1, 3])
        y = alt.Y("metric:N", title=None, sort=metrics, axis=lines)
        base = alt.Chart().encode(y=y)
        if offset:
            base = base.encode(yOffset=alt.YOffset("part:N", scale=alt.Scale(domain=list(parts))))
        scale = alt.Scale(domain=list(ends), nice=False, zero=False, padding=8)
        x = alt.X("value:Q", title=axis, scale=scale)
        shares: dict[str, Any] = {"format": "%"} if "%" in form else {}
        x = x.axis(tickCount=5, labelOverlap=True, **shares)
        legend = drawing.parts_legend() if len(parts) > 1 else None
        scaled = alt.Scale(domain=list(parts), range="category")
        colour = alt.Color("part:N", scale=scaled, legend=legend)
        shapes = [SHAPES[i % len(SHAPES)] for i in range(len(parts))]
        shape = alt.Shape(
            "part:N", scale=alt.Scale(domain=list(parts), range=shapes), legend=legend
        )
        layers: list[Any] = []
        if joined:
            line = base.mark_line(strokeWidth=2, opacity=0.35, color="#888888")
            layers.append(line.encode(x=x, detail="metric:N"))
        if any(row.get("low") is not None for row in rows):
            spans = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
            spans = spans.mark_rule(strokeWidth=2, opacity=0.6)
            layers.append(spans.encode(x=alt.X("low:Q", scale=scale), x2="high:Q", color=colour))
        dots = base.mark_point(filled=True, size=60, opacity=1)
        layers.append(
            dots.encode(x=x, color=colour, shape=shape, tooltip=_told(rows, parts, axis, form))
        )
        if rule is not None:
            # Last: its one row must not be the first to tell the axis what to show.
            layers.append(drawing.rule(rule, "x"))
        return alt.layer(*layers).properties(width=drawing.STILL_WIDTH, height=height)

    return Figure(
        id=f"trial-{kind}",
        title=title,
        about=about,
        alt=f"{title}, by metric",
        rows=tuple(rows),
        build=chart,
        light=tuple(light),
        dark=tuple(dark),
        parts=tuple(parts) if len(parts) > 1 else (),
    )


def _told(rows: Sequence[Row], parts: Sequence[str], axis: str, form: str) -> list[alt.Tooltip]:
    told = [alt.Tooltip("metric:N")]
    if len(parts) > 1:
        told.append(alt.Tooltip("part:N", title="what"))
    told.append(alt.Tooltip("value:Q", title=axis, format=form))
    if any(row.get("low") is not None for row in rows):
        told.append(alt.Tooltip("low:Q", title="95 % from", format=form))
        told.append(alt.Tooltip("high:Q", title="to", format=form))
        told.append(alt.Tooltip("n:Q", title="over images"))
    if any("told" in row for row in rows):
        told.append(alt.Tooltip("told:N", title="that is"))
    return told
