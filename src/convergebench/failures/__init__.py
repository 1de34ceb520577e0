"""The failure taxonomy: what goes wrong with whole pictures, with objects, with parts of them.

    from convergebench import failures
    found = failures.find("my-run")

Each detector has a definition, a threshold, and error rates measured on cases whose answer is
known. After the failure modes of the Banana100 paper, section 3.
"""

from __future__ import annotations

from typing import Any

from convergebench.failures.catalogue import ErrorRate, chosen, error_rates
from convergebench.failures.detector import Detector, Level, Sighting
from convergebench.failures.finding import find, stored
from convergebench.failures.result import BANDS, Failures, Listing, band_of
from convergebench.failures.situation import Situation, constructed

__all__ = [
    "BANDS",
    "DETECTORS",
    "Detector",
    "ErrorRate",
    "Failures",
    "Level",
    "Listing",
    "Sighting",
    "Situation",
    "band_of",
    "chosen",
    "constructed",
    "error_rates",
    "find",
    "stored",
]

DETECTORS: tuple[Detector, ...]
"""Every detector; composed when first asked for, because the modules bring OpenCV along."""


def __getattr__(name: str) -> Any:
    if name == "DETECTORS":
        from convergebench.failures.catalogue import every

        return every()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
