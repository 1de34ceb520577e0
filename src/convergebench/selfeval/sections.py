"""A reasoning summary, split into its sections.

Providers send Markdown: a section begins with a bold line or a heading. Where all marks were lost
on the way, a short line without a full stop, alone between two paragraphs, is a title.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_BOLD: Final = re.compile(
    r"^\s*(?:\*\*|__)(?P<title>[^*_\n]{1,120}?)(?:\*\*|__)\s*:?\s*(?P<rest>.*)$"
)
_HEADING: Final = re.compile(r"^\s*#{1,6}\s+(?P<title>.+?)\s*#*\s*$")
_LONGEST: Final = 80
"""Letters of a title without marks."""


@dataclass(frozen=True)
class Section:
    """A title, empty before the first, and what stands under it."""

    title: str
    text: str


def sections(reasoning: str) -> tuple[Section, ...]:
    """The sections of a summary, in order; a text without titles is one section."""
    lines = reasoning.replace("\r\n", "\n").split("\n")
    marked = any(_title(line) for line in lines)
    found: list[tuple[str, list[str]]] = [("", [])]
    for index, line in enumerate(lines):
        title = _title(line) if marked else _bare_title(lines, index)
        if title is None:
            found[-1][1].append(line)
        else:
            found.append((title[0], [title[1]] if title[1] else []))
    told = [Section(title, "\n".join(text).strip()) for title, text in found]
    return tuple(section for section in told if section.title or section.text)


def _title(line: str) -> tuple[str, str] | None:
    """A marked title and what follows it on its line."""
    heading = _HEADING.match(line)
    if heading:
        return heading["title"].strip("*_ "), ""
    bold = _BOLD.match(line)
    # A sentence that begins with a bold word is no title.
    if bold and not re.match(r"[a-z,;]", bold["rest"]):
        return bold["title"].strip(" :"), bold["rest"].strip()
    return None


def _bare_title(lines: list[str], index: int) -> tuple[str, str] | None:
    line = lines[index].strip()
    if not line or len(line) > _LONGEST or line[-1] in ".,;:!?…" or not line[0].isupper():
        return None
    before = index == 0 or not lines[index - 1].strip() or lines[index - 1].strip()[-1] in ".!?…"
    after = next((other.strip() for other in lines[index + 1 :] if other.strip()), "")
    return (line, "") if before and len(after) > len(line) else None
