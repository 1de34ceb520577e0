"""How layouts word their notes."""

from __future__ import annotations

from collections.abc import Iterable


def counted(count: int, noun: str) -> str:
    """The noun with its number: "1 folder", "2 folders"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shown(names: Iterable[str], most: int = 4) -> str:
    """The first few names in order, each once, and how many more."""
    listed = sorted(set(names))
    rest = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {rest} more" if rest > 0 else "")
