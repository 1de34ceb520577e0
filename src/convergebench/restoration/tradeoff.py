"""Perception against distortion: every method as a point, over the same pictures with a truth."""

from __future__ import annotations

import math

from convergebench.restoration.material import Material
from convergebench.restoration.means import footing
from convergebench.restoration.result import Measure, Method, Point
from convergebench.wording import counted


def tradeoff(material: Material) -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """Points of every pair of a full-reference and a no-reference measure, and what to note.

    Both means are over the pictures of which every ranked method has both scores; controls over
    those of them that they have.
    """
    found: list[Point] = []
    empty: list[str] = []
    for x in (m for m in material.measures if m.kind == "full-reference"):
        for y in (m for m in material.measures if m.kind == "no-reference"):
            both = [
                m
                for m in material.methods
                if material.having(x, [m.id]) and material.having(y, [m.id])
            ]
            ranked = [m for m in both if not m.control]
            second = set(footing(material, y, ranked))
            over = [source for source in footing(material, x, ranked) if source in second]
            if ranked and not over:
                empty.append(f"{x.title} and {y.title}")
            found += [point for m in both if (point := _point(material, m, x, y, over)) is not None]
    if not empty:
        return tuple(found), ()
    return tuple(found), (
        f"No points of {counted(len(empty), 'pair')} of measures, such as {empty[0]}: no picture "
        "with a truth has both scores from all methods.",
    )


def _point(
    material: Material, method: Method, x: Measure, y: Measure, over: list[str]
) -> Point | None:
    pairs = [
        (first, second)
        for source in over
        if (first := material.value(x.name, method.id, source)) is not None
        and (second := material.value(y.name, method.id, source)) is not None
        and math.isfinite(first)
        and math.isfinite(second)
    ]
    if not pairs:
        return None
    return Point(
        method=method.id,
        label=method.label,
        group=method.group,
        distortion=x.name,
        perception=y.name,
        x=math.fsum(first for first, _ in pairs) / len(pairs),
        y=math.fsum(second for _, second in pairs) / len(pairs),
        n=0 if material.means else len(pairs),
        control=method.control,
    )
