"""Runs with everything that a dataset has to hold: failures, pauses, odd bytes, odd words."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergebench.chain import Call, ChainHeader, ChainKey, FrameRef, Settings, Step
from convergebench.cycle import Cycle, Edit, Operation
from convergebench.errors import MalformedImage
from convergebench.frame import Frame, encode
from convergebench.scoretable import rows_frame
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite
from tests.support.runs import picture

SUITE = Suite(
    name="odd",
    version=3,
    description="Sources | of <all> sorts",
    source=(
        Source(name="hill.v2", draw="dunes", licence="CC0-1.0", description="Sand dunes"),
        Source(name="cloth", draw="fabric", licence="a | licence, of its own", origin="Ada"),
    ),
    cycle=(
        Cycle(name="copy", kind="replicate", edit=(Edit(prompt="Copy the picture."),)),
        Cycle(
            name="ball",
            kind="round-trip",
            edit=(
                Edit(
                    prompt="Add a ball.",
                    region=(0.25, 0.25, 0.75, 0.75),
                    operation=Operation(kind="add", object="red-ball"),
                ),
                Edit(prompt="Remove the ball."),
            ),
        ),
    ),
)


@dataclass
class Made:
    """A step to record: its outcome, the bytes that came, and whatever else it says."""

    step: int
    outcome: Any = "edited"
    data: bytes | None = None
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class Walk:
    """A chain to record."""

    source: str = "cloth"
    cycle: str = "copy@1"
    editor: str = "ref:odd"
    settings: Settings = field(default_factory=Settings)
    repeat: int = 0
    version: str = "1"
    first: bytes | None = None
    truth: bytes | None = None
    steps: list[Made] = field(default_factory=list)


def ref_of(data: bytes) -> FrameRef:
    frame = Frame(data)
    try:
        return FrameRef.of(frame)
    except MalformedImage:
        return FrameRef.of_malformed(frame)


def make_run(
    path: Path, walks: list[Walk], scores: list[Any] | None = None, suite: Suite = SUITE
) -> Path:
    """A run directory with these chains, as a run leaves them."""
    store = RunStore.create(path, suite, 32)
    sources: dict[str, Any] = {}
    for walk in walks:
        key = ChainKey(
            suite=suite.label,
            source=walk.source,
            cycle=walk.cycle,
            editor=walk.editor,
            settings=walk.settings,
            repeat=walk.repeat,
        )
        pair = [ref_of(data) if data else None for data in (walk.first, walk.truth)]
        for data, each in zip((walk.first, walk.truth), pair, strict=True):
            if data and each:
                store.frame_path(each).write_bytes(data)
        head = ChainHeader(chain=key, editor_version=walk.version, source=pair[0], truth=pair[1])
        lines = [head.model_dump_json()]
        sources[walk.source] = [ref.model_dump(mode="json") if ref else None for ref in pair]
        for made in walk.steps:
            ref = ref_of(made.data) if made.data is not None else None
            told = {"prompt": "Copy the picture.", "inputs": (), **made.more}
            step = Step(step=made.step, outcome=made.outcome, frame=ref, **told)
            lines.append(step.model_dump_json())
            if made.data is not None and ref is not None:
                store.frame_path(ref).write_bytes(made.data)
        file = store.chain_path(key.id)
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines))
    store.write_json("sources.json", sources)
    if scores:
        store.add_scores(rows_frame(scores))
    return path


def png(seed: int, side: int = 32) -> bytes:
    return encode(picture(seed, side, side))


def jpeg(seed: int) -> bytes:
    return encode(picture(seed), "jpeg")


def odd_run(path: Path) -> Path:
    """One run with a success, a pause, a refusal, bytes that are no picture, and a short chain."""
    call = Call(
        model="model-7", cost=0.25, basis="reported", reasoning="I „see“ noise…\n\nDone.",
        size="1024x1024", parameters={"n": 1, "deep": {"é": [1.5, None, "x"]}}, usage={"tokens": 9},
        session={"address": "https://x.test/s?Signature=abc"}, task={"id": "t1"}, ledger="call-1",
        caveats=("rewrites prompts",),
    )  # fmt: skip
    edited = Walk(first=png(1), truth=png(2), repeat=1, settings=Settings(temperature=0.4))
    edited.steps = [
        Made(1, "over-budget", None, {"detail": "no money left"}),
        Made(1, "edited", jpeg(3), {"call": call, "seed": 7, "started": "2026-02-03T04:05:06Z"}),
        Made(2, "edited", png(4, 48), {"seconds": 1.25, "inputs": (ref_of(jpeg(3)).sha256,)}),
        Made(3, "refused", None, {"detail": "no <b>thanks</b> | really"}),
    ]
    broken = Walk("hill.v2", "ball@1", "ref:broken", first=png(5))
    broken.steps = [Made(1, "edited", png(6)), Made(2, "malformed", b"<html>not a picture</html>")]
    empty = Walk("cloth", "ball@1", "ref:never", first=None, version="imported")
    empty.steps = [Made(1, "reported"), Made(2, "missing")]
    scored = make_run(path, [edited, broken, empty])
    store = RunStore.open(path)
    chain = next(c.key.id for c in store.chains() if c.key.editor == "ref:odd")
    rows = [
        (chain, 1, "psnr", "1", "home", "all", float("inf"), ""),
        (chain, 2, "psnr", "1", "home", "all", 21.5, ""),
        (chain, 3, "psnr", "1", "home", "all", None, "no frame"),
        (chain, 1, "niqe", "2-x", "none", "all", 3.25, ""),
        ("floor--cloth", 0, "psnr", "1", "hill.v2", "all", 9.0, ""),
    ]
    store.add_scores(rows_frame(rows))  # type: ignore[arg-type]
    return scored
