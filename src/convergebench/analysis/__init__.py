"""From score rows to findings: pure functions over tables, and `analyze` for a whole run."""

from __future__ import annotations

from convergebench.analysis.compare import Ranked, bootstrap_mean, rank
from convergebench.analysis.convergence import convergence, floors, half_life
from convergebench.analysis.findings import Finding, Findings, Standing
from convergebench.analysis.inert import inert_editors
from convergebench.analysis.roster import home_scores
from convergebench.analysis.roundtrip import analyze
from convergebench.analysis.summaries import chain_summaries
from convergebench.analysis.survival import Survival, survival

__all__ = [
    "Finding",
    "Findings",
    "Ranked",
    "Standing",
    "Survival",
    "analyze",
    "bootstrap_mean",
    "chain_summaries",
    "convergence",
    "floors",
    "half_life",
    "home_scores",
    "inert_editors",
    "rank",
    "survival",
]
