"""What judges are asked: a versioned template, its fillings, pictures, and the form of the answer.

The answer is always a JSON object with the key `answer` (and `reason` before it, where one is
wanted). Its schema is kept to what every provider's structured answers know; limits of numbers are
told in words and checked here, because not all of them do.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from convergebench.cycle import Name, Record
from convergebench.errors import SettingsError
from convergebench.frame import Frame, encode, resize, sha256, sniff

FORM: Final = 1
"""Raised whenever the same template would be asked, or its answer read, in another way."""
MIME: Final = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}
_PLACE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_THOUGHT: Final = re.compile(
    r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE
)

_THOUGHT_ENDS: Final = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_BEGUN: Final = re.compile(r'\{\s*"')


class BadAnswer(Exception):
    """An answer that is none: `malformed` (no JSON object) or `off-schema` (another one)."""

    def __init__(self, kind: Literal["malformed", "off-schema"], message: str) -> None:
        super().__init__(message)
        self.kind: Final = kind


class YesNo(Record):
    """Yes or no."""

    kind: Literal["yes-no"] = "yes-no"

    @property
    def words(self) -> str:
        """What to answer, in words."""
        return '"yes" or "no"'

    @property
    def schema_(self) -> dict[str, Any]:
        """The JSON schema of the answer itself."""
        return {"type": "string", "enum": ["yes", "no"]}

    def read(self, value: Any) -> str:
        """A legal answer. Raises BadAnswer."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str) and value.strip().lower() in ("yes", "no"):
            return value.strip().lower()
        raise BadAnswer("off-schema", f"expected yes or no, got {_short(value)}")

    def turned(self, answer: str | float) -> str | float:
        """The same answer when the two pictures change places."""
        return answer


class Number(Record):
    """A number from `low` to `high`."""

    kind: Literal["number"] = "number"
    low: float
    high: float
    whole: bool = False

    @model_validator(mode="after")
    def _range(self) -> Self:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")
        return self

    @property
    def words(self) -> str:
        """What to answer, in words."""
        return f"a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}"

    @property
    def schema_(self) -> dict[str, Any]:
        """The JSON schema of the answer itself."""
        return {"type": "integer" if self.whole else "number", "description": self.words}

    def read(self, value: Any) -> float:
        """A legal answer. Raises BadAnswer: what is out of range is not moved into it."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high:
            raise BadAnswer("off-schema", f"expected {self.words}, got {_short(value)}")
        if self.whole and value != int(value):
            raise BadAnswer("off-schema", f"expected {self.words}, got {_short(value)}")
        return float(value)

    def turned(self, answer: str | float) -> str | float:
        """The same answer when the two pictures change places: a number is about both."""
        return answer


class Choice(Record):
    """One of several words.

    Attributes:
        options: The words.
        turn: For pairwise questions: which word means which when the pictures change places, as
            `{"first": "second", "second": "first"}`; words left out stay.
    """

    kind: Literal["choice"] = "choice"
    options: Annotated[tuple[str, ...], Field(min_length=2)]
    turn: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.options)) != len(self.options):
            raise ValueError("the options must differ")
        strange = ({*self.turn} | {*self.turn.values()}) - {*self.options}
        if strange or any(self.turned(self.turned(word)) != word for word in self.options):
            raise ValueError("turn must exchange options in pairs")
        return self

    @property
    def words(self) -> str:
        """What to answer, in words."""
        return " or ".join(json.dumps(word, ensure_ascii=False) for word in self.options)

    @property
    def schema_(self) -> dict[str, Any]:
        """The JSON schema of the answer itself."""
        return {"type": "string", "enum": list(self.options)}

    def read(self, value: Any) -> str:
        """A legal answer. Raises BadAnswer."""
        for word in self.options:
            if isinstance(value, str) and value.strip().lower() == word.lower():
                return word
        raise BadAnswer("off-schema", f"expected {self.words}, got {_short(value)}")

    def turned(self, answer: str | float) -> str | float:
        """The same answer when the two pictures change places."""
        return self.turn.get(answer, answer) if isinstance(answer, str) else answer


Answers = Annotated[YesNo | Number | Choice, Field(discriminator="kind")]


class Template(Record):
    """A question that is asked of many pictures.

    Attributes:
        id: Its name.
        version: Raised when its text or form changes.
        text: The question; `{name}` is filled in.
        answer: What may be answered.
        pairwise: Asked in both orders of its two pictures.
        reason: Whether the judge is to say why; costs tokens.
        max_side: Pictures with a longer side are scaled down to it; None sends them as they are.
        verbatim: The text goes without a word of ours and without a schema, as a paper's template
            must; the answer is then the one word that it asks for.
    """

    id: Name
    version: Annotated[int, Field(ge=1)]
    text: Annotated[str, Field(min_length=1)]
    answer: Answers
    pairwise: bool = False
    reason: bool = False
    max_side: Annotated[int, Field(ge=16)] | None = None
    verbatim: bool = False

    @model_validator(mode="after")
    def _one_word(self) -> Self:
        if self.verbatim and (self.reason or isinstance(self.answer, Number)):
            raise ValueError("a verbatim template is answered by one word, without a reason")
        return self

    @property
    def schema_(self) -> dict[str, Any] | None:
        """The JSON schema of an answer; None where a word is asked for."""
        if self.verbatim:
            return None
        properties: dict[str, Any] = {"reason": {"type": "string"}} if self.reason else {}
        properties["answer"] = self.answer.schema_
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def filled(self, values: Mapping[str, str]) -> str:
        """The whole text that is sent. Raises SettingsError."""
        wanted = set(_PLACE.findall(self.text))
        if wanted != set(values):
            missing, strange = sorted(wanted - set(values)), sorted(set(values) - wanted)
            problem = f"needs {missing[0]!r}" if missing else f"has no place for {strange[0]!r}"
            raise SettingsError(f"template {self.id}@{self.version} {problem}")
        # In one pass, so that braces in a filling are left as they are.
        text = _PLACE.sub(lambda found: values[found[1]], self.text)
        if self.verbatim:
            return text
        reason = '"reason": one sentence, ' if self.reason else ""
        return (
            f"{text.rstrip()}\n\nAnswer with one JSON object and nothing else: "
            f'{{{reason}"answer": {self.answer.words}}}.'
        )

    def read(self, text: str) -> tuple[str | float, str]:
        """The answer in a model's words, and its reason. Raises BadAnswer."""
        if self.verbatim:
            word = without_thoughts(text).strip(" \t\r\n.!\"'`*“”‘’")
            return self.answer.read(word), ""
        found = json_object(text)
        if "answer" not in found:
            raise BadAnswer("off-schema", f"there is no 'answer' in {_short(found)}")
        reason = found.get("reason")
        return self.answer.read(found["answer"]), reason if isinstance(reason, str) else ""


@dataclass(frozen=True)
class Sent:
    """A picture as it is sent."""

    data: bytes
    mime: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes."""
        return sha256(self.data)


@dataclass(frozen=True)
class Question:
    """A template with its fillings and pictures.

    Attributes:
        template: What is asked.
        values: What its places are filled with.
        pictures: What the judge is shown, in this order.
    """

    template: Template
    values: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Frame, ...] = ()

    def __post_init__(self) -> None:
        if self.template.pairwise and len(self.pictures) != 2:
            raise SettingsError(
                f"template {self.template.id} compares two pictures, got {len(self.pictures)}"
            )

    @cached_property
    def text(self) -> str:
        """The whole text that is sent. Raises SettingsError."""
        return self.template.filled(self.values)

    @cached_property
    def sent(self) -> tuple[Sent, ...]:
        """The pictures as they are sent: their own bytes wherever possible."""
        return tuple(_sent(frame, self.template.max_side) for frame in self.pictures)


def _sent(frame: Frame, most: int | None) -> Sent:
    kind = sniff(frame.data) or ""
    width, height = frame.facts.width, frame.facts.height
    if most is not None and max(width, height) > most:
        scale = most / max(width, height)
        small = resize(frame.pixels, max(1, round(width * scale)), max(1, round(height * scale)))
        return Sent(encode(small), MIME["png"])
    if kind in MIME:
        return Sent(frame.data, MIME[kind])
    return Sent(encode(frame.pixels), MIME["png"])


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in a model's words: the whole of them, or the only one among them.

    Thoughts and code fences are left out. Raises BadAnswer.
    """
    said = without_thoughts(text)
    decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)
    found: list[dict[str, Any]] = []
    at = said.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(said, at)
        except (ValueError, RecursionError):
            if _BEGUN.match(said, at):  # what is inside half an object is not the answer
                raise BadAnswer("malformed", f"a broken JSON object in {_short(said)}") from None
            at = said.find("{", at + 1)
            continue
        found.append(value)
        at = said.find("{", end)
    different = [one for n, one in enumerate(found) if one not in found[:n]]
    if len(different) != 1:
        what = f"{len(different)} JSON objects" if different else "no JSON object"
        raise BadAnswer("malformed", f"{what} in {_short(said)}")
    return different[0]


def without_thoughts(text: str) -> str:
    """A model's words without what it thought aloud."""
    said = _THOUGHT.sub(" ", text).strip()
    return _THOUGHT_ENDS.split(said)[-1]  # a server's own template may hold the beginning


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once; of two answers neither counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= 120 else text[:119] + "…")
