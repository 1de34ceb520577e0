"""What a run has cost: by editor and by how sure the figure is, or call by call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from convergebench.chain import PAUSES, Chain
from convergebench.money.ledger import Entry, differences, read_ledger
from convergebench.remote.address import Place
from convergebench.store import RunStore
from convergebench.table import Table
from convergebench.wording import counted

BASES: Final = ("reported", "usage", "rule", "assumed")
"""Where a cost comes from, the surest first."""


@dataclass
class EditorSpend:
    """What one editor has cost.

    Attributes:
        editor: Its name.
        calls: Calls made, those that found it unavailable included.
        billed: Calls that cost something.
        by_basis: Dollars as `reported` by the provider, computed from its `usage`, by the price
            `rule`, or `assumed` because nobody knows whether the call was billed.
        unedited: Dollars of calls that brought no frame: refused, failed, lost.
        unknown: Calls whose price nobody knows.
        open: Dollars reserved for calls that are not settled: in flight, or left by a kill.
    """

    editor: str
    calls: int = 0
    billed: int = 0
    by_basis: dict[str, float] = field(default_factory=lambda: dict.fromkeys(BASES, 0.0))
    unedited: float = 0.0
    unknown: int = 0
    open: float = 0.0

    @property
    def dollars(self) -> float:
        """All of it."""
        return sum(self.by_basis.values())


@dataclass(frozen=True)
class Calls:
    """The ledger, call by call."""

    path: Place
    entries: tuple[Entry, ...]

    @property
    def table(self) -> Table:
        """One call a line."""
        columns = ("call", "at", "editor", "chain", "step", "attempt", "reserved", "dollars")
        rows = [
            ["" if cell is None else cell for cell in told.values()]
            for told in self.to_dict()["calls"]
        ]
        title = f"{self.path}: {counted(len(rows), 'call')} in the ledger"
        return Table(title, (*columns, "basis", "outcome", "request"), rows)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "calls": [
                {
                    "call": entry.reserved.call,
                    "at": entry.reserved.at,
                    "editor": entry.reserved.editor,
                    "chain": entry.reserved.chain,
                    "step": entry.reserved.step,
                    "attempt": entry.reserved.attempt,
                    "reserved": round(entry.reserved.dollars, 6),
                    "dollars": round(entry.settled.dollars, 6) if entry.settled else None,
                    "basis": entry.settled.basis if entry.settled else None,
                    "outcome": entry.settled.outcome if entry.settled else _state(entry),
                    "request_id": entry.settled.request_id if entry.settled else None,
                }
                for entry in self.entries
            ],
        }


@dataclass(frozen=True)
class Spending:
    """What a run has cost."""

    path: Place
    rows: tuple[EditorSpend, ...]
    budget: float | None
    ledger: Mapping[str, Entry]
    notes: tuple[str, ...] = ()

    @property
    def dollars(self) -> float:
        """What was spent in all."""
        return sum(row.dollars for row in self.rows)

    @property
    def left(self) -> float | None:
        """What is left of the budget, calls that are not settled counted at their highest."""
        if self.budget is None:
            return None
        return max(0.0, self.budget - self.dollars - sum(row.open for row in self.rows))

    @property
    def table(self) -> Table:
        """By editor and in all."""
        rows = [_cells(row) for row in self.rows]
        if len(rows) > 1:
            rows.append(_cells(_sum(self.rows)))
        notes = list(self.notes)
        unknown, waiting = _sum(self.rows).unknown, _sum(self.rows).open
        if unknown:
            notes.append(f"The price of {counted(unknown, 'call', 'is', 'are')} unknown.")
        if waiting:
            notes.append(
                f"Reserved for calls that are not settled: ${waiting:.4f}. The next run settles "
                "those that a kill has left."
            )
        if self.left is not None:
            notes.append(f"Budget: ${self.budget:.2f}, ${self.left:.2f} left.")
        return Table(
            f"{self.path}: ${self.dollars:.4f} spent",
            ("editor", "calls", "billed", *BASES[:3], "in doubt", "dollars", "of these in vain"),
            rows,
            notes,
        )

    @property
    def calls(self) -> Calls:
        """The ledger, call by call."""
        return Calls(self.path, tuple(self.ledger.values()))

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "dollars": self.dollars,
            "budget": self.budget,
            "left": self.left,
            "notes": list(self.notes),
            "editors": [
                {
                    "editor": row.editor,
                    "calls": row.calls,
                    "billed": row.billed,
                    **{basis: row.by_basis[basis] for basis in BASES},
                    "dollars": row.dollars,
                    "unedited": row.unedited,
                    "unknown": row.unknown,
                    "open": row.open,
                }
                for row in self.rows
            ],
        }


def spend(directory: str | os.PathLike[str]) -> Spending:
    """What a run has cost so far. Reads only; works beside a run that is going.

    Calls that are not in the ledger (free ones, runs made before there was one) are taken from the
    chains' records.
    """
    store = RunStore.open(directory)
    # The ledger first: of a run that is going, what is settled in it is recorded already.
    ledger, chains = read_ledger(store.path), store.chains()
    rows = {chain.key.editor: EditorSpend(chain.key.editor) for chain in chains}
    for chain in chains:
        _add_records(rows[chain.key.editor], chain, ledger)
    recorded = {step.call.ledger for chain in chains for step in chain.steps}
    for call, entry in ledger.items():
        row = rows.setdefault(entry.reserved.editor, EditorSpend(entry.reserved.editor))
        row.calls += 1
        if entry.settled is None and call not in recorded:
            row.open += entry.reserved.dollars
    told = (store.read_json("spec.json") or {}).get("budget")
    notes = [f"Not sound: {text}" for text in differences(ledger, chains)]
    order = sorted(rows.values(), key=lambda row: (-row.dollars, row.editor))
    return Spending(store.place, tuple(order), told, ledger, tuple(notes))


def _add_records(row: EditorSpend, chain: Chain, ledger: Mapping[str, Entry]) -> None:
    for step in chain.steps:
        if step.outcome in PAUSES:
            continue
        if step.call.ledger not in ledger:
            row.calls += step.attempts
        cost = step.call.cost
        if cost is None:
            row.unknown += step.attempts > 0  # nobody called for what was imported
            continue
        row.billed += cost > 0
        if cost:
            row.by_basis[step.call.basis or "rule"] += cost
        if step.outcome != "edited":
            row.unedited += cost


def _sum(rows: tuple[EditorSpend, ...]) -> EditorSpend:
    total = EditorSpend("all")
    for row in rows:
        total.calls += row.calls
        total.billed += row.billed
        for basis in BASES:
            total.by_basis[basis] += row.by_basis[basis]
        total.unedited += row.unedited
        total.unknown += row.unknown
        total.open += row.open
    return total


def _cells(row: EditorSpend) -> tuple[str | int, ...]:
    money = (*(row.by_basis[basis] for basis in BASES), row.dollars, row.unedited)
    return (row.editor, row.calls, row.billed, *(f"${dollars:.4f}" for dollars in money))


def _state(entry: Entry) -> str:
    return "task begun" if entry.task else "open"
