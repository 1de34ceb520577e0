"""How messages count things and list names."""

from __future__ import annotations

from collections.abc import Iterable


def counted(count: int, noun: str, one: str = "", more: str = "") -> str:
    """A number with its noun, and with its verb: `1 row has`, `2,000 rows have`."""
    words = (f"{count:,}", noun if count == 1 else f"{noun}s", one if count == 1 else more)
    return " ".join(word for word in words if word)


def shown(names: Iterable[str], most: int = 3, between: str = ", ") -> str:
    """The first few names, each once, and how many more."""
    each = list(dict.fromkeys(names))
    rest = len(each) - most
    return between.join(each[:most]) + (f" and {rest} more" if rest > 0 else "")


def in_order(names: Iterable[str], most: int = 4) -> str:
    """The same in alphabetical order."""
    return shown(sorted(names), most)
