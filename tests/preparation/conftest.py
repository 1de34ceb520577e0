"""A machine without files of suites, and a server that has them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from convergebench.weights import transfer
from tests.weights.shelf import Shelf, serving


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without files of suites; returns where they go."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("CONVERGEBENCH_DATA", "XDG_DATA_HOME"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(transfer, "TIMEOUT", 1.0)
    return tmp_path / "home/.local/share/convergebench/suites/far"


@pytest.fixture
def shelf(home: Path) -> Iterator[Shelf]:
    with serving() as found:
        yield found
