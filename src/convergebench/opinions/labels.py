"""Yes-or-no labels, infidelity and over-generation: how many, by whom, and who agrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from convergebench.opinions.answers import LABELS
from convergebench.opinions.matrix import matrix_of
from convergebench.opinions.reliability import fleiss_kappa, krippendorff_alpha

MAJORITY: Final = 0.5
"""A stimulus is a case where more than this share of its raters says yes."""


@dataclass(frozen=True)
class LabelCount:
    """One label of one method: stimuli seen, cases by majority and by anybody, single votes."""

    label: str
    method: str
    stimuli: int
    cases: int
    split: int
    ever: int
    yes: int
    votes: int

    @property
    def share(self) -> float | None:
        """Share of yes among all votes."""
        return self.yes / self.votes if self.votes else None


@dataclass(frozen=True)
class LabelAgreement:
    """How far raters agree on a label: Krippendorff's α (nominal), Fleiss' κ, and plain share."""

    label: str
    alpha: float | None
    kappa: float | None
    same: float | None
    stimuli: int
    raters: int
    note: str = ""


def label_counts(answers: pl.DataFrame) -> tuple[LabelCount, ...]:
    """Counts by label and method. Half and half is no case, and counted as `split`."""
    found = []
    for label in LABELS:
        matrix = matrix_of(answers, label)
        for method in matrix.method_names() or ("",):
            rows = matrix.values[[at for at, m in enumerate(matrix.methods) if m == method]]
            if not rows.size:
                continue
            yes = np.nansum(rows > 0.5, axis=1)
            votes = (~np.isnan(rows)).sum(axis=1)
            found.append(
                LabelCount(
                    label, method, len(rows),
                    cases=int(np.sum(yes > MAJORITY * votes)),
                    split=int(np.sum((yes == MAJORITY * votes) & (votes > 0))),
                    ever=int(np.sum(yes > 0)),
                    yes=int(yes.sum()),
                    votes=int(votes.sum()),
                )
            )  # fmt: skip
    return tuple(found)


def label_agreement(answers: pl.DataFrame) -> tuple[LabelAgreement, ...]:
    """Agreement by label."""
    found = []
    for label in LABELS:
        matrix = matrix_of(answers, label)
        if not matrix.stimuli:
            continue
        alpha = krippendorff_alpha(matrix.values, "nominal")
        found.append(
            LabelAgreement(
                label, alpha, fleiss_kappa(matrix.values), _same(matrix.values),
                len(matrix.stimuli), len(matrix.raters),
                "" if alpha is not None else "all answers are the same, or none was shared",
            )
        )  # fmt: skip
    return tuple(found)


def _same(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float | None:
    """Share of pairs of raters of one stimulus that say the same."""
    yes = np.nansum(values > 0.5, axis=1)
    votes = (~np.isnan(values)).sum(axis=1)
    no = votes - yes
    pairs = votes * (votes - 1) / 2
    same = yes * (yes - 1) / 2 + no * (no - 1) / 2
    return float(same.sum() / pairs.sum()) if pairs.sum() else None
