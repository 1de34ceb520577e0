"""What there is to score, as units by trade, and having it measured by an engine's crew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from convergebench.chain import Chain
from convergebench.comparisons import FLOOR_PREFIX, Wanted, floor_pairs, row_version
from convergebench.engines import Engine, Trade
from convergebench.engines.crew import Crew
from convergebench.errors import SettingsError
from convergebench.measure import Unit, missing
from convergebench.metric import Metric, MetricSpec
from convergebench.resources import Resources
from convergebench.store import RunStore
from convergebench.workers import Measured, UnitTask, measuring, spread

APART_BYTES: Final = 6 << 30
"""Memory of a worker of isolated metrics that do not say; fewer are started where it is scarce."""
MANY: Final = 10_000
"""More tasks than any cluster has workers."""


@dataclass(frozen=True)
class Work:
    """What is to be computed: units and their steps by trade, scores by metric; what is known."""

    jobs: list[tuple[Trade, list[tuple[Unit, list[int]]]]]
    scores: Counter[str]
    known: int

    @property
    def total(self) -> int:
        """How many scores."""
        return self.scores.total()


def trades_of(
    place: str, specs: Mapping[str, MetricSpec], *, together: bool
) -> list[tuple[Trade, list[tuple[str, ...]]]]:
    """Who measures which metrics; those of a group are measured at once, on frames decoded once.

    Each isolated metric is a group of its own, so that a worker loads it once. Where trades are
    worked together each is a trade as well, placed by what it takes; else one trade does all that
    take the same, one after the other.
    """
    alone = [name for name, spec in specs.items() if spec.isolated]
    # What waits for a server needs the key of it, which no other machine is given.
    served = [n for n, s in specs.items() if s.resources is None and n not in alone and together]
    shared = [name for name in specs if name not in {*alone, *served}]
    taken = {name: spec.resources or Resources() for name, spec in specs.items()}
    found = [
        (measuring(place, _most([taken[name] for name in shared])), [tuple(shared)]),
        (measuring(place, Resources(), here=True), [tuple(served)]),
    ]
    if together:
        found += [(measuring(place, taken[name]), [(name,)]) for name in alone]
    else:
        large = {n: replace(taken[n], memory=taken[n].memory or APART_BYTES) for n in alone}
        for kind in dict.fromkeys(large.values()):
            found.append((measuring(place, kind), [(n,) for n in alone if large[n] == kind]))
    return [(trade, groups) for trade, groups in found if any(groups)]


def _most(taken: Sequence[Resources]) -> Resources:
    """What suffices for each of them."""
    return Resources(
        max((one.cpus for one in taken), default=1),
        max((one.gpus for one in taken), default=0),
        max((one.memory for one in taken), default=0),
    )


def planned(
    store: RunStore,
    metrics: Mapping[str, Metric],
    trades: Sequence[tuple[Trade, Sequence[tuple[str, ...]]]],
    wanted: Wanted,
    steps: Iterable[int] | None,
    retry_null: bool,
) -> Work:
    """The work. A unit is a chain, or a source's floor, for one group of metrics."""
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
    compared = {
        name
        for name, metric in metrics.items()
        if metric.spec.kind != "no-reference"
        and not (metric.spec.directional or metric.spec.alignment)
    }
    others: dict[str, list[str]] = {}
    pictured = [name for name, pair in (store.read_json("sources.json") or {}).items() if pair[0]]
    for name, other in floor_pairs(pictured):
        others.setdefault(FLOOR_PREFIX + name, []).append(other)

    def units(group: tuple[str, ...]) -> Iterator[tuple[Unit, Chain | None]]:
        for c in chains:
            seen = frozenset(known.get(c.key.id, ()))
            yield Unit(c.key.id, group, wanted, asked, (), seen), c
        for name, names in others.items():
            seen, floored = frozenset(known.get(name, ())), tuple(n for n in group if n in compared)
            yield Unit(name, floored, wanted, None, tuple(names), seen), None

    jobs, scores = [], Counter[str]()
    for trade, groups in trades:
        todo: list[tuple[Unit, list[int]]] = []
        for unit, chain in (found for group in groups for found in units(group)):
            asked_of = [metrics[name] for name in unit.metrics]
            left = list(missing(store.suite, unit, asked_of, chain))
            if left:
                at = sorted({item.step for _, item in left})
                # Told apart from what `run` adds to the chain meanwhile, which is not counted.
                todo.append((unit if chain is None else replace(unit, steps=tuple(at)), at))
            scores.update(metric.spec.name for metric, _ in left)
        jobs.append((trade, todo))
    return Work(jobs, scores, sum(len(keys) for keys in known.values()))


def measured(
    engine: Engine, work: Work, leaving: Callable[[], None]
) -> Generator[tuple[Measured | None, int]]:
    """What is measured, as it comes, and how many are at it. The engine is there at the return.

    None every now and then while nothing comes. To be closed, which ends the workers; whatever the
    end is, `leaving` is called before, because ending workers of a lost cluster may take a while.

    Never in this process: what it has loaded and set is not what a worker has, and would show in
    the last bits of some scores.
    """
    jobs = []
    for trade, todo in work.jobs:
        # Chains stay whole, but where there are fewer of them than workers.
        parts = engine.hands(trade, MANY) // len(todo) if todo else 1
        units = [part for unit, steps in todo for part in spread(unit, steps, parts)]
        jobs.append((trade, [UnitTask(trade.hello["place"], unit) for unit in units]))

    def pieces() -> Generator[tuple[Measured | None, int]]:
        with Crew(engine, jobs) as crew:
            try:
                for piece in crew.ticking():
                    yield piece, crew.alive
            finally:
                leaving()

    return pieces()
