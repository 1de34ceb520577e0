"""Out again: from a run and its record all that was imported can be had back, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convergebench
from convergebench.store import RunStore
from tests.importer.test_import import bring, contents, tree, write_tree


def restored(run: Path) -> dict[str, bytes]:
    """The imported files by their own names, from what the run has and records."""
    stored = {p.name.partition(".")[0]: p for p in (run / "frames").glob("??/*")}
    found: dict[str, bytes] = {}
    for record in (run / "imports").iterdir():
        for line in record.read_text().splitlines()[1:]:
            told = json.loads(line)
            found[told["file"]] = stored[told["sha256"]].read_bytes()
    return found


def lasting(run: Path) -> dict[str, bytes]:
    """Every file of a run but for what says when it was made."""
    timed = ("run.json", "sessions.jsonl")
    return {
        name: data
        for name, data in contents(run).items()
        if not name.startswith(timed) and not name.startswith("imports/")
    }


@settings(max_examples=12, deadline=None)
@given(
    gone=st.sets(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)), max_size=8),
    torn=st.booleans(),
)
def test_out_and_in_and_out_again_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, gone: set[tuple[int, int, int]], torn: bool
) -> None:
    place = tmp_path_factory.mktemp("back")
    names = {f"e{e}/s{s}/step_{k}.png" for e, s, k in gone}
    files = {name: data for name, data in tree(2, 2, 3).items() if name not in names}
    if torn:
        files["e0/s0/step_3.png"] = b"no picture at all"
    bring(write_tree(place / "in", files), place / "run", origin="x")
    assert restored(place / "run") == files
    bring(write_tree(place / "again", restored(place / "run")), place / "second", origin="x")
    assert lasting(place / "second") == lasting(place / "run")
    # As one file: out, in, and out again.
    convergebench.bundle(place / "run", place / "a.zip")
    convergebench.unbundle(place / "a.zip", place / "third")
    convergebench.bundle(place / "third", place / "b.zip")
    assert (place / "a.zip").read_bytes() == (place / "b.zip").read_bytes()
    assert len(RunStore.open(place / "third").chains()) == len(
        RunStore.open(place / "run").chains()
    )
