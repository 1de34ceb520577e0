"""Fixtures of the weights' tests: a catalogue of one's own, an empty machine, a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from convergebench.weights import index, lookup, pulling, transfer
from convergebench.weights.entries import Catalogue
from tests.weights.entries_text import file_entry, set_entry
from tests.weights.hub_of_one import DATA, HUB, HUB_PATH, Use
from tests.weights.shelf import Shelf, serving


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without weights, without pip configuration, and without proxies."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "HF_", "TORCH_", "XDG_", "CONVERGEBENCH_WEIGHTS")):
            monkeypatch.delenv(name)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(transfer, "TIMEOUT", 1.0)
    index._built_in.cache_clear()
    return tmp_path


@pytest.fixture
def shelf(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """A package index on this machine, and the one that pip is told to use."""
    with serving() as found:
        monkeypatch.setenv("PIP_INDEX_URL", found.index)
        monkeypatch.setenv("HF_ENDPOINT", f"{found.address}/hub")
        yield found


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Make a catalogue, given as TOML, the one that everything sees."""

    def put(text: str) -> Catalogue:
        made = Catalogue.parse(text)
        for module in (lookup, pulling):
            monkeypatch.setattr(module, "catalogue", lambda: made)
        monkeypatch.setattr("convergebench.weights.catalogue", lambda: made)
        return made

    return put


@pytest.fixture
def hub(shelf: Shelf, use: Use) -> Shelf:
    """One set of one file on the model hub."""
    shelf.files[HUB_PATH] = DATA
    use(set_entry("h", file_entry("w.bin", DATA, HUB)))
    return shelf
