"""The page of the restoration study: tables, prompts, stability, trade-off, and pictures."""

from __future__ import annotations

from convergebench.reporter.restoration.page import PAGE, write_restoration
from convergebench.reporter.restoration.shots import Shot, shots_of

__all__ = ["PAGE", "Shot", "shots_of", "write_restoration"]
