"""How each editor is drawn, the same in every chart and on every page.

The seven colours were searched for, per theme, so that any two of them and the controls' grey stay
apart for normal sight and under simulated protanopia, deuteranopia and tritanopia (Machado et al.
2009; smallest distance 18 in CIELAB) with a contrast of at least 3:1 to the page. Shape and dash
repeat what colour says, for print in grey and for more editors than colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

LIGHT: Final = ("#179fd5", "#982602", "#6535bd", "#9e9733", "#408856", "#1a477c", "#6a1436")
DARK: Final = ("#56daf1", "#cf7d34", "#6468f0", "#f5cf32", "#a3f6c1", "#7cadfd", "#bf3cac")
GREY: Final = ("#7c8087", "#8e939b")
"""Controls, in the light and the dark theme."""

PARTS_LIGHT: Final = ("#33638d", "#d98f3e", "#7a9e52", "#b35a78", "#7b6db0", "#5b5f66", "#b4b8be")
PARTS_DARK: Final = ("#6ea8dc", "#e3a861", "#a5c97c", "#d888a5", "#a89be0", "#c3c7cd", "#5d626a")
"""Parts of a whole: components of a drift, shapes of curves, inside and outside."""

REMAINDERS: Final = ("rest", "flat")
"""Parts that are what is left when the others are told: always grey."""

SHAPES: Final = {
    "circle": "M8 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M8.5 2.5h7v7h-7z",
    "diamond": "M12 1.2l4.3 4.8-4.3 4.8-4.3-4.8z",
    "triangle-up": "M12 1.8l4.4 7.8h-8.8z",
    "cross": "M10.5 1.8h3v2.7h2.7v3h-2.7v2.7h-3v-2.7h-2.7v-3h2.7z",
    "triangle-down": "M12 10.2l4.4-7.8h-8.8z",
}
"""Vega's names of point shapes, each with its outline in a box of 24 × 12 for the pages."""

CONTROL_DASHES: Final = ((5, 3), (2, 2), (8, 3, 2, 3), (1, 3))
SOLID: Final = (1, 0)
LONG_DASH: Final = (10, 2)


@dataclass(frozen=True)
class Ink:
    """How one editor is drawn."""

    editor: str
    control: bool
    css: str
    light: str
    dark: str
    shape: str
    dash: tuple[int, ...]

    @property
    def outline(self) -> str:
        """The shape as an SVG path."""
        return SHAPES[self.shape]

    @property
    def strokes(self) -> str:
        """The dash as SVG has it; empty for a solid line."""
        return "" if self.dash == SOLID else " ".join(str(n) for n in self.dash)


def inks(editors: Sequence[tuple[str, bool]]) -> dict[str, Ink]:
    """An ink for every editor, given as (name, is a control).

    By name and not by rank, so that an editor keeps its colour when the numbers move.
    """
    shapes = list(SHAPES)
    found: dict[str, Ink] = {}
    models = sorted(name for name, control in editors if not control)
    for index, name in enumerate(models):
        lap, colour = divmod(index, len(LIGHT))
        found[name] = Ink(
            editor=name,
            control=False,
            css=f"ink-{colour}",
            light=LIGHT[colour],
            dark=DARK[colour],
            shape=shapes[index % len(shapes)],
            dash=LONG_DASH if lap % 2 else SOLID,
        )
    for index, name in enumerate(sorted(name for name, control in editors if control)):
        found[name] = Ink(
            editor=name,
            control=True,
            css="ink-control",
            light=GREY[0],
            dark=GREY[1],
            shape=shapes[index % len(shapes)],
            dash=CONTROL_DASHES[index % len(CONTROL_DASHES)],
        )
    return found


def part_colours(parts: Sequence[str], order: Sequence[str]) -> dict[str, Any]:
    """The colours of some parts in both themes, the same whichever of the others are there.

    Args:
        parts: The parts to draw.
        order: All that there may be.
    """
    known = [part for part in order if part not in REMAINDERS]
    places = []
    for part in parts:
        spare = len(known) + list(parts).index(part)
        place = known.index(part) if part in known else spare
        places.append(len(PARTS_LIGHT) - 1 if part in REMAINDERS else place % len(PARTS_LIGHT))
    return {
        "light": tuple(PARTS_LIGHT[place] for place in places),
        "dark": tuple(PARTS_DARK[place] for place in places),
    }
