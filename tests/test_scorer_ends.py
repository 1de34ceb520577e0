"""How scoring ends: whoever works has ended before, and what was not made is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convergebench import scorer, units
from convergebench.engines.crew import Crew
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


def test_rows_are_saved_while_none_come(
    begun: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen cluster must not keep the last rows from the disk until it thaws."""
    measured = units.measured
    seen: list[tuple[int, int]] = []

    def freezing(*words: Any) -> Iterator[Any]:
        height = 0
        for piece, at_it in measured(*words):
            monkeypatch.setattr(scorer, "SAVE_EVERY", 3600.0)
            yield piece, at_it
            if piece is not None:
                height += len(piece.rows)
                monkeypatch.setattr(scorer, "SAVE_EVERY", 0.0)
                yield None, at_it
                seen.append((height, RunStore.open(tmp_path / "run").scores().height))

    monkeypatch.setattr(scorer, "measured", freezing)
    assert score(tmp_path / "run", ["psnr"]).new > 0
    assert seen
    assert all(came == saved for came, saved in seen)


def test_what_was_done_is_saved_before_the_workers_are_ended(
    begun: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of a cluster that is lost may take long to end, or for ever."""
    heights: list[int] = []
    dismiss = Crew.dismiss

    def dismissed(crew: Crew[Any]) -> None:
        heights.append(RunStore.open(tmp_path / "run").scores().height)
        dismiss(crew)

    monkeypatch.setattr(Crew, "dismiss", dismissed)
    result = score(tmp_path / "run", ["psnr"])
    assert heights == [result.new]
