"""Flow control: how many calls of one account are in flight at once.

The limit falls to its half when the provider says that there are too many calls, and creeps up by
one after as many answers as it allows (additive increase, multiplicative decrease). While the
provider has asked us to wait, no call of the account is made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

SLICE: Final = 0.1
"""Seconds after which a waiting thread looks whether the run was stopped."""


@dataclass(frozen=True)
class Permit:
    """Leave to make one call. `epoch` tells which limit it was given under."""

    epoch: int


class Limiter:
    """Calls of one account in flight.

    Args:
        most: The limit never rises above this.
        name: Whose account it is, for messages.
        tell: Told when the limit falls.
    """

    def __init__(
        self, most: int, name: str = "", tell: Callable[[str], None] = lambda _text: None
    ) -> None:
        self.name: Final = name
        self.limit = self.most = most
        self.in_flight = 0
        self.closed = ""
        self._tell = tell
        self._epoch = 0
        self._answers = 0
        self._held_until = 0.0
        self._changed = threading.Condition()

    def acquire(self, stop: threading.Event) -> Permit | None:
        """Wait for leave to make a call; None when the run stops or the account is closed."""
        with self._changed:
            while True:
                if stop.is_set() or self.closed:
                    return None
                wait = self._held_until - time.monotonic()
                if wait <= 0 and self.in_flight < self.limit:
                    self.in_flight += 1
                    return Permit(self._epoch)
                self._changed.wait(min(SLICE, wait) if wait > 0 else SLICE)

    def sleep(self, seconds: float, stop: threading.Event) -> None:
        """Wait before another try; not longer than until the run stops or the account is closed."""
        end = time.monotonic() + seconds
        with self._changed:
            while not (stop.is_set() or self.closed) and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(SLICE, left))

    def release(self, _permit: Permit, *, answered: bool) -> None:
        """A call is over; `answered` unless the provider was not available."""
        with self._changed:
            self.in_flight -= 1
            if answered:
                self._answers += 1
                if self._answers >= self.limit and self.limit < self.most:
                    self.limit += 1
                    self._answers = 0
            self._changed.notify_all()

    def too_many(self, permit: Permit, wait: float | None) -> None:
        """The provider said so: halve, and hold all calls for as long as it asked.

        Calls that were in flight together are told so together: that is one reason to halve, not
        several.
        """
        with self._changed:
            if wait is not None:
                self._held_until = max(self._held_until, time.monotonic() + wait)
            self._answers = 0
            if permit.epoch != self._epoch:
                return
            self._epoch += 1
            before, self.limit = self.limit, max(1, self.limit // 2)
        pause = f" after {wait:.1f} s" if wait else ""
        if before > 1:
            self._tell(f"{self.name}: too many calls, at most {self.limit} at once{pause}")
        elif wait:
            self._tell(f"{self.name}: too many calls, the next{pause}")

    def close(self, why: str) -> None:
        """No call of this account will succeed now; everyone who waits is told."""
        with self._changed:
            self.closed = self.closed or why
            self._changed.notify_all()


class Flow:
    """The limiters of a run, one per account; an editor without an account has its own.

    Args:
        limits: Account and calls in flight by editor.
        tell: Told when a limit falls.
    """

    def __init__(self, limits: Mapping[str, tuple[str, int]], tell: Callable[[str], None]) -> None:
        most: dict[str, int] = {}
        for account, limit in limits.values():
            most[account] = max(limit, most.get(account, 1))
        shared = {a: Limiter(n, a.partition("/")[0], tell) for a, n in most.items() if a}
        self._limiters = {
            name: shared[account] if account else Limiter(limit, name, tell)
            for name, (account, limit) in limits.items()
        }

    def of(self, editor: str) -> Limiter:
        """The limiter of an editor's account."""
        return self._limiters[editor]

    @property
    def in_flight(self) -> int:
        """Calls in flight, of all accounts."""
        return sum(limiter.in_flight for limiter in set(self._limiters.values()))
