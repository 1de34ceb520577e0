"""Heat maps metric × source: the gaps, the number of failures, and these for all editors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import altair as alt
import polars as pl

from convergebench.reporter.charts.drawing import DATA, Row
from convergebench.reporter.trial.figure import HATCH, Figure, Fit, named
from convergebench.trial.result import Trial

CELL: Final = 22
SMALL_CELL: Final = 13
STILL_CELL: Final = 27
"""Widths of cells on paper: of gaps, whose numbers are printed."""

LEAST_MAP: Final = 150
"""Least width of a map on paper, for its name above it."""

LABEL: Final = 170
"""Longest name of a metric in pixels."""

EXTREME: Final = 0.98
"""The colours span this share of all gaps; a few outliers would else make all others pale."""

DEEP: Final = 0.55
"""From this share of the scale on, words stand on a strong colour."""

VALUE: Final = "format(datum.gap, abs(datum.gap) < 9.95 ? '+.1f' : '+.0f')"
LONGEST_SOURCE: Final = 90
COUNT: Final = "datum.failures + (datum.premise == 'doubtful' ? '?' : '')"
AROUND: Final = {"left": 5, "top": 5, "right": 45, "bottom": 5}
"""The last slanted label reaches out of the chart."""

STATES: Final = {True: "fails", False: "succeeds", None: "missing"}


def spans_of(trial: Trial) -> tuple[float, float]:
    """The gaps with the strongest colours, above and below 0: the same in every heat map."""
    gaps = trial.gaps["gap"].drop_nulls().drop_nans()
    return _round(gaps.filter(gaps >= 0)), _round(gaps.filter(gaps < 0).abs())


def _round(sizes: pl.Series) -> float:
    top = sizes.quantile(EXTREME, "higher") if sizes.len() else None
    steps = (1, 2, 4, 6, 8, 10, 16, 20, 30, 40, 50, 60, 80)
    return float(next((step for step in steps if top is None or step >= top), 100))


def tried_on(trial: Trial, arm: str) -> list[str]:
    """The sources that an arm was tried on; all of them where nothing is known of it."""
    have = set(trial.success.filter(pl.col("arm") == arm)["source"].unique().to_list())
    return [source for source in trial.sources if source in have] or list(trial.sources)


def gap_rows(trial: Trial, arm: str) -> list[Row]:
    """Every metric, step and source of an arm, known or not; no row for a source not tried."""
    mine = trial.gaps.filter(pl.col("arm") == arm)
    known = {(r["metric"], r["source"], r["step"]): r for r in mine.iter_rows(named=True)}
    found: list[Row] = []
    sources = tried_on(trial, arm)
    for metric in metrics_of(trial):
        for source in sources:
            for step in trial.steps:
                cell = known.get((metric, source, step), {})
                gap = finite(cell.get("gap"))
                row: Row = {
                    "metric": metric,
                    "source": source,
                    "step": step,
                    "gap": gap,
                    "low": finite(cell.get("low")) if gap is not None else None,
                    "high": finite(cell.get("high")) if gap is not None else None,
                    "repeats": cell.get("repeats") or 0,
                    "state": STATES[None if gap is None else gap >= 0],
                }
                found.append(row)
    return found


def finite(value: float | None) -> float | None:
    """A number, or None where it is none."""
    return value if value is not None and abs(value) < float("inf") else None


def metrics_of(trial: Trial) -> list[str]:
    """The metrics' names, the most trustworthy first."""
    return [card.metric for card in trial.cards]


def gaps_figures(trial: Trial) -> list[Figure]:
    """The heat maps of the gaps of each arm, one for each step (the paper's figure 5)."""
    spans = spans_of(trial)
    metrics, sources = metrics_of(trial), list(trial.sources)
    maps = ", ".join(f"Δ{step}" for step in trial.steps)
    build = partial(_gaps_chart, metrics, sources, len(trial.steps), spans)
    return [
        Figure(
            id=named("gaps", index, arm),
            title=f"Score gaps {maps}: {arm}",
            about="",
            alt=f"Heat maps of {maps} by metric and initial image, {arm}",
            rows=tuple(gap_rows(trial, arm)),
            build=build,
            light=(),
            dark=(),
            wide=True,
            fit=Fit(min(3, len(trial.steps)), 270, len(sources), tuple(metrics)),
            params={"labels": True},
        )
        for index, arm in enumerate(trial.arms)
    ]


def _axes(metrics: Sequence[str], sources: Sequence[str]) -> dict[str, Any]:
    x = alt.X("source:N", title=None, scale=alt.Scale(domain=list(sources), paddingInner=0.06))
    y = alt.Y("metric:N", title=None, scale=alt.Scale(domain=list(metrics), paddingInner=0.08))
    return {
        "x": x.axis(
            orient="top", labelAngle=-40, labelLimit=LONGEST_SOURCE, domain=False, ticks=False
        ),
        "y": y.axis(labelLimit=LABEL, domain=False, ticks=False, labelPadding=6),
    }


def _missing(base: Any, test: str, size: int) -> list[Any]:
    """Cells without a value: grey ground, hatched."""
    gone = base.transform_filter(test)
    hatch = gone.mark_point(shape=HATCH, size=size, style="hatch", strokeWidth=1)
    return [gone.mark_rect(style="blank", cornerRadius=2), hatch]


def _gaps_chart(
    metrics: Sequence[str], sources: Sequence[str], maps: int, spans: tuple[float, float]
) -> Any:
    told = [
        alt.Tooltip("metric:N"),
        # Not "image": of that name the tooltips take the value for an address and fetch it.
        alt.Tooltip("source:N", title="initial image"),
        alt.Tooltip("step:O"),
        alt.Tooltip("state:N", title="verdict"),
        alt.Tooltip("gap:Q", title="mean gap", format="+.2f"),
        alt.Tooltip("low:Q", title="repeats from", format="+.2f"),
        alt.Tooltip("high:Q", title="to", format="+.2f"),
        alt.Tooltip("repeats:Q"),
    ]
    base = alt.Chart().encode(**_axes(metrics, sources), tooltip=told)
    layers = _missing(base, "!isValid(datum.gap)", 90)
    above, below = spans
    # Two channels, because each is a scale with a legend of its own for all of the maps.
    sides = (
        ("datum.gap >= 0", alt.Fill, [0, above], "heatmap", "fails: gap ≥ 0"),
        (
            "isValid(datum.gap) && datum.gap < 0",
            alt.Color,
            [-below, 0],
            "ramp",
            "succeeds: gap < 0",
        ),
    )
    for test, channel, domain, colours, title in sides:
        key = alt.Legend(
            title=title, orient="bottom", direction="horizontal", gradientLength=150,
            gradientThickness=8, tickCount=2, format="+d" if colours == "heatmap" else "d",
        )  # fmt: skip
        scale = alt.Scale(domain=domain, range=colours, clamp=True)
        squares = base.transform_filter(test).mark_rect(cornerRadius=2)
        layers.append(squares.encode(channel("gap:Q", scale=scale, legend=key)))
    deep = f"datum.gap >= {above * DEEP:g}"
    for style, test in (("on-deep", deep), ("on-pale", f"!({deep})")):
        words = base.transform_filter(f"labels && isValid(datum.gap) && {test}")
        words = words.transform_calculate(shown=f"replace({VALUE}, '-', '−')")
        layers.append(
            words.mark_text(style=style, fontSize=9.5, baseline="middle").encode(text="shown:N")
        )
    each = alt.layer(*layers).properties(
        width=max(STILL_CELL * len(sources), LEAST_MAP), height=CELL * len(metrics)
    )
    header = alt.Header(labelExpr="'Δ' + datum.value", labelPadding=4, title=None)
    facet = alt.Facet("step:O", header=header, title=None)
    found = each.facet(data=alt.NamedData(DATA), facet=facet, columns=min(3, maps), spacing=18)
    return found.resolve_axis(x="independent").properties(padding=AROUND)


def count_rows(trial: Trial) -> list[Row]:
    """Failures of every cell of every arm; null where nothing is known of it."""
    wanted = len(trial.steps)
    known = {(r["metric"], r["arm"], r["source"]): r for r in trial.success.iter_rows(named=True)}
    found: list[Row] = []
    for arm in trial.arms:
        sources = tried_on(trial, arm)
        for metric in metrics_of(trial):
            for source in sources:
                cell = known.get((metric, arm, source), {})
                some, failures = cell.get("known") or 0, cell.get("failures") or 0
                # Without any failure a cell of which a part is missing is no success.
                count = failures if failures or some >= wanted else None
                row: Row = {"arm": arm, "metric": metric, "source": source, "failures": count}
                row["premise"] = cell.get("premise") or "unknown"
                found.append(row | {"known": some, "verdict": cell.get("verdict") or "incomplete"})
    return found


def overlay_figures(trial: Trial, rows: Sequence[Row]) -> list[Figure]:
    """The number of failures in each cell of each arm (the paper's figure 6)."""
    metrics, sources = metrics_of(trial), list(trial.sources)
    build = partial(_count_chart, len(trial.steps), metrics, sources, ())
    return [
        Figure(
            id=named("overlay", index, arm),
            title=f"Failures of {len(trial.steps)}: {arm}",
            about="",
            alt=f"Heat map of the number of failures by metric and initial image, {arm}",
            rows=tuple(row for row in rows if row["arm"] == arm),
            build=build,
            light=(),
            dark=(),
            wide=True,
            fit=Fit(1, 200, len(sources), tuple(metrics)),
            params={"labels": True},
            most=len(trial.steps),
        )
        for index, arm in enumerate(trial.arms)
    ]


def side_by_side_figure(trial: Trial, rows: Sequence[Row]) -> Figure:
    """The same of all arms, as small multiples (the paper's figure 10)."""
    metrics, sources = metrics_of(trial), list(trial.sources)
    return Figure(
        id="trial-arms",
        title=f"Failures of {len(trial.steps)}, all editors",
        about="",
        alt="Heat maps of the number of failures by metric and initial image, one per editor",
        rows=tuple(rows),
        build=partial(_count_chart, len(trial.steps), metrics, sources, trial.arms),
        light=(),
        dark=(),
        wide=True,
        fit=Fit(_columns(trial.arms), 190, len(sources), tuple(metrics)),
        params={"labels": False},
        most=len(trial.steps),
    )


def _columns(arms: Sequence[str]) -> int:
    """As many beside each other as make the last row full, where that can be."""
    return 4 if len(arms) > 6 or len(arms) == 4 else 3


def _count_chart(
    most: int, metrics: Sequence[str], sources: Sequence[str], arms: Sequence[str]
) -> Any:
    told = [
        alt.Tooltip("arm:N", title="editor"),
        alt.Tooltip("metric:N"),
        alt.Tooltip("source:N", title="initial image"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("failures:Q"),
        alt.Tooltip("known:Q", title=f"gaps known, of {most}"),
        alt.Tooltip("premise:N", title="that frames got worse"),
    ]
    many = bool(arms)
    base = alt.Chart().encode(**_axes(metrics, sources), tooltip=told)
    layers = _missing(base, "!isValid(datum.failures)", 40 if many else 90)
    counts = list(range(most + 1))
    key = alt.Legend(title="failures", orient="bottom", direction="horizontal", symbolType="square")
    scale = alt.Scale(domain=counts, range="ordinal")
    squares = base.transform_filter("isValid(datum.failures)").mark_rect(cornerRadius=2)
    layers.append(squares.encode(color=alt.Color("failures:O", scale=scale, legend=key)))
    part = base.transform_filter(f"isValid(datum.failures) && datum.known < {most}")
    layers.append(part.mark_point(shape=HATCH, size=40, style="hatch", strokeWidth=1))
    strong = max(1, round(most * 0.6))
    for style, test in (("on-deep", ">="), ("on-pale", "<")):
        which = f"labels && datum.failures > 0 && datum.failures {test} {strong}"
        text = base.transform_filter(which).mark_text(style=style, fontSize=9.5)
        layers.append(text.transform_calculate(shown=COUNT).encode(text="shown:N"))
    width, height = (SMALL_CELL, SMALL_CELL + 2) if many else (STILL_CELL, CELL)
    across = max(width * len(sources), LEAST_MAP)
    each = alt.layer(*layers).properties(width=across, height=height * len(metrics))
    words = "datum.value" if many else "''"
    header = alt.Header(title=None, labelPadding=4, labelLimit=across, labelExpr=words)
    facet = alt.Facet("arm:N", header=header, title=None, sort=list(arms))
    found = each.facet(
        data=alt.NamedData(DATA), facet=facet, columns=min(_columns(arms), max(1, len(arms))),
        spacing=18,
    )  # fmt: skip
    # Every map has its own names of sources: a last row that is not full would lend out its own.
    return found.resolve_axis(x="independent").properties(padding=AROUND)
