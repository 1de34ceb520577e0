"""What was found: every sighting, and failure rates by editor and step band."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from convergebench.failures.catalogue import ErrorRate, error_rates
from convergebench.failures.detector import Detector
from convergebench.remote.address import Place
from convergebench.table import Table
from convergebench.wording import counted

if TYPE_CHECKING:
    import polars as pl

BANDS: Final = ((1, 1), (2, 5), (6, 10), (11, 20), (21, 50), (51, 100))
"""Steps that are counted together; what lies beyond is a band of its own."""
BEYOND: Final = f">{BANDS[-1][1]}"
BAND_NAMES: Final = (*(f"{a}–{b}" if a < b else f"{a}" for a, b in BANDS), BEYOND)
SHOWN_REASONS: Final = 5

ROW_COLUMNS: Final = {
    "chain": "String",
    "editor": "String",
    "source": "String",
    "cycle": "String",
    "settings": "String",
    "repeat": "Int32",
    "step": "Int32",
    "detector": "String",
    "version": "String",
    "level": "String",
    "value": "Float64",
    "failed": "Boolean",
    "detail": "String",
    "x0": "Float64",
    "y0": "Float64",
    "x1": "Float64",
    "y1": "Float64",
    "more": "String",
}
"""Columns of `failures/rows.parquet`, in order; chain, step and detector are the key."""


def band_of(step: int) -> str:
    """The name of the band that a step is in."""
    for (first, last), name in zip(BANDS, BAND_NAMES, strict=False):
        if first <= step <= last:
            return name
    return BEYOND


def share(failed: int, frames: int) -> str:
    """A rate with what it is made of: `3/20 (15 %)`; empty where nothing was looked at."""
    return f"{failed}/{frames} ({100 * failed / frames:.0f} %)" if frames else ""


@dataclass
class Failures:
    """What the detectors saw in a run.

    Attributes:
        path: The run directory.
        rows: One row for each frame and detector that applies to it (`ROW_COLUMNS`), and whether
            the editor is a control; `failed` is null where nothing could be measured, and `detail`
            says why.
        detectors: Those that were asked for, in the taxonomy's order.
        new: Rows computed now.
        known: Rows computed before.
        decoded: Pictures decoded now.
        left_out: Detectors that apply to no frame here, with the reason.
        problems: What went wrong.
    """

    path: Place
    rows: pl.DataFrame
    detectors: tuple[Detector, ...]
    new: int = 0
    known: int = 0
    decoded: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def error_rates(self) -> dict[str, ErrorRate]:
        """How often each detector was wrong on constructed cases."""
        known = error_rates()
        return {d.name: known[d.name] for d in self.detectors if d.name in known}

    @cached_property
    def rates(self) -> pl.DataFrame:
        """Failure rates by detector, editor and band.

        Columns: detector, level, editor, control, band, frames (measured ones), failed, rate, null
        (frames that could not be measured), chains.
        """
        import polars as pl

        order = {detector.name: n for n, detector in enumerate(self.detectors)}
        bands = {name: n for n, name in enumerate(BAND_NAMES)}
        steps = self.rows["step"].unique().to_list()
        named = pl.DataFrame(
            {"step": steps, "band": [band_of(step) for step in steps]},
            schema={"step": pl.Int32, "band": pl.String},
        )
        return (
            self.rows.join(named, on="step", how="left")
            .group_by("detector", "level", "editor", "control", "band")
            .agg(
                frames=pl.col("failed").is_not_null().sum().cast(pl.Int64),
                failed=pl.col("failed").sum().cast(pl.Int64),
                null=pl.col("failed").is_null().sum().cast(pl.Int64),
                chains=pl.col("chain").n_unique().cast(pl.Int64),
            )
            .with_columns(
                rate=pl.when(pl.col("frames") > 0).then(pl.col("failed") / pl.col("frames"))
            )
            .sort(
                pl.col("detector").replace_strict(order, return_dtype=pl.Int64),
                "control",
                "editor",
                pl.col("band").replace_strict(bands, return_dtype=pl.Int64),
            )
            .select(
                "detector", "level", "editor", "control", "band",
                "frames", "failed", "rate", "null", "chains",
            )
        )  # fmt: skip

    @property
    def bands(self) -> tuple[str, ...]:
        """The bands in which there are frames."""
        here = set(self.rates["band"].to_list())
        return tuple(name for name in BAND_NAMES if name in here)

    @cached_property
    def table(self) -> Table:
        """Failure rates: a line for each detector and editor, a column for each band of steps."""
        cells: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        for row in self.rates.iter_rows(named=True):
            name = f"{row['editor']} (control)" if row["control"] else row["editor"]
            cells.setdefault((row["detector"], name), {})[row["band"]] = (
                row["failed"],
                row["frames"],
            )
        rows = []
        for (detector, editor), found in cells.items():
            whole = (sum(f for f, _ in found.values()), sum(n for _, n in found.values()))
            shares = [share(*found.get(band, (0, 0))) for band in self.bands]
            rows.append((detector, editor, *shares, share(*whole)))
        frames = self.rows.select("chain", "step").unique().height
        title = (
            f"{self.path}: failures in {counted(frames, 'frame')}, "
            f"{self.new} new rows, {self.known} known before"
        )
        columns = ("detector", "editor", *(f"step {band}" for band in self.bands), "all")
        return Table(title, columns, rows, self._notes())

    def _notes(self) -> list[str]:
        facts = [detector.name for detector in self.detectors if not detector.defect]
        notes = ["Failed frames of those measured; steps count from 1."]
        notes += [f"{', '.join(facts)}: a fact worth counting, not a defect."] if facts else []
        nulls = self.rows.filter(self.rows["failed"].is_null())
        reasons = Counter(
            f"{d}: {why}" for d, why in nulls.select("detector", "detail").iter_rows()
        )
        notes += [f"not measured: {n} × {why}" for why, n in reasons.most_common(SHOWN_REASONS)]
        if len(reasons) > SHOWN_REASONS:
            more = counted(len(reasons) - SHOWN_REASONS, "more reason")
            notes.append(f"not measured: {more}; column `detail` of the rows has all")
        notes += [f"{name}: on no frame here, {why}" for name, why in self.left_out.items()]
        return notes + self.problems

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`; the rows themselves are in `failures/rows.parquet`."""
        return {
            "path": str(self.path),
            "new": self.new,
            "known": self.known,
            "frames_decoded": self.decoded,
            "left_out": self.left_out,
            "problems": self.problems,
            "detectors": cards(self.detectors),
            "rates": self.rates.to_dicts(),
        }


@dataclass(frozen=True)
class Listing:
    """Detectors with their definitions, thresholds and measured error rates."""

    detectors: tuple[Detector, ...]

    @property
    def table(self) -> Table:
        """A line for each detector."""
        known = error_rates()
        rows = []
        for detector in self.detectors:
            rate = known.get(detector.name)
            precision, recall = (rate.precision, rate.recall) if rate else (None, None)
            cells = (detector.name, detector.level, detector.rule)
            rows.append((*cells, _percent(precision), _percent(recall)))
        columns = ("detector", "level", "fails when", "precision", "recall")
        notes = [
            "Precision and recall on constructed cases (python -m benchmarks.failures); – where "
            "nothing was measured.",
            *(f"{detector.name}: {detector.definition}" for detector in self.detectors),
        ]
        return Table(counted(len(rows), "detector"), columns, rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"detectors": cards(self.detectors)}


def cards(detectors: tuple[Detector, ...]) -> list[dict[str, Any]]:
    """Every detector's card with its measured error rate."""
    known = error_rates()
    return [
        detector.to_dict()
        | {"error_rate": known[detector.name].model_dump() if detector.name in known else None}
        for detector in detectors
    ]


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.1f} %"
