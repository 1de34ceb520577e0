"""A real run of repairs: its page beside the report, and what the first page leads with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from convergebench.reporter import Report, report
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from tests.reporter.pages import assert_links_resolve, read_page
from tests.reporter.test_restoration_page import numbers_of, shown_numbers
from tests.support.restorations import part_of_restoration

SOURCES = ("page-defocus", "large-face-defocus", "cloth-digital-zoom", "crowd-surveillance")


@pytest.fixture(scope="module")
def restored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scored run: four pictures, one of them without a truth, two prompts twice, a filter."""
    folder = tmp_path_factory.mktemp("repairs")
    path = folder / "repairs"
    run(
        path,
        {
            "suite": part_of_restoration(folder / "suite", *SOURCES),
            "cycles": ("s1", "sf2", "restore"),
            "editors": ("ref:restorer", "classic:unsharp"),
            "size": 96,
            "repeats": 2,
        },
    )
    score(path, ["psnr", "ssim", "niqe"], workers=1)
    return path


@pytest.fixture(scope="module")
def folder(restored_run: Path) -> Path:
    """Its report."""
    return report(restored_run).path.parent


def test_the_report_has_the_page_and_every_link_leads_somewhere(folder: Path) -> None:
    page = read_page(folder / "restoration.html")
    assert page.all("h1")[0].text == "repairs"
    assert page.all("nav")[0].all("a")[0].attributes["href"] == "index.html"
    labels = [th.text for th in page.one("overall").all("tbody")[0].all("th")]
    assert sorted(labels) == ["classic:unsharp", "ref:restorer · S1", "ref:restorer · SF2"]
    assert_links_resolve(folder)


def test_every_number_of_a_real_page_is_in_its_json(folder: Path) -> None:
    told = json.loads((folder / "restoration.json").read_bytes())
    shown = shown_numbers(read_page(folder / "restoration.html"), told)
    known = numbers_of(told)
    assert len(shown) > 200
    assert [number for number in shown if number not in known] == []


def test_every_output_of_the_run_is_in_the_slider(restored_run: Path, folder: Path) -> None:
    chains = [c for c in RunStore.open(restored_run).chains() if c.key.source == SOURCES[0]]
    scripts = [p.read_text("utf-8") for p in (folder / "data/restoration").glob("source-*.js")]
    (mine,) = [
        told
        for text in scripts
        if (told := json.loads(text.partition(",")[2].removesuffix(");\n")))
        and any(view["full"].endswith(_name(chains[0].source)) for view in told["views"])
    ]
    assert [view["key"] for view in mine["views"]][:2] == ["input", "truth"]
    outputs = [view for view in mine["views"] if view.get("method")]
    assert len(outputs) == len(chains)
    stored = {step.frame.sha256 for chain in chains for step in chain.steps if step.frame}
    assert {Path(view["full"]).stem for view in outputs} == stored
    assert {view["method"] for view in outputs} >= set(mine["scores"][0]["of"])


def _name(ref: object) -> str:
    return f"{getattr(ref, 'sha256', '')}.png"


def test_the_first_page_leads_with_the_repairs(folder: Path) -> None:
    page = read_page(folder / "index.html")
    first = page.one("summary").all("p")[0]
    assert first.all("a")[0].attributes["href"] == "restoration.html"
    assert first.text.startswith("Restoration : 4 damaged pictures (3 of them with a ground truth)")
    assert "No editor is ranked" not in page.one("summary").text
    (companions,) = page.all("ul", "companions")
    assert companions.text.startswith(
        "Restoration can it repair? prompts, stability, methods, what people say"
    )


def test_a_run_whose_repairs_have_no_scores_has_no_such_page(
    restored_run: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(restored_run, bare, ignore=shutil.ignore_patterns("report", "scores"))
    made = report(bare, partial=True)
    assert not (made.path.parent / "restoration.html").exists()


def test_other_runs_have_no_such_page_and_lead_with_their_summary(made_report: Report) -> None:
    folder = made_report.path.parent
    assert not (folder / "restoration.html").exists()
    assert "restoration.html" not in (folder / "index.html").read_text("utf-8")
