"""The project's own promises: few public names, short files, no machine's address in the tree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import convergebench

ROOT = Path(__file__).resolve().parents[1]


def tracked() -> list[Path]:
    """The project's files: as git has them, or, without git, all but what tools leave behind."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        return [ROOT / name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        top = [p for p in ROOT.iterdir() if not p.name.startswith(".") and p.name != "demo-run"]
        found = [f for p in top for f in ([p] if p.is_file() else p.rglob("*"))]
        return [f for f in found if f.is_file() and "__pycache__" not in f.parts]


def test_public_names_are_sorted_and_importable() -> None:
    assert convergebench.__all__ == sorted(convergebench.__all__)
    for name in convergebench.__all__:
        assert callable(getattr(convergebench, name)), name


def test_no_python_file_is_over_400_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked()
        if path.suffix == ".py" and (lines := len(path.read_text().splitlines())) > 400
    }
    assert not long


def test_no_address_of_a_registry_or_path_of_a_machine_is_in_the_tree() -> None:
    bad = re.compile(
        rb"(^|[^a-z.])/(wor[k]|roo[t]|far[m])/|-index-ur[l]|://[a-z.]*(pyp[i]|pythonhoste[d]|npmj[s])\."
    )
    found = [p for p in tracked() if p.is_file() and bad.search(p.read_bytes())]
    assert not found


def test_change_log_has_an_unreleased_part() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text
