"""What a prompt asks for: a list of actions, each of one kind.

Kinds are the bijections of `geometry`, the edits of `kinds.toml`, and what is done to things: add,
remove, move, change, undo. What no pattern knows is kept apart as unread.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from convergebench.cycle import Reversibility
from convergebench.reversibility.geometry import PIXELS, Geometry, read_geometry
from convergebench.reversibility.words import (
    HERE,
    LEXICON,
    WORDS,
    Clause,
    Thing,
    clauses,
    foreign,
    singular,
    things,
)

_MAKE: Final = (
    "(?:make|turn|change|convert|transform|render|have|let|bring|set|switch|return|repaint|redraw|"
    "paint|get|transfer|reimagine|recreate|redesign)"
)
_OF: Final = r"(?:(?:the|this|that|my|our|whole|entire|full|given|provided|input|old) )*"
_MACROS: Final = {
    "{picture}": rf"{_OF}(?:{'|'.join(sorted(WORDS['picture']))})\b",
    "{pixels}": PIXELS,
    "{make}": _MAKE,
    "{colour}": rf"(?:{'|'.join(sorted(WORDS['colours']))})\b",
    "{any}": "(?:.*?)",
    "{end}": r"(?= (?:and|again|,|in|with|for|by|so|like|at|on|to|than|but|around|\w+ly)\b|$)",
}


@dataclass(frozen=True)
class Kind:
    """A kind of edit that does not depend on a thing: what becomes of the information."""

    name: str
    fate: Reversibility
    says: str
    undo: str
    patterns: tuple[re.Pattern[str], ...]


def _kinds() -> dict[str, Kind]:
    rows = tomllib.loads((HERE / "kinds.toml").read_text(encoding="utf-8"))["kind"]
    return {
        row["name"]: Kind(
            row["name"],
            row["class"],
            row["says"],
            row.get("undo", ""),
            tuple(re.compile(_filled(pattern)) for pattern in row["patterns"]),
        )
        for row in rows
    }


def _filled(pattern: str) -> str:
    for macro, meaning in _MACROS.items():
        pattern = pattern.replace(macro, meaning)
    return pattern


KINDS: Final = _kinds()


@dataclass(frozen=True)
class Action:
    """One thing a prompt asks for.

    Attributes:
        kind: `geometry`, a name of `KINDS`, or `add`, `remove`, `move`, `change`, `undo`.
        words: The words that told.
        things: What is added, removed, moved.
        geometry: What is done to all pixels.
        worn: It was put on, so it can be taken off.
        back: It says that something is to be as it was.
        way: From where and to where something is moved, where both are told.
    """

    kind: str
    words: str
    things: tuple[Thing, ...] = ()
    geometry: Geometry | None = None
    worn: bool = False
    back: bool = False
    way: tuple[str, str] | None = None


@dataclass(frozen=True)
class Prompt:
    """A prompt as read."""

    actions: tuple[Action, ...]
    unread: tuple[str, ...] = ()
    foreign: bool = False
    keeps: bool = False

    def of(self, *kinds: str) -> tuple[Action, ...]:
        """Its actions of these kinds."""
        return tuple(action for action in self.actions if action.kind in kinds)


@lru_cache(maxsize=4096)
def read(prompt: str) -> Prompt:
    """What a prompt asks for."""
    if foreign(prompt):
        return Prompt((), (), foreign=True)
    told = clauses(prompt)
    actions: list[Action] = []
    unread: list[str] = []
    for clause in told.edits:
        if _BENEATH.match(clause.text) and any(action.kind == "remove" for action in actions):
            continue  # what comes to light is part of the removal
        action = _action(clause)
        if action is None:
            unread.append(clause.text)
        else:
            actions.append(action)
    return Prompt(tuple(actions), tuple(unread), keeps=told.keeps)


def _action(clause: Clause) -> Action | None:
    text = clause.text
    geometry = read_geometry(text)
    if geometry is not None:
        return Action("geometry", text, geometry=geometry)
    for kind in KINDS.values():
        for pattern in kind.patterns:
            found = pattern.match(text)
            if found:
                return Action(kind.name, found[0].strip())
    for reader in (_undone, _removed, _moved, _added, _changed):
        action = reader(text)
        if action is not None:
            return action
    return None


_BENEATH: Final = re.compile(
    r"(?:show|reveal|uncover|fill|fill in|restore|reconstruct|rebuild|complete) .*"
    r"\b(?:behind|beneath|under|underneath|below|hidden|covered|where it (?:was|stood))\b"
)
"""Says what is seen once a thing is gone."""


def _undone(text: str) -> Action | None:
    home = rf"{_OF}(?:original|before|previous)\b"
    whole = rf"{_OF}{PIXELS}(?: to| as)? (?:back|its|the original|how|what|as|before)"
    found = re.match(
        r"(?:undo|revert|reset|cancel|roll back)\b"
        r"|(?:bring|get|give|put|restore|return|take|go|change) (?:back )?(?:to )?"
        rf"(?:{home}|{whole}|back$)|restore (?:it|everything|the original)",
        text,
    )
    return Action("undo", found[0]) if found else None


_REMOVE: Final = (
    r"(?:remove|delete|erase|eliminate|discard|wipe|lose|subtract|strip|clear|edit out|cut out|"
    r"photoshop out|cut)(?: away| off| out)? (?P<what>.+)",
    r"(?:get|be) rid of (?P<what>.+)",
    r"take (?:off|away|out|down) (?P<what>.+)",
    r"take (?P<what>.+?) (?:off|away|out|down)\b",
    r"(?:have|make|let) .+? (?:take off|remove|lose) (?P<what>.+)",
    r"make (?P<what>.+?) (?:disappear|vanish|invisible|go away|gone)",
    r"shave (?:off )?(?P<what>.+)",
    r"(?:show|make|render|depict|have) .+? without (?P<what>.+)",
    r".+? (?:should|must|is|are)(?: be)?(?: not| no longer)(?: be)? (?:wear|hold|carry)(?:ing)? "
    r"(?P<what>.+)",
    r".+? no longer (?:wears|holds|carries|has) (?P<what>.+)",
)
_ADD: Final = (
    r"(?:have|make|let) .+? (?:wear|hold|carry|grow)(?:ing)? (?P<worn>.+)",
    r"(?:put on|wear|dress .+? (?:in|with)|equip .+? with|adorn .+? with) (?P<worn>.+)",
    r".+? (?:(?:should|must)(?: be)? (?:wear|hold|carry)(?:ing)?|wears|has|holds) (?P<worn>.+)",
    r"(?:show|depict|render) .+? (?:wearing|with|holding|carrying) (?P<worn>.+)",
    r"(?:cover|decorate|fill|top) .+? with (?P<what>.+)",
    r"(?:add|insert|include|place|put|set|pop|stick|draw|paint|hang|lay|introduce|overlay|attach|wrap|"
    r"tie|write|position|grow|bring|return|restore|reinsert|superimpose|paste|plant|slip|pour|stand|seat|sit|rest|lean|park|"
    r"generate|create)(?: back| in)? (?P<what>.+)",
)


def _removed(text: str) -> Action | None:
    for pattern in _REMOVE:
        found = re.match(pattern, text)
        if found:
            what = things(found["what"].split(), definite=True)
            if text.startswith("shave") and "off" not in text.split() and what:
                bald = what[0].noun in ("head", "hair")
                what = what if bald or what[0].noun in ("beard", "moustache") else (Thing("beard"),)
            return _of_things("remove", text, what)
    return None


def _added(text: str) -> Action | None:
    if text.startswith("give "):
        what = things(_gift(text.split()[1:]), definite=False)
        return _of_things("add", text, what)
    for pattern in _ADD:
        found = re.match(pattern, text)
        if found:
            worn = "worn" in found.groupdict()
            rest = (found["worn"] if worn else found["what"]).split()
            worn = worn or bool(
                re.match(r"(?:put|pop|place|slip) .+ on (?:him|her|them|the \w+|his)", text)
            )
            action = _of_things("add", text, things(rest, definite=False), worn=worn)
            return replace(action, back="back" in text.split()) if action else None
    return None


def _gift(words: list[str]) -> list[str]:
    """What is given, after to whom: `the woman a hat`, `her glasses`, `a hat to the woman`."""
    if not words or words[0] in WORDS["indefinite"]:
        return words
    if words[0] in WORDS["people"] and len(words) > 1:
        return words[1:]
    for index, word in enumerate(words):
        if word in WORDS["indefinite"]:
            return words[index:]
    return words[2:] if words[0] in WORDS["determiners"] else words[1:]


def _of_things(
    kind: str, text: str, what: tuple[Thing, ...], *, worn: bool = False
) -> Action | None:
    """An action on things, or on what is no thing: a smile, snow, blur."""
    for thing in what:
        for other, nouns in LEXICON["not_things"][kind].items():
            if thing.noun in nouns and thing == what[0]:
                return Action(
                    other, f"{text.split()[0]} … {thing.text}", back="back" in text.split()
                )
    attendants = LEXICON["anything"]["attendants"]
    real = tuple(thing for thing in what if thing.noun not in attendants)
    if not real:
        return None
    named = " and ".join(thing.text for thing in real)
    return Action(kind, f"{text.split()[0]} … {named}", real, worn=worn)


def _moved(text: str) -> Action | None:
    found = re.match(
        r"(?:move|relocate|shift|slide|drag|reposition|push|pull|swing)\b (?P<what>.+)", text
    )
    if found is None:
        return None
    what = things(found["what"].split(), definite=True)
    back = re.search(
        r"\bback\b|where (?:it|they|he|she) (?:was|were|stood)|original|previous", text
    )
    way = re.search(r" from (?P<a>.+?) (?:to|onto|into) (?P<b>.+)", text)
    ends = (_place(way["a"]), _place(way["b"])) if way else None
    named = " and ".join(thing.text for thing in what)
    return Action("move", f"move … {named}", what, back=bool(back), way=ends) if what else None


def _place(text: str) -> str:
    drop = WORDS["determiners"] | {"side", "again", "back", "of"}
    return " ".join(singular(word) for word in text.split() if word not in drop)


def _changed(text: str) -> Action | None:
    found = re.match(
        r"(?:change|turn|transform|convert|replace|swap|exchange|substitute|switch|alter|modify|morph|"
        r"make|have|let|restyle|redo|use|transfer|reimagine|recreate|redesign) ",
        text,
    )
    return Action("change", text) if found else None
