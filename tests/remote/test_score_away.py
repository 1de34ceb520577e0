"""A store that does not let workers read: no frame is to blame, so nothing is scored null."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.errors import EngineError, StoreError
from convergebench.failures import find
from convergebench.runner import run
from convergebench.scorer import ScoreProgress, score
from convergebench.store import RunStore
from tests.remote.conftest import Shelf
from tests.remote.objects import Asked, refusal
from tests.support.runs import write_suite


@pytest.mark.parametrize("what", ["denied", "away"])
def test_a_store_that_cannot_be_read_ends_the_command_and_gives_no_nulls(
    shelf: Shelf, tmp_path: Path, what: str
) -> None:
    table = {"suite": str(write_suite(tmp_path / "suite", size=48)), "editors": ["ref:noise"]}
    run(shelf.run, table, steps=3, controls=False)
    shelf.machine("b", patience=0.5)
    trouble = refusal(403, "ExpiredToken") if what == "denied" else "internal"

    def no_frames(asked: Asked) -> object:
        return trouble if asked.kind in ("GET", "HEAD") and "/frames/" in asked.key else None

    shelf.proxy.trouble = no_frames  # type: ignore[assignment]
    with pytest.raises(EngineError, match=r"a worker on \S+ cannot read the run: "):
        score(shelf.run, ["psnr", "noise"], workers=2)
    for workers in (1, 2):
        with pytest.raises((EngineError, StoreError)):
            find(shelf.run, workers=workers)
    shelf.proxy.trouble = lambda _asked: None
    assert RunStore.open(shelf.run).scores().is_empty()
    again = score(shelf.run, ["psnr", "noise"], workers=2)
    assert again.new > 0
    assert again.null == 0


@pytest.mark.parametrize("what", ["a chain", "some steps"])
def test_what_could_not_be_stored_is_told_and_the_rest_is_scored(
    shelf: Shelf, tmp_path: Path, what: str
) -> None:
    """Workers read the store, which this machine's records may be ahead of."""
    suite = str(write_suite(tmp_path / "suite", sources=2, size=32))
    table = {"suite": suite, "editors": ["ref:noise"], "concurrency": 1, "controls": False}
    run(shelf.run, {**table, "sources": ["s0"]}, steps=4)
    shelf.machine(patience=0.5)
    more = (
        {"sources": ["s0", "s1"], "steps": 4}
        if what == "a chain"
        else {"sources": ["s0"], "steps": 8}
    )

    def no_chains(asked: Asked) -> object:
        return "silent" if asked.kind == "PUT" and "/chains/" in asked.key else None

    shelf.proxy.trouble = no_chains  # type: ignore[assignment]
    with pytest.raises(StoreError, match="does not answer"):
        run(shelf.run, table | more)
    shelf.proxy.trouble = lambda _asked: None
    seen: list[ScoreProgress] = []
    result = score(shelf.run, ["psnr", "noise"], workers=2, observe=seen.append)
    assert result.null == 0
    assert 0 < result.new < seen[-1].scores
    left = seen[-1].scores - result.new
    assert f"Not made: scores whose records workers did not find ({left})." in str(result)
    assert f"convergebench run {shelf.run}, on the machine that made them" in str(result)
    run(shelf.run, table | more)
    again = score(shelf.run, ["psnr", "noise"], workers=2)
    assert again.new >= left
    assert again.problems == []
