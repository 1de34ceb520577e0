"""A run as a dataset that can be published: pictures, metadata, scores, a card, checksums."""

from __future__ import annotations

from convergebench.dataset.exporting import export
from convergebench.dataset.patches import Patches
from convergebench.dataset.result import Exported

__all__ = ["Exported", "Patches", "export"]
