"""The metric seam: one method, batched.

A metric has a `spec` and `score(views) -> scores`. What a frame is compared with is the scorer's
choice: the same metric against home is drift, against the frame before is step size; a mask limits
it to the inside or the outside of an edit's region. Metrics see sRGB pixels and nothing else: no
data range, channel order or dtype arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from convergebench.resources import ONE_CORE, Resources

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")


class Memo:
    """Values computed at most once."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def recall(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of that key, made on the first call."""
        if key not in self._known:
            self._known[key] = make()
        value: T = self._known[key]
        return value


class Picture:
    """Decoded pixels, with intermediate results that several metrics share.

    `shared(key, make)` computes `make(self)` once per picture: luma, filtered fields, features.
    """

    def __init__(self, pixels: NDArray[np.uint8]) -> None:
        self.pixels: Final = pixels
        self._memo: Final = Memo()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return int(self.pixels.shape[1]), int(self.pixels.shape[0])

    def unit(self) -> NDArray[np.float32]:
        """The pixels as float32 in [0, 1]."""
        return self.pixels.astype(np.float32) / np.float32(255)

    def shared(self, key: Hashable, make: Callable[[Picture], T]) -> T:
        """A value computed from this picture at most once."""
        return self._memo.recall(key, lambda: make(self))


@dataclass(frozen=True)
class NoScore:
    """No value, and why: stored as null with the reason, and counted."""

    reason: str


@dataclass(frozen=True, eq=False)
class StepView:
    """One frame to score, with what to compare it with.

    Attributes:
        frame: The frame, already resampled to the reference's size where there is one.
        reference: What it is compared with; None for no-reference metrics.
        mask: Where to look (H×W bool), or None for the whole picture.
        memo: Results shared by the views of this pair (a map that several masks average over).
        native: The frame as the editor made it, before it was resampled; None when it was not.
        texts: What the reference shows and what the edit should have made of it, in words; only
            for metrics whose spec is `directional`.
    """

    frame: Picture
    reference: Picture | None = None
    mask: NDArray[np.bool_] | None = None
    memo: Memo = field(default_factory=Memo)
    native: Picture | None = None
    texts: tuple[str, str] | None = None

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """A value computed from this pair at most once, whatever the mask."""
        return self.memo.recall(key, make)


@dataclass(frozen=True)
class Needs:
    """What a metric needs beyond the core package, told without loading anything.

    Attributes:
        extra: The extra of this package that installs it, as in `pip install convergebench[iqa]`.
        modules: Modules that must be importable.
        weights: Sets of the weights catalogue (`convergebench weights list`).
        settings: Environment variables that must be set.
    """

    extra: str = ""
    modules: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownAnswer:
    """What a metric must give for the test card (`convergebench.testcard`), and who says so.

    `convergebench doctor` measures it on the user's machine.
    """

    value: float
    tolerance: float
    source: str


@dataclass(frozen=True)
class MetricSpec:
    """A metric's card.

    Attributes:
        name: As asked for on the command line.
        version: Raised whenever a value can change; part of every row.
        kind: `full-reference` compares pixels, `semantic` compares content, `no-reference` looks
            at the frame alone.
        higher_is_better: Direction.
        identical: Value for two identical images (full-reference and semantic), or None.
        typical: Typical range; values outside are kept and flagged.
        title: One line for lists and legends.
        paper: Where it is defined.
        regional: Whether it honours a mask.
        min_side: Smallest side it can measure.
        cost: Rough class: cheap (< 0.1 s per megapixel on a core), medium (< 2 s), heavy.
        needs: What it needs beyond the core package.
        known: Its value for the test card.
        directional: Measures what one edit changed, along `StepView.texts`.
        alignment: Measures how the frame lies on home, so it has no form after registration.
        isolated: Runs in worker processes of its own, one metric loaded at a time, because it
            brings a large library or large weights.
        resources: What a worker that measures it takes; None for a metric that waits for somebody
            else's server, which is measured on the driver's machine, where its key is.
    """

    name: str
    version: str
    kind: Literal["full-reference", "semantic", "no-reference"]
    higher_is_better: bool
    identical: float | None = None
    typical: tuple[float, float] | None = None
    title: str = ""
    paper: str = ""
    regional: bool = False
    min_side: int = 1
    cost: Literal["cheap", "medium", "heavy"] = "cheap"
    needs: Needs = Needs()
    known: KnownAnswer | None = None
    directional: bool = False
    alignment: bool = False
    isolated: bool = False
    resources: Resources | None = ONE_CORE

    @property
    def label(self) -> str:
        """Name and version, as in score rows."""
        return f"{self.name}@{self.version}"

    def remark(self, value: float) -> str | None:
        """What to note beside a value: that it lies outside the typical range, and is kept."""
        if self.typical is None or value == self.identical:
            return None
        low, high = self.typical
        return None if low <= value <= high else f"outside the typical range {low:g} to {high:g}"


@runtime_checkable
class Metric(Protocol):
    """Anything that measures frames. `score` answers one value per view, in order.

    Frames come one by one, or a few small ones at once, so that their scores are told soon. A
    metric that is faster over many has an attribute `together`: how many it would like at most.
    """

    @property
    def spec(self) -> MetricSpec:
        """The metric's card."""
        ...

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """Measure each view."""
        ...


def together(metric: Metric) -> int:
    """How many frames a metric would like at once; 0 where it does not say."""
    told = getattr(metric, "together", 0)
    return max(0, told) if isinstance(told, int) else 0


@dataclass(frozen=True)
class LiftedMetric:
    """A metric made from a function of one view."""

    spec: MetricSpec
    measure: Callable[[StepView], float | NoScore]

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """Measure each view on its own."""
        return [self._one(view) for view in views]

    def _one(self, view: StepView) -> float | NoScore:
        side = min(view.frame.size)
        if side < self.spec.min_side:
            return NoScore(f"{side} pixels on the short side, {self.spec.min_side} needed")
        if view.mask is not None and not view.mask.any():
            return NoScore("the region is empty")
        return self.measure(view)


def lift(
    spec: MetricSpec,
) -> Callable[[Callable[[StepView], float | NoScore]], Callable[[], LiftedMetric]]:
    """Turn a function of one view into a metric factory, ready for an entry point."""

    def decorate(measure: Callable[[StepView], float | NoScore]) -> Callable[[], LiftedMetric]:
        def factory() -> LiftedMetric:
            return LiftedMetric(spec, measure)

        factory.__doc__ = measure.__doc__
        factory.__name__ = measure.__name__
        factory.spec = spec  # type: ignore[attr-defined]
        return factory

    return decorate
