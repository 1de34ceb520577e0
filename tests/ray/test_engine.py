"""The engine itself on a cluster of its own: what is placed where, and what is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ray.util.client.worker import Worker

from convergebench.engines import Trade, WorkerDied
from convergebench.engines import ray as engine
from convergebench.engines.ray import RayEngine
from convergebench.errors import EngineError
from convergebench.resources import Resources
from convergebench.runner import run
from tests.conftest import ROOT
from tests.ray.cluster import Cluster, free_port
from tests.support.runs import write_suite

OBEDIENT = "tests.engines.workers:Obedient"


def soon(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


@pytest.fixture(scope="module")
def large() -> Iterator[Cluster]:
    with Cluster(cpus=4) as started:
        yield started


def test_no_more_workers_than_the_memory_that_we_may_use_holds(large: Cluster) -> None:
    trade = Trade(OBEDIENT, {}, Resources(cpus=1, memory=1 << 29))
    with contextlib.closing(RayEngine(large.address, memory=1.2)) as hirer:
        assert hirer.hands(trade, 100) == 2
        hands = [hirer.hire(trade, n, 2, lambda: False) for n in range(2)]
        assert hirer.hire(trade, 2, 2, soon(4)) is None
        (answer,) = hands[0].ask(f"grab {1 << 28}".encode())  # type: ignore[union-attr]
        assert answer == str(1 << 28).encode()
        (answer,) = hands[1].ask(f"grab {1 << 30}".encode())  # type: ignore[union-attr]
        assert answer == b"refused"


def test_work_for_gpus_that_have_left_does_not_move_to_cores(
    large: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PATIENCE", 6.0)
    trade = Trade(OBEDIENT, {}, Resources(cpus=1, gpus=1))
    raylet = large.add(gpus=1)
    with contextlib.closing(RayEngine(large.address)) as hirer:
        assert hirer.hands(trade, 100) == 1
        hand = hirer.hire(trade, 0, 1, lambda: False)
        assert hand is not None
        large.kill(raylet)
        with pytest.raises(WorkerDied):
            list(hand.ask(b"sleep 120"))

        def hired() -> bool:
            try:
                return hirer.hire(trade, 0, 1, soon(60)) is not None
            except WorkerDied:  # the cluster has not noticed yet, and placed it there
                time.sleep(1)
                return False

        with pytest.raises(EngineError, match=r"1 CPU, 1 GPU.* have left the Ray cluster"):
            any(hired() for _ in range(60))


LOST = """
import sys
from convergebench.engines import Trade
from convergebench.engines.ray import RayEngine
from convergebench.errors import EngineError
hirer = RayEngine(sys.argv[1])
trade = Trade("tests.engines.workers:Obedient")
hirer.hands(trade, 1)
hand = hirer.hire(trade, 0, 1, lambda: False)
print("there", flush=True)
sys.stdin.readline()
try:
    print(list(hand.ask(b"sleep 120")))
except EngineError as error:
    print("EngineError:", error)
"""


def test_a_cluster_that_is_lost_is_one_sentence() -> None:
    with Cluster() as cluster:
        environment = {**os.environ, "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "2"}
        process = subprocess.Popen(
            [sys.executable, "-c", LOST, cluster.client_address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
    # the cluster has ended
    told, _ = process.communicate("\n", timeout=200)
    assert "EngineError: the connection to the Ray cluster was lost (" in told
    assert "run the same command again when it is back." in told


def test_an_address_that_ray_remembers_is_knocked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself would try for many minutes, and hear no Ctrl-C meanwhile."""
    gone = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("RAY_ADDRESS", gone)
    began = time.monotonic()
    for address in ("auto", None):
        hirer = RayEngine(address)
        with pytest.raises(
            EngineError, match=r"there is no Ray cluster at auto \(.*refused\)\. St"
        ):
            hirer.hands(Trade(OBEDIENT), 1)
    assert time.monotonic() - began < 60


def test_who_lacks_the_token_is_told_of_tokens(cluster: Cluster) -> None:
    code = LOST.partition("hand = ")[0].replace("hirer.hands(trade, 1)", CAUGHT)
    done = subprocess.run(
        [sys.executable, "-c", code, cluster.address],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "RAY_AUTH_MODE": "disabled"},
        check=True,
        timeout=300,
    )
    assert f"the Ray cluster at {cluster.address} cannot be used (" in done.stdout
    assert "If it asks for a token, set RAY_AUTH_MODE=token here, too" in done.stdout


CAUGHT = """
try:
    hirer.hands(trade, 1)
except EngineError as error:
    print(error)
"""
ZOMBIE = "Initialization failure from server:\npsutil.ZombieProcess: still exists but is a zombie"


@pytest.mark.parametrize(("deaths", "attempts"), [(2, 3), (3, 3)])
def test_a_server_that_dies_while_it_starts_is_started_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, deaths: int, attempts: int
) -> None:
    """Only the death is played, as a head was seen to tell it; the connections are real."""
    asked = 0
    real = Worker._server_init

    def dying(*words: object) -> None:
        nonlocal asked
        asked += 1
        if asked <= deaths:
            raise ConnectionAbortedError(ZOMBIE)
        real(*words)

    monkeypatch.setattr(Worker, "_server_init", dying)
    trade = Trade(OBEDIENT, {}, Resources(cpus=1))
    with contextlib.closing(RayEngine(cluster.client_address)) as hirer:
        if deaths < attempts:
            assert hirer.hands(trade, 100) == 2
        else:
            with pytest.raises(
                EngineError,
                match=r"ray://.* cannot be used .* a zombie\). Try again; .*FORK_SUPPORT=false",
            ):
                hirer.hands(trade, 100)
    assert asked == attempts
    # a failed connection does not stand in the way of the next one
    with contextlib.closing(RayEngine(cluster.address)) as hirer:
        assert hirer.hands(trade, 100) == 2


def test_sigterm_saves_what_was_scored(cluster: Cluster, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", size=64)
    table = {"suite": str(suite), "editors": ["ref:noise"], "steps": 60}
    run(tmp_path / "run", table, controls=False)
    command = [sys.executable, "-m", "convergebench", "score", str(tmp_path / "run")]
    command += ["-m", "slow-mean", "--engine", "ray", "--address", cluster.address, "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    status = tmp_path / "run" / "status" / "score.json"
    end = time.monotonic() + 90
    while not (status.exists() and '"workers": 2' in status.read_text()):
        assert time.monotonic() < end
        time.sleep(0.2)
    time.sleep(3)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "convergebench: stopped. Whatever was stored is kept" in told
    assert list((tmp_path / "run" / "scores").glob("part-*.parquet"))


@pytest.mark.parametrize("seen", ["gcs_server", "raylet"])
def test_ctrl_c_while_ray_starts_is_a_stop(tmp_path: Path, seen: str) -> None:
    suite = write_suite(tmp_path / "suite", size=64)
    table = {"suite": str(suite), "editors": ["ref:noise"], "steps": 1}
    run(tmp_path / "run", table, controls=False)
    command = [sys.executable, "-m", "convergebench", "score", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*command, "--engine", "ray", "--workers", "1"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={name: text for name, text in os.environ.items() if name != "RAY_ADDRESS"},
    )
    end = time.monotonic() + 120
    while seen not in children(process.pid):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=90)
    assert process.returncode == 130, told
    assert told.endswith("give the same command again.\n")
    assert "ignored" not in told
    assert not list((tmp_path / "run" / "scores").glob("*.parquet"))


def children(pid: int) -> list[str]:
    """Names of the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            found += [name] if rest.split()[1] == str(pid) else []
    return found
