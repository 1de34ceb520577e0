"""One call of an editor: its deadline, and the outcome it comes to."""

from __future__ import annotations

import json
import math
import queue
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, ParamSpec, TypeVar

from convergebench.chain import Call, FrameRef, Outcome
from convergebench.editor import Editor, EditReply, EditRequest
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
    MalformedImage,
    StoreError,
    scrub,
)
from convergebench.frame import Frame

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 600.0
_OUTCOMES: Final[dict[type[EditorError], Outcome]] = {
    EditorRefused: "refused",
    EditorNoImage: "no-image",
    EditorFailed: "failed",
    EditorLost: "failed",
}
_DETAIL: Final = 2000
_LOOK: Final = 0.05
"""Seconds after which a call is looked at again whose editor waits for us."""

P = ParamSpec("P")
T = TypeVar("T")


class _TimedOut(Exception):
    pass


class OurTime:
    """Seconds of a call in which its editor waits for us: for frames, or until a task is kept.

    A run's store may be away for minutes. That is no word about the editor.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = 0.0
        self._begun: list[float] = []

    @property
    def seconds(self) -> float:
        """As many as there were until now."""
        with self._lock:
            return self._done + (time.monotonic() - self._begun[0] if self._begun else 0.0)

    def measured(self, request: EditRequest) -> EditRequest:
        """A request, what it calls of ours being measured."""
        turns = [replace(turn, load=self._measured(turn.load)) for turn in request.history]
        return replace(request, history=tuple(turns), on_task=self._measured(request.on_task))

    def _measured(self, do: Callable[P, T]) -> Callable[P, T]:
        def measured(*args: P.args, **kwargs: P.kwargs) -> T:
            with self._lock:
                self._begun.append(time.monotonic())
            try:
                return do(*args, **kwargs)
            finally:
                with self._lock:  # of several at once, from the first's begin to the last's end
                    first = self._begun[0]
                    if len(self._begun) == 1:
                        self._done += time.monotonic() - first
                        self._begun.clear()
                    else:
                        self._begun.pop()

        return measured


class Caller:
    """Makes calls in a thread of its own, so that one that takes too long can be given up.

    A call given up goes on in its thread, unheard; the next call gets a new thread.
    """

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Editor, EditRequest] | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[EditReply | BaseException] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, editor: Editor, request: EditRequest, ours: OurTime) -> EditReply:
        """The editor's reply. Raises what the editor raises, or _TimedOut.

        Args:
            editor: Whom to ask.
            request: What to ask.
            ours: The time within the call that is not the editor's.
        """
        if self._thread is None:
            self._tasks, self._replies = queue.SimpleQueue(), queue.SimpleQueue()
            target, queues = self._work, (self._tasks, self._replies)
            self._thread = threading.Thread(target=target, args=queues, daemon=True, name="call")
            self._thread.start()
        self._tasks.put((editor, ours.measured(request)))
        end = time.monotonic() + request.deadline
        while True:
            left = end + ours.seconds - time.monotonic()
            try:
                got = self._replies.get(timeout=max(left, _LOOK))
                break
            except queue.Empty:
                if end + ours.seconds <= time.monotonic():
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
    """What a call came to.

    Attributes:
        outcome: In one word.
        detail: Why it is not `edited`.
        frame: The bytes that came, be they an image or not.
        ref: What decoding them found.
        call: What the editor told.
        in_doubt: Whether it may have been billed although nothing useful came.
        lost: Whether it is worth being made again: the answer was cut off, the task vanished.
    """

    outcome: Outcome
    detail: str = ""
    frame: Frame | None = None
    ref: FrameRef | None = None
    call: Call = field(default_factory=Call)
    in_doubt: bool = False
    lost: bool = False


def make_call(caller: Caller, editor: Editor, request: EditRequest) -> Answer:
    """Call an editor once.

    Raises:
        EditorUnavailable: It was not billed and is to be tried again.
        AccountBlocked: No call of the account succeeds now.
    """
    clock, ours = time.monotonic(), OurTime()

    def told(reply: EditReply | None) -> Call:
        seconds = time.monotonic() - clock - ours.seconds
        try:
            return call_of(reply, editor.spec.caveats, seconds)
        except Exception:  # what it told is of the wrong make; that it was called is known
            return call_of(None, editor.spec.caveats, seconds)

    try:
        reply = caller.call(editor, request, ours)
    except (EditorUnavailable, AccountBlocked, StoreError):  # the last of our own, not its
        raise
    except _TimedOut:
        detail = f"timed out after {request.deadline:g} s"
        return Answer("failed", detail, call=told(None), in_doubt=True)
    except EditorLost as error:
        call = told(error.told)
        if not error.timed_out:  # what is gone cannot be asked for again
            call = call.model_copy(update={"task": {}})
        lost = not error.timed_out
        return Answer("failed", said(error), call=call, in_doubt=True, lost=lost)
    except EditorError as error:
        outcome = _OUTCOMES.get(type(error), "failed")
        return Answer(outcome, said(error), call=told(error.told))
    except Exception as error:  # an editor is foreign code: its bugs are data, too
        detail = f"{type(error).__name__}: {said(error)}"
        return Answer("failed", detail, call=told(None), in_doubt=True)
    try:
        seconds = time.monotonic() - clock - ours.seconds
        return _received(reply, call_of(reply, editor.spec.caveats, seconds))
    except Exception as error:  # a reply of the wrong make; the call was made all the same
        got = f"a reply that is no EditReply ({type(reply).__name__}: {said(error)})"
        return Answer("failed", got, call=told(None), in_doubt=True)


def call_of(told: EditReply | None, caveats: tuple[str, ...] = (), latency: float = 0.0) -> Call:
    """What an editor told about a call, fit to be recorded: plain JSON without secrets."""
    found = Call(caveats=caveats, latency=round(latency, 4))
    if told is None:
        return found
    cost = told.cost
    if cost is not None and not (math.isfinite(cost) and cost >= 0):
        cost = None
    return Call.model_validate(
        plain(
            {
                "model": told.model,
                "request_id": told.request_id,
                "effective_prompt": told.effective_prompt,
                "parameters": dict(told.parameters),
                "usage": dict(told.usage),
                "cost": cost,
                "basis": (told.basis or "reported") if cost is not None else "",
                "reasoning": told.reasoning,
                "caveats": list(dict.fromkeys([*caveats, *told.caveats])),
                "size": told.size,
                "format": told.format,
                "session": dict(told.session),
                "task": dict(told.task),
                "latency": found.latency,
            }
        )
    )


def plain(told: Any) -> Any:
    """What came from an editor as JSON can hold it, and without the value of any secret."""
    return json.loads(scrub(json.dumps(told, default=str)))


def said(error: BaseException) -> str:
    """An error's text for a record."""
    return scrub(str(error).strip() or type(error).__name__)[:_DETAIL]


def pause(count: int, asked: float | None) -> float:
    """Seconds to wait after so many tries that found the editor unavailable."""
    if asked is not None:
        return max(0.0, asked)
    # Jitter keeps parallel chains from coming back all at once.
    doubled: float = FIRST_WAIT * 2.0 ** (count - 1)
    return min(60.0, doubled) * random.uniform(0.5, 1.0)


def _received(reply: EditReply, call: Call) -> Answer:
    if not reply.data:
        return Answer("no-image", "the reply holds no bytes", call=call)
    frame = Frame(bytes(reply.data))
    try:
        return Answer("edited", "", frame, FrameRef.of(frame), call)
    except MalformedImage as error:
        return Answer("malformed", str(error), frame, FrameRef.of_malformed(frame), call)
