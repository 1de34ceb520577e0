"""Finding failures where something goes wrong, in real chains, and the benchmark that rates it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from convergebench import failures
from convergebench.errors import StoreBusy
from convergebench.failures import worker
from convergebench.failures.looking import Piece
from convergebench.importer import import_run
from convergebench.store import RunStore
from tests.conftest import ROOT
from tests.failures.test_framework import made

DEADLY = """
import os, sys
from convergebench.engines.host import END, receive, send
receive(sys.stdin.buffer)
send(sys.stdout.buffer, END, b"")  # it is there
receive(sys.stdin.buffer)
os._exit(7)
"""


def test_pieces_that_kill_their_workers_become_null_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path, steps=1)
    chains = [chain.key.id for chain in RunStore.open(path).chains()][:2]
    start = subprocess.Popen

    def deadly(command: list[str], **more: object) -> subprocess.Popen[bytes]:
        return start([sys.executable, "-c", DEADLY], **more)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr("convergebench.engines.local.subprocess.Popen", deadly)
    pieces = [Piece(chain, {1: ("crop", "colour-cast")}) for chain in chains]
    rows = [row for seen in worker.look_at(str(path), pieces, 2) for row in seen.rows]
    assert len(rows) == 4
    assert {row[12] for row in rows} == {"its worker died 3 times (exit code 7)"}
    assert all(row[10] is None and row[11] is None for row in rows)


def test_two_searches_at_once_are_refused(tmp_path: Path) -> None:
    path = made(tmp_path, steps=1)
    busy = pytest.raises(StoreBusy, match="is being written")
    with RunStore.open(path).writing("failures"), busy:
        failures.find(path)


@pytest.mark.shared
def test_the_real_autoencoder_chain_loses_texture_and_drifts_in_colour(
    shared: Path, tmp_path: Path
) -> None:
    import_run(shared / "data" / "chains" / "vae-25-steps", tmp_path / "run")
    names = ["texture-loss", "colour-cast", "aspect-change", "crop"]
    found = failures.find(tmp_path / "run", detectors=names)

    def values(detector: str) -> list[float]:
        rows = found.rows.filter(pl.col("detector") == detector).sort("step")
        return rows["value"].to_list()

    lost, cast = values("texture-loss"), values("colour-cast")
    assert lost[0] < 12 < 30 < lost[-1]
    assert cast[0] < 3 < 6 < cast[-1]
    assert max(values("aspect-change")) == 0
    assert max(values("crop")) < 0.7


def test_the_benchmark_prints_precision_and_recall() -> None:
    command = [sys.executable, "-m", "benchmarks.failures", "--level", "image"]
    done = subprocess.run(
        [*command, "--detector", "aspect-change"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = (text for text in done.stdout.splitlines() if text.startswith("aspect-change"))
    told = failures.error_rates()["aspect-change"]
    assert line.split()[1:] == [
        "0.5", line.split()[2], str(told.positives), str(told.negatives), "1", "1", "0", "0"
    ]  # fmt: skip
