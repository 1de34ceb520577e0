"""A situation: one frame with everything a detector may want to compare it with.

Nothing is decoded before it is asked for, and nothing twice: the pictures of a chain are shared by
the detectors of a step and, where they stay the same (source, home, first frame), by its steps.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from convergebench.chain import Call, Chain, ChainKey, FrameRef, Settings, Step
from convergebench.cycle import Box, Cycle, Edit, Home
from convergebench.frame import resize
from convergebench.metric import Memo, Picture
from convergebench.source import Source
from convergebench.suite import region_box

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from convergebench.judging import Judge

    Pixels = NDArray[np.uint8]

T = TypeVar("T")

COMPARED: Final = 1 << 20
"""Pixels at which a frame and its home are compared at most, unless a detector says otherwise."""
TIERS: Final = {"1K": 1024, "2K": 2048, "4K": 4096}
"""Side of the square that has the area a resolution stands for."""


class Pictures(Protocol):
    """The decoded pictures of one chain."""

    @property
    def memo(self) -> Memo:
        """What is computed once for the chain."""
        ...

    def frame(self, step: int) -> Pixels | None:
        """The frame of a step (0 is the source), or None where it is not here."""
        ...

    def truth(self) -> Pixels | None:
        """The ground truth of a degraded source, where there is one."""
        ...


class Situation:
    """One frame of a chain, and what it should have been.

    Attributes:
        chain: The chain's records.
        cycle: Its cycle.
        source: Its source.
        step: Which frame, counted from 1.
        judge: Answers questions about pictures; None where nobody is to be asked.
        memo: Values computed once for this step, for several detectors.
    """

    def __init__(
        self,
        chain: Chain,
        cycle: Cycle,
        source: Source,
        step: int,
        pictures: Pictures,
        judge: Judge | None = None,
    ) -> None:
        self.chain: Final = chain
        self.cycle: Final = cycle
        self.source: Final = source
        self.step: Final = step
        self.judge: Final = judge
        self.memo: Final = Memo()
        self._pictures = pictures

    # -- what was asked -----------------------------------------------------------------------

    @property
    def edit(self) -> Edit:
        """The edit that made the frame."""
        return self.cycle.edit_at(self.step)

    @property
    def region(self) -> Box | None:
        """The part of the picture that the edit may touch; None for all of it."""
        return region_box(self.edit, self.source)

    @property
    def home_kind(self) -> Home | None:
        """What the frame should equal, or None where no answer is known."""
        return self.cycle.home(self.step)

    @property
    def item(self) -> str:
        """What the edit of this step adds, where its prompt has a list of things; else empty."""
        items = self.edit.items
        return items[(self.cycle.round_of(self.step) - 1) % len(items)] if items else ""

    @cached_property
    def record(self) -> Step | None:
        """The record of the step."""
        return next((s for s in reversed(self.chain.steps) if s.step == self.step), None)

    @property
    def asked_size(self) -> tuple[int, int] | None:
        """Width and height that were asked for.

        Those of the call; where it names none, home's, unless a resolution was asked for by name.
        """
        told = self.record.call.size if self.record else None
        if told is not None:
            sides = re.fullmatch(r"(\d+)\s*[x×*]\s*(\d+)", told.strip())
            return (int(sides[1]), int(sides[2])) if sides else None
        return self.home_size if self.asked_tier is None else None

    @property
    def asked_tier(self) -> str | None:
        """The resolution asked for by name (1K, 2K, 4K), where there was one."""
        told = self.record.call.size if self.record else None
        named = re.search(r"\b[124]K\b", told or "")
        if named:
            return named[0]
        tier = self.chain.key.settings.resolution_at(self.step)
        return tier if tier in TIERS and told is None else None

    # -- sizes, which need no decoding ---------------------------------------------------------

    @property
    def frame_size(self) -> tuple[int, int]:
        """Width and height of the frame."""
        return _size(self.chain.held.get(self.step)) or _shape(self.frame)

    @property
    def home_size(self) -> tuple[int, int] | None:
        """Width and height of home; of the source where no home is known."""
        kind = self.home_kind or Home()
        ref = self.chain.truth if kind.of == "truth" else self.chain.source
        size = _size(ref)
        return (size[1], size[0]) if size and kind.quarters % 2 else size

    # -- pictures -------------------------------------------------------------------------------

    @property
    def frame(self) -> Pixels:
        """The frame. Raises LookupError where it is not here."""
        pixels = self._pictures.frame(self.step)
        if pixels is None:
            raise LookupError(f"frame {self.step} is not here")
        return pixels

    @property
    def origin(self) -> Pixels | None:
        """The source."""
        return self._pictures.frame(0)

    @property
    def previous(self) -> Pixels | None:
        """The frame before; of step 1 the source."""
        return self._pictures.frame(self.step - 1)

    def before(self, steps: int) -> Pixels | None:
        """The frame so many steps before; None where it is not here."""
        return self._pictures.frame(self.step - steps) if steps <= self.step else None

    @property
    def first(self) -> Pixels | None:
        """Frame 1."""
        return self._pictures.frame(1)

    @property
    def home(self) -> Pixels | None:
        """Home exactly as it should look: flipped, turned, greyed; None where none is known."""
        kind = self.home_kind
        picture = self.home_picture(kind) if kind is not None else None
        return None if picture is None else picture.pixels

    def home_picture(self, kind: Home) -> Picture | None:
        """Home of some kind with its intermediate results, kept for the whole chain."""

        def make() -> Picture | None:
            of = self._pictures.truth() if kind.of == "truth" else self.origin
            return None if of is None else Picture(kind.view(of))

        return self.shared(("home", kind), make)

    @cached_property
    def frame_picture(self) -> Picture:
        """The frame with its intermediate results."""
        return Picture(self.frame)

    @property
    def compared_with(self) -> Home | None:
        """Home, or the source itself where things are only added to it; else None.

        Null too where home is known by its content alone, not by its pixels.
        """
        kind = self.home_kind
        if kind is None and self.cycle.kind == "accumulate":
            return Home()
        return None if kind is None or kind.content_only else kind

    def pair(self, limit: int = COMPARED) -> tuple[Pixels, Pixels] | None:
        """The frame and what it is compared with, at one size; None where there is nothing.

        The size is the smaller of the two, and has at most `limit` pixels.
        """
        kind = self.compared_with
        picture = self.home_picture(kind) if kind is not None else None
        if picture is None:
            return None
        whole = picture.pixels

        def make() -> tuple[Pixels, Pixels]:
            frame = self.frame
            small = min(_shape(whole), _shape(frame), key=lambda size: size[0] * size[1])
            factor = min(1.0, (limit / (small[0] * small[1])) ** 0.5)
            size = max(1, round(small[0] * factor)), max(1, round(small[1] * factor))
            kept = self.shared(("resized", kind, size), lambda: sized(whole, size))
            return sized(frame, size), kept

        return self.memo.recall(("pair", limit), make)

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """A value computed once for the whole chain: of source, home, first frame, not of this."""
        return self._pictures.memo.recall(key, make)


def sized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Pixels at this width and height; themselves where they have it."""
    return pixels if _shape(pixels) == size else resize(pixels, *size)


def _shape(pixels: Pixels) -> tuple[int, int]:
    return int(pixels.shape[1]), int(pixels.shape[0])


def _size(ref: FrameRef | None) -> tuple[int, int] | None:
    return (ref.width, ref.height) if ref and ref.width and ref.height else None


class Given:
    """The pictures of a chain that were made rather than stored."""

    def __init__(self, frames: Mapping[int, Pixels], truth: Pixels | None = None) -> None:
        self.memo: Final = Memo()
        self._frames = dict(frames)
        self._truth = truth

    def frame(self, step: int) -> Pixels | None:
        """The frame of a step."""
        return self._frames.get(step)

    def truth(self) -> Pixels | None:
        """The ground truth."""
        return self._truth


def constructed(
    cycle: Cycle,
    frames: Mapping[int, Pixels],
    step: int | None = None,
    *,
    source: Source | None = None,
    truth: Pixels | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    asked: str | None = None,
    judge: Judge | None = None,
) -> Situation:
    """A situation made of pixels, for tests and for measuring error rates.

    Args:
        cycle: What the frames went through.
        frames: Pixels by step; 0 is the source.
        step: Which frame is looked at; the last by default.
        source: The source; one without regions by default.
        truth: The ground truth of a restoration.
        settings: The chain's settings.
        asked: The size that was asked for, as `1024x1024`.
        judge: Answers questions about pictures.
    """
    source = source or Source(name="made", licence="none", elsewhere="made for the occasion")
    key = ChainKey(
        suite="made@1",
        source=source.name,
        cycle=f"{cycle.name}@{cycle.version}",
        editor="made",
        settings=settings,
    )
    refs = {number: _made(number, pixels) for number, pixels in frames.items()}
    call = Call(size=asked)
    chain = Chain(
        key,
        refs.get(0),
        _made(-1, truth) if truth is not None else None,
        steps=tuple(
            Step(step=n, outcome="edited", prompt="", inputs=(), frame=refs[n], call=call)
            for n in sorted(refs)
            if n > 0
        ),
    )
    at = max(frames) if step is None else step
    return Situation(chain, cycle, source, at, Given(frames, truth), judge)


def _made(number: int, pixels: Pixels) -> FrameRef:
    width, height = _shape(pixels)
    return FrameRef(sha256=f"{number}", format="png", bytes=0, width=width, height=height)
