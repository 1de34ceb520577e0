"""The crew: threads of the driver that hire hands, give them tasks, and replace those that died.

One thread stands for one hand at a time, because asking is waiting. It takes a task only once its
hand is there, so no task waits for a machine while another one idles; and it ends its hand when the
trade has no task left, so that the machine is free for the next trade.

Machines that join while the work goes on are taken on; those that leave are deaths. What came
before a death is kept; what to do with the rest is the task's own policy.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, Generic, Protocol, Self, TypeVar

from convergebench.engines import DEATHS, Engine, Hand, Trade, WorkerDied
from convergebench.errors import EngineError

LOOK_EVERY: Final = 10.0
"""Seconds between two looks whether there is room for more hands."""
TICK: Final = 1.0
"""Seconds after which who waits for results is told that there are none."""
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Task(Protocol[R_co]):
    """A piece of work, and what is done about a death."""

    def ask(self) -> bytes:
        """What the worker is given."""
        ...

    def heard(self, answer: bytes) -> R_co:
        """What an answer means; the task may note what needs no second answer."""
        ...

    def died(self, why: str) -> tuple[Sequence[Task[R_co]], Sequence[R_co]]:
        """Its worker died: what to do instead, and what to tell in place of answers."""
        ...


class _Job(Generic[R]):
    """A trade's tasks, and who is at them."""

    def __init__(self, trade: Trade, tasks: Sequence[Task[R]], most: int) -> None:
        self.trade: Final = trade
        self.most = most
        self.todo: deque[Task[R]] = deque(tasks)
        self.left = len(tasks)
        self.numbers: set[int] = set()
        self.hiring = 0
        self.stillborn = 0

    def may_hire(self, together: bool) -> bool:
        """Whether one more hand may be asked for.

        Where trades share machines, no trade has more waiting for room than it has at work (or
        two): many that want the one GPU must not take the threads of those who want a core.
        """
        if not self.todo or len(self.numbers) >= self.most:
            return False
        return not together or self.hiring < max(2, len(self.numbers) - self.hiring)


class Crew(Generic[R]):
    """Works at jobs, in any order; to be used in a `with` block.

    Args:
        engine: Who hires.
        jobs: Each trade with its tasks.
    """

    def __init__(self, engine: Engine, jobs: Sequence[tuple[Trade, Sequence[Task[R]]]]) -> None:
        self._engine = engine
        self._jobs = [_Job(t, tasks, engine.hands(t, len(tasks))) for t, tasks in jobs if tasks]
        self._changed = threading.Condition()
        self._stop = False
        self._hands: set[Hand] = set()
        self._told: queue.SimpleQueue[tuple[R, ...] | BaseException | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._looking: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.dismiss()

    @property
    def alive(self) -> int:
        """How many hands there are now."""
        return len(self._hands)

    def results(self) -> Iterator[R]:
        """What the tasks tell, as it comes. Raises what a thread raised."""
        return (told for told in self.ticking() if told is not None)

    def ticking(self) -> Iterator[R | None]:
        """The same, and None every now and then while nothing comes."""
        self._gather()
        looked = time.monotonic()
        while any(job.left for job in self._jobs) or not self._told.empty():
            if time.monotonic() - looked > LOOK_EVERY:
                self._look()
                looked = time.monotonic()
            try:
                got = self._told.get(timeout=TICK)
            except queue.Empty:
                self._gather()  # there may be room for more now
                yield None
                continue
            if isinstance(got, BaseException):
                raise got
            yield from got or ()

    def dismiss(self) -> None:
        """End all hands now."""
        with self._changed:
            self._stop = True
            hands = list(self._hands)
            self._changed.notify_all()
        for hand in hands:
            hand.end()
        for thread in self._threads:
            thread.join()
        if self._looking is not None:
            self._looking.join()

    def _gather(self) -> None:
        """Start as many threads as there may be hands."""
        most = [job.most for job in self._jobs] or [0]
        # Some more wait for room, for a trade whose resources come free first.
        enough = 4 * max(most) + 2 * len(most)
        count = min(sum(most), enough) if self._engine.together else max(most)
        for _ in range(count - len(self._threads)):
            self._threads.append(threading.Thread(target=self._serve, daemon=True))
            self._threads[-1].start()

    def _look(self) -> None:
        """Look for room for more hands, beside the work: who is asked may be long in answering."""
        self._gather()
        if self._looking is None or not self._looking.is_alive():
            self._looking = threading.Thread(target=self._grow, daemon=True)
            self._looking.start()

    def _grow(self) -> None:
        """Want more hands where machines have joined."""
        for job in self._jobs:
            # What is wrong with the engine, the threads that hire will tell.
            with contextlib.suppress(Exception):
                most = self._engine.hands(job.trade, len(job.numbers) + len(job.todo))
                with self._changed:
                    job.most = max(job.most, most)
                    self._changed.notify_all()

    # -- the threads --------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            while (chosen := self._choose()) is not None:
                job, number = chosen
                try:
                    self._work(job, number)
                finally:
                    with self._changed:
                        job.numbers.discard(number)
                        self._changed.notify_all()
        except BaseException as error:  # the driver raises it
            self._told.put(error)

    def _choose(self) -> tuple[_Job[R], int] | None:
        """The job that wants a hand most, and the hand's number; None when all is done."""
        with self._changed:
            while not self._stop:
                open_ = [job for job in self._jobs if job.left]
                if not open_:
                    return None
                together = self._engine.together
                among = open_ if together else open_[:1]
                wanting = [job for job in among if job.may_hire(together)]
                if wanting:
                    job = min(wanting, key=lambda job: len(job.numbers) / job.most)
                    number = min(set(range(job.most)) - job.numbers)
                    job.numbers.add(number)
                    job.hiring += 1
                    return job, number
                self._changed.wait()
        return None

    def _work(self, job: _Job[R], number: int) -> None:
        """Hire a hand and give it tasks until none is left, or it dies."""
        try:
            try:
                hand = self._engine.hire(
                    job.trade, number, job.most, lambda: self._stop or not job.todo
                )
            finally:
                with self._changed:
                    job.hiring -= 1
                    self._changed.notify_all()
        except WorkerDied as error:
            with self._changed:
                job.stillborn += 1
                rounds = job.stillborn / len(job.numbers)
                if rounds >= DEATHS:  # of all who are hired at once, and none lived
                    raise EngineError(f"no worker can be started: {error}") from None
                # A machine that is short of memory may have some soon.
                self._changed.wait_for(lambda: self._stop, timeout=2.0**rounds)
            return
        if hand is None:
            return
        with self._changed:
            job.stillborn = 0
            self._hands.add(hand)
        try:
            while (task := self._draw(job)) is not None:
                try:
                    for answer in hand.ask(task.ask()):
                        self._told.put((task.heard(answer),))
                except WorkerDied as error:
                    if not self._stop:
                        self._bury(job, task, str(error))
                    return
                self._settle(job, -1)
        finally:
            with self._changed:
                self._hands.discard(hand)
            hand.end()

    def _draw(self, job: _Job[R]) -> Task[R] | None:
        with self._changed:
            return job.todo.popleft() if job.todo and not self._stop else None

    def _bury(self, job: _Job[R], task: Task[R], why: str) -> None:
        again, told = task.died(why)
        if told:
            self._told.put(tuple(told))
        self._settle(job, len(again) - 1, again)

    def _settle(self, job: _Job[R], more: int, again: Sequence[Task[R]] = ()) -> None:
        with self._changed:
            job.todo.extend(again)
            job.left += more
            self._changed.notify_all()
        self._told.put(None)  # so that the driver looks whether all is done
