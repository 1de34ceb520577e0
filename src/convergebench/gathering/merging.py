"""Putting several runs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from convergebench.chain import Chain, ChainKey
from convergebench.comparisons import FLOOR_PREFIX, GIVEN, PUBLISHED
from convergebench.errors import StoreMismatch
from convergebench.gathering.body import (
    Gathered,
    Plan,
    Run,
    Variant,
    longest,
    variant_of,
)
from convergebench.gathering.editors import Place, Walked, editors_of, place_of
from convergebench.gathering.naming import Names, names_of
from convergebench.scoretable import SCORE_COLUMNS
from convergebench.store import RunStore
from convergebench.suite import Suite

if TYPE_CHECKING:
    import polars as pl


def merge(runs: Sequence[Run]) -> Gathered:
    """Several runs as one. Raises StoreMismatch where a comparison would be false."""
    names = names_of(runs)
    walked = [_walked(index, run, names) for index, run in enumerate(runs)]
    _refuse_strangers(runs, walked, names)
    notes = [*_suite_notes(runs), *names.notes]
    calls, kins = editors_of(runs, walked, notes)
    chains: list[Chain] = []
    owners: dict[str, tuple[str, ...]] = {}
    stores: dict[str, RunStore] = {}
    ids: list[dict[str, str]] = [{} for _ in runs]
    doubles: dict[tuple[str, ...], int] = {}
    for (*_, repeat), same in (told for kin in kins for told in kin.chains.items()):
        kept = max(same, key=lambda w: (len(w.chain.final), -w.run))
        name = calls[kept.run, kept.chain.key.editor]
        key = kept.chain.key.model_copy(update={"editor": name, "repeat": repeat})
        chains.append(replace(kept.chain, key=key))
        for walk in same:
            ids[walk.run][walk.old] = key.id
        owners[key.id] = tuple(runs[i].name for i in sorted(walk.run for walk in same))
        stores[key.id] = runs[kept.run].store
        if len(same) > 1:
            doubles[owners[key.id]] = doubles.get(owners[key.id], 0) + 1
    for having, count in doubles.items():
        what = "chain is" if count == 1 else "chains are"
        once = "counts" if count == 1 else "count"
        notes.append(f"{count} {what} the same in {' and '.join(having)} and {once} once.")
    chains.sort(key=lambda c: (c.key.id.rpartition("--")[2][:2], c.key.id))
    suite = _suite(runs, names)
    moved = {
        (run, calls[run, walks[0].chain.key.editor], place): seat
        for kin in kins
        for (run, place), seat in kin.moved.items()
        if (walks := kin.chains[seat])
    }
    keys = _planned(runs, names, calls, chains, moved)
    owners |= {key.id: (run.name,) for key, run in keys}
    steps = _steps(runs, walked, suite, names, notes)
    return Gathered(
        runs=tuple(runs),
        suite=suite,
        chains=tuple(chains),
        scores=_scores(runs, ids, names, notes),
        plan=Plan(tuple(key for key, _ in keys), steps),
        owners=owners,
        stores=stores,
        editors={call: name for (_, name), call in calls.items()},
        notes=tuple(notes),
        problems=tuple(f"{run.name}: {problem}" for run in runs for problem in run.problems),
    )


def _walked(index: int, run: Run, names: Names) -> list[Walked]:
    """A run's chains under the names used here; editors keep theirs for now."""
    import polars as pl

    rows = run.scores.filter(pl.col("version").str.starts_with(PUBLISHED))
    columns = ("chain", "step", "metric", "version", "value")
    published: dict[str, dict[tuple[int, str, str], float | None]] = {}
    for chain, step, metric, version, value in rows.select(columns).iter_rows():
        published.setdefault(chain, {})[step, metric, version] = value
    return [
        Walked(
            index,
            replace(chain, key=_renamed(chain.key, index, names)),
            chain.key.id,
            published.get(chain.key.id, {}),
        )
        for chain in run.chains
    ]


def _renamed(key: ChainKey, run: int, names: Names) -> ChainKey:
    return key.model_copy(
        update={
            "source": names.sources[run, key.source],
            "cycle": names.cycle_label(run, key.cycle),
        }
    )


# -- refusals -------------------------------------------------------------------------------------


def _refuse_strangers(
    runs: Sequence[Run], walked: Sequence[Sequence[Walked]], names: Names
) -> None:
    """Raise StoreMismatch for a run that shares no source and cycle with any other."""
    shares = [
        {(w.chain.key.source, "" if w.chain.key.cycle in same else w.chain.key.cycle) for w in mine}
        for mine, same in zip(walked, _restoring(runs, names), strict=True)
    ]
    order = sorted(enumerate(zip(runs, shares, strict=True)), key=lambda told: bool(told[1][1]))
    for index, (run, mine) in order:  # empty ones first: they are why the others are alone
        others = [shared for i, shared in enumerate(shares) if i != index]
        if any(mine & shared for shared in others):
            continue
        rest = " and ".join(other.name for other in runs if other is not run)
        if not mine:
            why = f"{run.name} has no chain"
        else:
            why = (
                f"no source picture of {run.name} walked the same cycle there"
                + _sizes(runs)
                + _clashing(names)
            )
        raise StoreMismatch(
            f"{run.name} cannot be compared with {rest}: {why}. Make a report of each, or run the "
            "same sources and cycles."
        )


def _restoring(runs: Sequence[Run], names: Names) -> list[set[str]]:
    """Of each run the cycles that restore: whatever the prompt, they want the same of a picture."""
    return [
        {
            names.cycle_label(index, chain.key.cycle)
            for chain in run.chains
            if run.store.suite.cycle_of(chain.key.cycle).kind == "restore"
        }
        for index, run in enumerate(runs)
    ]


def _sizes(runs: Sequence[Run]) -> str:
    """The sizes of drawn sources, where they are why the pictures differ."""
    drawn = {run.store.info.size for run in runs if any(s.draw for s in run.store.suite.source)}
    return f" (drawn sources of {' and '.join(map(str, sorted(drawn)))} pixels)" * (len(drawn) > 1)


def _clashing(names: Names) -> str:
    if not names.clashes:
        return ""
    shown = sorted(names.clashes)[:3]
    rest = len(names.clashes) - len(shown)
    told = ", ".join(shown) + (f" and {rest} more" if rest else "")
    return f"; of equal name and different content: {told}"


# -- plans ----------------------------------------------------------------------------------------


def _planned(
    runs: Sequence[Run],
    names: Names,
    calls: Mapping[tuple[int, str], str],
    chains: Sequence[Chain],
    moved: Mapping[tuple[int, str, Place], Place],
) -> list[tuple[ChainKey, Run]]:
    """Chains that nobody has begun, each once, with the run that plans it."""
    known = {(chain.key.editor, place_of(chain.key)) for chain in chains}
    found: list[tuple[ChainKey, Run]] = []
    for index, run in enumerate(runs):
        for told in run.spec.keys(run.store.suite) if run.spec else ():
            key = _renamed(told, index, names)
            key = key.model_copy(update={"editor": calls[index, told.editor]})
            seat = moved.get((index, key.editor, place_of(key)), place_of(key))
            if (key.editor, seat) not in known:
                known.add((key.editor, seat))
                found.append((key, run))
    return found


def _steps(
    runs: Sequence[Run],
    walked: Sequence[Sequence[Walked]],
    suite: Suite,
    names: Names,
    notes: list[str],
) -> dict[Variant, int]:
    """How far each variant is followed: as far as the shortest run goes."""
    bounds: dict[Variant, dict[str, int]] = {}
    meant: dict[Variant, int] = {}
    for index, (run, mine) in enumerate(zip(runs, walked, strict=True)):
        chains = [walk.chain for walk in mine]
        for variant, steps in longest(chains, suite).items():
            meant[variant] = max(meant.get(variant, 0), steps)
        if run.spec is not None:
            keys = [_renamed(key, index, names) for key in run.spec.keys(run.store.suite)]
            variants = {variant_of(key) for key in (*keys, *(chain.key for chain in chains))}
            ends = {v: run.spec.steps_of(suite.cycle_of(v[0])) for v in variants}
        else:
            # A run whose chains all failed does not say how far they were to go.
            ends = longest([chain for chain in chains if not chain.ended], suite)
        for variant, steps in ends.items():
            bounds.setdefault(variant, {})[run.name] = steps
    found = meant | {variant: min(ends.values()) for variant, ends in bounds.items()}
    short: dict[tuple[int, str], list[str]] = {}
    for variant, told in sorted(bounds.items()):
        if len(set(told.values())) > 1:
            where = " and ".join(name for name, steps in told.items() if steps == found[variant])
            rounds = found[variant] // suite.cycle_of(variant[0]).period
            label = f"{variant[0]} ({variant[1]})" if variant[1] else variant[0]
            short.setdefault((rounds, where), []).append(label)
    for (rounds, where), labels in short.items():
        first = "first homecoming" if rounds == 1 else f"first {rounds} homecomings"
        notes.append(
            f"{', '.join(labels)}: compared over the {first}, as far as {where} "
            f"{'goes' if ' and ' not in where else 'go'}."
        )
    return found


# -- suite and scores -----------------------------------------------------------------------------


def _suite(runs: Sequence[Run], names: Names) -> Suite:
    """All sources and cycles under the names used here; whether they fit was checked by each."""
    first = runs[0].store.suite
    return Suite.model_construct(
        name=first.name,
        version=first.version,
        description="",
        size=first.size,
        fingerprint=None,
        source=tuple(names.suite_sources.values()),
        cycle=tuple(names.suite_cycles.values()),
        root=None,
    )


def _suite_notes(runs: Sequence[Run]) -> list[str]:
    suites = {(run.store.info.suite, run.store.info.fingerprint): run.store.info for run in runs}
    if len(suites) == 1:
        return []
    labels = [info.suite for info in suites.values()]
    told = [
        f"{run.name}: {run.store.info.suite}"
        + (f" ({run.store.info.fingerprint[:8]})" if labels.count(run.store.info.suite) > 1 else "")
        for run in runs
    ]
    return [
        f"The runs' suites differ ({', '.join(told)}): ranked is only what all ranked editors "
        "walked, and the floor is the mean over the pairs of sources of each suite."
    ]


def _scores(
    runs: Sequence[Run], ids: Sequence[Mapping[str, str]], names: Names, notes: list[str]
) -> pl.DataFrame:
    """All rows under the names used here; of rows with equal keys the first run's."""
    import polars as pl

    is_floor = pl.col("chain").str.starts_with(FLOOR_PREFIX) & (pl.col("against") != GIVEN)
    parts = []
    for index, run in enumerate(runs):
        sources = {old: new for (of, old), new in names.sources.items() if of == index}
        floors = {FLOOR_PREFIX + old: FLOOR_PREFIX + new for old, new in sources.items()}
        parts.append(
            run.scores.with_columns(
                chain=pl.when(is_floor)
                .then(pl.col("chain").replace(floors))
                .otherwise(pl.col("chain").replace(dict(ids[index]))),
                against=pl.when(is_floor)
                .then(pl.col("against").replace(sources))
                .otherwise(pl.col("against")),
            )
        )
    rows = pl.concat(parts)
    given = rows.filter(pl.col("against") == GIVEN)
    several = given.group_by("metric").agg(pl.col("value").n_unique()).filter(pl.col("value") > 1)
    if len(several):
        notes.append(
            f"The runs were given different floors of {', '.join(sorted(several['metric']))}; the "
            "mean of them counts."
        )
    # Floors that were given differ in nothing but their value: all of them are kept.
    key = [*list(SCORE_COLUMNS)[:6], "own"]
    own = pl.when(pl.col("against") == GIVEN).then(pl.col("value"))
    return rows.with_columns(own=own).unique(key, keep="first", maintain_order=True).drop("own")
