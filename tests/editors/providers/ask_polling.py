"""What the tests of BFL, fal and Replicate share: an editor that talks to their server."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from convergebench.chain import Settings
from convergebench.cycle import Edit
from convergebench.editor import EditReply, EditRequest
from convergebench.errors import EditorError
from convergebench.frame import Frame
from convergebench.registry import open_editor
from tests.support.loopback import Received
from tests.support.speaker import Speaker

KEY = "KEY-5b1f-not-to-be-seen"
PROMPT = "Make the sky pink."
SOURCE = Speaker.picture(64, 48, seed=99)


@dataclass
class Asking:
    """An editor against a server; what it was told of is in `tasks`."""

    speaker: Any
    editor: str = ""
    tasks: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(
        self,
        *,
        seed: int | None = 7,
        settings: Settings | None = None,
        home: tuple[int, int] = (1024, 1024),
        inputs: tuple[bytes, ...] = (SOURCE,),
        deadline: float = 20.0,
        task: Mapping[str, Any] | None = None,
        on_task: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> EditReply:
        request = EditRequest(
            inputs=tuple(Frame(data) for data in inputs),
            prompt=PROMPT,
            edit=Edit(prompt=PROMPT),
            step=1,
            seed=seed,
            settings=settings or Settings(),
            deadline=deadline,
            chain="a-chain",
            home_size=home,
            task=task,
            on_task=on_task or self.tasks.append,
        )
        return open_editor(self.editor or self.speaker.editor).edit(request)

    def fails(self, kind: type[EditorError], match: str, **how: Any) -> Any:
        """What an edit that fails raises; nothing of it holds the key."""
        with pytest.raises(kind, match=match) as caught:
            self(**how)
        error = caught.value
        shown = "".join(traceback.format_exception(error)) + repr(error.told) + repr(self.tasks)
        assert KEY not in shown
        return error

    @property
    def posts(self) -> list[Received]:
        """The submissions, in order."""
        return [request for request in self.speaker.server.log if request.method == "POST"]

    @property
    def body(self) -> Any:
        """What was submitted, when once."""
        (post,) = self.posts
        return post.json


def lower(request: Received) -> dict[str, str]:
    """The headers, names in small letters."""
    return {name.lower(): value for name, value in request.headers.items()}


def asking(speaker: Any, monkeypatch: pytest.MonkeyPatch, editor: str = "") -> Asking:
    """An editor whose key and address lead to that server."""
    for name, value in speaker.environment(KEY).items():
        monkeypatch.setenv(name, value)
    return Asking(speaker, editor)
