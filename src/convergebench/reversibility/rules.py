"""The rules: numbered, in order; the first that applies decides.

They go from the worst to the best, so that of a prompt with several parts the worst part decides.
Each rule is a small function of the two prompts as read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from convergebench.cycle import Reversibility
from convergebench.reversibility.geometry import Bijection
from convergebench.reversibility.reading import KINDS, Action, Prompt, read
from convergebench.reversibility.words import Thing
from convergebench.table import Table

NONE: Final = "none"
"""The rule of a pair that no rule knows; such a pair counts as ambiguous."""


@dataclass(frozen=True)
class Verdict:
    """How reversible a pair of prompts is, and why.

    Attributes:
        reversibility: The class.
        rule: The rule that decided, or `none`.
        reason: One sentence.
        matched: The words of the prompts that told.
        unread: Parts of the prompts that nothing was made of.
    """

    reversibility: Reversibility
    rule: str
    reason: str
    matched: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether a rule decided."""
        return self.rule != NONE

    @property
    def table(self) -> Table:
        """One line."""
        rows = [(self.reversibility, self.rule, "; ".join(self.matched), self.reason)]
        notes = [f"Not understood: {'; '.join(self.unread)}."] if self.unread else []
        return Table("Reversibility", ("class", "rule", "matched", "reason"), rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "reversibility": self.reversibility,
            "rule": self.rule,
            "reason": self.reason,
            "matched": list(self.matched),
            "unread": list(self.unread),
        }


Found = tuple[str, tuple[str, ...]] | None
"""A reason and the words that told, or nothing."""


@dataclass(frozen=True)
class Rule:
    """One rule: its number, the class it gives, what it says, and how it decides."""

    id: str
    gives: Reversibility
    says: str
    decide: Callable[[Prompt, Prompt], Found]


def classify(forward: str, backward: str) -> Verdict:
    """How well an ideal editor could come home with these two prompts, by the rules.

    Prompts are read as English imperatives. What no rule knows has the rule `none` and counts as
    ambiguous.
    """
    there, back = read(forward), read(backward)
    unread = tuple(text.replace(" 's", "'s") for text in (*there.unread, *back.unread))
    for prompt, name in ((there, "forward"), (back, "backward")):
        if prompt.foreign:
            reason = (
                f"No rule matched: the {name} prompt is not English, and the rules know no other."
            )
            return Verdict("ambiguous", NONE, reason)
    for rule in RULES:
        found = rule.decide(there, back)
        if found is not None:
            reason, words = found
            matched = tuple(text.replace(" 's", "'s") for text in words)
            return Verdict(rule.gives, rule.id, reason, matched, unread)
    # A forward prompt that only says "undo" is read, but is no edit.
    which = "backward" if there.actions and not back.actions else "forward"
    reason = f"No rule matched: the {which} prompt asks for nothing that the rules know."
    return Verdict("ambiguous", NONE, reason, (), unread)


def _fate(prompt: Prompt, fate: Reversibility) -> Found:
    for action in prompt.actions:
        kind = KINDS.get(action.kind)
        if kind is not None and kind.fate == fate:
            return f"The forward edit is of kind {kind.name}: {kind.says}.", (action.words,)
    return None


def _lossy(there: Prompt, back: Prompt) -> Found:
    for action in there.of("geometry"):
        if action.geometry is not None and action.geometry.tilted:
            return "A turn by no multiple of 90 degrees cuts the corners off.", (action.words,)
    return _fate(there, "destroying")


def _making_up(there: Prompt, back: Prompt) -> Found:
    return _fate(there, "inventing")


def _taken(there: Prompt, back: Prompt) -> Found:
    for action in there.of("remove"):
        return f"How it looked is lost: {_named(action)}.", (action.words,)
    return None


def _quality(there: Prompt, back: Prompt) -> Found:
    return _fate(there, "ambiguous")


def _changed(there: Prompt, back: Prompt) -> Found:
    for action in there.of("change"):
        return "What was there before has many looks.", (action.words,)
    return None


def _not_inverse(there: Prompt, back: Prompt) -> Found:
    forth, home = there.of("geometry"), back.of("geometry")
    if not forth or not back.actions or _home_exactly(forth, home):
        return None
    words = tuple(action.words for action in (*forth, *home))
    if not home:
        return "The backward edit does not undo the flip, turn or swap.", words
    if _total(forth) is None or _total(home) is None:
        return "Direction or amount is not said.", words
    return "The two together do not give the picture back.", words


def _not_removed(there: Prompt, back: Prompt) -> Found:
    added, removed = _things(there.of("add")), _things(back.of("remove"))
    if not added or not back.actions:
        return None
    words = tuple(action.words for action in (*there.of("add"), *back.of("remove")))
    left = [thing for thing in added if not any(other.covers(thing) for other in removed)]
    other = [
        thing
        for thing in removed
        if not any(thing.covers(one) or thing.noun in one.along for one in added)
    ]
    if left:
        return f"Added, but not removed: {left[0].text}.", words
    if other:
        return f"Removed, but not added: {other[0].text}.", words
    return None


def _not_back(there: Prompt, back: Prompt) -> Found:
    forth, home = there.of("move"), back.of("move")
    if not forth or not back.actions or _moved_home(forth, home):
        return None
    return "Where it was is not said.", tuple(action.words for action in (*forth, *home))


def _more(there: Prompt, back: Prompt) -> Found:
    undoing = {"geometry": "geometry", "add": "remove", "move": "move"}
    wanted = {undoing[action.kind] for action in there.actions if action.kind in undoing}
    if not wanted:
        return None
    for action in back.actions:
        if action.kind not in wanted:
            return "The backward edit does something else as well.", (action.words,)
    return None


def _there_and_back(there: Prompt, back: Prompt) -> Found:
    forth, home = there.of("move"), back.of("move")
    if not forth or not home:
        return None
    reason = f"Moved there and back: {_named(forth[0])}."
    return reason, tuple(action.words for action in (*forth, *home))


def _added_removed(there: Prompt, back: Prompt) -> Found:
    forth, home = there.of("add"), back.of("remove")
    if not forth or not home:
        return None
    reason = f"Added and removed again: {_named(forth[0])}."
    return reason, tuple(action.words for action in (*forth, *home))


def _exact(there: Prompt, back: Prompt) -> Found:
    forth, home = there.of("geometry"), back.of("geometry")
    if not forth or not home:
        return None
    words = tuple(action.words for action in (*forth, *home))
    return "The two together give every pixel back.", words


RULES: Final = (
    Rule(
        "R1",
        "destroying",
        "The forward edit loses information: blur, monochrome, black, pixelated or covered, "
        "cropped, scaled down, noise, another style, a turn by no multiple of 90 degrees.",
        _lossy,
    ),
    Rule(
        "R2",
        "inventing",
        "The forward edit must make information up: sharpen, upscale, colourise, extend, "
        "restore, turn a drawing into a photograph. The backward edit can only throw it "
        "away.",
        _making_up,
    ),
    Rule(
        "R3",
        "destroying",
        "The forward edit removes a thing: what it looked like is lost, whoever adds it again.",
        _taken,
    ),
    Rule(
        "R4",
        "ambiguous",
        "The forward edit changes a quality (colour, tone, light, weather, expression, "
        "pose, age, size) whose state before is in no prompt.",
        _quality,
    ),
    Rule(
        "R5",
        "ambiguous",
        "The forward edit changes or replaces one thing by another: the first has many looks.",
        _changed,
    ),
    Rule(
        "R6",
        "ambiguous",
        "The forward edit rearranges pixels, but the backward edit is not its inverse.",
        _not_inverse,
    ),
    Rule(
        "R7",
        "ambiguous",
        "The forward edit adds a thing, but the backward edit does not remove this thing, "
        "or all of them, or removes another.",
        _not_removed,
    ),
    Rule(
        "R8",
        "ambiguous",
        "The forward edit moves a thing, but the backward edit does not say that it goes "
        "back to where it was.",
        _not_back,
    ),
    Rule(
        "R9",
        "ambiguous",
        "The backward edit does more than undo the forward edit.",
        _more,
    ),
    Rule(
        "R10",
        "preserving",
        "The forward edit moves a thing, and the backward edit moves the same thing back.",
        _there_and_back,
    ),
    Rule(
        "R11",
        "preserving",
        "The forward edit adds a thing, and the backward edit removes the same thing.",
        _added_removed,
    ),
    Rule(
        "R12",
        "exact",
        "The forward edit rearranges pixels or their values (flip, quarter turns, negative, "
        "channels swapped, shift with wrap-around), and the backward edit is its inverse.",
        _exact,
    ),
)
"""In order of precedence."""


def _named(action: Action) -> str:
    return " and ".join(thing.text or thing.noun for thing in action.things)


def _things(actions: tuple[Action, ...]) -> list[Thing]:
    return [thing for action in actions for thing in action.things]


def _total(actions: tuple[Action, ...]) -> Bijection | None:
    """All bijections in order; None where one of them is not fixed."""
    total = Bijection()
    for action in actions:
        if action.geometry is None or action.geometry.does is None:
            return None
        total = total.then(action.geometry.does)
    return total


def _home_exactly(forth: tuple[Action, ...], home: tuple[Action, ...]) -> bool:
    there = _total(forth)
    if there is None:
        return False
    if len(home) == 1 and home[0].geometry is not None and home[0].geometry.undoes(there):
        return True
    back = _total(home)
    return back is not None and there.then(back).identity


def _moved_home(forth: tuple[Action, ...], home: tuple[Action, ...]) -> bool:
    moved, returned = _things(forth), _things(home)
    if not all(any(other.covers(thing) for other in returned) for thing in moved):
        return False
    if all(action.back for action in home):
        return True
    ways = {action.way for action in forth}
    return None not in ways and {w and (w[1], w[0]) for w in ways} == {a.way for a in home}
