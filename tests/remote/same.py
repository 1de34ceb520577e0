"""What two runs must have in common, wherever they are and however often they were interrupted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from convergebench.archive.contents import digest_in
from convergebench.frame import sha256
from convergebench.store import RunStore
from tests.remote.conftest import Shelf

KEY = ["chain", "step", "metric", "version", "against", "where"]


def steps(place: str | Path) -> dict[str, Any]:
    """The chains, without the times."""
    return {
        chain.key.id: (chain.source, [step.timeless() for step in chain.steps])
        for chain in RunStore.open(place).chains()
    }


def stored_frames(shelf: Shelf) -> dict[str, bytes]:
    """The frames on the server, each as its name says."""
    names = shelf.names("run/frames/")
    found = {name: shelf.get(name) for name in names}
    assert all(digest_in(name) == sha256(data) for name, data in found.items())
    return found


def frames(path: Path) -> dict[str, bytes]:
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.glob("frames/??/*")}


def assert_same_run(shelf: Shelf, whole: Path) -> None:
    """The run on the server has the frames, the steps and the scores of one in a directory."""
    assert stored_frames(shelf) == frames(whole)
    assert steps(shelf.run) == steps(whole)
    here, there = (RunStore.open(p).scores().sort(KEY) for p in (whole, shelf.run))
    assert here.select(KEY).is_unique().all()
    assert_frame_equal(there.select(sorted(there.columns)), here.select(sorted(here.columns)))
    assert isinstance(here, pl.DataFrame)


def assert_tidy(shelf: Shelf) -> None:
    """Nothing is left on the server but the files of a run, each in one piece."""
    names = [n for n in shelf.names() if not n.startswith(("frames/", "status/"))]
    assert [n for n in names if "@" in n or n.startswith("locks/")] == []
    for name in names:
        assert re.fullmatch(r"[a-z]+\.jsonl?|chains/../[^/]+\.jsonl|[a-z]+/[^/]+\.parquet", name)
