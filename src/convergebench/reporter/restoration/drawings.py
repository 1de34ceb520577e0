"""The study's charts: perception against distortion, and the spread of scores over pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from convergebench.reporter import palette
from convergebench.reporter.charts import Drawing
from convergebench.reporter.charts.drawing import STILL_WIDTH, Row
from convergebench.reporter.palette import Ink
from convergebench.reporter.restoration.placing import placed
from convergebench.restoration.result import Measure, Method, Point, Restoration

STILLS: Final = 12
"""Pairs of measures that are drawn as files; any other can be saved from the page."""

LINE: Final = 22
TALL: Final = 380
CONTROL: Final = "control"


def group_of(method: Method) -> str:
    """What a method is coloured by: its prompts' group, else its own kind."""
    return CONTROL if method.control else method.group or method.prompt or "no prompt"


def inks_of(found: Restoration) -> dict[str, Ink]:
    """A colour and shape for each group, the same in every chart."""
    groups = dict.fromkeys(group_of(method) for method in found.methods)
    return palette.inks([(group, group == CONTROL) for group in groups])


def tradeoff_pairs(found: Restoration) -> list[tuple[Measure, Measure]]:
    """The pairs of measures that there are points of, in the tables' order."""
    have = {(point.distortion, point.perception) for point in found.tradeoff}
    known = found.measures
    return [(a, b) for a in known for b in known if (a.name, b.name) in have]


def tradeoff_drawing(
    found: Restoration, pair: tuple[Measure, Measure], inks: dict[str, Ink], index: int
) -> Drawing:
    """The methods in the plane of two measures, better being up and to the right."""
    distortion, perception = pair
    points = [
        p
        for p in found.tradeoff
        if (p.distortion, p.perception) == (distortion.name, perception.name)
    ]
    groups = {method.id: group_of(method) for method in found.methods}
    rows = _spots(points, groups, distortion, perception, found.methods)
    apart = [row for row in rows if row["part"] == CONTROL]
    used = [ink for ink in inks.values() if any(row["part"] == ink.editor for row in rows)]
    if len(apart) < len(rows):  # a control far off would press all others together
        rows = [row for row in rows if row["part"] != CONTROL]
    else:
        apart = []
    # A layer without rows cannot tell how far its axes reach: none for a side without names.
    sides = [side for side in SIDES if any(side in (row["side"], row["near"]) for row in rows)]
    apart = [{**row, "side": row["side"] if row["side"] in sides else sides[0]} for row in apart]
    names = [ink.editor for ink in used]

    def chart() -> Any:
        x = _axis(alt.X("x:Q"), distortion, "x")
        y = _axis(alt.Y("y:Q"), perception, "y")
        key = alt.Legend(title=None, orient="bottom", columns=4, symbolOpacity=1)
        colour = alt.Color("part:N", scale=alt.Scale(domain=names, range="category"), legend=key)
        shapes = alt.Scale(domain=names, range=[ink.shape for ink in used])
        tips = [
            alt.Tooltip("method:N"),
            alt.Tooltip("part:N", title="group"),
            alt.Tooltip("x:Q", title=distortion.title, format=".3f"),
            alt.Tooltip("y:Q", title=perception.title, format=".3f"),
            alt.Tooltip("n:Q", title="over pictures"),
        ]
        base = alt.Chart().encode(x=x, y=y)
        dots = base.mark_point(filled=True, size=75, opacity=1).encode(
            color=colour, shape=alt.Shape("part:N", scale=shapes, legend=key), tooltip=tips
        )
        layers: list[Any] = [dots]
        for side in sides:
            dx, dy, align = SIDES[side]
            words = base.transform_filter(f"datum.side == '{side}'").mark_text(
                dx=dx, dy=dy, align=align, baseline="middle", fontSize=10.5, limit=150
            )
            named = words.encode(text="label:N", tooltip=tips)
            layers.append(named.properties(name=f"names-{side}"))
        return alt.layer(*layers).properties(width=STILL_WIDTH + 160, height=TALL)

    return Drawing(
        id=f"restoration-tradeoff-{index}",
        title="Perception against distortion",
        about="",
        alt=f"{perception.title} against {distortion.title}, a point for each method",
        rows=tuple(rows),
        build=chart,
        light=tuple(ink.light for ink in used),
        dark=tuple(ink.dark for ink in used),
        groups=tuple(apart),
        wide=True,
    )


def point_choices(scatters: Sequence[Drawing]) -> dict[str, str]:
    """Which points can be shown, by the name that the page's script knows."""
    rows = [row for drawing in scatters for row in drawing.rows]
    found = {"": "all methods"}
    if any(row["near"] for row in rows) and not all(row["near"] for row in rows):
        found["prompts"] = "prompts only"
    if any(drawing.groups for drawing in scatters):
        found["controls"] = "with controls"
    return found


SIDES: Final[dict[str, tuple[int, int, Any]]] = {
    "right": (8, 0, "left"),
    "left": (-8, 0, "right"),
    "above": (0, -12, "center"),
    "below": (0, 12, "center"),
}
"""Where a point's name may stand: offsets, and which of its ends is at the point."""


def _axis(channel: Any, measure: Measure, field: str) -> Any:
    """An axis along which better is up, or to the right."""
    where = "right" if field == "x" else "up"
    title = f"{measure.title} {measure.arrow} (better to the right)"
    if where == "up":
        title = f"{measure.title} {measure.arrow} (better upwards)"
    scale = alt.Scale(zero=False, nice=True, padding=18, reverse=not measure.higher_is_better)
    axis = alt.Axis(tickCount=6, labelOverlap=True)
    return channel.title(title).scale(scale).axis(axis)


def _spots(
    points: Sequence[Point],
    groups: dict[str, str],
    distortion: Measure,
    perception: Measure,
    methods: Sequence[Method],
) -> list[Row]:
    short = _short_names(methods)
    named = [short.get(p.method, p.label) for p in points]
    flip = (not distortion.higher_is_better, not perception.higher_is_better)
    sides = placed([(p.x, p.y) for p in points], named, flip)
    prompted = {method.id for method in methods if method.prompt and not method.control}
    some = [i for i, p in enumerate(points) if p.method in prompted]
    alone = placed([(points[i].x, points[i].y) for i in some], [named[i] for i in some], flip)
    near = dict(zip(some, alone, strict=True))
    return [
        {"method": p.label, "label": name, "part": groups.get(p.method, p.group), "x": p.x,
         "y": p.y, "n": p.n, "side": side, "near": near.get(i, "")}
        for i, (p, name, side) in enumerate(zip(points, named, sides, strict=True))
    ]  # fmt: skip


def _short_names(methods: Sequence[Method]) -> dict[str, str]:
    """Where one editor alone reads prompts, its prompts' names say enough."""
    prompted = {method.editor for method in methods if method.prompt}
    return {
        method.id: method.prompt if method.prompt and len(prompted) == 1 else method.label
        for method in methods
    }


def spread_drawing(
    found: Restoration, measure: Measure, inks: dict[str, Ink], index: int
) -> Drawing | None:
    """Every picture's score as a dot, and a box over them, by method; None without scores."""
    methods = {method.id: method for method in found.methods}
    mine = [score for score in found.scores if score.measure == measure.name]
    order = [m.label for m in found.methods if any(s.method == m.id for s in mine)]
    rows: list[Row] = [
        {"method": methods[s.method].label, "part": group_of(methods[s.method]),
         "source": s.source, "value": s.value}
        for s in mine
    ]  # fmt: skip
    if not rows:
        return None
    used = [ink for ink in inks.values() if any(row["part"] == ink.editor for row in rows)]
    names = [ink.editor for ink in used]

    def chart() -> Any:
        lines = alt.Axis(labelLimit=210, ticks=False, domain=False, grid=False)
        y = alt.Y("method:N", title=None, sort=order, axis=lines)
        scale = alt.Scale(zero=False, nice=True, padding=6)
        x = alt.X("value:Q", title=f"{measure.title} {measure.arrow}", scale=scale)
        key = alt.Legend(title=None, orient="bottom", columns=4, symbolOpacity=1)
        colour = alt.Color("part:N", scale=alt.Scale(domain=names, range="category"), legend=key)
        base = alt.Chart().encode(y=y, x=x)
        boxed = base.transform_aggregate(
            q1="q1(value)", q3="q3(value)", middle="median(value)", low="min(value)",
            high="max(value)", n="count()", groupby=["method", "part"],
        )  # fmt: skip
        tips = [
            alt.Tooltip("method:N"),
            alt.Tooltip("middle:Q", title="median", format=".3f"),
            alt.Tooltip("q1:Q", title="quartiles from", format=".3f"),
            alt.Tooltip("q3:Q", title="to", format=".3f"),
            alt.Tooltip("low:Q", title="least", format=".3f"),
            alt.Tooltip("high:Q", title="most", format=".3f"),
            alt.Tooltip("n:Q", title="pictures"),
        ]
        strip = base.mark_point(filled=True, size=14, opacity=0.4).encode(
            color=colour,
            tooltip=[
                alt.Tooltip("method:N"),
                alt.Tooltip("source:N", title="picture"),
                alt.Tooltip("value:Q", title=measure.title, format=".3f"),
            ],
        )
        whole = boxed.mark_bar(height=11, opacity=0.22).encode(
            x=alt.X("q1:Q", title=f"{measure.title} {measure.arrow}", scale=scale),
            x2="q3:Q", color=colour, tooltip=tips,
        )  # fmt: skip
        middle = boxed.mark_tick(thickness=2.5, height=15, opacity=1).encode(
            x=alt.X("middle:Q", scale=scale), color=colour, tooltip=tips
        )
        return alt.layer(strip, whole, middle).properties(
            width=STILL_WIDTH + 160, height=LINE * len(order)
        )

    return Drawing(
        id=f"restoration-spread-{index}",
        title=f"Spread over pictures: {measure.title}",
        about="",
        alt=f"{measure.title} of every picture, a line of dots for each method",
        rows=tuple(rows),
        build=chart,
        light=tuple(ink.light for ink in used),
        dark=tuple(ink.dark for ink in used),
        wide=True,
    )
