"""What people say: statistics of ratings, from answers to opinions."""

from __future__ import annotations

from convergebench.opinions.analysing import agreement, analyse
from convergebench.opinions.answers import SCHEMA, read_answers
from convergebench.opinions.result import Opinions

__all__ = ["SCHEMA", "Opinions", "agreement", "analyse", "read_answers"]
