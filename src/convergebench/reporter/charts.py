"""Degradation curves: Vega-Lite specifications made with Altair from findings.

The same drawing serves the page (live, no legend of its own because the page has one for all
charts, colours by the theme) and the folder `charts/` (SVG, for print, papers and browsers without
JavaScript). Every point is a finding; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from convergebench.analysis import Finding, Findings
from convergebench.reporter.palette import Ink

START: Final = 1.0
"""C(0), by definition: the source is at home."""

KINDS: Final = ("convergence", "value")

_PAPER: Final = {"background": "white", "font": "Liberation Sans, Arial, Helvetica, sans-serif"}
"""What stills have of their own: the font whose widths vl-convert knows, and its equals."""

_CHOSEN: Final = "indexof(chosen, datum.editor) >= 0"
_ALL_OR_CHOSEN: Final = f"length(chosen) == 0 || {_CHOSEN}"


@dataclass(frozen=True)
class Curves:
    """All editors' curves of one kind and metric: findings that have an estimate."""

    kind: str
    metric: str
    points: tuple[Finding, ...]
    threshold: float
    infinite: tuple[tuple[str, int, int], ...] = ()
    """Editors with infinite values, how many these are, and of how many values."""

    @property
    def id(self) -> str:
        """Name in files and pages."""
        return f"{self.kind}-{self.metric.replace('/', '-')}"

    @property
    def editors(self) -> frozenset[str]:
        """Those that have a point here."""
        return frozenset(point.editor for point in self.points)

    def drawn(self, inks: Mapping[str, Ink]) -> list[Ink]:
        """The inks of the editors that have a point here."""
        return [ink for name, ink in inks.items() if name in self.editors]

    def absent(self, inks: Mapping[str, Ink]) -> list[str]:
        """The editors that have none."""
        return [name for name in inks if name not in self.editors]

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


def curves_of(findings: Findings) -> list[Curves]:
    """The curves among some findings, by metric, convergence before value."""
    points: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings.findings:
        kind = finding.id.partition("/")[0]
        if kind in KINDS and finding.estimate is not None:
            points.setdefault((finding.metric, kind), []).append(finding)
    return [
        Curves(
            kind,
            metric,
            tuple(points[metric, kind]),
            findings.threshold,
            _infinite(findings, kind, metric),
        )
        for metric in metric_names(findings)
        for kind in KINDS
        if (metric, kind) in points
    ]


def _infinite(findings: Findings, kind: str, metric: str) -> tuple[tuple[str, int, int], ...]:
    """Per editor that has infinite values here their count, and that of all values."""
    counts: dict[str, tuple[int, int]] = {}
    for f in findings.findings:
        if f.metric == metric and f.id.partition("/")[0] == kind:
            infinite, total = counts.get(f.editor, (0, 0))
            counts[f.editor] = (infinite + f.infinite, total + f.n + f.infinite)
    return tuple((name, *both) for name, both in counts.items() if both[0])


def metric_names(findings: Findings) -> list[str]:
    """The metrics' names, without their versions."""
    return [label.rpartition("@")[0] for label in findings.metrics]


def specification(
    curves: Curves, inks: Mapping[str, Ink], title: str, *, page: bool
) -> dict[str, Any]:
    """The Vega-Lite specification of one chart.

    Args:
        curves: What to draw.
        inks: How each editor is drawn.
        title: Of the vertical axis.
        page: For the page: as wide as its column, without legend, colours left to the theme.
    """
    shown = curves.drawn(inks)
    rows: list[dict[str, Any]] = [_row(point) for point in curves.points]
    if curves.kind == "convergence":
        rows = [{"editor": ink.editor, "n": 0, "value": START} for ink in shown] + rows
    layers = _layers(curves, shown, title, legend=not page)
    chart = alt.layer(*layers, data=alt.InlineData(values=rows))
    chart = chart.add_params(alt.param(name="chosen", value=[]))
    chart = chart.properties(
        width="container" if page else 440,
        height=230,
        description=f"{title} by homecoming, one line per editor",
    )
    if page:
        chart = chart.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    found: dict[str, Any] = chart.to_dict(validate=False)
    # The addresses of schemas are the only addresses in a specification; the page names its mode.
    del found["$schema"]
    found["config"] = {} if page else {**theme(shown, dark=False), **_PAPER}
    return found


def _row(point: Finding) -> dict[str, Any]:
    row = {"editor": point.editor, "n": point.round, "value": point.estimate, "chains": point.n}
    told = {"low": point.low, "high": point.high}
    counts = {"missing": point.missing, "failed": point.failed, "infinite": point.infinite}
    return row | {k: v for k, v in told.items() if v is not None} | counts


def _layers(curves: Curves, inks: Sequence[Ink], title: str, *, legend: bool) -> list[alt.Chart]:
    names = [ink.editor for ink in inks]
    key = None
    if legend:
        key = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=220, symbolOpacity=1)
    n = alt.X("n:Q", title="homecomings n").axis(tickMinStep=1, format="d", grid=False)
    bounds = alt.Scale(domain=[0, 1]) if curves.kind == "convergence" else alt.Scale(zero=False)
    value = alt.Y("value:Q", title=title).scale(bounds)
    colour = alt.Color("editor:N", legend=key, scale=alt.Scale(domain=names, range="category"))
    shape = alt.Shape(
        "editor:N", legend=key, scale=alt.Scale(domain=names, range=[i.shape for i in inks])
    )
    dash = alt.StrokeDash(
        "editor:N", legend=key, scale=alt.Scale(domain=names, range=[list(i.dash) for i in inks])
    )
    seen = alt.condition(_ALL_OR_CHOSEN, alt.value(1), alt.value(0.12))
    lines = (
        alt.Chart()
        .mark_line(strokeWidth=2)
        .encode(x=n, y=value, color=colour, strokeDash=dash, opacity=seen)
    )
    points = (
        alt.Chart()
        .transform_filter("datum.n > 0")
        .mark_point(filled=True, size=46)
        .encode(x=n, y=value, color=colour, shape=shape, opacity=seen, tooltip=_tooltip(curves))
    )
    if curves.kind != "convergence":
        return [lines, points]
    half = (
        alt.Chart(alt.InlineData(values=[{"half": curves.threshold}]))
        .mark_rule(strokeDash=[2, 3])
        .encode(y=alt.Y("half:Q", title=title))
    )
    # A dozen bands at once would hide the curves: only those of chosen editors are drawn.
    bands = (
        alt.Chart()
        .transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area()
        .encode(
            x=n,
            y=alt.Y("low:Q", title=title),
            y2="high:Q",
            color=colour,
            opacity=alt.condition(_CHOSEN, alt.value(0.18), alt.value(0)),
        )
    )
    return [bands, half, lines, points]


def _tooltip(curves: Curves) -> list[alt.Tooltip]:
    told = [
        alt.Tooltip("editor:N"),
        alt.Tooltip("n:Q", title="homecoming"),
        alt.Tooltip("value:Q", title="mean", format=".3f"),
        alt.Tooltip("chains:Q", title="over chains"),
        alt.Tooltip("missing:Q"),
        alt.Tooltip("failed:Q", title="of them failed"),
    ]
    if any(point.low is not None for point in curves.points):
        told[3:3] = [
            alt.Tooltip("low:Q", title="95 % from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
        ]
    if any(point.infinite for point in curves.points):
        told.append(alt.Tooltip("infinite:Q", title="infinite, not in the mean"))
    return told


def theme(inks: Sequence[Ink], *, dark: bool) -> dict[str, Any]:
    """A Vega configuration: colours of text, lines and editors in one of the two themes."""
    text = "#c9ced6" if dark else "#454b54"
    quiet = "#2e333a" if dark else "#e4e7ea"
    rule = "#7d838c" if dark else "#8a9099"
    return {
        "background": None,
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": text,
            "titleColor": text,
            "titleFontWeight": "normal",
            "titleFontSize": 12,
            "labelFontSize": 11,
            "gridColor": quiet,
            "domainColor": rule,
            "tickColor": rule,
        },
        "legend": {"labelColor": text, "titleColor": text, "labelFontSize": 11},
        "rule": {"color": rule},
        "range": {"category": [ink.dark if dark else ink.light for ink in inks]},
    }


def still(specification: Mapping[str, Any]) -> str:
    """A chart as SVG."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(dict(specification))
    return svg
