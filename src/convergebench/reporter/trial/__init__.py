"""The page of a trial of metrics: verdict, heat maps, trajectories, trust cards."""

from __future__ import annotations

from convergebench.reporter.trial.page import write_trial

__all__ = ["write_trial"]
