"""The editor seam: one method.

An editor is anything with a `spec` and `edit(EditRequest) -> EditReply`. It holds no state between
calls: the request carries the frames, the edit, the seed and the whole history, so image-only and
conversational editors share the seam and any chain can be resumed at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from convergebench.chain import ChainKey, Settings
from convergebench.cycle import Box, Edit
from convergebench.frame import Frame
from convergebench.resources import Resources


@dataclass(frozen=True)
class Asked:
    """A call as far as it is known before it is made; what its price depends on.

    Attributes:
        settings: Resolution, session and the other axes.
        step: Which frame it makes, counted from 1.
        width: Width of the chain's source.
        height: Height of the chain's source.
        prompt: The instruction.
        inputs: How many pictures are sent to be edited.
    """

    settings: Settings
    step: int
    width: int
    height: int
    prompt: str = ""
    inputs: int = 1


@dataclass(frozen=True)
class Price:
    """Dollars of one call. The budget reserves `high`; the plan shows all three."""

    low: float
    expected: float
    high: float

    @classmethod
    def flat(cls, dollars: float) -> Price:
        """A price that does not vary."""
        return cls(dollars, dollars, dollars)


@dataclass(frozen=True)
class Abilities:
    """Which settings an editor can follow; the runner refuses a run that asks for others.

    Attributes:
        seeds: Whether it takes a seed. Without, the default `per-step` is simply not sent.
        temperature: Whether it takes a temperature.
        resolutions: Which resolutions besides `native` can be asked for; `interleaved` needs all
            three.
        sessions: Whether calls are separate (`stateless`), one conversation (`chat`), or either.
    """

    seeds: bool = True
    temperature: bool = True
    resolutions: tuple[str, ...] = ("1K", "2K", "4K")
    sessions: tuple[str, ...] = ("stateless", "chat")


@dataclass(frozen=True)
class EditorSpec:
    """What the runner and the report need to know about an editor.

    Attributes:
        name: Canonical name, options included: `ref:jpeg,quality=75`.
        version: Raised when the editor's output can change.
        description: One line for lists.
        concurrency: Calls in flight it bears; None means one per core.
        seconds: Typical duration of a call, for `plan`; None when unknown.
        price: Dollars per call where that is all there is to say; None when unknown, 0 when free.
        pricing: The price of a call that depends on what is asked; goes before `price`.
        sizing: The size of the picture that a call will ask for, where that is not the source's.
        deterministic: Whether the same request gives the same bytes.
        control: Whether it is a control (shown in every report, told apart from the ranked).
        caveats: What cannot be switched off and may move a number.
        abilities: Which settings it can follow.
        least_side: Shortest side of a picture that it is said to take; 0 when none is known.
        account: Provider and a fingerprint of the key: editors with the same share one limit of
            calls in flight. Empty for an editor on its own.
        lacks: Why it cannot be called here (no key, no SDK) and what to do, or empty. Such an
            editor can be planned, not run.
        resources: What a worker takes that makes its edits on a machine of ours, so that an engine
            can place it; None for calls that are cheap or wait for somebody else's server.
    """

    name: str
    version: str
    description: str = ""
    concurrency: int | None = None
    seconds: float | None = None
    price: float | None = None
    pricing: Callable[[Asked], Price] | None = None
    sizing: Callable[[Asked], tuple[int, int]] | None = None
    deterministic: bool = False
    control: bool = False
    caveats: tuple[str, ...] = ()
    abilities: Abilities = Abilities()
    least_side: int = 0
    account: str = ""
    lacks: str = ""
    resources: Resources | None = None

    def price_of(self, asked: Asked) -> Price | None:
        """What a call may cost, or None when nobody knows."""
        if self.pricing is not None:
            return self.pricing(asked)
        return None if self.price is None else Price.flat(self.price)


@dataclass(frozen=True)
class Turn:
    """One earlier step, for editors that converse; frames are read only when asked for.

    Attributes:
        step: Which frame it made; 0 is the source.
        prompt: The instruction that was sent.
        load: Reads the frame.
        session: What the editor's reply at that step told to keep (`EditReply.session`).
    """

    step: int
    prompt: str
    load: Callable[[], Frame]
    session: Mapping[str, Any] = field(default_factory=dict)


def _unheard(_task: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class EditRequest:
    """Everything an editor may know about the edit it is to make.

    Attributes:
        inputs: The frames to edit; almost always one.
        prompt: The instruction as worded for this step.
        edit: The edit as the suite defines it, with its machine-readable operation if any.
        step: Which frame this call makes, counted from 1.
        seed: 31-bit seed, or None when the settings ask for none.
        settings: Temperature, resolution, session and the other axes.
        region: Normalised box the edit may touch, or None.
        history: Frame 0 (the source, with an empty prompt) and every step so far.
        deadline: Seconds after which the runner gives the call up.
        chain: The chain's id, for logs and request tags.
        attempt: 1 for the first try of this step, then counting up.
        key: The chain's identity (source, cycle, settings, repeat), where there is one.
        home_size: Width and height of the chain's source, from which the size to ask for follows.
        task: A task that was begun for this very step and not yet collected: poll it, do not
            begin another.
        on_task: To be told, at once, of a task that was begun and is polled for. It is on the disk
            when this returns, so a killed run goes on with the same task.
    """

    inputs: tuple[Frame, ...]
    prompt: str
    edit: Edit
    step: int
    seed: int | None
    settings: Settings = field(default_factory=Settings)
    region: Box | None = None
    history: Sequence[Turn] = ()
    deadline: float = 120.0
    chain: str = ""
    attempt: int = 1
    key: ChainKey | None = None
    home_size: tuple[int, int] | None = None
    task: Mapping[str, Any] | None = None
    on_task: Callable[[Mapping[str, Any]], None] = _unheard


@dataclass(frozen=True)
class EditReply:
    """The image as received, and what the editor told about the call.

    The fields are those of `convergebench.chain.Call`. `cost` is what the provider reported or what
    follows from its usage (`basis` says which), or None: then the price rule counts.
    """

    data: bytes
    model: str | None = None
    request_id: str | None = None
    effective_prompt: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost: float | None = None
    basis: Literal["", "reported", "usage"] = ""
    reasoning: str | None = None
    caveats: tuple[str, ...] = ()
    size: str | None = None
    format: str | None = None
    session: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Editor(Protocol):
    """Anything that edits images.

    `edit` raises EditorRefused, EditorNoImage or EditorFailed, which are recorded as outcomes;
    EditorUnavailable, which the runner retries; EditorLost when a call may have been billed and its
    answer did not come; or AccountBlocked, after which the account's chains pause. It may be called
    from several threads at once, as many as `spec.concurrency` allows.
    """

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        ...

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit."""
        ...
