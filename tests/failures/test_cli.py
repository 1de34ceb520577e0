"""`convergebench failures`, as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from convergebench import failures
from convergebench.cli import app
from convergebench.failures.finding import ROWS
from tests.failures.test_framework import made


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("failures"), steps=2)


def called(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "convergebench", "failures", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )


def test_it_prints_rates_by_editor_and_writes_rows_and_page(small: Path) -> None:
    done = called(str(small))
    assert done.returncode == 0, done.stderr
    head = done.stdout.splitlines()[1]
    assert [word for word in ("detector", "editor", "step 1", "step 2–5", "all") if word in head]
    assert "ref:noise,sigma=12" in done.stdout
    assert "counting-failure" in done.stdout  # left out, with the reason
    assert (small / ROWS).is_file()
    assert (small / "failures" / "failures.html").is_file()
    assert f"page: {small}" in done.stderr


def test_json_holds_rates_and_the_cards_of_the_detectors(small: Path, tmp_path: Path) -> None:
    words = ("--detector", "colour-cast", "--steps", "2", "--out", str(tmp_path / "page"), "--json")
    done = called(str(small), *words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [card["name"] for card in told["detectors"]] == ["colour-cast"]
    assert {row["band"] for row in told["rates"]} == {"2–5"}
    assert sum(row["frames"] for row in told["rates"]) == 12
    assert (tmp_path / "page" / "failures.html").is_file()


def test_the_list_has_every_detector_with_threshold_and_definition() -> None:
    done = CliRunner().invoke(app, ["failures", "--list"])
    assert done.exit_code == 0
    for detector in failures.DETECTORS:
        assert f"{detector.name}: {detector.definition}" in done.stdout
        assert detector.rule in done.stdout
    told = json.loads(CliRunner().invoke(app, ["failures", "--list", "--json"]).stdout)
    assert [card["name"] for card in told["detectors"]] == [d.name for d in failures.DETECTORS]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "which run? Expected a run directory"),
        (("nowhere",), "nowhere is not a run directory"),
        (("RUN", "--detector", "corp"), "no detector called 'corp'. Did you mean crop?"),
        (("RUN", "--steps", "many"), "--steps takes numbers and ranges"),
        (("RUN", "--steps", "77"), "no chain has step 77; the longest has 2"),
        (("RUN", "--budget", "3"), "--budget is for the judge's calls"),
        (("RUN", "--judge", "nobody:none"), "nobody:none"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    small: Path, words: tuple[str, ...], told: str
) -> None:
    done = called(*(str(small) if word == "RUN" else word for word in words))
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from convergebench.cli import app;"
        "assert CliRunner().invoke(app, ['failures', '--help']).exit_code == 0;"
        "print([m for m in ('cv2', 'polars', 'numpy', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
