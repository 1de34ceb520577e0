"""Edit requests and replies as bytes: a line of JSON, then the images as they are.

Of a conversation the earlier frames go along; of separate calls only the frames to edit. What the
editor raised comes back as what it was, so that the runner records the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from convergebench import errors
from convergebench.chain import ChainKey, Settings
from convergebench.cycle import Edit
from convergebench.editor import EditReply, EditRequest, Turn
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorUnavailable,
    scrub,
)
from convergebench.frame import Frame

_TOLD: Final = tuple(field.name for field in fields(EditReply) if field.name != "data")
_PLAIN: Final = ("prompt", "step", "seed", "region", "deadline", "chain", "attempt", "home_size")
_KINDS: Final = ("EditorRefused", "EditorNoImage", "EditorFailed")
_BRANCHES: Final = (AccountBlocked, EditorUnavailable, EditorLost)


def request_bytes(request: EditRequest) -> bytes:
    """A request for a worker."""
    chat = request.settings.session == "chat"
    turns = list(request.history)
    frames = [turn.load() for turn in turns] if chat else []
    head = {
        **{name: getattr(request, name) for name in _PLAIN},
        "edit": request.edit.model_dump(mode="json"),
        "settings": request.settings.model_dump(mode="json"),
        "key": request.key.model_dump(mode="json") if request.key else None,
        "task": dict(request.task) if request.task else None,
        "history": [[turn.step, turn.prompt, dict(turn.session)] for turn in turns],
        "inputs": len(request.inputs),
    }
    return _letter(head, [frame.data for frame in (*request.inputs, *frames)])


def read_request(letter: bytes, on_task: Callable[[Mapping[str, Any]], None]) -> EditRequest:
    """What `request_bytes` wrote."""
    head, images = _opened(letter)
    frames = [Frame(image) for image in images]
    inputs, earlier = frames[: head["inputs"]], frames[head["inputs"] :]
    history = tuple(
        Turn(step, prompt, _loader(earlier[n] if earlier else None), session)
        for n, (step, prompt, session) in enumerate(head["history"])
    )
    return EditRequest(
        inputs=tuple(inputs),
        prompt=head["prompt"],
        edit=Edit.model_validate(head["edit"]),
        step=head["step"],
        seed=head["seed"],
        settings=Settings.model_validate(head["settings"]),
        region=tuple(head["region"]) if head["region"] else None,
        history=history,
        deadline=head["deadline"],
        chain=head["chain"],
        attempt=head["attempt"],
        key=ChainKey.model_validate(head["key"]) if head["key"] else None,
        home_size=tuple(head["home_size"]) if head["home_size"] else None,
        task=head["task"],
        on_task=on_task,
    )


def reply_bytes(reply: EditReply, tasks: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """A reply for the driver; `tasks` are those that the editor told of."""
    return _letter({"told": _told(reply), "tasks": list(tasks)}, [bytes(reply.data)])


def error_bytes(error: Exception) -> bytes:
    """What an editor raised, for the driver."""
    kind = next((k.__name__ for k in _BRANCHES if isinstance(error, k)), type(error).__name__)
    known = isinstance(error, EditorError)
    if known and kind not in (*_KINDS, *(branch.__name__ for branch in _BRANCHES)):
        kind = "EditorError"
    told = getattr(error, "told", None) if known else None
    head = {
        "error": kind,
        "known": known,
        "text": scrub(str(error)),
        "about": _told(told) if told else None,
        "more": {
            name: getattr(error, name)
            for name in ("retry_after", "limited", "timed_out")
            if known and hasattr(error, name)
        },
    }
    return _letter(head, [])


def read_reply(letter: bytes, on_task: Callable[[Mapping[str, Any]], None]) -> EditReply:
    """The reply that a worker sent. Raises what the editor raised there."""
    head, images = _opened(letter)
    if "error" not in head:
        for task in head["tasks"]:
            on_task(task)
        return replace(_reply(head["told"]), data=images[0])
    if not head["known"]:  # a bug of the editor's: its name is all that is recorded of its type
        raise type(head["error"], (Exception,), {})(head["text"])
    about = _reply(head["about"]) if head["about"] else None
    raise getattr(errors, head["error"])(head["text"], told=about, **head["more"])


def _told(reply: EditReply) -> dict[str, Any]:
    return {name: getattr(reply, name) for name in _TOLD}


def _reply(told: Mapping[str, Any]) -> EditReply:
    return EditReply(b"", **{**told, "caveats": tuple(told["caveats"])})


def _loader(frame: Frame | None) -> Callable[[], Frame]:
    def load() -> Frame:
        if frame is None:
            raise EditorFailed("earlier frames are sent to another machine only in a chat session")
        return frame

    return load


def _letter(head: Mapping[str, Any], images: Sequence[bytes]) -> bytes:
    told = {**head, "sizes": [len(image) for image in images]}
    text = json.dumps(told, default=_plain).encode()
    return b"\n".join([text, b"".join(images)])


def _plain(value: Any) -> Any:
    """Mappings of any make as tables; what JSON has no word for as text, as records do."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def _opened(letter: bytes) -> tuple[dict[str, Any], list[bytes]]:
    text, _, rest = letter.partition(b"\n")
    head: dict[str, Any] = json.loads(text)
    images, at = [], 0
    for size in head["sizes"]:
        images.append(rest[at : at + size])
        at += size
    return head, images
