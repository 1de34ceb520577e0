"""What scoring will have to measure: counted score by score, as `score` does it, not guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from convergebench.chain import Chain, FrameRef
from convergebench.comparisons import (
    FLOOR_PREFIX,
    LATER_STEPS,
    Comparison,
    Wanted,
    floor_pairs,
    row_version,
)
from convergebench.measure import Unit, missing
from convergebench.metric import LiftedMetric, MetricSpec, NoScore, StepView
from convergebench.store import RunStore
from convergebench.suite import Suite

if TYPE_CHECKING:
    from convergebench.planner.future import Size

HOMING: Final = ("round-trip", "cross", "restore", "free")
"""Cycles whose homecomings are the study, whatever else a run has."""

Known = Mapping[str, frozenset[tuple[int, str, str, str]]]


@dataclass
class Amount:
    """A count by size of picture: of all steps, and of those that the study compares."""

    whole: Counter[Size] = field(default_factory=Counter)
    study: Counter[Size] = field(default_factory=Counter)

    def add(self, size: Size, in_study: bool) -> None:
        """Count one more."""
        self.whole[size] += 1
        if in_study:
            self.study[size] += 1


@dataclass
class Group:
    """Metrics that are measured together, on frames that are decoded once for all of them.

    Attributes:
        scores: By metric, what it has to measure.
        decoded: Pictures to decode.
        registered: Pairs to bring into register.
        pieces: Where there is work: a chain and its steps, or a floor and its other sources.
    """

    specs: Mapping[str, MetricSpec]
    wanted: Wanted
    scores: dict[str, Amount] = field(default_factory=dict)
    decoded: Amount = field(default_factory=Amount)
    registered: Amount = field(default_factory=Amount)
    pieces: list[Piece] = field(default_factory=list)


@dataclass(frozen=True)
class Piece:
    """Work on one chain, or on one source's floor; `metrics` are those that have some there."""

    chain: Chain | None
    floor: str
    steps: tuple[int, ...]
    others: tuple[str, ...]
    metrics: frozenset[str]


def study_steps(suite: Suite, chains: Sequence[Chain]) -> list[int]:
    """The steps that the studies of these chains cannot do without.

    Where pictures are replicated, or objects added, the trial of metrics: source, first frame, and
    the later ones that it compares. Round trips and other cycles that come home: every homecoming,
    and step 1, which tells inert editors. Restorations: all.
    """
    found = {0, 1}
    cycles = {chain.key.cycle: suite.cycle_of(chain.key.cycle) for chain in chains}
    trial = any(cycle.kind in ("replicate", "accumulate") for cycle in cycles.values())
    for chain in chains:
        cycle = cycles[chain.key.cycle]
        later = trial and cycle.kind not in HOMING
        found.update(
            step
            for step in chain.held
            if (step in LATER_STEPS if later else cycle.home(step) is not None)
        )
    longest = max((max(chain.held, default=0) for chain in chains), default=0)
    return sorted(step for step in found if step <= longest)


def known_scores(store: RunStore | None, specs: Iterable[MetricSpec], wanted: Wanted) -> Known:
    """By chain, the scores of these metrics that are there already."""
    import polars as pl

    if store is None:
        return {}
    places = ("all", "registered") if wanted.registered else ("all",)
    labels = {f"{spec.name}@{row_version(spec, place)}" for spec in specs for place in places}
    label = pl.concat_str("metric", "version", separator="@")
    rows = store.scores().with_columns(label=label).filter(pl.col("label").is_in(sorted(labels)))
    found: dict[str, set[tuple[int, str, str, str]]] = {}
    for chain, *key in rows.select("chain", "step", "label", "against", "where").iter_rows():
        found.setdefault(chain, set()).add(tuple(key))
    return {chain: frozenset(keys) for chain, keys in found.items()}


def groups_of(specs: Mapping[str, MetricSpec], wanted: Wanted) -> list[Group]:
    """The metrics as they are measured: those that share frames together, each isolated alone."""
    together = {name: spec for name, spec in specs.items() if not spec.isolated}
    alone = [{name: spec} for name, spec in specs.items() if spec.isolated]
    return [Group(group, wanted) for group in [together, *alone] if group]


def count(
    group: Group,
    suite: Suite,
    chains: Sequence[Chain],
    sources: Mapping[str, Size],
    known: Known,
    *,
    steps: Sequence[int] | None,
    study: Sequence[int],
) -> None:
    """Fill in what a group has to measure on these chains and on the floor of these sources."""
    cards = {name: LiftedMetric(spec, _never) for name, spec in group.specs.items()}
    names = {id(card): name for name, card in cards.items()}
    group.scores.update({name: Amount() for name in cards})
    asked = None if steps is None else tuple(sorted(set(steps)))
    opened: dict[str, set[bool]] = {}  # pictures of sources, decoded once for all their chains
    for chain in chains:
        key = chain.key.id
        unit = Unit(key, tuple(cards), group.wanted, asked, (), known.get(key, frozenset()))
        work = missing(suite, unit, cards.values(), chain)
        todo = [(names[id(metric)], item) for metric, item in work]
        _add_chain(group, chain, todo, study, opened)
    for name, other in _floors(sources):
        key = FLOOR_PREFIX + name
        able = [card for card in cards.values() if _has_floor(card.spec)]
        told = tuple(card.spec.name for card in able)
        unit = Unit(key, told, group.wanted, None, tuple(other), known.get(key, frozenset()))
        work = missing(suite, unit, able, None)
        todo = [(names[id(metric)], item) for metric, item in work]
        _add_floor(group, name, sources, todo)


def _add_chain(
    group: Group,
    chain: Chain,
    todo: Sequence[tuple[str, Comparison]],
    study: Sequence[int],
    opened: dict[str, set[bool]],
) -> None:
    compared, steps, pairs = set(study), set[int](), set[int]()
    needed: dict[bool, set[int]] = {True: set(), False: set()}
    for name, item in todo:
        within = item.step in compared
        group.scores[name].add(_size(_reference(chain, item)), within)
        steps.add(item.step)
        if item.where == "registered":
            pairs.add(item.step)
        for wanted in {False, within}:
            needed[wanted] |= {item.step} | ({item.earlier} if item.earlier is not None else set())
    for step in pairs:
        group.registered.add(_size(chain.source), step in compared)
    for step in needed[False] - {0}:
        group.decoded.add(_size(chain.held[step]), step in needed[True])
    if todo and chain.source:
        before, within = opened.setdefault(chain.key.source, set()), bool(needed[True])
        if not before:
            group.decoded.whole[_size(chain.source)] += 1
        if within and True not in before:
            group.decoded.study[_size(chain.source)] += 1
        before |= {False, within}
    if todo:
        metrics = frozenset(name for name, _ in todo)
        group.pieces.append(Piece(chain, "", tuple(sorted(steps)), (), metrics))


def _add_floor(
    group: Group,
    name: str,
    sources: Mapping[str, Size],
    todo: Sequence[tuple[str, Comparison]],
) -> None:
    others = tuple(dict.fromkeys(item.against for _, item in todo))
    for metric, _ in todo:
        group.scores[metric].add(sources[name], True)
    for other in [name, *others] if others else ():
        group.decoded.add(sources[other], True)
    if others:
        metrics = frozenset(metric for metric, _ in todo)
        group.pieces.append(Piece(None, name, (), others, metrics))


def _floors(sources: Mapping[str, Size]) -> Iterator[tuple[str, list[str]]]:
    others: dict[str, list[str]] = {}
    for name, other in floor_pairs(list(sources)):
        others.setdefault(name, []).append(other)
    yield from others.items()


def _has_floor(spec: MetricSpec) -> bool:
    return spec.kind != "no-reference" and not (spec.directional or spec.alignment)


def _reference(chain: Chain, item: Comparison) -> FrameRef | None:
    """The picture whose size decides what a comparison costs: the frame is brought to it."""
    if item.against == "none":
        return chain.held[item.step]
    if item.earlier is not None:
        return chain.held[item.earlier]
    truth = item.home is not None and item.home.of == "truth"
    return chain.truth if truth and chain.truth else chain.source


def _size(ref: FrameRef | None) -> Size:
    return (ref.width or 0, ref.height or 0) if ref else (0, 0)


def _never(view: StepView) -> NoScore:  # cards are counted with, not measured with
    return NoScore("not measured")
