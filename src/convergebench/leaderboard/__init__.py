"""Leaderboards: submissions that anyone can recompute, merged into a static site."""

from __future__ import annotations

from convergebench.leaderboard.packing import Checked, check, pack
from convergebench.leaderboard.site import Site, build
from convergebench.leaderboard.submission import Submission, schema

__all__ = ["Checked", "Site", "Submission", "build", "check", "pack", "schema"]
