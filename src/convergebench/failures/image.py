"""Image level: what goes wrong with the picture as a whole."""

from __future__ import annotations

from typing import Final

from convergebench.failures import orientation, shape, surface, tone
from convergebench.failures.detector import Detector

DETECTORS: Final[tuple[Detector, ...]] = (
    *shape.DETECTORS,
    *orientation.DETECTORS,
    *tone.DETECTORS,
    *surface.DETECTORS,
)
"""In the order of the taxonomy: shape, orientation, colour, surface."""
