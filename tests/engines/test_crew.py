"""The crew and the local engine, with real processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from convergebench.engines import DEATHS, Trade, WorkerDied, open_engine, require_engine
from convergebench.engines import crew as crew_module
from convergebench.engines.address import Address, sought
from convergebench.engines.crew import Crew
from convergebench.engines.local import LocalEngine, LocalHand, machine_memory
from convergebench.errors import EngineError, SettingsError, UnknownName
from convergebench.resources import Resources
from convergebench.runner import run
from tests.conftest import ROOT
from tests.engines.workers import Task
from tests.support.runs import write_suite

OBEDIENT = "tests.engines.workers:Obedient"


def done(texts: list[str], workers: int = 2, trade: Trade | None = None) -> list[tuple[str, str]]:
    jobs = [(trade or Trade(OBEDIENT), [Task(text) for text in texts])]
    with Crew(LocalEngine(workers), jobs) as crew:
        found = list(crew.results())
    assert crew.alive == 0
    return found


def test_every_task_is_answered_by_few_processes() -> None:
    found = done(["pid"] * 20)
    assert len(found) == 20
    pids = {int(pid) for _, pid in found}
    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_nothing_to_do_starts_nothing() -> None:
    assert done([]) == []


def test_answers_come_as_they_are_made_and_in_order() -> None:
    assert [answer for _, answer in done(["count 50"])] == [str(n) for n in range(50)]


def test_what_a_worker_prints_does_not_garble_its_answers(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert done(["print loading …", "echo fine"], workers=1) == [
        ("print loading …", "printed"),
        ("echo fine", "fine"),
    ]
    told = capfd.readouterr()
    assert told.out == ""
    assert "loading …" in told.err


def test_a_dead_worker_is_replaced_and_its_task_done_again(tmp_path: Path) -> None:
    trade = Trade(OBEDIENT, {"folder": str(tmp_path)})
    texts = [f"once {n}" for n in range(6)]
    assert sorted(done(texts, trade=trade)) == [(text, text[-1]) for text in texts]


def test_what_kills_three_workers_is_given_up_and_the_others_are_done() -> None:
    found = done(["echo a", "die 2", "echo b"])
    told = Counter(found)
    assert told["die 2", "given up: exit code -9"] == 1
    assert told["die 2", "0"] == told["die 2", "1"] == 3  # the crew's tasks decide what is kept
    assert told["echo a", "a"] == told["echo b", "b"] == 1


def test_a_bug_in_a_worker_is_a_death_with_its_name() -> None:
    assert ("raise oh", "given up: ZeroDivisionError: oh") in done(["raise oh", "echo x"])


def test_a_worker_that_cannot_be_made_ends_the_work_with_one_sentence() -> None:
    with pytest.raises(EngineError, match=r"^nothing is here$"):
        done(["echo x"] * 3, trade=Trade("tests.engines.workers:refusing"))
    with pytest.raises(EngineError, match="ModuleNotFoundError"):
        done(["echo x"], trade=Trade("no.such.module:thing"))


class Flaky(LocalEngine):
    """Its first hires die on the way."""

    def __init__(self, stillborn: int) -> None:
        super().__init__(4)
        self.left = stillborn

    def hire(
        self, trade: Trade, number: int, of: int, unless: Callable[[], bool]
    ) -> LocalHand | None:
        self.left -= 1
        if self.left >= 0:
            raise WorkerDied("its machine is gone")
        return super().hire(trade, number, of, unless)


def test_workers_that_die_on_the_way_do_not_end_the_work_while_others_come() -> None:
    texts = [f"echo {n}" for n in range(4)]
    with Crew(Flaky(5), [(Trade(OBEDIENT), [Task(text) for text in texts])]) as crew:
        assert sorted(answer for _, answer in crew.results()) == ["0", "1", "2", "3"]
    endless = Flaky(10**6)
    with (
        Crew(endless, [(Trade(OBEDIENT), [Task("echo x")])]) as crew,
        pytest.raises(EngineError, match="no worker can be started: its machine is gone"),
    ):
        list(crew.results())
    assert 10**6 - endless.left == DEATHS


def test_a_worker_that_dies_while_it_is_made_is_no_fault_of_its_task() -> None:
    dying = Trade("tests.engines.workers:dying")
    with pytest.raises(EngineError, match=r"^no worker can be started: exit code 7$"):
        done(["echo x"] * 3, trade=dying)


def test_waiting_for_a_worker_that_takes_long_to_make_can_be_ended() -> None:
    slow = Trade("tests.engines.workers:slow")
    engine = LocalEngine(1)
    begun = time.monotonic()
    assert engine.hire(slow, 0, 1, lambda: time.monotonic() - begun > 1) is None
    assert time.monotonic() - begun < 30, "it would have taken a minute"


class Shared:
    """A machine of 8 cores and a GPU, whose hands echo; and how many of each kind work at once."""

    name, together, gpus = "shared", True, False

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free = Counter(cpus=8, gpus=1)
        self.at_work = [0]

    def hands(self, trade: Trade, tasks: int) -> int:
        return min(tasks, 1 if trade.resources.gpus else 8)

    def hire(self, trade: Trade, number: int, of: int, unless: Callable[[], bool]) -> Echo | None:
        wants = Counter(cpus=1, gpus=int(trade.resources.gpus))
        while not unless():
            with self.lock:
                if wants <= self.free:
                    self.free -= wants
                    return Echo(self, wants)
            time.sleep(0.005)
        return None

    def close(self) -> None:
        """Nothing is held."""


class Echo:
    def __init__(self, machine: Shared, taken: Counter[str]) -> None:
        self.machine, self.taken = machine, taken

    def ask(self, task: bytes) -> Iterator[bytes]:
        with self.machine.lock:
            self.machine.at_work.append(8 - self.machine.free["cpus"])
        time.sleep(0.01)
        yield task

    def end(self) -> None:
        with self.machine.lock:
            self.machine.free += self.taken
            self.taken = Counter()


@pytest.mark.parametrize("graphic", [1, 18])
def test_many_trades_that_want_the_one_gpu_leave_the_cores_to_others(graphic: int) -> None:
    machine = Shared()
    jobs = [(Trade("a core"), [Task("echo x") for _ in range(300)])]
    gpu = Resources(cpus=1, gpus=1)
    jobs += [(Trade("a GPU", {}, gpu), [Task("echo x")] * 5) for _ in range(graphic)]
    with Crew(machine, jobs) as crew:
        assert len(list(crew.results())) == 300 + 5 * graphic
    assert max(machine.at_work) == 8


def test_a_machine_that_cannot_do_the_work_ends_it_with_one_sentence() -> None:
    with pytest.raises(EngineError, match=r"^not on this machine$"):
        done(["unable not on this machine", "echo x"])


def test_trades_are_worked_one_after_the_other_on_one_machine() -> None:
    jobs = [(Trade(OBEDIENT), [Task(f"sleep 0.{n}") for n in range(4)]) for _ in range(3)]
    jobs.append((Trade(OBEDIENT), [Task("echo end")]))
    with Crew(LocalEngine(2), jobs) as crew:
        assert list(crew.results())[-1] == ("echo end", "end")


def test_leaving_early_ends_the_workers_at_once() -> None:
    begun = time.monotonic()
    with Crew(LocalEngine(2), [(Trade(OBEDIENT), [Task("pid"), Task("sleep 60")])]) as crew:
        pid = int(next(crew.results())[1])
    assert time.monotonic() - begun < 20
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_workers_of_a_driver_that_was_killed_end_without_a_word() -> None:
    code = (
        "from convergebench.engines import Trade\n"
        "from convergebench.engines.crew import Crew\n"
        "from convergebench.engines.local import LocalEngine\n"
        "from tests.engines.workers import Task\n"
        f"job = (Trade({OBEDIENT!r}), [Task('count 100000000')])\n"
        "with Crew(LocalEngine(1), [job]) as crew:\n"
        "    for told in crew.results(): print(told, flush=True)\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert driver.stdout is not None
    driver.stdout.readline()
    driver.kill()
    _, errors = driver.communicate(timeout=60)  # until its worker has closed them, too
    assert errors == b""


def test_the_system_refuses_more_memory_than_a_trade_may_use() -> None:
    trade = Trade(OBEDIENT, {}, Resources(memory=1 << 28))
    engine = LocalEngine(1, memory=0.5)
    with Crew(engine, [(trade, [Task(f"grab {1 << 30}"), Task(f"grab {1 << 20}")])]) as crew:
        assert [answer for _, answer in crew.results()] == ["refused", str(1 << 20)]


def test_how_many_hands() -> None:
    engine = LocalEngine(8, memory=12)
    assert engine.hands(Trade(OBEDIENT), 100) == 8
    assert engine.hands(Trade(OBEDIENT), 3) == 3
    large = Trade(OBEDIENT, {}, Resources(gpus=1, memory=5 << 30))
    assert engine.hands(large, 100) == 2
    assert LocalEngine(8, memory=1).hands(large, 100) == 1
    assert machine_memory() > 1 << 28


def test_matrices_are_multiplied_by_one_thread_everywhere() -> None:
    assert done(["env OPENBLAS_NUM_THREADS"]) == [("env OPENBLAS_NUM_THREADS", "1")]
    # The setting is read when NumPy is loaded: a worker's own modules must not have done that.
    code = "import convergebench.engines.ray, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_unknown_engines_and_addresses_without_ray_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"no engine called 'rai'. Did you mean ray"):
        open_engine("rai")
    with pytest.raises(SettingsError, match="give --engine ray, too"):
        open_engine("local", "auto")


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("auto", "auto"),
        ("head:6379", "head:6379"),
        ("10.0.0.1:6379/", "10.0.0.1:6379"),
        ("ray://head.example.org:10001/", "ray://head.example.org:10001"),
        ("[::1]:6379", "[::1]:6379"),
        ("ray://[fe80::1]:10001", "ray://[fe80::1]:10001"),
    ],
)
def test_addresses_of_clusters(said: str, taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert sought(said).text == taken
    require_engine("ray", said)


@pytest.mark.parametrize("scheme", ["", "ray://", "http://"])
@pytest.mark.parametrize("rest", ["head", "head:0", "head:65536", "::1:63", "h:1/path", "h:1,h:2"])
def test_what_is_no_address_is_refused_before_anything_starts(scheme: str, rest: str) -> None:
    said = scheme + rest
    with pytest.raises(SettingsError) as told:
        open_engine("ray", said)
    assert re.fullmatch(
        r"the address of the Ray cluster is HOST:PORT, usually HOST:6379, or ray://HOST:PORT, "
        rf"usually ray://HOST:10001, or auto; got '{re.escape(said)}'\.",
        str(told.value),
    )


def test_a_password_in_an_address_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="contains '@', so it is not repeated here") as told:
        open_engine("ray", "ray://user:hunter2@host:1")
    assert "hunter2" not in str(told.value)
    suite = write_suite(tmp_path / "suite", sources=1)
    run(tmp_path / "run", {"suite": str(suite), "editors": ["ref:noise"]}, steps=1, controls=False)
    command = [sys.executable, "-m", "convergebench", "score", str(tmp_path / "run"), "--log-json"]
    done = subprocess.run(
        [*command, "--engine", "ray", "--address", "ray://user:hunter2@host:1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert "contains '@'" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes()


@pytest.mark.parametrize("said", ["", "  "])
def test_an_empty_address_does_not_start_ray_here(said: str) -> None:
    with pytest.raises(SettingsError, match="is empty: is a shell variable unset"):
        open_engine("ray", said)


def test_the_address_in_the_environment_is_checked_like_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "head:6379/")
    assert sought(None) == sought("auto") == Address("head:6379", by_variable=True)
    assert sought("other:1") == Address("other:1")
    monkeypatch.setenv("RAY_ADDRESS", "ray://user:hunter2@host:1")
    with pytest.raises(SettingsError, match="RAY_ADDRESS contains '@'") as told:
        require_engine("ray", None)
    assert "hunter2" not in str(told.value)
    monkeypatch.setenv("RAY_ADDRESS", "http://head:8265")
    with pytest.raises(SettingsError, match=r"RAY_ADDRESS is HOST:PORT.*'http://head:8265'"):
        require_engine("ray", "auto")
    require_engine("ray", "head:6379")  # then it is not asked
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert sought(None) == Address("local")
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert sought(None) == Address("local")
    with pytest.raises(SettingsError, match="the address is auto, and RAY_ADDRESS is local"):
        sought("auto")


@pytest.mark.parametrize("said", ["ray://h:1/?token=hunter2", "h:1#hunter2", "key=hunter2"])
def test_what_may_be_a_secret_in_an_address_is_not_repeated(said: str) -> None:
    with pytest.raises(SettingsError, match="so it is not repeated here") as told:
        open_engine("ray", said)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize("name", ["local", "ray"])
@pytest.mark.parametrize("memory", [float("inf"), float("nan"), 0.0, -1.0, 1e300])
def test_memory_that_no_machine_has_is_one_sentence(name: str, memory: float) -> None:
    with pytest.raises(
        SettingsError, match=f"a number of GiB above 0, got {memory:g}".replace("+", ".")
    ):
        open_engine(name, memory=memory)


class Silent(Shared):
    """Nothing is known of room for more while somebody works: who asks waits."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answer = 0, threading.Event()

    def hands(self, trade: Trade, tasks: int) -> int:
        self.asked += 1
        if self.asked > 1:
            self.answer.wait(60)
        return 1


def test_who_waits_for_results_is_told_that_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also while the engine does not answer."""
    monkeypatch.setattr(crew_module, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(crew_module, "TICK", 0.05)
    machine = Silent()
    monkeypatch.setattr(Echo, "ask", lambda _self, task: machine.answer.wait(60) and iter([task]))
    with Crew(machine, [(Trade("a core"), [Task("echo x")])]) as crew:
        ticks = crew.ticking()
        assert [next(ticks) for _ in range(5)] == [None] * 5
        assert machine.asked == 2
        machine.answer.set()
        assert [told for told in ticks if told is not None] == [("echo x", "echo x")]


def test_without_ray_there_is_one_sentence_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("convergebench.engines.ray.find_spec", lambda _name: None)
    with pytest.raises(EngineError, match=r"pip install 'convergebench\[ray\]'"):
        open_engine("ray")
