"""All detectors by name, and how often each was wrong on cases with known answers."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

from convergebench.cycle import Record
from convergebench.errors import UnknownName
from convergebench.failures.detector import Detector

RATES: Final = "error_rates.toml"


class ErrorRate(Record):
    """How often a detector was wrong on constructed cases (`python -m benchmarks.failures`)."""

    positives: int
    negatives: int
    true_positive: int
    false_positive: int
    precision: float | None = None
    recall: float | None = None
    date: str
    command: str


@cache
def every() -> tuple[Detector, ...]:
    """Every detector: of the whole picture, of objects, of parts of them."""
    from convergebench.failures import image, objects, parts

    found = (*image.DETECTORS, *objects.DETECTORS, *parts.DETECTORS)
    names = [detector.name for detector in found]
    if len(set(names)) < len(names):
        raise ValueError(f"two detectors have one name: {sorted(names)}")
    return found


def chosen(names: Sequence[str] | None) -> tuple[Detector, ...]:
    """The detectors of these names, in the taxonomy's order; all by default.

    Raises:
        UnknownName: There is none of that name.
    """
    if not names:
        return every()
    known = {detector.name: detector for detector in every()}
    for name in names:
        if name not in known:
            raise UnknownName(
                "detector", name, known, "`convergebench failures --list` shows them all."
            )
    return tuple(detector for detector in every() if detector.name in names)


@cache
def error_rates() -> dict[str, ErrorRate]:
    """The measured error rates, by detector; not every detector need have one."""
    file = resources.files("convergebench.failures") / RATES
    if not file.is_file():
        return {}
    told = tomllib.loads(file.read_text("utf-8"))
    return {name: ErrorRate.model_validate(rate) for name, rate in told.items()}
