"""The editor seam: one method.

An editor is anything with a `spec` and `edit(EditRequest) -> EditReply`. It holds no state between
calls: the request carries the frames, the edit, the seed and the whole history, so image-only and
conversational editors share the seam and any chain can be resumed at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from convergebench.chain import Settings
from convergebench.cycle import Box, Edit
from convergebench.frame import Frame


@dataclass(frozen=True)
class EditorSpec:
    """What the runner and the report need to know about an editor.

    Attributes:
        name: Canonical name, options included: `ref:jpeg,quality=75`.
        version: Raised when the editor's output can change.
        description: One line for lists.
        concurrency: Calls in flight it bears; None means one per core.
        seconds: Typical duration of a call, for `plan`; None when unknown.
        price: Dollars per call, for `plan` and the budget; None when unknown, 0 when free.
        deterministic: Whether the same request gives the same bytes.
        control: Whether it is a control (shown in every report, told apart from the ranked).
        caveats: What cannot be switched off and may move a number.
    """

    name: str
    version: str
    description: str = ""
    concurrency: int | None = None
    seconds: float | None = None
    price: float | None = None
    deterministic: bool = False
    control: bool = False
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """One earlier step, for editors that converse; frames are read only when asked for."""

    step: int
    prompt: str
    load: Callable[[], Frame]


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


@dataclass(frozen=True)
class EditReply:
    """The image as received, and what the editor told about the call."""

    data: bytes
    model: str | None = None
    request_id: str | None = None
    effective_prompt: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost: float | None = None
    reasoning: str | None = None
    caveats: tuple[str, ...] = ()


@runtime_checkable
class Editor(Protocol):
    """Anything that edits images.

    `edit` raises EditorRefused, EditorNoImage or EditorFailed, which are recorded as outcomes, or
    EditorUnavailable, which the runner retries. It may be called from several threads at once, as
    many as `spec.concurrency` allows.
    """

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        ...

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit."""
        ...
