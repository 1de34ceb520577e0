"""The rule-based judge: a documented list of words, for use without a network.

It reads `words.toml` and nothing else. How often it agrees with a model as judge is reported
wherever both were asked; it is a stand-in, not the paper's measure.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

_SENTENCES: Final = re.compile(r"(?<=[.!?…])\s+|\n+")
_CLAUSES: Final = re.compile(r"\s*(?:[,;:—–]| but | yet | although | though | however )\s*", re.I)


@dataclass(frozen=True)
class Words:
    """The list, ready to be looked for."""

    version: int
    damage: re.Pattern[str]
    denials: re.Pattern[str]
    innocent: re.Pattern[str]


@cache
def words() -> Words:
    """The list of words that comes with the package."""
    path = resources.files("convergebench.selfeval") / "words.toml"
    told = tomllib.loads(path.read_text("utf-8"))
    return Words(told["version"], *(_any(told[n]) for n in ("damage", "denials", "innocent")))


def mentions_damage(reasoning: str) -> tuple[str, ...]:
    """The words of a summary that say that the given image is damaged; none means no."""
    known = words()
    found: list[str] = []
    for sentence in _SENTENCES.split(reasoning):
        for clause in _CLAUSES.split(sentence):
            plain = known.innocent.sub(" ", clause)
            for hit in known.damage.finditer(plain):
                if not known.denials.search(plain[: hit.start()]):
                    found.append(hit[0].lower())
    return tuple(dict.fromkeys(found))


def _any(listed: list[str]) -> re.Pattern[str]:
    each = (re.escape(word).replace(r"\*", r"\w*").replace("'", "['’]") for word in listed)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(each)})(?![\w-])", re.IGNORECASE)
