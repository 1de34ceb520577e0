"""`convergebench analyze`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from convergebench.analysis import Findings, analyze
from convergebench.analysis.tables import Analysis, write_findings
from convergebench.cli import app
from convergebench.errors import SettingsError
from tests.analysis.handmade import HandMade


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = HandMade(tmp_path_factory.mktemp("analyze"), sources=9)
    for i in range(9):
        for editor, less in (("good", 0.0), ("bad", 0.3)):
            for repeat in (0, 1):
                c = 0.9 - less - i / 50 - repeat / 100
                made.walk(f"s{i}", "copy", editor, (c, c - 0.1), repeat=repeat)
            made.walk(f"s{i}", "ball", editor, (0.8 - less, 0.7 - less))
    made.floors()
    return made.done()


def told(*words: str) -> str:
    result = CliRunner().invoke(app, ["analyze", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_tables_say_who_is_better_and_how_sure_that_is(run: Path) -> None:
    text = told(str(run))
    for title in ("Leaderboard", "Pairs of editors", "Half-lives", "By edit", "By cycle",
                  "Variance of AUC", "Worst chains"):  # fmt: skip
        assert title in text
    assert "good above bad" in text
    assert "+0.300 [+0.300, +0.300]  0.004" in text
    assert "By session" not in text


def test_json_has_every_finding(run: Path) -> None:
    found = Findings.model_validate(json.loads(told(str(run), "--json")))
    assert found == analyze(run)


def test_threshold_and_rounds_are_passed_on(run: Path) -> None:
    found = Findings.model_validate(
        json.loads(told(str(run), "--json", "--threshold", "0.8", "--rounds", "1"))
    )
    assert (found.threshold, found.rounds) == (0.8, 1)
    analyze(run)


def test_findings_are_written_where_the_user_says(run: Path, tmp_path: Path) -> None:
    told(str(run), "--out", str(tmp_path / "f.json"))
    found = Findings.model_validate_json((tmp_path / "f.json").read_text())
    told(str(run), "--out", str(tmp_path / "f.csv"))
    table = pl.read_csv(tmp_path / "f.csv", infer_schema_length=None)
    assert table["id"].to_list() == [f.id for f in found.findings]


def test_files_that_cannot_be_written(run: Path, tmp_path: Path) -> None:
    found = analyze(run)
    with pytest.raises(SettingsError, match=r"as \.json or \.csv, got f\.xlsx"):
        write_findings(found, tmp_path / "f.xlsx")
    with pytest.raises(SettingsError, match="cannot be written"):
        write_findings(found, tmp_path / "nowhere" / "f.json")


def test_an_analysis_shows_itself_in_a_notebook(run: Path) -> None:
    page = Analysis(analyze(run))._repr_html_()
    assert page.count("<table>") == len(Analysis(analyze(run)).tables) > 5
