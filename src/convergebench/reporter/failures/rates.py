"""Failure rates as the page has them: table rows and small curves, by detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from convergebench.failures import Detector, ErrorRate, Failures
from convergebench.reporter.palette import Ink

if TYPE_CHECKING:
    import polars as pl

LEVELS: Final = {
    "image": "The whole picture",
    "object": "Objects",
    "sub-object": "Parts of objects",
}
"""What the levels of the taxonomy are called, in its order."""

WIDE: Final = 300
HIGH: Final = 96
"""Of the plot of a small chart, in units of its drawing."""


@dataclass(frozen=True)
class Cell:
    """A rate: failed frames of those measured, and frames that could not be."""

    failed: int
    frames: int
    null: int = 0

    @property
    def rate(self) -> float | None:
        """The share that failed; None where nothing was measured."""
        return self.failed / self.frames if self.frames else None

    @property
    def percent(self) -> str:
        """As printed: nothing is rounded to 0 or 100 that is not."""
        if self.rate is None:
            return "–"
        if 0 < self.rate < 0.005:
            return "< 1 %"
        return "> 99 %" if 0.995 < self.rate < 1 else f"{100 * self.rate:.0f} %"

    def plus(self, other: Cell) -> Cell:
        """Both together."""
        return Cell(self.failed + other.failed, self.frames + other.frames, self.null + other.null)


@dataclass(frozen=True)
class Line:
    """One editor in a detector's table."""

    ink: Ink
    cells: tuple[Cell | None, ...]
    whole: Cell


@dataclass(frozen=True)
class Point:
    """One step of a curve."""

    x: float
    y: float
    told: str


@dataclass(frozen=True)
class Curve:
    """One editor's rate against the step."""

    ink: Ink
    points: tuple[Point, ...]

    @property
    def path(self) -> str:
        """As SVG has it."""
        return "M" + "L".join(f"{p.x:.1f} {p.y:.1f}" for p in self.points)


@dataclass(frozen=True)
class Chart:
    """The curves of a detector.

    Attributes:
        curves: One for each editor that was measured, controls first, so that they lie below.
        ticks: Steps to print under it, with their place.
        wide: Its width.
        high: Its height.
    """

    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, int], ...]
    wide: int = WIDE
    high: int = HIGH


@dataclass(frozen=True)
class Part:
    """A detector with everything that is told of it.

    Attributes:
        detector: The detector.
        measured: Its error rate on constructed cases, where there is one.
        lines: A line for each editor.
        chart: Its curves; None where nothing was measured.
        why: Why it applies to no frame here, where it does not.
    """

    detector: Detector
    measured: ErrorRate | None
    lines: tuple[Line, ...]
    chart: Chart | None
    why: str = ""

    @property
    def fails(self) -> str:
        """When it fails, in words."""
        side = "above" if self.detector.higher_fails else "below"
        return f"fails {side} {self.detector.threshold:g} {self.detector.unit}".strip()

    @property
    def failed(self) -> int:
        """Failed frames of all editors."""
        return sum(line.whole.failed for line in self.lines)


def parts_of(found: Failures, inks: Mapping[str, Ink]) -> list[Part]:
    """Every detector that was asked for, in the taxonomy's order."""
    measured = found.error_rates
    cells: dict[str, dict[str, dict[str, Cell]]] = {}
    for row in found.rates.iter_rows(named=True):
        cell = Cell(row["failed"], row["frames"], row["null"])
        cells.setdefault(row["detector"], {}).setdefault(row["editor"], {})[row["band"]] = cell
    parts = []
    for detector in found.detectors:
        lines = []
        for name, bands in cells.get(detector.name, {}).items():
            whole = Cell(0, 0)
            for cell in bands.values():
                whole = whole.plus(cell)
            lines.append(Line(inks[name], tuple(bands.get(b) for b in found.bands), whole))
        mine = found.rows.filter(found.rows["detector"] == detector.name)
        parts.append(
            Part(
                detector,
                measured.get(detector.name),
                tuple(lines),
                _chart(mine, inks),
                found.left_out.get(detector.name, "") if not lines else "",
            )
        )
    return parts


def _chart(rows: pl.DataFrame, inks: Mapping[str, Ink]) -> Chart | None:
    import polars as pl

    rates = (
        rows.filter(pl.col("failed").is_not_null())
        .group_by("editor", "step")
        .agg(failed=pl.col("failed").sum(), frames=pl.len())
        .sort("editor", "step")
    )
    if rates.is_empty():
        return None
    last = int(rates["step"].to_numpy().max())
    first = 0 if last > 1 else 1

    def place(step: int) -> float:
        return WIDE * (step - first) / max(1, last - first)

    points: dict[str, list[Point]] = {}
    for editor, step, failed, frames in rates.iter_rows():
        share = failed / frames
        told = f"{editor}, step {step}: {failed} of {frames} failed"
        points.setdefault(editor, []).append(Point(place(step), HIGH * (1 - share), told))
    curves = [Curve(inks[editor], tuple(each)) for editor, each in points.items()]
    curves.sort(key=lambda curve: not curve.ink.control)
    return Chart(tuple(curves), tuple((place(step), step) for step in _ticks(last)))


def _ticks(last: int) -> Sequence[int]:
    """Some five whole steps up to the last."""
    sizes = (size * 10**power for power in range(6) for size in (1, 2, 5))
    gap = next(size for size in sizes if last <= 6 * size)
    return [step for step in range(0, last + 1, gap) if step or last == 1] or [last]
