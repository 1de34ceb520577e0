"""The demonstration: the real main job on what is in the box."""

from __future__ import annotations

import os
from typing import Any, Final

from convergebench.reporter import Report, report
from convergebench.runner import run
from convergebench.scorer import score

SPEC: Final[dict[str, Any]] = {
    "suite": "starter",
    "editors": [
        "ref:identity",
        "ref:jpeg",
        "ref:latent",
        "ref:banana",
        "ref:wrinkle",
        "ref:painter",
        "ref:inert",
    ],
    "sources": [
        "portrait",
        "still-life",
        "table",
        "text",
        "foliage",
        "dunes",
        "grid",
        "fog",
        "fabric",
        "character",
    ],
    "cycles": ["replicate", "add-ball"],
    "rounds": 5,
    "size": 256,
}
"""What the demonstration runs: reference editors and the controls, on ten drawn sources:
with fewer, no two of the editors could be told apart."""


def demo(directory: str | os.PathLike[str] = "demo-run") -> Report:
    """Run, score and report the starter suite with reference editors; resumes like any run."""
    run(directory, SPEC)
    score(directory)
    return report(directory)
