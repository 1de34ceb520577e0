"""Prompts as plain clauses, and the things that a clause names.

A prompt is brought into one spelling, cut into clauses at the verbs that begin them, and rid of
clauses that only say what must stay. What the code knows of English is in `lexicon.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
LEXICON: Final[dict[str, Any]] = tomllib.loads((HERE / "lexicon.toml").read_text(encoding="utf-8"))
WORDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(listed) for name, listed in LEXICON["words"].items()
}
_SAME: Final = {word: row["words"][0] for row in LEXICON["same"] for word in row["words"]}
_SPELLING: Final = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, LEXICON["spelling"]), key=len, reverse=True)) + r")\b"
)
_TOKEN: Final = re.compile(r"[^\W_]+(?:\.\d+)?|'s|,")
_OWNS: Final = "\ue000"
"""Stands for 's while other apostrophes are removed."""
_PREFACE: Final = re.compile(
    r"^\s*(?:please )?(?:(?:edit|modify|update|alter|retouch)(?: the| this| my)? "
    r"(?:image|picture|photo) (?:so that|such that|to)"
    r"|change(?: the| this| my)? (?:image|picture|photo) (?:so|such) that)\b"
)
"""Edit the photo so that …"""
_JOINTS: Final = frozenset({",", "and", "then", "but", "while"})
_NO_NOUNS: Final = frozenset({"of"}).union(
    *(WORDS[name] for name in ("determiners", "adjectives", "colours", "groups"))
)
_LONGEST: Final = 4000
"""Letters of a prompt that are read; nobody's edit is longer."""


def plain(text: str) -> str:
    """A prompt in lower case, British spelling, without hyphens, quotes and odd spaces."""
    text = unicodedata.normalize("NFKC", text[:_LONGEST]).casefold()
    text = unicodedata.normalize("NFKC", text)
    text = "".join(" " if c.isspace() else c for c in text if unicodedata.category(c) != "Cf")
    text = text.replace("’", "'").replace("‘", "'").replace("°", " degrees ")
    text = re.sub(r'["“”„«»][^"“”„«»]*["“”„«»]', " quoted ", text)
    text = re.sub(r"#[0-9a-f]{3,8}\b", " hexcode ", text)
    text = re.sub(r"(?<!\w)[-−–](?=\d)", " minus ", text)
    text = re.sub(r"\b(it|that|there|he|she)'s\b", r"\1 is", text).replace("let's", "lets")
    text = re.sub(r"(\w)'s\b", rf"\1 {_OWNS}", text).replace("'", "").replace(_OWNS, "'s")
    text = re.sub(r"[-‐‑/]", " ", text)
    text = " ".join(text.split())
    return _SPELLING.sub(lambda found: LEXICON["spelling"][found[0]], text)


@dataclass(frozen=True)
class Clause:
    """One instruction of a prompt: its words, a space between any two."""

    text: str

    @property
    def words(self) -> list[str]:
        """Its words; a comma is one."""
        return self.text.split()


@dataclass(frozen=True)
class Clauses:
    """The instructions of a prompt, and whether it also says what must stay."""

    edits: tuple[Clause, ...]
    keeps: bool = False


def clauses(prompt: str) -> Clauses:
    """A prompt's instructions, without those that only say what must stay."""
    found: list[Clause] = []
    keeps = False
    for sentence in re.split(r"[.!?;:…]+(?=\s|$)|[()\[\]{}|]+", plain(prompt)):
        for words in _cut(_TOKEN.findall(_PREFACE.sub("", sentence))):
            if words and _begins(words, 0, "asides"):
                continue
            words = _bare(words)
            if words and _begins(words, 0, "keep", "keep_anywhere"):
                keeps = True
            elif words:
                found.append(Clause(" ".join(words)))
    return Clauses(tuple(found), keeps)


def _cut(words: Sequence[str]) -> list[list[str]]:
    """Words cut where a verb follows a comma or an `and`, and before what must stay."""
    parts: list[list[str]] = [[]]
    for index, word in enumerate(words):
        joined = index > 0 and words[index - 1] in _JOINTS
        fresh = joined and (_is_verb(words, index) or _begins(words, index, "keep"))
        if fresh or (index > 0 and _begins(words, index, "keep_anywhere", "asides")):
            while parts[-1] and parts[-1][-1] in _JOINTS:
                parts[-1].pop()
            parts.append([])
        parts[-1].append(word)
    return parts


def _is_verb(words: Sequence[str], index: int) -> bool:
    following = words[index + 1] if index + 1 < len(words) else ""
    if words[index] in WORDS["verbs_or_nouns"]:
        likely = WORDS["determiners"] | WORDS["pronouns"] | {"in", "out", "by", "back"}
        return following in likely or following.isdigit()
    return words[index] in WORDS["verbs"]


def _begins(words: Sequence[str], index: int, *lists: str) -> bool:
    one, two = words[index], " ".join(words[index : index + 2])
    return any(one in WORDS[name] or two in WORDS[name] for name in lists)


def _bare(words: list[str]) -> list[str]:
    """Words without courtesies at either end."""
    start = 0
    while start < len(words) and (words[start] in WORDS["polite"] or words[start] == ","):
        start += 1
    end = len(words)
    while end > start and words[end - 1] in (",", "please", "and", "then", "thanks"):
        end -= 1
    return words[start:end]


def foreign(prompt: str) -> bool:
    """Whether a prompt is plainly in another language than English.

    `english` lists only words that no near language shares: Dutch has `in`, French has `a`.
    """
    text = plain(prompt)
    letters = [c for c in text if c.isalpha()]
    latin = sum("LATIN" in unicodedata.name(c, "") for c in letters)
    if letters and latin < 0.5 * len(letters):
        return True
    words = set(_TOKEN.findall(text))
    return bool(words & WORDS["foreign"]) and not words & WORDS["english"]


@dataclass(frozen=True)
class Thing:
    """What an edit adds, removes or moves.

    Attributes:
        noun: Its name in the singular, synonyms brought together; empty for a pronoun.
        like: Its other words: adjectives, colours, the first words of compounds.
        text: The words of the prompt.
        along: What comes with it: the flowers of a vase with flowers.
    """

    noun: str
    like: frozenset[str] = frozenset()
    text: str = ""
    along: frozenset[str] = frozenset()

    @property
    def pronoun(self) -> bool:
        """Whether it is only `it` or `them`."""
        return not self.noun

    def covers(self, added: Thing) -> bool:
        """Whether this, in a backward prompt, names the thing that was added."""
        if self.pronoun or self.noun in LEXICON["anything"]["words"]:
            return True
        wider = LEXICON["wider"].get(added.noun, ())
        same = self.noun == added.noun or self.noun in wider
        # A hat that was added may be "the hat"; one that was only "a hat" is not "the red hat".
        return same and self.like <= added.like | {added.noun} | added.along


def singular(word: str) -> str:
    """A noun in the singular, under its first name."""
    if word in _SAME:
        return str(_SAME[word])
    if word in LEXICON["irregular"]:
        one = str(LEXICON["irregular"][word])
    elif word.endswith("ies") and len(word) > 4:
        one = word[:-3] + "y"
    elif re.search(r"(?:ss|x|ch|sh)es$", word):
        one = word[:-2]
    elif word.endswith("s") and not re.search(r"(?:ss|us|is)$", word):
        one = word[:-1]
    else:
        one = word
    return str(_SAME.get(one, one))


def things(words: Sequence[str], *, definite: bool) -> tuple[Thing, ...]:
    """The things named at the beginning of these words, and after an `and` further on.

    Args:
        words: What follows the verb.
        definite: Whether `and the …` names another thing, as after `remove`; after `add`, only
            `and a …` does.
    """
    found: list[Thing] = []
    phrase: list[str] = []
    place, between = False, False
    for index, word in enumerate([*words, ","]):
        if word in (",", "and", "or", "plus"):
            if phrase and not place:
                if _only_like(phrase) and index < len(words):
                    continue
                found += _thing(phrase)
            following = words[index + 1] if index + 1 < len(words) else ""
            opens = following in WORDS["indefinite"] or (definite and following in ("the", "its"))
            if place and not (opens and not between):
                between = False
                continue
            phrase, place = [], False
        elif not place and _ends_phrase(word, phrase, [*words, ","][index + 1]):
            along = words[index + 1 :] if word in ("with", "of", "containing", "holding") else ()
            found += _thing(phrase, along)
            phrase, place, between = [], True, word == "between"
        elif not place:
            phrase.append(word)
    return tuple(dict.fromkeys(found))


def _ends_phrase(word: str, phrase: Sequence[str], following: str) -> bool:
    if word == "of" and phrase and phrase[-1] in WORDS["groups"]:
        return False
    if word in WORDS["pronouns"] and not phrase:
        return False
    moving = word.endswith("ing") and singular(word) not in WORDS["ing_nouns"] and len(word) > 4
    moving = moving or (word.endswith("ed") and following in WORDS["prepositions"])
    # "birds flying over the sea", "a car parked near", but "a pair of reading glasses".
    named = any(w not in _NO_NOUNS for w in phrase)
    return word in WORDS["prepositions"] or (moving and named)


def _only_like(phrase: Sequence[str]) -> bool:
    rest = [word for word in phrase if word not in WORDS["determiners"]]
    return bool(rest) and all(w in WORDS["colours"] | WORDS["adjectives"] for w in rest)


def _thing(phrase: Sequence[str], along: Sequence[str] = ()) -> list[Thing]:
    if len(phrase) == 1 and phrase[0] in WORDS["pronouns"]:
        return [Thing("", text=phrase[0])]
    words = [word for word in phrase if word not in WORDS["determiners"] and not word.isdigit()]
    for joint in ("of", "'s"):  # a pair of glasses, the person's glasses
        if joint in words:
            words = words[len(words) - words[::-1].index(joint) :]
    if not words:
        return []
    noun = singular(words[-1])
    like = frozenset(singular(word) for word in words[:-1] if word not in ("added", "same", "of"))
    return [Thing(noun, like, " ".join(words), frozenset(map(singular, along)))]
