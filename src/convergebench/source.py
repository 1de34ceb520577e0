"""Sources: the images that are walked, with checksum, licence and origin.

A source is a file, a scene drawn by our own code, or such a scene *degraded* by the engine in
`degrading`: then the clean drawing is its ground truth, unless that is withheld.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from convergebench import degrading, drawing
from convergebench.cycle import Box, Name, Record, checked_box, without_empty


class Degradation(Record):
    """One way in which a picture was damaged: kind, severity 1 to 3, and the seed of its chance.

    `engine` is the version of the engine that does it: part of a suite's seal, because it moves
    every number.
    """

    kind: str
    severity: Annotated[int, Field(ge=1, le=3)] = 2
    seed: Annotated[int, Field(ge=0)] = 0
    engine: Annotated[int, Field(ge=1)] = degrading.VERSION

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in degrading.KINDS:
            raise ValueError(f"no degradation {kind!r}; known: {', '.join(degrading.KINDS)}")
        return kind


_NEWER = (
    *("elsewhere", "called", "address", "truth_address", "origin", "width", "height"),
    *("degrade", "withheld", "degradation"),
)
"""Keys that came later: left out of records where they are empty."""


class Source(Record):
    """One source image: a file with its checksum, or a scene drawn by our own code.

    A source that scores were published for, and whose picture is not here, only says where it is.
    `called` is what an import found it called, where that is no legal name. `address` is where the
    file can be had, pinned to a commit, and `truth_address` where its truth can; `origin` who made
    it, as its licence may want to be told. `width` and `height` are a drawn source's own size:
    without them it is a square of the suite's size. `degrade` damages it, in that order; the clean
    drawing is then its truth, unless `withheld` says that there is to be none. `degradation` is
    what such damage is called in tables: of a file, what is known of it.
    """

    name: Name
    file: str | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    draw: str | None = None
    pixels: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    truth: str | None = None
    truth_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    licence: Annotated[str, Field(min_length=1)]
    category: str = ""
    description: str = ""
    regions: dict[str, Box] = Field(default_factory=dict)
    elsewhere: Annotated[str, Field(min_length=1)] | None = None
    called: str | None = None
    address: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None
    truth_address: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None
    origin: str | None = None
    width: Annotated[int, Field(ge=16, le=8192)] | None = None
    height: Annotated[int, Field(ge=16, le=8192)] | None = None
    degrade: tuple[Degradation, ...] | None = None
    withheld: bool | None = None
    degradation: str | None = None

    @model_serializer(mode="wrap")
    def _without_the_newer(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(dump(self), *_NEWER)

    @field_validator("regions")
    @classmethod
    def _inside(cls, regions: dict[str, Box]) -> dict[str, Box]:
        return {name: checked_box(box) for name, box in regions.items()}

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if sum(told is not None for told in (self.file, self.draw, self.elsewhere)) != 1:
            raise ValueError(f"source {self.name!r}: give either 'file' or 'draw'")
        if self.file and not self.sha256:
            raise ValueError(f"source {self.name!r}: 'sha256' is missing")
        if self.truth and not self.truth_sha256:
            raise ValueError(f"source {self.name!r}: 'truth_sha256' is missing")
        if self.draw and self.draw not in drawing.SCENES:
            raise ValueError(f"source {self.name!r}: no drawn scene {self.draw!r}")
        if (self.width is None) != (self.height is None) or (self.width and not self.draw):
            raise ValueError(f"source {self.name!r}: a drawn source has 'width' and 'height'")
        if self.degrade is not None and not (self.draw and self.degrade):
            raise ValueError(f"source {self.name!r}: 'degrade' is a list, of a drawn source")
        if self.withheld is not None and not self.degrade:
            raise ValueError(f"source {self.name!r}: only a degraded one has a truth to withhold")
        return self

    def drawn_size(self, side: int) -> tuple[int, int]:
        """Width and height in which it is drawn where the suite's size is `side`.

        A square of that side; or its own size, made smaller where its short side is longer.
        """
        if not (self.width and self.height):
            return side, side
        scale = min(1.0, side / min(self.width, self.height))
        return max(16, round(self.width * scale)), max(16, round(self.height * scale))

    @property
    def has_truth(self) -> bool:
        """Whether there is a ground truth for it."""
        return self.truth is not None or bool(self.degrade and not self.withheld)

    @property
    def damage(self) -> str:
        """What its damage is called: as told, or the kinds of it; empty where nothing is known."""
        return self.degradation or " + ".join(one.kind for one in self.degrade or ())

    @property
    def files(self) -> tuple[tuple[str, str, str | None], ...]:
        """Its files, as path, SHA-256 and address: the picture's, then the truth's."""
        told = (
            (self.file, self.sha256, self.address),
            (self.truth, self.truth_sha256, self.truth_address),
        )
        return tuple((file, digest, where) for file, digest, where in told if file and digest)
