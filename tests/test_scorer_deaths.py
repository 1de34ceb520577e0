"""Workers that die over their work: nothing is lost, doubled, or blamed on its neighbours."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from convergebench.measure import FEW
from convergebench.runner import run
from convergebench.scorer import ScoreProgress, score
from convergebench.store import RunStore
from tests.support.metrics import is_poison
from tests.support.runs import write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Two chains of 41 frames."""
    suite = write_suite(tmp_path / "suite")
    table = {"suite": str(suite), "editors": ["ref:noise"], "cycles": ["copy"], "steps": 40}
    run(tmp_path / "run", table, controls=False)
    return tmp_path / "run"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "notes.txt"
    monkeypatch.setenv("COUNTING_METRIC_LOG", str(path))
    path.touch()
    return path


def poison(path: Path) -> set[tuple[str, int]]:
    """The frames that kill, as one sees who decodes them all."""
    store = RunStore.open(path)
    return {
        (chain.key.id, step)
        for chain in store.chains()
        for step, ref in chain.held.items()
        if is_poison(store.frame(ref).pixels)
    }


def written(path: Path) -> int:
    """Rows as written, before equal keys are made one."""
    return sum(len(pl.read_parquet(part)) for part in (path / "scores").glob("*.parquet"))


def test_only_the_pictures_that_kill_become_null(long: Path, notes: Path) -> None:
    bad = poison(long)
    assert 3 < len(bad) < 20
    result = score(long, ["poisoned-metric", "sharpness"], workers=2)
    rows = RunStore.open(long).scores()
    mine = rows.filter(pl.col("metric") == "poisoned-metric")
    nulls = mine.filter(pl.col("value").is_null())
    assert {(chain, step) for chain, step in nulls.select("chain", "step").iter_rows()} == bad
    assert len(mine) == 82
    assert all(note.startswith("its worker died 3 times (") for note in nulls["note"])
    assert rows.filter(pl.col("metric") == "sharpness")["value"].null_count() == 0
    assert written(long) == result.new == 164
    assert result.null == len(bad)
    # Three workers each, and one for each chain that found out that somebody dies there.
    deaths = len(notes.read_text().splitlines())
    assert 3 * len(bad) <= deaths <= 3 * len(bad) + len({chain for chain, _ in bad})
    assert score(long, ["poisoned-metric", "sharpness"]).new == 0


def test_workers_that_die_over_different_pictures_blame_none(long: Path, notes: Path) -> None:
    told: list[str] = []
    result = score(long, ["leaky-metric"], workers=1, observe=lambda p: told.append(p.event))
    assert (result.new, result.null, result.problems) == (82, 0, [])
    events = [text for text in told if text]
    assert events == ["a worker died (exit code -9); another one goes on where it was"], "once"
    assert written(long) == 82
    # A death costs what was not told yet, once a chain: then they are careful. Telling nothing
    # before the end of a chain would cost 12 pictures of each.
    again = Counter(notes.read_text().splitlines())
    repeated = again.total() - len(again)
    assert 0 < repeated <= 2 * FEW


def test_rows_are_told_while_a_slow_metric_is_at_a_chain(long: Path) -> None:
    told: list[ScoreProgress] = []
    score(long, ["patient-metric"], steps=range(1, 13), workers=1, observe=told.append)
    counts = sorted({each.scores_done for each in told})
    assert max(b - a for a, b in pairwise(counts)) <= 8, counts


def test_a_metric_may_have_several_frames_at_once(long: Path) -> None:
    score(long, ["together-metric"], workers=1)
    rows = RunStore.open(long).scores().filter(pl.col("metric") == "together-metric")
    assert Counter(rows["value"]) == {4.0: 80, 1.0: 2}
