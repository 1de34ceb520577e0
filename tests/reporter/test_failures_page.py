"""The page of failures: every rate is on it, evidence is shown, and nothing gets out of a name."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.errors import StoreError
from convergebench.failures import DETECTORS, Failures
from convergebench.failures.result import ROW_COLUMNS
from convergebench.reporter.failures import write_failures
from convergebench.reporter.failures.rates import Cell
from convergebench.runner import run
from convergebench.store import RunStore
from tests.support.runs import write_suite

EVIL = """<script>document.title="owned"</script> "quoted" & {{ 7 * 7 }}"""
CYCLES = """
[[cycle]]
name = "copy"
kind = "replicate"
[[cycle.edit]]
prompt = "Copy the picture."

[[cycle]]
name = "mirror"
kind = "mirror"
[[cycle.edit]]
prompt = "Mirror the picture."
operation = { kind = "flip", axis = "horizontal" }
"""
NAMES = ("colour-cast", "mirror-failure", "simplification", "counting-failure", "fixed-point")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failing")
    suite = write_suite(folder / "suite", cycles=CYCLES)
    editors = ["ref:noise,sigma=9", "ref:blur", "ref:identity"]
    table = {"suite": str(suite), "editors": editors, "steps": 6, "controls": False}
    run(folder / "failing-run", table)
    return folder / "failing-run"


def seen(path: Path, **more: Any) -> Failures:
    """What detectors might have seen in the run: noise fails from step 3, blur never."""
    detectors = tuple(d for d in DETECTORS if d.name in NAMES)
    rows = []
    for chain in RunStore.open(path).chains():
        key = chain.key
        for detector in detectors[:-1]:
            if detector.name == "mirror-failure" and not key.cycle.startswith("mirror"):
                continue
            for step in range(1, 7):
                failed = "noise" in key.editor and step >= 3
                value: float | None = detector.threshold + (step if failed else -0.1)
                box = (0.25, 0.5, 0.75, 1.0) if failed else (None,) * 4
                detail = f"seen at {step} {EVIL}"
                if detector.name == "colour-cast" and step == 6 and "blur" in key.editor:
                    value, failed, detail = None, None, "too flat"  # type: ignore[assignment]
                head = (key.id, key.editor, key.source, key.cycle, key.settings.label, key.repeat)
                told = (step, detector.name, detector.version, detector.level)
                rows.append((*head, *told, value, failed, detail, *box, None))
    schema = {name: getattr(pl, kind)() for name, kind in ROW_COLUMNS.items()}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame = frame.with_columns(control=pl.col("editor") == "ref:identity")
    left = {detectors[-1].name: f"nothing to see {EVIL}"}
    return Failures(path, frame, detectors, left_out=left, **more)


class Reader(HTMLParser):
    """Collects what a page links, shows and says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.tags.append((tag, told))
        self.links += [told[name] for name in ("href", "src") if name in told]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def classed(self, name: str) -> list[dict[str, str]]:
        return [told for _, told in self.tags if name in told.get("class", "").split()]


@pytest.fixture(scope="module")
def page(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reader]:
    path = write_failures(seen(stored), tmp_path_factory.mktemp("pages") / "out")
    return path, Reader(path.read_text("utf-8"))


def test_every_rate_is_on_the_page_and_in_the_file(stored: Path, page: tuple[Path, Reader]) -> None:
    path, read = page
    told = json.loads((path.parent / "failures.json").read_text("utf-8"))
    assert told["path"] == "failing-run"
    assert told["rates"] == seen(stored).rates.to_dicts()
    for row in told["rates"]:
        # where nothing could be measured there is a dash, and no rate
        assert not row["frames"] or f"{row['failed']}/{row['frames']}" in read.text
    # noise, steps 2 to 5, of two sources and two cycles: 3 of 4 steps failed
    assert "75 % 12/16" in read.text
    assert "33 % of frames" in read.text  # of the models only: 4 of 6 steps of one in two


def test_what_is_known_of_a_detector_stands_beside_its_rates(page: tuple[Path, Reader]) -> None:
    _, read = page
    assert "depends on the judge: not rated" in read.text
    for detector in DETECTORS:
        if detector.name in NAMES:
            assert detector.title in read.text
            assert detector.definition in read.text
            assert f"{detector.name}@{detector.version}" in read.text
    assert "on no frame here: nothing to see" in read.text


def test_measured_error_rates_are_shown(stored: Path, tmp_path: Path) -> None:
    found = seen(stored)
    rates = found.error_rates
    read = Reader(write_failures(found, tmp_path / "out").read_text("utf-8"))
    for name, rate in rates.items():
        if name != found.detectors[-1].name:  # which applies to no frame of this run
            assert f"(n = {rate.positives} + {rate.negatives})" in read.text
    unrated = [d for d in found.detectors if d.name not in rates and not d.judged]
    lines = [d for d in unrated if d.name != found.detectors[-1].name]
    assert read.text.count("not rated yet") == len(lines)


def test_all_that_is_linked_is_there_and_nothing_is_far(page: tuple[Path, Reader]) -> None:
    path, read = page
    ids = {told["id"] for _, told in read.tags if "id" in told}
    for link in read.links:
        assert not re.match(r"[a-z]+:|//", link) or link == "data:,"
        if link.startswith("#"):
            assert link[1:] in ids
        elif link != "data:,":
            assert (path.parent / link).is_file(), link


def test_the_gallery_shows_frames_beside_home_with_a_box(page: tuple[Path, Reader]) -> None:
    _, read = page
    boxes = read.classed("box")
    assert boxes
    assert {box["style"] for box in boxes} == {
        "left: 25.00%; top: 50.00%; width: 50.00%; height: 50.00%"
    }
    assert "first to fail" in read.text
    assert "worst" in read.text
    assert any("scaleX(-1)" in told["style"] for told in read.classed("as-home"))
    # of each of four detectors the first and two of the worst, all of the one editor
    assert len([1 for tag, told in read.tags if tag == "li" and "data-of" in told]) == 4 * 3


def test_names_and_words_cannot_leave_their_place(page: tuple[Path, Reader]) -> None:
    path, read = page
    assert [told["src"] for tag, told in read.tags if tag == "script"] == ["static/failures.js"]
    assert "{{ 7 * 7 }}" in read.text
    assert "<script>document" not in path.read_text("utf-8")


def test_what_was_not_measured_is_counted(page: tuple[Path, Reader]) -> None:
    _, read = page
    assert "4 × colour-cast: too flat" in read.text


def test_in_a_report_cases_lead_to_the_chain(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    (folder / "static").mkdir(parents=True)
    for name in ("static/report.css", "index.html", "source-s0.html"):
        (folder / name).write_text("")
    read = Reader(write_failures(seen(stored), folder).read_text("utf-8"))
    leads = [link for link in read.links if link.startswith("source-")]
    assert leads
    chains = {chain.key.id for chain in RunStore.open(stored).chains()}
    for link in leads:
        place, _, where = link.partition("#")
        assert place == "source-s0.html"
        assert where.split("/")[0] in chains
    assert "index.html" in read.links


def test_in_the_run_it_leads_to_the_report_beside_it(stored: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(stored, own)
    (own / "report").mkdir()
    for name in ("index.html", "source-s1.html"):
        (own / "report" / name).write_text("")
    (own / "failures").mkdir()
    (own / "failures" / "rows.parquet").write_bytes(b"")
    read = Reader(write_failures(seen(own), own / "failures").read_text("utf-8"))
    assert "../report/index.html" in read.links
    assert any(link.startswith("../report/source-s1.html#") for link in read.links)


def test_a_second_build_writes_nothing_anew(stored: Path, tmp_path: Path) -> None:
    found = seen(stored)
    write_failures(found, tmp_path / "out")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*") if p.is_file()}
    write_failures(found, tmp_path / "out")
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_a_strange_folder_is_left_alone(stored: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match=r"holds no pages of ConvergeBench"):
        write_failures(seen(stored), tmp_path)
    with pytest.raises(StoreError, match="is a file, and a folder is needed"):
        write_failures(seen(stored), tmp_path / "letter.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_a_run_in_which_nothing_was_seen_has_a_page_all_the_same(
    stored: Path, tmp_path: Path
) -> None:
    found = seen(stored)
    found.rows = found.rows.clear()
    read = Reader(write_failures(found, tmp_path / "out").read_text("utf-8"))
    assert "0 frames of 0 chains" in read.text


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Cell(0, 0, 3), "–"),
        (Cell(0, 9), "0 %"),
        (Cell(1, 1000), "< 1 %"),
        (Cell(999, 1000), "> 99 %"),
        (Cell(7, 7), "100 %"),
        (Cell(1, 3), "33 %"),
    ],
)
def test_no_share_is_rounded_away(cell: Cell, words: str) -> None:
    assert cell.percent == words
