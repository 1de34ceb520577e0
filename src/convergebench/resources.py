"""What a piece of work takes of the machine that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Resources:
    """What one worker takes.

    Attributes:
        cpus: Cores that it keeps busy; as many threads as it works with.
        gpus: GPUs that it would like; where there is none at all it does with the CPU.
        memory: Bytes of main memory, the system's refusal of more included; 0 says nothing.
    """

    cpus: float = 1
    gpus: float = 0
    memory: int = 0


ONE_CORE: Final = Resources()
"""What everything takes that does not say."""
