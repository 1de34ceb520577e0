"""The page on the real curves of six models: every printed line is found again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from convergebench.analysis import analyze
from convergebench.analysis.tables import Analysis
from convergebench.importer import import_run

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "roundtrip-6-models.md"
FLOORS = {"psnr": 7.6, "ssim": 0.29}
KODAK = {"psnr": 10.4, "ssim": 0.25}


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """The lines of the page's grey boxes that are no commands."""
    boxes = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = [line for box in boxes for line in box.splitlines()]
    assert len(lines) > 60
    return lines


def analysed(table: Path, run: Path, **told: Any) -> Analysis:
    import_run(table, run, conflicts="repeat", **told)
    return Analysis(analyze(run))


@pytest.mark.shared
def test_every_line_that_the_page_shows_is_printed(
    shared: Path, tmp_path: Path, printed: list[str]
) -> None:
    table = shared / "data" / "curves" / "roundtrip-6-models.csv"
    lines = table.read_text().splitlines()
    five, two = tmp_path / "five.csv", tmp_path / "two.csv"
    five.write_text("\n".join(row for row in lines if not row.startswith("seedream")) + "\n")
    some = ("model,", "grok,", "nano_banana,")
    two.write_text("\n".join(row for row in lines if row.startswith(some)) + "\n")
    found = {
        "curves": analysed(table, tmp_path / "curves"),
        "six": analysed(table, tmp_path / "six", floors=FLOORS),
        "five": analysed(five, tmp_path / "five", floors=FLOORS),
        "two": analysed(two, tmp_path / "two", floors=FLOORS),
        "kodak": analysed(five, tmp_path / "kodak", floors=KODAK),
    }
    known = {line for analysis in found.values() for line in str(analysis).splitlines()}
    assert [line for line in printed if line not in known] == []

    # What the page says of the five in words.
    board, kodak = found["five"].findings.standings, found["kodak"].findings.standings
    assert [s.editor for s in board] == [s.editor for s in kodak]
    assert {s.place for s in (*board, *kodak)} == {"1–5"}
    lower = [(a.score or 0) - (b.score or 0) for a, b in zip(board, kodak, strict=True)]
    assert min(lower) == pytest.approx(0.04, abs=0.005)
    assert max(lower) == pytest.approx(0.06, abs=0.005)
    pairs = {(f.editor, f.other): f for f in found["five"].findings.findings if f.kind == "pair"}
    for better in ("nano_banana", "grok"):
        pair = pairs[better, "flux"]
        assert "alone p 0.03125" in pair.note, "the same sign on all six photographs"
        assert pair.low is not None
        assert pair.low > 0
        assert pair.p is not None
        assert pair.p > 0.05
