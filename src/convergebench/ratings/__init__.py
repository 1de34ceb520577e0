"""The rating app: studies that people answer in a web page."""

from __future__ import annotations

from convergebench.ratings.study import Study, is_study, open_study

__all__ = ["Study", "is_study", "open_study"]
