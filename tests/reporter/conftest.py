"""One small real run with every kind of outcome, made once, and its report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.reporter import Report, report
from convergebench.runner import run
from convergebench.scorer import score
from tests.reporter.walked import walked_run
from tests.support.runs import write_suite

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = (
    """Night </script><script>document.title="owned"</script> & "day" 'dusk' <!-- {{ 7 * 7 }}"""
)
HOSTILE_BACK = "Undo <img src=x onerror=\"document.title='owned'\">"
CYCLES = f"""
[[cycle]]
name = "copy"
kind = "replicate"
description = "Copies <b>and</b> copies."
[[cycle.edit]]
prompt = "Copy the picture."

[[cycle]]
name = "hostile"
kind = "round-trip"
[[cycle.edit]]
prompt = '''{HOSTILE}'''
operation = {{ kind = "grey" }}
[[cycle.edit]]
prompt = '''{HOSTILE_BACK}'''
"""
EDITORS = (
    "ref:noise,sigma=20",
    "ref:blur",
    "ref:crop-first,crop=0.2,keep-size=no",
    "ref:refuser,rate=0.4",
    "ref:flaky,empty=0.15,fail=0.15,garbage=0.3,rate=0",
)


@pytest.fixture(scope="session")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scored run; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("reported")
    suite = write_suite(folder / "suite", 3, cycles=CYCLES, size=48)
    run(folder / "tiny-run", {"suite": str(suite), "editors": EDITORS, "rounds": 3, "retries": 0})
    score(folder / "tiny-run", ["psnr", "ssim", "ssim-rgb", "ssim-uniform"], workers=1)
    return folder / "tiny-run"


@pytest.fixture(scope="session")
def made_report(made_run: Path) -> Report:
    """The run's report in its usual place; read-only for tests."""
    return report(made_run)


@pytest.fixture
def own_run(made_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, without a report, to be changed at will."""
    copy = tmp_path / "own-run"
    shutil.copytree(made_run, copy, ignore=shutil.ignore_patterns("report"))
    return copy


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The viewer's run, with its report in the usual place; read-only for tests."""
    path = walked_run(tmp_path_factory.mktemp("walked"))
    report(path)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium, which asks for nothing by itself."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()
