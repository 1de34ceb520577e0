"""Scoring: stored chains in, score rows out. Calls no editor, ever.

Only what is missing is computed. The suite's *floor* (each source against the others) is scored
along, because convergence is defined by it.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from convergebench.comparisons import AGAINST, Wanted
from convergebench.engines import open_engine, require_engine
from convergebench.errors import MetricUnavailable, SettingsError
from convergebench.heartbeat import beating
from convergebench.measure import Row
from convergebench.metric import Metric
from convergebench.metrics.sets import DEFAULT_SET, chosen
from convergebench.progress import Snapshot
from convergebench.registry import lacking, metric_spec, open_metric
from convergebench.remote.address import Place
from convergebench.scoretable import SCORE_COLUMNS, rows_frame
from convergebench.store import RunStore
from convergebench.store.reading import uncollected
from convergebench.table import Table
from convergebench.units import Work, measured, planned, trades_of
from convergebench.workers import Measured

SHOWN_REASONS: Final = 5
SAVE_EVERY: Final = 20.0
"""Seconds between two saves of finished rows."""
MERGE_EVERY: Final = 200
"""Saves after which all score files are made one: days of scoring must not leave thousands."""


@dataclass(frozen=True)
class ScoreProgress:
    """Where scoring stands.

    Attributes:
        scores: How many are to be computed.
        scores_done: How many are.
        event: Something to be told.
        failures: How many of them came out null.
        bytes: Read from the store so far, in units that are finished.
        workers: How many are at it now.
        metrics: Scores done and to be computed, by metric.
    """

    scores: int
    scores_done: int
    event: str = ""
    failures: int = 0
    bytes: int = 0
    workers: int = 0
    metrics: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot:
        """The same for whoever watches any kind of work."""
        return Snapshot(
            done=self.scores_done,
            total=self.scores,
            unit="scores",
            failures=self.failures,
            bytes=self.bytes,
            workers=self.workers,
            kind="metric",
            parts=self.metrics,
        )


@dataclass
class ScoreResult:
    """What was scored."""

    path: Place
    metrics: tuple[str, ...]
    new: int = 0
    null: int = 0
    known: int = 0
    decoded: int = 0
    read: int = 0
    problems: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)

    @property
    def table(self) -> Table:
        """The counts as a table."""
        title = f"{self.path}: {self.new:,} new scores, {self.known:,} known before"
        rows = [("new", self.new), ("of them null", self.null), ("known before", self.known)]
        nulls = [
            f"null: {count:,} × {why}" for why, count in self.reasons.most_common(SHOWN_REASONS)
        ]
        more = len(self.reasons) - SHOWN_REASONS
        if more > 0:
            nulls.append(f"null: {more} more reasons; column `note` of the score files has all")
        if nulls:
            nulls.append(
                "--retry-null measures these again: worth it where the reason can go away (memory, "
                "weights, a worker that died), not where the frames decide it."
            )
        notes = [f"Metrics: {', '.join(self.metrics)}", *self.problems, *nulls]
        return Table(title, ("scores", "count"), rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "metrics": list(self.metrics),
            "new": self.new,
            "null": self.null,
            "known": self.known,
            "frames_decoded": self.decoded,
            "bytes_read": self.read,
            "problems": self.problems,
            "null_reasons": dict(self.reasons),
        }


def score(
    directory: str | os.PathLike[str],
    metrics: Sequence[str] | None = None,
    *,
    against: Sequence[str] = AGAINST,
    registered: bool | None = None,
    steps: Iterable[int] | None = None,
    workers: int | None = None,
    memory: float | None = None,
    retry_null: bool = False,
    engine: str = "local",
    address: str | None = None,
    observe: Callable[[ScoreProgress], None] | None = None,
) -> ScoreResult:
    """Compute every score that is missing.

    Args:
        directory: The run directory.
        metrics: Names of metrics, or of sets of them (`convergebench metrics sets`); the set
            `fast` by default.
        against: What frames are compared with: `home`, `previous` (the frame before),
            `homecoming` (homecomings with the one before); all three by default.
        registered: Whether to compare with home also after undoing shift, zoom and crop; where
            not given, the sets say.
        steps: Which steps to score; all by default.
        workers: How many work at once, at most; one per core by default.
        memory: GiB that the workers of the learned metrics may use together on one machine; by
            default four fifths of it.
        retry_null: Measure again what came out null before.
        engine: Where it is done: `local`, in processes of this machine, or `ray`, on a cluster. The
            rows are the same.
        address: Of the Ray cluster: `auto`, `HOST:PORT` or `ray://HOST:PORT`; without one, Ray is
            started on this machine.
        observe: Called with a ScoreProgress after every batch of frames.
    """
    for word in against:
        if word not in AGAINST:
            raise SettingsError(
                f"frames are compared with 'home', 'previous' or 'homecoming', got {word!r}"
            )
    require_engine(engine, address)  # before anything is opened
    store = RunStore.open(directory)
    names, by_set = chosen(metrics or (DEFAULT_SET,))
    wanted = Wanted(tuple(against), by_set if registered is None else registered)
    hirer = open_engine(engine, address, workers=workers, memory=memory)
    opened, problems = _open(names)
    if observe is not None:  # before the hours that scoring may take
        for problem in problems:
            observe(ScoreProgress(0, 0, problem))
    result = ScoreResult(store.place, tuple(opened), problems=problems)
    with (
        contextlib.closing(hirer),
        store.writing("score"),
        beating(store, "score") as heart,
    ):
        observe = heart.around(observe)
        specs = {name: metric.spec for name, metric in opened.items()}
        trades = trades_of(store.anywhere, specs, together=hirer.together)
        with uncollected():
            work = planned(store, opened, trades, wanted, steps, retry_null)
        result.known = work.known
        saver = _Saver(store)
        labels = sorted(metric.spec.label for metric in opened.values())
        if work.total:
            store.log_session("start", command="score", pid=os.getpid(), metrics=labels)
        try:
            # What a cluster takes to start is not in the pace; and whatever ends the loop ends the
            # workers before the lock and the engine are let go of.
            with contextlib.closing(measured(hirer, work, saver.save)) as pieces:
                observe(_progress(work, result, "", 0))
                told = set[str]()
                for piece, at_it in pieces:
                    if piece is None:
                        saver.add(())
                        continue
                    saver.add(_rows(piece, result))
                    event = "" if piece.event in told else piece.event
                    told.add(piece.event)
                    observe(_progress(work, result, piece.problem or event, at_it))
            result.problems += _left(store, work, result)
        finally:
            saver.save()
            store.merge_scores()
            if work.total:
                store.log_session("end", pid=os.getpid(), scores=result.new)
    return result


def parse_steps(text: str) -> list[int]:
    """Steps from `1,5,10-50:10`: numbers, and ranges with both ends and perhaps a stride.

    Raises:
        SettingsError: It is something else.
    """
    found: set[int] = set()
    for part in text.split(","):
        told = re.fullmatch(r"\s*(\d+)(?:-(\d+)(?::(\d+))?)?\s*", part)
        first, last, stride = (int(n) if n else None for n in told.groups()) if told else [None] * 3
        if first is None or (last is not None and last < first) or stride == 0:
            raise SettingsError(
                f"--steps takes numbers and ranges, as in 1,5,10-50:10; got {part.strip()!r}"
            )
        found.update(range(first, (first if last is None else last) + 1, stride or 1))
    return sorted(found)


def _open(names: Sequence[str]) -> tuple[dict[str, Metric], list[str]]:
    """The metrics that can be used; the others as problems. Raises when none is left."""
    opened: dict[str, Metric] = {}
    lacks: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        try:
            spec = metric_spec(name)
            for lack in lacking(spec.needs):
                lacks.setdefault(lack.remedy, []).append(name)
            if not any(name in needing for needing in lacks.values()):
                opened[name] = open_metric(name)
        except MetricUnavailable as error:
            lacks.setdefault(str(error), []).append(name)
    problems = [f"Left out: {', '.join(needing)}. {how}" for how, needing in lacks.items()]
    if not opened:
        raise MetricUnavailable(" ".join(problems[:3]))
    return opened, problems


def _progress(work: Work, result: ScoreResult, event: str, workers: int) -> ScoreProgress:
    metrics = {name: (result.done[name], total) for name, total in work.scores.items()}
    return ScoreProgress(work.total, result.new, event, result.null, result.read, workers, metrics)


def _left(store: RunStore, work: Work, result: ScoreResult) -> list[str]:
    """A sentence on the scores that no worker could make, where there are some."""
    left = work.total - result.new
    if not left:
        return []
    remedy = (
        f"convergebench run {store.place}, on the machine that made them, stores them"
        if store.is_remote
        else f"convergebench verify {store.place} lists what is missing"
    )
    return [f"Not made: scores whose records workers did not find ({left:,}). {remedy}."]


class _Saver:
    """Gathers rows and saves them now and then, so that a kill loses seconds, not hours.

    To be called also while no rows come: those of before must not wait for the next.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._rows: list[Row] = []
        self._saved = time.monotonic()
        self._saves = 0

    def add(self, rows: Sequence[Row]) -> None:
        self._rows += rows
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        if self._rows:
            names = list(SCORE_COLUMNS)
            self._store.add_scores(
                rows_frame([dict(zip(names, row, strict=True)) for row in self._rows])
            )
            self._rows = []
            self._saves += 1
            if self._saves % MERGE_EVERY == 0:
                self._store.merge_scores()
        self._saved = time.monotonic()


def _rows(measured: Measured, result: ScoreResult) -> Sequence[Row]:
    result.decoded += measured.decoded
    result.read += measured.read
    if measured.problem:
        result.problems.append(f"{measured.unit.chain}: {measured.problem}")
    result.new += len(measured.rows)
    result.done.update(row[2] for row in measured.rows)
    nulls = [row for row in measured.rows if row[6] is None]
    result.null += len(nulls)
    result.reasons.update(f"{metric}: {note}" for _, _, metric, _, _, _, _, note in nulls)
    return measured.rows
