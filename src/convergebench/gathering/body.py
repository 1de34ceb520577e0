"""What gathering comes to: runs as stored, the chains that should be there, one body of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from convergebench.chain import IMPORTED, Chain, ChainKey
from convergebench.runspec import RunSpec
from convergebench.store import RunStore
from convergebench.suite import Suite

if TYPE_CHECKING:
    import polars as pl

Variant = tuple[str, str]
"""A cycle and the label of its settings."""


@dataclass(frozen=True)
class Plan:
    """Which chains there should be, and how many steps chains of each variant should have."""

    keys: tuple[ChainKey, ...] = ()
    steps: Mapping[Variant, int] | None = None

    @classmethod
    def of(cls, spec: RunSpec | None, chains: Sequence[Chain], suite: Suite) -> Plan:
        """What a run was told to do; where nobody knows, as far as its longest chains go."""
        keys = tuple(spec.keys(suite)) if spec else ()
        if spec is None:
            return cls((), longest(chains, suite))
        variants = {variant_of(key) for key in (*keys, *(chain.key for chain in chains))}
        return cls(keys, {v: spec.steps_of(suite.cycle_of(v[0])) for v in sorted(variants)})


@dataclass(frozen=True)
class Run:
    """One run as stored: `name` is its directory's, numbered where two have the same."""

    name: str
    store: RunStore
    chains: tuple[Chain, ...]
    scores: pl.DataFrame
    spec: RunSpec | None
    problems: tuple[str, ...] = ()

    @property
    def imported(self) -> bool:
        """Whether it was imported: its suite is what its chains come to, and grows with them."""
        return self.store.info.imported


@dataclass(frozen=True)
class Gathered:
    """What is analysed.

    Attributes:
        runs: The runs, in the order given.
        suite: Their suite, or what their suites come to together.
        chains: Every chain, once, under the names used here.
        scores: Every score row, under the same names.
        plan: What chains there should be, and how long.
        owners: The runs that have a chain, by its id.
        stores: Where a chain's frames are, by its id.
        editors: An editor's name as recorded, by the name used here.
        notes: What a reader has to know about the gathering, a sentence each.
        problems: What could not be read, a sentence each.
        rounds: How many homecomings are looked at, where the user said so.
    """

    runs: tuple[Run, ...]
    suite: Suite
    chains: tuple[Chain, ...]
    scores: pl.DataFrame
    plan: Plan
    owners: Mapping[str, tuple[str, ...]]
    stores: Mapping[str, RunStore]
    editors: Mapping[str, str]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    rounds: int | None = None

    @property
    def name(self) -> str:
        """The runs' names."""
        return " + ".join(run.name for run in self.runs)

    @property
    def several(self) -> bool:
        """Whether there is more than one run."""
        return len(self.runs) > 1

    @property
    def suites(self) -> str:
        """Name and version of every suite."""
        return " + ".join(dict.fromkeys(run.store.suite.full_label for run in self.runs))

    def runs_of(self, chains: Iterable[str]) -> tuple[str, ...]:
        """The runs that have any of these chains, in the order given."""
        having = {name for chain in chains for name in self.owners.get(chain, ())}
        return tuple(run.name for run in self.runs if run.name in having)


def variant_of(key: ChainKey) -> Variant:
    """A chain's cycle and settings: chains that share them should be of one length."""
    return key.cycle, key.settings.label


def longest(chains: Iterable[Chain], suite: Suite) -> dict[Variant, int]:
    """The longest chain of each variant, in steps.

    An imported chain that failed was meant to finish the round it failed in at least: nobody
    wrote down how much further.
    """
    found: dict[Variant, int] = {}
    for chain in chains:
        variant = variant_of(chain.key)
        last = max(chain.reached, default=0)
        if chain.editor_version == IMPORTED and chain.ended and chain.ending:
            cycle = suite.cycle_of(chain.key.cycle)
            last = max(last, cycle.round_of(chain.ending.step) * cycle.period)
        found[variant] = max(found.get(variant, 0), last)
    return found
