r"""Any other layout: a path pattern with named fields says what each file is.

    {editor}/{source}/step_{step}.png        one folder per editor and source
    {source:portrait_\d+}_{cycle}/{step}.*   a field may say what it matches
    **/{source}-{round}-{phase}.png          `*` within a folder, `**` across folders

`{step}` and `{round}` are numbers, `{repeat}` is a number or a letter; `{phase}` is forward or
backward. A path that can be read in two ways is refused, with both readings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from pydantic import ValidationError

from convergebench.chain import Settings
from convergebench.cycle import CYCLE_EDITS
from convergebench.errors import ImportProblem, UnknownName, explain
from convergebench.importer.found import (
    Finds,
    FoundCycle,
    FoundFrame,
    FoundSource,
    Layout,
    Look,
    Place,
    Track,
    Wishes,
)

NUMBERS: Final = {"step": "[0-9]+", "round": "[0-9]+", "repeat": "[0-9]+|[A-Za-z]"}
AXES: Final = ("phrasing", "seed", "temperature", "resolution", "session")
FIELDS: Final = ("editor", "source", "cycle", "phase", *NUMBERS, *AXES)
_PIECE: Final = re.compile(
    r"\{([^{}:]*)(?::((?:[^{}]|\{[\d,]*\})*))?\}|(\*\*/?)|(\*)|(\?)|([^{*?]+|\{)"
)


@dataclass(frozen=True)
class Pattern:
    """A pattern, ready to match paths; `lazy` reads text fields as short as possible."""

    text: str
    fields: frozenset[str]
    greedy: re.Pattern[str]
    lazy: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern. Raises ImportProblem, UnknownName."""
        if text.count("{") != text.count("}"):
            raise ImportProblem(f"pattern {text!r} has a brace that is not closed")
        greedy, lazy, fields = "", "", []
        for piece in _PIECE.finditer(text):
            name, matching, across, within, single, literal = piece.groups()
            if name is not None:
                if name not in FIELDS:
                    raise UnknownName("field", name, FIELDS, f"Pattern: {text}")
                if name in fields:
                    raise ImportProblem(f"pattern {text!r} has the field {{{name}}} twice")
                fields.append(name)
                wide, short = _field(name, matching)
                greedy, lazy = greedy + wide, lazy + short
            else:
                wild = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
                plain = wild.get(across or within or single or "") or re.escape(literal or "")
                greedy, lazy = greedy + plain, lazy + plain
        try:
            return cls(text, frozenset(fields), re.compile(greedy), re.compile(lazy))
        except re.error as error:
            raise ImportProblem(f"pattern {text!r} cannot be read: {error}") from error

    def match(self, path: str) -> dict[str, str] | None:
        """The fields of a path, or None. Raises ImportProblem when there are two readings."""
        found, other = self.greedy.fullmatch(path), self.lazy.fullmatch(path)
        if found is None or other is None:
            return None
        if found.groupdict() != other.groupdict():
            name = next(n for n, value in found.groupdict().items() if value != other[n])
            raise ImportProblem(
                f"pattern {self.text!r} reads {path!r} in two ways: {{{name}}} could be "
                f"{other[name]!r} or {found[name]!r}. Say what it matches, as in "
                f"{{{name}:[a-z]+_[0-9]+}}."
            )
        return found.groupdict()


def _field(name: str, matching: str | None) -> tuple[str, str]:
    if name in NUMBERS:
        return (f"(?P<{name}>{matching or NUMBERS[name]})",) * 2
    if name == "phase":
        return (f"(?P<{name}>{matching or 'forward|backward'})",) * 2
    if not matching:
        return f"(?P<{name}>[^/]+)", f"(?P<{name}>[^/]+?)"
    return (f"(?P<{name}>{matching})",) * 2


def _read(look: Look, wishes: Wishes) -> Finds:
    if wishes.pattern is None:
        raise ImportProblem(
            "layout 'pattern' needs --pattern, as in '{editor}/{source}/{step}.png'"
        )
    pattern = Pattern.parse(wishes.pattern)
    if not pattern.fields & {"step", "round"} and wishes.kind != "restore":
        raise ImportProblem(
            f"pattern {wishes.pattern!r} has neither {{step}} nor {{round}}, so frames have no "
            "order. For one result per picture say --kind restore."
        )
    if "phase" in pattern.fields and "round" not in pattern.fields:
        raise ImportProblem(f"pattern {wishes.pattern!r}: {{phase}} needs {{round}} beside it")
    kind = wishes.kind or ("round-trip" if "phase" in pattern.fields else "replicate")
    finds = Finds()
    if wishes.kind is None:
        finds.notes.append(f"The cycles are taken as {kind}; --kind says otherwise.")
    used: set[str] = set()
    sources = _apart(look, wishes.source_pattern, "--sources", used)
    truths = _apart(look, wishes.truth_pattern, "--truths", used)
    for name in sources | truths:
        finds.sources[name] = FoundSource(sources.get(name), truths.get(name))
    for path in look.files:
        fields = pattern.match(path) if path not in used else None
        if fields is None:
            finds.unread += [path] if path not in used else []
            continue
        track = _track(fields, wishes, look, kind)
        step = _step(fields, kind, wishes)
        if step < 0:
            raise ImportProblem(
                f"{path} has number {fields.get('step') or fields.get('round')}, which is before "
                f"--first {wishes.first}"
            )
        finds.frames.append(FoundFrame(track, step, look.place(path)))
        finds.cycles.setdefault(track.cycle, FoundCycle(kind, wishes.prompts))
    if not finds.frames:
        raise ImportProblem(_nothing(look.files, wishes.pattern))
    return finds


def _apart(look: Look, text: str | None, flag: str, used: set[str]) -> dict[str, Place]:
    """Pictures that stand apart from the chains, by the name of their source; adds to `used`."""
    if text is None:
        return {}
    pattern = Pattern.parse(text)
    if pattern.fields != {"source"}:
        raise ImportProblem(f"{flag} {text!r} must have the field {{source}} and no other")
    found: dict[str, Place] = {}
    for path in look.files:
        fields = pattern.match(path)
        if fields is None:
            continue
        place = look.place(path)
        before = found.setdefault(fields["source"], place)
        if before != place and before.read() != place.read():
            raise ImportProblem(
                f"{flag} {text!r} finds two different pictures of source {fields['source']!r}: "
                f"{before.name} and {path}"
            )
        used.add(path)
    if not found:
        raise ImportProblem(_nothing(look.files, text))
    return found


def _track(fields: dict[str, str], wishes: Wishes, look: Look, kind: str) -> Track:
    settings = _settings(tuple((name, fields[name]) for name in AXES if name in fields))
    return Track(
        source=fields.get("source") or wishes.source or look.root.stem,
        cycle=fields.get("cycle") or wishes.cycle or kind,
        editor=fields.get("editor") or wishes.editor or look.root.name,
        repeat=_repeat(fields.get("repeat", "0")),
        settings=settings,
    )


def _repeat(text: str) -> int:
    """A repeat's number; letters count from A, which is 0."""
    if text.isdecimal():
        return int(text)
    if len(text) == 1 and "a" <= text.lower() <= "z":
        return ord(text.lower()) - ord("a")
    raise ImportProblem(f"a repeat is a number or a letter, got {text!r} for {{repeat}}")


@cache
def _settings(axes: tuple[tuple[str, str], ...]) -> Settings:
    try:
        return Settings.model_validate(dict(axes))
    except ValidationError as error:
        raise ImportProblem(
            f"the pattern's fields are no legal settings: {explain(error)}"
        ) from error


def _step(fields: dict[str, str], kind: str, wishes: Wishes) -> int:
    if "step" in fields:
        return _number(fields, "step") - wishes.first
    if "round" not in fields:
        return 1
    number = _number(fields, "round") - wishes.first
    if "phase" not in fields:
        return number * CYCLE_EDITS.get(kind, max(1, len(wishes.prompts)))
    if fields["phase"] not in ("forward", "backward"):
        raise ImportProblem(
            f"a phase is called forward or backward, got {fields['phase']!r}. Import the two with "
            "a pattern each, or with {step}."
        )
    return 2 * number - (fields["phase"] == "forward")


def _number(fields: dict[str, str], name: str) -> int:
    if not fields[name].isdecimal():
        raise ImportProblem(f"a {name} is a number, got {fields[name]!r} for {{{name}}}")
    return int(fields[name])


def _nothing(files: Iterable[str], pattern: str) -> str:
    names = list(files)
    if not names:
        return f"pattern {pattern!r} matches nothing: the folder is empty"
    fixed = re.sub(r"\{[^{}]*\}", "*", pattern)
    near = difflib.get_close_matches(fixed, names[:5000], n=1, cutoff=0.0)
    hint = ""
    if any(f"{{{name}" in pattern for name in NUMBERS):
        hint = " {step} and {round} are numbers, {repeat} is a number or one letter."
    if pattern.startswith(("/", "..")):
        hint = " A pattern begins below the folder."
    return (
        f"pattern {pattern!r} matches none of {len(names)} files; the most alike is "
        f"{(near or names)[0]}.{hint}"
    )


PATTERN: Final = Layout(
    name="pattern",
    summary="any layout, told by --pattern with named fields: '{editor}/{source}/step_{step}.png'",
    recognise=lambda _look: "",
    read=_read,
)
