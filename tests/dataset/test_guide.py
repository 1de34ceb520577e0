"""The guide's commands and its polars code run as they stand."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from convergebench.runner import run
from convergebench.scorer import score
from tests.support.runs import write_suite
from tests.test_cli import cb
from tests.test_docs import DOCS, blocks, execute

GUIDE = DOCS / "guides" / "dataset.md"


def test_guide_commands_and_code_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = write_suite(tmp_path / "suite", 1)
    wanted = {"suite": str(suite), "editors": ["ref:jpeg"], "steps": 2, "controls": False}
    run(tmp_path / "my-run", wanted)
    score(tmp_path / "my-run", ["psnr"])
    monkeypatch.chdir(tmp_path)
    for line in "\n".join(blocks(GUIDE, "console")).splitlines():
        done = cb(*shlex.split(line)[1:])
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "run.json").is_file()
    told = execute(GUIDE, tmp_path)
    assert "ref:jpeg" in told
    assert "score:psnr" in told
    for name in (p.name for p in (tmp_path / "my-dataset").iterdir()):
        assert name in GUIDE.read_text()
