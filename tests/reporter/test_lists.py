"""Lists of chains name the repeat; a run that cannot be written to has a report all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from convergebench.chain import IMPORTED
from convergebench.errors import ConvergeBenchError, StoreError
from convergebench.reporter import report
from tests.analysis.several import Made
from tests.reporter.pages import read_page


@pytest.fixture
def repeated(tmp_path: Path) -> Path:
    """A run with two repeats of one chain, both refused in the end, and one other chain."""
    made = Made(tmp_path / "run")
    for repeat in (0, 1):
        made.walk("s0", "copy", "a", (0.9,), repeat=repeat, ended="refused")
    made.walk("s1", "copy", "a", (0.9,), ended="failed")
    return made.done()


def test_repeats_have_their_recorded_numbers_everywhere(repeated: Path) -> None:
    made = report(repeated)
    failures = read_page(made.path).one("failures")
    names = [row.all("a")[0].text for row in failures.all("tr") if row.all("a")]
    assert sorted(names) == ["s0, copy@1, repeat 0", "s0, copy@1, repeat 1", "s1, copy@1"]
    strips = read_page(made.path.parent / "source-s0.html").one("cycle-copy")
    assert [span.text for span in strips.all("span", "variant")] == ["repeat 0", "repeat 1"]
    other = read_page(made.path.parent / "source-s1.html").one("cycle-copy")
    assert not other.all("span", "variant")


def test_pages_that_go_elsewhere_need_no_writing_into_the_run(
    repeated: Path, tmp_path: Path
) -> None:
    (repeated / "findings.json").mkdir()  # stands for a disk that cannot be written to
    with pytest.raises(StoreError):
        report(repeated)
    made = report(repeated, out=tmp_path / "pages")
    note = "These findings are not in the run's own findings.json: "
    assert any(told.startswith(note) for told in made.findings.notes)
    assert note in read_page(made.path).one("leaderboard").text
    written = json.loads((tmp_path / "pages" / "findings.json").read_text())
    assert written["standings"][0]["editor"] == "a"


def test_an_interrupted_import_leaves_no_folder(tmp_path: Path) -> None:
    path = Made(tmp_path / "run", imported=True).done()
    with pytest.raises(ConvergeBenchError, match="its import was interrupted"):
        report(path)
    assert not (path / "report").exists()


def test_absent_frames_are_told_on_the_page(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", imported=True)
    made.walk("s0", "copy", "a", (0.9,), version=IMPORTED)
    page = read_page(report(made.done()).path)
    assert "2 of 2 frames are not on the disk" in page.one("leaderboard").text
