"""Code of the user's own under the commands: what it prints, and how it may end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "convergebench", *words]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


MINE = """
import sys, time
print("imported")
def talks(image, prompt, seed):
    print("edited")
    return image
def sleeps(image, prompt, seed):
    time.sleep(30)
def leaves(image, prompt, seed):
    sys.exit(3)
"""


def test_code_of_the_users_own_neither_mixes_with_the_result_nor_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run("editors", "check", "python:mine:talks,price=0", "--json")
    assert json.loads(done.stdout)["outcome"] == "edited"
    assert "imported\n" in done.stderr
    assert "edited\n" in done.stderr
    slow = run("editors", "check", "python:mine:sleeps,price=0", "--timeout", "1", "--json")
    assert slow.returncode == 2
    assert json.loads(slow.stdout)["outcome"] == "lost"
    assert "no answer after 1 s" in slow.stderr
    left = run("editors", "check", "python:mine:leaves,price=0")
    assert left.returncode == 2
    assert "failed: SystemExit: 3 (mine.py, line 10)" in left.stderr
    words = ("--cycle", "replicate", "--source", "dunes", "--steps", "1", "--size", "64")
    editor = ("-e", "python:mine:talks,price=0", "--no-controls", "--json")
    walked = run("run", str(tmp_path / "run"), *editor, *words)
    assert json.loads(walked.stdout)["chains"] == 1
