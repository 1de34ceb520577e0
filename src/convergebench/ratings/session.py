"""One participant's session: what is asked next, and whether an answer is one.

All of it follows from the study and the stored answers, so it goes on after any stop. Everything a
participant is told is made here, and none of it names a method, an editor or a file: pictures and
pages are called by keyed hashes that differ from participant to participant and page to page.
"""

from __future__ import annotations

import base64
import hmac
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from convergebench.errors import InputError
from convergebench.ratings.design import Scale
from convergebench.ratings.storage import Answers
from convergebench.ratings.study import BROKEN, OTHER, REFERENCE, Item, Participant, Study

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
LONGEST_COMMENT: Final = 1000
CONTROLS: Final = {
    code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"
}
LONGEST_PAGE: Final = 24 * 3600 * 1000
"""Milliseconds; a page that lay open for longer counts as that long."""


class Session:
    """A participant's view of a study.

    Args:
        study: The study.
        place: The participant's place in it.
        token: The secret of the link.
        key: The server's secret. Together they key the names of pictures and pages: neither who
            has the link alone nor who has another one can tell what is still to come.
    """

    def __init__(self, study: Study, place: int, token: str, key: bytes) -> None:
        self.study: Final = study
        self.participant: Final[Participant] = study.participants[place]
        self._token: Final = token
        self._key: Final = key
        self._names: Final = hmac.digest(key, f"names:{token}".encode(), "sha256")

    # -- what is shown ------------------------------------------------------------------------

    def state(self, answers: Answers) -> dict[str, Any]:
        """All that the participant's page needs to know now."""
        study, items = self.study, self.participant.items
        done = answers.answered(self.participant.id)
        current = self._current(done)
        finished = current is None
        consented = answers.consented(self.participant.id)
        stage = "consent" if not consented else "done" if finished else "rate"
        practice = {place for place, item in enumerate(items) if item.kind == "practice"}
        return {
            "stage": stage,
            "study": {
                "title": study.title,
                "design": study.design,
                "instructions": study.instructions,
                "consent": study.consent,
                "scale": study.scale.model_dump(),
                "ties": study.ties,
                "questions": [question.model_dump() for question in study.questions],
            },
            "done": len(done - practice),
            "total": len(items) - len(practice),
            "practice_left": len(practice - done),
            "item": self._told(current) if stage == "rate" and current is not None else None,
            "code": self.code if stage == "done" else None,
        }

    @property
    def code(self) -> str | None:
        """What proves that the session was finished, where the study gives such a code."""
        if self.study.completion == "none":
            return None
        if self.study.completion == "same":
            return self.study.code
        return own_code(self._key, self.participant.id)

    def picture(self, opaque: str) -> str | None:
        """The picture that an address of this participant means."""
        return self._pictures.get(opaque)

    def _current(self, done: frozenset[int]) -> int | None:
        items = range(len(self.participant.items))
        return next((place for place in items if place not in done), None)

    def _told(self, place: int) -> dict[str, Any]:
        item = self.participant.items[place]
        image = self.study.images[item.image]
        beside = self.study.beside(image)
        return {
            "id": self._name("item", place),
            "kind": "practice" if item.kind == "practice" else "item",
            **{
                role: self._address(place, role) if role in beside else None
                for role in ("input", "reference")
            },
            "slots": [
                {
                    "id": LETTERS[number],
                    "label": LETTERS[number].upper(),
                    "image": self._address(place, LETTERS[number]),
                }
                for number in range(len(item.slots))
            ],
            "width": image.width,
            "height": image.height,
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self._name("item", place): place for place in range(len(self.participant.items))}

    @cached_property
    def _pictures(self) -> dict[str, str]:
        found = {}
        for place, item in enumerate(self.participant.items):
            shown = self.study.beside(self.study.images[item.image])
            for letter, slot in zip(LETTERS, item.slots, strict=False):
                shown[letter] = self.study.picture_in(item, slot)
            for role, picture in shown.items():
                found[self._name(f"picture-{role}", place)] = picture
        return found

    def _address(self, place: int, role: str) -> str:
        return f"/p/{self._token}/i/{self._name(f'picture-{role}', place)}"

    def _name(self, what: str, place: int) -> str:
        told = hmac.digest(self._names, f"{what}:{place}".encode(), "sha256")
        return base64.urlsafe_b64encode(told[:18]).decode()

    # -- what is answered ---------------------------------------------------------------------

    def agree(self, answers: Answers, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take the participant's consent. Raises InputError."""
        if body.get("agree") is not True:
            raise InputError("only {'agree': true} starts the session.")
        answers.consent(self.participant.id)
        return self.state(answers)

    def answer(self, answers: Answers, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take an answer. It is on the disk when this returns. Raises InputError."""
        name = body.get("item")
        place = self._places.get(name) if isinstance(name, str) else None
        if place is None:
            raise InputError("there is no such item in this session; load the page again.")
        if not answers.consented(self.participant.id):
            raise InputError("the consent is missing; load the page again.")
        item = self.participant.items[place]
        done = answers.answered(self.participant.id)
        if place in done:
            return {"saved": False, "already": True, "feedback": None, **self.state(answers)}
        if place != self._current(done):
            raise InputError("this item is not the one that is asked now; load the page again.")
        values = checked_values(self.study, item, body.get("values"))
        passed = passes(self.study, item, values)
        saved = answers.add(
            self.participant.id,
            place,
            values,
            milliseconds=_milliseconds(body.get("milliseconds")),
            comment=_comment(body.get("comment")),
            passed=passed,
        )
        told = {"saved": True} if saved else {"saved": False, "already": True}
        return {**told, "feedback": feedback(item, passed), **self.state(answers)}


def own_code(key: bytes, participant: str) -> str:
    """The completion code of one participant."""
    told = hmac.digest(key, f"code:{participant}".encode(), "sha256")
    return base64.b32encode(told).decode()[:10]


def checked_values(study: Study, item: Item, given: object) -> dict[str, Any]:
    """The answer to a page, complete and on the scale. Raises InputError with what is wrong."""
    letters = LETTERS[: len(item.slots)]
    if not isinstance(given, dict):
        raise InputError("values are missing: an object with one answer per picture is expected.")
    if study.design == "pairs":
        allowed = (*letters, *(("tie",) if study.ties else ()))
        choice = given.get("choice")
        if set(given) != {"choice"} or choice not in allowed:
            raise InputError(f"the choice must be one of {', '.join(allowed)}.")
        return {"choice": choice}
    if set(given) != set(letters):
        raise InputError(f"every picture needs an answer: {', '.join(letters.upper())}.")
    if study.design == "labels":
        asked = {question.id for question in study.questions}
        for letter, told in given.items():
            if not isinstance(told, dict) or set(told) != asked:
                raise InputError(f"picture {letter.upper()} needs yes or no for every question.")
            if not all(isinstance(value, bool) for value in told.values()):
                raise InputError(f"picture {letter.upper()}: the answers are true or false.")
        return given
    return {letter: _score(study.scale, letter, given[letter]) for letter in letters}


def _score(scale: Scale, letter: str, value: object) -> float:
    # The size is looked at before it becomes a float: an integer may have a thousand digits.
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e9:
        score = float(value)
        if scale.has(score):
            return scale.nearest(score)
    raise InputError(
        f"picture {letter.upper()}: a score is {scale.low:g} to {scale.high:g} in steps of "
        f"{scale.step:g}."
    )


def passes(study: Study, item: Item, values: Mapping[str, Any]) -> bool | None:
    """Whether a page with a known answer was answered so; None where none is known."""
    if item.kind not in ("practice", "attention"):
        return None
    where = {slot: letter for letter, slot in zip(LETTERS, item.slots, strict=False)}
    if study.design == "pairs":
        return bool(values["choice"] == where[REFERENCE])
    if study.design == "labels":
        return bool(values[where[OTHER]]["infidelity"])
    broken = values[where[BROKEN]]
    if REFERENCE in where:
        lowest = all(broken <= value for value in values.values())
        return bool(lowest and values[where[REFERENCE]] > broken)
    return bool(broken <= study.scale.low + 0.3 * (study.scale.high - study.scale.low))


def feedback(item: Item, passed: bool | None) -> str | None:
    """What a participant is told after a practice page."""
    if item.kind != "practice":
        return None
    where = {slot: letter.upper() for letter, slot in zip(LETTERS, item.slots, strict=False)}
    opening = "Right: " if passed else "Look again: "
    if OTHER in where:
        return f"{opening}picture {where[OTHER]} shows another scene altogether."
    if REFERENCE in where:
        return (
            f"{opening}picture {where[BROKEN]} was destroyed on purpose, and picture "
            f"{where[REFERENCE]} was not touched."
        )
    return f"{opening}this picture was destroyed on purpose."


def _milliseconds(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    return int(min(max(value, 0), LONGEST_PAGE))


def _comment(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_COMMENT:
        raise InputError(f"a comment is a text of at most {LONGEST_COMMENT} letters.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError("the comment has letters that are no Unicode text.") from None
    # No keyboard types them; a NUL ends a text for many a program, and hides a formula's "=".
    return value.translate(CONTROLS).strip() or None
