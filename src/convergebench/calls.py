"""One call of an editor: its deadline, its retries, and the outcome it comes to.

Only unavailability is retried, after the time the editor asked for or an exponential backoff. A
call that ran into its deadline may have been billed and is not repeated.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from convergebench.chain import Call, FrameRef, Outcome
from convergebench.editor import Editor, EditReply, EditRequest
from convergebench.errors import (
    EditorFailed,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
    MalformedImage,
    scrub,
)
from convergebench.frame import Frame

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 600.0
_DETAIL: Final = 2000


class _TimedOut(Exception):
    pass


class Caller:
    """Makes calls in a thread of its own, so that one that takes too long can be given up.

    A call given up goes on in its thread, unheard; the next call gets a new thread.
    """

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Editor, EditRequest] | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[EditReply | BaseException] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, editor: Editor, request: EditRequest) -> EditReply:
        """The editor's reply. Raises what the editor raises, or _TimedOut."""
        if self._thread is None:
            self._tasks, self._replies = queue.SimpleQueue(), queue.SimpleQueue()
            target, queues = self._work, (self._tasks, self._replies)
            self._thread = threading.Thread(target=target, args=queues, daemon=True, name="call")
            self._thread.start()
        self._tasks.put((editor, request))
        try:
            got = self._replies.get(timeout=request.deadline)
        except queue.Empty:
            self.close()
            raise _TimedOut from None
        if isinstance(got, BaseException):
            raise got
        return got

    def close(self) -> None:
        """Let the thread end when it is done."""
        self._tasks.put(None)
        self._thread = None

    @staticmethod
    def _work(
        tasks: queue.SimpleQueue[tuple[Editor, EditRequest] | None],
        replies: queue.SimpleQueue[EditReply | BaseException],
    ) -> None:
        while (task := tasks.get()) is not None:
            editor, request = task
            try:
                replies.put(editor.edit(request))
            except BaseException as error:  # handed to the waiting thread, which raises it
                replies.put(error)


@dataclass(frozen=True)
class Answer:
    """What a step came to."""

    outcome: Outcome
    attempts: int
    detail: str = ""
    frame: Frame | None = None
    ref: FrameRef | None = None
    call: Call = field(default_factory=Call)
    may_be_billed: bool = False


def ask(
    caller: Caller,
    editor: Editor,
    request: EditRequest,
    *,
    retries: int,
    stop: threading.Event,
    on_retry: Callable[[int, float, str], None],
) -> Answer | None:
    """Call an editor until it answers, refuses, fails for good or the retries are used up.

    Returns None when `stop` was set while waiting for a retry: nothing happened, nothing is
    recorded, and the step is made when the run is resumed.
    """
    for attempt in range(1, retries + 2):
        try:
            reply = caller.call(editor, replace(request, attempt=attempt))
        except EditorUnavailable as error:
            wait = _wait(attempt, error.retry_after)
            if attempt > retries or wait > LONGEST_WAIT:
                reason = (
                    f"unavailable after {attempt} attempts"
                    if attempt > retries
                    else f"unavailable for {wait:.0f} s"
                )
                return Answer("failed", attempt, f"{reason}: {_said(error)}")
            on_retry(attempt, wait, _said(error))
            if stop.wait(wait):
                return None
        except EditorRefused as error:
            return Answer("refused", attempt, _said(error))
        except EditorNoImage as error:
            return Answer("no-image", attempt, _said(error))
        except EditorFailed as error:
            return Answer("failed", attempt, _said(error))
        except _TimedOut:
            detail = f"timed out after {request.deadline:g} s"
            return Answer("failed", attempt, detail, may_be_billed=True)
        except Exception as error:  # an editor is foreign code: its bugs are data, too
            return Answer("failed", attempt, f"{type(error).__name__}: {_said(error)}")
        else:
            try:
                return _received(reply, attempt)
            except Exception as error:  # a reply of the wrong make; the call was made all the same
                got = f"a reply that is no EditReply ({type(reply).__name__}: {_said(error)})"
                return Answer("failed", attempt, got, may_be_billed=True)
    raise AssertionError("unreachable: the last attempt always returns")


def _received(reply: EditReply, attempt: int) -> Answer:
    call = Call(
        model=reply.model,
        request_id=reply.request_id,
        effective_prompt=reply.effective_prompt,
        parameters=dict(reply.parameters),
        usage=dict(reply.usage),
        cost=reply.cost,
        reasoning=reply.reasoning,
        caveats=reply.caveats,
    )
    if not reply.data:
        return Answer("no-image", attempt, "the reply holds no bytes", call=call)
    frame = Frame(bytes(reply.data))
    try:
        return Answer("edited", attempt, "", frame, FrameRef.of(frame), call)
    except MalformedImage as error:
        ref = FrameRef.of_malformed(frame)
        return Answer("malformed", attempt, str(error), frame, ref, call)


def _wait(attempt: int, asked: float | None) -> float:
    if asked is not None:
        return max(0.0, asked)
    # Jitter keeps parallel chains from coming back all at once.
    doubled: float = FIRST_WAIT * 2.0 ** (attempt - 1)
    return min(60.0, doubled) * random.uniform(0.5, 1.0)


def _said(error: BaseException) -> str:
    return scrub(str(error).strip() or type(error).__name__)[:_DETAIL]
