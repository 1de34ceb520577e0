"""A part of the restoration suite, for tests: to draw all of its scenes takes ten seconds."""

from __future__ import annotations

from pathlib import Path

from convergebench.importer.published import toml_text
from convergebench.registry import open_suite


def part_of_restoration(folder: Path, *sources: str) -> str:
    """The path of a suite like restoration-v1 with these sources only."""
    whole = open_suite("restoration-v1")
    chosen = tuple(source for source in whole.source if source.name in sources)
    part = whole.model_copy(update={"source": chosen, "fingerprint": None})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "suite.toml"
    path.write_text(toml_text(part.model_dump(mode="json", exclude_defaults=True)), "utf-8")
    return str(path)
