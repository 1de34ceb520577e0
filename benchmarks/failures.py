"""How often the failure detectors are wrong, on cases whose answer is known.

    python -m benchmarks.failures [--write] [--level image] [--detector NAME] [--photographs]

Positives and negatives are made from drawn sources, with a nuisance on top (little noise, JPEG,
slight blur, small colour shift). Thresholds were chosen on twelve sources; the rates are those of
five others, which nobody had looked at before (`failure_case.py`). What could not be measured
counts as not found. `--write` stores the rates where the package shows them.
With `--photographs`, and where the data folder is present, the same cases are made from photographs
and only printed. Mirrors and turns are also tried through noise of rising strength.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.failure_case import CHOOSING, MEASURING, Case, photographs, picture

from convergebench.failures import catalogue
from convergebench.failures.detector import Detector, Sighting
from convergebench.table import Table

LEVELS = {"image": "benchmarks.failure_cases_image", "object": "benchmarks.failure_cases_object"}
COMMAND = "python -m benchmarks.failures --write"
SIGMAS = (0, 30, 60, 100, 150, 250, 400)
Seen = tuple[Case, float | None, str]


def cases(levels: Iterable[str], sources: Sequence[str]) -> Iterator[Case]:
    """The cases of these levels, made from these sources."""
    for level in levels:
        yield from importlib.import_module(LEVELS[level]).cases(sources)


def looked_at(every: Iterable[Case], detectors: dict[str, Detector]) -> dict[str, list[Seen]]:
    """What each detector measured on its cases; None where it could not, with the reason."""
    found: dict[str, list[Seen]] = {name: [] for name in detectors}
    for case in every:
        if case.detector not in detectors:
            continue
        detector, situation = detectors[case.detector], case.make()
        if why := detector.applies(situation):
            raise ValueError(f"{case.detector} does not apply to its case {case.what!r}: {why}")
        seen = detector.look(situation)
        value = seen.value if isinstance(seen, Sighting) else None
        detail = seen.detail if isinstance(seen, Sighting) else seen.reason
        found[case.detector].append((case, value, detail))
    return found


def rated(detector: Detector, seen: Sequence[Seen]) -> dict[str, Any]:
    """Counts, precision and recall."""
    said = [(case.failed, value is not None and detector.failed(value)) for case, value, _ in seen]
    right = sum(truth and told for truth, told in said)
    wrong = sum(told and not truth for truth, told in said)
    positives = sum(truth for truth, _ in said)
    return {
        "positives": positives,
        "negatives": len(said) - positives,
        "true_positive": right,
        "false_positive": wrong,
        "precision": round(right / (right + wrong), 4) if right + wrong else None,
        "recall": round(right / positives, 4) if positives else None,
    }


def best_threshold(detector: Detector, seen: Sequence[Seen]) -> float | None:
    """Where recall less the share of false alarms is largest; the middle of the gap there."""
    sign = 1 if detector.higher_fails else -1
    rows = sorted((sign * v, case.failed) for case, v, _ in seen if v is not None)
    if not rows or len({failed for _, failed in rows}) < 2:
        return None
    values = np.array([value for value, _ in rows])
    truth = np.array([failed for _, failed in rows])
    cuts = np.unique(values)
    middle = (cuts[1:] + cuts[:-1]) / 2
    gain = [
        (truth & (values > cut)).sum() / truth.sum()
        - (~truth & (values > cut)).sum() / (~truth).sum()
        for cut in middle
    ]
    near = [cut for cut, g in zip(middle, gain, strict=True) if g >= max(gain) - 1e-9]
    return sign * float(near[len(near) // 2])


def table(title: str, detectors: dict[str, Detector], chosen: dict[str, list[Seen]],
          measured: dict[str, list[Seen]]) -> Table:  # fmt: skip
    """A line for each detector."""
    rows = []
    for name, detector in detectors.items():
        if not measured[name]:
            continue
        rate = rated(detector, measured[name])
        best = best_threshold(detector, chosen[name])
        rows.append(
            (
                name, detector.threshold, best, rate["positives"], rate["negatives"],
                rate["precision"], rate["recall"], rate["false_positive"],
                sum(value is None for _, value, _ in measured[name]),
            )
        )  # fmt: skip
    columns = (
        "detector", "threshold", "best on the others", "positives", "negatives", "precision",
        "recall", "false alarms", "not measured",
    )  # fmt: skip
    return Table(title, columns, rows)


def through_noise(sources: Sequence[str]) -> Table:
    """Which of the eight symmetries is recognised, by the strength of noise."""
    from benchmarks.failure_cases_image import MIRROR, SIZES, turned

    from convergebench.failures.geometry import SYMMETRIES, Views, compare
    from convergebench.failures.orientation import FITS, MARGIN

    rows = []
    for sigma in SIGMAS:
        right = told = wrong = tries = 0
        for source in sources:
            for size in SIZES:
                views = Views(picture(source, *size))
                for shown in SYMMETRIES:
                    made = turned(MIRROR, source, size, shown, 1, sigma, "jpeg")
                    seen = compare(made.frame, picture(source, *size), views)
                    sure = seen.confidence >= MARGIN and seen.scores[seen.best] >= FITS
                    tries += 1
                    right += seen.best == shown
                    told += seen.best == shown and sure
                    wrong += seen.best != shown and sure
        rows.append((sigma, tries, right / tries, told / tries, wrong / tries))
    columns = ("noise, levels", "frames", "recognised", "and sure", "wrong and sure")
    return Table("Which of the 8 symmetries, through noise", columns, rows)


def write(rates: dict[str, dict[str, Any]]) -> Path:
    """Store rates; those of detectors that were not measured now stay."""
    path = Path(catalogue.__file__).with_name(catalogue.RATES)
    catalogue.error_rates.cache_clear()  # somebody may have written meanwhile
    kept = {name: rate.model_dump() for name, rate in catalogue.error_rates().items()}
    known = [detector.name for detector in catalogue.every()]
    merged = {name: rate for name, rate in (kept | rates).items() if name in known}
    lines = [
        "# Written by `python -m benchmarks.failures --write`: how often each detector was wrong",
        "# on constructed cases of five sources that no threshold was chosen on. Do not edit.",
    ]
    for name in sorted(merged, key=known.index):
        lines.append(f"\n[{name}]")
        for key, value in merged[name].items():
            if value is not None:
                lines.append(f"{key} = {json.dumps(value)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def main() -> None:
    """Measure, print, and perhaps store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="store the rates in the package")
    parser.add_argument("--level", choices=list(LEVELS), help="only these cases")
    parser.add_argument("--detector", action="append", help="only this one; may be repeated")
    parser.add_argument("--photographs", action="store_true", help="measure on photographs, too")
    parser.add_argument("--errors", action="store_true", help="print every wrong answer")
    asked = parser.parse_args()
    levels = [asked.level] if asked.level else list(LEVELS)
    detectors = {detector.name: detector for detector in catalogue.chosen(asked.detector)}
    begun = time.monotonic()
    chosen = looked_at(cases(levels, CHOOSING), detectors)
    measured = looked_at(cases(levels, MEASURING), detectors)
    print(table(f"Measured on {', '.join(MEASURING)}", detectors, chosen, measured))
    if asked.errors:
        for name, detector in detectors.items():
            for case, value, detail in measured[name]:
                if case.failed != (value is not None and detector.failed(value)):
                    kind = "missed" if case.failed else "false alarm"
                    print(f"{name}: {kind}: {case.source}, {case.what}: {value} ({detail})")
    if measured.get("mirror-failure"):
        print(through_noise(MEASURING))
    if asked.write:
        stamp = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "command": COMMAND}
        rates = {
            name: rated(detector, measured[name]) | stamp
            for name, detector in detectors.items()
            if measured[name]
        }
        print(f"written: {write(rates)}")
    names = photographs() if asked.photographs else ()
    if names:
        real = looked_at(cases(levels, names), detectors)
        print(table(f"Measured on {len(names)} photographs", detectors, chosen, real))
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
