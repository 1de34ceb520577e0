"""How scoring ends: whoever works has ended before, and what was not made is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convergebench import scorer, units
from convergebench.errors import StoreError
from convergebench.runner import run
from convergebench.scorer import ScoreProgress, score
from convergebench.store import RunStore
from tests.support.runs import write_suite


@pytest.fixture
def begun(tmp_path: Path) -> dict[str, Any]:
    suite = write_suite(tmp_path / "suite", sources=1)
    table = {"suite": str(suite), "editors": ["ref:noise"]}
    run(tmp_path / "run", table, steps=3, controls=False)
    return table


def test_whatever_ends_the_loop_ends_the_workers_first(
    begun: dict[str, Any], tmp_path: Path
) -> None:
    """Also while somebody keeps the error, as an interactive session does."""
    seen: list[ScoreProgress] = []

    def observe(progress: ScoreProgress) -> None:
        seen.append(progress)
        if progress.scores_done:
            raise StoreError("the store is down")

    with pytest.raises(StoreError, match="the store is down") as kept:
        score(tmp_path / "run", ["psnr", "ssim"], workers=2, observe=observe)
    assert kept.value is not None
    assert not [thread for thread in threading.enumerate() if "_serve" in thread.name]
    assert not (tmp_path / "run" / "score.lock").read_text()
    assert RunStore.open(tmp_path / "run").scores().height == seen[-1].scores_done > 0


def test_what_run_adds_meanwhile_is_left_to_the_next_command(
    begun: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = units.measured

    def late(*words: Any) -> Iterator[Any]:
        run(tmp_path / "run", begun, steps=8, controls=False)
        return measured(*words)

    monkeypatch.setattr(scorer, "measured", late)
    seen: list[ScoreProgress] = []
    result = score(tmp_path / "run", ["psnr"], observe=seen.append)
    assert seen[-1].scores_done == seen[-1].scores == result.new
    assert result.problems == []
    monkeypatch.undo()
    assert score(tmp_path / "run", ["psnr"]).new > 0
