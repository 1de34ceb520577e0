"""Round-trip trees on the disk, and what the layout made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from convergebench.importer.found import Finds, Look, Wishes
from convergebench.importer.layouts import roundtrip
from tests.importer.trees import plant

FRAMES = ("I0_source.png", "I1_forward.png", "I1_backward.png", "I2_forward.png", "I2_backward.png")


def chain(root: Path, folder: str, count: int = 5) -> Path:
    return plant(root, [f"{folder}/{name}" for name in FRAMES[:count]])


def rounds(*psnr: float, lpips: float = 0.2) -> list[dict[str, Any]]:
    return [
        {
            "round": n,
            "quality": {"psnr": value, "lpips": lpips},
            "semantic": {"clip_similarity": 0.9},
            "success": True,
        }
        for n, value in enumerate(psnr, 1)
    ]


def evaluation(image: str = "cat_01.jpg", pair: str = "hat_add_remove", **more: Any) -> Any:
    told = {
        "image_filename": image,
        "edit_pair_name": pair,
        "forward_prompt": "Add a hat",
        "backward_prompt": "Remove the hat",
        "model": "model-x",
        "rounds": rounds(30.0, 25.0),
    }
    return told | more


def results(*evaluations: Any, max_rounds: int = 2, **meta: Any) -> Any:
    return {"metadata": {"max_rounds": max_rounds, **meta}, "evaluations": list(evaluations)}


def read(root: Path, **wishes: Any) -> Finds:
    return roundtrip.LAYOUT.read(Look(root), Wishes(**wishes))
