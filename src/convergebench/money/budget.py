"""The budget: a hard cap on what a run may spend."""

from __future__ import annotations

import threading
from typing import Final

SLICE: Final = 0.1
"""Seconds after which a waiting thread looks whether the run was stopped."""


class Budget:
    """The most a call may cost is reserved before it is made, so the cap is never passed.

    Args:
        cap: Dollars, or None for no limit.
        spent: Dollars spent before.
        held: Dollars that calls of earlier sessions may still cost.
    """

    def __init__(self, cap: float | None, spent: float, held: float = 0.0) -> None:
        self.cap: Final = cap
        self._reserved = 0.0
        self._held = held
        self._open = 0
        self._changed = threading.Condition()
        self.spent = spent

    @property
    def committed(self) -> float:
        """Dollars spent, and the most that calls in flight may still cost."""
        with self._changed:
            return self.spent + self._held + self._reserved

    @property
    def left(self) -> float:
        """Dollars of the cap that are neither spent nor set aside."""
        return (self.cap or 0.0) - self.committed

    def reserve(self, price: float, stop: threading.Event | None = None) -> bool:
        """Set a call's highest price aside; False when it would pass the cap.

        With `stop`, calls in flight are waited for while they may turn out cheap enough to leave
        the money for this one.
        """
        with self._changed:
            while self._passes(self.spent + self._held + self._reserved + price):
                hopeless = not self._open or self._passes(self.spent + self._held + price)
                if stop is None or stop.is_set() or hopeless:
                    return False
                self._changed.wait(SLICE)
            self._reserved += price
            self._open += 1
            return True

    def settle(self, price: float, actual: float) -> None:
        """Replace a reservation by what the call really cost."""
        with self._changed:
            self._open -= 1
            # Sums of fractions leave crumbs; without calls in flight nothing is reserved.
            self._reserved = self._reserved - price if self._open else 0.0
            self.spent += actual
            self._changed.notify_all()

    def keep(self, price: float) -> None:
        """Leave a reservation to a later session, which will know what the call cost."""
        with self._changed:
            self._held += price
        self.settle(price, 0.0)

    def take_up(self, price: float) -> None:
        """Make what an earlier session left a reservation of this one."""
        with self._changed:
            self._held -= price
            self._reserved += price
            self._open += 1

    def _passes(self, total: float) -> bool:
        # A cap that is an exact multiple of the price must admit the last call.
        return self.cap is not None and total > self.cap + 1e-9
