"""File names that end with a number: what is before it, and the number."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

COUNTERS: Final = (
    "step", "frame", "iter", "iteration", "round", "turn", "pass", "edit", "output", "img", "image",
)  # fmt: skip
"""Words before the number that name nothing."""

_PICTURES: Final = ("img", "image", "output")

_SIGNS: Final = " _.-"
_NUMBERED = re.compile(r"(.*?)([0-9]+)")
_COUNTER = re.compile(rf"(?:(.*)[{_SIGNS}])?({'|'.join(COUNTERS)})s?", re.IGNORECASE)


class Numbered(NamedTuple):
    """A name in parts; `counts` is whether a word in it says that the number counts steps.

    Photographs are numbered too: `01.png` and `img_01.png` do not say so.
    """

    prefix: str
    number: int
    counts: bool


def split_number(stem: str) -> Numbered | None:
    """`eiffel_step_07` as "eiffel" and 7; None for a name that ends with no number."""
    told = _NUMBERED.fullmatch(stem)
    if told is None:
        return None
    prefix = told[1].rstrip(_SIGNS)
    counter = _COUNTER.fullmatch(prefix)
    if counter is None:
        return Numbered(prefix, int(told[2]), False)
    counts = counter[2].lower() not in _PICTURES
    return Numbered((counter[1] or "").rstrip(_SIGNS), int(told[2]), counts)
