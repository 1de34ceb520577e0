"""Where the names of points stand, so that few of them lie over each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WIDE, TALL = 600.0, 380.0
"""A plot's size in pixels, about."""

LETTER, HEIGHT = 5.6, 12.0
"""Of a name, in pixels."""

GAP: Final = 8.0
MARK: Final = 5.0
SIDES_OF_A_POINT: Final = ("right", "left", "above", "below")
Box = tuple[float, float, float, float]


def placed(
    points: Sequence[tuple[float, float]], names: Sequence[str], flip: tuple[bool, bool]
) -> list[str]:
    """For each point the side of it that its name stands on: right, left, above or below.

    Args:
        points: In the data's own units.
        names: Their names.
        flip: Whether an axis falls to the right, or upwards.
    """
    spots = _on_paper(points, flip)
    taken: list[Box] = [(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in spots]
    sides = []
    for (x, y), name in zip(spots, names, strict=True):
        choices = _choices(x, y, LETTER * min(len(name), 26))
        side = min(choices, key=lambda each: _cost(choices[each], taken))
        taken.append(choices[side])
        sides.append(side)
    return sides


def _on_paper(
    points: Sequence[tuple[float, float]], flip: tuple[bool, bool]
) -> list[tuple[float, float]]:
    spots = []
    for axis, size in ((0, WIDE), (1, TALL)):
        values = [point[axis] for point in points]
        low, high = min(values, default=0.0), max(values, default=1.0)
        wide = (high - low) or 1.0
        shares = [(value - low) / wide for value in values]
        spots.append([size * (1 - share if flip[axis] else share) for share in shares])
    return list(zip(*spots, strict=True))


def _choices(x: float, y: float, wide: float) -> dict[str, Box]:
    half = HEIGHT / 2
    return {
        "right": (x + GAP, y - half, x + GAP + wide, y + half),
        "left": (x - GAP - wide, y - half, x - GAP, y + half),
        "above": (x - wide / 2, y + GAP, x + wide / 2, y + GAP + HEIGHT),
        "below": (x - wide / 2, y - GAP - HEIGHT, x + wide / 2, y - GAP),
    }


def _cost(box: Box, taken: Sequence[Box]) -> float:
    """How much of a name is over others, and beyond the plot."""
    found = sum(_overlap(box, other) for other in taken)
    beyond = max(0.0, -20 - box[0]) + max(0.0, box[2] - WIDE - 20)
    return found + HEIGHT * beyond


def _overlap(a: Box, b: Box) -> float:
    across = min(a[2], b[2]) - max(a[0], b[0])
    down = min(a[3], b[3]) - max(a[1], b[1])
    return across * down if across > 0 and down > 0 else 0.0
