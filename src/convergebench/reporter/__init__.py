"""The HTML report of a run: one folder that renders Findings and needs nothing else."""

from __future__ import annotations

from convergebench.reporter.build import Report, report

__all__ = ["Report", "report"]
