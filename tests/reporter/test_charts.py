from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.analysis import Finding, Findings
from convergebench.reporter import charts
from convergebench.reporter.absences import absences
from convergebench.reporter.charts.drawing import homecomings_axis, rounded
from convergebench.reporter.overview import drawings_of
from convergebench.reporter.palette import DARK, GREY, LIGHT, inks, part_colours
from tests.reporter.rich import METRICS, rich_findings

EDITORS = [("ref:identity", True), ("a", False), ("b", False), ("c", False), ("d", False)]
INKS = inks(EDITORS)
RICH = rich_findings(EDITORS, rounds=4)
DRAWN = {drawing.id: drawing for drawing in drawings_of(RICH, INKS).all}


def point(kind: str, metric: str, editor: str, n: int, value: float | None = 0.25) -> Finding:
    band = {"low": 0.2, "high": 0.3} if kind == "convergence" else {}
    name = f"{kind}/{metric}/{editor}/{n}"
    return Finding(id=name, estimate=value, n=7, metric=metric, editor=editor, round=n, **band)


def test_curves_are_found_whatever_signs_the_names_hold() -> None:
    odd = "hub:some/model@2,seed=1,mode=a:b"
    like, psnr = point("convergence", "human/like", odd, 3), point("value", "psnr", odd, 12)
    others = [
        Finding(id=f"score/{odd}", estimate=0.5, editor=odd),
        Finding(id=f"auc/psnr/{odd}", estimate=0.5, metric="psnr", editor=odd),
        point("value", "psnr", odd, 13, None),
    ]
    findings = Findings(
        run="r", suite="s@1", metrics=("psnr@1", "human/like@2"), common=0, floors={},
        standings=(), findings=(like, psnr, *others), notes=(), threshold=0.4,
    )  # fmt: skip
    assert charts.curves_of(findings) == [
        charts.Curves("value", "psnr", (psnr,), 0.4),
        charts.Curves("convergence", "human/like", (like,), 0.4),
    ]
    assert [c.id for c in charts.curves_of(findings)] == ["value-psnr", "convergence-human-like"]


def test_every_kind_has_its_chart() -> None:
    wider = ("headline", "quality", "semantic")
    assert set(DRAWN) == {
        *(f"convergence-{m}" for m in (*wider, *METRICS)),
        *(f"survival-{m}" for m in (*wider, *METRICS)),
        *(f"value-{m}" for m in METRICS),
        "heatmap", "variance", "by-edit", "by-image", "scatter", "shapes",
        "distance-psnr", "contraction-psnr", "drift-shares", "region", "forward",
        *(f"drift-{part}" for part in
          ("geometry", "colour", "noise", "sharpness", "semantics", "rest")),
    }  # fmt: skip
    assert next(iter(DRAWN)) == "convergence-headline", "what counts most comes first"


@pytest.mark.parametrize("name", list(DRAWN))
@pytest.mark.parametrize("page", [True, False])
def test_a_specification_is_valid_vega_lite(name: str, page: bool) -> None:
    specification = DRAWN[name].specification(page=page)
    alt.LayerChart.from_dict(specification, validate=True)
    assert "$schema" not in specification
    assert ("rows" in specification.get("datasets", {})) != page, "a page's data are beside it"


@pytest.mark.parametrize("name", ["convergence-headline", "survival-quality", "heatmap", "scatter",
                                  "drift-shares", "contraction-psnr"])  # fmt: skip
def test_a_still_is_an_svg_with_the_editors_names(name: str) -> None:
    svg = charts.still(DRAWN[name].specification(page=False))
    assert svg.startswith("<svg")
    assert "ref:identity" in svg
    if name == "convergence-headline":
        assert LIGHT[0] in svg
        assert 'stroke-dasharray="2,3"' in svg, "the threshold"


@pytest.mark.parametrize(
    ("last", "first", "values"),
    [(3, 1, [1, 2, 3]), (1, 1, [0, 1]), (10, 0, list(range(11))), (2.4, 0, [0, 1, 2, 3]),
     (25, 1, [5, 10, 15, 20, 25]), (0, 0, [0, 1]), (100, 0, list(range(0, 101, 10)))],
)  # fmt: skip
def test_homecomings_are_numbered_once_each(last: float, first: int, values: list[int]) -> None:
    x: Any = homecomings_axis(last, first).to_dict()
    assert x["axis"]["values"] == values
    assert x["scale"]["domain"][0] <= values[0]
    assert x["scale"]["domain"][1] >= max(values[-1], last)


@pytest.mark.parametrize("name", ["convergence-psnr", "value-psnr", "survival-psnr",
                                  "distance-psnr", "drift-noise"])  # fmt: skip
def test_every_axis_of_homecomings_has_whole_numbers(name: str) -> None:
    layers = DRAWN[name].specification(page=True)["layer"]
    axes = [axis for layer in layers if (axis := layer["encoding"].get("x"))]
    assert axes
    assert all(axis["axis"]["values"][-1] == 4 for axis in axes)


def test_controls_do_not_set_the_scale_of_a_component() -> None:
    def drift(editor: str, size: float) -> Finding:
        name = f"drift/{editor}/noise/1"
        return Finding(id=name, estimate=size, editor=editor, group="noise", round=1, n=3)

    def drawn(control: float) -> tuple[str, dict[str, Any]]:
        made = (drift("ref:identity", control), drift("a", 2.0), drift("b", 3.0))
        findings = RICH.model_copy(update={"findings": made})
        (found,) = charts.drift_drawings(findings, INKS)
        return found.about, found.specification(page=True)["layer"][1]

    about, line = drawn(4000)
    assert "beyond it is cut off" in about
    assert line["mark"]["clip"]
    assert line["encoding"]["y"]["scale"]["domain"] == pytest.approx([0, 3.18])
    about, line = drawn(2.5)
    assert not about
    assert not line["mark"]["clip"]
    assert "scale" not in line["encoding"]["y"]


def points_of(kind: str, **fields: str) -> list[Finding]:
    return [
        f
        for f in RICH.findings
        if f.kind == kind and all(getattr(f, name) == value for name, value in fields.items())
    ]


@pytest.mark.parametrize(
    ("name", "kind", "fields"),
    [
        ("convergence-quality", "convergence", {"metric": "quality"}),
        ("value-psnr", "value", {"metric": "psnr"}),
        ("survival-headline", "survival", {"metric": "headline"}),
        ("heatmap", "by-cycle", {"metric": "score"}),
        ("by-image", "by-image", {"metric": "score"}),
        ("variance", "variance", {}),
        ("shapes", "shape", {}),
        ("distance-psnr", "distance", {}),
        ("contraction-psnr", "contraction", {}),
        ("drift-shares", "drift-share", {}),
        ("drift-noise", "drift", {"group": "noise"}),
        ("forward", "forward", {}),
    ],
)
def test_a_chart_holds_every_finding_of_its_kind(
    name: str, kind: str, fields: dict[str, str]
) -> None:
    shown = [
        (row["editor"], row["value"], row.get("low"), row["chains"], row["missing"])
        for row in DRAWN[name].rows
        if "chains" in row
    ]
    wanted = [(f.editor, f.estimate, f.low, f.n, f.missing) for f in points_of(kind, **fields)]
    assert len(wanted) >= len(EDITORS)
    assert sorted(shown, key=str) == sorted(wanted, key=str)


def test_inside_and_outside_are_those_of_the_last_homecoming() -> None:
    wanted = {(f.editor, f.group, f.estimate) for f in points_of("region") if f.round == 4}
    assert {(r["editor"], r["place"], r["value"]) for r in DRAWN["region"].rows} == wanted


def test_the_scatter_falls_back_on_metrics_and_says_so() -> None:
    less = rich_findings(EDITORS, metrics=("psnr", "ssim"))
    drawing = charts.scatter_drawing(less, INKS)
    assert drawing is not None
    assert drawing.title == "Psnr against ssim"
    assert drawing.under[0].startswith("A dimension is incomplete, so this is psnr against ssim")
    whole = charts.scatter_drawing(RICH, INKS)
    assert whole is not None
    assert (whole.title, whole.under) == ("Quality against semantic", ())


def test_cycles_that_cannot_be_undone_are_marked_and_come_last() -> None:
    heat = DRAWN["heatmap"]
    names = list(dict.fromkeys(row["edit"] for row in heat.rows))
    assert [name for name in names if name.endswith("*")] == ["monochrome *"]
    assert heat.under == (
        "Marked *: with cycles that cannot be fully undone; these are in no headline number.",
    )
    encoding = heat.specification(page=True)["layer"][0]["encoding"]
    sort = next(e["sort"] for e in (encoding["x"], encoding["y"]) if e["field"] == "edit")
    assert sort[-1] == "monochrome *"


def test_a_part_keeps_its_colour_whichever_others_are_there() -> None:
    order = ("geometry", "colour", "noise", "rest")
    whole = part_colours(order, order)
    for some in (["noise", "rest"], ["colour"], ["rest", "geometry"]):
        found = part_colours(some, order)
        for theme in ("light", "dark"):
            colours = dict(zip(order, whole[theme], strict=True))
            assert found[theme] == tuple(colours[part] for part in some)
    assert len(set(whole["light"])) == len(order)


def test_a_drift_that_is_all_rest_is_not_drawn() -> None:
    kept = [f for f in RICH.findings if not f.kind.startswith("drift") or f.group == "rest"]
    findings = RICH.model_copy(update={"findings": tuple(kept)})
    assert not charts.drift_drawings(findings, INKS)
    assert absences(findings)["drift"].why.startswith("No decomposition of the drift")


def test_editors_that_do_not_move_are_told_under_a_log_scale() -> None:
    still = [f.model_copy(update={"estimate": 0.0}) if f.editor == "a" else f
             for f in points_of("distance")]  # fmt: skip
    findings = RICH.model_copy(update={"findings": tuple(still)})
    (drawing,) = charts.contraction_drawings(findings, INKS)
    assert drawing.under == ("Did not move at all, so not on a log scale: a.",)
    assert all(row["value"] > 0 for row in drawing.rows)


def test_groups_of_chains_are_data_beside_the_curve() -> None:
    drawing = DRAWN["convergence-quality"]
    wanted = points_of("group-convergence", metric="quality")
    assert len([row for row in drawing.groups if row["n"]]) == len(wanted)
    starts = [(row["group"], row["editor"]) for row in drawing.groups if row["n"] == 0]
    assert sorted(starts) == sorted({(f.group, f.editor) for f in wanted})
    assert not DRAWN["value-psnr"].groups


@pytest.mark.parametrize("kind", sorted({f.kind for f in RICH.findings}))
def test_the_other_charts_are_there_without_a_kind(kind: str) -> None:
    less = rich_findings(EDITORS, drop=[kind], rounds=4)
    mine = {drawing.id for drawing in drawings_of(less, INKS).all}
    assert mine <= set(DRAWN)
    assert len(set(DRAWN) - mine) <= 7


def unpacked(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """As the page's script does it."""
    values = {
        name: [c["words"][i] for i in c["are"]] if isinstance(c, dict) else c
        for name, c in columns.items()
    }
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return [{k: v for k, v in row.items() if v is not None} for row in rows]


ROWS = st.fixed_dictionaries(
    {"editor": st.text(), "n": st.integers(0, 100)},
    optional={"value": st.floats(-1e6, 1e6), "low": st.floats(0, 1), "note": st.text()},
)


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_columns_hold_the_rows(rows: list[dict[str, Any]]) -> None:
    told = unpacked(json.loads(json.dumps(charts.columns(rows))))
    assert told == [{k: rounded(v) for k, v in row.items()} for row in rows]


@given(st.floats(-1e9, 1e9))
def test_rounding_keeps_four_digits(value: float) -> None:
    assert rounded(value) == pytest.approx(value, rel=5.1e-4)
    assert rounded(value) == rounded(rounded(value))


def test_inks_tell_editors_apart() -> None:
    many = [(f"e{i:02}", i % 5 == 0) for i in range(20)]
    found = inks(many)
    drawn = [(ink.light, ink.shape, ink.dash) for ink in found.values()]
    assert len(set(drawn)) == len(drawn)
    assert all((ink.light in GREY) == control for (name, control) in many for ink in [found[name]])


def test_an_editor_keeps_its_ink_when_the_order_changes() -> None:
    editors = [("b", False), ("a", False), ("c", True)]
    assert inks(editors) == inks(editors[::-1])


def test_the_style_sheet_has_the_same_colours() -> None:
    css = (resources.files("convergebench.reporter") / "static" / "report.css").read_text()
    light, dark = (
        dict(re.findall(r"--ink-(\w+): (#\w+);", part)) for part in css.split("@media", 2)[:2]
    )
    for colours, told, grey in ((LIGHT, light, GREY[0]), (DARK, dark, GREY[1])):
        assert told == {**{str(i): c for i, c in enumerate(colours)}, "control": grey}
