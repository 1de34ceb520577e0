"""Tasks that are begun once, then asked after until they are done.

Beginning a task costs money, asking after it does not. So a task is begun at most once per call,
`EditRequest.on_task` hears of it before anything else can go wrong, a broken poll is tried again
until the deadline, and a call that is given a task never begins another. What is still running when
the time is up is lost *with its task*: whoever comes next polls the same one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from convergebench.editor import EditReply, EditRequest
from convergebench.errors import EditorError, EditorFailed, EditorLost, EditorUnavailable
from convergebench.wire import Told, Unreadable, Wire, complaint, download, is_near

Task = Mapping[str, Any]
Seen = TypeVar("Seen")

POLL_SECONDS: Final = 30.0
"""Longest that one poll may take."""


@dataclass(frozen=True)
class Pace:
    """How often a task is asked after, in seconds.

    Attributes:
        first: Wait before the first poll.
        most: Longest wait between two polls.
        growth: How much longer each wait is than the last.
        grace: How long after its beginning a task may still be unknown to the provider, whose
            machines hear of it one after the other. Later it counts as lost.
    """

    first: float = 0.5
    most: float = 3.0
    growth: float = 1.4
    grace: float = 10.0


FAR: Final = Pace()
NEAR: Final = Pace(first=0.02, most=0.2, grace=0.5)
"""For a server on this machine, which is nobody's bottleneck."""


class Gone(Exception):
    """The provider knows no such task."""


class Clock:
    """The time of one call: a little less than its deadline, so that we end it, not the runner."""

    def __init__(self, deadline: float) -> None:
        self._end = time.monotonic() + deadline - min(2.0, deadline * 0.05)

    @property
    def left(self) -> float:
        """Seconds left; negative when it is over."""
        return self._end - time.monotonic()


def collect(
    request: EditRequest,
    *,
    what: str,
    pace: Pace,
    clock: Clock,
    begin: Callable[[float], Task],
    look: Callable[[Task, float], Seen | None],
    known: Callable[[Task], EditReply],
) -> tuple[Task, Seen]:
    """Begin a task, or take up the one that was begun, and wait for what comes of it.

    Args:
        request: The request; `task` and `on_task` are used.
        what: The provider's name.
        pace: How often to ask.
        clock: How long to ask.
        begin: Submits, given the seconds it may take. Raises what is to end the call.
        look: Asks once: None while it is not done. EditorUnavailable and Gone are borne for a
            while, everything else ends the call.
        known: What is known of a task without asking: its id, perhaps its cost.

    Raises:
        EditorLost: The time is up (`told` has the task), or the task vanished (it has none).
    """
    task: Task
    wait = 0.0
    if request.task:
        task = request.task
    else:
        task = {**begin(max(clock.left, 0.1)), "begun": round(time.time(), 3)}
        request.on_task(task)
        wait = pace.first
    age = max(0.0, time.time() - float(task.get("begun", 0.0)))
    known_by = time.monotonic() + pace.grace - age
    name, trouble, last = task.get("id"), "", False
    while not last:
        last = clock.left <= wait  # a shorter wait then, and one more look
        time.sleep(max(0.0, min(wait, clock.left * 0.8)))
        wait = min(pace.most, max(pace.first, wait * pace.growth))
        try:
            seen = look(task, min(POLL_SECONDS, max(clock.left, 0.1)))
        except EditorUnavailable as error:
            trouble = f"; the last poll: {error}"
            wait = max(wait, error.retry_after or 0.0)
        except Gone as error:
            if time.monotonic() >= known_by:
                text = f"{what} knows no task {name}: {error}"
                raise EditorLost(text, told=known(task)) from None
        except EditorError as error:
            if error.told is None:  # about the poll, not the task: that may still be collected
                error.told = replace(known(task), task=task)
            raise
        else:
            trouble = ""
            if seen is not None:
                return task, seen
    raise EditorLost(
        f"{what}: task {name} was not done after {request.deadline:g} s{trouble}",
        timed_out=True,
        told=replace(known(task), task=task),
    )


def polled(wire: Wire, address: str, timeout: float) -> Told:
    """The answer to a poll.

    Raises:
        Gone: No such task.
        EditorUnavailable: The poll did not work; the task is not concerned.
        EditorError: The poll will never work.
    """
    told = wire.get(address, timeout=timeout)
    if told.ok:
        return told
    if told.status in (404, 410):
        raise Gone(complaint(told.body) or told.text or f"HTTP {told.status}")
    fault = wire.fault(told)
    if told.status >= 500:  # whatever it is, asking again is free
        raise EditorUnavailable(str(fault))
    if isinstance(fault, EditorFailed):  # about the poll; the task itself may have been billed
        raise EditorLost(str(fault))
    raise fault


def brought(
    address: str, *, what: str, near: bool, clock: Clock, told: EditReply, task: Task
) -> bytes:
    """The picture of a task that was paid for.

    Raises:
        EditorUnavailable: It was not had; asking after the same task again brings it for nothing.
        EditorLost: The time is up (`told` has the task), or it will never be had (it has none).
    """
    try:
        return download(address, what=what, near=near, timeout=max(clock.left, 0.1))
    except Unreadable as error:
        error.told = told
        raise
    except EditorLost as error:
        told = replace(told, task=dict(task))
        if error.timed_out:
            raise EditorLost(str(error), timed_out=True, told=told) from None
        raise EditorUnavailable(str(error), told=told) from None


def trusted(address: str, base: str, domain: str) -> bool:
    """Whether a key that is meant for the base may go to an address that a server gave.

    It may to the base's own origin; to another host of the provider's domain over https where the
    base is one; and to this machine where the base is on it.
    """
    try:
        here, there = urlsplit(base), urlsplit(address)
        ports = here.port, there.port
    except ValueError:
        return False
    if there.username or there.password or not there.hostname:
        return False
    if (here.scheme, here.hostname, ports[0]) == (there.scheme, there.hostname, ports[1]):
        return True
    if is_near(base):
        return is_near(address) and there.scheme in ("http", "https")
    ours = all(
        host == domain or (host or "").endswith(f".{domain}")
        for host in (here.hostname, there.hostname)
    )
    return ours and there.scheme == "https" and ports[1] in (None, 443)


def task_id(told: Told, name: str, what: str) -> str:
    """The task that a submission began. Raises EditorLost: it may have been billed."""
    found = told.table.get(name)
    if not isinstance(found, str) or not found:
        raise EditorLost(f"{what} took the edit without naming a task: {told.text[:200]}")
    return found
