"""A hub that has one file, and what pulling it leaves behind."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from convergebench.errors import MetricUnavailable
from convergebench.weights.entries import Catalogue
from convergebench.weights.pulling import pull

DATA = random.Random(1).randbytes(300_000)
HUB = {"hub": "owner/repo", "file": "w.bin", "revision": "abc"}
HUB_PATH = "/hub/owner/repo/resolve/abc/w.bin"
Use = Callable[[str], Catalogue]


def files(folder: Path) -> set[str]:
    """Files below a folder."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def failing(names: list[str], told: str, folder: Path | None = None) -> None:
    """Pull, and expect to be told that."""
    with pytest.raises(MetricUnavailable, match=told):
        pull(names, folder)
