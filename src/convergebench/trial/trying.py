"""Trying metrics: runs in, a trial out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from convergebench.comparisons import LATER_STEPS
from convergebench.errors import SettingsError, StoreError
from convergebench.gathering import Gathered, gather
from convergebench.remote.address import require_directory
from convergebench.store import RunStore
from convergebench.trial.command import PATIENCE, CommandMetric, Observe, measure, recall, remember
from convergebench.trial.judgement import judge
from convergebench.trial.material import REFERENCES, SCORES, Material
from convergebench.trial.own import Reading, ScoreFile, read_ratings, read_scores
from convergebench.trial.reading import Field, field_of, require, scored
from convergebench.trial.result import Trial

STEPS: Final = LATER_STEPS
"""The paper's choice of later steps."""


def try_metrics(
    *runs: str | os.PathLike[str],
    steps: Sequence[int] = STEPS,
    metrics: Sequence[str] | None = None,
    scores: Sequence[str | Path | ScoreFile] = (),
    commands: Sequence[str | CommandMetric] = (),
    ratings: str | os.PathLike[str] | None = None,
    lower_is_better: Sequence[str] = (),
    cycles: Sequence[str] | None = None,
    patience: float = PATIENCE,
    observe: Observe | None = None,
) -> Trial:
    """Put no-reference metrics on trial: do they notice that replicated frames get worse?

    Args:
        runs: Run directories, scored (`convergebench score`).
        steps: The later steps that are compared with step 1.
        metrics: Names of scored metrics; all no-reference ones by default. An empty list: only
            those of `scores` and `commands`.
        scores: Tables of a metric of one's own: a file, with options as on the command line.
        commands: Commands that score pictures, `NAME=COMMAND`.
        ratings: A table of people's ratings of frames, higher being better.
        lower_is_better: Which metrics of one's own are the better the lower.
        cycles: Names of cycles to look at; all that replicate or add objects by default.
        patience: Seconds without a number after which a command has timed out.
        observe: Called with numbers done, numbers wanted and the command's name.

    Raises:
        InputError: Something given cannot be used, or no chain replicates its source.
        ConvergeBenchError: There is nothing on trial.
        StoreError: A directory is not a run.
    """
    gathered = gather(runs)
    field = field_of(gathered, cycles)
    files = [f if isinstance(f, ScoreFile) else ScoreFile.parse(f) for f in scores]
    calls = [c if isinstance(c, CommandMetric) else CommandMetric.parse(c) for c in commands]
    readings = _turned([*(f.reading for f in files), *(c.reading for c in calls)], lower_is_better)
    files = [replace(f, reading=r) for f, r in zip(files, readings, strict=False)]
    calls = [replace(c, reading=r) for c, r in zip(calls, readings[len(files) :], strict=True)]

    known = scored(gathered, field, metrics)
    tried, parts, notes = list(known.tried), [known.scores], list(known.notes)
    _distinct([t.name for t in tried], [reading.name for reading in readings])
    for file in files:
        found = read_scores(file, field, gathered.name)
        tried.append(file.reading.tried(file.origin))
        parts.append(_placed(found.rows, field, file.reading.name, SCORES))
        notes += found.notes
    for call in calls:
        rows, said = _commanded(call, gathered, field, patience, observe)
        tried.append(call.reading.tried(call.origin))
        parts.append(_placed(rows, field, call.reading.name, SCORES))
        notes += said
    require(tried, gathered, metrics)
    rated = pl.DataFrame(schema=REFERENCES)
    if ratings is not None:
        path = Path(ratings)
        told = read_ratings(path, field, gathered.name)
        rated = _placed(told.rows, field, path.name, REFERENCES)
        notes += told.notes
    return judge(
        Material(
            title=gathered.name,
            arms=field.arms(control=False),
            controls=field.arms(control=True),
            cells=field.cells,
            longest=field.longest,
            tried=tuple(tried),
            scores=_complete(pl.concat(parts), field, [each.name for each in tried]),
            references=known.references,
            ratings=rated,
            notes=(*gathered.notes, *gathered.problems, *notes),
        ),
        steps,
    )


def _turned(readings: Sequence[Reading], lower: Sequence[str]) -> list[Reading]:
    """The readings, those named being the better the lower. Raises SettingsError."""
    names = [reading.name for reading in readings]
    for name in lower:
        if name not in names:
            raise SettingsError(
                f"--lower-is-better {name}: no --scores and no --command has that name"
                + (f"; there are {', '.join(names)}." if names else ".")
                + " Installed metrics say themselves what is better."
            )
    return [replace(r, higher_is_better=False) if r.name in lower else r for r in readings]


def _distinct(scored: Sequence[str], own: Sequence[str]) -> None:
    taken = set(scored)
    for name in own:
        if name in taken:
            raise SettingsError(
                f"there are two metrics called {name!r} on trial. Give one another name: "
                "--scores FILE,name=… or --command name=…"
            )
        taken.add(name)


def _placed(
    rows: pl.DataFrame, field: Field, name: str, schema: dict[str, pl.DataType]
) -> pl.DataFrame:
    """Rows of chain, step and value with their place in the field."""
    return field.placed(rows).with_columns(metric=pl.lit(name)).select(*schema)


def _complete(scores: pl.DataFrame, field: Field, names: Sequence[str]) -> pl.DataFrame:
    """The scores, with null for every frame of a replication that a metric says nothing of.

    A table that lacks rows, or scoring that was stopped, must show in the count of frames without
    a score. Frame 0 is no part of any verdict and not missed.
    """
    keys = ["metric", "arm", "source", "kind", "repeat", "step"]
    due = field.placed(field.frames.select("chain", "step")).filter(
        (pl.col("kind") == "replicate") & (pl.col("step") >= 1)
    )
    each = pl.DataFrame({"metric": list(names)}, schema={"metric": pl.String()})
    missing = each.join(due, how="cross").join(scores, on=keys, how="anti", maintain_order="left")
    return pl.concat([scores, missing.with_columns(value=pl.lit(None, pl.Float64)).select(*SCORES)])


def _commanded(
    call: CommandMetric,
    gathered: Gathered,
    field: Field,
    patience: float,
    observe: Observe | None,
) -> tuple[pl.DataFrame, list[str]]:
    """The numbers of a command for every frame of the field: known ones, and new ones."""
    for run in gathered.runs:
        require_directory(run.store.place, "trial --command")
    homes, places = _frames(gathered, field)
    numbers: dict[str, float | None] = {}
    for store in {id(store): store for store in homes.values()}.values():
        numbers |= recall(store.path, call)
    wanted = {digest: path for digest, path in places.items() if digest not in numbers}
    failures: list[str] = []

    def keep(new: dict[str, float | None]) -> None:
        for store in {id(homes[digest]): homes[digest] for digest in new}.values():
            mine = {digest: value for digest, value in new.items() if homes[digest] is store}
            try:
                remember(store, call, mine)
            except (OSError, StoreError) as error:
                failures.append(
                    f"The numbers of {call.reading.name} could not be kept in {store.place} "
                    f"({getattr(error, 'strerror', None) or error}): the next trial runs the "
                    "command again."
                )

    if wanted:
        numbers |= measure(call, wanted, patience=patience, observe=observe, keep=keep)
    known = pl.DataFrame(
        [(digest, numbers[digest]) for digest in places],
        schema={"sha256": pl.String(), "value": pl.Float64()},
        orient="row",
    )
    rows = field.frames.join(known, on="sha256").select("chain", "step", "value")
    return rows, list(dict.fromkeys(failures))


def _frames(gathered: Gathered, field: Field) -> tuple[dict[str, RunStore], dict[str, Path]]:
    """Which run has each distinct frame of the field, and where it is."""
    mine = set(field.frames["chain"])
    homes: dict[str, RunStore] = {}
    places: dict[str, Path] = {}
    for chain in gathered.chains:
        if chain.key.id in mine:
            store = gathered.stores[chain.key.id]
            for ref in chain.held.values():
                homes.setdefault(ref.sha256, store)
                places.setdefault(ref.sha256, store.frame_path(ref))
    return homes, places
