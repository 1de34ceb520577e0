"""How editors decay: contraction of the distance between homecomings, shapes, both dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from convergebench.analysis import Finding, Findings
from convergebench.analysis.contraction import NEAR
from convergebench.reporter.charts import drawing
from convergebench.reporter.charts.drawing import Drawing
from convergebench.reporter.palette import Ink, part_colours
from convergebench.wording import shown as a_few

SHAPES: Final = ("flat", "plateau", "exponential", "linear", "cliff")
"""From the kindest to the harshest."""

VERDICT: Final = (
    f"It settles or diverges only where λ is at least {100 * NEAR:g} % from 1 and its whole "
    "interval on that side of 1; else it drifts."
)
"""The rule of `analysis.contraction.verdict`."""


def of_kind(findings: Findings, kind: str) -> list[Finding]:
    """The findings of one kind that have an estimate."""
    return [f for f in findings.findings if f.kind == kind and f.estimate is not None]


def in_board_order(findings: Findings, points: Sequence[Finding]) -> list[str]:
    """The editors that have a point, best first."""
    have = {point.editor for point in points}
    return [s.editor for s in findings.standings if s.editor in have]


def first_metric(points: Sequence[Finding], *wanted: str) -> str:
    """The first of these metrics that has a point, else any."""
    have = dict.fromkeys(point.metric for point in points)
    return next((name for name in wanted if name in have), next(iter(have), ""))


def present(points: Sequence[Finding], known: Sequence[str]) -> list[str]:
    """The groups that have a point: the known ones first, in their order."""
    have = {f.group for f in points}
    return [name for name in known if name in have] + sorted(have - set(known))


def contraction_drawings(findings: Findings, inks: Mapping[str, Ink]) -> list[Drawing]:
    """Per metric the distances between homecomings, and the factor they shrink or grow by."""
    found: list[Drawing] = []
    distances, factors = of_kind(findings, "distance"), of_kind(findings, "contraction")
    metrics = dict.fromkeys(f.metric for f in (*factors, *distances))
    for metric in metrics:
        walk = [f for f in distances if f.metric == metric]
        above = [f for f in walk if f.estimate]
        if above:
            found.append(_distances(metric, above, walk, inks))
        mine = [f for f in factors if f.metric == metric]
        if mine:
            found.append(_factors(metric, mine, in_board_order(findings, mine), inks))
    return found


def _distances(
    metric: str, points: Sequence[Finding], walk: Sequence[Finding], inks: Mapping[str, Ink]
) -> Drawing:
    shown = drawing.drawn(inks, points)
    still = sorted({f.editor for f in walk} - {f.editor for f in points})
    unit = "RMSE, 8-bit levels" if metric == "psnr" else metric

    def chart() -> Any:
        rounds = [f.round or 0 for f in points]
        n = drawing.homecomings_axis(max(rounds), min(rounds))
        y = (
            alt.Y("value:Q", title=f"distance ({unit})")
            .scale(type="log")
            .axis(values=_decades(points), format="~g")
        )
        inked = drawing.by_editor(shown)
        base = alt.Chart().encode(x=n, y=y, **inked)
        lines = base.mark_line(strokeWidth=2).encode(strokeDash=drawing.by_dash(shown))
        dots = base.mark_point(filled=True, size=40).encode(
            shape=drawing.by_shape(shown),
            tooltip=drawing.tooltips(
                points, alt.Tooltip("n:Q", title="homecoming"), value="mean distance"
            ),
        )
        return alt.layer(lines, dots).properties(width=drawing.STILL_WIDTH, height=250)

    return Drawing(
        id=f"distance-{metric.replace('/', '-')}",
        title=f"Distance between homecomings, by {metric}",
        about="How far homecoming n is from the one before it, on a log scale: a line that falls "
        "settles, a level one drifts, a rising one diverges.",
        alt=f"Distance between successive homecomings by {metric}, one line per editor",
        rows=tuple(drawing.row_of(f, n=f.round) for f in points),
        build=chart,
        **drawing.colours(shown),
        under=(f"Did not move at all, so not on a log scale: {', '.join(still)}.",)
        if still
        else (),
    )


def _decades(points: Sequence[Finding]) -> list[float]:
    """Where a log axis has its lines: at powers of ten, and within a few also at three times."""
    values = [f.estimate for f in points if f.estimate]
    first, last = (math.floor(math.log10(value)) for value in (min(values), max(values)))
    between = (1, 3) if last - first < 4 else (1,)
    return [float(f"{k}e{n}") for n in range(first, last + 2) for k in between]


def _factors(
    metric: str, points: Sequence[Finding], names: Sequence[str], inks: Mapping[str, Ink]
) -> Drawing:
    shown = drawing.drawn(inks, points)

    def chart() -> Any:
        x = alt.X("value:Q", title="contraction factor λ").scale(zero=False)
        x = x.axis(tickCount=6, labelOverlap=True)
        y = drawing.editor_axis(names)
        inked = drawing.by_editor(shown)
        told = drawing.tooltips(points, value="λ, median")
        told.insert(2, alt.Tooltip("word:N", title="so it"))
        base = alt.Chart().encode(y=y, **inked)
        spans = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
        dots = base.mark_point(filled=True, size=60).encode(
            x=x, shape=drawing.by_shape(shown), tooltip=told
        )
        one = drawing.rule(1, "x")
        layers = alt.layer(one, spans.encode(x=alt.X("low:Q", title=""), x2="high:Q"), dots)
        return layers.properties(width=drawing.STILL_WIDTH, height=drawing.tall(len(names)))

    return Drawing(
        id=f"contraction-{metric.replace('/', '-')}",
        title=f"Contraction factor λ, by {metric}",
        about="Median over chains with its 95 % interval. Left of the dotted line the steps shrink "
        f"and the picture settles; right of it they grow. {VERDICT}",
        alt=f"Contraction factor by {metric}, one point with interval per editor",
        rows=tuple(drawing.row_of(f, word=contraction_word(f)) for f in points),
        build=chart,
        **drawing.colours(shown),
        under=drawing.absent(inks, points),
    )


def contraction_word(finding: Finding) -> str:
    """What a contraction factor says, as its finding says it."""
    return next((w for w in ("settles", "drifts", "diverges") if w in finding.note), "")


def shape_drawing(findings: Findings, inks: Mapping[str, Ink]) -> Drawing | None:
    """Which shapes each editor's curves have; None where only controls have one."""
    metric = shape_metric(findings)
    if not metric:
        return None
    points = [f for f in of_kind(findings, "shape") if f.metric == metric]
    kinds = present(points, SHAPES)
    return parts_drawing(
        findings,
        inks,
        "shapes",
        points,
        kinds,
        title=f"Shape of the curves, by {metric}",
        about="Share of chains whose curve is best told by each shape: a plateau keeps what is "
        "left, a cliff loses it at once.",
        value="share of chains",
        known=SHAPES,
    )


def shape_metric(findings: Findings) -> str:
    """The metric whose shapes are shown; empty where no editor that is no control has one."""
    controls = controls_of(findings)
    points = [f for f in of_kind(findings, "shape") if f.editor not in controls]
    return first_metric(points, "headline", "quality", "psnr")


def why_shapeless(findings: Findings) -> str:
    """Why no editor has a shape, as the findings say it; empty where one has, or nothing is said.

    Controls do not count: a flat line of theirs is no news.
    """
    if shape_metric(findings):
        return ""
    controls = controls_of(findings)
    told = {
        f.editor: f.note.replace(": ", ", ")
        for f in findings.findings
        if f.kind == "shape" and f.note and f.editor not in controls
    }
    if not told:
        return ""
    if len(told) > 1 and len(set(told.values())) == 1:
        told = {"each editor": next(iter(told.values()))}
    each = [f"{name} {note}" for name, note in told.items()]
    return f"No shapes; chains of {a_few(each, 3, '; of ')}."


def controls_of(findings: Findings) -> set[str]:
    """The controls; none where there is nothing else."""
    controls = {s.editor for s in findings.standings if s.control}
    return controls if len(controls) < len(findings.standings) else set()


def parts_drawing(
    findings: Findings,
    inks: Mapping[str, Ink],
    name: str,
    points: Sequence[Finding],
    parts: Sequence[str],
    *,
    title: str,
    about: str,
    value: str,
    known: Sequence[str],
) -> Drawing:
    """Bars of editors, each made of parts; `known` are all parts that there may be."""
    names = in_board_order(findings, points)
    place = {part: index for index, part in enumerate(parts)}

    def chart() -> Any:
        x = alt.X("value:Q", title=value, stack="zero")
        x = x.axis(format="%", grid=False, tickCount=6, labelOverlap=True)
        x = x.scale(domain=[0, 1])
        told = drawing.tooltips(points, alt.Tooltip("part:N"), value=value, form=".1%")
        colour = alt.Color(
            "part:N",
            sort=list(parts),
            legend=drawing.parts_legend(),
            scale=alt.Scale(domain=list(parts), range="category"),
        )
        bars = (
            alt.Chart()
            .mark_bar(height={"band": 0.72})
            .encode(
                x=x,
                y=drawing.editor_axis(names),
                color=colour,
                order=alt.Order("place:Q"),
                opacity=alt.condition(drawing.ALL_OR_CHOSEN, alt.value(1), alt.value(0.2)),
                tooltip=told,
            )
        )
        return alt.layer(bars).properties(
            width=drawing.STILL_WIDTH, height=drawing.tall(len(names))
        )

    return Drawing(
        id=name,
        title=title,
        about=about,
        alt=f"{title}: stacked bars, one per editor",
        rows=tuple(
            drawing.row_of(f, part=f.group, place=place[f.group])
            for f in points
            if f.group in place
        ),
        build=chart,
        parts=tuple(parts),
        **part_colours(parts, known),
        under=drawing.absent(inks, points),
    )


def scatter_drawing(findings: Findings, inks: Mapping[str, Ink]) -> Drawing | None:
    """Quality against semantic AUC; of other metrics, named so, where a dimension is missing."""
    values = of_kind(findings, "auc")
    have = {f.metric for f in values}
    pairs = (("quality", "semantic"), ("psnr", "ssim"), ("psnr", "lpips"))
    both = next((pair for pair in pairs if have >= set(pair)), None)
    if both is None:
        return None
    across, up = both
    down = {f.editor: f for f in values if f.metric == up}
    points = [f for f in values if f.metric == across and f.editor in down]
    shown = drawing.drawn(inks, points)
    rows = []
    for f in points:
        other = down[f.editor]
        rows.append(
            drawing.row_of(f) | {"up": other.estimate, "up_low": other.low, "up_high": other.high}
        )
    complete = both == pairs[0]
    missing = (
        ()
        if complete
        else (f"A dimension is incomplete, so this is {across} against {up}, not the dimensions.",)
    )

    def chart() -> Any:
        x = alt.X("value:Q", title=f"AUC, {across}").scale(domain=[0, 1])
        y = alt.Y("up:Q", title=f"AUC, {up}").scale(domain=[0, 1])
        inked = drawing.by_editor(shown)
        told = drawing.tooltips(points, value=across)
        told[2:2] = [alt.Tooltip("up:Q", title=up, format=".3f")]
        base = alt.Chart().encode(**inked)
        dots = base.mark_point(filled=True, size=80).encode(
            x=x, y=y, shape=drawing.by_shape(shown), tooltip=told
        )
        wide = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.2)
        tall = base.transform_filter("isValid(datum.up_low)").mark_rule(strokeWidth=1.2)
        level = alt.Chart(alt.InlineData(values=[{"a": 0}, {"a": 1}])).mark_line(
            strokeDash=[2, 3], strokeWidth=1, color="#8a9099"
        )
        return alt.layer(
            level.encode(x="a:Q", y="a:Q"),
            wide.encode(x=alt.X("low:Q"), x2="high:Q", y=alt.Y("up:Q")),
            tall.encode(y=alt.Y("up_low:Q"), y2="up_high:Q", x=alt.X("value:Q")),
            dots,
        ).properties(width=drawing.STILL_WIDTH, height=320)

    return Drawing(
        id="scatter",
        title=f"{across.capitalize()} against {up}",
        about="Mean AUC of an editor's own complete chains, with 95 % intervals. Above the dotted "
        f"line an editor keeps {up} better than {across}.",
        alt=f"AUC by {across} against AUC by {up}, one point with two intervals per editor",
        rows=tuple(rows),
        build=chart,
        **drawing.colours(shown),
        under=(*missing, *drawing.absent(inks, points)),
    )
