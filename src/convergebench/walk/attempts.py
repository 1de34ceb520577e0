"""The tries of one step: which are repeated, after what time, and what each of them cost.

Only unavailability is retried, after the time the editor asked for or an exponential backoff; every
try has a reservation of its own. A call that ran into its deadline may have been billed and is not
repeated. A provider that shuts the account out is not asked again in this session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from convergebench.editor import Editor, EditRequest
from convergebench.engines import DEATHS
from convergebench.engines.editing import AwayEditor
from convergebench.errors import AccountBlocked, EditorError, EditorUnavailable
from convergebench.walk.calls import LONGEST_WAIT, Answer, Caller, call_of, make_call, pause, said
from convergebench.walk.flow import Flow, Limiter, Permit
from convergebench.walk.till import Errand, Receipt, Till


@dataclass(frozen=True)
class Attempted:
    """What a step came to after so many calls; `receipt` is to be settled once it is recorded."""

    answer: Answer
    calls: int
    receipt: Receipt | None = None


@dataclass(frozen=True)
class _Again:
    """To be tried again after that many seconds; with a receipt, its task is asked for."""

    wait: float
    why: str
    receipt: Receipt | None


@dataclass(frozen=True)
class Attempts:
    """Makes the calls of steps.

    Attributes:
        till: Reserves and settles.
        flow: Says how many calls are in flight.
        retries: Tries after one that found the editor unavailable.
        stop: Set when the run is to stop.
        tell: Told of waits.
    """

    till: Till
    flow: Flow
    retries: int
    stop: threading.Event
    tell: Callable[[str], None]

    def make(
        self,
        caller: Caller,
        editor: Editor,
        request: EditRequest,
        errand: Errand,
        receipt: Receipt | None = None,
    ) -> Attempted | None:
        """Call an editor until it answers, refuses, fails for good or the retries are used up.

        Returns None when the run was stopped before a call or while waiting for a retry: nothing
        is recorded, and the step is made when the run is resumed.

        Args:
            caller: The thread that calls.
            editor: Whom to ask.
            request: What to ask.
            errand: What it is for, and what it may cost.
            receipt: The reservation of an earlier session whose task is asked for.
        """
        for count in range(1, self.retries + 2):
            found = self._try(caller, editor, request, errand, receipt, count)
            if not isinstance(found, _Again):
                return found
            receipt = found.receipt
            if found.why:
                self.tell(
                    f"{request.chain}: try {count} failed ({found.why}); next in {found.wait:.1f} s"
                )
            self.flow.of(errand.editor).sleep(found.wait, self.stop)
            if self.stop.is_set():
                if receipt is not None:
                    receipt.leave()
                return None
        raise AssertionError("unreachable: the last attempt always returns")

    def _try(
        self,
        caller: Caller,
        editor: Editor,
        request: EditRequest,
        errand: Errand,
        receipt: Receipt | None,
        count: int,
    ) -> Attempted | _Again | None:
        limiter, attempt = self.flow.of(errand.editor), request.attempt + count - 1
        # Money first, then leave to call: who waits for money must not keep the leave from a call
        # whose end it waits for.
        receipt = receipt or self.till.reserve(errand, attempt, self.stop)
        if receipt is None:
            stopped = self.stop.is_set()
            return None if stopped else Attempted(self.till.over(errand), count - 1)
        permit = limiter.acquire(self.stop)
        if permit is None:
            receipt.leave()
            closed = limiter.closed and not self.stop.is_set()
            return Attempted(Answer("blocked", limiter.closed), count - 1) if closed else None
        answered = False
        try:
            self.tell("")  # that a call is in flight
            asked = replace(
                request, attempt=attempt, task=receipt.task or None, on_task=receipt.begin
            )
            answer = self._called(caller, editor, asked, receipt)
            if answer is None:
                receipt.leave()
                return None
            answered = True
            return Attempted(answer, count, receipt)
        except AccountBlocked as error:
            return _blocked(limiter, said(error), error, count, receipt)
        except EditorUnavailable as error:
            return self._unavailable(error, limiter, permit, count, receipt)
        finally:
            limiter.release(permit, answered=answered)

    def _called(
        self, caller: Caller, editor: Editor, asked: EditRequest, receipt: Receipt
    ) -> Answer | None:
        """What an editor answers; None when the run was stopped before it had a worker."""
        if not isinstance(editor, AwayEditor):
            receipt.open()
            return make_call(caller, editor, asked)
        for number in range(1, DEATHS + 1):
            with editor.turn(self.stop, number) as seat:
                if seat is None:
                    return None
                if number == 1:
                    receipt.open()
                answer = make_call(caller, seat, asked)
                if not seat.died or number == DEATHS:
                    return answer
            self.tell(f"{asked.chain}: {answer.detail}; another takes over")
        raise AssertionError("unreachable: the last turn always returns")

    def _unavailable(
        self,
        error: EditorUnavailable,
        limiter: Limiter,
        permit: Permit,
        count: int,
        receipt: Receipt | None,
    ) -> Attempted | _Again:
        wait = pause(count, error.retry_after)
        if error.limited and wait > LONGEST_WAIT:
            why = f"limited for {wait:.0f} s: {said(error)}"
            return _blocked(limiter, why, error, count, receipt)
        if error.limited:
            limiter.too_many(permit, None if error.retry_after is None else wait)
        if count > self.retries or wait > LONGEST_WAIT:
            reason = (
                f"unavailable after {count} attempts"
                if count > self.retries
                else f"unavailable for {wait:.0f} s"
            )
            # With a task it was begun, and perhaps billed, all the same.
            begun = receipt is not None and bool(receipt.task)
            call = call_of(error.told).model_copy(update={"cost": None, "basis": ""})
            detail = f"{reason}: {said(error)}"
            return Attempted(Answer("failed", detail, call=call, in_doubt=begun), count, receipt)
        if receipt is not None and not receipt.task:
            kind = "limited" if error.limited else "unavailable"
            receipt.settle(0.0, "none", kind, call_of(error.told).request_id)
            receipt = None
        # Of a limit the account's limiter tells once, not every chain that runs into it.
        return _Again(wait, "" if error.limited else said(error), receipt)


def _blocked(
    limiter: Limiter, why: str, error: EditorError, count: int, receipt: Receipt | None
) -> Attempted:
    """The account is closed for this session. A task that was begun is asked for in the next."""
    limiter.close(why)
    if receipt is not None and receipt.task:
        receipt.leave()
    elif receipt is not None:
        receipt.settle(0.0, "none", "blocked", call_of(error.told).request_id)
    call = call_of(error.told).model_copy(update={"cost": None, "basis": ""})
    return Attempted(Answer("blocked", why, call=call), count)
