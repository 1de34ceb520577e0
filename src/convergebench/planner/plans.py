"""What a plan says: calls, dollars, hours and disk, per editor and in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from convergebench.editor import EditorSpec, Price
from convergebench.planner.hours import Scoring
from convergebench.table import Table


@dataclass(frozen=True)
class PlanRow:
    """One editor's share of a plan.

    Attributes:
        editor: Its name.
        chains: How many it walks.
        calls: Calls still to be made.
        done: Steps recorded already.
        price: What the calls to make will cost; None when unknown.
        hours: How long they take on their own; None when unknown.
        disk: Bytes of the frames.
        spec: What the editor tells about itself.
        at_once: Calls in flight: within the limit, one per chain.
        limit: Calls that its account bears.
    """

    editor: str
    chains: int
    calls: int
    done: int
    price: Price | None
    hours: float | None
    disk: int
    spec: EditorSpec
    at_once: int = 1
    limit: int = 1

    @property
    def dollars(self) -> float | None:
        """Expected cost, or None when the price is unknown."""
        return self.price.expected if self.price else None


@dataclass(frozen=True)
class Plan:
    """What a run will do: calls, dollars, hours and disk, per editor and in all.

    `scoring` is what measuring it will take, where that was asked for.
    """

    suite: str
    rows: tuple[PlanRow, ...]
    budget: float | None
    spent: float = 0.0
    notes: tuple[str, ...] = ()
    scoring: Scoring | None = None

    @property
    def calls(self) -> int:
        """Calls still to be made."""
        return sum(row.calls for row in self.rows)

    @property
    def done(self) -> int:
        """Steps recorded already."""
        return sum(row.done for row in self.rows)

    @property
    def price(self) -> Price | None:
        """What it will cost, or None when a price is unknown."""
        known = [row.price for row in self.rows if row.price]
        if len(known) < len(self.rows):
            return None
        return Price(
            sum(p.low for p in known), sum(p.expected for p in known), sum(p.high for p in known)
        )

    @property
    def dollars(self) -> float | None:
        """Expected cost, or None when a price is unknown."""
        return self.price.expected if self.price else None

    @property
    def hours(self) -> float | None:
        """How long it will take, or None when an editor's pace is unknown.

        Editors wait for their own servers side by side; those that compute on this machine's cores
        (without a limit of their own) share them, and editors of one account share its limit.
        """
        if any(row.hours is None for row in self.rows):
            return None
        here = sum(row.hours or 0.0 for row in self.rows if row.spec.concurrency is None)
        shared = []
        for account in {row.spec.account for row in self.rows} - {""}:
            rows = [row for row in self.rows if row.spec.account == account]
            limit = min(max(row.limit for row in rows), sum(row.at_once for row in rows))
            seconds = sum(row.calls * (row.spec.seconds or 0.0) for row in rows)
            shared.append(seconds / limit / 3600)
        return max([here, *shared, *(row.hours or 0.0 for row in self.rows)])

    @property
    def disk(self) -> int:
        """Bytes the frames will take."""
        return sum(row.disk for row in self.rows)

    @property
    def table(self) -> Table:
        """The plan as a table."""
        rows = [
            (
                r.editor,
                r.chains,
                r.calls,
                r.done,
                _money(r.price),
                _duration(r.hours),
                _size(r.disk),
            )
            for r in self.rows
            if self.calls  # else all of them would be zeros
        ]
        total = (
            "all",
            sum(r.chains for r in self.rows),
            self.calls,
            self.done,
            _money(self.price),
            _duration(self.hours),
            _size(self.disk),
        )
        notes = list(self.notes)
        if self.dollars is None:
            notes.append("A price is unknown: the cost of this run cannot be told.")
        if self.budget is not None:
            price = self.price or Price.flat(0.0)
            left = self.budget - self.spent + 1e-9
            short = " It will not suffice." if price.expected > left else ""
            if not short and price.high > left:
                short = " It may not suffice."
            notes.append(
                f"Budget: ${self.budget:.2f}, never exceeded; ${self.spent:.2f} are spent.{short}"
            )
        notes += [
            f"{r.editor} cannot be run here: {r.spec.lacks}" for r in self.rows if r.spec.lacks
        ]
        notes += [
            f"{r.editor}: {'; '.join(r.spec.caveats)}."
            for r in self.rows
            if r.spec.caveats and r.calls
        ]
        end = "" if self.calls else ": nothing is left to run"
        return Table(
            f"Plan for suite {self.suite}{end}",
            ("editor", "chains", "calls to make", "done", "dollars", "time", "disk"),
            [*rows, total],
            notes,
        )

    def __str__(self) -> str:
        return f"{self.table}\n\n{self.scoring}" if self.scoring else str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + (self.scoring._repr_html_() if self.scoring else "")

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        rows = [
            {
                "editor": r.editor,
                "chains": r.chains,
                "calls": r.calls,
                "done": r.done,
                "dollars": r.dollars,
                "dollars_low": r.price.low if r.price else None,
                "dollars_high": r.price.high if r.price else None,
                "hours": r.hours,
                "disk_bytes": r.disk,
                "caveats": list(r.spec.caveats),
                "lacks": r.spec.lacks,
            }
            for r in self.rows
        ]
        return {
            "suite": self.suite,
            "calls": self.calls,
            "done": self.done,
            "dollars": self.dollars,
            "dollars_low": self.price.low if self.price else None,
            "dollars_high": self.price.high if self.price else None,
            "hours": self.hours,
            "disk_bytes": self.disk,
            "budget": self.budget,
            "spent": self.spent,
            "notes": list(self.notes),
            "editors": rows,
            **({"scoring": self.scoring.to_dict()} if self.scoring else {}),
        }


def _money(price: Price | None) -> str:
    if price is None:
        return "unknown"
    expected, low, high = (f"${d:,.2f}" for d in (price.expected, price.low, price.high))
    return expected if low == high else f"{expected} ({low} to {high})"


def _duration(hours: float | None) -> str:
    if hours is None:
        return "unknown"
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:.1f} h"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
