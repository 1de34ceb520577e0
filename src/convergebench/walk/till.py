"""The till: every call is reserved in budget and ledger before it is made, and settled after."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergebench.chain import Call
from convergebench.editor import Price
from convergebench.money.budget import Budget
from convergebench.money.ledger import CENT, Basis, Begun, Entry, Ledger, Reserved, Settled, now
from convergebench.walk.calls import Answer, plain
from convergebench.wording import counted


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
        self._lock = threading.RLock()  # a task may be told of while its call is given up

    def begin(self, task: Mapping[str, Any]) -> None:
        """A task was begun; it is on the disk when this returns, and soon on object storage."""
        told = plain(dict(task))
        with self._lock:
            if self._over or self._till.closed:
                return  # of a call that was given up long ago
            self.task = told
            begun = Begun(call=self.line.call, at=now(), task=dict(told))
            self._till.ledger.note(*(() if self._written else (self.line,)), begun)
            self._written = True

    def open(self) -> None:
        """The call is about to be made: its reservation is on the disk when this returns."""
        if not self._priced or self.line.dollars > 0:
            self._write()

    def _write(self) -> None:
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
        with self._lock:
            self._over = True
            if self._written or dollars:
                self._write()
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
        if self._priced and dollars > self.line.dollars + CENT:
            self._till.note_dearer(self.line, dollars)

    def leave(self) -> None:
        """No call now. One whose task was begun stays open: a later session asks for it."""
        with self._lock:
            self._over = True
            if self._written:
                self._till.budget.keep(self.line.dollars)
            else:
                self._till.budget.settle(self.line.dollars, 0.0)


class Till:
    """Budget and ledger of a run."""

    def __init__(self, budget: Budget, ledger: Ledger) -> None:
        self.budget = budget
        self.ledger = ledger
        self.closed = False
        self._dearer: dict[str, tuple[int, float, float]] = {}
        self._refused: list[float] = []
        self._lock = threading.Lock()

    @property
    def notes(self) -> list[str]:
        """What the user is to know: what the budget did not bear, and calls dearer than said."""
        found = []
        if self._refused:
            left, cap = max(0.0, self.budget.left), self.budget.cap or 0.0
            found.append(
                f"The next call may cost up to ${min(self._refused):.4f}, and ${left:.4f} of the "
                f"${cap:.2f} are left."
            )
        return found + [
            f"{counted(calls, 'call')} of {editor} cost more than the highest price known, as "
            f"${cost:.4f} instead of ${price:.4f}: its price rule is out of date, and a budget "
            "cannot be held exactly."
            for editor, (calls, price, cost) in self._dearer.items()
        ]

    def close(self) -> None:
        """The session is over: calls that were given up and go on are no longer heard."""
        self.closed = True
        self.ledger.close()

    def note_dearer(self, line: Reserved, dollars: float) -> None:
        """A call cost more than was set aside for it."""
        with self._lock:
            calls, price, cost = self._dearer.get(line.editor, (0, line.dollars, dollars))
            self._dearer[line.editor] = (calls + 1, price, cost)

    def over(self, errand: Errand) -> Answer:
        """What is said of a call that the budget does not bear."""
        high = _beyond(errand).high
        with self._lock:
            self._refused.append(high)
        return Answer("over-budget", f"the call may cost up to ${high:.4f}")

    def reserve(self, errand: Errand, attempt: int, stop: threading.Event) -> Receipt | None:
        """Set the highest price of a call aside; None when the budget does not bear it.

        It is in the ledger once the receipt is opened, which is when the call is made.
        """
        price = _beyond(errand)
        high, expected = price.high, price.expected
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
        return Receipt(self, line, priced=errand.price is not None, paid=paid)

    def take_up(self, entry: Entry, errand: Errand) -> Receipt:
        """The receipt of a call whose task was begun in an earlier session."""
        self.budget.take_up(entry.reserved.dollars)
        paid = errand.paid if entry.reserved.task else 0.0
        priced = errand.price is not None
        receipt = Receipt(self, entry.reserved, priced=priced, paid=paid, written=True)
        receipt.task = entry.task
        return receipt


def _beyond(errand: Errand) -> Price:
    """What a call may cost; of a task that was begun and counted before, what comes on top."""
    price = errand.price or Price.flat(0.0)
    return Price(0.0, 0.0, max(0.0, price.high - errand.paid)) if errand.task else price
