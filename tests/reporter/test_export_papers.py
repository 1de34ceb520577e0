"""LaTeX that compiles, Markdown that renders, PDF that can be read and searched."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pypdf import PdfReader

from convergebench.analysis import Finding
from convergebench.reporter.export import write_exports
from convergebench.reporter.export.binding import bound
from convergebench.reporter.export.document import paper_of, report_pdf
from convergebench.reporter.export.latex import table_tex
from convergebench.reporter.export.markdown import md, report_md
from convergebench.reporter.export.material import Material, plain_material
from convergebench.reporter.export.paper import INNER, Paper, measure, wrapped
from convergebench.reporter.export.sheets import Column, Estimate, Sheet
from convergebench.reporter.export.tables import tables_of
from convergebench.reporter.export.texting import tex
from tests.reporter.test_export import BAD, EDITORS, rich

ENGINES = ("pdflatex", "lualatex")
SPECIALS = "\\ { } $ & # ^ _ ~ % < > \" ' ` [x] * | ?` !` -- --- ,, << >>"
LETTERS = "≥ ≤ – — − × · … λ µ Ω Α é ü ł ß å ç ĳ İ ą 中 😀 \u202e \u2028 \x07 \u200b"


@pytest.fixture(scope="module")
def material() -> Material:
    return plain_material(rich())


@pytest.fixture(scope="module")
def latex(material: Material, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Findings of every kind and hostile editors, as LaTeX."""
    folder = tmp_path_factory.mktemp("papers")
    write_exports(folder, material, ["latex"])
    return folder / "latex"


# -- LaTeX ----------------------------------------------------------------------------------------


def with_every_engine(test: Callable[..., None]) -> Callable[..., None] | None:
    """Runs a test with every TeX engine that is installed, and skips the others.

    Where nothing may be skipped it is left out instead: TeX is no dependency of ours.
    """
    strict = os.environ.get("CONVERGEBENCH_NO_SKIP")
    engines = [
        pytest.param(name, marks=[] if here else [pytest.mark.skip(f"{name} is not installed")])
        for name in ENGINES
        if (here := shutil.which(name) is not None) or not strict
    ]
    return pytest.mark.slow(pytest.mark.parametrize("engine", engines)(test)) if engines else None


def compiled(engine: str, folder: Path, name: str) -> str:
    """The text of the PDF that an engine makes."""
    words = [engine, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", name]
    done = subprocess.run(words, cwd=folder, capture_output=True, timeout=240, check=False)
    log = done.stdout.decode(errors="replace")
    assert done.returncode == 0, log[-3000:]
    assert "Missing character" not in log
    pages = PdfReader(folder / f"{name}.pdf").pages
    return " ".join(" ".join(page.extract_text().split()) for page in pages)


@with_every_engine
def test_the_document_of_all_tables_and_figures_compiles(
    engine: str, latex: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "latex"
    shutil.copytree(latex, folder)
    text = compiled(engine, folder, "standalone")
    assert "hub:one@2" in text
    assert "tied with" in text
    assert "[9.00" not in text  # rounds are 4 here
    assert "[3.60" in text


@with_every_engine
def test_every_sign_compiles(engine: str, tmp_path: Path) -> None:
    texts = [SPECIALS, LETTERS, "[first", "*star", BAD, "\n\n", ""]
    columns = (Column("a", "a"), Column("b", SPECIALS, "estimate", LETTERS))
    rows = tuple((text, Estimate(0.5, 0.25, None)) for text in texts)
    sheet = Sheet("signs", SPECIALS, columns, rows, (LETTERS,))
    packages = "".join(rf"\usepackage{{{p}}}" for p in ("array", "booktabs", "graphicx"))
    body = table_tex(sheet)
    (tmp_path / "signs.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    )
    text = compiled(engine, tmp_path, "signs")
    assert "U+4E2D" in text
    assert "[first" in text


@given(st.text())
def test_any_text_becomes_plain_ascii_with_balanced_braces(text: str) -> None:
    found = tex(text, breaks=True)
    assert found.isascii()
    assert "\n" not in found
    bare = re.sub(r"\\[\\{}$&#_%,]", "", found)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[$&#%~]", bare.replace(r"\~{", "").replace("~", "", found.count("~")))


@pytest.mark.parametrize("sign", '\\{}$&#^_~%<>"`[]*|')
def test_no_special_sign_is_left_bare(sign: str) -> None:
    assert tex(f"a{sign}b") not in (f"a{sign}b", "ab")


def test_signs_that_would_join_stay_apart() -> None:
    assert tex("a--b") == "a-{-}b"
    assert tex("a-b, c") == "a-b, c"
    assert tex("≥ é λ") == r"\ensuremath{\geq} \'{e} \ensuremath{\lambda}"
    assert tex("中") == r"\cbchar{4E2D}"


def test_fragments_are_balanced_and_each_row_has_every_column(latex: Path) -> None:
    for path in sorted(latex.glob("*.tex")):
        text = path.read_text("ascii")
        begun = re.findall(r"\\begin\{([a-z*]+)\}", text)
        assert sorted(begun) == sorted(re.findall(r"\\end\{([a-z*]+)\}", text))
        bare = re.sub(r"\\[\\{}]", "", text)
        assert bare.count("{") == bare.count("}"), path.name
        for body in re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL):
            rows = [line for line in body.splitlines() if line]
            assert all(row.endswith(r"\\") for row in rows)
            assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1


def test_captions_say_n_and_what_intervals_are(latex: Path) -> None:
    text = " ".join((latex / "leaderboard.tex").read_text().split())
    assert "40 common chains from 20 source images" in text
    assert r"95 \% intervals, by bootstrap over source images" in text
    assert r"\toprule" in text
    assert r"\label{tab:cb-leaderboard}" in text
    assert "n 40, missing 2" in (latex / "by-edit.tex").read_text()


def test_a_long_table_is_told_in_parts_that_lack_no_row() -> None:
    rows = tuple((f"row{i}x", i) for i in range(100))
    text = table_tex(Sheet("long", "Long", (Column("a", "a"), Column("b", "b", "number")), rows))
    assert re.findall(r"row\d+x", text) == [f"row{i}x" for i in range(100)]
    assert text.count(r"\begin{table*}") == 3
    assert "(part 3 of 3)" in text
    assert len(set(re.findall(r"\\label\{.*\}", text))) == 3


def test_every_figure_is_a_vector_page_whose_text_is_text(latex: Path, material: Material) -> None:
    listed = re.findall(r"\{figures/(.*)\.pdf\}", (latex / "figures.tex").read_text())
    assert sorted(listed) == sorted(p.stem for p in (latex / "figures").glob("*.pdf"))
    assert len(listed) == len(material.drawings)
    (page,) = PdfReader(latex / "figures" / "convergence-headline.pdf").pages
    assert "hub:one@2" in page.extract_text()
    assert not page.images
    fonts = page["/Resources"]["/Font"]  # type: ignore[index]
    for font in fonts.values():
        inner = font.get_object()["/DescendantFonts"][0].get_object()
        assert "/FontFile2" in inner["/FontDescriptor"].get_object()


# -- Markdown -------------------------------------------------------------------------------------


def test_the_page_renders_with_whole_tables_and_no_markup_from_outside(material: Material) -> None:
    text = report_md(material, tables_of(material), files=True)
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        width = len(re.findall(r"<th[ >]", table))
        for row in re.findall(r"<tr>\s*<td.*?</tr>", table, re.DOTALL):
            assert len(re.findall(r"<td[ >]", row)) == width
    assert len(re.findall("<table>", html)) == len(tables_of(material))
    shown = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    assert BAD in shown.replace("&amp;", "&")
    links = re.findall(r'(?:href|src)="([^"]*)"', html)
    assert all(re.match(r"(charts|tables)/[\w%.-]+$", link) for link in links)
    assert len([x for x in links if x.startswith("charts/")]) == len(material.drawings)


@settings(max_examples=300)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], max_codepoint=0x2FFF)))
def test_any_text_is_one_cell_and_shown_as_it_is(text: str) -> None:
    page = f"| a | b |\n|---|---|\n| {md(text)} | end |\n"
    html = MarkdownIt("gfm-like", {"linkify": False}).render(page)
    cells = re.findall(r"<td>(.*?)</td>", html, re.DOTALL)
    assert len(cells) == 2
    assert "<" not in cells[0]
    shown = cells[0].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    assert shown.replace("&amp;", "&").split() == text.split()


# -- PDF ------------------------------------------------------------------------------------------


def test_the_pdf_has_title_pages_and_the_leaderboard_as_text(material: Material) -> None:
    data = report_pdf(material, tables_of(material))
    assert data.startswith(b"%PDF-")
    reader = PdfReader(io.BytesIO(data))
    assert reader.metadata is not None
    assert reader.metadata.title == "ConvergeBench: run_1 & co"
    texts = [" ".join(page.extract_text().split()) for page in reader.pages]
    assert len(texts) == len(paper_of(material, tables_of(material)).pages)
    first = texts[0]
    for s in material.findings.standings:
        assert f"{s.score:.3f}" in first
    for word in ("hub:one@2", "-plain", "half-life", "semantic", "ref:identity (control)"):
        assert word in first
    every = " ".join(texts)
    for word in ("Pairs of editors", "Worst cases", "Provenance", "Survival: headline"):
        assert word in every
    assert not [image for page in reader.pages for image in page.images]
    sizes = {tuple(float(x) for x in page.mediabox[2:]) for page in reader.pages}
    assert sizes == {(842.0, 595.0)}


def test_worst_cases_have_their_pictures(material: Material) -> None:
    png = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBg"
        "AAAABQABpfZFQAAAAABJRU5ErkJggg=="
    )
    case = Finding(id="worst/1", estimate=0.1, editor="<b>", note="lost & gone", metric="score")
    small = Material(
        material.findings.model_copy(update={"findings": ()}),
        material.inks,
        plain_material(material.findings.model_copy(update={"findings": ()})).drawn,
        pictures=[(case, png, None)],
    )
    reader = PdfReader(io.BytesIO(report_pdf(small, [])))
    text = " ".join(page.extract_text() for page in reader.pages)
    assert "<b>" in text
    assert "lost & gone" in text
    assert "no picture" in text


def test_pages_of_chance_are_bound_to_the_same_bytes() -> None:
    import vl_convert

    paper = Paper("foot")
    paper.text("plain", 12)
    paper.text("bold 中", 12, bold=True)
    (svg,) = paper.svgs()
    raw = [vl_convert.svg_to_pdf(svg) for _ in range(8)]
    made = {bound([page, page], "t") for page in raw}
    assert len(made) == 1
    assert len(PdfReader(io.BytesIO(made.pop())).pages) == 2


@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(30, 300))
def test_wrapped_lines_fit_and_lose_nothing(text: str, width: float) -> None:
    lines = wrapped(text, width, 9)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(measure(line, 9) <= width or len(line) == 1 for line in lines)


def test_a_table_goes_on_over_pages_with_its_head() -> None:
    rows = tuple((f"row {i}", i) for i in range(150))
    paper = Paper("foot")
    paper.table(Sheet("t", "Long", (Column("a", "alpha"), Column("b", "beta", "number")), rows))
    assert len(paper.pages) > 2
    assert all(any(">alpha<" in part for part in page) for page in paper.pages)
    assert sum(">row " in part for page in paper.pages for part in page) == 150


def test_the_widest_table_stays_on_its_page(material: Material) -> None:
    paper = Paper("foot")
    names = [f"a rather long editor name {i}" for i in range(12)]
    columns = (Column("g", "g"), *(Column(n, n, "estimate") for n in names))
    paper.table(Sheet("w", "Wide", columns, (("x", *(Estimate(0.5, 0.4, 0.6) for _ in names)),)))
    svg = "".join(paper.svgs())
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)"', svg)]
    assert max(places) <= INNER + 40


def test_names_of_editors_are_in_every_format(material: Material) -> None:
    names = {editor for editor, _ in EDITORS}
    assert {s.editor for s in material.findings.standings} == names


def test_a_drift_that_is_all_rest_is_left_out_and_the_papers_say_why(tmp_path: Path) -> None:
    kept = [f for f in rich().findings if not f.kind.startswith("drift") or f.group == "rest"]
    bare = plain_material(rich().model_copy(update={"findings": tuple(kept)}))
    sheets = tables_of(bare)
    assert "drift" in [sheet.name for sheet in tables_of(plain_material(rich()))]
    assert "drift" not in [sheet.name for sheet in sheets]
    why = "No decomposition of the drift"
    text = " ".join(
        page.extract_text() for page in PdfReader(io.BytesIO(report_pdf(bare, sheets))).pages
    )
    assert why in " ".join(text.split())
    assert "What the drift is made of" not in text
    write_exports(tmp_path, bare, ["latex"])
    assert not (tmp_path / "latex" / "drift.tex").exists()
    assert why in (tmp_path / "latex" / "standalone.tex").read_text()
