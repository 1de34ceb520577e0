"""Chains: what was asked of an editor, step by step, and what came back.

A `ChainKey` is the identity of a chain, its resume key and the source of its seeds at once. A
`Chain` is the append-only record of its steps.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from convergebench.cycle import Record
from convergebench.frame import Frame, sniff

Outcome = Literal[
    "edited",
    "refused",
    "no-image",
    "malformed",
    "failed",
    "over-budget",
    "blocked",
    "missing",
    "reported",
]
"""What a step came to. The last two only come from imports: `missing` is a frame that was made and
is not there, `reported` one whose scores were published without its picture."""

ENDINGS: frozenset[Outcome] = frozenset(("refused", "no-image", "malformed", "failed"))
"""Outcomes after which a chain has no next input."""

PAUSES: frozenset[Outcome] = frozenset(("over-budget", "blocked"))
"""Outcomes without a call, after which the chain waits: for money, or for the account."""

PASSED: frozenset[Outcome] = frozenset(("edited", "missing", "reported"))
"""Outcomes that are nobody's failure: the frame was made, be it here or not."""

IMPORTED: Final = "imported"
"""The editor version of chains whose editor we never called; they may have gaps."""


class Settings(Record):
    """The variation axes of a chain; each combination is a chain of its own."""

    phrasing: Annotated[int, Field(ge=0)] = 0
    seed: Literal["none", "fixed", "per-step"] = "per-step"
    temperature: Annotated[float, Field(ge=0)] | None = None
    resolution: Literal["native", "1K", "2K", "4K", "interleaved"] = "native"
    session: Literal["stateless", "chat"] = "stateless"

    def resolution_at(self, step: int) -> str:
        """The resolution asked for at a step; `interleaved` goes 1K, 2K, 4K and round again."""
        if self.resolution == "interleaved":
            return ("1K", "2K", "4K")[(step - 1) % 3]
        return self.resolution

    @property
    def label(self) -> str:
        """What differs from the defaults, in words; empty when nothing does."""
        changed = self.model_dump(exclude_defaults=True)
        return ", ".join(f"{name} {value}" for name, value in changed.items())


class ChainKey(Record):
    """Identity of a chain: suite, source, cycle, editor, settings, repeat."""

    suite: str
    source: str
    cycle: str
    editor: str
    settings: Settings = Settings()
    repeat: Annotated[int, Field(ge=0)] = 0

    @property
    def id(self) -> str:
        """Readable and unique: the chain's name in files, tables and pages."""
        return _key_id(self)

    def seed(self, step: int) -> int | None:
        """The seed sent at a step (31 bits, the narrowest range a provider takes), or None."""
        if self.settings.seed == "none":
            return None
        salt = step if self.settings.seed == "per-step" else 0
        digest = hashlib.sha256(f"{_key_hash(self)}:{salt}".encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


@lru_cache(maxsize=1 << 16)  # asked for with every step and every frame
def _key_id(key: ChainKey) -> str:
    cycle = key.cycle.partition("@")[0]
    words = (re.sub(r"[^a-z0-9.]+", "-", w.lower()) for w in (key.source, cycle, key.editor))
    first, *rest = (w.strip("-.")[:40] for w in words)
    first = "floor_" if first == "floor" else first  # `floor--…` is the suite's floor in scores
    return "--".join([first, *rest, _key_hash(key)[:10]])


@lru_cache(maxsize=1 << 16)
def _key_hash(key: ChainKey) -> str:
    # Without defaults, so that a setting added later changes no existing chain's identity.
    text = json.dumps(key.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class FrameRef(Record):
    """A stored frame, by its hash, with what decoding found."""

    sha256: str
    format: str
    bytes: int
    width: int | None = None
    height: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: Frame) -> FrameRef:
        """Describe a decodable frame. Raises MalformedImage."""
        facts = frame.facts
        return cls(
            sha256=frame.digest,
            format=facts.format,
            bytes=len(frame.data),
            width=facts.width,
            height=facts.height,
            notes=facts.notes,
        )

    @classmethod
    def of_malformed(cls, frame: Frame) -> FrameRef:
        """Describe bytes that do not decode; they are kept all the same."""
        kind = sniff(frame.data) or "unknown"
        return cls(sha256=frame.digest, format=kind, bytes=len(frame.data))


class Call(Record):
    """What is known of the call that a step came from.

    Attributes:
        model: The model that the provider says has answered.
        request_id: The provider's name of the call.
        effective_prompt: The prompt that was really used, where the provider tells.
        parameters: What was sent besides prompt and pictures.
        usage: Tokens or other amounts as the provider counts them.
        cost: Dollars.
        basis: Where the cost comes from: `reported` by the provider, computed from its `usage`,
            the price `rule`, or `assumed` because the answer was lost.
        reasoning: The summary of the model's reasoning.
        caveats: What could not be switched off and may move a number.
        size: The size that was asked for, as `1024x1024`.
        format: The file format that was asked for.
        session: What a conversation needs to go on from this step.
        task: The provider's name of a task that is polled for.
        latency: Seconds that this call took, retries and waits before it left out.
        ledger: The call's name in `ledger.jsonl`; empty for a free call.
    """

    model: str | None = None
    request_id: str | None = None
    effective_prompt: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    usage: dict[str, Any] = Field(default_factory=dict)
    cost: float | None = None
    basis: Literal["", "reported", "usage", "rule", "assumed"] = ""
    reasoning: str | None = None
    caveats: tuple[str, ...] = ()
    size: str | None = None
    format: str | None = None
    session: dict[str, Any] = Field(default_factory=dict)
    task: dict[str, Any] = Field(default_factory=dict)
    latency: float | None = None
    ledger: str = ""


class Step(Record):
    """One attempt to make one frame: a line of a chain's file.

    `again` marks a call whose answer was lost and that is made once more: it ends no chain.
    """

    step: Annotated[int, Field(ge=1)]
    outcome: Outcome
    prompt: str
    inputs: tuple[str, ...]
    seed: int | None = None
    frame: FrameRef | None = None
    detail: str = ""
    attempts: int = 1
    call: Call = Call()
    started: str = ""
    seconds: float = 0.0
    again: bool = False

    def timeless(self) -> dict[str, Any]:
        """The record without what differs between two identical runs."""
        told = self.model_dump(mode="json", exclude={"started", "seconds"})
        del told["call"]["latency"], told["call"]["ledger"]
        return told


class ChainHeader(Record):
    """First line of a chain's file."""

    chain: ChainKey
    editor_version: str = ""
    source: FrameRef | None
    truth: FrameRef | None = None


@dataclass(frozen=True)
class Chain:
    """A chain as recorded so far. Without a `source` its pictures are not here, only scores."""

    key: ChainKey
    source: FrameRef | None
    truth: FrameRef | None = None
    editor_version: str = ""
    steps: tuple[Step, ...] = ()

    @cached_property
    def held(self) -> dict[int, FrameRef]:
        """Every frame that is there, by step; 0 is the source. Imported chains may have gaps."""
        found = {0: self.source} if self.source else {}
        made = {s.step: s.frame for s in self.steps if s.outcome == "edited" and s.frame}
        return found | {step: made[step] for step in sorted(made)}

    @cached_property
    def reached(self) -> tuple[int, ...]:
        """The steps whose frame was made, in order, be the frame here or not."""
        return tuple(sorted({s.step for s in self.steps if s.outcome in ("edited", "reported")}))

    @cached_property
    def frames(self) -> tuple[FrameRef, ...]:
        """The source and every frame up to the first gap: the index is the step."""
        found: list[FrameRef] = []
        while (frame := self.held.get(len(found))) is not None:
            found.append(frame)
        return tuple(found)

    @cached_property
    def final(self) -> tuple[Step, ...]:
        """The last record of each step: what it came to, retries and pauses aside."""
        return tuple({step.step: step for step in self.steps}.values())

    @property
    def length(self) -> int:
        """Steps completed without a gap."""
        return max(0, len(self.frames) - 1)

    @property
    def last(self) -> Step | None:
        """The latest record."""
        return self.steps[-1] if self.steps else None

    @cached_property
    def ending(self) -> Step | None:
        """The record that says how the chain stands: the latest.

        Of an imported chain that of its furthest step, since gaps may be filled in any order.
        """
        if self.editor_version != IMPORTED:
            return self.last
        return max(self.final, key=lambda step: step.step, default=None)

    @property
    def ended(self) -> bool:
        """Whether the last outcome left no next input."""
        end = self.ending
        return end is not None and end.outcome in ENDINGS and not end.again

    @property
    def tip(self) -> FrameRef | None:
        """The next input, or None if the chain has ended."""
        return None if self.ended or not self.frames else self.frames[-1]

    @property
    def spent(self) -> float:
        """Dollars of all recorded calls."""
        return sum(s.call.cost or 0.0 for s in self.steps)

    def with_step(self, step: Step) -> Chain:
        """This chain, one record longer."""
        return replace(self, steps=(*self.steps, step))


def count_outcomes(chains: Iterable[Chain]) -> dict[str, int]:
    """How many steps came to each outcome in the end, over chains."""
    return dict(Counter(step.outcome for chain in chains for step in chain.final))
