"""The report's folder: self-contained, escaped, idempotent, and careful with what is there."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from convergebench.errors import ConvergeBenchError, StoreError
from convergebench.reporter import Report, report
from convergebench.reporter.pictures import SIDE
from convergebench.runner import run
from convergebench.scorer import score
from tests.reporter.conftest import HOSTILE, HOSTILE_BACK
from tests.reporter.pages import assert_links_resolve, read_page
from tests.support.runs import write_suite

NAMESPACE = re.compile(rb"http://www\.w3\.org/(2000/svg|1999/xlink|2000/xmlns/?)")
VEGA = re.compile(
    rb"https://(vega\.github\.io/(schema|editor)/|github\.com/vega/vega-lite/issues/)"
)
ADDRESS = re.compile(rb"(https?|wss?|ftp):(\\?/){2}", re.IGNORECASE)


def pages(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.html"))


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.stat().st_ino)
        for p in folder.rglob("*")
        if p.is_file()
    }


# -- the folder -----------------------------------------------------------------------------------


def test_every_link_stays_in_the_folder_and_resolves(made_report: Report) -> None:
    assert_links_resolve(made_report.path.parent)


def test_a_moved_folder_needs_neither_the_run_nor_its_place(own_run: Path, tmp_path: Path) -> None:
    folder = report(own_run, out=tmp_path / "out" / "pages").path.parent
    moved = tmp_path / "else where"
    shutil.move(folder, moved)
    shutil.rmtree(own_run)
    assert_links_resolve(moved)


def test_no_address_is_in_any_file(made_report: Report) -> None:
    for path in made_report.path.parent.rglob("*"):
        if path.suffix in (".html", ".css", ".js", ".json", ".svg", ".txt"):
            data = NAMESPACE.sub(b"", path.read_bytes())
            if path.name == "vega.js":
                data = VEGA.sub(b"", data)
            assert not ADDRESS.search(data), path.name


def test_what_came_from_outside_is_shown_as_text(made_report: Report) -> None:
    for path in pages(made_report.path.parent):
        page = read_page(path)
        scripts = [s.attributes for s in page.all("script")]
        assert all(s.get("src") or s.get("type") == "application/json" for s in scripts)
        assert not [n for e in page.all() for n in e.attributes if n.startswith("on")]
        assert not page.all("b") or all(b.text.isdigit() for b in page.all("b"))
    page = read_page(made_report.path.parent / "source-s0.html")
    assert [q.raw for q in page.one("cycle-hostile").all("q")] == [HOSTILE, HOSTILE_BACK]
    assert "Copies <b>and</b> copies." in page.text


def test_json_in_a_page_cannot_end_its_element(made_report: Report) -> None:
    text = made_report.path.read_text()
    start = text.index('id="chart-data">') + len('id="chart-data">')
    data = text[start : text.index("</script>", start)]
    assert "\\u003e" in data  # there is something to escape
    assert not re.search(r"[<>&]", data)


def test_a_second_report_rewrites_nothing(own_run: Path) -> None:
    folder = report(own_run).path.parent
    before = files(folder)
    assert any(name.startswith("thumbs") for name in before)
    report(own_run)
    assert files(folder) == before


def test_a_thumbnail_cut_short_is_made_again(own_run: Path) -> None:
    folder = report(own_run).path.parent
    before = files(folder)
    thumb = next((folder / "thumbs").glob("*/*.webp"))
    whole = thumb.read_bytes()
    thumb.write_bytes(whole[:-7])
    report(own_run)
    assert thumb.read_bytes() == whole
    changed = {name for name, facts in files(folder).items() if facts != before[name]}
    assert changed == {str(thumb.relative_to(folder))}


def test_only_new_frames_get_new_thumbnails(own_run: Path) -> None:
    folder = report(own_run).path.parent
    before = files(folder / "thumbs")
    run(own_run, rounds=4)
    score(own_run, workers=1)
    report(own_run)
    after = files(folder / "thumbs")
    assert len(after) > len(before)
    assert {name: after[name] for name in before} == before


def test_full_frames_are_hard_links(made_report: Report, made_run: Path) -> None:
    linked = {p.name: p.stat().st_ino for p in (made_report.path.parent / "frames").glob("*/*")}
    stored = {p.name: p.stat().st_ino for p in (made_run / "frames").glob("[0-9a-f][0-9a-f]/*")}
    assert linked == stored


def test_full_frames_are_copied_where_links_cannot_be(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: Any, target: Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    folder = report(own_run, out=tmp_path / "pages").path.parent
    stored = {p.name: p.read_bytes() for p in (own_run / "frames").glob("[0-9a-f][0-9a-f]/*")}
    copied = list((folder / "frames").glob("*/*"))
    assert {p.name: p.read_bytes() for p in copied} == stored
    assert all(p.stat().st_nlink == 1 for p in copied)
    assert_links_resolve(folder)


def test_thumbnails_are_small_webp(made_report: Report) -> None:
    for thumb in (made_report.path.parent / "thumbs").glob("*/*"):
        with Image.open(thumb) as image:
            assert image.format == "WEBP"
            assert max(image.size) <= SIDE


# -- refusals and odd runs ------------------------------------------------------------------------


def test_a_folder_with_something_else_is_left_alone(own_run: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "index.html").write_text("mine")
    with pytest.raises(StoreError, match=r"is not a report\. Choose another folder"):
        report(own_run, out=taken)
    assert [p.name for p in taken.iterdir()] == ["index.html"]
    with pytest.raises(StoreError, match="is not a report"):
        report(own_run, out=own_run)
    with pytest.raises(StoreError, match="is not a report"):
        report(own_run, out=taken / "index.html")


def test_the_report_of_another_run_is_left_alone(own_run: Path, tmp_path: Path) -> None:
    folder = report(own_run, out=tmp_path / "pages").path.parent
    told = json.loads((own_run / "run.json").read_text())
    (own_run / "run.json").write_text(json.dumps({**told, "created": "2001-01-01T00:00:00Z"}))
    with pytest.raises(StoreError, match="holds the report of another run"):
        report(own_run, out=folder)


def test_a_run_without_scores_is_an_error(own_run: Path) -> None:
    shutil.rmtree(own_run / "scores")
    with pytest.raises(ConvergeBenchError, match="has no scores yet"):
        report(own_run)
    assert not (own_run / "report").exists()


def test_one_source_has_no_floor_and_still_a_report(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 1)
    run(tmp_path / "run", {"suite": str(suite), "editors": ["ref:blur"], "rounds": 2})
    score(tmp_path / "run", workers=1)
    page = read_page(report(tmp_path / "run").path)
    assert "a floor needs two sources" in page.one("numbers").text
    assert not [e for e in page.all("div", "chart") if e.attributes["id"].startswith("conv")]
    assert [e for e in page.all("div", "chart") if e.attributes["id"].startswith("value")]


def test_the_result_shows_itself(made_report: Report) -> None:
    text = str(made_report)
    assert text.startswith("Leaderboard of tiny-run (suite tiny@1)")
    assert text.endswith(f"Report: {made_report.path}")
    assert "<table>" in made_report._repr_html_()
    told = made_report.to_dict()
    assert told["path"] == str(made_report.path)
    assert json.loads(json.dumps(told))["findings"]["run"] == "tiny-run"


def test_progress_counts_every_picture(own_run: Path) -> None:
    seen: list[tuple[int, int]] = []
    report(own_run, observe=lambda done, total: seen.append((done, total)))
    stored = len(list((own_run / "frames").glob("[0-9a-f][0-9a-f]/*")))
    assert seen == [(done, stored) for done in range(1, stored + 1)]
