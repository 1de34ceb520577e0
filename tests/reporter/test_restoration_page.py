"""The page of the restoration study: its numbers, marks, files, pictures, and hostile names."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from convergebench.chain import FrameRef
from convergebench.frame import Frame
from convergebench.reporter.restoration import Shot, write_restoration
from convergebench.reporter.restoration import shots as shots_module
from convergebench.reporter.restoration.cases import cases_of
from convergebench.reporter.restoration.grids import forests_of, matrices_of, odd_of
from convergebench.reporter.restoration.placing import SIDES_OF_A_POINT, placed
from convergebench.reporter.restoration.shots import bring
from convergebench.reporter.restoration.slider import Album
from convergebench.reporter.restoration.words import chance, facts_of, studied, value_of, verdict
from convergebench.restoration.result import Cell, Restoration
from tests.reporter.pages import Element, assert_links_resolve, read_page
from tests.reporter.restored import HOSTILE, made_restoration, made_shots
from tests.support.runs import shelf

NUMBER = re.compile(r"(?<![\w.])−?\d[\d,]*(?:\.\d+)?")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study's page."""
    folder = tmp_path_factory.mktemp("restored")
    found = made_restoration(6)
    write_restoration(found, folder / "page", shots=made_shots(found, folder / "shots", side=32))
    return folder / "page"


@pytest.fixture(scope="module")
def page(written: Path) -> Element:
    """The same, read."""
    return read_page(written / "restoration.html")


def leaves(value: Any) -> list[Any]:
    """Everything in a JSON value that is no list and no object."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def numbers_of(told: Any) -> set[str]:
    """Every number of a JSON value, as a page may print it."""
    found = {"0", "1", "0.001"}  # of the explanations: p < 0.001, W from 0 to 1
    for value in leaves(told):
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        for text in (f"{value:.3f}", f"{value:.2f}", f"{value:.1f}", f"{value:g}", f"{value:,}"):
            found.add(text.replace("-", "−"))
    return found


def shown_numbers(page: Element, told: Any) -> list[str]:
    """The numbers that a page shows in its text; names, which may have digits, left out."""
    main = page.one("main")
    text = f"{page.all('header')[0].text} {main.text}"
    names = {value for value in leaves(told) if isinstance(value, str) and re.search(r"\d", value)}
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(" ".join(name.split()), " ")
    return NUMBER.findall(text)


def test_every_number_of_the_page_is_in_its_json(written: Path, page: Element) -> None:
    told = json.loads((written / "restoration.json").read_bytes())
    known = numbers_of(told)
    shown = shown_numbers(page, told)
    assert len(shown) > 600
    assert [number for number in shown if number not in known] == []


def test_a_number_that_is_in_no_json_would_be_found(written: Path, page: Element) -> None:
    told = json.loads((written / "restoration.json").read_bytes())
    told["overall"]["rows"][0]["cells"]["psnr"]["mean"] = 1.5
    told["tradeoff"] = told["prompts"] = told["scenes"] = []
    assert set(shown_numbers(page, told)) - numbers_of(told)


def test_the_first_sentence_counts_the_study() -> None:
    assert studied(facts_of(made_restoration(12))) == (
        "12 damaged pictures (10 of them with a ground truth); 16 methods (1 prompted editor with "
        "12 prompts, 4 that read no prompt), and 1 control; up to 3 repeats; 2 of 612 outputs "
        "failed."
    )


def test_the_verdict_names_winners_ties_wording_and_stability() -> None:
    found = made_restoration(12)
    told = verdict(found, facts_of(found))
    assert told[0] == (
        "Best by PSNR and SSIM: nano-banana-2, SF3; by LPIPS: nano-banana-2, SF1 and "
        "nano-banana-2, SF3 (tied); by MUSIQ, MANIQA and CLIP-IQA: TSD-SR."
    )
    assert told[1] == "Length long against short: no measure tells them apart."
    assert told[2] == (
        "Fidelity yes against no: better by PSNR, SSIM and LPIPS, worse by MUSIQ, MANIQA and "
        "CLIP-IQA."
    )
    assert told[3].startswith("Stability: 2 of 24 Friedman tests find that repeats differ")
    assert "about 1.2" in told[3]


def test_a_control_that_beats_all_methods_is_told() -> None:
    found = made_restoration(6)
    assert found.overall is not None
    rows = [
        replace(row, cells={**row.cells, "psnr": Cell(40.0, n=5), "lpips": Cell(0.01, n=5)})
        if row.control
        else row
        for row in found.overall.rows
    ]
    better = replace(found, overall=replace(found.overall, rows=tuple(rows)))
    assert "A control does better than every method: ref:identity by PSNR and LPIPS." in verdict(
        better, facts_of(better)
    )
    assert not [s for s in verdict(found, facts_of(found)) if s.startswith("A control")]


def test_best_is_bold_second_underlined_and_controls_apart(page: Element) -> None:
    bodies = page.one("overall").all("tbody")
    assert [strong.text for strong in bodies[0].all("strong")] == [
        "0.215", "23.360", "0.672", "0.215", "72.144", "0.479", "0.708",
    ]  # fmt: skip
    assert [mark.text for mark in bodies[0].all("u")] == [
        "23.284", "0.671", "0.216", "0.686", "0.671", "71.276", "0.478",
    ]  # fmt: skip
    assert not bodies[1].all("strong")
    assert [row.all("th")[0].text for row in bodies[1].all("tr")][1:] == ["ref:identity"]
    heads = [th.text for th in page.one("overall").all("thead")[0].all("tr")[1].all("th")]
    assert heads[:4] == ["Method", "PSNR ↑", "SSIM ↑", "LPIPS ↓"]


def test_where_no_truth_is_a_slash_stands(page: Element) -> None:
    (old,) = [
        panel
        for panel in page.one("scenes").all("div", "panel")
        if panel.all("h3")[0].text == "Old film"
    ]
    first = old.all("tbody")[0].all("tr")[0]
    cells = [cell.text for cell in first.all("td")]
    assert cells[:3] == ["/", "/", "/"]
    assert float(cells[3]) > 60, "what needs no truth is there"
    assert value_of(Cell(None, absent="score")) == "–"
    assert value_of(Cell(None, infinite=3)) == "∞"


def test_marked_cells_of_stability_are_those_below_the_level(page: Element) -> None:
    marked = page.one("stability").all("td", "marked")
    assert [cell.text.split()[:3] for cell in marked] == [
        ["6.229", "p", "0.044"],
        ["7.943", "p", "0.019"],
    ]


def test_outliers_and_cases_lead_to_their_pictures(written: Path, page: Element) -> None:
    links = [
        a.attributes["href"] for a in page.one("stability").all("a") if "#" in a.attributes["href"]
    ]
    assert "#compare/p02/nano-banana-2--s1.0/nano-banana-2--s1.1" in links
    cases = [
        a.attributes["href"] for a in page.one("cases").all("a") if "#" in a.attributes["href"]
    ]
    assert "#compare/p01/truth/nano-banana-2--l2.1" in cases
    assert_links_resolve(written)


def test_every_table_is_there_as_csv_and_latex(written: Path) -> None:
    for name in (
        "overall", "prompts", "scenes", "damages", "stability", "effects", "outliers", "tradeoff",
        "counts",
    ):  # fmt: skip
        assert (written / "restoration" / f"{name}.csv").read_text("utf-8").count("\n") > 2
        text = (written / "restoration" / f"{name}.tex").read_text("ascii")
        assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
        assert r"\toprule" in text
    means = (written / "restoration" / "overall.tex").read_text("ascii")
    assert r"\textbf{23.360}" in means
    assert r"\underline{23.284}" in means
    effects = (written / "restoration" / "effects.tex").read_text("ascii")
    assert "Fidelity yes against no" in effects
    assert "0.630" in effects.replace(r"\allowbreak{}", "")


def test_cases_are_counted_by_method_and_wording(page: Element) -> None:
    told = page.one("cases")
    rows = [[cell.text for cell in row.all()] for row in told.all("tbody")[0].all("tr")]
    assert rows[3][0] == "nano-banana-2, LF1"
    assert "3" in rows[3]
    assert "/ 6" in rows[3]
    assert [item.text for item in told.all("ul", "notes")[0].all("li")] == [
        "fidelity no: 2.00 cases per prompt in one run through the pictures; 12 in all of 6 "
        "prompts.",
        "fidelity yes: 0.50 cases per prompt in one run through the pictures; 3 in all of 6 "
        "prompts.",
    ]


def test_bars_of_cases_show_rates_and_not_counts() -> None:
    found = made_restoration(6)
    twice = replace(found.counts[1], cases=2, looked=12)
    once = replace(found.counts[2], cases=1, looked=6)
    two = replace(found, counts=(twice, once), cases=(), case_means=())
    (cases,) = cases_of(two, Album(()))
    assert [counted.share for counted in cases.counts] == [1, 1]


def test_a_folder_that_was_moved_still_has_all_it_links(written: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    written.rename(moved)
    try:
        assert_links_resolve(moved)
        for script in sorted((moved / "data" / "restoration").glob("source-*.js")):
            told = json.loads(
                re.sub(r"^convergebench\.take\([^,]+,|\);\n$", "", script.read_text("utf-8"))
            )
            for view in told["views"]:
                for name in ("shown", "full", "thumb"):
                    assert "missing" in view or (moved / view[name]).is_file()
    finally:
        moved.rename(written)


def test_a_second_build_changes_no_file(written: Path, tmp_path: Path) -> None:
    found = made_restoration(6)
    shots = made_shots(found, tmp_path / "shots", side=32)
    before = {p: p.stat().st_mtime_ns for p in written.rglob("*.html")}
    write_restoration(found, written, shots=shots)
    assert before == {p: p.stat().st_mtime_ns for p in written.rglob("*.html")}


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    found = made_restoration(6, hostile=True)
    path = write_restoration(found, tmp_path / "page", shots=made_shots(found, tmp_path / "s", 32))
    page = read_page(path)
    assert len(page.all("script")) == 4, "none but ours"
    assert HOSTILE in " ".join(page.all("h1")[0].text.split())
    assert not [img for img in page.all("img") if "onerror" in img.attributes]


def test_published_means_alone_make_a_page(tmp_path: Path) -> None:
    whole = made_restoration(6)
    bare = Restoration(whole.title, whole.measures, whole.methods, prompts=whole.prompts)
    page = read_page(write_restoration(bare, tmp_path))
    assert page.one("prompts").all("table")
    for gone in ("overall", "compare", "effects", "stability", "scenes", "tradeoff", "cases"):
        assert not [e for e in page.all("section") if e.attributes.get("id") == gone], gone
    assert_links_resolve(tmp_path)


def test_the_heat_is_a_methods_place_in_its_column() -> None:
    matrices = matrices_of(made_restoration(12))
    shares = {band.label: band.spots[0].share for band in matrices[0].bands}
    assert shares["nano-banana-2, SF3"] == 1
    assert shares["nano-banana-2, LF1"] == pytest.approx(14 / 15), "second of sixteen"
    assert shares["HYPIR"] == 0
    assert shares["ref:identity"] == 0, "a control takes no place"
    lpips = next(m for m in matrices if m.measure.name == "lpips")
    there = {band.label: band.spots[0].share for band in lpips.bands}
    assert there["DiffBIR"] == 0, "lower is better"
    assert there["nano-banana-2, SF1"] == there["nano-banana-2, SF3"] == 1, "tied"


def test_in_a_forest_right_is_better() -> None:
    for forest in forests_of(made_restoration(12)):
        for whisker in forest.whiskers:
            if whisker.verdict != "tied":
                assert (whisker.at > 50) == (whisker.verdict == "better")
            assert whisker.start is not None
            assert whisker.end is not None
            assert 0 <= whisker.start <= whisker.at <= whisker.end <= 100


def test_outliers_come_by_how_far_they_stand_out() -> None:
    first, second = odd_of(made_restoration(6))
    assert (first.outlier.measure, second.outlier.measure) == ("psnr", "clipiqa")
    assert (first.low, first.high) == (0, 1)


@pytest.mark.parametrize(
    ("p", "text"), [(None, "–"), (0.0004, "< 0.001"), (0.044, "0.044"), (1.0, "1.000")]
)
def test_p_values_are_printed(p: float | None, text: str) -> None:
    assert chance(p) == text


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=0, max_size=30),
    st.tuples(st.booleans(), st.booleans()),
)
def test_every_point_has_a_side_for_its_name(
    points: list[tuple[float, float]], flip: tuple[bool, bool]
) -> None:
    sides = placed(points, ["name"] * len(points), flip)
    assert len(sides) == len(points)
    assert set(sides) <= set(SIDES_OF_A_POINT)


def test_two_points_beside_each_other_have_their_names_apart() -> None:
    sides = placed(
        [(0.0, 0.0), (0.03, 0.0), (1.0, 1.0)], ["first", "second", "third"], (False, False)
    )
    assert sides[0] != sides[1]


def stored(folder: Path, name: str, width: int, height: int, form: str) -> Shot:
    dice = np.random.default_rng(width)
    pixels = dice.integers(0, 256, (height, width, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form)
    frame, store = Frame(out.getvalue()), shelf(folder)
    store.put(frame)
    return Shot(name, "input", ref=FrameRef.of(frame), store=store)


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def test_only_what_is_large_or_no_browser_shows_gets_a_view(tmp_path: Path) -> None:
    shots = [
        stored(tmp_path, "small", 64, 48, "png"),
        stored(tmp_path, "large", 1500, 900, "png"),
        stored(tmp_path, "strange", 64, 64, "tiff"),
        Shot("gone", "m.0", "m", 0, missing="refused"),
    ]
    brought = bring(shots, tmp_path / "out")
    small, large, strange, gone = brought.views
    assert small.shown == small.full
    assert large.shown.startswith("views/")
    assert size_of(tmp_path / "out" / large.shown) == (1024, 614)
    assert strange.shown.startswith("views/")
    assert (gone.shown, gone.full) == ("", "")
    assert (brought.made, brought.stored, brought.side) == (2, 1, 1024)
    sizes = [(tmp_path / "out" / v.shown).stat().st_size for v in (large, strange)]
    assert brought.bytes == sum(sizes)


def test_views_shrink_before_they_take_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shots = [stored(tmp_path, f"s{i}", 1100 + i, 1100, "png") for i in range(3)]
    monkeypatch.setattr(shots_module, "MOST_BYTES", 600_000)
    brought = bring(shots, tmp_path / "out")
    assert brought.side == 768
    assert max(size_of(tmp_path / "out" / brought.views[0].shown)) == 768
