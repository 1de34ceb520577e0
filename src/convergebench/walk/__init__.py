"""Walking chains: worker threads per editor, one step after the other, each durable."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from types import FrameType
from typing import Any, Final

from convergebench.chain import PAUSES, Chain, ChainKey, Step, count_outcomes
from convergebench.cycle import Cycle
from convergebench.editor import Editor, EditRequest, Turn
from convergebench.errors import StoreFull
from convergebench.frame import Frame
from convergebench.money.budget import Budget
from convergebench.money.ledger import KILLED, UNRECORDED, Entry, Ledger, lost_calls, now
from convergebench.planner import asked_of, concurrency
from convergebench.runspec import RunSpec
from convergebench.store import RunStore
from convergebench.suite import region_box
from convergebench.walk.attempts import Attempted, Attempts
from convergebench.walk.calls import Caller
from convergebench.walk.flow import Flow
from convergebench.walk.telling import Observer as Observer
from convergebench.walk.telling import Progress as Progress
from convergebench.walk.till import Errand, Till

OVER_BUDGET: Final = "the budget is used up"
INTERRUPTED: Final = "interrupted"
LAST_WORDS: Final = 1.0
"""Seconds that an observer has at the second Ctrl-C."""


class Walk:
    """One session of a run: which chains go how far, and what happened.

    Args:
        store: The run directory, held for writing.
        spec: How far chains go, how patiently, at what cost.
        editors: The editors by name.
        chains: The chains to walk, as recorded so far; those without records are not yet begun.
        begun: Keys of the chains that have a file.
        spent: Dollars spent on this run before.
        ledger: The run's ledger, mended.
        begun_tasks: Calls of earlier sessions by chain whose task was begun and not collected.
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
        ledger: Ledger | None = None,
        begun_tasks: Mapping[str, Entry] | None = None,
        retry_failed: bool = False,
        observe: Observer | None = None,
    ) -> None:
        self.chains = dict(chains)
        self._tasks = dict(begun_tasks or {})
        held = sum(entry.reserved.dollars for entry in self._tasks.values())
        self.budget = Budget(spec.budget, spent, held)
        self.made = 0
        self._why: list[str] = []
        self._store = store
        self._spec = spec
        self._editors = editors
        self._begun = begun
        self._observe = observe
        self._stop = threading.Event()
        self._lock = threading.RLock()
        self._error: BaseException | None = None
        self._till = Till(self.budget, ledger or Ledger(store))
        limits = {n: (e.spec.account, concurrency(spec, e.spec)) for n, e in editors.items()}
        self._flow = Flow(limits, self._tell)
        self._attempts = Attempts(self._till, self._flow, spec.retries, self._stop, self._tell)
        failed = {k for k, c in chains.items() if c.last and c.last.outcome == "failed"}
        self._reopened = failed if retry_failed else set()
        self._reopened |= {key for key in chains if key.id in self._tasks}
        self._targets = {k: spec.steps_of(self._cycle(k)) for k in chains}
        self._outcomes = Counter(count_outcomes(chains.values()))
        self._done = sum(self.is_done(chain) for chain in chains.values())
        self._received = 0
        self._steps = dict.fromkeys(editors, (0, 0))
        for chain in chains.values():
            self._count(chain.key.editor, chain.length, self._reach(chain))

    @property
    def stopped(self) -> str:
        """Why chains are left that could go on; empty when none is."""
        return INTERRUPTED if INTERRUPTED in self._why else "; ".join(self._why)

    @property
    def notes(self) -> list[str]:
        """What the user is to know about the money."""
        return self._till.notes

    def is_done(self, chain: Chain) -> bool:
        """Whether nothing is left to do for a chain."""
        ended = chain.ended and chain.key not in self._reopened
        return ended or chain.length >= self._targets[chain.key]

    def _reach(self, chain: Chain) -> int:
        """How many steps a chain will have, unless it ends before."""
        return chain.length if self.is_done(chain) else self._targets[chain.key]

    def _count(self, editor: str, made: int, planned: int) -> None:
        done, total = self._steps[editor]
        self._steps[editor] = (done + made, total + planned)

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
            try:
                for worker in workers:
                    worker.start()
                for worker in workers:
                    while worker.is_alive():  # in slices, so that signals are heard
                        worker.join(0.2)
            finally:
                self._till.close()
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
            request = self._request(chain, tip, editor)
            errand = self._errand(chain, request, editor)
            if errand.price is None or errand.price.high > 0:
                self._begin(chain)  # so that a kill in its first call can be recorded
            if self._store.is_remote and key.settings.session == "chat":
                for ref in chain.frames:  # fetched now, not while the editor's time runs
                    self._store.frame_path(ref)
            entry = self._tasks.pop(key.id, None)
            receipt = self._till.take_up(entry, errand) if entry else None
            started, clock = now(), time.monotonic()
            made = self._attempts.make(caller, editor, request, errand, receipt)
            if made is None:
                return
            if made.answer.outcome in PAUSES:
                self._pause(chain, request, made)
                return
            step = self._step(chain, request, made, started, time.monotonic() - clock)
            self._record(chain, step, made.answer.frame)
            if made.receipt is not None:
                cost, basis = step.call.cost or 0.0, step.call.basis or "none"
                made.receipt.settle(cost, basis, step.outcome, step.call.request_id)
            tip = made.answer.frame if step.outcome == "edited" else None
            if self._store.full:
                raise StoreFull(
                    f"no space left for {self._store.place}. Every reply received so far is saved: "
                    "free some space and run the same command again."
                )

    def _request(self, chain: Chain, tip: Frame, editor: Editor) -> EditRequest:
        key, cycle, step = chain.key, self._cycle(chain.key), chain.length + 1
        edit = cycle.edit_at(step)
        told = {s.step: s for s in chain.steps if s.outcome == "edited"}
        return EditRequest(
            inputs=tuple(
                tip if i == step - 1 else self._store.frame(chain.frames[i])
                for i in cycle.inputs_at(step)
            ),
            prompt=edit.wording(key.settings.phrasing, cycle.round_of(step)),
            edit=edit,
            step=step,
            seed=key.seed(step) if editor.spec.abilities.seeds else None,
            settings=key.settings,
            region=region_box(edit, self._store.suite.source_named(key.source)),
            history=tuple(
                Turn(i, told[i].prompt, partial(self._store.frame, ref), told[i].call.session)
                if i in told
                else Turn(i, "", partial(self._store.frame, ref))
                for i, ref in enumerate(chain.frames)
            ),
            deadline=self._spec.deadline_of(editor.spec.seconds),
            chain=key.id,
            attempt=1 + sum(record.attempts for record in lost_calls(chain)),
            key=key,
            home_size=_size(chain),
        )

    def _errand(self, chain: Chain, request: EditRequest, editor: Editor) -> Errand:
        asked = asked_of(chain.key, self._cycle(chain.key), request.step, _size(chain) or (0, 0))
        task, paid = _timed_out(chain)
        return Errand(
            chain=chain.key.id,
            step=request.step,
            editor=chain.key.editor,
            provider=editor.spec.account.partition("/")[0],
            price=editor.spec.price_of(asked),
            seed=request.seed,
            task=task,
            paid=paid,
        )

    def _step(
        self, chain: Chain, request: EditRequest, made: Attempted, started: str, seconds: float
    ) -> Step:
        answer, receipt = made.answer, made.receipt
        lost = [record for record in lost_calls(chain) if record.detail not in (KILLED, UNRECORDED)]
        # A task that was only collected, and is gone, leaves the step as it was.
        collected = receipt is not None and receipt.collects
        return Step(
            step=request.step,
            outcome=answer.outcome,
            prompt=request.prompt,
            inputs=tuple(frame.digest for frame in request.inputs),
            seed=request.seed,
            frame=answer.ref,
            detail=answer.detail,
            attempts=made.calls,
            call=receipt.charge(answer) if receipt else answer.call,
            started=started,
            seconds=round(seconds, 4),
            again=answer.lost and (collected or len(lost) < self._spec.repeat_lost),
        )

    def _pause(self, chain: Chain, request: EditRequest, made: Attempted) -> None:
        outcome, detail = made.answer.outcome, made.answer.detail
        account = self._editors[chain.key.editor].spec.account.partition("/")[0]
        blocked = f"blocked by {account or chain.key.editor}: {detail}"
        why = OVER_BUDGET if outcome == "over-budget" else blocked
        with self._lock:
            if why not in self._why:
                self._why.append(why)
        if chain.last is None or chain.last.outcome != outcome:
            self._record(chain, self._step(chain, request, made, now(), 0.0))

    def _begin(self, chain: Chain) -> None:
        if chain.key not in self._begun:
            self._store.start(chain)
            self._begun.add(chain.key)

    def _record(self, chain: Chain, step: Step, frame: Frame | None = None) -> None:
        key = chain.key
        self._begin(chain)
        self._store.append(key.id, step, frame)
        with self._lock:
            before = self._reach(chain)
            self._reopened.discard(key)
            self.chains[key] = chain.with_step(step)
            edited = step.outcome == "edited"
            self.made += edited
            self._received += len(frame.data) if frame else 0
            self._count(key.editor, edited, self._reach(self.chains[key]) - before)
            if chain.last and chain.last.step == step.step:
                self._outcomes[chain.last.outcome] -= 1
            self._outcomes[step.outcome] += 1
            self._done += self.is_done(self.chains[key])
        if edited:
            self._tell("")
            return
        reason = f" ({step.detail})" if step.detail else ""
        told = {"step": step.step, "outcome": step.outcome, "detail": step.detail}
        what = f"{key.id}: step {step.step} {step.outcome}{reason}"
        self._tell(what, step={"chain": key.id, **told})

    def _tell(self, event: str, *, step: Mapping[str, Any] | None = None, last: int = 0) -> None:
        if self._observe is None:
            return
        with self._lock:
            self._observe(
                Progress(
                    chains=len(self.chains),
                    chains_done=self._done,
                    steps=sum(total for _, total in self._steps.values()),
                    steps_done=sum(done for done, _ in self._steps.values()),
                    failures=sum(n for outcome, n in self._outcomes.items() if outcome != "edited"),
                    spent=self.budget.spent,
                    event=event,
                    step=step,
                    bytes=self._received,
                    workers=self._flow.in_flight,
                    editors=dict(self._steps),
                    last=last,
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
                self._last_words(128 + number)
                os._exit(128 + number)
            self._why.append(INTERRUPTED)
            self._stop.set()
            self._tell("stopping: finishing the calls in flight; Ctrl-C again stops at once")

        before = {s: signal.signal(s, heard) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _last_words(self, code: int) -> None:
        """Say that the process ends now: by the observer if it is quick, so that it can tidy up."""
        told = "stopped at once; all records are saved. Calls in flight may be billed: the next "
        told += "run counts them."
        if self._observe is not None:
            # In a thread, because one that was interrupted may hold a lock for ever.
            teller = threading.Thread(
                target=self._tell, args=(told,), kwargs={"last": code}, daemon=True
            )
            teller.start()
            teller.join(LAST_WORDS)
            if not teller.is_alive():
                return
        os.write(2, f"\n{told}\n".encode())


def _size(chain: Chain) -> tuple[int, int] | None:
    source = chain.source
    return (source.width, source.height) if source and source.width and source.height else None


def _timed_out(chain: Chain) -> tuple[dict[str, Any] | None, float]:
    """The next step's task that nobody waited for to the end, and what was assumed for it."""
    records = [record for record in chain.steps if record.step == chain.length + 1]
    last = next((r for r in reversed(records) if r.outcome not in PAUSES), None)
    if last is None or last.outcome != "failed" or not last.call.task:
        return None, 0.0
    task = last.call.task
    return task, sum(record.call.cost or 0.0 for record in records if record.call.task == task)
