"""A run for the viewer: every kind of home, a picture that is no square, and hostile records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from convergebench.chain import ChainKey
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from tests.support.runs import picture, write_suite

HOSTILE = "<script>alert(1)</script>"
REASONING = f"I think {HOSTILE} & <img src=x onerror=alert(2)> \u2028 '\"`"
CYCLES = f"""
[[cycle]]
name = "copy"
kind = "replicate"
[[cycle.edit]]
prompt = "Copy {HOSTILE}"

[[cycle]]
name = "ball"
kind = "round-trip"
[[cycle.edit]]
prompt = "Add a red ball."
region = [0.25, 0.25, 0.75, 0.75]
operation = {{ kind = "add", object = "red-ball" }}
[[cycle.edit]]
prompt = "Remove the red ball."
region = [0.25, 0.25, 0.75, 0.75]
operation = {{ kind = "remove", object = "red-ball" }}

[[cycle]]
name = "mirror"
kind = "mirror"
[[cycle.edit]]
prompt = "Mirror the picture."
operation = {{ kind = "flip", axis = "horizontal" }}

[[cycle]]
name = "turn"
kind = "rotate"
[[cycle.edit]]
prompt = "Turn the picture clockwise by a quarter."
operation = {{ kind = "turn", quarters = 1 }}

[[cycle]]
name = "grey"
kind = "recolour"
[[cycle.edit]]
prompt = "Make it grey."
operation = {{ kind = "grey" }}
[[cycle.edit]]
prompt = "Colour it."
operation = {{ kind = "colour" }}
"""
EDITORS = (
    "ref:noise,sigma=20",
    "ref:blur",
    "ref:crop-first,crop=0.2,keep-size=no",
    "ref:refuser,rate=0.5",
    "ref:identity",
)
WIDTH, HEIGHT = 48, 32


def walked_run(folder: Path) -> Path:
    """A scored run of two sources; the records of the noisy editor are as bad as can be."""
    pictures = [picture(seed, WIDTH, HEIGHT) for seed in range(2)]
    suite = write_suite(folder / "suite", cycles=CYCLES, pictures=pictures)
    path = folder / "walked"
    settings = {"suite": str(suite), "editors": EDITORS, "steps": 4, "retries": 0}
    run(path, {**settings, "controls": False})
    (path / "spec.json").unlink()
    for file in sorted((path / "chains").glob("*/*.jsonl")):
        _spoil(path, file)
    score(path, ["psnr", "ssim"], workers=1)
    return path


def _spoil(path: Path, file: Path) -> None:
    header, *steps = [json.loads(line) for line in file.read_text().splitlines()]
    for step in steps:
        if step["outcome"] == "refused":
            step["detail"] = HOSTILE
        if header["chain"]["editor"].startswith("ref:noise"):
            step["call"] |= {
                "model": HOSTILE,
                "reasoning": REASONING,
                "caveats": [HOSTILE, "resampled"],
                "cost": 0.039,
                "effective_prompt": HOSTILE,
                "request_id": HOSTILE,
                "size": "64x64",
                "format": "png",
                "basis": "reported",
            }
    if header["chain"]["editor"].startswith("ref:noise"):
        header["chain"]["editor"] = HOSTILE
        lost = {"outcome": "failed", "frame": None, "detail": "hung up"}
        cost = {"call": {"cost": 0.5, "basis": "assumed"}}
        steps.insert(1, {**steps[1], **lost, **cost})
    key = ChainKey.model_validate(header["chain"])
    file.unlink()
    target = RunStore.open(path).chain_path(key.id)
    target.parent.mkdir(exist_ok=True)
    lines: list[dict[str, Any]] = [header, *steps]
    target.write_text("".join(json.dumps(line) + "\n" for line in lines))
