"""Walking a chain by hand, without the runner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.cycle import Box, Cycle, Edit
from convergebench.editor import Editor, EditRequest, Turn
from convergebench.frame import Frame

COPY = "Produce an exact replica of the provided image, with no alterations."


@pytest.fixture
def replicate() -> Cycle:
    return Cycle(name="replicate", kind="replicate", edit=(Edit(prompt=COPY),))


@pytest.fixture
def walk() -> Callable[..., list[Frame]]:
    """The source and the frames an editor makes of it, step by step."""

    def walked(
        editor: Editor,
        cycle: Cycle,
        source: Frame,
        steps: int,
        *,
        seed: int = 1000,
        region: Box | None = None,
    ) -> list[Frame]:
        frames = [source]
        turns = [Turn(0, "", lambda: source)]
        for step in range(1, steps + 1):
            edit = cycle.edit_at(step)
            request = EditRequest(
                inputs=tuple(frames[index] for index in cycle.inputs_at(step)),
                prompt=edit.wording(0, cycle.round_of(step)),
                edit=edit,
                step=step,
                seed=seed + step,
                region=region,
                history=tuple(turns),
                chain="test",
            )
            made = Frame(editor.edit(request).data)
            frames.append(made)
            turns.append(Turn(step, request.prompt, lambda made=made: made))  # type: ignore[misc]
        return frames

    return walked


@pytest.fixture
def ask() -> Callable[..., EditRequest]:
    """A request to copy one picture; keywords change what they name."""

    def asked(frame: Frame | NDArray[np.uint8], **changes: object) -> EditRequest:
        given = frame if isinstance(frame, Frame) else Frame.of_pixels(frame)
        request = EditRequest(
            inputs=(given,),
            prompt=COPY,
            edit=Edit(prompt=COPY),
            step=1,
            seed=7,
            history=(Turn(0, "", lambda: given),),
            chain="test",
        )
        return replace(request, **changes)  # type: ignore[arg-type]

    return asked


@pytest.fixture
def confetti() -> NDArray[np.uint8]:
    """Independent random samples over the whole range, of odd size: nothing survives by luck."""
    return np.random.default_rng(3).integers(0, 256, (37, 51, 3)).astype(np.uint8)
