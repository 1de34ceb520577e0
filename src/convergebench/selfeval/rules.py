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
_CLAUSES: Final = re.compile(
    r"\s*(?P<mark>[,;:—–]| but | yet | although | though | however )\s*", re.I
)
_ITEM: Final = 4
"""Words that one more thing of a list has at most: "noise, visible banding, or artifacts"."""
_STATES: Final = re.compile(
    r"\b(?:i|it|they|he|this|that|these|those|there|the|is|are|was|were|has|have|shows?|looks?|"
    r"seems?|appears?|contains?|i['’]ll|it['’]s|but|yet|although|though|however)\b",
    re.IGNORECASE,
)
"""Words that begin a statement of its own: a denial before the comma does not reach over it."""


@dataclass(frozen=True)
class Words:
    """The list, ready to be looked for."""

    version: int
    damage: re.Pattern[str]
    denials: re.Pattern[str]
    of_lists: re.Pattern[str]
    innocent: re.Pattern[str]


@cache
def words() -> Words:
    """The list of words that comes with the package."""
    path = resources.files("convergebench.selfeval") / "words.toml"
    told = tomllib.loads(path.read_text("utf-8"))
    names = ("damage", "denials", "of_lists", "innocent")
    return Words(told["version"], *(_any(told[name]) for name in names))


def mentions_damage(reasoning: str, prompt: str = "") -> tuple[str, ...]:
    """The words of a summary that say that the given image is damaged; none means no.

    A denial holds for its clause, and for all of a list: "without blur, noise or artifacts". What
    repeats a sentence of the prompt is the user's word, not the editor's, and does not count.
    """
    known = words()
    found: list[str] = []
    for sentence in _SENTENCES.split(_without(reasoning, prompt)):
        mark, denied = "", False
        for part in _parts(sentence):
            clause = known.innocent.sub(" ", part.text)
            more = mark == "," and len(clause.split()) <= _ITEM and not _STATES.search(clause)
            listed = denied and more
            hits = list(known.damage.finditer(clause))
            told = [h for h in hits if not (listed or known.denials.search(clause[: h.start()]))]
            found += [hit[0].lower() for hit in told]
            # What is denied of one thing may be denied of more; "not sharp, grainy" is no list.
            denied = listed or len(told) < len(hits) or bool(known.of_lists.search(clause))
            mark = part.mark
    return tuple(dict.fromkeys(found))


def _without(reasoning: str, prompt: str) -> str:
    """A summary without the sentences of a prompt that it repeats, however they are spaced."""
    for sentence in filter(None, (part.strip(" .") for part in _SENTENCES.split(prompt))):
        spaced = r"\s+".join(map(re.escape, sentence.split()))
        reasoning = re.sub(spaced, " ", reasoning, flags=re.IGNORECASE)
    return reasoning


@dataclass(frozen=True)
class _Part:
    """A clause, and the mark that ends it."""

    text: str
    mark: str


def _parts(sentence: str) -> list[_Part]:
    # `split` answers clause, mark, clause, mark … clause.
    pieces = [*_CLAUSES.split(sentence), ""]
    return [_Part(t, m.strip().lower()) for t, m in zip(pieces[::2], pieces[1::2], strict=True)]


def _any(listed: list[str]) -> re.Pattern[str]:
    each = (re.escape(word).replace(r"\*", r"\w*").replace("'", "['’]") for word in listed)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(each)})(?![\w-])", re.IGNORECASE)
