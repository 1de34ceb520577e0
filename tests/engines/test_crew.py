"""The crew and the local engine, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from convergebench.engines import DEATHS, Trade, WorkerDied, open_engine
from convergebench.engines.crew import Crew
from convergebench.engines.local import LocalEngine, LocalHand, machine_memory
from convergebench.errors import EngineError, SettingsError, UnknownName
from convergebench.resources import Resources
from tests.conftest import ROOT
from tests.engines.workers import Task

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

    name, together = "shared", True

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


def test_without_ray_there_is_one_sentence_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("convergebench.engines.ray.find_spec", lambda _name: None)
    with pytest.raises(EngineError, match=r"pip install 'convergebench\[ray\]'"):
        open_engine("ray")
