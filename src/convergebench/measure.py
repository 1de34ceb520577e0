"""Measuring one chain: each frame is decoded once for all metrics asked.

This is what a scoring worker does. It reads frames from the run directory and answers rows; it
writes nothing.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from convergebench import registration
from convergebench.chain import Chain, FrameRef
from convergebench.comparisons import FLOOR_PREFIX, Comparison, Wanted, comparisons, row_version
from convergebench.cycle import Box, Home, pixel_box
from convergebench.errors import MalformedImage, StoreDamaged
from convergebench.frame import decode, resize
from convergebench.metric import Metric, NoScore, Picture, StepView, together
from convergebench.registry import open_metric
from convergebench.store import RunStore
from convergebench.suite import Suite

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH_PIXELS: Final = 8_000_000
"""Metrics that measure several frames at once get about so many pixels, so memory stays bounded."""
FEW: Final = 8
FEW_PIXELS: Final = 1 << 18
"""All others get a few small frames at once (the processor's caches like that), or a larger one."""
EVERY: Final = 1.0
"""Seconds after which rows are told: what a worker has not told is lost with it."""

Row = tuple[str, int, str, str, str, str, float | None, str | None]


@dataclass(frozen=True)
class Unit:
    """A worker's piece of work: one chain (or one source's floor), and what is already known.

    `known` are the (step, metric@version, against, where) that need no second measurement. Where
    the work is `careful`, after a worker died, the rows of each picture are told before the next.
    """

    chain: str
    metrics: tuple[str, ...]
    wanted: Wanted
    steps: tuple[int, ...] | None
    others: tuple[str, ...]
    known: frozenset[tuple[int, str, str, str]]
    careful: bool = False

    def to_json(self) -> str:
        """One line for the worker's pipe."""
        return json.dumps(
            {
                "chain": self.chain,
                "metrics": self.metrics,
                "against": self.wanted.against,
                "registered": self.wanted.registered,
                "steps": self.steps,
                "others": self.others,
                "known": sorted(self.known),
                "careful": self.careful,
            }
        )

    @classmethod
    def from_json(cls, line: str | bytes) -> Unit:
        """Read a line written by `to_json`."""
        told = json.loads(line)
        return cls(
            chain=told["chain"],
            metrics=tuple(told["metrics"]),
            wanted=Wanted(tuple(told["against"]), told["registered"]),
            steps=None if told["steps"] is None else tuple(told["steps"]),
            others=tuple(told["others"]),
            known=frozenset((s, m, a, w) for s, m, a, w in told["known"]),
            careful=told["careful"],
        )

    def only(self, picture: int | str) -> Unit:
        """The part of it that is about one picture: a step, or another source of a floor."""
        if isinstance(picture, int):
            return replace(self, steps=(picture,))
        return replace(self, others=(picture,))


def missing(
    suite: Suite, unit: Unit, metrics: Iterable[Metric], chain: Chain | None
) -> Iterator[tuple[Metric, Comparison]]:
    """What a unit has to measure and does not know yet; `chain` is None for a floor."""
    for metric in metrics:
        if chain is None:
            items = [Comparison(0, other) for other in unit.others]
        else:
            cycle, source = suite.cycle_of(chain.key.cycle), suite.source_named(chain.key.source)
            items = comparisons(chain, cycle, source, metric.spec, unit.wanted)
        for item in items:
            asked = unit.steps is None or item.step in unit.steps
            version = row_version(metric.spec, item.where)
            key = (item.step, f"{metric.spec.name}@{version}", item.against, item.where)
            if asked and key not in unit.known:
                yield metric, item


class Measurer:
    """Measures units of one run. Metrics and the last sources stay loaded between units.

    Of the isolated metrics, which are large, only the last one used stays loaded.

    Attributes:
        place: Where the run is.
        decoded: How many pictures were decoded.
        read: How many bytes were read for that.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._store = RunStore.open(place, refresh=False)
        self.place: Final = self._store.anywhere
        self._metrics: dict[str, Metric] = {}
        self._sources: OrderedDict[str, Picture] = OrderedDict()
        self._origins: Mapping[str, Any] = self._store.read_json("sources.json") or {}
        self.decoded = 0
        self.read = 0

    def left(self, unit: Unit) -> list[int | str]:
        """The pictures of a unit that are not known yet, in the order in which it measures them."""
        if unit.chain.startswith(FLOOR_PREFIX):
            return list(dict.fromkeys(item.against for _, item in self._missing(unit)))
        return sorted({item.step for _, item in self._missing(unit)})

    def nulls(self, unit: Unit, reason: str) -> list[Row]:
        """The rows of a unit that cannot be measured at all."""
        return [
            row
            for metric, item in self._missing(unit)
            for row in _score(unit.chain, metric, [(item, NoScore(reason))])
        ]

    def _missing(self, unit: Unit) -> list[tuple[Metric, Comparison]]:
        metrics = [self._metric(name) for name in unit.metrics]
        chain = None if unit.chain.startswith(FLOOR_PREFIX) else self._stored(unit.chain)
        return list(missing(self._store.suite, unit, metrics, chain))

    def measure(self, unit: Unit) -> Iterator[list[Row]]:
        """The rows of a unit that are not known yet, as they come."""
        metrics = [self._metric(name) for name in unit.metrics]
        if unit.chain.startswith(FLOOR_PREFIX):
            return self._floor(unit, metrics)
        return self._chain(unit, metrics)

    def _stored(self, chain: str) -> Chain:
        return self._store.chain(chain)

    def _metric(self, name: str) -> Metric:
        if name not in self._metrics:
            self._metrics = {n: m for n, m in self._metrics.items() if not m.spec.isolated}
            self._metrics[name] = open_metric(name)
        return self._metrics[name]

    # -- chains -------------------------------------------------------------------------------

    def _chain(self, unit: Unit, metrics: list[Metric]) -> Iterator[list[Row]]:
        chain = self._stored(unit.chain)
        todo: dict[int, list[tuple[Metric, Comparison]]] = {}
        for metric, item in missing(self._store.suite, unit, metrics, chain):
            todo.setdefault(item.step, []).append((metric, item))
        homes: dict[Home, Picture | NoScore] = {}
        needed = {i.earlier: step for step in sorted(todo) for _, i in todo[step]}
        # What later frames are compared with: the frame before and the last homecoming.
        recent: dict[int, Picture | NoScore] = {}
        waiting = {id(metric): _Waiting(unit.chain, metric, unit.careful) for metric in metrics}
        rows: list[Row] = []
        told = time.monotonic()
        for step in sorted(todo):
            for _, item in todo[step]:
                if item.earlier is not None and item.earlier not in recent:
                    recent[item.earlier] = self._read(chain, item.earlier)
            frame = self._read(chain, step)
            pairs: dict[tuple[str, Home | None], StepView | NoScore] = {}
            for metric, item in todo[step]:
                kind = (item.against, item.home)
                if kind not in pairs:
                    pairs[kind] = self._pair(chain, item, frame, recent, homes)
                waiting[id(metric)].add(item, _limited(pairs[kind], item))
            recent[step] = frame
            recent = {n: kept for n, kept in recent.items() if needed.get(n, 0) > step}
            for each in waiting.values():
                rows += each.scored(frame)
            if rows and (unit.careful or time.monotonic() - told > EVERY):
                yield rows
                rows, told = [], time.monotonic()
        for each in waiting.values():
            rows += each.rest()
        yield rows

    def _read(self, chain: Chain, step: int) -> Picture | NoScore:
        """The decoded frame of a step; frame 0, which many chains share, is kept."""
        ref = chain.held[step]
        return self._kept(ref) if step == 0 else self._decode(ref)

    def _pair(
        self,
        chain: Chain,
        item: Comparison,
        frame: Picture | NoScore,
        recent: Mapping[int, Picture | NoScore],
        homes: dict[Home, Picture | NoScore],
    ) -> StepView | NoScore:
        if isinstance(frame, NoScore):
            return frame
        if item.against == "none":
            return StepView(frame)
        if item.earlier is not None:
            reference = _moved(recent[item.earlier], item.home)
        else:
            home = item.home or Home()
            if home not in homes:
                origin = chain.truth if home.of == "truth" and chain.truth else chain.source
                kept = self._kept(origin) if origin else NoScore("the source is not here")
                homes[home] = _moved(kept, home)
            reference = homes[home]
        return reference if isinstance(reference, NoScore) else _view(frame, reference)

    def _decode(self, ref: FrameRef) -> Picture | NoScore:
        try:
            self.decoded += 1
            data = self._store.frame(ref).data
            self.read += len(data)
            return Picture(decode(data)[0])
        except (MalformedImage, StoreDamaged) as error:  # not a store that is away for a while
            return NoScore(str(error))

    def _kept(self, ref: FrameRef) -> Picture | NoScore:
        """A source's picture; chains come sorted by source, so the last two are enough."""
        if ref.sha256 not in self._sources:
            made = self._decode(ref)
            if isinstance(made, NoScore):
                return made
            self._sources[ref.sha256] = made
            if len(self._sources) > 2:
                self._sources.popitem(last=False)
        return self._sources[ref.sha256]

    # -- the floor ----------------------------------------------------------------------------

    def _floor(self, unit: Unit, metrics: list[Metric]) -> Iterator[list[Row]]:
        home = self._decode(self._source(unit.chain.removeprefix(FLOOR_PREFIX)))
        todo: dict[str, list[tuple[Metric, Comparison]]] = {}
        for metric, item in missing(self._store.suite, unit, metrics, None):
            todo.setdefault(item.against, []).append((metric, item))
        for other, wanted in todo.items():
            frame = self._decode(self._source(other))
            view: StepView | NoScore
            if isinstance(home, NoScore):
                view = home
            else:
                view = frame if isinstance(frame, NoScore) else _view(frame, home)
            yield [
                row for metric, item in wanted for row in _score(unit.chain, metric, [(item, view)])
            ]

    def _source(self, name: str) -> FrameRef:
        return FrameRef.model_validate(self._origins[name][0])


class _Waiting:
    """What a metric has still to measure of a chain, until there is enough to be worth it."""

    def __init__(self, chain: str, metric: Metric, careful: bool) -> None:
        self._chain = chain
        self._metric = metric
        asked = together(metric)
        self._most = 1 if careful else asked or FEW
        self._most_pixels = BATCH_PIXELS if asked else FEW_PIXELS
        self._batch: list[tuple[Comparison, StepView | NoScore]] = []
        self._frames = self._pixels = 0

    def add(self, item: Comparison, view: StepView | NoScore) -> None:
        """One more comparison of the frame that is at hand."""
        self._batch.append((item, view))

    def scored(self, frame: Picture | NoScore) -> list[Row]:
        """The rows, once there is enough for them; to be called after each frame."""
        self._frames += 1
        self._pixels += frame.pixels.size // 3 if isinstance(frame, Picture) else 0
        enough = self._frames >= self._most or self._pixels >= self._most_pixels
        return self.rest() if enough else []

    def rest(self) -> list[Row]:
        """The rows of all that waits."""
        batch, self._batch = self._batch, []
        self._frames = self._pixels = 0
        return _score(self._chain, self._metric, batch) if batch else []


def _moved(picture: Picture | NoScore, home: Home | None) -> Picture | NoScore:
    if isinstance(picture, NoScore) or home is None:
        return picture
    moved = home.view(picture.pixels)
    return picture if moved is picture.pixels else Picture(moved)


def _view(frame: Picture, reference: Picture) -> StepView:
    """A pair of equal size: the frame is resampled to the reference's where they differ."""
    if frame.size == reference.size:
        return StepView(frame, reference)
    resized = frame.shared(
        ("resized", reference.size), lambda p: Picture(resize(p.pixels, *reference.size))
    )
    return StepView(resized, reference, native=frame)


def _limited(view: StepView | NoScore, item: Comparison) -> StepView | NoScore:
    if isinstance(view, NoScore):
        return view
    if item.texts:
        return replace(view, texts=item.texts)
    if item.where == "all":
        return view
    if item.where == "registered":
        return view.shared("registered view", lambda: _registered(view))
    inside = view.shared(("mask", item.boxes), lambda: _mask(item.boxes, *view.frame.size))
    mask = inside if item.where == "inside" else ~inside
    return replace(view, mask=mask)


def _registered(view: StepView) -> StepView | NoScore:
    """The pair over its common area; no score where no registration was found."""
    try:
        found = registration.of(view)
    except Exception as error:  # a picture nobody thought of must not end the run
        found = NoScore(f"{type(error).__name__}: {error}")
    if isinstance(found, NoScore):
        return NoScore(f"not registered: {found.reason}")
    if view.reference is None:
        return NoScore("not registered: nothing to compare with")
    home, frame = found.common(view.reference, view.native or view.frame)
    return StepView(frame, home)


def _mask(boxes: Iterable[Box], width: int, height: int) -> NDArray[np.bool_]:
    mask = np.zeros((height, width), dtype=np.bool_)
    for box in boxes:
        x0, y0, x1, y1 = pixel_box(box, width, height)
        mask[y0:y1, x0:x1] = True
    return mask


def _score(
    chain: str, metric: Metric, batch: Sequence[tuple[Comparison, StepView | NoScore]]
) -> list[Row]:
    """Score what a metric was given; what cannot be measured becomes null with its reason."""
    views = [view for _, view in batch if isinstance(view, StepView)]
    values = iter(_values(metric.score, views))
    spec, rows = metric.spec, []
    for item, view in batch:
        value = view if isinstance(view, NoScore) else next(values)
        head = (chain, item.step, spec.name, row_version(spec, item.where))
        known = (None, value.reason) if isinstance(value, NoScore) else (value, spec.remark(value))
        rows.append((*head, item.against, item.where, *known))
    return rows


def _values(score: Callable[[list[StepView]], Any], views: list[StepView]) -> list[float | NoScore]:
    try:
        values = list(score(views)) if views else []
    except Exception as error:  # a metric is foreign code: one bad frame must not end the run
        if len(views) > 1:
            return [value for view in views for value in _values(score, [view])]
        return [NoScore(f"{type(error).__name__}: {error}")]
    if len(values) != len(views):
        return [NoScore(f"{len(values)} values for {len(views)} views")] * len(views)
    return [
        value
        if isinstance(value, NoScore)
        else NoScore("not a number")
        if math.isnan(value)
        else float(value)
        for value in values
    ]
