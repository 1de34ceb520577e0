"""Asking a Gemini editor, for the tests of it."""

from __future__ import annotations

import base64
import contextlib
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from convergebench.cycle import Edit
from convergebench.editor import EditReply, EditRequest, Turn
from convergebench.errors import EditorError
from convergebench.frame import Frame
from convergebench.registry import open_editor
from tests.editors.providers.speak_gemini import GeminiSpeaker, spelt
from tests.support.loopback import Received, Reply
from tests.support.speaker import Speaker

KEY = "MARKER-gemini-key-not-to-be-seen"
LITE = "gemini:gemini-3.1-flash-lite-image"
NEW = "gemini:gemini-nano-banana-2.1"
PRO = "gemini:gemini-3-pro-image"
OLD = "gemini:gemini-2.5-flash-image"
SOURCE = Frame(Speaker.picture(96, 64, seed=99))


class Scripted(GeminiSpeaker):
    """Answers as a test tells it to, else as ever."""

    family = "gemini-scripted"
    script: Callable[[str], Reply] | None = None

    def answer(self, request: Received) -> Reply:
        if self.script is None:
            return super().answer(request)
        self.begun.append("scripted")
        return self.script(request.path.split("/")[-1].split(":")[0])


@contextlib.contextmanager
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """The server, with the environment leading to it."""
    speaker = Scripted()
    with speaker:
        for name, value in speaker.environment(KEY).items():
            monkeypatch.setenv(name, value)
        yield speaker


def asked(prompt: str = "Make the sky pink.", **more: Any) -> EditRequest:
    usual: dict[str, Any] = {
        "inputs": (SOURCE,),
        "step": 1,
        "seed": 7,
        "history": (Turn(0, "", lambda: SOURCE),),
        "deadline": 20.0,
        "home_size": (96, 64),
    }
    return EditRequest(prompt=prompt, edit=Edit(prompt=prompt), **{**usual, **more})


def edited(editor: str = LITE, **more: Any) -> EditReply:
    return open_editor(editor).edit(asked(**more))


def raised(editor: str = LITE, **more: Any) -> EditorError:
    """The error that an edit comes to; nowhere in it is the key."""
    with pytest.raises(EditorError) as caught:
        edited(editor, **more)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value.told)
    assert KEY not in told
    return caught.value


def sent(server: Scripted, at: int = -1) -> dict[str, Any]:
    found = spelt(server.server.log[at].json)
    assert isinstance(found, dict)
    return found


def decoded(part: Mapping[str, Any]) -> bytes:
    return base64.urlsafe_b64decode(part["inlineData"]["data"])
