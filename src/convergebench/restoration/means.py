"""Means over the same pictures: prompts and their groups, scenes, damages, all together.

Methods in one table are compared on equal footing: a picture counts, measure by measure, where
every ranked method of the table has a finite score of it. What is left out is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, Literal

import numpy as np

from convergebench.analysis.resampling import mean_interval
from convergebench.restoration.material import NEEDS_TRUTH, Material
from convergebench.restoration.result import Cell, Measure, Method, Picture, Row, Sheet
from convergebench.wording import counted, shown

DIGITS: Final = 3
"""Decimals that tables print, as the paper's do; what is equal to them is a tie."""

FEWEST: Final = 3
"""Pictures that an interval is made of, at least."""

PART: Final = 0.5
"""A method that was asked for less than this share of the pictures is not in the tables of all."""

_UNIT: Final = Decimal(1).scaleb(-DIGITS)


def rounded(value: float) -> Decimal:
    """A mean as it is printed: half up, arithmetic's last digits aside."""
    # 0.6615 is stored a little below itself: what is meant is told by 12 digits.
    return Decimal(f"{value:.12g}").quantize(_UNIT, ROUND_HALF_UP)


def printed(value: float) -> str:
    """A mean in letters."""
    found = rounded(value)
    return str(found if found else abs(found))


def footing(
    material: Material,
    measure: Measure,
    methods: Sequence[Method],
    among: Iterable[Picture] | None = None,
) -> list[str]:
    """The pictures of which every one of these methods has a finite score, in order.

    A method without any score of the measure takes no part.
    """
    names = material.having(measure, [method.id for method in methods])
    return [
        source
        for source in material.sources(measure, among)
        if names
        and all(
            (value := material.value(measure.name, name, source)) is not None
            and math.isfinite(value)
            for name in names
        )
    ]


def cell(material: Material, measure: Measure, methods: Sequence[Method], over: Sequence[str],
         possible: Sequence[str]) -> Cell:  # fmt: skip
    """The mean over pictures of the mean over these methods.

    Args:
        material: The scores.
        measure: Which.
        methods: One, or the prompts of a group: those without any score take no part.
        over: The pictures.
        possible: All that the measure can have a value of, in this table.
    """
    if not possible and measure.kind in NEEDS_TRUTH:
        return Cell(None, absent="truth")
    names = material.having(measure, [method.id for method in methods])
    told = [[material.value(measure.name, name, source) for name in names] for source in over]
    known = [
        math.fsum(finite) / len(finite)
        for each in told
        if (finite := [v for v in each if v is not None and math.isfinite(v)])
        and len(finite) == len(names)
    ]
    infinite = sum(
        any(material.value(measure.name, name, source) == math.inf for name in names)
        for source in possible
    )
    if not known:
        return Cell(None, absent="score", infinite=infinite)
    mean = math.fsum(known) / len(known)
    if material.means:
        return Cell(mean)
    low, high = mean_interval(np.array(known)) if len(known) >= FEWEST else (None, None)
    return Cell(mean, low, high, len(known), infinite=infinite)


def placed(rows: Sequence[Row], measures: Sequence[Measure]) -> tuple[Row, ...]:
    """Mark the best and the second of each column among prompts or methods that are ranked.

    What is printed alike shares its place, and the next other value is second.
    """
    places: dict[tuple[int, str], Literal[1, 2]] = {}
    for measure in measures:
        told = {
            index: rounded(row.cells[measure.name].mean or 0.0)
            for index, row in enumerate(rows)
            if row.kind in ("prompt", "method")
            and not row.control
            and row.cells[measure.name].mean is not None
        }
        if len(told) < 2:
            continue
        best = sorted(set(told.values()), reverse=measure.higher_is_better)[:2]
        for index, value in told.items():
            if value in best:
                places[index, measure.name] = 1 if value == best[0] else 2
    return tuple(
        replace(
            row,
            cells={
                name: replace(mine, place=places.get((index, name), 0))
                for name, mine in row.cells.items()
            },
        )
        for index, row in enumerate(rows)
    )


def prompt_sheets(material: Material) -> tuple[Sheet, ...]:
    """The paper's Table 2: per editor its prompts, their groups, and groups that share a level."""
    return tuple(
        _prompts(material, editor, methods) for editor, methods in material.prompted().items()
    )


def _prompts(material: Material, editor: str, methods: list[Method]) -> Sheet:
    over = {m.name: footing(material, m, methods) for m in material.measures}

    def row(label: str, kind: Literal["prompt", "group", "groups"], mine: Sequence[Method],
            group: str, level: str = "") -> Row:  # fmt: skip
        return _row(material, mine, over, None, label=label, kind=kind, group=group, level=level)

    groups = _groups(methods)
    rows: list[Row] = []
    for group, mine in groups.items():
        rows += [row(one.prompt, "prompt", [one], group) for one in mine]
        if group and len(mine) > 1:
            rows.append(row(f"Avg ({group})", "group", mine, group))
    for level, mine in _combined(material, methods, groups).items():
        name = " + ".join(dict.fromkeys(one.group for one in mine))
        rows.append(row(f"Avg ({name})", "groups", mine, name, level))
    return Sheet(
        title=f"Prompts of {editor}" if editor else "Prompts",
        rows=placed(rows, material.measures),
        measures=material.measures,
        notes=_left_out(material, methods, over, None, "prompts"),
        of=editor,
    )


def _groups(methods: Iterable[Method]) -> dict[str, list[Method]]:
    found: dict[str, list[Method]] = {}
    for method in methods:
        found.setdefault(method.group, []).append(method)
    return found


def _combined(
    material: Material, methods: Sequence[Method], groups: Mapping[str, list[Method]]
) -> dict[str, list[Method]]:
    """The prompts of all groups that share a level of a factor, where these are several groups."""
    found: dict[str, list[Method]] = {}
    for factor, levels in material.levels(methods).items():
        for level in levels:
            mine = [
                group
                for group, members in groups.items()
                if group
                and all(material.factors.get(m.id, {}).get(factor) == level for m in members)
            ]
            if 1 < len(mine) < len([group for group in groups if group]):
                found[f"{factor}={level}"] = [m for m in methods if m.group in mine]
    return found


def overall_sheet(material: Material, methods: Sequence[Method]) -> Sheet:
    """The paper's Table 5: all methods over all pictures that the ranked ones completed."""
    return _methods(material, methods, None, "All pictures", "", "")


def scene_sheets(material: Material, methods: Sequence[Method]) -> tuple[Sheet, ...]:
    """The paper's Table 4: all methods, scene by scene, then damage by damage."""
    found = []
    for by, word in (("scene", "Scene"), ("damage", "Damage")):
        names = list(dict.fromkeys(getattr(p, by) for p in material.pictures))
        for name in names if any(names) else ():
            mine = [p for p in material.pictures if getattr(p, by) == name]
            title = f"{word}: {name or 'not told'}"
            found.append(_methods(material, methods, mine, title, by, name))
    return tuple(found)


def compared(material: Material) -> tuple[list[Method], list[str]]:
    """The methods of the tables of all methods, and a note on those that are not.

    The paper asks twelve prompts for 35 pictures, and one of them for all: over what they have in
    common little would be left of all.
    """
    asked = {m.id: len(material.asked.get(m.id, ())) for m in material.ranked()}
    most = max(asked.values(), default=0)
    part = [m.label for m in material.ranked() if asked[m.id] < PART * most]
    kept = [m for m in material.methods if m.control or m.label not in part]
    if not part:
        return kept, []
    were = counted(len(part), "method", "was", "were")
    return kept, [
        f"{were} asked for less than half of the {counted(most, 'picture')} and left out of the "
        f"tables of all methods: {shown(part)}. --method NAME compares them over theirs."
    ]


def _methods(
    material: Material,
    methods: Sequence[Method],
    among: Sequence[Picture] | None,
    title: str,
    by: str,
    of: str,
) -> Sheet:
    ranked = [method for method in methods if not method.control]
    over = {m.name: footing(material, m, ranked, among) for m in material.measures}
    rows = [
        _row(material, [method], over, among, label=method.label, kind="method", group=method.group)
        for method in [*ranked, *(method for method in methods if method.control)]
    ]
    return Sheet(
        title=title,
        rows=placed(rows, material.measures),
        measures=material.measures,
        notes=_left_out(material, ranked, over, among, "methods"),
        by=by,  # type: ignore[arg-type]
        of=of,
    )


def _row(
    material: Material,
    methods: Sequence[Method],
    over: Mapping[str, Sequence[str]],
    among: Sequence[Picture] | None,
    *,
    label: str,
    kind: Literal["prompt", "group", "groups", "method"],
    group: str,
    level: str = "",
) -> Row:
    names = {method.id for method in methods}
    within = None if among is None else {picture.source for picture in among}
    mine = [
        one
        for one in material.attempts
        if one.method in names and (within is None or one.source in within)
    ]
    return Row(
        label=label,
        kind=kind,
        cells={
            m.name: cell(material, m, methods, over[m.name], material.sources(m, among))
            for m in material.measures
        },
        group=group,
        failed=sum(one.failed for one in mine),
        expected=0 if material.means else len(mine),
        control=any(method.control for method in methods),
        level=level,
        method=methods[0].id if len(methods) == 1 else "",
    )


def _left_out(
    material: Material,
    methods: Sequence[Method],
    over: Mapping[str, Sequence[str]],
    among: Sequence[Picture] | None,
    what: str,
) -> tuple[str, ...]:
    """Which pictures are not in the means, and why."""
    noun = "scene" if material.means else "picture"
    notes: dict[str, list[str]] = {}
    for measure in material.measures:
        possible, used = material.sources(measure, among), over[measure.name]
        having = material.having(measure, [method.id for method in methods])
        without = [method.label for method in methods if method.id not in having]
        if without and having:
            text = f"no score of {shown(without)}, which takes no part"
            notes.setdefault(text, []).append(measure.title)
        if not possible or not having or len(used) == len(possible):
            continue
        left = [source for source in possible if source not in used]
        all_ = counted(len(possible), noun)
        text = f"over {len(used)} of {all_}: not all {what} have a score of {shown(left)}"
        if not used:
            text = f"no mean: of none of {all_} do all {what} have a score"
        if possible == [""]:  # one row of means
            text = f"no mean: not all {what} have one"
        beyond = [
            method.label
            for method in methods
            if any(material.value(measure.name, method.id, source) == math.inf for source in left)
        ]
        if beyond:
            text += f" (infinite with {shown(beyond)})"
        notes.setdefault(text, []).append(measure.title)
    return tuple(f"{', '.join(titles)}: {text}." for text, titles in notes.items())
