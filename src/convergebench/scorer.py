"""Scoring: stored chains in, score rows out. Calls no editor, ever.

Only what is missing is computed. The suite's *floor* (each source against the others) is scored
along, because convergence is defined by it.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from convergebench.chain import Chain
from convergebench.comparisons import AGAINST, FLOOR_PREFIX, Wanted, floor_pairs, row_version
from convergebench.errors import MetricUnavailable, SettingsError
from convergebench.measure import Row, Unit, missing
from convergebench.metric import Metric
from convergebench.metrics.sets import DEFAULT_SET, chosen
from convergebench.registry import lacking, metric_spec, open_metric
from convergebench.store import SCORE_COLUMNS, RunStore, rows_frame
from convergebench.table import Table
from convergebench.workers import Measured, measure_all, measure_apart

SHOWN_REASONS: Final = 5
SAVE_EVERY: Final = 20.0
"""Seconds between two saves of finished rows."""


@dataclass(frozen=True)
class ScoreProgress:
    """Where scoring stands."""

    scores: int
    scores_done: int
    event: str = ""


@dataclass
class ScoreResult:
    """What was scored."""

    path: Path
    metrics: tuple[str, ...]
    new: int = 0
    null: int = 0
    known: int = 0
    decoded: int = 0
    problems: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def table(self) -> Table:
        """The counts as a table."""
        title = f"{self.path}: {self.new} new scores, {self.known} known before"
        rows = [("new", self.new), ("of them null", self.null), ("known before", self.known)]
        nulls = [f"null: {count} × {why}" for why, count in self.reasons.most_common(SHOWN_REASONS)]
        more = len(self.reasons) - SHOWN_REASONS
        if more > 0:
            nulls.append(f"null: {more} more reasons; column `note` of the score files has all")
        if nulls:
            nulls.append("What came out null is measured again with --retry-null.")
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
        workers: Processes; one per core by default.
        memory: GiB that all processes of the learned metrics may use together; by default four
            fifths of the machine's.
        retry_null: Measure again what came out null before.
        observe: Called with a ScoreProgress after every batch of frames.
    """
    for word in against:
        if word not in AGAINST:
            raise SettingsError(
                f"frames are compared with 'home', 'previous' or 'homecoming', got {word!r}"
            )
    store = RunStore.open(Path(directory))
    names, by_set = chosen(metrics or (DEFAULT_SET,))
    wanted = Wanted(tuple(against), by_set if registered is None else registered)
    opened, problems = _open(names)
    result = ScoreResult(store.path, tuple(opened), problems=problems)
    with store.writing("score"):
        units, total, result.known = _units(store, opened, wanted, steps, retry_null)
        saver = _Saver(store)
        labels = sorted(metric.spec.label for metric in opened.values())
        if units:
            store.log_session("start", command="score", pid=os.getpid(), metrics=labels)
        try:
            for measured in _measured(store, units, opened, workers, memory):
                saver.add(_rows(measured, result))
                if observe:
                    observe(ScoreProgress(total, result.new, measured.problem))
        finally:
            saver.save()
            store.merge_scores()
            if units:
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


def _measured(
    store: RunStore,
    units: Sequence[Unit],
    metrics: dict[str, Metric],
    workers: int | None,
    memory: float | None,
) -> Iterator[Measured]:
    """First what shares frames, then the isolated metrics, each in processes of its own."""
    isolated = {name for name, metric in metrics.items() if metric.spec.isolated}
    shared = [unit for unit in units if not isolated.intersection(unit.metrics)]
    cores = os.cpu_count() or 1
    yield from measure_all(store.path, shared, workers or min(cores, len(shared)))
    apart = [unit for unit in units if isolated.intersection(unit.metrics)]
    if apart:
        yield from measure_apart(store.path, apart, workers or min(cores, len(apart)), memory)


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


def _units(
    store: RunStore,
    metrics: dict[str, Metric],
    wanted: Wanted,
    steps: Iterable[int] | None,
    retry_null: bool,
) -> tuple[list[Unit], int, int]:
    """The work, its scores, and how many are known.

    A unit is a chain, or a source's floor; each isolated metric has units of its own, metric by
    metric, so that a worker loads it once.
    """
    import polars as pl

    places = ("all", "registered") if wanted.registered else ("all",)
    specs = [metric.spec for metric in metrics.values()]
    labels = {f"{spec.name}@{row_version(spec, place)}" for spec in specs for place in places}
    label = pl.concat_str("metric", "version", separator="@")
    rows = store.scores().with_columns(label=label).filter(pl.col("label").is_in(sorted(labels)))
    if retry_null:
        rows = rows.filter(pl.col("value").is_not_null())
    known: dict[str, set[tuple[int, str, str, str]]] = {}
    for chain, *key in rows.select("chain", "step", "label", "against", "where").iter_rows():
        known.setdefault(chain, set()).add(tuple(key))
    asked = None if steps is None else tuple(sorted(set(steps)))
    chains = sorted(store.chains(), key=lambda c: (c.key.source, c.key.id))
    longest = max((max(c.held, default=0) for c in chains), default=0)
    if asked and asked[0] > longest:
        raise SettingsError(f"no chain has step {asked[0]}; the longest has {longest}")
    alone = [(name,) for name, metric in metrics.items() if metric.spec.isolated]
    together = tuple(name for name in metrics if (name,) not in alone)
    units: list[tuple[Unit, Chain | None]] = [
        (Unit(c.key.id, group, wanted, asked, (), frozenset(known.get(c.key.id, ()))), c)
        for group in [together, *alone]
        for c in chains
        if group
    ]
    compared = tuple(
        name
        for name, metric in metrics.items()
        if metric.spec.kind != "no-reference"
        and not (metric.spec.directional or metric.spec.alignment)
    )
    others: dict[str, list[str]] = {}
    pictured = [name for name, pair in (store.read_json("sources.json") or {}).items() if pair[0]]
    for name, other in floor_pairs(pictured):
        others.setdefault(FLOOR_PREFIX + name, []).append(other)
    units += [
        (Unit(name, compared, wanted, None, tuple(names), frozenset(known.get(name, ()))), None)
        for name, names in others.items()
    ]
    todo, total = [], 0
    for unit, chain in units:
        asked_of = [metrics[name] for name in unit.metrics]
        count = sum(1 for _ in missing(store.suite, unit, asked_of, chain))
        todo += [unit] if count else []
        total += count
    return todo, total, sum(len(keys) for keys in known.values())


class _Saver:
    """Gathers rows and saves them now and then, so that a kill loses seconds, not hours."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._rows: list[Row] = []
        self._saved = time.monotonic()

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
        self._saved = time.monotonic()


def _rows(measured: Measured, result: ScoreResult) -> Sequence[Row]:
    result.decoded += measured.decoded
    if measured.problem:
        result.problems.append(f"{measured.unit.chain}: {measured.problem}")
    result.new += len(measured.rows)
    nulls = [row for row in measured.rows if row[6] is None]
    result.null += len(nulls)
    result.reasons.update(f"{metric}: {note}" for _, _, metric, _, _, _, _, note in nulls)
    return measured.rows
