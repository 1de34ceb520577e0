"""What a section says when its numbers are not there, and whether its command can be followed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from convergebench.analysis import Findings
from convergebench.analysis.roundtrip import analyze_gathered
from convergebench.gathering import Gathered, gather
from convergebench.reporter.absences import (
    REGION_EMPTY,
    REGION_UNNAMED,
    REGION_UNSCORED,
    absences,
)
from convergebench.runner import run
from convergebench.scorer import score
from tests.analysis.test_imported import only_scores
from tests.reporter.test_several import imported
from tests.support.runs import write_suite
from tests.test_cli import cb

TRIP = """
[[cycle]]
name = "hat"
kind = "round-trip"
[[cycle.edit]]
prompt = "Add a hat."
{region}
[[cycle.edit]]
prompt = "Take the hat away."
{region}
"""


def looked_at(path: Path) -> tuple[Findings, Gathered]:
    gathered = gather([path])
    return analyze_gathered(gathered, insist=False), gathered


def walked(place: Path, region: str = "", rounds: int = 1) -> Path:
    suite = write_suite(place / "suite", 2, cycles=TRIP.format(region=region), size=32)
    spec = {"suite": str(suite), "editors": ("ref:blur",), "rounds": rounds, "controls": False}
    run(place / "my run", spec)
    return place / "my run"


def test_an_import_is_not_told_to_run(tmp_path: Path) -> None:
    for path in (imported(tmp_path / "a", ["edited", "edited"]), only_scores(tmp_path / "b")):
        told = absences(*looked_at(path))
        assert "contraction" in told
        assert not [a for a in told.values() if " run " in a.command]


def test_nothing_can_be_scored_where_there_is_no_picture(tmp_path: Path) -> None:
    told = absences(*looked_at(only_scores(tmp_path / "run")))
    assert told
    assert not [a.command for a in told.values() if a.command]


def test_a_run_can_do_as_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = walked(tmp_path)
    score(path, ["psnr", "ssim"], workers=1)
    command = absences(*looked_at(path))["contraction"].command
    monkeypatch.chdir(tmp_path)
    name, *words = shlex.split(command)
    assert name == "convergebench"
    done = cb(*words)
    assert done.returncode == 0, done.stderr
    score(path, ["psnr", "ssim"], workers=1)
    told = absences(*looked_at(path))
    assert "contraction" not in told
    assert not [a for a in told.values() if " run " in a.command], "it has its ten rounds"


def test_a_region_that_nobody_named_is_not_one_that_is_not_scored(tmp_path: Path) -> None:
    plain = walked(tmp_path / "plain")
    score(plain, ["psnr", "ssim"], workers=1)
    told = absences(*looked_at(plain))["region"]
    assert (told.why, told.command) == (REGION_UNNAMED, "")
    named = walked(tmp_path / "named", "region = [0.2, 0.2, 0.6, 0.6]")
    score(named, ["ssim"], workers=1)
    told = absences(*looked_at(named))["region"]
    assert told.why == REGION_UNSCORED
    assert told.command == "convergebench score 'my run' --metrics round-trip"
    score(named, ["psnr"], workers=1)
    findings, gathered = looked_at(named)
    assert "region" not in absences(findings, gathered)
    bare = findings.model_copy(update={"findings": ()})
    assert absences(bare, gathered)["region"].why == REGION_EMPTY


def test_what_is_scored_is_not_asked_for_again(tmp_path: Path) -> None:
    path = walked(tmp_path)
    score(path, ["psnr"], workers=1)
    findings, gathered = looked_at(path)
    assert absences(findings, gathered)["drift"].command
    parts = ("psnr@1", "colour-offset@1", "detail-loss@1", "noise@1")
    scored = findings.model_copy(update={"metrics": parts})
    assert not absences(scored, gathered)["drift"].command
