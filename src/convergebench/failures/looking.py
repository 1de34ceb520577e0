"""Looking at a piece of a chain: each frame is decoded once for all detectors.

This is what a worker does. It reads frames from the run directory and answers rows; it writes
nothing.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from convergebench.chain import Chain, FrameRef
from convergebench.failures.catalogue import every
from convergebench.failures.detector import Detector
from convergebench.failures.situation import Situation
from convergebench.frame import decode
from convergebench.metric import Memo, NoScore
from convergebench.store import RunStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from convergebench.judging import Judge

STEPS_AT_ONCE: Final = 10
"""Steps of a chain that make a piece: so much is lost when everything is killed, at most."""

RECENT: Final = 5
"""Decoded frames that are kept besides source, truth and frame 1."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Piece:
    """Some steps of one chain, each with the detectors that are wanted of it."""

    chain: str
    wanted: Mapping[int, Sequence[str]]

    def to_json(self) -> str:
        """One line for the worker's pipe."""
        return json.dumps({"chain": self.chain, "wanted": [[s, d] for s, d in self.wanted.items()]})

    @classmethod
    def from_json(cls, line: str | bytes) -> Piece:
        """Read a line written by `to_json`."""
        told = json.loads(line)
        return cls(told["chain"], {step: tuple(names) for step, names in told["wanted"]})


@dataclass(frozen=True)
class Seen:
    """The rows of a piece, and how many pictures had to be decoded for them."""

    rows: Sequence[Row]
    decoded: int = 0

    def to_json(self) -> str:
        """One line for the driver."""
        return json.dumps({"rows": self.rows, "decoded": self.decoded})

    @classmethod
    def from_json(cls, line: str | bytes) -> Seen:
        """Read a line written by `to_json`."""
        told = json.loads(line)
        return cls([tuple(row) for row in told["rows"]], told["decoded"])


class Album:
    """The pictures of a chain as stored: source and truth stay, and the last frames used.

    As many of these as a round has, and one more, but not more than `RECENT`.
    """

    def __init__(self, store: RunStore, chain: Chain, period: int = 1) -> None:
        self.memo: Final = Memo()
        self.decoded = 0
        self._store = store
        self._chain = chain
        self._kept = min(RECENT, period + 1)
        self._always: dict[int, NDArray[np.uint8] | None] = {}
        self._recent: OrderedDict[int, NDArray[np.uint8] | None] = OrderedDict()

    def frame(self, step: int) -> NDArray[np.uint8] | None:
        """The frame of a step, decoded at most once while it is needed."""
        if step in self._always:
            return self._always[step]
        if step in self._recent:
            return self._recent[step]
        pixels = self._decoded(self._chain.held.get(step))
        if step <= 1:
            self._always[step] = pixels
        else:
            self._recent[step] = pixels
            while len(self._recent) > self._kept:
                self._recent.popitem(last=False)
        return pixels

    def truth(self) -> NDArray[np.uint8] | None:
        """The ground truth of a degraded source."""
        if -1 not in self._always:
            self._always[-1] = self._decoded(self._chain.truth)
        return self._always[-1]

    def _decoded(self, ref: FrameRef | None) -> NDArray[np.uint8] | None:
        if ref is None:
            return None
        self.decoded += 1
        return decode(self._store.frame(ref).data)[0]


class Looker:
    """Looks at pieces of one run. The album of the last chain stays open between pieces."""

    def __init__(self, place: str | os.PathLike[str], judge: Judge | None = None) -> None:
        self._store = RunStore.open(place, refresh=False)
        self._judge = judge
        self._detectors = {detector.name: detector for detector in every()}
        self._last: tuple[str, Chain, Album] | None = None

    def look(self, piece: Piece) -> Seen:
        """The rows of a piece. Raises AccountBlocked."""
        chain, album = self._opened(piece.chain)
        before, rows = album.decoded, []
        for step in sorted(piece.wanted):
            situation = situation_of(self._store, chain, step, album, self._judge)
            for name in piece.wanted[step]:
                rows.append(row_of(self._detectors[name], situation))
        return Seen(rows, album.decoded - before)

    def given_up(self, piece: Piece, why: str) -> Seen:
        """The rows of a piece that cannot be looked at."""
        chain, album = self._opened(piece.chain)
        rows = []
        for step, names in piece.wanted.items():
            situation = situation_of(self._store, chain, step, album, self._judge)
            rows += [_row(self._detectors[name], situation, NoScore(why)) for name in names]
        return Seen(rows)

    def _opened(self, name: str) -> tuple[Chain, Album]:
        if self._last is None or self._last[0] != name:
            chain = self._store.chain(name)
            period = self._store.suite.cycle_of(chain.key.cycle).period
            self._last = name, chain, Album(self._store, chain, period)
        return self._last[1:]


def situation_of(
    store: RunStore, chain: Chain, step: int, album: Album, judge: Judge | None
) -> Situation:
    """A stored frame as a situation."""
    suite = store.suite
    cycle, source = suite.cycle_of(chain.key.cycle), suite.source_named(chain.key.source)
    return Situation(chain, cycle, source, step, album, judge)


def row_of(detector: Detector, situation: Situation) -> Row:
    """What a detector makes of a situation, as a row."""
    return _row(detector, situation, detector.look(situation))


def _row(detector: Detector, situation: Situation, found: Any) -> Row:
    key = situation.chain.key
    judge = situation.judge.name if situation.judge else None
    head = (
        key.id, key.editor, key.source, key.cycle, key.settings.label, key.repeat,
        situation.step, detector.name, detector.row_version(judge), detector.level,
    )  # fmt: skip
    if isinstance(found, NoScore):
        return (*head, None, None, found.reason, None, None, None, None, None)
    box = found.box or (None,) * 4
    more = json.dumps({k: float(v) for k, v in found.more.items()}) if found.more else None
    value = float(found.value)
    return (*head, value, detector.failed(value), found.detail, *map(_number, box), more)


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
