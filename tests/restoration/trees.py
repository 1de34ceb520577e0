"""A small folder of restorations as authors publish them, imported and scored for real."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from convergebench.frame import encode
from convergebench.importer import import_run
from convergebench.scorer import score
from tests.support.runs import picture

SCENES: Final = {"Text": ("a", "b", "c"), "Crowd": ("d", "e"), "Old Film": ("f", "g")}
"""Pictures by scene; no truth exists of the last one's."""

PROMPTS: Final = ("S1", "S2", "SF1", "LF1")
REPEATS: Final = 3
METRICS: Final = ("psnr", "ssim", "sharpness")


def write_tree(folder: Path, side: int = 48) -> Path:
    """input/ gt/ banana/PROMPT/runN/SCENE/x.png specialist/SCENE/x.png.

    `banana` blends input and truth, more of the truth with fidelity wording; its output of `b` for
    S2 is missing in all runs. `specialist` returns a slightly better input.
    """
    for number, (scene, name) in enumerate((s, n) for s, names in SCENES.items() for n in names):
        truth = picture(number, side, side)
        damaged = cv2.GaussianBlur(truth, (0, 0), 1.5)
        _write(folder / "input" / scene / f"{name}.png", damaged)
        if scene != "Old Film":
            _write(folder / "gt" / scene / f"{name}.png", truth)
        _write(folder / "specialist" / scene / f"{name}.png", _blend(truth, damaged, 0.2, 0))
        for place, prompt in enumerate(PROMPTS):
            share = 0.6 if "F" in prompt else 0.3
            for run in range(1, REPEATS + 1):
                if (prompt, name) == ("S2", "b"):
                    continue
                seed = 100 * number + 10 * place + run
                _write(
                    folder / "banana" / prompt / f"run{run}" / scene / f"{name}.png",
                    _blend(truth, damaged, share, seed),
                )
    return folder


def scored_tree(folder: Path) -> Path:
    """The tree as a scored run."""
    import_run(write_tree(folder / "tree"), folder / "run")
    score(folder / "run", METRICS, workers=1)
    return folder / "run"


def _blend(truth: Any, damaged: Any, share: float, seed: int) -> Any:
    noise = np.random.default_rng(seed).normal(0, 2 if seed else 0, truth.shape)
    mixed = share * truth.astype(np.float64) + (1 - share) * damaged + noise
    return np.clip(np.rint(mixed), 0, 255).astype(np.uint8)


def _write(path: Path, pixels: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(pixels))
