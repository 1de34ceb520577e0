"""The guide's commands are run as they stand there, and its figures are the paper's."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.restoration.tables import PAPER, written
from tests.test_docs import DOCS, blocks

PAGE = DOCS / "guides" / "restoration-analysis.md"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guides_commands_work_in_order(tmp_path: Path) -> None:
    written(
        tmp_path / "table2.csv", ["Group", "Prompt", *PAPER["metrics"]], PAPER["table2"]["rows"]
    )
    said = []
    for command in (line for block in blocks(PAGE, "console") for line in block.splitlines()):
        words = shlex.split(command)
        assert words[0] == "convergebench"
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        said.append(done.stdout)
    assert "prompts of ref:restorer" in said[2]
    assert (tmp_path / "tables" / "scenes.tex").is_file()
    assert "22.517" in said[-1]


def test_what_the_guide_says_of_length_is_what_the_paper_prints() -> None:
    long, short = (PAPER["table2"]["averages"][name] for name in ("L + LF", "S + SF"))
    apart = ", ".join(f"{abs(a - b):.3f}" for a, b in zip(long, short, strict=True)).replace(
        "0.069", "0.069 dB"
    )
    head, _, last = apart.rpartition(", ")
    assert f"{head} and {last}" in " ".join(PAGE.read_text("utf-8").split())
