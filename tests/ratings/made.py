"""Runs of restored pictures, drawn and quick, and studies made of them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from convergebench.chain import Chain, ChainKey, FrameRef, Step
from convergebench.cycle import Cycle, Edit
from convergebench.frame import Frame
from convergebench.ratings.creating import create
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite

SECRETIVE: Final = ("zebra-net", "quokka-edit", "walrus-filter", "yak-gan", "newt-diffusion")
"""Editors' names that occur nowhere else, so that a leak is found by searching for them."""
SCENES: Final = ("harbour-scene", "meadow-scene", "alley-scene")


def picture(seed: int, size: int) -> Any:
    """A picture with large shapes and some grain, different for every seed."""
    rng = np.random.default_rng(seed)
    pixels = np.empty((size, size, 3), np.uint8)
    pixels[:] = rng.integers(60, 200, 3)
    for _ in range(12):
        centre = tuple(int(v) for v in rng.integers(0, size, 2))
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        cv2.circle(pixels, centre, int(rng.integers(size // 16, size // 4)), colour, -1)
    grain = rng.normal(0, 6, pixels.shape)
    return np.clip(pixels + grain, 0, 255).astype(np.uint8)


def restored_run(
    folder: Path,
    *,
    images: int = 4,
    methods: Sequence[str] = SECRETIVE,
    size: int = 32,
    truths: bool = True,
    missing: Sequence[tuple[str, str]] = (),
    odd_sizes: bool = False,
) -> Path:
    """A run in which every method repaired every image, better or worse."""
    names = [f"hidden-source-{number}" for number in range(images)]
    cycle = Cycle(name="restore", kind="restore", edit=(Edit(prompt="(none)"),),
                  readers="unprompted")  # fmt: skip
    suite = Suite(
        name="rated",
        version=1,
        size=max(16, size),
        source=tuple(
            Source(
                name=name,
                elsewhere="made by a test",
                licence="CC0-1.0",
                category=SCENES[number % len(SCENES)],
                degradation="fog-damage",
            )
            for number, name in enumerate(names)
        ),
        cycle=(cycle,),
    )
    store = RunStore.create(folder, suite, size, imported=True)
    for number, name in enumerate(names):
        clean = picture(number, size)
        truth = Frame.of_pixels(clean)
        damaged = Frame.of_pixels(cv2.GaussianBlur(clean, (0, 0), size / 20))
        store.put(damaged)
        if truths:
            store.put(truth)
        for rank, method in enumerate(methods):
            key = ChainKey(suite=suite.label, source=name, cycle="restore@1", editor=method)
            chain = Chain(key, FrameRef.of(damaged), FrameRef.of(truth) if truths else None,
                          "imported")  # fmt: skip
            store.start(chain)
            made = cv2.GaussianBlur(clean, (0, 0), 0.3 + rank * size / 80)
            if odd_sizes and rank % 2:
                made = cv2.resize(made, (size + 7, size - 3))
            frame = Frame.of_pixels(made)
            if (name, method) in missing:
                step = Step(step=1, outcome="refused", prompt="", inputs=(), detail="no")
                store.append(key.id, step)
            else:
                ref = FrameRef.of(frame)
                step = Step(step=1, outcome="edited", prompt="", inputs=(), frame=ref)
                store.append(key.id, step, frame)
    return folder


def small_study(folder: Path, design: str = "absolute", **more: Any) -> Path:
    """A study of a new run beside it."""
    made = {k: more.pop(k) for k in ("images", "methods", "size", "truths", "odd_sizes")
            if k in more}  # fmt: skip
    run = restored_run(folder.with_name(f"{folder.name}-run"), **made)
    create(run, folder, design, **{"participants": 3, **more})  # type: ignore[arg-type]
    return folder


def tokens(study: Path) -> dict[str, str]:
    """The participants' tokens by their public ids."""
    with (study / "links.csv").open(newline="") as file:
        return {row["participant"]: row["token"] for row in csv.DictReader(file)}


def admin_secret(study: Path) -> str:
    """What the organiser logs in with."""
    return (study / "admin.txt").read_text().split()[0]


def any_answer(state: dict[str, Any], value: int = 3) -> dict[str, Any]:
    """A complete answer to the page that a state asks."""
    item, design = state["item"], state["study"]["design"]
    letters = [slot["id"] for slot in item["slots"]]
    if design == "pairs":
        values: dict[str, Any] = {"choice": letters[value % 2]}
    elif design == "labels":
        asked = [question["id"] for question in state["study"]["questions"]]
        values = {letter: {name: bool(value % 2) for name in asked} for letter in letters}
    else:
        values = {letter: (value + place) % 6 for place, letter in enumerate(letters)}
    return {"item": item["id"], "values": values, "milliseconds": 1200}
