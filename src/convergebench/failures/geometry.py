"""Which of the eight symmetries of a picture a frame shows: as it is, mirrored, turned.

Each candidate is compared with the frame at three coarse sizes, where noise of many levels is
averaged out: both lumas are normalised locally, so that light, contrast and a colour cast hardly
matter, and the middle of the candidate is slid over the frame, so that a slight crop, zoom or shift
does not either. A candidate's score is the mean over the three sizes of its best correlation.

Written by hand because feature matching finds nothing in strong noise, and registration models
shift and zoom only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.cycle import Cycle, Home, Operation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Plane = NDArray[np.float32]

SIDES: Final = (24, 48, 96)
"""Longer side of the frame, in pixels, at which it is compared."""
ZOOMS: Final = (1.0, 1.12)
"""How far a candidate is zoomed in before it is slid."""
MIDDLE: Final = 0.84
"""Share of a candidate's sides that is slid over the frame."""
FLAT: Final = 6.0
"""Levels of contrast below which a part of a picture counts as flat."""
ALIKE: Final = 0.97
"""Score of two views of one picture from which nobody could tell which one a frame shows."""
OTHER_SHAPE: Final = 0.05
"""Difference of two aspect ratios from which a turned picture may have been cut or padded."""


@dataclass(frozen=True, order=True)
class Symmetry:
    """Mirrored left to right or not, and then turned clockwise by quarters."""

    mirrored: bool = False
    quarters: int = 0

    def __str__(self) -> str:
        return _NAMES[self]

    def view(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """A picture seen so."""
        if self.mirrored:
            pixels = pixels[:, ::-1]
        return np.ascontiguousarray(np.rot90(pixels, -self.quarters))

    def then(self, other: Symmetry) -> Symmetry:
        """This, and then another one."""
        # A mirror after a turn is the mirror before it, and the turn the other way.
        quarters = -self.quarters if other.mirrored else self.quarters
        return Symmetry(self.mirrored != other.mirrored, (quarters + other.quarters) % 4)

    @property
    def inverse(self) -> Symmetry:
        """What undoes it."""
        return self if self.mirrored else Symmetry(False, -self.quarters % 4)


_NAMES: Final = {
    Symmetry(): "as it is",
    Symmetry(False, 1): "turned 90° clockwise",
    Symmetry(False, 2): "turned 180°",
    Symmetry(False, 3): "turned 90° anticlockwise",
    Symmetry(True, 0): "mirrored",
    Symmetry(True, 1): "mirrored along the rising diagonal",
    Symmetry(True, 2): "mirrored upside down",
    Symmetry(True, 3): "mirrored along the falling diagonal",
}
SYMMETRIES: Final = tuple(_NAMES)
"""All eight, the unchanged picture first."""


def symmetry_of(operation: Operation | None) -> Symmetry:
    """What an operation does to the picture as a whole."""
    if operation is not None and operation.kind == "flip":
        return Symmetry(True, 0 if operation.axis == "horizontal" else 2)
    if operation is not None and operation.kind == "turn":
        return Symmetry(False, operation.quarters or 0)
    return Symmetry()


def expected_symmetry(cycle: Cycle, step: int) -> Symmetry:
    """How frame `step` of a cycle should show the source: all its flips and turns so far."""
    whole = Symmetry()
    for number in range(1, cycle.period + 1):
        whole = whole.then(symmetry_of(cycle.edit_at(number).operation))
    found = Symmetry()
    for _ in range((step // cycle.period) % 4):  # four rounds of anything are none
        found = found.then(whole)
    for number in range(1, step % cycle.period + 1):
        found = found.then(symmetry_of(cycle.edit_at(number).operation))
    return found


def symmetry_of_home(home: Home) -> Symmetry:
    """How home shows the source."""
    flips = {None: Symmetry(), "horizontal": Symmetry(True), "vertical": Symmetry(True, 2)}
    return flips[home.flip].then(Symmetry(False, home.quarters % 4))


@dataclass(frozen=True)
class Shown:
    """How well each symmetry of a source fits a frame.

    Attributes:
        scores: Correlation of each candidate with the frame, from −1 to 1.
        likeness: Of two candidates, how like each other they look.
    """

    scores: Mapping[Symmetry, float]
    likeness: Callable[[Symmetry, Symmetry], float]

    @property
    def best(self) -> Symmetry:
        """The symmetry that fits best."""
        return max(SYMMETRIES, key=lambda each: self.scores[each])

    def margin(self, one: Symmetry, other: Symmetry) -> float:
        """How much better one fits than the other, as a share of how far a perfect copy would.

        1 for a perfect copy of `one`, −1 for one of `other`, about 0 for an unrelated picture or
        where the two look alike.
        """
        apart = 1 - self.likeness(one, other)
        if apart < 1 - ALIKE:
            return 0.0
        return max(-1.0, min(1.0, (self.scores[one] - self.scores[other]) / apart))

    def alike(self, symmetry: Symmetry) -> tuple[Symmetry, ...]:
        """The other symmetries that nobody could tell from this one."""
        return tuple(
            other
            for other in SYMMETRIES
            if other != symmetry and self.likeness(symmetry, other) > ALIKE
        )

    @property
    def confidence(self) -> float:
        """The least margin of the best over another one, not below 0."""
        best = self.best
        return max(0.0, min(self.margin(best, each) for each in SYMMETRIES if each != best))


def which_symmetry(frame: Pixels, source: Pixels) -> tuple[Symmetry, float]:
    """Which symmetry of a source a frame shows, and how sure that is.

    The confidence is the least margin over another symmetry: 1 for a perfect copy, less the more
    noise or change there is, 0 where the source looks the same in two ways or nothing fits.
    """
    shown = compare(frame, source)
    return shown.best, shown.confidence


def compare(frame: Pixels, source: Pixels, views: Views | None = None) -> Shown:
    """How well each symmetry of a source fits a frame.

    Args:
        frame: What is looked at.
        source: What it is a view of.
        views: The source's views, where they were made before.
    """
    views = views or Views(source)
    planes = _planes(frame)
    height, width = frame.shape[:2]
    shape = width / height
    scores = {each: views.score(each, planes, shape) for each in SYMMETRIES}
    return Shown(scores, views.likeness)


class Views:
    """A picture in its eight views at coarse sizes, kept for comparing many frames with it."""

    def __init__(self, source: Pixels) -> None:
        self._luma = _reduced(source)
        self._made: dict[tuple[Symmetry, int, float], list[Plane]] = {}
        self._likeness: dict[frozenset[Symmetry], float] = {}

    def score(self, symmetry: Symmetry, planes: Mapping[int, Plane], shape: float) -> float:
        """How well a view fits a frame of some aspect ratio, given at all sizes."""
        found = []
        for side, plane in planes.items():
            each = [_slid(view, plane) for view in self._views(symmetry, side, shape)]
            found.append(max(each, default=-1.0))
        return sum(found) / len(found)

    def likeness(self, one: Symmetry, other: Symmetry) -> float:
        """How alike two views of the picture are, both brought to a square."""
        # Only what leads from one to the other matters.
        between = other.then(one.inverse)
        key = frozenset((between, between.inverse))
        if key not in self._likeness:
            planes = {side: _normalised(_square(self._luma, side)) for side in SIDES}
            turned = {side: between.view(plane) for side, plane in planes.items()}
            fits = [
                _slid(_middle(np.ascontiguousarray(turned[side])), planes[side]) for side in SIDES
            ]
            self._likeness[key] = sum(fits) / len(fits)
        return self._likeness[key]

    def _views(self, symmetry: Symmetry, side: int, shape: float) -> list[Plane]:
        key = (symmetry, side, round(shape, 4))
        if key not in self._made:
            luma = symmetry.view(self._luma)
            size = _fitted(shape, side)
            own = luma.shape[1] / luma.shape[0]
            whole = [luma]
            if abs(math.log(own / shape)) > OTHER_SHAPE:
                whole.append(_cut(luma, shape))
            self._made[key] = [
                _middle(_normalised(_resized(_zoomed(each, zoom), size)))
                for each in whole
                for zoom in ZOOMS
            ]
        return self._made[key]


def _reduced(pixels: Pixels) -> Plane:
    """The luma, not larger than four times the finest size it is compared at."""
    luma: NDArray[Any] = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    factor = 4 * SIDES[-1] / max(luma.shape)
    if factor < 1:
        size = max(1, round(luma.shape[1] * factor)), max(1, round(luma.shape[0] * factor))
        luma = cv2.resize(luma.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    return luma.astype(np.float32)


def _planes(frame: Pixels) -> dict[int, Plane]:
    luma = _reduced(frame)
    shape = luma.shape[1] / luma.shape[0]
    return {side: _normalised(_resized(luma, _fitted(shape, side))) for side in SIDES}


def _fitted(shape: float, side: int) -> tuple[int, int]:
    """Width and height of an aspect ratio whose longer side is `side`."""
    if shape >= 1:
        return side, max(8, round(side / shape))
    return max(8, round(side * shape)), side


def _resized(luma: Plane, size: tuple[int, int]) -> Plane:
    shrinks = size[0] * size[1] < luma.size
    how = cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    made: Plane = np.asarray(cv2.resize(luma, size, interpolation=how), np.float32)
    return made


def _square(luma: Plane, side: int) -> Plane:
    return _resized(luma, (side, side))


def _zoomed(luma: Plane, zoom: float) -> Plane:
    """The middle of a picture, as a picture zoomed in shows it."""
    height, width = luma.shape
    dy, dx = round(height * (1 - 1 / zoom) / 2), round(width * (1 - 1 / zoom) / 2)
    return luma[dy : height - dy, dx : width - dx]


def _cut(luma: Plane, shape: float) -> Plane:
    """The middle of a picture that has this aspect ratio."""
    height, width = luma.shape
    if width / height > shape:
        kept = max(1, round(height * shape))
        return luma[:, (width - kept) // 2 :][:, :kept]
    kept = max(1, round(width / shape))
    return luma[(height - kept) // 2 :][:kept]


def _middle(plane: Plane) -> Plane:
    height, width = plane.shape
    dy, dx = round(height * (1 - MIDDLE) / 2), round(width * (1 - MIDDLE) / 2)
    return np.ascontiguousarray(plane[dy : height - dy, dx : width - dx])


def _normalised(luma: Plane) -> Plane:
    """(I − mean) / (deviation + FLAT), over windows of a quarter of the picture."""
    sigma = max(luma.shape) / 8
    mean: NDArray[Any] = cv2.GaussianBlur(luma, (0, 0), sigma)
    spread: NDArray[Any] = cv2.GaussianBlur(luma * luma, (0, 0), sigma) - mean * mean
    plane: Plane = (luma - mean) / (np.sqrt(np.maximum(spread, 0)) + FLAT)
    return plane


def _slid(part: Plane, plane: Plane) -> float:
    """The best correlation of a part with a plane it is slid over."""
    if part.shape[0] > plane.shape[0] or part.shape[1] > plane.shape[1]:
        return -1.0
    if float(part.std()) < 1e-3 or float(plane.std()) < 1e-3:
        return 0.0
    fits: NDArray[Any] = cv2.matchTemplate(plane, part, cv2.TM_CCOEFF_NORMED)
    best = float(np.max(fits))
    return max(-1.0, min(1.0, best)) if math.isfinite(best) else 0.0
