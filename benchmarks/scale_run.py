"""The run that `benchmarks.scale` measures: complete, of many small frames, made in a minute.

Every frame and every record goes through `RunStore`, as when `run` makes them; only the flushes are
left out (`os.fsync` does nothing while it is built, and one `sync` follows), because 28,000 of them
would take longer than all that is measured. The pictures are cheap noise, no two alike. Chains,
settings and versions are those that `run` would find, so it has nothing to do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import cv2
import numpy as np

from convergebench.chain import Call, Chain, ChainKey, FrameRef, Step
from convergebench.cycle import Cycle, Edit
from convergebench.frame import Frame, encode, sha256
from convergebench.registry import open_editor
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite

if TYPE_CHECKING:
    from numpy.typing import NDArray

EDITORS = ("ref:noise", "ref:banana")
PROMPTS = ("Add a pair of round glasses to the person.", "Remove the glasses again.")
SIDES = (48, 64)


def make_run(path: Path, sources: int, steps: int) -> int:
    """A complete run of two editors on so many sources; answers with the number of its frames."""
    pictures = [_scene(number) for number in range(sources)]
    frames = [Frame(encode(pixels.astype(np.uint8))) for pixels in pictures]
    suite = _suite(frames)
    versions = {name: open_editor(name).spec.version for name in EDITORS}
    with mock.patch.object(os, "fsync"):
        store = RunStore.create(path, suite, suite.size)
        with store.writing("run"):
            store.log_session("start", command="benchmarks.scale")
            spec = {"editors": list(EDITORS), "steps": steps, "controls": False}
            store.write_json("spec.json", spec)
            told: dict[str, Any] = {}
            for source, frame, pixels in zip(suite.source, frames, pictures, strict=True):
                store.put(frame)
                told[source.name] = [FrameRef.of(frame).model_dump(mode="json"), None]
                for editor in EDITORS:
                    key = ChainKey(
                        suite=suite.label, source=source.name, cycle="glasses@1", editor=editor
                    )
                    _walk(
                        store, Chain(key, FrameRef.of(frame), None, versions[editor]), pixels, steps
                    )
            store.write_json("sources.json", told)
            store.log_session("end", pid=os.getpid())
    os.sync()
    return sources * (1 + len(EDITORS) * steps)


def _suite(frames: list[Frame]) -> Suite:
    return Suite(
        name="scale",
        version=1,
        size=max(SIDES),
        source=tuple(
            Source(
                name=f"photo-{number:04d}",
                file=f"photo-{number:04d}.png",
                sha256=sha256(frame.data),
                licence="CC0-1.0",
            )
            for number, frame in enumerate(frames)
        ),
        cycle=(
            Cycle(
                name="glasses",
                kind="round-trip",
                edit=tuple(Edit(prompt=prompt) for prompt in PROMPTS),
            ),
        ),
    )


def _scene(number: int) -> NDArray[np.float32]:
    """Smooth patches of colour, of one of two sizes."""
    side = SIDES[number % len(SIDES)]
    coarse = np.random.default_rng(number).uniform(30, 225, (6, 6, 3)).astype(np.float32)
    large = cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC)
    return np.clip(large, 0, 255).astype(np.float32)


def _walk(store: RunStore, chain: Chain, scene: NDArray[np.float32], steps: int) -> None:
    """Noise that grows with every step; a record as a paid editor would leave it, but free."""
    rng = np.random.default_rng(chain.key.seed(1))
    grain = rng.normal(0, 1, scene.shape).astype(np.float32)
    strength = 2 + EDITORS.index(chain.key.editor)
    before = chain.source
    store.start(chain)
    for step in range(1, steps + 1):
        grown = scene + np.roll(grain, 5 * step, axis=1) * np.float32(strength * step**0.5)
        frame = Frame(encode(np.clip(grown, 0, 255).astype(np.uint8)))
        ref = FrameRef(
            sha256=frame.digest,
            format="png",
            bytes=len(frame.data),
            width=scene.shape[1],
            height=scene.shape[0],
        )
        record = Step(
            step=step,
            outcome="edited",
            prompt=PROMPTS[(step - 1) % 2],
            inputs=(before.sha256,) if before else (),
            seed=chain.key.seed(step),
            frame=ref,
            call=Call(
                model=chain.key.editor,
                request_id=f"req-{step:05d}",
                reasoning="The picture is to stay as it is, but for the glasses. " * 4,
                size=f"{scene.shape[1]}x{scene.shape[0]}",
                latency=4.1,
            ),
            started="2026-01-26T12:00:00Z",
            seconds=4.2,
        )
        store.append(chain.key.id, record, frame)
        before = ref
