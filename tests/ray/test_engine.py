"""The engine itself on a cluster of its own: what is placed where, and what is lost."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
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
from convergebench.store import RunStore
from convergebench.verifier import verify
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
        with pytest.raises(
            EngineError,
            match=rf"no Ray cluster at {gone}, which RAY_ADDRESS names \(.*refused\)\. .* unset "
            "RAY_ADDRESS and give no address to start Ray on this machine",
        ):
            RayEngine(address)
    with pytest.raises(EngineError, match=rf"at {gone} \(.*refused\)\. .* leave the address out"):
        RayEngine(gone)
    assert time.monotonic() - began < 60


def test_auto_where_nothing_was_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_address: str) -> str:
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray._private.services.canonicalize_bootstrap_address_or_die", none)
    with pytest.raises(EngineError, match="at auto: none was found that was started on this mach"):
        RayEngine("auto")


@pytest.mark.parametrize(
    "wrong", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "no-such-token" * 4}]
)
def test_who_lacks_the_token_is_told_of_tokens(cluster: Cluster, wrong: dict[str, str]) -> None:
    code = LOST.partition("hand = ")[0].replace("hirer.hands(trade, 1)", CAUGHT)
    done = subprocess.run(
        [sys.executable, "-c", code, cluster.address],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **wrong},
        check=True,
        timeout=300,
    )
    assert f"the Ray cluster at {cluster.address} cannot be used (InvalidAuthToken" in done.stdout
    assert "If it asks for a token, set RAY_AUTH_MODE=token here, too" in done.stdout
    assert done.stderr == ""


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


def walked(tmp_path: Path, steps: int) -> Path:
    suite = write_suite(tmp_path / "suite", size=64)
    table = {"suite": str(suite), "editors": ["ref:noise"], "steps": steps}
    run(tmp_path / "run", table, controls=False)
    return tmp_path / "run"


def scoring(path: Path, address: str, *more: str) -> subprocess.Popen[str]:
    """`convergebench score`, with two workers in the middle of it."""
    command = [sys.executable, "-m", "convergebench", "score", str(path), "-m", "slow-mean"]
    command += ["--engine", "ray", "--address", address, *more]
    return begun(command, path / "status" / "score.json")


def begun(command: list[str], status: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    end = time.monotonic() + 90
    while not (status.exists() and (now := json.loads(status.read_text())["progress"])["done"] > 9):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.2)
    assert now["workers"] == 2
    return process


LOST_TELLS = (
    r"the connection to the Ray cluster was lost \(.+\)\. What was done is saved; run the same "
    r"command again when it is back\."
)


@pytest.mark.parametrize("how", ["address", "client_address"])
def test_a_head_that_dies_ends_the_command_with_a_sentence(tmp_path: Path, how: str) -> None:
    """Ray itself would end the process after a minute, with the rows that are not saved yet."""
    path = walked(tmp_path, 150)
    with Cluster() as mortal:
        mortal.add()
        process = scoring(path, getattr(mortal, how), "--log-json")
        before = json.loads((path / "status" / "score.json").read_text())["progress"]["done"]
        mortal.kill_head()
        began = time.monotonic()
        _, told = process.communicate(timeout=150)
        assert time.monotonic() - began < 55
    assert process.returncode == 2, told
    events = [json.loads(line) for line in told.splitlines()]
    deaths = [event for event in events if event["event"] == "problem"]
    assert all(event["text"].startswith("a worker died (its machine ") for event in deaths), told
    others = {event["event"] for event in events if event not in deaths}
    assert others == {"start", "progress", "error"}, told
    last = events[-1]
    assert last["event"] == "error"
    assert re.fullmatch(LOST_TELLS, last["text"])
    store = RunStore.open(path)
    assert store.scores().height >= before
    assert store.scores().height == events[-2]["done"]
    assert not (path / "score.lock").read_text()


def test_a_head_that_dies_ends_a_run_with_a_sentence(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    command = [sys.executable, "-m", "convergebench", "run", str(tmp_path / "run")]
    command += ["--suite", str(suite), "-e", "grainy", "--rounds", "100", "--no-controls"]
    with Cluster() as mortal:
        mortal.add()
        command += ["--engine", "ray", "--address", mortal.address]
        process = begun(command, tmp_path / "run" / "status" / "run.json")
        mortal.kill_head()
        began = time.monotonic()
        _, told = process.communicate(timeout=150)
        assert time.monotonic() - began < 55
    assert process.returncode == 2, told
    assert re.search(LOST_TELLS, told)
    assert "Traceback" not in told
    assert not verify(tmp_path / "run").defects


def test_a_node_that_dies_leaves_no_lines_of_ray_on_the_terminal(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = walked(tmp_path, 30)
    third = cluster.add()
    process = scoring(path, cluster.address, "--workers", "2")
    cluster.kill(third)
    out, told = process.communicate(timeout=200)
    assert process.returncode == 0, told
    assert "0 null" in told
    # Told about five seconds after the death, while the work goes on.
    ours = ("scoring: ", "  a worker died (its machine ")
    foreign = [line for line in told.splitlines() if not line.startswith(ours)]
    assert foreign == []
    assert "raylet" not in out


def test_sigterm_saves_what_was_scored(cluster: Cluster, tmp_path: Path) -> None:
    path = walked(tmp_path, 60)
    process = scoring(path, cluster.address, "--json")
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "convergebench: stopped. Whatever was stored is kept" in told
    assert list((path / "scores").glob("part-*.parquet"))


def test_a_terminal_is_left_without_garbage(tmp_path: Path) -> None:
    """Ray's colours were reset at the exit, through a display that had ended."""
    path = walked(tmp_path, 2)
    command = [sys.executable, "-m", "convergebench", "score", str(path), "-m", "slow-mean"]
    environment = {name: text for name, text in os.environ.items() if name != "RAY_ADDRESS"}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, "--engine", "ray", "--workers", "1"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**environment, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # who wrote has gone
        while more := os.read(ours, 1 << 16):
            shown += more
    os.close(ours)
    assert process.wait(60) == 0
    assert shown.endswith(b"Metrics: slow-mean\r\n"), shown[-300:]


@pytest.mark.parametrize("seen", ["gcs_server", "raylet"])
def test_ctrl_c_while_ray_starts_is_a_stop(tmp_path: Path, seen: str) -> None:
    path = walked(tmp_path, 1)
    command = [sys.executable, "-m", "convergebench", "score", str(path)]
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
    assert not list((path / "scores").glob("*.parquet"))


def children(pid: int) -> list[str]:
    """Names of the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            found += [name] if rest.split()[1] == str(pid) else []
    return found
