"""The self-test: does every metric give its known answer here, and what can be called?"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from convergebench.cards.metrics import Card, card, cards
from convergebench.doctor.services import Services, services
from convergebench.errors import ConvergeBenchError, explain
from convergebench.machine import versions
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics.sets import chosen
from convergebench.registry import open_metric
from convergebench.table import Table
from convergebench.testcard import testcard

State = Literal["ok", "wrong", "failed", "unchecked", "unavailable"]
MARKS: Final[dict[State, str]] = {
    "ok": "ok",
    "wrong": "WRONG",
    "failed": "FAILED",
    "unchecked": "not checked",
    "unavailable": "not usable",
}


@dataclass(frozen=True)
class Check:
    """What the self-test of one metric found."""

    metric: str
    state: State
    value: float | None = None
    expected: float | None = None
    seconds: float = 0.0
    note: str = ""

    @property
    def row(self) -> tuple[Any, ...]:
        """For the table."""
        value = "" if self.value is None else f"{self.value:.6g}"
        expected = "" if self.expected is None else f"{self.expected:.6g}"
        took = f"{self.seconds:.2f} s" if self.value is not None else ""
        return (self.metric, MARKS[self.state], value, expected, took, self.note)


@dataclass(frozen=True)
class Diagnosis:
    """Every check, the versions of what moves numbers, and what editors and judges lack."""

    checks: tuple[Check, ...]
    versions: dict[str, str]
    services: Services | None = None

    @property
    def failed(self) -> list[Check]:
        """Checks that found something wrong."""
        return [check for check in self.checks if check.state in ("wrong", "failed")]

    @property
    def table(self) -> Table:
        """The checks as a table."""
        counts = {state: sum(c.state == state for c in self.checks) for state in MARKS}
        told = ", ".join(f"{count} {MARKS[state]}" for state, count in counts.items() if count)
        heads = ("metric", "state", "value", "expected", "took", "note")
        rows = [check.row for check in self.checks]
        system = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return Table(f"Self-test on the test card: {told}", heads, rows, [system])

    def __str__(self) -> str:
        return str(self.table) + (f"\n\n{self.services}" if self.services else "")

    def _repr_html_(self) -> str:
        more = self.services._repr_html_() if self.services else ""
        return self.table._repr_html_() + more

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "failed": len(self.failed),
            "checks": [vars(check) for check in self.checks],
            "versions": self.versions,
            "cores": os.cpu_count(),
            "services": self.services.to_dict() if self.services else None,
        }


def doctor(
    names: Sequence[str] = (),
    *,
    online: bool = False,
    observe: Callable[[int, int, str], None] | None = None,
) -> Diagnosis:
    """Measure the test card with every installed metric, or with those named.

    Without names, it also says which providers of editors and judges could be called; that is no
    failure of this machine, whatever is missing.

    Args:
        names: Metrics or sets of them to check; all by default. One that is named and cannot be
            used counts as failed.
        online: Also ask the providers that tell when their models go; free of charge.
        observe: Called with how many are done, how many there are, and the next one's name.
    """
    asked = [card(name) for name in chosen(names)[0]] or cards()
    checks = []
    for done, one in enumerate(asked):
        if observe:
            observe(done, len(asked), one.name)
        check = _check(one)
        if names and check.state == "unavailable":  # asked for by name: say how to mend it
            check = replace(check, state="failed", note=one.remedy)
        checks.append(check)
    if observe:
        observe(len(asked), len(asked), "")
    around = services(online=online) if online or not names else None
    return Diagnosis(tuple(checks), versions(), around)


def _check(card: Card) -> Check:
    if card.missing or card.spec is None:
        return Check(card.name, "unavailable", note=card.state if card.spec else card.remedy)
    known = card.spec.known
    if known is None:
        return Check(card.name, "unchecked", note="it has no known answer")
    home, frame = (Picture(pixels) for pixels in testcard())
    reference = None if card.spec.kind == "no-reference" else home
    begun = time.perf_counter()
    try:
        (value,) = open_metric(card.name).score([StepView(frame, reference)])
    except ConvergeBenchError as error:
        return Check(card.name, "failed", note=explain(error))
    except Exception as error:  # foreign code: say what it did, and go on with the others
        return Check(card.name, "failed", note=f"{type(error).__name__}: {error}")
    seconds = time.perf_counter() - begun
    if isinstance(value, NoScore):
        return Check(card.name, "failed", expected=known.value, note=value.reason)
    right = math.isclose(value, known.value, rel_tol=0, abs_tol=known.tolerance)
    note = f"± {known.tolerance:g}, from {known.source}"
    state: State = "ok" if right else "wrong"
    return Check(card.name, state, float(value), known.value, seconds, note)
