"""`convergebench restoration`, as a user types it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from convergebench.restoration.tables import TABLES
from tests.restoration.tables import PAPER, written
from tests.restoration.trees import scored_tree
from tests.support.commands import Command

command = Command("restoration")
invoke, told, wrong = command.invoke, command.told, command.wrong


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scored_tree(tmp_path_factory.mktemp("restoration"))


def test_every_table_is_printed_one_below_the_other(run: Path) -> None:
    text = told(run)
    parts = (
        "run: all pictures", "run: prompts of banana", "run: what the wording does",
        "run: stability over repeats", "run: by scene",
    )  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "specialist" in text
    assert "¹ best, ² second" in text


def test_one_table_is_printed_where_one_is_asked_for(run: Path) -> None:
    text = told(run, "--table", "prompts")
    assert "prompts of banana" in text
    assert "stability" not in text
    for name in TABLES:
        assert told(run, "-t", name)


def test_json_has_everything(run: Path) -> None:
    found = json.loads(told(run, "--json", "-m", "psnr"))
    assert [m["name"] for m in found["measures"]] == ["psnr"]
    assert found["overall"]["rows"][0]["cells"]["psnr"]["n"] == 4
    assert {"prompts", "effects", "stability", "scenes", "tradeoff", "cases", "notes"} <= set(found)
    assert all("significant" in test for test in found["stability"])


def test_tables_are_written_as_csv_and_latex(run: Path, tmp_path: Path) -> None:
    told(run, "--csv", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {
        "restoration.json", "prompts.csv", "overall.csv", "scenes.csv", "effects.csv",
        "stability.csv", "scores.csv", "prompts.tex", "overall.tex", "scenes.tex", "stability.tex",
    } <= names  # fmt: skip
    with (tmp_path / "out" / "scenes.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {r["PSNR"] for r in rows if r["of"] == "Old Film"} == {"/"}
    latex = (tmp_path / "out" / "prompts.tex").read_text("utf-8")
    assert r"\toprule" in latex
    assert r"\textbf{" in latex
    assert r"\underline{" in latex
    assert latex.count(r"\begin{table*}") == 1
    for part in ("overall", "scenes", "stability"):
        text = (tmp_path / "out" / f"{part}.tex").read_text("utf-8")
        assert text.isascii()
        assert text.count("{") == text.count("}")


def test_a_name_that_is_a_formula_is_defused(tmp_path: Path) -> None:
    lines = [["=cmd|' /C calc'!A0", "x", -20], ["@sum", "x", 22]]
    table = written(tmp_path / "t.csv", ["method", "image", "PSNR"], lines)
    told(table, "--csv", tmp_path / "out")
    with (tmp_path / "out" / "overall.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["'=cmd|' /C calc'!A0", "'@sum"]
    assert [row["PSNR"] for row in rows] == ["-20.0", "22.0"]  # a number is a number


def test_the_papers_rows_give_its_averages(tmp_path: Path) -> None:
    table = written(
        tmp_path / "table2.csv", ["Group", "Prompt", *PAPER["metrics"]], PAPER["table2"]["rows"]
    )
    text = told(table)
    (line,) = [each for each in text.splitlines() if "Avg (L + LF)" in each]
    assert line.split()[-6:] == ["22.903", "0.667", "0.221", "68.663", "0.387", "0.670"]


def test_mistakes_are_told_in_a_sentence(run: Path, tmp_path: Path) -> None:
    assert "Did you mean stability?" in wrong(run, "-t", "stabilty")
    assert "no method called" in wrong(run, "--method", "sharpest")
    assert "Give --judge too" in wrong(run, "--budget", "1")
    assert "one run at a time" in wrong(run, run, "--judge", "endpoint:m")
    (tmp_path / "file").write_text("")
    assert "cannot be written" in wrong(run, "--csv", tmp_path / "file" / "out")


def test_a_mistake_ends_with_2_and_no_traceback(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "convergebench", "restoration", str(tmp_path / "none.csv")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("convergebench: ")
    assert "is not there" in done.stderr
    assert "Traceback" not in done.stderr
