"""What this machine has: keys (whether, never which), libraries and their versions."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from typing import Final

LIBRARIES: Final = ("convergebench", "numpy", "opencv-python-headless", "pillow", "polars", "scipy")


def keys_set(names: Iterable[str]) -> dict[str, bool]:
    """Environment variables that may hold a key, and whether each is set."""
    return {name: bool(os.environ.get(name, "").strip()) for name in names}


def keys_told(names: Iterable[str]) -> str:
    """The same in words: `A_KEY is set, B_KEY is not set`."""
    said = (f"{name} is {'set' if there else 'not set'}" for name, there in keys_set(names).items())
    return ", ".join(said)


def library_version(module: str) -> str | None:
    """The version of what a module is installed as, or None where it is not installed."""
    try:
        if find_spec(module) is None:
            return None
    except ModuleNotFoundError:  # of a parent package
        return None
    try:
        # Most are distributed under the name they are imported by: google.genai, fal_client.
        return metadata.version(module.replace(".", "-").replace("_", "-"))
    except metadata.PackageNotFoundError:
        return "?"


def versions() -> dict[str, str]:
    """Versions of all that can move a number: Python, platform and libraries."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
