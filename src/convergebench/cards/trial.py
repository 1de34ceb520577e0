"""`editors check`: one edit of a small drawn picture, at a price that is told before."""

from __future__ import annotations

import json
import math
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from convergebench.cards.facts import priced
from convergebench.chain import Settings
from convergebench.cycle import Edit, Operation
from convergebench.editor import Asked, Editor, EditReply, EditRequest, Price, Turn
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
    MalformedImage,
    SettingsError,
    scrub,
)
from convergebench.registry import open_editor
from convergebench.table import Table

if TYPE_CHECKING:
    from convergebench.cycle import Box
    from convergebench.frame import Facts, Frame

SIDE: Final = 64
"""Side of the picture that is edited, where the editor takes so small a one."""
SECONDS: Final = 300.0
PROMPT: Final = "Remove the red ball. Keep everything else exactly as it is."
SEED: Final = 20_261_115
_REGION: Final[Box] = (0.5, 0.5, 0.95, 0.95)
_SHOWN: Final = 600

Outcome = Literal[
    "edited", "refused", "no-image", "malformed", "failed", "lost", "blocked", "unavailable"
]
_WORDS: Final[dict[Outcome, str]] = {
    "refused": "refused the edit",
    "no-image": "answered without an image",
    "malformed": "sent something that is no whole image",
    "failed": "failed",
    "lost": "did not answer, and may have billed the call",
    "blocked": "takes no calls of this account now",
    "unavailable": "is not available now; nothing was billed",
}


_KINDS: Final[tuple[tuple[type[EditorError], Outcome], ...]] = (
    (EditorRefused, "refused"),
    (EditorNoImage, "no-image"),
    (EditorLost, "lost"),
    (AccountBlocked, "blocked"),
    (EditorUnavailable, "unavailable"),
)


@dataclass(frozen=True)
class Trial:
    """An edit that can be made, and what it will cost."""

    editor: Editor
    price: Price | None

    @property
    def name(self) -> str:
        """The editor's name."""
        return self.editor.spec.name

    @property
    def free(self) -> bool:
        """Whether it costs nothing for sure."""
        return self.price is not None and self.price.high == 0

    @property
    def offer(self) -> str:
        """The price in one sentence."""
        what = f"one edit of a {self.side}-pixel picture with {self.name}"
        if self.price is None:
            return f"{what}: nobody knows what it costs"
        return f"{what}: {priced(self.price)}"

    @property
    def side(self) -> int:
        """Side of the picture that is edited."""
        return _side(self.editor)

    def make(self, *, deadline: float = SECONDS) -> Tried:
        """Make the edit, once. What goes wrong is told in the result."""
        source = picture(self.side)
        begun_task: dict[str, Any] = {}
        request = EditRequest(
            inputs=(source,),
            prompt=PROMPT,
            edit=_edit(),
            step=1,
            seed=SEED if self.editor.spec.abilities.seeds else None,
            region=_REGION,
            history=(Turn(0, "", lambda: source),),
            deadline=deadline,
            chain="editors-check",
            home_size=(self.side, self.side),
            on_task=begun_task.update,
        )
        begun = time.monotonic()
        reply, outcome, detail, doubtful = _asked(self.editor, request)
        seconds = time.monotonic() - begun
        facts: Facts | None = None
        if outcome == "edited":
            facts, outcome, detail = _decoded(reply)
        cost, basis = self._cost(reply, outcome, doubtful)
        task = {**begun_task, **reply.task} if outcome == "lost" else {}
        return Tried(self.name, outcome, detail, reply, facts, seconds, cost, basis, task)

    def _cost(self, reply: EditReply, outcome: Outcome, doubtful: bool) -> tuple[float | None, str]:
        """Dollars of the call, and how they are known; as a run would count them."""
        if reply.cost is not None and 0 <= reply.cost < math.inf:
            return reply.cost, reply.basis or "reported"
        if not doubtful and outcome not in ("edited", "malformed"):
            return 0.0, "not billed, as far as is known"
        if self.price is None:
            return None, ""
        return self.price.expected, "assumed" if doubtful else "price rule"


@dataclass(frozen=True)
class Tried:
    """What an edit came to.

    Attributes:
        editor: Its name.
        outcome: As of a step, except that what is not recorded in chains has its own word here.
        detail: What went wrong, in the provider's words.
        reply: What the editor told about the call.
        facts: What the picture decoded to.
        seconds: How long it took.
        cost: Dollars, or None when nobody knows.
        basis: How they are known.
        task: The provider's task, where its answer was not collected.
    """

    editor: str
    outcome: Outcome
    detail: str
    reply: EditReply
    facts: Facts | None
    seconds: float
    cost: float | None
    basis: str
    task: Mapping[str, Any] = field(default_factory=dict)

    @property
    def worked(self) -> bool:
        """Whether an image came back."""
        return self.outcome == "edited"

    @property
    def sentence(self) -> str:
        """What happened, in one line."""
        if self.worked:
            return f"{self.editor} works"
        return f"{self.editor} {_WORDS[self.outcome]}: {self.detail}"

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The result line by line."""
        reply, facts = self.reply, self.facts
        rows = [
            ("outcome", self.outcome),
            ("reason", self.detail),
            ("model returned", reply.model or ""),
            ("request id", reply.request_id or ""),
            ("size asked for", reply.size or ""),
            ("size returned", f"{facts.width}x{facts.height}" if facts else ""),
            ("format asked for", reply.format or ""),
            ("format returned", facts.format if facts else ""),
            ("cost", _dollars(self.cost, self.basis)),
            ("took", f"{self.seconds:.2f} s"),
            ("effective prompt", reply.effective_prompt or ""),
            ("task", ", ".join(f"{name} {value}" for name, value in self.task.items())),
            *(("note", text) for text in (facts.notes if facts else ())),
            *(("caveat", text) for text in reply.caveats),
        ]
        return [(what, _plain(text)) for what, text in rows if text]

    @property
    def table(self) -> Table:
        """The result as a table."""
        return Table(f"One edit with {self.editor}", ("", ""), self.lines)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        reply, facts = self.reply, self.facts
        told = {
            "editor": self.editor,
            "outcome": self.outcome,
            "reason": self.detail,
            "model": reply.model,
            "request_id": reply.request_id,
            "size_asked": reply.size,
            "size_returned": f"{facts.width}x{facts.height}" if facts else None,
            "format_asked": reply.format,
            "format_returned": facts.format if facts else None,
            "cost": self.cost,
            "basis": self.basis,
            "seconds": round(self.seconds, 3),
            "usage": dict(reply.usage),
            "task": dict(self.task),
            "caveats": list(reply.caveats),
        }
        found: dict[str, Any] = json.loads(_plain(json.dumps(told, default=str)))
        return found


def trial(name: str) -> Trial:
    """The edit that `editors check` would make, not made yet.

    Raises:
        UnknownName: There is no such editor.
        SettingsError: It cannot be called here (no key, no library), or its name is not legal.
    """
    editor = open_editor(name)
    if editor.spec.lacks:
        raise SettingsError(f"{name} cannot be called here. {editor.spec.lacks}")
    side = _side(editor)
    asked = Asked(Settings(), step=1, width=side, height=side, prompt=PROMPT)
    return Trial(editor, editor.spec.price_of(asked))


def _side(editor: Editor) -> int:
    return max(SIDE, editor.spec.least_side)


def picture(side: int = SIDE) -> Frame:
    """A drawn square picture with a red ball in it."""
    from convergebench.editors.reference.operations import add
    from convergebench.frame import Frame
    from convergebench.testing.pictures import colourful

    return Frame.of_pixels(add(colourful(side, side), "red-ball", _REGION))


def _edit() -> Edit:
    operation = Operation(kind="remove", object="red-ball")
    return Edit(prompt=PROMPT, region=_REGION, operation=operation)


def _asked(editor: Editor, request: EditRequest) -> tuple[EditReply, Outcome, str, bool]:
    """What an editor replied, what it came to, why, and whether it may have been billed."""
    nothing = EditReply(b"")
    try:
        reply = _in_time(editor, request)
    except EditorError as error:
        found = (told for kind, told in _KINDS if isinstance(error, kind))
        outcome: Outcome = next(found, "failed")
        wait = getattr(error, "retry_after", None)
        detail = str(error) + ("" if wait is None else f" (try again in {wait:g} s)")
        return error.told or nothing, outcome, scrub(detail)[:_SHOWN], outcome == "lost"
    except Exception as error:  # foreign code: its bugs are told, too
        return nothing, "failed", scrub(f"{type(error).__name__}: {error}")[:_SHOWN], True
    if isinstance(reply, EditReply):
        return reply, "edited", "", False
    return nothing, "failed", f"a reply that is no EditReply ({type(reply).__name__})", True


def _in_time(editor: Editor, request: EditRequest) -> Any:
    """What an editor returns. Raises what it raises, or EditorLost when it takes too long."""
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((editor.edit(request), None))
        except BaseException as error:  # raised by the thread that waits
            answers.put((None, error))

    threading.Thread(target=work, daemon=True, name="check").start()
    try:
        reply, error = answers.get(timeout=request.deadline)
    except queue.Empty:
        told = f"no answer after {request.deadline:g} s"
        raise EditorLost(told, timed_out=True) from None
    if error is not None:
        raise error
    return reply


def _decoded(reply: EditReply) -> tuple[Facts | None, Outcome, str]:
    from convergebench.frame import Frame

    if not reply.data:
        return None, "no-image", "the reply holds no bytes"
    try:
        return Frame(reply.data).facts, "edited", ""
    except MalformedImage as error:
        return None, "malformed", str(error)


def _plain(text: str) -> str:
    """Without secrets, and without half letters, which no terminal can print."""
    return scrub(text).encode("utf-8", "replace").decode()


def _dollars(cost: float | None, basis: str) -> str:
    if cost is None:
        return "unknown"
    return f"${cost:.4g} ({basis})"
