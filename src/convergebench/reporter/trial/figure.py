"""What the trial's figures share: small multiples, and the colours of success and failure.

A failing cell is blue, as in the paper, and in print without colours always darker than one that
succeeds; in the dark theme always brighter. What is missing is hatched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

import altair as alt
from altair.utils.schemapi import debug_mode

from convergebench.reporter import charts
from convergebench.reporter.charts import Drawing
from convergebench.reporter.charts.drawing import DATA, PAPER

FAILING: Final = (
    ("#b4d2ea", "#6aaed6", "#2070b4", "#083370"),
    ("#2a5d8c", "#3f86c4", "#74b7ee", "#cbe6ff"),
)
"""From a gap of zero to the greatest; on white paper and in the dark."""

CALM: Final = (("#f1dcc9", "#f9f3ec"), ("#4a3b30", "#2b2621"))
"""From the greatest fall to none."""

BLANK: Final = (("#eef0f2", "#a3a9b2"), ("#202329", "#5f656e"))
"""What is missing: ground and hatching."""

ON_DEEP: Final = ("#ffffff", "#0d1116")
ON_PALE: Final = ("#2b2f36", "#d5d9df")
"""Words on strong and on faint colours."""

HATCH: Final = "M-1,0L0,-1M-1,1L1,-1M0,1L1,0"
HOVER: Final = "hover"
"""Name of a layer without anything to see."""

LONGEST_SLUG: Final = 40


@dataclass(frozen=True)
class Fit:
    """How small multiples fill a page's width.

    Attributes:
        columns: At most so many side by side.
        least: Each at least so wide, in pixels.
        cells: Cells across each, where there are any: these are labelled if wide enough.
        beside: Labels to the left of the first column, whose width is to be left free.
    """

    columns: int
    least: int
    cells: int = 0
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure(Drawing):
    """A drawing of the trial, alone or as small multiples.

    Attributes:
        fit: How small multiples fill the width; None for a single chart.
        params: Values that the page may change, by name.
        most: The greatest number of failures of a cell.
        ends: Least and greatest value of trajectories, which layers without rows cannot tell.
    """

    fit: Fit | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    most: int = 0
    ends: tuple[float, float] | None = None

    @cached_property
    def _whole(self) -> dict[str, Any]:
        """The specification but for its data."""
        found = deepcopy(_compiled(self.build))
        params = [{"name": name, "value": value} for name, value in self.params.items()]
        if self.ends is not None:
            for layer in found["spec"]["layer"]:
                layer["encoding"]["y"]["scale"]["domain"] = list(self.ends)
        return {**found, "description": self.alt, "params": [*found.get("params", []), *params]}

    def specification(self, *, page: bool) -> dict[str, Any]:
        """The Vega-Lite specification; of small multiples the page tells the widths."""
        if page:
            if self.fit is None:
                return super().specification(page=True)
            return deepcopy(self._whole) | {"config": {}}
        found = super().specification(page=False)
        # Words for every mark would be nine tenths of a drawing, which has its own in the page.
        found["config"] = {**trial_theme(self.light, self.most, dark=False), **PAPER, "aria": False}
        _drop_hovers(found)
        return found


@lru_cache(maxsize=16)
def _compiled(build: Callable[[], Any]) -> dict[str, Any]:
    """What a builder makes; figures that differ in their data alone share one, which takes long."""
    with debug_mode(False):
        chart = build().properties(data=alt.NamedData(DATA))
        found: dict[str, Any] = chart.to_dict(validate=False)
    del found["$schema"]
    return found


def _drop_hovers(specification: dict[str, Any]) -> None:
    """Without what is there to be pointed at only."""
    inner = specification.get("spec", specification)
    inner["layer"] = [layer for layer in inner["layer"] if layer.get("name") != HOVER]


def trial_theme(categories: Sequence[str], most: int, *, dark: bool) -> dict[str, Any]:
    """The report's theme with the trial's colours."""
    base = charts.theme(categories, dark=dark)
    ground, hatching = BLANK[dark]
    base["range"] |= {"heatmap": list(FAILING[dark]), "ramp": list(CALM[dark])}
    base["range"]["ordinal"] = count_colours(most, dark=dark)
    base["style"] = {
        "on-deep": {"color": ON_DEEP[dark]},
        "on-pale": {"color": ON_PALE[dark]},
        "blank": {"color": ground},
        "hatch": {"color": hatching, "filled": False},
    }
    base["header"] |= {"labelFontSize": 12, "labelFontWeight": "bold"}
    return base


def count_colours(most: int, *, dark: bool) -> list[str]:
    """Colours of 0 to `most` failures: calm for none, then ever stronger blue."""
    blues = FAILING[dark]
    calm = _between(CALM[dark], 0.5)  # apart from the page itself, where nothing was tried
    if most <= 1:
        return [calm, blues[2]][: most + 1]
    places = [i * (len(blues) - 1) / (most - 1) for i in range(most)]
    return [calm, *(_between(blues, place) for place in places)]


def _between(colours: Sequence[str], place: float) -> str:
    low = min(int(place), len(colours) - 2)
    share = place - low
    ends = [[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in colours[low : low + 2]]
    mixed = [round(a + (b - a) * share) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{value:02x}" for value in mixed)


def slug(name: str) -> str:
    """A name as a part of a file's name: letters, digits and dashes only."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_SLUG].strip("-")


def named(kind: str, index: int, name: str) -> str:
    """A figure's name: what it is, which, and of whom in plain letters."""
    return "-".join(part for part in ("trial", kind, str(index + 1), slug(name)) if part)
