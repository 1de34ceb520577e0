"""Bringing what is already there: images, scores and tables of others, as runs of ours."""

from __future__ import annotations

from convergebench.importer.found import Finds, Layout, Look, Place, Track, Wishes
from convergebench.importer.importing import import_run, layouts
from convergebench.importer.result import ImportResult

__all__ = [
    "Finds",
    "ImportResult",
    "Layout",
    "Look",
    "Place",
    "Track",
    "Wishes",
    "import_run",
    "layouts",
]
