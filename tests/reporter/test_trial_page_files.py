"""The folder of a trial's page: its drawings, hostile names, what is rewritten, its size."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import altair as alt
import polars as pl
from PIL import Image

from convergebench.reporter import Report
from convergebench.reporter.palette import inks
from convergebench.reporter.trial import dots, heat, steps, write_trial
from convergebench.reporter.trial.figure import CALM, FAILING, Figure, count_colours
from convergebench.reporter.trial.page import DOWNLOADS
from convergebench.trial.result import Trial
from tests.reporter.pages import Element, assert_links_resolve, read_page
from tests.reporter.test_folder import ADDRESS, NAMESPACE, VEGA, files
from tests.reporter.test_trial_page import page, told_of, trial, undrawn
from tests.reporter.trials import made_trial

__all__ = ["page", "trial", "undrawn"]


# -- drawings -------------------------------------------------------------------------------------


def light_of(colour: str) -> float:
    """Relative luminance, as print in grey has it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_failure_and_success_are_told_apart_without_colour() -> None:
    paper, night = (False, True)
    assert max(map(light_of, FAILING[paper])) < min(map(light_of, CALM[paper]))
    assert min(map(light_of, FAILING[night])) > max(map(light_of, CALM[night]))
    for dark in (paper, night):
        lights = [light_of(c) for c in count_colours(6, dark=dark)]
        assert lights == sorted(lights, reverse=not dark)
        assert len(set(lights)) == 7


def every_figure(trial: Trial) -> list[Figure]:
    walks = steps.walks_of(trial)
    drawn = inks([(arm, False) for arm in walks.arms])
    counts = heat.count_rows(trial)
    return [
        *heat.gaps_figures(trial)[:1], *heat.overlay_figures(trial, counts)[:1],
        heat.side_by_side_figure(trial, counts), *steps.steps_figures(trial, walks, drawn)[:1],
        *steps.images_figures(trial, walks, drawn)[:1],
        *steps.adding_figures(trial, walks, drawn)[:1], *dots.dot_figures(trial),
    ]  # fmt: skip


def test_specifications_are_valid_vega_lite(trial: Trial) -> None:
    figures = every_figure(trial)
    assert len(figures) == 11
    for figure in figures:
        for live in (True, False):
            specification = figure.specification(page=live)
            kind = alt.FacetChart if figure.fit else alt.LayerChart
            kind.from_dict(specification, validate=True)
            assert ("rows" in specification.get("datasets", {})) != live


def test_every_figure_is_there_as_svg(trial: Trial, page: Path) -> None:
    drawn = {p.name for p in (page.parent / "charts").iterdir()}
    assert len(drawn) == 3 + 3 + 1 + 3 * 5 + 5
    for path in (page.parent / "charts").iterdir():
        root = ET.fromstring(path.read_text("utf-8").partition("<!--")[0])
        assert root.tag.endswith("svg")
    gaps = (page.parent / "charts" / "trial-gaps-2-ref-static.svg").read_text("utf-8")
    shown = set(ET.fromstring(gaps.partition("<!--")[0]).itertext())
    row = trial.gaps.filter(arm="ref:static").filter(pl.col("gap").abs() >= 10).row(0, named=True)
    assert f"{row['gap']:+.0f}".replace("-", "−") in shown
    assert {"Δ5", "Δ10", "Δ20", "rice", "niqe"} <= shown


def test_the_page_lists_every_drawing(page: Path) -> None:
    links = read_page(page).one("downloads").all("a")
    listed = {a.attributes["href"] for a in links if a.attributes["href"].endswith(".svg")}
    assert listed == {f"charts/{p.name}" for p in (page.parent / "charts").iterdir()}


def test_the_page_knows_the_still_of_every_choice(trial: Trial, page: Path) -> None:
    told = told_of(page)
    assert {kind: len(names) for kind, names in told["stills"].items()} == {
        "gaps": 3, "overlay": 3, "steps": 5, "images": 5, "adding": 5,
    }  # fmt: skip
    for names in told["stills"].values():
        for name in names:
            assert (page.parent / "charts" / f"{name}.svg").is_file()
    assert told["arms"] == list(trial.arms)


# -- hostile names --------------------------------------------------------------------------------


def test_hostile_names_are_text(tmp_path: Path) -> None:
    trial = made_trial(2, 2, 2, 20, 1, hostile=True)
    path = write_trial(trial, tmp_path / "out")
    page = read_page(path)
    scripts = [s.attributes for s in page.all("script")]
    assert all(s.get("src") or s.get("type") == "application/json" for s in scripts)
    assert not [n for e in page.all() for n in e.attributes if n.startswith("on")]
    assert {e.attributes["src"].split("/")[0] for e in page.all("img")} == {"charts"}
    names = [option.text for option in page.one("arm").all("option")]
    assert names[0] == " ".join(trial.arms[0].split())
    assert told_of(path)["arms"] == list(trial.arms)
    assert "<" not in next(e for e in page.all("script") if "id" in e.attributes).raw
    for file in (tmp_path / "out").rglob("*"):
        assert re.fullmatch(r"[\w.-]+", file.name), file.name
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert_links_resolve(tmp_path / "out")
    for svg in (tmp_path / "out" / "charts").iterdir():
        root = ET.fromstring(svg.read_text("utf-8").partition("<!--")[0])
        assert not [e for e in root.iter() if e.tag.endswith(("script", "img", "image"))]


def test_no_address_is_in_any_file(page: Path) -> None:
    for path in page.parent.rglob("*"):
        if path.suffix in (".html", ".css", ".js", ".svg"):
            data = NAMESPACE.sub(b"", path.read_bytes())
            if path.name == "vega.js":
                data = VEGA.sub(b"", data)
            assert not ADDRESS.search(data), path.name


# -- the folder -----------------------------------------------------------------------------------


def test_a_second_write_rewrites_nothing(trial: Trial, page: Path, tmp_path: Path) -> None:
    shutil.copytree(page.parent, tmp_path / "same")
    before = files(tmp_path / "same")
    again = made_trial(5, 3, 4, 20, 2)
    assert write_trial(again, tmp_path / "same") == tmp_path / "same" / "trial.html"
    assert files(tmp_path / "same") == before


def test_what_is_no_more_is_taken_away(tmp_path: Path, undrawn: None) -> None:
    write_trial(made_trial(3, 3, 2, 20, 1), tmp_path)
    (tmp_path / "charts" / "heatmap.svg").write_text("<svg/>")
    write_trial(made_trial(2, 2, 2, 20, 1), tmp_path)
    names = {p.name for p in (tmp_path / "charts").iterdir()}
    assert "heatmap.svg" in names, "a drawing of the report"
    assert not [n for n in names if "wrinkles" in n or "brisque" in n]
    assert not (tmp_path / "data" / "trial" / "gaps-3.js").exists()
    assert_links_resolve(tmp_path)


def test_it_stands_beside_a_report(made_report: Report, tmp_path: Path, undrawn: None) -> None:
    folder = tmp_path / "report"
    shutil.copytree(made_report.path.parent, folder)
    before = files(folder)
    path = write_trial(made_trial(2, 2, 2, 20, 1), folder)
    after = files(folder)
    assert {name: after[name] for name in before} == before
    assert "index.html" in [a.attributes["href"] for a in read_page(path).all("a")]
    assert_links_resolve(folder)


def test_tables_beside_the_page_are_linked(trial: Trial, tmp_path: Path, undrawn: None) -> None:
    def linked(page: Element) -> list[str]:
        names = [a.attributes["href"] for a in page.one("downloads").all("a")]
        return [name for name in names if not name.startswith("charts/")]

    assert linked(read_page(write_trial(trial, tmp_path))) == []
    for name in DOWNLOADS:
        (tmp_path / name).write_text("x")
    assert linked(read_page(write_trial(trial, tmp_path))) == list(DOWNLOADS)


def test_initial_images_are_shown_small(trial: Trial, tmp_path: Path, undrawn: None) -> None:
    Image.new("RGB", (600, 300), "red").save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    pictures = {"rice": tmp_path / "a.png", "bark": tmp_path / "b.png", "holi": tmp_path / "none"}
    page = read_page(write_trial(trial, tmp_path / "out", pictures=pictures))
    (shown,) = page.all("ul", "initial")
    assert shown.text == "rice"
    with Image.open(tmp_path / "out" / shown.all("img")[0].attributes["src"]) as thumb:
        assert thumb.size == (192, 96)


def test_a_large_trial_stays_small(tmp_path: Path, undrawn: None) -> None:
    trial = made_trial(30, 12, 13, 100, 5)
    assert trial.single.height > 2_000_000
    path = write_trial(trial, tmp_path)
    sizes = {p.name: p.stat().st_size for p in (tmp_path / "data" / "trial").iterdir()}
    print(f"page {path.stat().st_size:,}, largest data {max(sizes.values()):,}, "
          f"all data {sum(sizes.values()):,} bytes")  # fmt: skip
    assert path.stat().st_size < 1_000_000
    assert max(sizes.values()) < 500_000, "what is loaded for one choice"
    assert sum(sizes.values()) < 25_000_000
