"""Where a pipeline's checkpoint is on this machine; nothing is downloaded.

A folder of the user's, or a snapshot in the model hub's cache, which `hf download` fills.
Checkpoints are 8 to 110 GB, so an edit never starts such a download by itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

MODULES: Final = ("torch", "diffusers", "transformers", "accelerate")
INDEX: Final = "model_index.json"
"""The file that says what a pipeline is made of."""


@dataclass(frozen=True)
class Checkpoint:
    """A folder with a pipeline's parts, and the commit it is of, where that is known."""

    folder: Path
    revision: str = ""


def find_checkpoint(repository: str, revision: str, path: str) -> Checkpoint | str:
    """The checkpoint, or a sentence that says what is missing and what to do.

    Args:
        repository: Its name on the hub.
        revision: The commit wanted; empty takes the branch `main`, else whichever is there.
        path: A folder that is used instead; empty for none.
    """
    if path:
        folder = Path(path).expanduser()
        if (folder / INDEX).is_file():
            return Checkpoint(folder)
        return f"{path} holds no pipeline of diffusers (it has no {INDEX})."
    cached = _hub_cache() / f"models--{repository.replace('/', '--')}"
    for commit in _commits(cached, revision):
        folder = cached / "snapshots" / commit
        if (folder / INDEX).is_file():
            return Checkpoint(folder, commit)
    wanted = f"{repository} --revision {revision}" if revision else repository
    return (
        f"The checkpoint {repository} is not here: run `hf download {wanted}`, "
        "or name a folder with path=."
    )


def weights_size(folder: Path) -> int:
    """Bytes of a pipeline's weights, which are in main memory at least while it is opened."""
    return sum(file.stat().st_size for file in folder.rglob("*.safetensors"))


def absent_modules() -> str:
    """What must be installed first, as a sentence; empty when all is there."""
    absent = [module for module in MODULES if find_spec(module) is None]
    if not absent:
        return ""
    return f"Local pipelines need {', '.join(absent)}: pip install 'convergebench[local]'."


def _commits(cached: Path, revision: str) -> list[str]:
    """Snapshots that may serve, best first."""
    if revision:
        reference = cached / "refs" / revision
        return [reference.read_text("ascii").strip() if reference.is_file() else revision]
    main = cached / "refs" / "main"
    first = [main.read_text("ascii").strip()] if main.is_file() else []
    snapshots = cached / "snapshots"
    rest = sorted(p.name for p in snapshots.iterdir()) if snapshots.is_dir() else []
    return list(dict.fromkeys([*first, *rest]))


def _hub_cache() -> Path:
    """As huggingface_hub finds it."""
    if named := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(home).expanduser() / "hub"
