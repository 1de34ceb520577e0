"""The heat map: every editor's score on every edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from convergebench.analysis import Finding, Findings
from convergebench.reporter.charts import drawing
from convergebench.reporter.charts.drawing import Drawing
from convergebench.reporter.palette import Ink

PARTIAL: Final = "cannot be fully undone"
"""How findings say that an ideal editor could not come home either."""

MARK: Final = " *"
STARRED: Final = (
    "Marked *: with cycles that cannot be fully undone; these are in no headline number."
)
CELL: Final = 26
ACROSS: Final = 8
"""More columns want the page's whole width."""


def heatmap_drawing(
    findings: Findings, inks: Mapping[str, Ink], categories: Mapping[str, str]
) -> Drawing | None:
    """Editor by edit, coloured by score; None without such findings.

    Args:
        findings: Where the findings `by-cycle` are.
        inks: The editors.
        categories: Category of each cycle, by its label.
    """
    cells = [
        f
        for f in findings.findings
        if f.kind == "by-cycle" and f.metric == "score" and f.estimate is not None
    ]
    if not cells:
        return None
    partial = {f.group for f in cells if PARTIAL in f.note}
    rows, order = [], {}
    for f in cells:
        cycle = f.group.partition(":")[2]
        category = categories.get(cycle, "")
        name = cycle.rpartition("@")[0] or cycle
        label = name + (MARK if f.group in partial else "")
        order[label] = (f.group in partial, category, name)
        rows.append(
            drawing.row_of(f, edit=label, category=category or "none", note=f.note)
            | {"half": f.estimate is not None and f.estimate < findings.threshold}
        )
    edits = sorted(order, key=lambda label: order[label])
    editors = [s.editor for s in findings.standings if any(f.editor == s.editor for f in cells)]
    return Drawing(
        id="heatmap",
        title="Editor by edit",
        about="Mean AUC of every editor on every cycle of edits: teal stays home, orange is lost.",
        alt="Heat map of mean AUC, editors across and edits down",
        rows=tuple(rows),
        build=lambda: _chart(cells, edits, editors),
        light=("#000000",),
        dark=("#ffffff",),
        under=(STARRED,) if partial else (),
        wide=min(len(edits), len(editors)) > ACROSS,
    )


def _chart(cells: Sequence[Finding], edits: Sequence[str], editors: Sequence[str]) -> Any:
    # Whichever there are more of goes down the page, which has room there.
    down, across = ("edit", "editor") if len(edits) >= len(editors) else ("editor", "edit")
    sorts = {"edit": list(edits), "editor": list(editors)}
    told = drawing.tooltips(
        cells, alt.Tooltip("edit:N"), alt.Tooltip("category:N"), value="mean AUC"
    )
    base = alt.Chart().encode(
        x=alt.X(f"{across}:N", title=None, sort=sorts[across])
        .axis(orient="top", labelAngle=-40, labelLimit=140, domain=False, ticks=False)
        .scale(paddingInner=0.04),
        y=alt.Y(f"{down}:N", title=None, sort=sorts[down])
        .axis(labelLimit=150, domain=False, ticks=False)
        .scale(paddingInner=0.06),
        tooltip=told,
        opacity=alt.condition(drawing.ALL_OR_CHOSEN, alt.value(1), alt.value(0.15)),
    )
    scale = alt.Scale(domain=[0, 1], range="heatmap")
    key = alt.Legend(title="mean AUC", orient="bottom", gradientLength=160, gradientThickness=8)
    squares = base.mark_rect(cornerRadius=2).encode(
        color=alt.Color("value:Q", scale=scale, legend=key)
    )
    height = drawing.tall(len(sorts[down]), CELL)
    # The last slanted label reaches out of the chart, which nothing but padding makes room for.
    around = {"left": 5, "top": 5, "right": 45, "bottom": 5}
    return alt.layer(squares).properties(width=drawing.STILL_WIDTH, height=height, padding=around)
