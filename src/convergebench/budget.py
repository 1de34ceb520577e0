"""The budget: a hard cap on what a run may spend."""

from __future__ import annotations

import threading


class Budget:
    """The price of a call is reserved before it is made, so the cap is never passed."""

    def __init__(self, cap: float | None, spent: float) -> None:
        self._cap = cap
        self._reserved = 0.0
        self._lock = threading.Lock()
        self.spent = spent

    def reserve(self, price: float) -> bool:
        """Set a call's price aside; False when it would pass the cap."""
        with self._lock:
            total = self.spent + self._reserved + price
            # A cap that is an exact multiple of the price must admit the last call.
            if self._cap is not None and total > self._cap + 1e-9:
                return False
            self._reserved += price
            return True

    def settle(self, price: float, actual: float) -> None:
        """Replace a reservation by what the call really cost."""
        with self._lock:
            self._reserved -= price
            self.spent += actual
