"""Patches: small squares of every frame, as lossless PNG, with where they were cut.

They are cut from the sRGB view that metrics see. On a grid, what remains at the right and the
bottom is left out. Random places depend on the seed, the source and the frame's size only: frames
of one source that are equally large are cut at the same places, whatever chain and step they are
of, so that a place can be followed along a chain and compared between editors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from convergebench.errors import InputError
from convergebench.frame import Frame, encode
from convergebench.importer.datasetfiles import Column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT: Final = ("chain", "source", "cycle", "kind", "editor", "repeat", "step")
COLUMNS: Final = (
    Column("image", "Image", "the patch, as PNG"),
    Column("chain", "String", "the chain's name"),
    Column("source", "String", "name of the source picture"),
    Column("cycle", "String", "cycle and version"),
    Column("kind", "String", "kind of the cycle"),
    Column("editor", "String", "editor, as it was asked for"),
    Column("repeat", "Int32", "which repeat of the chain, from 0"),
    Column("step", "Int32", "which frame of the chain; 0 is the source"),
    Column("frame", "String", "SHA-256 of the frame it was cut from"),
    Column("patch", "Int32", "which patch of the frame, from 0"),
    Column("x", "Int32", "pixels between the frame's left side and the patch"),
    Column("y", "Int32", "pixels between the frame's upper side and the patch"),
    Column("size", "Int32", "side of the patch in pixels"),
)
"""Columns of the table `patches`."""


@dataclass(frozen=True)
class Patches:
    """Which patches are cut.

    Attributes:
        size: Side in pixels.
        count: How many at random places of every frame; None for all of a grid.
        seed: Of the random places.
    """

    size: int
    count: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size < 1 or (self.count is not None and self.count < 1):
            raise InputError(
                f"patches have a side of at least 1 pixel and a frame at least 1 of them, got "
                f"size {self.size} and count {self.count}"
            )

    def places(self, source: str, width: int, height: int) -> list[tuple[int, int]]:
        """Left and upper sides of the patches of a frame; none where it is too small."""
        wide, high = width - self.size + 1, height - self.size + 1
        if wide < 1 or high < 1:
            return []
        if self.count is None:
            side = self.size
            return [(x, y) for y in range(0, high, side) for x in range(0, wide, side)]
        import numpy as np

        named = f"{self.seed}:{source}:{width}x{height}:{self.size}".encode()
        rng = np.random.default_rng(list(hashlib.sha256(named).digest()))
        drawn = rng.integers(0, (wide, high), (self.count, 2))
        return [(int(x), int(y)) for x, y in drawn]

    def cut(self, frame: Frame, row: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The patches of a frame: their rows and their files. Raises MalformedImage."""
        pixels: NDArray[np.uint8] = frame.pixels
        height, width = pixels.shape[:2]
        about = {name: row[name] for name in KEPT}
        for number, (x, y) in enumerate(self.places(row["source"], width, height)):
            patch = pixels[y : y + self.size, x : x + self.size]
            told = {"frame": frame.digest, "patch": number, "x": x, "y": y, "size": self.size}
            yield {**about, **told, "format": "png"}, encode(patch)
