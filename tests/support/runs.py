"""Small suites and runs for tests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from convergebench.chain import Chain
from convergebench.frame import encode
from convergebench.registry import open_suite
from convergebench.runner import run
from convergebench.store import RunStore

CYCLES = """
[[cycle]]
name = "copy"
kind = "replicate"
[[cycle.edit]]
phrasings = ["Copy the picture.", "Make the same picture again."]

[[cycle]]
name = "ball"
kind = "round-trip"
[[cycle.edit]]
prompt = "Add a red ball."
region = [0.25, 0.25, 0.75, 0.75]
operation = { kind = "add", object = "red-ball" }
[[cycle.edit]]
prompt = "Remove the red ball."
region = [0.25, 0.25, 0.75, 0.75]
operation = { kind = "remove", object = "red-ball" }
"""


def picture(seed: int, width: int = 32, height: int = 32) -> Any:
    """A small random picture with some structure."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(40, 216, (4, 4, 3))
    big = np.kron(coarse, np.ones((-(-height // 4), -(-width // 4), 1), dtype=int))
    pixels = big[:height, :width] + rng.integers(-12, 13, (height, width, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)


def write_suite(
    folder: Path,
    sources: int = 2,
    *,
    cycles: str = CYCLES,
    version: int = 1,
    size: int = 32,
    pictures: list[Any] | None = None,
) -> Path:
    """A suite of small file sources, or of given pictures, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f'name = "tiny"\nversion = {version}\nsize = {size}\n']
    for i, pixels in enumerate(pictures or [picture(i, size, size) for i in range(sources)]):
        data = encode(pixels)
        (folder / f"s{i}.png").write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        lines.append(
            f'[[source]]\nname = "s{i}"\nfile = "s{i}.png"\nsha256 = "{digest}"\n'
            f'licence = "CC0-1.0"\n'
        )
    path = folder / "suite.toml"
    path.write_text("\n".join(lines) + cycles)
    return path


def records(path: Path) -> dict[str, Any]:
    """All of a run that must not depend on when it was made or how often it was interrupted."""
    chains = {
        chain.key.id: (
            chain.source and chain.source.sha256,
            [step.timeless() for step in chain.steps],
        )
        for chain in RunStore.open(path).chains()
    }
    frames = sorted(p.name for p in (path / "frames").glob("??/*"))
    return {"chains": chains, "frames": frames}


def one_chain(tmp_path: Path, suite: str, script: str, **more: Any) -> Chain:
    """Walk a single scripted chain and return it."""
    table = {
        "suite": suite,
        "editors": [f"scripted,script={script}"],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 4,
        "controls": False,
        "deadline": 0.5,
        **more,
    }
    run(tmp_path / "run", table)
    (chain,) = RunStore.open(tmp_path / "run").chains()
    return chain


def shelf(folder: Path) -> RunStore:
    """A run without chains, to put frames into; the same one for the same folder."""
    place = folder / "shelf"
    if RunStore.is_run(place):
        return RunStore.open(place)
    return RunStore.create(place, open_suite("starter"), 64)
