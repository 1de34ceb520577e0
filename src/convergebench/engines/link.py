"""The way to the head of a Ray cluster: knocked at, so that its loss is noticed before Ray's end.

Ray waits for a head that is gone for a minute, in calls that nothing ends, and then ends the whole
process, whatever is unsaved. So nothing here waits for such a call without looking up: each is
made in a thread of its own, which is left behind once the way is lost.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from convergebench.errors import EngineError

KNOCK: Final = 10.0
"""Seconds that the head of a cluster has to take a connection."""
EVERY: Final = 3.0
"""Seconds between two knocks."""
GONE: Final = 25.0
"""Seconds without an answer after which the head is gone; Ray would wait for 60."""
ANSWER: Final = 90.0
"""Seconds that a head which can be reached has to answer a question."""
LOOK: Final = 0.5
"""Seconds after which who waits looks whether the way is lost."""

T = TypeVar("T")


class Link:
    """The way to a head.

    Args:
        head: Host and port, where they are known.
    """

    def __init__(self, head: tuple[str, int] | None) -> None:
        self._head = head
        self._lost = ""
        self._seen = time.monotonic()
        self._closed = threading.Event()
        if head is not None:
            threading.Thread(target=self._watch, name="knocking", daemon=True).start()

    @property
    def is_lost(self) -> bool:
        """Whether the head is gone for good; nothing is to be asked any more."""
        return bool(self._lost)

    def check(self) -> None:
        """Raise EngineError if the way is lost."""
        if self._lost:
            raise lost(self._lost)

    def ask(self, call: Callable[[], T], seconds: float = ANSWER, *, vital: bool = True) -> T:
        """What a call answers, which may wait for the head.

        Args:
            call: What is asked.
            seconds: How long the head has.
            vital: Whether all is lost where it does not answer; else that is a TimeoutError.

        Raises:
            EngineError: The head is gone.
        """
        self.check()
        found: list[T] = []
        raised: list[BaseException] = []
        done = threading.Event()

        def asking() -> None:
            try:
                found.append(call())
            except BaseException as error:
                raised.append(error)
            done.set()

        threading.Thread(target=asking, name="asking", daemon=True).start()
        end = time.monotonic() + seconds
        while not done.wait(LOOK):
            if time.monotonic() > end:
                if not vital:
                    raise TimeoutError
                self.lose(f"its head has not answered for {seconds:.0f} s")
            self.check()
        if raised:
            raise raised[0]
        return found[0]

    def lose(self, why: str) -> None:
        """Give it up."""
        self._lost = self._lost or why

    def close(self) -> None:
        """Knock no more."""
        self._closed.set()

    def _watch(self) -> None:
        assert self._head is not None
        while not self._closed.wait(EVERY):
            try:
                knock(self._head)
                self._seen = time.monotonic()
            except OSError as error:
                if time.monotonic() - self._seen > GONE:
                    host, port = self._head
                    self.lose(f"nobody answers at {host}:{port}: {error}")
                    return


def knock(head: tuple[str, int]) -> None:
    """Raise OSError where nobody takes a connection."""
    socket.create_connection(head, timeout=KNOCK).close()


def lost(why: Any) -> EngineError:
    """That the cluster cannot be reached any more."""
    return EngineError(
        f"the connection to the Ray cluster was lost ({why}). What was done is saved; run the same "
        "command again when it is back."
    )
