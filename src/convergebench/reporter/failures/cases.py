"""The evidence: for each detector and editor the first frame that failed, and the worst ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from convergebench.chain import Chain, FrameRef
from convergebench.cycle import Box, Home
from convergebench.failures import Detector, Failures
from convergebench.reporter.palette import Ink
from convergebench.reporter.pictures import Picture
from convergebench.store import RunStore

if TYPE_CHECKING:
    import polars as pl

WORST: Final = 2
"""Worst frames of each editor, from different chains, beside the first that failed."""
BEFORE: Final = frozenset(("replacement", "fixed-point"))
"""Detectors that are about a frame and the one before it."""


@dataclass(frozen=True)
class Shot:
    """A picture of a case: the frame, or what it is shown beside."""

    ref: FrameRef | None
    called: str
    style: str = ""
    """CSS that shows the source as home should look: mirrored, turned, grey."""

    @property
    def ratio(self) -> str:
        """Width to height, as CSS has it."""
        return f"{self.ref.width} / {self.ref.height}" if self.ref and self.ref.width else "1"


@dataclass(frozen=True)
class Case:
    """One failed frame."""

    ink: Ink
    kind: str
    source: str
    cycle: str
    settings: str
    step: int
    value: str
    detail: str
    box: Box | None
    frame: Shot
    beside: Shot
    link: str


@dataclass(frozen=True)
class Gallery:
    """What cases are made of.

    Attributes:
        found: What the detectors saw.
        store: The run.
        chains: Its chains by name.
        inks: How editors are drawn.
        folder: Where the page goes.
        report: Where the run's report is, as seen from there; None where it is not.
    """

    found: Failures
    store: RunStore
    chains: Mapping[str, Chain]
    inks: Mapping[str, Ink]
    folder: Path
    report: str | None

    def cases(self, detector: Detector) -> list[Case]:
        """The cases of a detector: models before controls; of each the first, then the worst."""
        import polars as pl

        rows = self.found.rows.filter((pl.col("detector") == detector.name) & pl.col("failed"))
        rows = rows.filter(pl.col("chain").is_in(list(self.chains)))
        editors = sorted(set(rows["editor"].to_list()), key=lambda e: (self.inks[e].control, e))
        return [
            self._case(row, kind, detector)
            for editor in editors
            for row, kind in _chosen(rows.filter(pl.col("editor") == editor), detector)
        ]

    def _case(self, row: Mapping[str, Any], kind: str, detector: Detector) -> Case:
        chain, step, source = self.chains[row["chain"]], row["step"], row["source"]
        home = self.store.suite.cycle_of(chain.key.cycle).home(step)
        edges = tuple(row[edge] for edge in ("x0", "y0", "x1", "y1"))
        return Case(
            ink=self.inks[row["editor"]],
            kind=kind,
            source=source,
            cycle=chain.key.cycle.rpartition("@")[0] or chain.key.cycle,
            settings=row["settings"],
            step=step,
            value=_measured(row["value"], detector.unit),
            detail=row["detail"] or "",
            box=None if None in edges else (edges[0], edges[1], edges[2], edges[3]),
            frame=Shot(chain.held.get(step), f"step {step}"),
            beside=_beside(detector, chain, home, step),
            link=self._link(source, row["chain"], step),
        )

    def _link(self, source: str, chain: str, step: int) -> str:
        page = f"source-{source}.html"
        if self.report is None or not (self.folder / self.report / page).is_file():
            return ""
        return f"{self.report}{page}#{quote(chain)}/{step}/difference"


def _measured(value: float, unit: str) -> str:
    """A value with its unit: `1 hue`, `−2.5 levels`."""
    noun = unit.removesuffix("s") if value == 1 and unit in ("hues", "objects") else unit
    return f"{value:.3g} {noun}".strip().replace("-", "−")


def _chosen(rows: pl.DataFrame, detector: Detector) -> list[tuple[dict[str, Any], str]]:
    first = rows.sort("step", "chain").row(0, named=True)
    chosen = [(first, "first")]
    known: set[str] = set()
    worst = rows.sort("value", "step", "chain", descending=[detector.higher_fails, False, False])
    for row in worst.iter_rows(named=True):
        if len(chosen) > WORST:
            break
        same = (row["chain"], row["step"]) == (first["chain"], first["step"])
        if row["chain"] not in known and not same:
            chosen.append((row, "worst"))
            known.add(row["chain"])
    return chosen


def _beside(detector: Detector, chain: Chain, home: Home | None, step: int) -> Shot:
    """What the frame is shown beside: the frame before, home, or the source where none is known."""
    if detector.name in BEFORE:
        return Shot(chain.held.get(step - 1), f"step {step - 1}" if step > 1 else "source")
    if home is None:
        return Shot(chain.source, "source")
    turns = []
    if home.quarters % 4:
        turns.append(f"rotate({90 * (home.quarters % 4)}deg)")
    if home.flip:
        turns.append("scaleX(-1)" if home.flip == "horizontal" else "scaleY(-1)")
    style = f"transform: {' '.join(turns)};" if turns else ""
    style += " filter: grayscale(1);" if home.grey else ""
    of = chain.truth if home.of == "truth" else chain.source
    return Shot(of, "home", style.strip())


def frames_of(cases: Sequence[Case], store: RunStore) -> list[tuple[FrameRef, RunStore]]:
    """The pictures that cases show, and the run that has them."""
    refs = [shot.ref for case in cases for shot in (case.frame, case.beside) if shot.ref]
    return [(ref, store) for ref in refs]


def picture_of(shot: Shot, pictures: Mapping[str, Picture]) -> Picture | None:
    """The picture of a shot, where it could be had."""
    return pictures.get(shot.ref.sha256) if shot.ref else None
