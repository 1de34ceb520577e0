"""Opening runs, and limiting what is looked at."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from convergebench.chain import Chain
from convergebench.comparisons import FLOOR_PREFIX, GIVEN, floor_pairs
from convergebench.errors import ConvergeBenchError, SettingsError, explain
from convergebench.gathering.body import Gathered, Plan, Run, variant_of
from convergebench.gathering.merging import merge
from convergebench.remote.address import Place, place_of
from convergebench.runspec import RunSpec
from convergebench.store import RunStore

if TYPE_CHECKING:
    import polars as pl


def gather(directories: Sequence[str | os.PathLike[str]], *, rounds: int | None = None) -> Gathered:
    """Open runs and put them together.

    Args:
        directories: The run directories.
        rounds: Look only at the first so many homecomings.

    Raises:
        SettingsError: No directory, one given twice, or `rounds` below 1.
        StoreMismatch: The runs cannot be compared.
        StoreError: A directory is not a run.
    """
    if rounds is not None and rounds < 1:
        raise SettingsError(f"--rounds counts homecomings from 1, got {rounds}")
    runs = _opened([place_of(directory) for directory in directories])
    if len(runs) == 1:
        whole = _alone(runs[0])
        return whole if rounds is None else limited(whole, rounds)
    return limited(merge(runs), rounds)


def _opened(paths: Sequence[Place]) -> list[Run]:
    if not paths:
        raise SettingsError("give at least one run directory")
    places = [path.resolve() if isinstance(path, Path) else path for path in paths]
    twice = [path for path, place in zip(paths, places, strict=True) if places.count(place) > 1]
    if twice:
        raise SettingsError(f"{twice[0]} is given twice. Name each run once.")
    counts = Counter(place.name for place in places)
    seen: Counter[str] = Counter()
    runs = []
    for path, place in zip(paths, places, strict=True):
        seen[place.name] += 1
        number = f" ({seen[place.name]})" if counts[place.name] > 1 else ""
        store = RunStore.open(path)
        spec, problems = _spec(store)
        scores = standing_floors(store.scores(), store)
        runs.append(
            Run(place.name + number, store, tuple(store.chains()), scores, spec, tuple(problems))
        )
    return runs


def _spec(store: RunStore) -> tuple[RunSpec | None, list[str]]:
    """What the run was asked to do, if that is known; and a sentence when it cannot be read."""
    told = store.read_json("spec.json")
    if told is None:
        return None, []
    try:
        spec = RunSpec.model_validate(told)
        spec.keys(store.suite)
    except (ValidationError, ConvergeBenchError) as error:
        why = explain(error)
        return None, [f"What was planned is unknown (spec.json: {why}); N is the longest chain's."]
    return spec, []


def standing_floors(scores: pl.DataFrame, store: RunStore) -> pl.DataFrame:
    """The score rows without those of a floor that the run has outgrown.

    The floor is a mean over pairs of sources. A run that was extended by more sources has other
    pairs, and rows of the old ones would stay in the mean.
    """
    import polars as pl

    known = store.read_json("sources.json")
    if known is None:
        return scores
    # A name may be known by its truth alone, whose source is yet to come.
    pictured = [name for name, pair in known.items() if pair and pair[0]]
    pairs = pl.DataFrame(
        [(FLOOR_PREFIX + name, other) for name, other in floor_pairs(pictured)],
        schema={"chain": pl.String(), "against": pl.String()},
        orient="row",
    )
    is_floor = pl.col("chain").str.starts_with(FLOOR_PREFIX) & (pl.col("against") != GIVEN)
    if not scores.select(is_floor.any()).item():
        return scores
    wanted = pairs.with_columns(pair=pl.lit(True))
    return (
        scores.join(wanted, on=["chain", "against"], how="left", maintain_order="left")
        .filter(~is_floor | pl.col("pair").is_not_null())
        .drop("pair")
    )


def _alone(run: Run) -> Gathered:
    return Gathered(
        runs=(run,),
        suite=run.store.suite,
        chains=run.chains,
        scores=run.scores,
        plan=Plan.of(run.spec, run.chains, run.store.suite),
        owners={chain.key.id: (run.name,) for chain in run.chains},
        stores={chain.key.id: run.store for chain in run.chains},
        editors={chain.key.editor: chain.key.editor for chain in run.chains},
        problems=run.problems,
    )


def limited(whole: Gathered, rounds: int | None) -> Gathered:
    """The same, without the steps beyond the plan and beyond so many rounds."""
    steps = dict(whole.plan.steps or {})
    notes = list(whole.notes)
    if rounds is not None:
        for variant, count in steps.items():
            steps[variant] = min(count, rounds * whole.suite.cycle_of(variant[0]).period)
        notes.append(
            f"Only the first {rounds} homecomings are looked at, as asked."
            if rounds > 1
            else "Only the first homecoming is looked at, as asked."
        )
    chains = tuple(_cut(chain, steps[variant_of(chain.key)]) for chain in whole.chains)
    return replace(
        whole, chains=chains, plan=Plan(whole.plan.keys, steps), notes=tuple(notes), rounds=rounds
    )


def _cut(chain: Chain, last: int) -> Chain:
    kept = tuple(step for step in chain.steps if step.step <= last)
    return chain if len(kept) == len(chain.steps) else replace(chain, steps=kept)
