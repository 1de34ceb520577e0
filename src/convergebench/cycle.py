"""Cycles: the edits an image is walked through, and which frame should equal what.

An *edit* is one instruction with its inputs and optional region; a *cycle* is a versioned,
repeating list of them that knows, for every frame, where *home* is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from convergebench import drawing

if TYPE_CHECKING:
    from numpy.typing import NDArray

Box = tuple[float, float, float, float]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=60)]
_INPUT = re.compile(r"^(previous|source|back [1-9][0-9]*)$")


NOT_RECORDED: Final = "(not recorded)"
"""The prompt of an imported edit that nobody wrote down."""


class Record(BaseModel):
    """Base of everything that crosses the disk: immutable, and no key is ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def without_empty(told: dict[str, Any], *names: str) -> dict[str, Any]:
    """A record without these keys where they are empty.

    Suites that were sealed before there were such keys keep their content hash so.
    """
    return {name: value for name, value in told.items() if name not in names or value is not None}


def checked_box(box: Box) -> Box:
    """A normalised box, or ValueError when it is empty or leaves the picture."""
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise ValueError(f"a region is [x0, y0, x1, y1] with 0 ≤ x0 < x1 ≤ 1, got {list(box)}")
    return box


def pixel_box(box: Box, width: int, height: int) -> tuple[int, int, int, int]:
    """The smallest box of whole pixels (x0, y0, x1, y1) that contains a normalised box."""
    x0, y0, x1, y1 = box
    return (
        math.floor(x0 * width),
        math.floor(y0 * height),
        math.ceil(x1 * width),
        math.ceil(y1 * height),
    )


OBJECT_KINDS: Final = ("add", "remove", "place")
"""Operations on an object, which need to know which, and the region it is in."""


class Operation(Record):
    """What an edit means to a machine, so that reference editors can really perform it.

    `add` puts an object into all of the edit's region; `place` one more of many, each step's at a
    place of its own there.
    """

    kind: Literal[
        "flip", "turn", "grey", "colour", "add", "remove",
        "warm", "cool", "dim", "brighten", "blur", "sharpen", "soften", "place",
    ]  # fmt: skip
    axis: Literal["horizontal", "vertical"] | None = None
    quarters: Literal[1, 2, 3] | None = None
    object: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needs = {"flip": "axis", "turn": "quarters", **dict.fromkeys(OBJECT_KINDS, "object")}
        needed = needs.get(self.kind)
        if needed and getattr(self, needed) is None:
            raise ValueError(f"operation {self.kind!r} needs {needed!r}")
        given = {n for n in ("axis", "quarters", "object") if getattr(self, n) is not None}
        if given - {needed}:
            raise ValueError(f"operation {self.kind!r} takes no {min(given - {needed})!r}")
        if self.object is not None and self.object not in drawing.OBJECTS:
            raise ValueError(f"no drawn object {self.object!r}; known: {sorted(drawing.OBJECTS)}")
        return self


class Edit(Record):
    """One instruction: its prompt in one or more phrasings, its inputs, the region it may touch.

    `{item}` in a prompt is filled from `items`, one per round. `home` is only for `free` cycles;
    the other kinds know where home is. `caption` says what the picture shows after the edit;
    `{source}` in it is the source's description.
    """

    prompt: str | None = None
    phrasings: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ("previous",)
    region: str | Box | None = None
    operation: Operation | None = None
    home: Literal["source", "truth", "grey"] | None = None
    citation: str | None = None
    caption: str | None = None

    @model_serializer(mode="wrap")
    def _without_the_newer(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(dump(self), "caption")

    @field_validator("inputs")
    @classmethod
    def _known_inputs(cls, inputs: tuple[str, ...]) -> tuple[str, ...]:
        for name in inputs:
            if not _INPUT.match(name):
                raise ValueError(f"input {name!r} is not 'previous', 'source' or 'back N'")
        if not inputs:
            raise ValueError("an edit needs at least one input")
        return inputs

    @field_validator("region")
    @classmethod
    def _inside(cls, region: str | Box | None) -> str | Box | None:
        return region if region is None or isinstance(region, str) else checked_box(region)

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if (self.prompt is None) == (not self.phrasings):
            raise ValueError("give either 'prompt' or 'phrasings'")
        if any("{item}" in p for p in self.prompts) != bool(self.items):
            raise ValueError("'items' and '{item}' in the prompt go together")
        if self.operation and self.operation.kind in OBJECT_KINDS and self.region is None:
            raise ValueError(f"operation {self.operation.kind!r} needs a 'region'")
        return self

    @property
    def prompts(self) -> tuple[str, ...]:
        """All phrasings, the default first."""
        return self.phrasings or ((self.prompt,) if self.prompt is not None else ())

    def wording(self, phrasing: int, round: int) -> str:
        """The prompt as sent in a given round (counted from 1)."""
        text = self.prompts[phrasing % len(self.prompts)]
        return (
            text.replace("{item}", self.items[(round - 1) % len(self.items)])
            if self.items
            else text
        )

    def texts(self, description: str, phrasing: int, round: int) -> tuple[str, str] | None:
        """What the picture shows before and should show after this edit, in words.

        Without a caption the prompt stands for what it asks for; without a description of the
        source nothing can be said.
        """
        if not description:
            return None
        wording = self.wording(phrasing, round)
        if self.caption is None:
            return description, f"{description}. {wording}"
        item = self.items[(round - 1) % len(self.items)] if self.items else ""
        after = self.caption.replace("{source}", description).replace("{item}", item)
        return description, after


@dataclass(frozen=True)
class Home:
    """What a frame should equal: the source or the truth, exactly flipped, turned or greyed."""

    of: Literal["source", "truth"] = "source"
    flip: Literal["horizontal", "vertical"] | None = None
    quarters: int = 0
    grey: bool = False
    content_only: bool = False

    def view(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """These pixels, brought home."""
        if self.flip:
            pixels = flip(pixels, self.flip)
        if self.quarters:
            pixels = turn(pixels, self.quarters)
        return grey(pixels) if self.grey else pixels


def flip(pixels: NDArray[np.uint8], axis: str) -> NDArray[np.uint8]:
    """Mirror: `horizontal` exchanges left and right."""
    return np.ascontiguousarray(pixels[:, ::-1] if axis == "horizontal" else pixels[::-1])


def turn(pixels: NDArray[np.uint8], quarters: int) -> NDArray[np.uint8]:
    """Turn clockwise by quarter turns."""
    return np.ascontiguousarray(np.rot90(pixels, -quarters))


def grey(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The exact grey version: BT.601 luma, rounded half up, in all three channels."""
    wide = pixels.astype(np.uint32)
    luma = (299 * wide[..., 0] + 587 * wide[..., 1] + 114 * wide[..., 2] + 500) // 1000
    return np.repeat(luma.astype(np.uint8)[..., None], 3, axis=2)


CycleKind = Literal[
    "round-trip",
    "replicate",
    "mirror",
    "rotate",
    "reconstruct",
    "recolour",
    "accumulate",
    "cross",
    "restore",
    "free",
]

CYCLE_EDITS: Final = {
    "round-trip": 2,
    "replicate": 1,
    "mirror": 1,
    "rotate": 1,
    "reconstruct": 3,
    "recolour": 2,
    "cross": 4,
    "restore": 1,
}
"""How many edits a cycle of each kind has; `accumulate` and `free` take any number."""


Reversibility = Literal["exact", "preserving", "ambiguous", "destroying", "inventing"]
"""How well an ideal editor could come home: see `convergebench.reversibility`."""

REVERSIBLE: Final = ("exact", "preserving", None)
"""What the headline is made of; None is a cycle that nobody classified."""


class Cycle(Record):
    """A versioned, repeating list of edits that knows where home is.

    `called` is what an import found it called, where that is no legal name. `reversibility` says
    whether an ideal editor could come home; cycles that are only partially reversible are reported
    apart and kept out of the headline. `group` is the group that a prompt belongs to and `factors`
    what sets it apart, as `{length = "short", fidelity = "yes"}`. `readers` says for whom it is:
    editors that read prompts, or those that read none and need not be asked with every prompt.
    """

    name: Name
    version: Annotated[int, Field(ge=1)] = 1
    kind: CycleKind
    category: str = ""
    description: str = ""
    sources: tuple[str, ...] | None = None
    edit: Annotated[tuple[Edit, ...], Field(min_length=1)]
    called: str | None = None
    reversibility: Reversibility | None = None
    group: Annotated[str, Field(min_length=1, max_length=60)] | None = None
    factors: dict[str, str] | None = None
    readers: Literal["prompted", "unprompted"] | None = None

    @model_serializer(mode="wrap")
    def _without_the_newer(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        newer = ("called", "reversibility", "group", "factors", "readers")
        return without_empty(dump(self), *newer)

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return self.called or self.name

    def suits(self, prompted: bool) -> bool:
        """Whether an editor that reads prompts, or one that reads none, walks it."""
        return self.readers in (None, "prompted" if prompted else "unprompted")

    @property
    def reversible(self) -> bool:
        """Whether it counts in the headline."""
        return self.reversibility in REVERSIBLE

    @model_validator(mode="after")
    def _shape(self) -> Self:
        wanted = CYCLE_EDITS.get(self.kind)
        if wanted and len(self.edit) != wanted:
            raise ValueError(
                f"cycle {self.name!r}: kind {self.kind!r} has {wanted} edits, got {len(self.edit)}"
            )
        operation = self.edit[0].operation
        if self.kind == "mirror" and (operation is None or operation.kind != "flip"):
            raise ValueError(f"cycle {self.name!r}: a mirror edit needs operation 'flip'")
        if self.kind == "rotate" and (operation is None or operation.kind != "turn"):
            raise ValueError(f"cycle {self.name!r}: a rotate edit needs operation 'turn'")
        if self.kind == "reconstruct" and len(self.edit[2].inputs) != 2:
            raise ValueError(f"cycle {self.name!r}: rebuilding takes two inputs")
        for index, edit in enumerate(self.edit, 1):
            if edit.home is not None and self.kind != "free":
                raise ValueError(f"cycle {self.name!r}: 'home' is only for kind 'free'")
            for back in (int(i[5:]) for i in edit.inputs if i.startswith("back ")):
                if back > index:
                    raise ValueError(
                        f"cycle {self.name!r}: edit {index} cannot look {back} frames back"
                    )
        return self

    @property
    def phrasings(self) -> int:
        """How many phrasings the best-worded of its edits has."""
        return max(len(edit.prompts) for edit in self.edit)

    @property
    def period(self) -> int:
        """Steps in one round."""
        return len(self.edit)

    def edit_at(self, step: int) -> Edit:
        """The edit that makes frame `step` (counted from 1; frame 0 is the source)."""
        return self.edit[(step - 1) % self.period]

    def round_of(self, step: int) -> int:
        """The round that frame `step` belongs to; 0 for the source."""
        return -(-step // self.period)

    def inputs_at(self, step: int) -> tuple[int, ...]:
        """Indices of the frames that the edit of this step is given."""
        found = []
        for name in self.edit_at(step).inputs:
            back = 1 if name == "previous" else int(name[5:]) if name != "source" else step
            found.append(step - back)
        return tuple(found)

    def home(self, step: int) -> Home | None:
        """Where frame `step` should be, or None where no answer is known."""
        if step == 0:
            return Home()
        operation = self.edit[0].operation
        match self.kind:
            case "replicate":
                return Home()
            case "round-trip" | "cross":
                return Home() if step % self.period == 0 else None
            case "mirror":
                axis = operation.axis if operation else None
                return Home(flip=axis if step % 2 else None)
            case "rotate":
                quarters = operation.quarters if operation and operation.quarters else 1
                return Home(quarters=step * quarters % 4)
            case "reconstruct":
                return Home(content_only=True) if step % 3 == 0 else None
            case "recolour":
                return Home(grey=step % 2 == 1)
            case "restore":
                return Home(of="truth")
            case "accumulate":
                return None
        declared = self.edit_at(step).home
        if declared is None:
            return None
        return Home(of="truth") if declared == "truth" else Home(grey=declared == "grey")

    def expected_count(self, step: int) -> int | None:
        """How many objects an accumulating cycle should have added by this frame."""
        return step if self.kind == "accumulate" else None
