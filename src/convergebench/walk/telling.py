"""What a run tells whoever observes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from convergebench.progress import Snapshot


@dataclass(frozen=True)
class Progress:
    """Where a run stands; given to the observer after every event.

    Attributes:
        chains: How many there are.
        chains_done: How many of them have nothing left to do.
        steps: Steps of all chains, without those that a chain which ended early will never make.
        steps_done: How many of them are made.
        failures: Steps that came to anything but a frame.
        spent: Dollars, those of earlier sessions included.
        event: What happened, where it is worth a line.
        step: The same of a step that came to no frame: `chain`, `step`, `outcome`, `detail`.
        bytes: Received in this session.
        workers: Calls in flight.
        editors: Steps made, and in all, by editor.
        last: With which exit code the process ends now, without another word; 0 if it does not.
    """

    chains: int
    chains_done: int
    steps: int
    steps_done: int
    failures: int
    spent: float
    event: str = ""
    step: Mapping[str, Any] | None = None
    bytes: int = 0
    workers: int = 0
    editors: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    last: int = 0

    @property
    def snapshot(self) -> Snapshot:
        """The same for whoever watches any kind of work."""
        return Snapshot(
            done=self.steps_done,
            total=self.steps,
            unit="steps",
            failures=self.failures,
            bytes=self.bytes,
            workers=self.workers,
            dollars=self.spent,
            chains=(self.chains_done, self.chains),
            kind="editor",
            parts=self.editors,
        )


Observer = Callable[[Progress], None]
