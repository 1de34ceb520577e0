"""What all charts share: a drawing, the editors' colours, the themes, and data as columns.

A `Drawing` is one chart: its data and how to draw them, as Vega-Lite made with Altair. The same
drawing serves the page (live, data beside it, no legend of its own where the page has one for all
charts, colours by the theme) and the folder `charts/` (SVG, for print, papers and browsers without
JavaScript). Every point is a finding; nothing is computed here but places on the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import altair as alt
from altair.utils.schemapi import debug_mode

from convergebench.analysis import Finding
from convergebench.reporter.palette import Ink
from convergebench.wording import shown

Row = dict[str, Any]

DATA: Final = "rows"
"""What specifications call their data."""

DIGITS: Final = 4
"""Significant digits of numbers in a page's data; `findings.json` has them all."""

PAPER: Final = {"background": "white", "font": "Liberation Sans, Arial, Helvetica, sans-serif"}
"""What stills have of their own: the font whose widths vl-convert knows, and its equals."""

KEYED: Final = ("editor", "part", "place")
"""Columns whose colours, shapes and dashes the page explains outside its charts."""

STILL_WIDTH: Final = 440

CHOSEN: Final = "indexof(chosen, datum.editor) >= 0"
ALL_OR_CHOSEN: Final = f"length(chosen) == 0 || {CHOSEN}"
FEW: Final = 4
"""So many editors can all have their bands at once."""

TICKS: Final = 10
"""So many homecomings are numbered one by one."""

HEAT: Final = (
    ("#a04d1a", "#d99b62", "#eeeae2", "#7fb8b5", "#1c6e72"),
    ("#e0924f", "#8a5a33", "#33363b", "#2f7478", "#6fd0cf"),
)
"""From lost to home, neutral at one half; on white paper and in the dark."""


@dataclass(frozen=True)
class Drawing:
    """One chart.

    Attributes:
        id: Name in files and pages.
        title: A few words.
        about: How to read it, a sentence or two.
        alt: What a still shows, for those who do not see it.
        rows: The data.
        build: Makes the chart, for paper.
        light: The colours of its categories on white paper.
        dark: The same in the dark.
        under: Sentences to print under it.
        groups: More data: the same of parts of the chains, told apart by the column `group`.
        wide: Whether it wants the page's whole width.
        parts: What the colours stand for, where they are no editors: the page has its own key.
    """

    id: str
    title: str
    about: str
    alt: str
    rows: tuple[Row, ...]
    build: Callable[[], Any]
    light: tuple[str, ...]
    dark: tuple[str, ...]
    under: tuple[str, ...] = ()
    groups: tuple[Row, ...] = ()
    wide: bool = False
    parts: tuple[str, ...] = ()

    @property
    def key(self) -> list[tuple[str, str, str]]:
        """The parts with their colours in both themes."""
        return list(zip(self.parts, self.light, self.dark, strict=False))

    @cached_property
    def _whole(self) -> dict[str, Any]:
        """The specification but for its data; made once, because making it takes a while."""
        with debug_mode(False):  # tests validate; at every report it would take seconds
            chart = self.build().add_params(alt.param(name="chosen", value=[]))
            chart = chart.properties(data=alt.NamedData(DATA), description=self.alt)
            found: dict[str, Any] = chart.to_dict(validate=False)
        # The addresses of schemas are the only addresses in a specification; the page names its
        # mode.
        del found["$schema"]
        return found

    def specification(self, *, page: bool) -> dict[str, Any]:
        """The Vega-Lite specification.

        Args:
            page: For the page: as wide as its column, data to be given as `rows`, colours left to
                the theme, and keys too. Else whole in itself, for paper.
        """
        found = deepcopy(self._whole)
        if page:
            fit = {"type": "fit-x", "contains": "padding"}
            _drop_keys(found)
            return found | {"width": "container", "autosize": fit, "config": {}}
        found["datasets"] = {**found.get("datasets", {}), DATA: list(self.rows)}
        found["config"] = {**theme(self.light, dark=False), **PAPER}
        return found


def _drop_keys(specification: Mapping[str, Any]) -> None:
    """Without the legends that a page has outside its charts."""
    for layer in specification["layer"]:
        for channel in layer["encoding"].values():
            if isinstance(channel, dict) and channel.get("field") in KEYED and "legend" in channel:
                channel["legend"] = None


def colours(inks: Iterable[Ink]) -> dict[str, Any]:
    """A drawing's colours, where its categories are editors."""
    each = list(inks)
    return {"light": tuple(i.light for i in each), "dark": tuple(i.dark for i in each)}


def drawn(inks: Mapping[str, Ink], points: Iterable[Finding]) -> list[Ink]:
    """The inks of the editors that have a point."""
    have = {point.editor for point in points}
    return [ink for name, ink in inks.items() if name in have]


def absent(inks: Mapping[str, Ink], points: Iterable[Finding]) -> tuple[str, ...]:
    """A sentence on the editors that have none; empty when all have one."""
    have = {point.editor for point in points}
    gone = [name for name in inks if name not in have]
    return (f"Nothing to draw: {shown(gone, 6)}.",) if gone else ()


def legend() -> alt.Legend:
    """The legend of editors."""
    return alt.Legend(title=None, orient="bottom", columns=2, labelLimit=220, symbolOpacity=1)


def parts_legend() -> alt.Legend:
    """The legend of a chart whose colours are no editors."""
    return alt.Legend(title=None, orient="top", columns=3, labelLimit=200, symbolOpacity=1)


def by_editor(inks: Sequence[Ink]) -> dict[str, Any]:
    """Colour of marks by editor, and the fading of those not chosen."""
    names = [ink.editor for ink in inks]
    return {
        "color": alt.Color(
            "editor:N", legend=legend(), scale=alt.Scale(domain=names, range="category")
        ),
        "opacity": alt.condition(ALL_OR_CHOSEN, alt.value(1), alt.value(0.12)),
    }


def by_shape(inks: Sequence[Ink]) -> alt.Shape:
    """Shape of points by editor."""
    names = [ink.editor for ink in inks]
    scale = alt.Scale(domain=names, range=[ink.shape for ink in inks])
    return alt.Shape("editor:N", legend=legend(), scale=scale)


def by_dash(inks: Sequence[Ink]) -> alt.StrokeDash:
    """Dash of lines by editor."""
    names = [ink.editor for ink in inks]
    scale = alt.Scale(domain=names, range=[list(ink.dash) for ink in inks])
    return alt.StrokeDash("editor:N", legend=legend(), scale=scale)


def band_opacity(inks: Sequence[Ink]) -> Any:
    """Of intervals: a dozen bands at once would hide the curves, so these are the chosen's."""
    whose = ALL_OR_CHOSEN if len(inks) <= FEW else CHOSEN
    return alt.condition(whose, alt.value(0.16), alt.value(0))


def whisker_opacity(inks: Sequence[Ink]) -> Any:
    """The same of intervals drawn as lines."""
    whose = ALL_OR_CHOSEN if len(inks) <= FEW else CHOSEN
    return alt.condition(whose, alt.value(0.7), alt.value(0))


def tall(count: int, each: int = 24) -> int:
    """Height for so many lines under each other; fixed, so that widths can follow the page."""
    return max(1, count) * each


def homecomings_axis(
    last: float, first: int = 0, *, field: str = "n:Q", padding: float | None = None
) -> alt.X:
    """Homecomings along a chart: a whole number at each tick, thinned where there are many.

    The domain is told, because a layer without rows would leave it infinite.
    """
    end = max(math.ceil(last), 1)
    start = min(first, end - 1)
    step = next(s for k in range(9) for s in (10**k, 2 * 10**k, 5 * 10**k) if end <= s * TICKS)
    values = [n for n in range(start, end + 1) if n % step == 0]
    axis = alt.Axis(values=values, format="d", grid=False, labelOverlap=True)
    scale = alt.Scale(domain=[start, end], nice=False, zero=False)
    if padding is not None:
        scale["padding"] = padding
    return alt.X(field, title="homecomings n", axis=axis, scale=scale)


def editor_axis(names: Sequence[str]) -> alt.Y:
    """Editors under each other, in this order."""
    axis = alt.Axis(labelLimit=150, ticks=False, domain=False, grid=False, labelPadding=6)
    return alt.Y("editor:N", title=None, sort=list(names), axis=axis)


def rule(value: float, field: str, **how: Any) -> Any:
    """A dotted line of reference, `field` being x or y."""
    line = alt.Chart(alt.InlineData(values=[{"at": value}])).mark_rule(strokeDash=[2, 3], **how)
    return line.encode(alt.Y("at:Q") if field == "y" else alt.X("at:Q"))


def row_of(point: Finding, **more: Any) -> Row:
    """The columns that every tooltip shows, without those that say nothing."""
    row: Row = {"editor": point.editor, **more, "value": point.estimate}
    told = {"low": point.low, "high": point.high}
    row |= {name: value for name, value in told.items() if value is not None}
    counts = {
        "chains": point.n,
        "missing": point.missing,
        "failed": point.failed,
        "refused": point.refused,
    }
    return row | counts


def tooltips(
    points: Iterable[Finding], *first: alt.Tooltip, value: str = "mean", form: str = ".3f"
) -> list[alt.Tooltip]:
    """What hovering tells: whose, what, its interval, over how many, how many are missing."""
    each = list(points)
    told = [alt.Tooltip("editor:N"), *first, alt.Tooltip("value:Q", title=value, format=form)]
    if any(point.low is not None for point in each):
        told.append(alt.Tooltip("low:Q", title="95 % from", format=form))
    if any(point.high is not None for point in each):
        told.append(alt.Tooltip("high:Q", title="to", format=form))
    told += [alt.Tooltip("chains:Q", title="over chains"), alt.Tooltip("missing:Q")]
    if any(point.failed for point in each):
        told.append(alt.Tooltip("failed:Q", title="of them failed"))
    if any(point.refused for point in each):
        told.append(alt.Tooltip("refused:Q", title="of these refused"))
    return told


def theme(categories: Sequence[str], *, dark: bool) -> dict[str, Any]:
    """A Vega configuration: colours of text, lines and categories in one of the two themes."""
    text = "#c9ced6" if dark else "#454b54"
    quiet = "#2b2f36" if dark else "#e8eaed"
    line = "#7d838c" if dark else "#8a9099"
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
            "domainColor": line,
            "tickColor": line,
            "titlePadding": 8,
        },
        "header": {"labelColor": text, "titleColor": text},
        "legend": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
        },
        "rule": {"color": line},
        "text": {"color": text},
        "range": {"category": list(categories), "heatmap": list(HEAT[dark])},
    }


def still(specification: Mapping[str, Any]) -> str:
    """A chart as SVG."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(dict(specification))
    return svg


def columns(rows: Sequence[Row]) -> dict[str, Any]:
    """Rows as columns, for a page: numbers to a few digits, words as places in a list."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: Sequence[Any]) -> Any:
    if not any(isinstance(value, str) for value in values):
        return [rounded(value) for value in values]
    words = list(dict.fromkeys(values))
    place = {word: index for index, word in enumerate(words)}
    return {"words": words, "are": [place[value] for value in values]}


def rounded(value: Any) -> Any:
    """A number to a few significant digits; anything else as it is."""
    if not isinstance(value, float) or value == 0 or not math.isfinite(value):
        return value
    return round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
