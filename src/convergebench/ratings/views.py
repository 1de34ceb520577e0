"""The pictures as participants see them: PNG without a word in it, all of an image in one size."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from convergebench.chain import FrameRef
from convergebench.disk import sync_directory
from convergebench.errors import ConvergeBenchError, StoreError
from convergebench.frame import encode, resize, sha256
from convergebench.ratings.choosing import Chosen, Taken
from convergebench.ratings.study import Image, Shot
from convergebench.source import Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCKS: Final = 14
"""Blocks along the longer side that is left of a destroyed picture."""


def view(pixels: NDArray[np.uint8], width: int, height: int) -> bytes:
    """A PNG of the pixels in that size. It has no metadata: pixels are all that goes in."""
    return encode(resize(pixels, width, height))


def destroyed(pixels: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """The picture in coarse blocks under heavy noise: nobody who looks can think it good."""
    import cv2
    import numpy as np

    height, width = pixels.shape[:2]
    scale = BLOCKS / max(height, width)
    small = (max(2, round(width * scale)), max(2, round(height * scale)))
    coarse = cv2.resize(np.ascontiguousarray(pixels), small, interpolation=cv2.INTER_AREA)
    blocks = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_NEAREST)
    noise = np.random.default_rng(seed).normal(0, 48, pixels.shape)
    return np.clip(blocks.astype(np.float64) * 0.7 + 30 + noise, 0, 255).astype(np.uint8)


@dataclass
class Pictures:
    """Views on their way to the disk: the same bytes are kept once."""

    folder: Path
    by_hash: dict[str, str] = field(default_factory=dict)

    def add(self, data: bytes) -> str:
        """Keep a view, and tell its name."""
        digest = sha256(data)
        if digest not in self.by_hash:
            self.by_hash[digest] = name = secrets.token_hex(16)
            (self.folder / f"{name}.png").write_bytes(data)
        return self.by_hash[digest]

    def bytes_of(self, image: Image) -> int:
        """What all pictures of an image weigh that a page may show."""
        names = {image.input, image.reference, *(shot.picture for shot in image.shots.values())}
        return sum((self.folder / f"{name}.png").stat().st_size for name in names if name)

    def sync(self) -> None:
        """Flush all of them to the disk."""
        for name in self.by_hash.values():
            with (self.folder / f"{name}.png").open("rb") as file:
                os.fsync(file.fileno())
        sync_directory(self.folder)


def encoded(
    chosen: Chosen,
    sources: Sequence[Source],
    pictures: Pictures,
    seed: int,
    observe: Callable[[int, int], None] | None,
) -> list[Image]:
    """Encode the views of all images."""
    found = []
    total = len(sources) * (len(chosen.methods) + 3)
    for number, source in enumerate(sources):
        first = chosen.frames[chosen.methods[0].label, source.name]
        shown, given = _beside_pixels(chosen, first)
        best = given if given is not None else shown
        if best is None:
            raise StoreError(f"{source.name}: its input is not in the run")
        height, width = best.shape[:2]
        shots = {}
        for method in chosen.methods:
            taken = chosen.frames[method.label, source.name]
            pixels = taken.store.frame(taken.frame).pixels
            shots[method.label] = Shot(
                picture=pictures.add(view(pixels, width, height)),
                run=taken.run,
                chain=taken.chain.key.id,
                step=taken.step,
                frame=taken.frame.sha256,
            )
        found.append(
            Image(
                source=source.name,
                scene=source.category,
                damage=source.damage,
                width=width,
                height=height,
                input=None if shown is None else pictures.add(view(shown, width, height)),
                reference=None if given is None else pictures.add(view(given, width, height)),
                broken=pictures.add(view(destroyed(best, seed + number), width, height)),
                shots=shots,
                practice=number >= len(chosen.images),
            )
        )
        if observe:
            observe((number + 1) * (len(chosen.methods) + 3), total)
    return found


def _beside_pixels(
    chosen: Chosen, first: Taken
) -> tuple[NDArray[np.uint8] | None, NDArray[np.uint8] | None]:
    """Input and reference of an image: what was damaged, and what the pictures should equal."""
    cycle = chosen.cycles[chosen.methods[0].label]
    home = cycle.home(first.step)

    def read(frame: FrameRef | None) -> NDArray[np.uint8] | None:
        return None if frame is None else first.store.frame(frame).pixels

    begun, truth = read(first.chain.source), read(first.chain.truth)
    if home is None or begun is None:
        return begun, None
    if home.of == "truth":
        return begun, truth
    return None, home.view(begun)


def unreadable(chosen: Chosen, images: Sequence[Source]) -> list[str]:
    """Every picture that is not there, cannot be decoded or does not fit, a line each."""
    found: list[str] = []
    for source in images:
        sizes = {}
        taken = [t for m in chosen.methods if (t := chosen.frames.get((m.label, source.name)))]
        if source.has_truth and any(one.chain.truth is None for one in taken):
            found.append(f"{source.name}: the suite has a truth for it, and the run has not")
        for what, one, ref in _needed(taken):
            try:
                pixels = one.store.frame(ref).pixels
            except ConvergeBenchError as error:
                found.append(f"{source.name}, {what}: {error}")
                continue
            if what in ("input", "truth"):
                sizes[what] = f"{pixels.shape[1]}×{pixels.shape[0]}"
        if len(set(sizes.values())) > 1:
            found.append(
                f"{source.name}: the input is {sizes['input']}, the truth {sizes['truth']} pixels"
            )
    return found


def _needed(taken: Sequence[Taken]) -> list[tuple[str, Taken, FrameRef]]:
    found = [(t.chain.key.editor, t, t.frame) for t in taken]
    for what in ("source", "truth"):
        for t in taken[:1]:
            if ref := getattr(t.chain, what):
                found.append(("input" if what == "source" else what, t, ref))
    return found
