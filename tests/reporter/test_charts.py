from __future__ import annotations

import re
from importlib import resources

import altair as alt
import pytest

from convergebench.analysis import Finding, Findings
from convergebench.reporter import charts
from convergebench.reporter.palette import DARK, GREY, LIGHT, inks


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


@pytest.mark.parametrize("kind", charts.KINDS)
@pytest.mark.parametrize("page", [True, False])
def test_a_specification_is_valid_vega_lite(kind: str, page: bool) -> None:
    points = tuple(point(kind, "psnr", name, n) for name in ("a", "b") for n in (1, 2))
    curves = charts.Curves(kind, "psnr", points, 0.5)
    drawn = charts.specification(curves, inks([("a", False), ("b", True)]), "C(n)", page=page)
    alt.LayerChart.from_dict(drawn, validate=True)
    assert "$schema" not in drawn


def test_a_still_is_an_svg_with_the_editors_names() -> None:
    curves = charts.Curves("value", "psnr", (point("value", "psnr", "my:editor", 1),), 0.5)
    drawn = charts.specification(curves, inks([("my:editor", False)]), "psnr", page=False)
    svg = charts.still(drawn)
    assert svg.startswith("<svg")
    assert "my:editor" in svg
    assert LIGHT[0] in svg


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
