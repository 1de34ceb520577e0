"""A whole study in one command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import SettingsError, UnknownName
from convergebench.presets import open_preset
from convergebench.runner import run
from convergebench.studies import study

COMMAND = (sys.executable, "-m", "convergebench", "study")


def test_nothing_is_spent_that_nobody_has_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    with pytest.raises(SettingsError, match=r"1,200 calls will cost about \$\d+\.\d\d.*--budget"):
        study(
            tmp_path / "run",
            "banana100/small",
            editors=["gemini:gemini-3-pro-image"],
            size=64,
            controls=False,
        )
    with pytest.raises(SettingsError, match="1,200 calls will cost"):  # the controls are free
        study(tmp_path / "run", "banana100/small", editors=["gemini:gemini-3-pro-image"], size=64)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("test_plugin")
def test_an_editor_of_unknown_price_is_run_first_and_studied_then(tmp_path: Path) -> None:
    path, editor = tmp_path / "run", "scripted,price=unknown"
    wish: dict[str, Any] = {"sources": ["kokoro"], "steps": 1, "size": 32, "repeats": 1}
    for budget in (None, 5.0):
        with pytest.raises(SettingsError, match=f"the price of {editor} is unknown, so"):
            study(path, "banana100/small", editors=[editor], budget=budget, **wish)
    assert not path.exists()
    run(path, {**open_preset("banana100/small").table, "editors": [editor]}, **wish)
    done = study(path, "banana100/small", editors=[editor], **wish).report
    assert done is not None
    assert done.path.is_file()


def test_a_preset_without_editors_wants_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no editor to study: name one with --editor"):
        study(tmp_path / "run", "banana100/small")
    with pytest.raises(UnknownName, match="banana100/smoke"):
        study(tmp_path / "run", "banana100/smokee")


def test_editors_that_cannot_be_called_are_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = study(
        tmp_path / "run", "banana100/offline", sources=["kokoro"], steps=1, size=32, repeats=1
    )
    assert any(note.startswith("Left out: taef2. ") for note in found.notes)
    assert found.trial is None  # one step is no trial
    assert "taef2" in str(found)


def test_ctrl_c_while_chains_are_walked_ends_the_study(tmp_path: Path) -> None:
    run = tmp_path / "run"
    slow = ["--editor", "ref:flaky,rate=0,wait=0.4", "--source", "kokoro", "--size", "32"]
    process = subprocess.Popen(
        [*COMMAND, "banana100/smoke", str(run), *slow],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not list(run.glob("chains/*/*flaky*.jsonl")) and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "Stopped: interrupted." in out
    assert f"Go on with: convergebench run {run}" in out
    assert not list(run.glob("scores/*.parquet"))
    assert not (run / "report").exists()


@pytest.mark.slow
def test_one_command_makes_every_page_and_resumes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    told = {**os.environ, "COLUMNS": "200"}
    arguments = ["banana100/smoke", str(run), "--source", "kokoro", "--size", "96", "--json"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=told)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    pages = run / "report"
    index = (pages / "index.html").read_text()
    for page in ("trial.html", "failures.html", "self-evaluation.html"):
        assert (pages / page).is_file()
        assert f'href="{page}"' in index
    cards = {card["metric"]: card for card in found["trial"]["cards"]}
    # Noise is what ref:banana adds: the estimate of noise notices, the Laplacian takes it for
    # sharpness.
    assert cards["sharpness"]["failures_by_arm"]["ref:banana,reasoning=yes · replicate"] == 1
    assert cards["noise"]["failures_by_arm"]["ref:banana,reasoning=yes · replicate"] == 0
    again = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=told)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["trial"] == found["trial"]


def test_a_restoration_study_is_told_by_its_methods(tmp_path: Path) -> None:
    done = study(
        tmp_path / "run",
        "restoration-v1/smoke",
        sources=["page-defocus", "cloth-digital-zoom", "crowd-surveillance"],
        size=48,
    )
    assert done.run.complete
    assert done.trial is None
    assert done.restoration is not None
    assert [sheet.of for sheet in done.restoration.prompts] == ["ref:restorer"]
    assert done.report is not None
    assert done.table.columns[0] == done.report.table.columns[0] == "method"
    assert (done.report.path.parent / "restoration.html").is_file()
    assert not (tmp_path / "run" / "failures").exists()
    page = done.report.path.read_text("utf-8")
    assert "3 damaged pictures (2 of them with a ground truth)" in page
    assert "walked the same source pictures" not in page
