"""What the tests of OpenAI and OpenRouter share: a server that is set up, frames and requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from convergebench.cycle import Edit
from convergebench.editor import EditRequest
from convergebench.frame import Frame
from tests.support.speaker import Speaker

KEY = "sk-marker-5e1f-not-to-be-seen"
Spoken = TypeVar("Spoken", bound=Speaker)


@contextmanager
def starting(
    kind: type[Spoken], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Spoken]]:
    """Give what starts a server whose calls meet the named fates in turn; then all is well."""
    with ExitStack() as stack:

        def begin(*fates: str) -> Spoken:
            speaker = kind(lambda n: fates[n] if n < len(fates) else "ok")
            stack.enter_context(speaker)
            for name, value in speaker.environment(KEY).items():
                monkeypatch.setenv(name, value)
            return speaker

        yield begin


def frame(width: int = 64, height: int = 64, kind: str = "PNG", seed: int = 1) -> Frame:
    return Frame(Speaker.picture(width, height, kind, seed))


def request(*inputs: Frame, **changes: Any) -> EditRequest:
    prompt = changes.pop("prompt", "Add a red ball. Größe: 5 %")
    made = EditRequest(
        inputs=inputs or (frame(),),
        prompt=prompt,
        edit=Edit(prompt=prompt),
        step=1,
        seed=7,
        deadline=20.0,
        home_size=(1024, 1024),
    )
    return replace(made, **changes)
