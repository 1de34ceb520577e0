"""Training data of `drift-nr`: chains of pictures drawn by code, damaged step by step.

Nothing here is a photograph, and nothing comes from outside the repository. What the pictures are
is told in `benchmarks.driftnr_pictures`, how they are damaged in `benchmarks.driftnr_damage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from benchmarks.driftnr_damage import GROWING, IMITATIONS, MEDIA, OWN, gently, manner
from benchmarks.driftnr_pictures import Draw, Pixels, picture

from convergebench.editors.reference import media

BLOCKS: Final = {
    "plain": 1900,
    "imitation": 440,
    "rough": 600,
    "hazy": 480,
    "gentle": 480,
    "pale": 600,
}
"""Kinds of training chains, and how many there are of each."""
PALE: Final = ("resonance", "speckle", "sharpen", "noise", "glare", "shock", "painter", "blur")
"""Manners of the block `pale`."""
STEPS: Final = (0, 1, 3, 5, 10, 20)
"""Frames of a chain that are looked at."""


@dataclass(frozen=True)
class Chain:
    """Frames of one picture under one manner of damage: the steps `STEPS`, and what was harmless.

    Attributes:
        manner: How it was damaged.
        frames: One per step of `STEPS`.
        harmless: Pairs (frame number, variant of it) that are equally good.
    """

    manner: str
    frames: tuple[Pixels, ...]
    harmless: tuple[tuple[int, Pixels], ...]


def chain(seed: int, block: str, number: int) -> Chain:
    """Training chain `number` of a block; every one has dice of its own.

    Chains of the block `imitation` are damaged by one of `IMITATIONS`; those of `rough` begin with
    a rough picture, and every second is damaged so; most of `hazy` begin with little contrast and
    are damaged by one of `GROWING`; those of `gentle` decay slowly; those of `pale` have little
    colour, as photographs often have; the rest as `manner` draws.
    """
    draw = np.random.default_rng([seed, number, list(BLOCKS).index(block)])
    home = picture(draw, rough=block == "rough" or (block == "gentle" and number % 2 == 0))
    if block == "hazy":
        name = ("specks", str(draw.choice(list(GROWING))))[number % 2]
        effect = GROWING[name](draw)
        if draw.random() < 0.6:
            light = np.float32(draw.uniform(40, 230))
            home = media.levels(light + (home - light) * np.float32(draw.uniform(0.15, 0.8)))
    elif block == "gentle":
        name = ("painter", "resonance", "sharpen")[number % 3]
        effect = gently(name, draw)
    elif block == "pale":
        name = str(draw.choice(PALE))
        effect = {**MEDIA, **OWN, **GROWING, **IMITATIONS}[name](draw)
        grey = media.luma(home)[..., None]
        home = media.levels(grey + (home - grey) * np.float32(draw.uniform(0.05, 0.5)))
    elif block == "imitation" or (block == "rough" and number % 2):
        name = str(draw.choice(list(IMITATIONS)))
        effect = IMITATIONS[name](draw)
    else:
        name, effect = manner(draw)
    frame, kept = home, [home]
    for step in range(1, STEPS[-1] + 1):
        frame = effect(frame, draw, step)
        if step in STEPS:
            kept.append(frame)
    chosen = [0, int(draw.integers(1, len(STEPS)))]
    harmless = tuple((k, variant(kept[k], draw)) for k in chosen)
    return Chain(name, tuple(kept), harmless)


def variant(pixels: Pixels, draw: Draw) -> Pixels:
    """The picture cropped, flipped, made a little larger or smaller, brighter or darker."""
    height, width = pixels.shape[:2]
    kind = str(draw.choice(["crop", "flip", "light", "size"]))
    if kind == "crop":
        top, left = (round(side * draw.uniform(0, 0.15)) for side in (height, width))
        bottom, right = (round(side * draw.uniform(0.85, 1)) for side in (height, width))
        if min(bottom - top, right - left) >= 64:
            return np.ascontiguousarray(pixels[top:bottom, left:right])
    if kind == "light":
        gain, offset = draw.uniform(0.94, 1.04), draw.uniform(-8, 8)
        return media.levels(pixels * np.float32(gain) + np.float32(offset))
    if kind == "size":
        scale = draw.uniform(0.8, 0.95)  # larger would be softer
        size = (max(64, round(width * scale)), max(64, round(height * scale)))
        return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    return np.ascontiguousarray(pixels[:, ::-1])
