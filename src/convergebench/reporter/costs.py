"""What the pictures cost, and what the editors and controls are: as recorded with every call."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convergebench.chain import Chain
from convergebench.errors import ConvergeBenchError
from convergebench.registry import editor_names
from convergebench.reporter.palette import Ink


@dataclass(frozen=True)
class Cost:
    """What one editor's calls came to.

    Attributes:
        assumed: Dollars of calls whose answer was lost and that may have been billed.
        vain: Dollars of all calls that gave no frame.
        lost: Calls whose answer was lost and that were made again.
    """

    ink: Ink
    frames: int
    attempts: int
    dollars: float | None
    assumed: float
    vain: float
    lost: int
    unpriced: int
    seconds: float

    @property
    def each(self) -> float | None:
        """Seconds per frame."""
        return self.seconds / self.frames if self.frames and self.seconds else None

    @property
    def dear(self) -> float | None:
        """Dollars per frame, where every call says its price."""
        if self.dollars is None or self.unpriced or not self.frames:
            return None
        return self.dollars / self.frames


@dataclass(frozen=True)
class Control:
    """A control, and what it does."""

    ink: Ink
    does: str


def costs_of(chains: Sequence[Chain], inks: Mapping[str, Ink]) -> list[Cost]:
    """The costs of every editor that was called; retries count."""
    found = []
    for name, ink in inks.items():
        steps = [step for chain in chains if chain.key.editor == name for step in chain.steps]
        called = [step for step in steps if step.outcome not in ("missing", "reported")]
        if not called:
            continue
        prices = [step.call.cost for step in called if step.call.cost is not None]
        found.append(
            Cost(
                ink=ink,
                frames=sum(step.outcome == "edited" for step in called),
                attempts=sum(step.attempts for step in called),
                dollars=sum(prices) if prices else None,
                assumed=sum(s.call.cost or 0.0 for s in called if s.call.basis == "assumed"),
                vain=sum(s.call.cost or 0.0 for s in called if s.outcome != "edited"),
                lost=sum(s.again for s in called),
                unpriced=len(called) - len(prices),
                seconds=sum(step.seconds for step in called),
            )
        )
    return found


def controls_of(inks: Mapping[str, Ink], recorded: Mapping[str, str]) -> list[Control]:
    """The controls, explained by their own descriptions.

    Args:
        inks: The editors as named here.
        recorded: Their names as recorded, by these.
    """
    described: dict[str, str] = {}
    with contextlib.suppress(ConvergeBenchError):
        described = editor_names()
    found = []
    for name, ink in inks.items():
        if ink.control:
            own = recorded.get(name, name).partition(",")[0]
            found.append(Control(ink, described.get(own, "a known answer that rides along")))
    return found
