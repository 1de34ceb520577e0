"""Walking chains: worker threads per editor, one step after the other, each durable."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import Final

from convergebench.budget import Budget
from convergebench.calls import Answer, Caller, ask
from convergebench.chain import Chain, ChainKey, Step, count_outcomes
from convergebench.cycle import Cycle
from convergebench.editor import Editor, EditRequest, Turn
from convergebench.errors import StoreFull
from convergebench.frame import Frame
from convergebench.planner import concurrency
from convergebench.runspec import RunSpec
from convergebench.store import RunStore
from convergebench.suite import region_box

OVER_BUDGET: Final = "the budget is used up"


@dataclass(frozen=True)
class Progress:
    """Where a run stands; given to the observer after every event."""

    chains: int
    chains_done: int
    steps: int
    steps_done: int
    failures: int
    spent: float
    event: str = ""


Observer = Callable[[Progress], None]


class Walk:
    """One session of a run: which chains go how far, and what happened.

    Args:
        store: The run directory, held for writing.
        spec: How far chains go, how patiently, at what cost.
        editors: The editors by name.
        chains: The chains to walk, as recorded so far; those without records are not yet begun.
        begun: Keys of the chains that have a file.
        spent: Dollars spent on this run before.
        retry_failed: Whether chains that ended in `failed` are taken up again.
        observe: Told of every event, one at a time.
    """

    def __init__(
        self,
        store: RunStore,
        spec: RunSpec,
        editors: Mapping[str, Editor],
        chains: Mapping[ChainKey, Chain],
        *,
        begun: set[ChainKey],
        spent: float = 0.0,
        retry_failed: bool = False,
        observe: Observer | None = None,
    ) -> None:
        self.chains = dict(chains)
        self.budget = Budget(spec.budget, spent)
        self.made = 0
        self.stopped = ""
        self._store = store
        self._spec = spec
        self._editors = editors
        self._begun = begun
        self._observe = observe
        self._stop = threading.Event()
        self._lock = threading.RLock()
        self._error: BaseException | None = None
        failed = {k for k, c in chains.items() if c.last and c.last.outcome == "failed"}
        self._reopened = failed if retry_failed else set()
        self._targets = {k: spec.steps_of(self._cycle(k)) for k in chains}
        self._goal = sum(self._targets.values())
        self._outcomes = Counter(count_outcomes(chains.values()))
        self._done = sum(self.is_done(chain) for chain in chains.values())
        self._length = sum(chain.length for chain in chains.values())

    def is_done(self, chain: Chain) -> bool:
        """Whether nothing is left to do for a chain."""
        ended = chain.ended and chain.key not in self._reopened
        return ended or chain.length >= self._targets[chain.key]

    def go(self) -> None:
        """Walk all chains; returns when done or stopped. Raises what a worker raised."""
        todo: dict[str, queue.SimpleQueue[ChainKey]]
        todo = {name: queue.SimpleQueue() for name in self._editors}
        for key, chain in self.chains.items():
            if not self.is_done(chain):
                todo[key.editor].put(key)
        workers = [
            threading.Thread(target=self._work, args=(editor, todo[name]), name=f"{name} {i}")
            for name, editor in self._editors.items()
            for i in range(min(concurrency(self._spec, editor.spec), todo[name].qsize()))
        ]
        self._tell("")
        with self._signals():
            for worker in workers:
                worker.start()
            for worker in workers:
                while worker.is_alive():  # in slices, so that signals are heard
                    worker.join(0.2)
        if self._error is not None:
            raise self._error

    def _work(self, editor: Editor, todo: queue.SimpleQueue[ChainKey]) -> None:
        caller = Caller()
        try:
            while not self._stop.is_set():
                try:
                    key = todo.get_nowait()
                except queue.Empty:
                    return
                self._walk(caller, editor, key)
        except BaseException as error:  # ends the run, once the others have saved their steps
            with self._lock:
                self._error = self._error or error
            self._stop.set()
        finally:
            caller.close()

    def _walk(self, caller: Caller, editor: Editor, key: ChainKey) -> None:
        tip: Frame | None = None
        while not self._stop.is_set() and not self.is_done(self.chains[key]):
            chain = self.chains[key]
            tip = tip or self._store.frame(chain.frames[-1])
            request = self._request(chain, tip)
            price = editor.spec.price or 0.0
            if not self.budget.reserve(price):
                self._pause(chain, request)
                return
            started, clock = _now(), time.monotonic()
            answer, cost = None, 0.0
            try:
                answer = ask(
                    caller,
                    editor,
                    request,
                    retries=self._spec.retries,
                    stop=self._stop,
                    on_retry=partial(self._retrying, key.id),
                )
                cost = _cost(answer, price) if answer else 0.0
            finally:
                self.budget.settle(price, cost)
            if answer is None:
                return
            answer = replace(answer, call=answer.call.model_copy(update={"cost": cost}))
            step = _step(request, answer, started, time.monotonic() - clock)
            self._record(chain, step, answer.frame)
            tip = answer.frame
            if self._store.full:
                raise StoreFull(
                    f"no space left for {self._store.path}. Every reply received so far is saved: "
                    "free some space and run the same command again."
                )

    def _request(self, chain: Chain, tip: Frame) -> EditRequest:
        key, cycle, step = chain.key, self._cycle(chain.key), chain.length + 1
        edit = cycle.edit_at(step)
        prompts = {s.step: s.prompt for s in chain.steps}
        return EditRequest(
            inputs=tuple(
                tip if i == step - 1 else self._store.frame(chain.frames[i])
                for i in cycle.inputs_at(step)
            ),
            prompt=edit.wording(key.settings.phrasing, cycle.round_of(step)),
            edit=edit,
            step=step,
            seed=key.seed(step),
            settings=key.settings,
            region=region_box(edit, self._store.suite.source_named(key.source)),
            history=tuple(
                Turn(i, prompts.get(i, ""), partial(self._store.frame, ref))
                for i, ref in enumerate(chain.frames)
            ),
            deadline=self._spec.deadline,
            chain=key.id,
        )

    def _pause(self, chain: Chain, request: EditRequest) -> None:
        self.stopped = OVER_BUDGET
        if chain.last is None or chain.last.outcome != "over-budget":
            self._record(chain, _step(request, Answer("over-budget", 0), _now(), 0.0))

    def _record(self, chain: Chain, step: Step, frame: Frame | None = None) -> None:
        key = chain.key
        if key not in self._begun:
            self._store.start(chain)
            self._begun.add(key)
        self._store.append(key.id, step, frame)
        with self._lock:
            self._reopened.discard(key)
            self.chains[key] = chain.with_step(step)
            edited = step.outcome == "edited"
            self.made += edited
            self._length += edited
            if chain.last and chain.last.step == step.step:
                self._outcomes[chain.last.outcome] -= 1
            self._outcomes[step.outcome] += 1
            self._done += self.is_done(self.chains[key])
        reason = f" ({step.detail})" if step.detail else ""
        self._tell("" if edited else f"{key.id}: step {step.step} {step.outcome}{reason}")

    def _retrying(self, chain: str, attempt: int, wait: float, why: str) -> None:
        self._tell(f"{chain}: try {attempt} failed ({why}); next in {wait:.1f} s")

    def _tell(self, event: str) -> None:
        if self._observe is None:
            return
        with self._lock:
            self._observe(
                Progress(
                    chains=len(self.chains),
                    chains_done=self._done,
                    steps=self._goal,
                    steps_done=self._length,
                    failures=sum(n for outcome, n in self._outcomes.items() if outcome != "edited"),
                    spent=self.budget.spent,
                    event=event,
                )
            )

    def _cycle(self, key: ChainKey) -> Cycle:
        return self._store.suite.cycle_of(key.cycle)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C once: finish the calls in flight. Twice: stop now; all records are durable."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def heard(number: int, _frame: FrameType | None) -> None:
            if self._stop.is_set():
                os.write(2, b"\nstopped at once; all records are saved, calls in flight are lost\n")
                os._exit(128 + number)
            self.stopped = "interrupted"
            self._stop.set()
            self._tell("stopping: finishing the calls in flight; Ctrl-C again stops at once")

        before = {s: signal.signal(s, heard) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _cost(answer: Answer, price: float) -> float:
    """What a call cost: as the provider says, else its price if it was or may have been billed."""
    if answer.call.cost is not None:
        return answer.call.cost
    billed = answer.outcome in ("edited", "malformed") or answer.may_be_billed
    return price if billed else 0.0


def _step(request: EditRequest, answer: Answer, started: str, seconds: float) -> Step:
    return Step(
        step=request.step,
        outcome=answer.outcome,
        prompt=request.prompt,
        inputs=tuple(frame.digest for frame in request.inputs),
        seed=request.seed,
        frame=answer.ref,
        detail=answer.detail,
        attempts=answer.attempts,
        call=answer.call,
        started=started,
        seconds=round(seconds, 4),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
