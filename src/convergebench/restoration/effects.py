"""What a factor of the prompts does: long against short, with fidelity wording against without.

Paired by picture: of each picture, the mean over the prompts of one level minus that over those of
the other. The test flips the signs of these differences (`analysis.pairs` says why it is preferred
to Wilcoxon's: it asks about the mean that is printed beside it, and is exact for few pictures).
Holm's correction is over the measures of one comparison.

Where prompts differ in several factors, levels are compared among prompts that are alike in all
others, and the mean is over these sets: long prompts with fidelity wording against short ones with
it, long ones without against short ones without. In a balanced design, such as the paper's, that is
the plain difference of the means; in others, what one factor does is not taken for another's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from convergebench.analysis.pairs import NOISE, holm, sign_flips
from convergebench.analysis.resampling import mean_interval
from convergebench.restoration.material import Material
from convergebench.restoration.means import FEWEST, footing
from convergebench.restoration.result import Effect, Measure, Method

ALPHA: Final = 0.05


def effects(material: Material) -> tuple[Effect, ...]:
    """Every factor's effect on every measure, over all prompts and within other factors' levels.

    A factor of more than two levels is told as each of the others against the first.
    """
    if material.means:
        return ()
    found: list[Effect] = []
    for editor, methods in material.prompted().items():
        levels = material.levels(methods)
        for factor in levels:
            for within in ["", *_others(levels, factor)]:
                mine = [m for m in methods if not within or _has(material, m, within)]
                own = material.levels(mine).get(factor, [])
                for level in own[1:]:
                    found += _compared(material, editor, methods, mine, factor, level, own[0],
                                       within)  # fmt: skip
    return tuple(found)


def confounded(material: Material) -> tuple[str, ...]:
    """A note on each pair of levels that no two prompts differ in alone: no effect can be told."""
    if material.means:
        return ()
    notes = []
    for editor, methods in material.prompted().items():
        for factor, own in material.levels(methods).items():
            for level in own[1:]:
                if not any(
                    _sets(material, measure, methods, factor, (level, own[0]))
                    for measure in material.measures
                ):
                    whose = f"{editor}, {factor}" if editor else factor
                    notes.append(
                        f"{whose}: {level} − {own[0]} cannot be told: no prompts differ in "
                        f"{factor} alone."
                    )
    return tuple(notes)


def _others(levels: dict[str, list[str]], factor: str) -> list[str]:
    return [
        f"{other}={level}"
        for other, mine in levels.items()
        if other != factor and len(mine) > 1
        for level in mine
    ]


def _has(material: Material, method: Method, told: str) -> bool:
    factor, _, level = told.partition("=")
    return material.factors.get(method.id, {}).get(factor) == level


def _compared(
    material: Material,
    editor: str,
    methods: Sequence[Method],
    mine: Sequence[Method],
    factor: str,
    level: str,
    baseline: str,
    within: str,
) -> list[Effect]:
    apart: list[tuple[Measure, list[float]]] = []
    for measure in material.measures:
        sets = _sets(material, measure, mine, factor, (level, baseline))
        # The pictures of the prompts' table, so that differences are those between its rows.
        over = footing(material, measure, methods) if sets else []
        told = [
            math.fsum(_mean(material, measure, a, s) - _mean(material, measure, b, s)
                      for a, b in sets) / len(sets)
            for s in over
        ]  # fmt: skip
        if told:
            apart.append((measure, told))
    tested = _tested([told for _, told in apart])
    known = [p for p in tested if p is not None]
    corrected = iter(holm(known).tolist() if known else [])
    return [
        _effect(measure, told, p, None if p is None else next(corrected), factor=factor,
                level=level, baseline=baseline, editor=editor, within=within)
        for (measure, told), p in zip(apart, tested, strict=True)
    ]  # fmt: skip


def _sets(
    material: Material,
    measure: Measure,
    methods: Sequence[Method],
    factor: str,
    levels: tuple[str, str],
) -> list[tuple[list[str], list[str]]]:
    """Prompts of either level that are alike in all other factors, set by set."""
    found: dict[frozenset[tuple[str, str]], tuple[list[str], list[str]]] = {}
    for name in material.having(measure, [method.id for method in methods]):
        told = material.factors.get(name, {})
        if told.get(factor) in levels:
            others = frozenset(pair for pair in told.items() if pair[0] != factor)
            found.setdefault(others, ([], []))[levels.index(told[factor])].append(name)
    return [pair for pair in found.values() if all(pair)]


def _mean(material: Material, measure: Measure, methods: Sequence[str], source: str) -> float:
    values = [material.value(measure.name, name, source) for name in methods]
    return math.fsum(v for v in values if v is not None) / len(methods)


def _tested(series: Sequence[Sequence[float]]) -> list[float | None]:
    """The p value of each series of differences; those of one length are tested in one go."""
    found: list[float | None] = [None] * len(series)
    for count in {len(told) for told in series if len(told) >= FEWEST}:
        mine = [index for index, told in enumerate(series) if len(told) == count]
        apart = np.array([series[index] for index in mine]).T
        apart[np.abs(apart) <= NOISE] = 0.0
        for index, p in zip(mine, sign_flips(apart).tolist(), strict=True):
            found[index] = p
    return found


def _effect(
    measure: Measure,
    apart: Sequence[float],
    p: float | None,
    adjusted: float | None,
    **told: str,
) -> Effect:
    mean = math.fsum(apart) / len(apart)
    low, high = mean_interval(np.array(apart)) if len(apart) >= FEWEST else (None, None)
    better: Literal["level", "baseline", "tied"] = "tied"
    sure = low is not None and high is not None and (low > NOISE or high < -NOISE)
    if sure and adjusted is not None and adjusted < ALPHA:
        better = "level" if (mean > 0) == measure.higher_is_better else "baseline"
    return Effect(
        measure=measure.name, difference=mean, low=low, high=high, p=p, adjusted=adjusted,
        n=len(apart), better=better, **told,
    )  # fmt: skip
