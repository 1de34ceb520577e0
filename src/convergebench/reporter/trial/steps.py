"""Trajectories: scores step by step, as small multiples, and their data in a compact form.

Every chain of a large trial is millions of numbers. The page loads those of one metric when it is
chosen: means and their range over repeats in one file, single chains in another, which has at most
`THINNED` steps. Scores are whole hundredths.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import altair as alt
import polars as pl

from convergebench.reporter.charts.drawing import DATA, Row
from convergebench.reporter.palette import Ink
from convergebench.reporter.trial.figure import HOVER, Figure, Fit, named
from convergebench.trial.result import Trial

KINDS: Final = ("replicate", "accumulate")
FINE: Final = 100
"""Scores are told in so many parts of one."""

THINNED: Final = 50
"""Steps of a single chain that are drawn."""

AIR: Final = 0.04
"""Of the range of scores, left free above and below."""

STILL_STEPS: Final = 40
STILL_SIZE: Final = (210, 120)
EACH: Final = 230
"""Least width of one of several panels."""


@dataclass(frozen=True)
class Walks:
    """What can be drawn of trajectories: its steps, arms and sources.

    Attributes:
        steps: All steps there are.
        few: Those that single chains are drawn at.
        arms: Arms and controls that have scores.
        copiers: Those of them that have some of replications.
        sources: By kind, the sources that have some.
    """

    steps: tuple[int, ...]
    few: tuple[int, ...]
    arms: tuple[str, ...]
    copiers: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]


def walks_of(trial: Trial) -> Walks:
    """What there is to draw, arms and sources in the trial's order."""
    frame = trial.trajectories
    steps = sorted(frame["step"].unique().to_list())
    have = set(frame["arm"].unique().to_list())
    known = (*trial.arms, *trial.controls)
    arms = [arm for arm in known if arm in have] + sorted(have - set(known))
    sources = {}
    for kind in KINDS:
        some = set(frame.filter(pl.col("kind") == kind)["source"].unique().to_list())
        first = [source for source in trial.sources if source in some]
        sources[kind] = (*first, *sorted(some - set(first)))
    kept = {*thinned(steps, THINNED), *(s for s in (1, *trial.steps) if s in steps)}
    copied = set(frame.filter(pl.col("kind") == KINDS[0])["arm"].unique().to_list())
    copiers = tuple(arm for arm in arms if arm in copied)
    return Walks(tuple(steps), tuple(sorted(kept)), tuple(arms), copiers, sources)


def thinned(steps: Sequence[int], most: int) -> list[int]:
    """At most so many of some steps, evenly, with the first and the last."""
    if len(steps) <= most:
        return list(steps)
    places = {round(i * (len(steps) - 1) / (most - 1)) for i in range(most)}
    return [steps[place] for place in sorted(places)]


def step_scripts(trial: Trial, walks: Walks) -> dict[str, bytes]:
    """The data as scripts, by name: `steps-N` and `single-N` of every metric."""
    means = _by_metric(trial.trajectories)
    few = trial.single.filter(pl.col("step").is_in(list(walks.few)))
    singles = _by_metric(few)
    found = {}
    for index, card in enumerate(trial.cards, 1):
        told: dict[str, Any] = {}
        alone: dict[str, Any] = {}
        for kind in KINDS:
            told[kind] = _lines(means.get(card.metric), walks, kind, ("mean", "low", "high"), ())
            alone[kind] = _lines(singles.get(card.metric), walks, kind, ("score",), ("repeat",))
        for name, data in ((f"steps-{index}", told), (f"single-{index}", alone)):
            text = json.dumps(data, separators=(",", ":"))
            found[name] = f"convergebench.take({json.dumps(name)},{text});\n".encode()
    return found


def _by_metric(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    parts = frame.partition_by("metric", as_dict=True)
    return {str(key[0]): part for key, part in parts.items()}


def _lines(
    frame: pl.DataFrame | None, walks: Walks, kind: str, columns: Sequence[str],
    more: Sequence[str],
) -> list[list[Any]]:  # fmt: skip
    """One list for each line: places of arm and source, then a list of numbers for each column."""
    if frame is None:
        return []
    steps = walks.few if more else walks.steps
    arms = {arm: place for place, arm in enumerate(walks.arms)}
    sources = {source: place for place, source in enumerate(walks.sources[kind])}
    whole = [
        pl.when(pl.col(c).is_finite()).then((pl.col(c) * FINE).round().cast(pl.Int64)).alias(c)
        for c in columns
    ]
    mine = frame.filter(pl.col("kind") == kind).with_columns(whole)
    grouped = mine.sort("step").group_by("arm", "source", *more).agg("step", *columns)
    # By place and not as the groups come: a second write must find the same bytes.
    found = []
    for row in grouped.iter_rows(named=True):
        where = {step: place for place, step in enumerate(row["step"])}
        line: list[Any] = [arms[row["arm"]], sources[row["source"]], *(row[m] for m in more)]
        values = []
        for column in columns:
            told = row[column]
            values.append([told[where[s]] if s in where else None for s in steps])
        # A range that is the mean itself says nothing.
        alone = len(values) == 3 and values[0] == values[1] == values[2]
        found.append([*line, *(values[:1] if alone else values)])
    return sorted(found, key=lambda line: line[: 2 + len(more)])


def steps_figures(trial: Trial, walks: Walks, inks: Mapping[str, Ink]) -> list[Figure]:
    """Trajectories of each metric, a panel for each arm, all images (the paper's figure 4)."""
    build = _builder(trial, walks, inks, walks.copiers)
    return [
        _figure(walks, inks, "steps", index, card.metric, build,
                f"{card.metric}, step by step: every editor", _arm_rows(trial, walks, card.metric))
        for index, card in enumerate(trial.cards)
    ]  # fmt: skip


def images_figures(trial: Trial, walks: Walks, inks: Mapping[str, Ink]) -> list[Figure]:
    """Trajectories of each metric, a panel for each image, a line for each arm."""
    build = _builder(trial, walks, inks, walks.sources["replicate"], walks.copiers)
    found = []
    for index, card in enumerate(trial.cards):
        rows = [
            {"panel": r["source"], "part": "mean", "key": r["arm"], "editor": r["arm"],
             "step": r["step"], "value": r["mean"]}
            for r in _few(trial, walks, card.metric, "replicate")
        ]  # fmt: skip
        title = f"{card.metric}, step by step: every image"
        found.append(_figure(walks, inks, "images", index, card.metric, build, title, rows))
    return found


def adding_figures(trial: Trial, walks: Walks, inks: Mapping[str, Ink]) -> list[Figure]:
    """Trajectories of each metric where objects are added at each step (the paper's figure 7)."""
    sources = walks.sources["accumulate"]
    several = len(sources) > 1
    panels = [adding_panel(arm, source, several) for arm in walks.arms for source in sources]
    build = _builder(trial, walks, inks, panels)
    found = []
    for index, card in enumerate(trial.cards):
        rows = []
        for r in _few(trial, walks, card.metric, "accumulate"):
            panel = adding_panel(r["arm"], r["source"], several)
            rows.append({"panel": panel, "part": "mean", "key": "mean", "editor": r["arm"],
                         "step": r["step"], "value": r["mean"], "low": r["low"],
                         "high": r["high"]})  # fmt: skip
        title = f"{card.metric}, while objects are added"
        found.append(_figure(walks, inks, "adding", index, card.metric, build, title, rows))
    return found


def adding_panel(arm: str, source: str, several: bool) -> str:
    """What a panel of such runs is called."""
    return f"{arm} · {source}" if several else arm


def _few(trial: Trial, walks: Walks, metric: str, kind: str) -> list[dict[str, Any]]:
    """The rows of a metric's means at the steps that are drawn, in order."""
    kept = {*thinned(walks.steps, STILL_STEPS), *trial.steps}
    frame = trial.trajectories.filter(
        (pl.col("metric") == metric)
        & (pl.col("kind") == kind)
        & pl.col("step").is_in(sorted(kept))
        & pl.col("mean").is_finite()
    )
    return frame.sort("arm", "source", "step").to_dicts()


def _arm_rows(trial: Trial, walks: Walks, metric: str) -> list[Row]:
    """Every image as a thin line, their mean as a thick one."""
    rows: list[Row] = []
    sums: dict[tuple[str, int], list[float]] = {}
    for r in _few(trial, walks, metric, "replicate"):
        rows.append({"panel": r["arm"], "part": "single", "key": r["source"], "editor": r["arm"],
                     "step": r["step"], "value": r["mean"]})  # fmt: skip
        sums.setdefault((r["arm"], r["step"]), []).append(r["mean"])
    for (arm, step), values in sorted(sums.items()):
        rows.append({"panel": arm, "part": "mean", "key": "mean", "editor": arm, "step": step,
                     "value": sum(values) / len(values)})  # fmt: skip
    return rows


def _figure(
    walks: Walks, inks: Mapping[str, Ink], kind: str, index: int, metric: str,
    build: Callable[[], Any], title: str, rows: Sequence[Row],
) -> Figure:  # fmt: skip
    shown = [inks[arm] for arm in walks.arms]
    values = [row[k] for row in rows for k in ("value", "low", "high") if row.get(k) is not None]
    low, high = min(values, default=0.0), max(values, default=100.0)
    air = max(high - low, 1.0) * AIR
    return Figure(
        id=named(kind, index, metric),
        title=title,
        about="",
        alt=f"{title}: normalised score over steps",
        rows=tuple(rows),
        build=build,
        light=tuple(ink.light for ink in shown),
        dark=tuple(ink.dark for ink in shown),
        wide=True,
        fit=Fit(4, EACH, 0, ("100.0",)),
        ends=(low - air, high + air),
    )


def _builder(
    trial: Trial,
    walks: Walks,
    inks: Mapping[str, Ink],
    panels: Sequence[str],
    key: Sequence[str] = (),
) -> Callable[[], Any]:
    shown = [inks[arm] for arm in walks.arms]
    marks = [step for step in (1, *trial.steps) if step in walks.steps]
    return partial(_chart, walks.steps, marks, shown, panels, key)


def _chart(
    steps: Sequence[int], marks: Sequence[int], inks: Sequence[Ink], panels: Sequence[str],
    key: Sequence[str],
) -> Any:  # fmt: skip
    first, last = min(steps, default=0), max(steps, default=1)
    # The steps that are compared are the lines of the grid.
    labels = marks if last in marks else [*marks, last]
    axis = alt.Axis(values=labels, grid=True, format="d", labelOverlap=True, titlePadding=2)
    scale = alt.Scale(domain=[first, max(last, first + 1)], nice=False, zero=False)
    x = alt.X("step:Q", axis=axis, title="step", scale=scale)
    score: dict[str, Any] = {"title": "score", "scale": alt.Scale(zero=False, nice=False)}
    y = alt.Y("value:Q", **score).axis(tickCount=4, grid=False)
    names = [ink.editor for ink in inks]
    legend = (
        alt.Legend(title=None, orient="bottom", columns=4, labelLimit=220, values=list(key))
        if key
        else None
    )
    colour = alt.Color("editor:N", legend=legend, scale=alt.Scale(domain=names, range="category"))
    dashes = alt.Scale(domain=names, range=[list(ink.dash) for ink in inks])
    dash = alt.StrokeDash("editor:N", legend=legend, scale=dashes)
    told = [
        alt.Tooltip("panel:N"),
        alt.Tooltip("key:N", title="line"),
        alt.Tooltip("step:Q"),
        alt.Tooltip("value:Q", title="score", format=".2f"),
        alt.Tooltip("low:Q", title="repeats from", format=".2f"),
        alt.Tooltip("high:Q", title="to", format=".2f"),
    ]
    base = alt.Chart().encode(x=x, color=colour)
    bands = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
    bands = bands.mark_area(opacity=0.22, clip=True).encode(y=alt.Y("low:Q", **score), y2="high:Q")
    thin = base.transform_filter("datum.part == 'single'")
    thin = thin.mark_line(strokeWidth=0.9, opacity=0.5).encode(y=y, detail="key:N")
    mean = base.transform_filter("datum.part == 'mean'")
    thick = mean.mark_line(strokeWidth=2.2).encode(y=y, strokeDash=dash)
    points = mean.mark_point(filled=True, size=70, opacity=0).encode(y=y, tooltip=told)
    points = points.properties(name=HOVER)
    width, height = STILL_SIZE
    each = alt.layer(bands, thin, thick, points).properties(width=width, height=height)
    header = alt.Header(title=None, labelLimit=width, labelPadding=4, labelAnchor="start")
    facet = alt.Facet("panel:N", header=header, title=None, sort=list(panels))
    found = each.facet(
        data=alt.NamedData(DATA), facet=facet, columns=min(4, max(1, len(panels))), spacing=16
    )
    # Else the axes of a last row that is not full stand under nothing.
    return found.resolve_axis(x="independent")
