"""The study: runs, or a table of scores, in; tables, effects, stability, trade-off, cases out."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from convergebench.errors import SettingsError
from convergebench.gathering import Gathered, gather
from convergebench.restoration.cases import cases
from convergebench.restoration.effects import confounded, effects
from convergebench.restoration.material import Material
from convergebench.restoration.means import compared, overall_sheet, prompt_sheets, scene_sheets
from convergebench.restoration.reading import material_of
from convergebench.restoration.result import Restoration, Score
from convergebench.restoration.stability import stability
from convergebench.restoration.tablefile import is_table, material_of_table
from convergebench.restoration.tradeoff import tradeoff


def judge_restorations(
    *given: str | os.PathLike[str] | Gathered,
    metrics: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
) -> Restoration:
    """How well pictures were restored: by prompt, by method, by scene, and how stably.

    Args:
        given: Scored run directories, runs gathered before, or one table of scores (CSV, TSV).
        metrics: Names of the measures; by default the paper's six, as far as they are scored, and
            what people think. `NAME@registered` is a metric after registration.
        methods: Only these, by label, editor or prompt; controls stay.

    Raises:
        InputError: Something given cannot be used, or no chain restores.
        ConvergeBenchError: Nothing is scored yet.
        StoreError: A directory is not a run.
    """
    return judged(_material(given, metrics).only(methods))


def _material(
    given: Sequence[str | os.PathLike[str] | Gathered], metrics: Sequence[str] | None
) -> Material:
    ready = [one for one in given if isinstance(one, Gathered)]
    paths = [Path(one) for one in given if not isinstance(one, Gathered)]
    tables = [path for path in paths if is_table(path)]
    if len(given) > 1 and (ready or tables):
        raise SettingsError("a table of scores is judged alone: give it, or run directories.")
    if tables:
        return material_of_table(tables[0], metrics)
    return material_of(ready[0] if ready else gather(paths), metrics)


def judged(material: Material) -> Restoration:
    """What the material comes to."""
    methods, part = compared(material)
    tests, outliers = stability(material)
    points, missing = tradeoff(material)
    found, counts, per_prompt = cases(material)
    scenes = scene_sheets(material, methods)
    return Restoration(
        title=material.title,
        measures=material.measures,
        methods=material.methods,
        pictures=() if material.means else material.pictures,
        prompts=prompt_sheets(material),
        effects=effects(material),
        stability=tests,
        outliers=outliers,
        scenes=scenes,
        overall=overall_sheet(material, methods),
        tradeoff=points,
        counts=counts,
        cases=found,
        case_means=per_prompt,
        notes=(*material.notes, *part, *missing, *confounded(material)),
        scores=_scores(material),
    )


def _scores(material: Material) -> tuple[Score, ...]:
    """Every picture's value of every method and measure, as far as it is finite."""
    if material.means:
        return ()
    return tuple(
        Score(method.id, measure.name, source, value)
        for measure in material.measures
        for method in material.methods
        for source in material.sources(measure)
        if (value := material.value(measure.name, method.id, source)) is not None
        and math.isfinite(value)
    )
