"""The till: every call is reserved in budget and ledger before it is made, and settled after."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergebench.chain import Call
from convergebench.editor import Price
from convergebench.money.budget import Budget
from convergebench.money.ledger import Basis, Begun, Entry, Ledger, Reserved, Settled, now
from convergebench.walk.calls import Answer, plain


@dataclass(frozen=True)
class Errand:
    """What a call is for; goes into the ledger.

    Attributes:
        chain: The chain's id.
        step: Which frame it makes.
        editor: Whom it asks.
        provider: Whose account it is on.
        price: What it may cost; None when nobody knows.
        seed: The seed that is sent.
        task: A task of an earlier call that is only collected.
        paid: Dollars that were assumed for that task already.
    """

    chain: str
    step: int
    editor: str
    provider: str = ""
    price: Price | None = None
    seed: int | None = None
    task: Mapping[str, Any] | None = None
    paid: float = 0.0


class Receipt:
    """One call's reservation.

    A call that costs nothing leaves no line in the ledger, unless a task is begun for it or it
    turns out to cost something.
    """

    def __init__(
        self, till: Till, line: Reserved, *, priced: bool, paid: float = 0.0, written: bool = False
    ) -> None:
        self.line = line
        self.task: Mapping[str, Any] = line.task
        self.collects = bool(line.task)
        self._till = till
        self._priced = priced
        self._paid = paid
        self._written = written
        self._over = False

    def begin(self, task: Mapping[str, Any]) -> None:
        """A task was begun; it is on the disk when this returns."""
        if self._over or self._till.closed:
            return  # of a call that was given up long ago
        self.task = plain(dict(task))
        self.write()
        line = Begun(call=self.line.call, at=now(), task=dict(self.task))
        self._till.ledger.write(line)

    def write(self) -> None:
        """Write the reservation, if that was not done yet."""
        if not self._written:
            self._till.ledger.write(self.line)
            self._written = True

    def charge(self, answer: Answer) -> Call:
        """The answer's call with what it cost, on which basis.

        As the provider says; else the expected price, if it was or may have been billed.
        """
        told = answer.call
        cost: float | None
        if told.cost is not None:
            cost, basis = max(0.0, told.cost - self._paid), told.basis
        elif answer.outcome in ("edited", "malformed"):
            cost, basis = self.line.expected, "rule" if self.line.expected else ""
        elif answer.in_doubt:
            cost, basis = self.line.expected, "assumed" if self.line.expected else ""
        else:
            cost, basis = 0.0, ""
        if told.cost is None and not self._priced and (answer.frame or answer.in_doubt):
            cost = None
        changed: dict[str, Any] = {"cost": cost, "basis": basis}
        if self._written or cost:
            changed["ledger"] = self.line.call
        if answer.in_doubt and not answer.lost and self.task and not told.task:
            changed["task"] = dict(self.task)
        return told.model_copy(update=changed)

    def settle(
        self, dollars: float, basis: Basis, outcome: str, request_id: str | None = None
    ) -> None:
        """The call is over, and its record (if it has one) on the disk."""
        self._over = True
        if self._written or dollars:
            self.write()
            self._till.ledger.write(
                Settled(
                    call=self.line.call,
                    at=now(),
                    dollars=dollars,
                    basis=basis,
                    outcome=outcome,
                    request_id=request_id,
                )
            )
        self._till.budget.settle(self.line.dollars, dollars)

    def leave(self) -> None:
        """Leave it open: a later session asks for the task."""
        self._over = True
        self._till.budget.keep(self.line.dollars)


class Till:
    """Budget and ledger of a run."""

    def __init__(self, budget: Budget, ledger: Ledger) -> None:
        self.budget = budget
        self.ledger = ledger
        self.closed = False

    def reserve(self, errand: Errand, attempt: int, stop: threading.Event) -> Receipt | None:
        """Set the highest price of a call aside, durably; None when the budget does not bear it."""
        price = errand.price or Price.flat(0.0)
        high, expected = price.high, price.expected
        if errand.task:  # begun and counted before: only what it may cost beyond that
            high, expected = max(0.0, high - errand.paid), 0.0
        if not self.budget.reserve(high, stop):
            return None
        line = Reserved(
            call=self.ledger.name(errand.chain, errand.step),
            at=now(),
            chain=errand.chain,
            step=errand.step,
            attempt=attempt,
            editor=errand.editor,
            provider=errand.provider,
            dollars=high,
            expected=expected,
            seed=errand.seed,
            task=dict(errand.task or {}),
        )
        paid = errand.paid if errand.task else 0.0
        receipt = Receipt(self, line, priced=errand.price is not None, paid=paid)
        if errand.price is None or high > 0:
            receipt.write()
        return receipt

    def take_up(self, entry: Entry, paid: float = 0.0) -> Receipt:
        """The receipt of a call whose task was begun in an earlier session."""
        self.budget.take_up(entry.reserved.dollars)
        paid = paid if entry.reserved.task else 0.0
        receipt = Receipt(self, entry.reserved, priced=True, paid=paid, written=True)
        receipt.task = entry.task
        return receipt
