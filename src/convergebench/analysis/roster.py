"""The roster: every chain a run has or plans, how often it should come home, and its scores there.

A *homecoming* is the last frame of a round that has a home to be compared with. `n` counts them, so
that it means the same for every cycle: every second frame of a round trip or of a recolouring,
every frame of a replication.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from convergebench.analysis.convergence import current
from convergebench.chain import IMPORTED, Chain, ChainKey
from convergebench.cycle import Cycle
from convergebench.gathering import Plan, longest, variant_of
from convergebench.metric import MetricSpec
from convergebench.suite import Suite

CHAIN_COLUMNS: Final[dict[str, pl.DataType]] = {
    "chain": pl.String(),
    "source": pl.String(),
    "cycle": pl.String(),
    "kind": pl.String(),
    "editor": pl.String(),
    "settings": pl.String(),
    "repeat": pl.Int32(),
    "length": pl.Int32(),
    "ended": pl.String(),
    "begun": pl.Boolean(),
    "steps": pl.Int32(),
    "rounds": pl.Int32(),
    "made": pl.Int32(),
    "failed": pl.Boolean(),
    "has_home": pl.Boolean(),
    "content_only": pl.Boolean(),
    "imported": pl.Boolean(),
    "edit": pl.String(),
    "image": pl.String(),
    "session": pl.String(),
    "reversible": pl.Boolean(),
    "refused": pl.Boolean(),
}
"""Columns of `chain_table`."""

COMES_HOME: Final = pl.col("has_home") & ((pl.col("rounds") > 0) | pl.col("failed"))
"""Chains that should have values: the plan takes them home, or would have, had they not failed."""

IDENTITY: Final = ("chain", "source", "cycle", "editor", "settings", "repeat")


@dataclass(frozen=True)
class _Course:
    """A cycle as one source walks it."""

    cycle: Cycle
    truth: bool
    image: str = ""

    def homecomings(self, steps: int) -> list[int]:
        """The last step of each round that has a home to be compared with."""
        last: dict[int, int] = {}
        for step in range(1, steps + 1):
            home = self.cycle.home(step)
            if home and (home.of == "source" or self.truth):
                last[self.cycle.round_of(step)] = step
        return list(last.values())

    @property
    def content_only(self) -> bool:
        """Whether home is alike in content only, so that pixels cannot be compared."""
        home = self.cycle.home(self.cycle.period)
        return home is not None and home.content_only


def chain_table(chains: Sequence[Chain], suite: Suite, plan: Plan | None = None) -> pl.DataFrame:
    """One row per chain, recorded or planned: what it is, how far it got, how far it should.

    `steps` is how far the plan says; without a plan, as far as the longest chain of the same cycle
    and settings. `rounds` is how many homecomings that makes, `made` how many of them there are.
    `ended` is the outcome that left the chain without a next input; it has `failed` when that was
    before its last homecoming or, where it has none, before its last step. `has_home` tells
    whether the cycle has a home for this source, `content_only` whether only content is compared,
    `imported` whether the chain was made elsewhere. `edit` is the cycle's category (or its kind),
    `image` the source's; `reversible` says whether the cycle counts in the headline; `refused`
    whether it failed because the editor refused.
    """
    known = {chain.key.id: chain for chain in chains}
    keys = {name: chain.key for name, chain in known.items()}
    keys |= {key.id: key for key in (plan.keys if plan else ()) if key.id not in keys}
    ends = longest(chains, suite) if plan is None or plan.steps is None else plan.steps
    homes: dict[tuple[str, bool, int], list[int]] = {}
    rows = []
    for name, key in keys.items():
        found = known.get(name)
        course = _course(key, found, suite)
        steps = ends[variant_of(key)]
        reached = [step for step in found.reached if step <= steps] if found else []
        length = max(reached, default=0)
        if (key.cycle, course.truth, steps) not in homes:
            homes[key.cycle, course.truth, steps] = course.homecomings(steps)
        rounds = len(homes[key.cycle, course.truth, steps])
        made = len(set(reached).intersection(homes[key.cycle, course.truth, steps]))
        row = _row(key, found, course)
        row |= {"steps": steps, "rounds": rounds, "made": made}
        short = made < rounds if rounds else length < steps or not steps
        failed = row["ended"] is not None and short
        rows.append(row | {"failed": failed, "refused": failed and row["ended"] == "refused"})
    return pl.DataFrame(rows, schema=CHAIN_COLUMNS)


def _course(key: ChainKey, chain: Chain | None, suite: Suite) -> _Course:
    source = suite.source_named(key.source)
    # Scores without pictures were measured against a truth that is not here either.
    told = source if chain is None else chain
    truth = told.truth is not None or (chain is not None and chain.source is None)
    return _Course(suite.cycle_of(key.cycle), truth, source.category)


def _row(key: ChainKey, chain: Chain | None, course: _Course) -> dict[str, Any]:
    return {
        "chain": key.id,
        "source": key.source,
        "cycle": key.cycle,
        "kind": course.cycle.kind,
        "editor": key.editor,
        "settings": key.settings.label,
        "repeat": key.repeat,
        "length": max(chain.reached, default=0) if chain else 0,
        "ended": chain.ending.outcome if chain and chain.ended and chain.ending else None,
        "begun": chain is not None,
        "has_home": bool(course.homecomings(course.cycle.period)),
        "content_only": course.content_only,
        "imported": chain is not None and chain.editor_version == IMPORTED,
        "edit": course.cycle.category or course.cycle.kind,
        "image": course.image,
        "session": key.settings.session,
        "reversible": course.cycle.reversible,
    }


def homecomings(chains: Sequence[Chain], suite: Suite) -> pl.DataFrame:
    """Every homecoming that was made: chain, step, n."""
    known: dict[tuple[str, bool, int], list[int]] = {}
    rows: list[tuple[str, int, int]] = []
    for chain in chains:
        course = _course(chain.key, chain, suite)
        variant = (chain.key.cycle, course.truth, max(chain.reached, default=0))
        if variant not in known:
            known[variant] = course.homecomings(variant[2])
        name, reached = chain.key.id, set(chain.reached)
        rows += [(name, step, n) for n, step in enumerate(known[variant], 1) if step in reached]
    schema = {"chain": pl.String(), "step": pl.Int32(), "n": pl.Int32()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def home_scores(
    scores: pl.DataFrame, chains: Sequence[Chain], suite: Suite, specs: Mapping[str, MetricSpec]
) -> pl.DataFrame:
    """Scores against home over the whole picture, with `n`, the count of homecomings.

    Only the metric versions in `specs` take part; rows of older versions stay in the store. Where
    home is alike in content only, so do those of metrics that compare pixels.
    """
    who = chain_table(chains, suite).select(*IDENTITY, "kind", "length", "ended", "content_only")
    semantic = [name for name, spec in specs.items() if spec.kind == "semantic"]
    return (
        current(scores, specs)
        .filter((pl.col("against") == "home") & (pl.col("where") == "all"))
        .with_columns(pl.col("value").fill_nan(None))
        .join(homecomings(chains, suite), on=["chain", "step"])
        .join(who, on="chain")
        .filter(pl.col("metric").is_in(semantic) | ~pl.col("content_only"))
        .drop("content_only")
        .sort("metric", "editor", "chain", "n")
    )


def expected(table: pl.DataFrame, made: pl.DataFrame, specs: Iterable[MetricSpec]) -> pl.DataFrame:
    """Every homecoming that should have a value, metric by metric, with or without one.

    Args:
        table: What `chain_table` answered.
        made: What `homecomings` answered.
        specs: The metrics asked; those without a reference are left out.

    Returns:
        Columns metric, chain, source, editor, n, made (there is a frame), failed (there is none,
        and the chain has ended) and refused (it has ended so).
    """
    planned = table.filter(pl.col("rounds") > 0).select(
        "chain", n=pl.int_ranges(1, pl.col("rounds") + 1, dtype=pl.Int32)
    )
    grid = (
        pl.concat([planned.explode("n"), made.select("chain", "n")])
        .unique(maintain_order=True)
        .join(made.select("chain", "n", made=pl.lit(True)), on=["chain", "n"], how="left")
        .join(
            table.select("chain", "source", "editor", "ended", "content_only", "refused"),
            on="chain",
        )
        .with_columns(pl.col("made").fill_null(False))
        .with_columns(last=pl.col("n").filter(pl.col("made")).max().over("chain").fill_null(0))
        # A frame that an import lacks was made: only what comes after the last one failed.
        .with_columns(
            failed=~pl.col("made") & pl.col("ended").is_not_null() & (pl.col("n") > pl.col("last"))
        )
    )
    metrics = pl.DataFrame(
        [(s.name, s.kind == "semantic") for s in specs if s.kind != "no-reference"],
        schema={"metric": pl.String(), "semantic": pl.Boolean()},
        orient="row",
    )
    return (
        grid.join(metrics, how="cross")
        .filter(pl.col("semantic") | ~pl.col("content_only"))
        .with_columns(refused=pl.col("failed") & pl.col("refused"))
        .select("metric", "chain", "source", "editor", "n", "made", "failed", "refused")
    )
