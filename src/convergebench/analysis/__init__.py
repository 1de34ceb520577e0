"""From score rows to findings: pure functions over tables, and `analyze` for a whole run."""

from __future__ import annotations

from convergebench.analysis.compare import Ranked, rank
from convergebench.analysis.contraction import (
    contraction_factor,
    contractions,
    homecoming_distances,
)
from convergebench.analysis.convergence import convergence, floors, half_life
from convergebench.analysis.drift import drift_parts
from convergebench.analysis.findings import Finding, Findings, Standing
from convergebench.analysis.inert import inert_editors
from convergebench.analysis.pairs import Pair, compare_pairs
from convergebench.analysis.regions import forward_effects, region_changes
from convergebench.analysis.resampling import bootstrap_mean, mean_interval
from convergebench.analysis.roster import home_scores
from convergebench.analysis.roundtrip import analyze
from convergebench.analysis.shape import curve_shapes, shape_of
from convergebench.analysis.study import Study, study
from convergebench.analysis.summaries import chain_summaries
from convergebench.analysis.survival import Survival, survival

__all__ = [
    "Finding",
    "Findings",
    "Pair",
    "Ranked",
    "Standing",
    "Study",
    "Survival",
    "analyze",
    "bootstrap_mean",
    "chain_summaries",
    "compare_pairs",
    "contraction_factor",
    "contractions",
    "convergence",
    "curve_shapes",
    "drift_parts",
    "floors",
    "forward_effects",
    "half_life",
    "home_scores",
    "homecoming_distances",
    "inert_editors",
    "mean_interval",
    "rank",
    "region_changes",
    "shape_of",
    "study",
    "survival",
]
