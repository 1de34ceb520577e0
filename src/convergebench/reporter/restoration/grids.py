"""Tables that the page turns round: scene by method, stability, effects as a forest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from convergebench.reporter.restoration.words import about, factor_words, value_of
from convergebench.restoration.result import (
    Cell,
    Effect,
    Measure,
    Method,
    Outlier,
    Restoration,
    Sheet,
    Stability,
)

REACH: Final = 47.0
"""Per cent of a forest's width to either side of its middle that the longest whisker takes."""

BY: Final = {"scene": "scene", "damage": "degradation"}


@dataclass(frozen=True)
class Spot:
    """One method in one part: `share` is 1 for the best method of its column, 0 for the worst."""

    text: str
    place: int = 0
    share: float | None = None
    about: str = ""


@dataclass(frozen=True)
class Band:
    """One method in all parts."""

    label: str
    control: bool
    spots: tuple[Spot, ...]


@dataclass(frozen=True)
class Matrix:
    """Methods under each other, parts beside each other, by one measure."""

    by: str
    measure: Measure
    parts: tuple[tuple[str, int], ...]
    bands: tuple[Band, ...]


def matrices_of(found: Restoration) -> list[Matrix]:
    """Every measure by scene, then by degradation."""
    return [
        _matrix(by, measure, sheets)
        for by in BY
        if (sheets := [sheet for sheet in found.scenes if sheet.by == by])
        for measure in found.measures
    ]


def _matrix(by: str, measure: Measure, sheets: list[Sheet]) -> Matrix:
    labels = dict.fromkeys((row.label, row.control) for sheet in sheets for row in sheet.rows)
    columns: list[dict[str, Spot]] = []
    parts = []
    for sheet in sheets:
        cells = {row.label: row.cells.get(measure.name) for row in sheet.rows}
        controls = {row.label for row in sheet.rows if row.control}
        shares = _shares(cells, measure, controls)
        columns.append(
            {
                label: Spot(
                    value_of(cell),
                    cell.place if cell else 0,
                    shares.get(label),
                    about(cell, measure),
                )
                for label, cell in cells.items()
            }
        )
        parts.append((sheet.of, max((cell.n for cell in cells.values() if cell), default=0)))
    bands = tuple(
        Band(label, control, tuple(column.get(label, Spot("–")) for column in columns))
        for label, control in labels
    )
    return Matrix(by, measure, tuple(parts), bands)


def _shares(
    cells: Mapping[str, Cell | None], measure: Measure, controls: set[str]
) -> dict[str, float]:
    """Of each the share of the methods that it does no worse than; controls are not counted.

    By place and not by value: one method far off would leave all others in one colour.
    """
    sign = 1 if measure.higher_is_better else -1
    known = {
        label: sign * cell.mean for label, cell in cells.items() if cell and cell.mean is not None
    }
    field = [mean for label, mean in known.items() if label not in controls]
    if len(set(field)) < 2:
        return {}
    worst = field.count(min(field))
    span = len(field) - worst
    return {
        label: max(0, sum(other <= mean for other in field) - worst) / span
        for label, mean in known.items()
    }


@dataclass(frozen=True)
class Whisker:
    """One effect, with its places in per cent of the plot: to the right the level is better."""

    effect: Effect
    measure: Measure
    at: float
    start: float | None
    end: float | None

    @property
    def verdict(self) -> str:
        """In words."""
        if self.effect.better == "tied":
            return "tied"
        return "better" if self.effect.better == "level" else "worse"


@dataclass(frozen=True)
class Forest:
    """One factor's effects on every measure."""

    title: str
    editor: str
    within: bool
    whiskers: tuple[Whisker, ...]


def forests_of(found: Restoration) -> list[Forest]:
    """A forest for each factor, over all prompts and within levels of another."""
    known = {measure.name: measure for measure in found.measures}
    reach: dict[str, float] = {}
    for effect in found.effects:
        ends = [v for v in (effect.difference, effect.low, effect.high) if v is not None]
        reach[effect.measure] = max(reach.get(effect.measure, 0.0), *(abs(v) for v in ends))
    grouped: dict[tuple[str, str, str, str, str], list[Effect]] = {}
    for e in found.effects:
        key = (e.editor, e.factor, e.level, e.baseline, e.within)
        grouped.setdefault(key, []).append(e)
    return [
        Forest(
            factor_words(mine[0]),
            mine[0].editor,
            bool(mine[0].within),
            tuple(_whisker(e, known[e.measure], reach[e.measure]) for e in mine),
        )
        for mine in grouped.values()
    ]


def _whisker(effect: Effect, measure: Measure, reach: float) -> Whisker:
    sign = 1 if measure.higher_is_better else -1

    def at(value: float) -> float:
        return 50 + REACH * sign * value / reach if reach else 50.0

    ends = sorted(at(v) for v in (effect.low, effect.high) if v is not None)
    start, end = ends if len(ends) == 2 else (None, None)
    return Whisker(effect, measure, at(effect.difference), start, end)


@dataclass(frozen=True)
class Tried:
    """One method's tests, by the measure's name."""

    method: Method
    tests: Mapping[str, Stability]
    repeats: int


def stability_of(found: Restoration) -> tuple[list[Measure], list[Tried]]:
    """The measures that were tested, and a line for each method."""
    by: dict[str, dict[str, Stability]] = {}
    for test in found.stability:
        by.setdefault(test.method, {})[test.measure] = test
    tested = {test.measure for test in found.stability}
    measures = [measure for measure in found.measures if measure.name in tested]
    methods = {method.id: method for method in found.methods}
    return measures, [
        Tried(methods[name], tests, max(test.repeats for test in tests.values()))
        for name, tests in by.items()
    ]


@dataclass(frozen=True)
class Odd:
    """An outlier with its repeats that differ most: where the slider should be opened."""

    outlier: Outlier
    method: Method
    measure: Measure
    low: int
    high: int


def odd_of(found: Restoration) -> list[Odd]:
    """The outliers, those that stand out most first."""
    methods = {method.id: method for method in found.methods}
    measures = {measure.name: measure for measure in found.measures}
    odd = []
    for outlier in found.outliers:
        values = outlier.values
        low, high = values.index(min(values)), values.index(max(values))
        odd.append(Odd(outlier, methods[outlier.method], measures[outlier.measure], low, high))
    return sorted(odd, key=lambda o: -(o.outlier.spread / (o.outlier.usual or 1e-12)))
