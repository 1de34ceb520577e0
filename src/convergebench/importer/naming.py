"""Legal names for what others call as they please."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

LENGTH: Final = 60
"""As long as a name of a source or cycle may be."""


def legal_names(
    names: Iterable[str], what: str, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A legal name for each name: lower case, few signs, no two alike.

    Args:
        names: What the origin calls them.
        what: What they are, for names that have no legal sign.
        known: Legal names that are there, and what their origin called them.
    """
    taken = dict(known or {})
    found = {called: name for name, called in taken.items()}
    # Those that are legal as they are first: they keep their names.
    for name in sorted(set(names), key=lambda name: (_plain(name) != name, name)):
        if name in found:
            continue
        plain = _plain(name)
        if not plain or len(plain) > LENGTH or taken.get(plain, name) != name:
            plain = suffixed(plain or what, hashlib.sha256(name.encode()).hexdigest())
        found[name] = plain
        taken[plain] = name
    return {name: found[name] for name in names}


def suffixed(name: str, digest: str) -> str:
    """A name with a few digits of a hash behind it, not too long."""
    return f"{name[: LENGTH - 7].rstrip('-._')}-{digest[:6]}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")
