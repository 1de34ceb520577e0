"""Options of the reference editors: named, typed, bounded, and documented in one place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from convergebench.errors import SettingsError

Value = int | float | str


@dataclass(frozen=True)
class Option:
    """One option. Its type is that of its default; text options list their choices.

    Attributes:
        name: As written on the command line.
        default: Value when it is not given.
        meaning: One line for lists.
        low: Smallest value, for numbers.
        high: Largest value, for numbers.
        choices: Legal values, for texts.
    """

    name: str
    default: Value
    meaning: str
    low: float = 0
    high: float = 1
    choices: tuple[str, ...] = ()

    def parse(self, text: str) -> Value:
        """The value that a text stands for. Raises ValueError."""
        if self.choices:
            if text not in self.choices:
                raise ValueError(text)
            return text
        number = int(text) if isinstance(self.default, int) else float(text)
        if not self.low <= number <= self.high:  # which NaN is not
            raise ValueError(text)
        return number

    @property
    def expected(self) -> str:
        """What a legal value is, in words."""
        if self.choices:
            return " or ".join(self.choices)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


def read_options(
    editor: str, known: Iterable[Option], given: Mapping[str, str]
) -> dict[str, Value]:
    """All options of an editor, the given ones read and the others at their defaults.

    Raises:
        SettingsError: There is no such option, or its value is not legal.
    """
    options = {option.name: option for option in known}
    values = {name: option.default for name, option in options.items()}
    for name, text in given.items():
        if name not in options:
            raise SettingsError(f"editor {editor} has no option {name!r}. {_offer(name, options)}")
        try:
            values[name] = options[name].parse(str(text).strip())
        except ValueError:
            raise SettingsError(
                f"editor {editor}: option {name} must be {options[name].expected}, got {text!r}."
            ) from None
    return values


def _offer(name: str, options: Mapping[str, Option]) -> str:
    near = difflib.get_close_matches(name, options, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"It has {', '.join(options)}." if options else "It has none."
