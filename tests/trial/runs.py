"""Small real runs that metrics are tried on."""

from __future__ import annotations

from pathlib import Path

from convergebench.runner import run
from convergebench.scorer import score
from tests.support.runs import CYCLES, write_suite

MORE = """
[[cycle]]
name = "more"
kind = "accumulate"
[[cycle.edit]]
prompt = "Add one more apple."
"""


def scored_run(folder: Path, *, steps: int = 5, repeats: int = 2, **settings: object) -> Path:
    """Two editors on two sources, real frames, scored by what needs no weights."""
    suite = write_suite(folder / "suite", cycles=CYCLES + MORE)
    told = {
        "suite": str(suite),
        "editors": ["ref:noise,sigma=8", "ref:blur"],
        "cycles": ["copy", "more"],
        "steps": steps,
        "repeats": repeats,
    }
    run(folder / "run", {**told, **settings})
    score(folder / "run", ["noise", "sharpness", "psnr", "ssim"], workers=1)
    return folder / "run"
