"""The guide's tables are the engine's own numbers, and its commands and code run."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from convergebench.degrading import KINDS, parameters

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "degradations.md"


def meanings(level: Any) -> dict[str, str]:
    """What each parameter is, from the docstring of its class, in order."""
    text = " ".join((type(level).__doc__ or "").partition("Attributes:")[2].split())
    names = [field.name for field in fields(level)]
    parts = re.split(rf"\b({'|'.join(names)}): ", text)[1:]
    return dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))


def table_of(levels: tuple[Any, Any, Any]) -> str:
    """A Markdown table of three severities."""
    lines = ["| parameter | 1 | 2 | 3 | what it is |", "|---|---|---|---|---|"]
    for name, meaning in meanings(levels[0]).items():
        values = [getattr(level, name) for level in levels]
        if not is_dataclass(values[0]):
            numbers = " | ".join(f"{value:g}" for value in values)
            lines.append(f"| {name.replace('_', ' ')} | {numbers} | {meaning} |")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_guide_has_the_numbers_of_every_kind(kind: str) -> None:
    text = GUIDE.read_text("utf-8")
    assert f"`{kind}`" in text
    levels = parameters(kind)
    assert table_of(levels) in text
    if kind.startswith("old-photo"):
        wear: Any = tuple(level.wear for level in levels)
        assert table_of(wear) in text


def test_the_guide_shows_the_contact_sheet_and_its_file_is_small() -> None:
    assert "](../images/degradations.png)" in GUIDE.read_text("utf-8")
    file = ROOT / "docs" / "images" / "degradations.png"
    assert file.stat().st_size <= 900_000
    with Image.open(file) as image:
        image.load()
        assert image.width > 800
