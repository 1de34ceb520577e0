"""A small run on object storage, written step by step, without editors."""

from __future__ import annotations

from pathlib import Path

from convergebench.chain import Chain, ChainKey, FrameRef, Step
from convergebench.frame import Frame
from convergebench.store import RunStore
from convergebench.suite import load_suite
from tests.remote.conftest import Shelf
from tests.support.runs import picture, write_suite

KEY = ChainKey(suite="tiny@1", source="s0", cycle="copy@1", editor="ref:identity")
CHAIN = f"chains/{KEY.id.rpartition('--')[2][:2]}/{KEY.id}.jsonl"


def begun(shelf: Shelf, folder: Path, place: str = "") -> tuple[RunStore, Chain]:
    """A run with one chain that has no step yet."""
    suite = load_suite(write_suite(folder / "suite", size=16))
    store = RunStore.create(place or shelf.run, suite, 16)
    source = suite.frame(suite.source[0])
    chain = Chain(KEY, FrameRef.of(source), None, "1")
    with store.writing("run"):
        store.put(source)
        store.start(chain)
    return store, chain


def step_of(chain: Chain, seed: int, size: int = 16) -> tuple[Step, Frame]:
    """A next step, whose picture has a seed."""
    frame = Frame.of_pixels(picture(seed, size, size))
    step = Step(
        step=chain.length + 1,
        outcome="edited",
        prompt="Copy the picture.",
        inputs=(chain.frames[-1].sha256,),
        frame=FrameRef.of(frame),
    )
    return step, frame


def grown(store: RunStore, chain: Chain, *seeds: int, size: int = 16) -> Chain:
    """The chain with more steps; the run is held for writing."""
    for seed in seeds:
        step, frame = step_of(chain, seed, size)
        store.append(KEY.id, step, frame)
        chain = chain.with_step(step)
    return chain
