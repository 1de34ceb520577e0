"""The page of ratings: what people say, how far they agree, and which metrics say the same."""

from __future__ import annotations

from convergebench.reporter.opinions.page import PAGE, write_ratings

__all__ = ["PAGE", "write_ratings"]
