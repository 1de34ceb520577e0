"""Writes a plug-in package by hand: a dist-info folder with entry points, as pip would."""

from __future__ import annotations

from pathlib import Path

EDITORS = {
    "counting": "tests.support.editors:counting",
    "polling": "tests.support.editors:polling",
    "scripted": "tests.support.editors:scripted",
    "shop": "tests.support.shop:shop",
    "spread": "tests.support.editors:spread",
}
METRICS = {
    "apart-metric": "tests.support.metrics:apart",
    "counting-metric": "tests.support.metrics:counting",
    "deadly-metric": "tests.support.metrics:deadly",
    "elsewhere-metric": "tests.support.metrics:elsewhere",
    "faulty-metric": "tests.support.metrics:faulty",
    "greedy-metric": "tests.support.metrics:greedy",
    "leaky-metric": "tests.support.metrics:leaky",
    "noisy-metric": "tests.support.metrics:noisy",
    "patient-metric": "tests.support.metrics:patient",
    "poisoned-metric": "tests.support.metrics:poisoned",
    "together-metric": "tests.support.metrics:in_fours",
    "told-metric": "tests.support.metrics:told",
    "unavailable-metric": "tests.support.metrics:unavailable",
}


def install(place: Path, name: str, groups: dict[str, dict[str, str]]) -> Path:
    """Write `name`'s dist-info with entry points into a folder for sys.path."""
    info = place / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, entries in groups.items():
        lines.append(f"[convergebench.{group}]")
        lines += [f"{entry} = {target}" for entry, target in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return place


def install_test_plugin(place: Path) -> Path:
    """The plug-in of this folder."""
    return install(place, "cbtest", {"editors": EDITORS, "metrics": METRICS})
