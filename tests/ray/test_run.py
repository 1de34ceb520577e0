"""Editors as actors on a real cluster: the frames are those of one machine, byte for byte."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from convergebench.chain import Chain
from convergebench.runner import RunResult, run
from convergebench.store import RunStore
from convergebench.verifier import verify
from convergebench.walk import Observer, Progress
from tests.ray.cluster import Cluster
from tests.support.runs import write_suite

WEIGHTS = Path(os.environ.get("CONVERGEBENCH_SHARED", Path(__file__).parents[3] / "shared/weights"))


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    suite = write_suite(tmp_path / "suite")
    return {"suite": str(suite), "editors": ["grainy"], "rounds": 3, "controls": False}


def away(path: Path, table: dict[str, Any], cluster: Cluster, **more: Any) -> RunResult:
    return run(path, table, engine="ray", address=cluster.address, **more)


def told(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a record says of frames and outcomes."""
    return {
        chain.key.id: [
            (
                s.step,
                s.outcome,
                s.detail,
                s.frame and s.frame.sha256,
                s.inputs,
                s.seed,
                s.call.model,
            )
            for s in chain.steps
        ]
        for chain in chains(path)
    }


def chains(path: Path) -> list[Chain]:
    return RunStore.open(path).chains()


def edits(cluster: Cluster) -> list[str]:
    file = cluster.folder / "edits.txt"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("how", ["address", "client_address"])
def test_frames_are_the_same_byte_for_byte(
    cluster: Cluster, tmp_path: Path, table: dict[str, Any], how: str
) -> None:
    table["rounds"] = 8
    here = run(tmp_path / "here", table)
    before = len(edits(cluster))
    there = run(tmp_path / "there", table, engine="ray", address=getattr(cluster, how))
    assert told(tmp_path / "here") == told(tmp_path / "there")
    assert here.outcomes == there.outcomes
    assert there.outcomes["refused"] == 2  # what the editor raises arrives as what it is
    made = edits(cluster)[before:]
    assert len(made) == there.outcomes["edited"]  # each once
    assert len(set(made)) == 2  # by two actors
    assert not verify(tmp_path / "there").defects
    assert run(tmp_path / "there", engine="ray", address=cluster.address).steps_made == 0


def test_free_controls_are_made_by_the_driver(
    cluster: Cluster, tmp_path: Path, table: dict[str, Any]
) -> None:
    before = len(edits(cluster))
    small = {**table, "editors": ["ref:noise"], "controls": True, "rounds": 1}
    assert away(tmp_path / "run", small, cluster).complete
    assert len(edits(cluster)) == before


def test_an_edit_that_kills_three_workers_is_a_failed_step(
    cluster: Cluster, tmp_path: Path, table: dict[str, Any]
) -> None:
    result = away(tmp_path / "run", {**table, "editors": ["brittle"]}, cluster)
    assert result.complete
    deaths = (cluster.folder / "deaths.txt").read_text().split()
    cut = [chain for chain in chains(tmp_path / "run") if chain.key.source == "s0"]
    whole = [chain for chain in chains(tmp_path / "run") if chain.key.source == "s1"]
    assert len(deaths) == len(set(deaths)) == 3 * len(cut)
    for chain in cut:
        assert [step.outcome for step in chain.steps] == ["edited", "failed"]
        assert chain.steps[-1].detail.startswith("its worker died 3 times (")
    for chain in whole:
        assert {step.outcome for step in chain.steps} == {"edited"}
    assert not verify(tmp_path / "run").defects


def test_a_raylet_killed_in_the_middle_loses_no_frame_and_doubles_none(
    cluster: Cluster, tmp_path: Path, table: dict[str, Any]
) -> None:
    table["rounds"] = 5
    run(tmp_path / "here", table)
    third = cluster.add()
    killed: list[object] = []

    def observe(progress: Progress) -> None:
        if not killed and progress.steps_done >= 6:
            cluster.kill(third)
            killed.append(progress)

    result = away(tmp_path / "there", table, cluster, observe=observe)
    assert killed
    assert result.complete
    assert told(tmp_path / "here") == told(tmp_path / "there")
    for chain in chains(tmp_path / "there"):
        assert max(Counter(step.step for step in chain.steps).values()) == 1
    assert not verify(tmp_path / "there").defects


def test_two_editors_share_one_core_one_after_the_other(
    tmp_path: Path, table: dict[str, Any]
) -> None:
    both = {**table, "editors": ["grainy", "brittle"], "sources": ["s1"], "cycles": ["copy"]}
    with Cluster() as narrow:
        result = away(tmp_path / "run", both, narrow)
    assert result.complete
    assert result.outcomes == {"edited": 2 * 3}


def test_a_deadline_holds_and_its_worker_is_replaced(
    cluster: Cluster, tmp_path: Path, table: dict[str, Any]
) -> None:
    result = away(tmp_path / "run", {**table, "deadline": 0.05}, cluster)
    assert result.complete
    details = {step.detail for chain in chains(tmp_path / "run") for step in chain.steps}
    assert details == {"timed out after 0.05 s"}
    again = run(
        tmp_path / "run", retry_failed=True, deadline=60, engine="ray", address=cluster.address
    )
    assert again.outcomes["edited"] > 0


@pytest.mark.weights
def test_the_tiny_autoencoder_makes_the_same_frames_on_a_cluster(
    tmp_path: Path, table: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (WEIGHTS / "taef2_encoder.pth").is_file():
        pytest.skip(f"needs the weights of taef2 in {WEIGHTS}")
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(WEIGHTS))
    small = {**table, "editors": ["taef2"], "cycles": ["copy"], "rounds": 2}
    run(tmp_path / "here", small)
    with Cluster(cpus=2) as wide:  # it works with two threads, wherever it does
        away(tmp_path / "there", small, wide)
    assert told(tmp_path / "here") == told(tmp_path / "there")
    assert {s.outcome for chain in chains(tmp_path / "there") for s in chain.steps} == {"edited"}


@pytest.mark.usefixtures("_own_function")
def test_a_function_that_says_what_it_takes_works_on_the_cluster(
    cluster: Cluster, tmp_path: Path, table: dict[str, Any]
) -> None:
    events: list[str] = []
    names = ["python:mine_away:edit,price=0,gpus=1", "python:mine_away:edit,price=0"]
    table["editors"] = names
    run(tmp_path / "here", table, observe=_noting(events))
    assert not any("On the cluster" in text for text in events)
    away(tmp_path / "there", table, cluster, observe=_noting(events))
    assert told(tmp_path / "here") == told(tmp_path / "there")
    makers = {int(name.partition("-")[0]) for name in os.listdir(tmp_path / "made")}
    assert len(makers) >= 2, "this process, and at least one actor"
    assert [text for text in events if "On the cluster" in text] == [
        "Called from this machine: python:mine_away:edit,price=0. On the cluster work editors that "
        "are free and say what they take: local models, python:…,price=0,gpus=1."
    ]
    assert [text for text in events if "has no GPU" in text] == [
        "The cluster has no GPU: cores do the work of python:mine_away:edit,gpus=1,price=0, which "
        "may take long."
    ]


@pytest.fixture
def _own_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "mine_away.py").write_text(
        "import os, pathlib\n"
        "def edit(image, prompt, seed):\n"
        "    made = pathlib.Path(__file__).parent / 'made'\n"
        "    (made / f'{os.getpid()}-{len(os.listdir(made))}').touch()\n"
        "    return image.rotate(90)\n"
    )
    monkeypatch.chdir(tmp_path)


def _noting(events: list[str]) -> Observer:
    return lambda progress: events.append(progress.event)


def test_what_goes_on_is_told_with_its_engine(
    cluster: Cluster, tmp_path: Path, table: dict[str, Any]
) -> None:
    """As pasted, it goes on where it was: no run remembers the engine."""
    path = tmp_path / "run"
    command = [sys.executable, "-m", "convergebench", "run", str(path), "--engine", "ray"]
    command += ["--address", cluster.address, "--no-controls", "--suite", table["suite"]]
    command += ["-e", "grainy", "--rounds", "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 120
        while not list((path / "chains").rglob("*.jsonl")):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    more = f"--engine ray --address {cluster.address}"
    assert f"Go on with: convergebench run {path} {more}" in told.replace("\n", " ")
