"""Where the variance of AUC comes from: source images, edits, repeats, the rest.

A chain's AUC is taken as a sum of chance effects: its source's, its cycle's, that of both together
(with the settings), and what differs between repeats of the same chain. The variances of these are
had from sums of squares by Henderson's first method, the analysis of variance for data that need
not be balanced; it asks for no normal distribution. An estimate may fall below 0, as any unbiased
one of something near 0 must; then it is set to 0, and said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from convergebench.analysis.findings import Finding
from convergebench.analysis.study import Study
from convergebench.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

PARTS: Final = ("source", "edit", "repeat", "rest")
FEWEST: Final = 6
"""Chains; with fewer, shares are noise."""

LEAST: Final = 1e-12
"""Variance; what varies less is alike but for rounding, and has no parts."""


@dataclass(frozen=True)
class Components:
    """Variances by part, those below 0 already set to 0, and which these were."""

    variance: dict[str, float]
    below_zero: tuple[str, ...]

    @property
    def total(self) -> float:
        """Of all parts."""
        return sum(self.variance.values())


def components(values: Array, source: Codes, edit: Codes, cell: Codes) -> Components | None:
    """The variance of source, edit, repeat and rest; None where they cannot be told apart.

    Without repeats of a chain, they are part of the rest; with one edit only, there is none of
    edits. Values that are alike but for rounding have a variance of 0 in every part.

    Args:
        values: One per chain.
        source: The number of its source.
        edit: That of its cycle.
        cell: That of its source, cycle and settings together: repeats share it.
    """
    levels = {name: len(np.unique(codes)) for name, codes in (("source", source), ("edit", edit))}
    factors = {"source": source, "edit": edit}
    factors = {name: codes for name, codes in factors.items() if levels[name] > 1}
    cells = len(np.unique(cell))
    repeated = cells < len(cell)
    if repeated and cells > max(levels.values()):
        factors["rest"] = cell
    every = {**factors, "repeat" if repeated else "rest": np.arange(len(values))}
    # Sums of squares of the levels' means are, on average, these sums of variances.
    values = values - values.mean()  # squares of large means leave nothing but rounding
    rows, squares = [], []
    for codes in (np.zeros(len(values), dtype=np.int64), *every.values()):
        sizes = np.bincount(codes)
        sums = np.bincount(codes, weights=values)
        squares.append(float(np.sum(sums[sizes > 0] ** 2 / sizes[sizes > 0])))
        rows.append([float(len(values)), *(_overlap(codes, other) for other in every.values())])
    matrix = np.array(rows)
    if np.linalg.matrix_rank(matrix, tol=1e-9 * len(values)) < len(every) + 1:
        return None
    spread = float(np.var(values))
    if spread < LEAST:
        return Components(dict.fromkeys(every, 0.0), ())
    solved = np.linalg.solve(matrix, np.array(squares))[1:]
    # Numbers like 1e-17 are arithmetic.
    noise = 1e-12 * spread
    found = dict(zip(every, solved.tolist(), strict=True))
    return Components(
        {name: max(value, 0.0) for name, value in found.items()},
        tuple(name for name, value in found.items() if value < -noise),
    )


def _overlap(codes: Codes, other: Codes) -> float:
    """How much of another factor's variance the sum of squares of one holds."""
    pairs, counts = np.unique(np.stack([codes, other]), axis=1, return_counts=True)
    return float(np.sum(counts**2 / np.bincount(codes)[pairs[0]]))


def variance_findings(main: Study) -> list[Finding]:
    """Shares of the variance of AUC, by metric and editor, over its complete chains."""
    plans = main.planned(main.summaries)
    whole = main.summaries.filter(pl.col("auc").is_not_null()).sort("metric", "editor", "chain")
    found: list[Finding] = []
    for (metric, editor), mine in whole.partition_by(
        "metric", "editor", as_dict=True, maintain_order=True
    ).items():
        plan = plans.get((str(metric), str(editor)))
        if len(mine) < FEWEST or plan is None:
            continue
        split = components(
            mine["auc"].to_numpy(),
            *(
                mine.select(pl.struct(names).rank("dense"))[names[0]].to_numpy().astype(np.int64)
                for names in (["source"], ["cycle"], ["source", "cycle", "settings"])
            ),
        )
        if split is None:
            continue
        found += [
            Finding(
                id=f"variance/{metric}/{part}/{editor}",
                estimate=split.variance[part] / split.total if split.total else None,
                n=len(mine),
                missing=plan.chains - len(mine),
                failed=plan.failed,
                refused=plan.refused,
                note=_note(part, split, mine),
                metric=str(metric),
                editor=str(editor),
                group=part,
            )
            for part in PARTS
            if part in split.variance
        ]
    return found


def _note(part: str, split: Components, mine: pl.DataFrame) -> str:
    if not split.total:
        return f"no shares: AUC does not vary (standard deviation below {LEAST**0.5:g})"
    words = [f"standard deviation {split.variance[part] ** 0.5:.4f}"]
    if part in split.below_zero:
        words.append("estimated below 0, set to 0")
    if part == "source":
        words.append(counted(mine["source"].n_unique(), "source"))
    if part == "edit":
        words.append(counted(mine["cycle"].n_unique(), "cycle"))
    if part == "rest":
        words.append("source with edit" + (", repeats" if "repeat" not in split.variance else ""))
    return ", ".join(words)
