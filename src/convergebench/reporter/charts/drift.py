"""What the loss is made of, and where in the picture it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from convergebench.analysis import Finding, Findings
from convergebench.reporter.charts import drawing
from convergebench.reporter.charts.drawing import Drawing
from convergebench.reporter.charts.dynamics import in_board_order, of_kind, parts_drawing, present
from convergebench.reporter.palette import Ink, part_colours

COMPONENTS: Final = ("geometry", "colour", "sharpness", "noise", "rest", "semantics")
REST: Final = "rest"
PLACES: Final = ("inside", "outside", "all")
MOVES: Final = ("shift", "zoom", "crop")
ROOM: Final = 0.06
"""What a scale that cuts off has beyond its last point, as a share of it."""


def is_taken_apart(findings: Findings) -> bool:
    """Whether there is more of a drift than its rest."""
    return any(f.group not in ("", REST) for f in of_kind(findings, "drift-share"))


def drift_drawings(findings: Findings, inks: Mapping[str, Ink]) -> list[Drawing]:
    """The shares at the last round, then each component over the rounds."""
    found: list[Drawing] = []
    shares, walks = of_kind(findings, "drift-share"), of_kind(findings, "drift")
    if not is_taken_apart(findings):  # a rest that is everything says nothing
        shares, walks = [], [f for f in walks if f.group != REST]
    parts = present([*shares, *walks], COMPONENTS)
    whole = present(shares, COMPONENTS)
    if shares:
        found.append(
            parts_drawing(
                findings,
                inks,
                "drift-shares",
                shares,
                whole,
                title="What the drift is made of",
                about="Each component's share of the drift at the last homecoming.",
                value="share of the drift",
                known=COMPONENTS,
            )
        )
    for part in parts:
        mine = [f for f in walks if f.group == part]
        if mine:
            found.append(_walk("drift", part, mine, inks))
    moved = of_kind(findings, "registration")
    for part in MOVES:
        mine = [f for f in moved if f.group == part]
        if any(f.estimate for f in mine):
            found.append(_walk("registration", part, mine, inks))
    return found


def _walk(kind: str, part: str, points: Sequence[Finding], inks: Mapping[str, Ink]) -> Drawing:
    """One component over the homecomings, in the unit that its findings name."""
    shown = drawing.drawn(inks, points)
    note = next((f.note for f in points if f.note), "")
    domain = _of_editors(points, shown)
    cut = domain is not None
    beyond = "The scale is the editors'; what of the controls is beyond it is cut off."

    def chart() -> Any:
        rounds = [f.round or 0 for f in points]
        n = drawing.homecomings_axis(max(rounds), min(rounds), padding=6)
        scale = alt.Scale(domain=list(domain), nice=False) if domain else alt.Undefined
        y = alt.Y("value:Q", title=None, scale=scale).axis(tickCount=4)
        inked = drawing.by_editor(shown)
        base = alt.Chart().encode(x=n, **inked)
        told = drawing.tooltips(points, alt.Tooltip("n:Q", title="homecoming"))
        bands = base.transform_filter("isValid(datum.low)").mark_area(clip=cut)
        lines = base.mark_line(strokeWidth=1.8, clip=cut)
        lines = lines.encode(y=y, strokeDash=drawing.by_dash(shown))
        dots = base.mark_point(filled=True, size=30, clip=cut).encode(
            y=y, shape=drawing.by_shape(shown), tooltip=told
        )
        low = alt.Y("low:Q", title=None, scale=scale)
        bands = bands.encode(y=low, y2="high:Q", opacity=drawing.band_opacity(shown))
        return alt.layer(bands, lines, dots).properties(width=drawing.STILL_WIDTH, height=150)

    return Drawing(
        id=f"{kind}-{part}",
        title=part.capitalize(),
        about=". ".join(word for word in (note, beyond if domain else "") if word),
        alt=f"{part.capitalize()} over homecomings, one line per editor",
        rows=tuple(drawing.row_of(f, n=f.round) for f in points),
        build=chart,
        **drawing.colours(shown),
    )


def _of_editors(points: Sequence[Finding], inks: Sequence[Ink]) -> tuple[float, float] | None:
    """The scale that the editors need, where controls would set a larger one; else None."""
    controls = {ink.editor for ink in inks if ink.control}
    banded = len(inks) <= drawing.FEW  # else bands are those of chosen editors alone

    def ends(mine: Sequence[Finding]) -> list[float]:
        sides = [(f.estimate, f.low, f.high) if banded else (f.estimate,) for f in mine]
        return [value for each in sides for value in each if value is not None]

    ours = ends([f for f in points if f.editor not in controls])
    theirs = ends([f for f in points if f.editor in controls])
    low, high = min([0.0, *ours]), max([0.0, *ours])
    room = ROOM * (high - low)
    low, high = low and low - room, high and high + room
    if not room or not theirs or (low <= min(theirs) and max(theirs) <= high):
        return None
    return low, high


def region_drawings(findings: Findings, inks: Mapping[str, Ink]) -> list[Drawing]:
    """Change inside and outside the edited region: of the last homecoming, of the forward edit."""
    found: list[Drawing] = []
    walks = of_kind(findings, "region")
    last = {
        (editor, place): max(f.round or 0 for f in walks if (f.editor, f.group) == (editor, place))
        for editor, place in {(f.editor, f.group) for f in walks}
    }
    ends = [f for f in walks if f.round == last[f.editor, f.group]]
    if ends:
        found.append(
            _places(
                findings,
                inks,
                "region",
                ends,
                title="Left behind at the last homecoming",
                about="Change against home inside and outside the region that the edit was "
                "about. A careful editor leaves the outside alone.",
            )
        )
    forward = of_kind(findings, "forward")
    if forward:
        found.append(
            _places(
                findings,
                inks,
                "forward",
                forward,
                title="Size of the forward edit",
                about="Change made by the forward edit. One that is no larger than the transport "
                "control's does nothing, and is marked inert.",
            )
        )
    return found


def _places(
    findings: Findings,
    inks: Mapping[str, Ink],
    name: str,
    points: Sequence[Finding],
    *,
    title: str,
    about: str,
) -> Drawing:
    names = in_board_order(findings, points)
    places = [place for place in PLACES if any(f.group == place for f in points)]

    def chart() -> Any:
        x = alt.X("value:Q", title="RMSE, 8-bit levels").axis(grid=True, tickCount=6)
        y = drawing.editor_axis(names)
        seen = alt.condition(drawing.ALL_OR_CHOSEN, alt.value(1), alt.value(0.15))
        told = drawing.tooltips(points, alt.Tooltip("place:N", title="where"))
        told.append(alt.Tooltip("note:N"))
        scale = alt.Scale(domain=places, range="category")
        key = drawing.parts_legend()
        base = alt.Chart().encode(y=y, opacity=seen)
        joined = base.mark_rule(strokeWidth=1).encode(
            x=alt.X("min(value):Q", title="RMSE, 8-bit levels"), x2="max(value):Q"
        )
        spans = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=3)
        spans = spans.encode(
            x=alt.X("low:Q"),
            x2="high:Q",
            color=alt.Color("place:N", scale=scale, legend=key),
            opacity=alt.condition(drawing.ALL_OR_CHOSEN, alt.value(0.35), alt.value(0.05)),
        )
        dots = base.mark_point(filled=True, size=60).encode(
            x=x,
            color=alt.Color("place:N", scale=scale, legend=key),
            shape=alt.Shape(
                "place:N",
                scale=alt.Scale(domain=places, range=["circle", "diamond", "cross"]),
                legend=key,
            ),
            tooltip=told,
        )
        return alt.layer(joined, spans, dots).properties(
            width=drawing.STILL_WIDTH, height=drawing.tall(len(names))
        )

    return Drawing(
        id=name,
        title=title,
        about=about,
        alt=f"{title}, inside and outside the edited region: two points per editor",
        rows=tuple(drawing.row_of(f, place=f.group, note=f.note) for f in points),
        build=chart,
        parts=tuple(places),
        **part_colours(places, PLACES),
        under=drawing.absent(inks, points),
    )
