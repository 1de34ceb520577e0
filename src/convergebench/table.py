"""One small table that shows itself well: in a terminal, in a notebook, as text, as records."""

from __future__ import annotations

import contextlib
import html
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell = str | int | float | None

FORMULA: Final = r"[\t\r\n]|\s*[=+\-@]"
"""How texts begin that spreadsheets take for formulas, as a pattern."""

NARROWEST: Final = 14
"""Letters that a column of words is never made narrower than."""
_WIDTH: ContextVar[int | None] = ContextVar("width", default=None)


def defused(text: str) -> str:
    """A text for a CSV file: one that spreadsheets would take for a formula gets an apostrophe."""
    return f"'{text}" if re.match(FORMULA, text) else text


@contextlib.contextmanager
def fitting(width: int) -> Iterator[None]:
    """While in the block, tables as text are made to fit into so many letters, where they can."""
    before = _WIDTH.set(width)
    try:
        yield
    finally:
        _WIDTH.reset(before)


@dataclass(frozen=True)
class Table:
    """Rows under named columns, a title above and notes below. Numbers are right-aligned."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = field(default_factory=tuple)

    def __str__(self) -> str:
        lines = [[self._text(cell) for cell in row] for row in (self.columns, *self.rows)]
        right = [self._numeric(i) for i in range(len(self.columns))]
        most = _WIDTH.get()
        widths = self._widths(lines, right, most)
        head, *drawn = [_drawn(line, widths, right) for line in lines]
        rule = "  ".join("─" * width for width in widths)
        around = [_wrapped(text, most) for text in (self.title, *self.notes)]
        return "\n".join([around[0], head, rule, *drawn, *around[1:]])

    @staticmethod
    def _widths(lines: list[list[str]], right: list[bool], most: int | None) -> list[int]:
        """The columns' widths. Where that is too much, headings and words are broken into lines."""
        full = [max(len(line[i]) for line in lines) for i in range(len(right))]
        if most is None:
            return full
        cells = [max((len(line[i]) for line in lines[1:]), default=0) for i in range(len(right))]
        words = [max(map(len, name.split()), default=0) for name in lines[0]]
        least = [
            max(cell, word) if flush else min(wide, max(NARROWEST, word))
            for wide, cell, word, flush in zip(full, cells, words, right, strict=True)
        ]
        widths = list(full)
        while sum(widths) + 2 * (len(widths) - 1) > most:
            loose = [i for i, width in enumerate(widths) if width > least[i]]
            if not loose:
                break
            # Headings over numbers give way first: words are harder to read in pieces.
            widths[max(loose, key=lambda i: (right[i], widths[i]))] -= 1
        return widths

    def __rich__(self) -> RenderableType:
        from rich import box
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=box.SIMPLE_HEAD)
        for index, name in enumerate(self.columns):
            table.add_column(
                Text(name), justify="right" if self._numeric(index) else "left", overflow="fold"
            )
        for row in self.rows:
            table.add_row(*(Text(self._text(cell)) for cell in row))
        notes = (Text(note) for note in self.notes)
        return Group(Text(self.title, style="bold"), *([table] if self.rows else []), *notes)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(self._text(c))}</td>" for c in row) + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{notes}"
        )

    def records(self) -> list[dict[str, Cell]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def _numeric(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] not in (None, "")]
        return bool(cells) and all(
            isinstance(c, int | float) or c[:1].isdigit() or c[:1] in "-−<>≈$+∞"
            for c in cells
            if c is not None
        )

    @staticmethod
    def _text(cell: Cell) -> str:
        if cell is None:
            return "–"
        if isinstance(cell, float):
            return f"{cell:.4g}"
        return f"{cell:,}" if isinstance(cell, int) else cell


def _drawn(line: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """One row, over as many lines as its longest cell needs."""
    cells = [_pieces(text, width) for text, width in zip(line, widths, strict=True)]
    rows = []
    for number in range(max(map(len, cells), default=1)):
        pieces = [cell[number] if number < len(cell) else "" for cell in cells]
        rows.append(
            "  ".join(
                piece.rjust(width) if flush else piece.ljust(width)
                for piece, width, flush in zip(pieces, widths, right, strict=True)
            ).rstrip()
        )
    return "\n".join(rows)


def _pieces(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, max(1, width), break_on_hyphens=True) or [""]


def _wrapped(text: str, width: int | None) -> str:
    if width is None:
        return text
    lines = [
        textwrap.wrap(line, width, break_on_hyphens=False) or [""] for line in text.split("\n")
    ]
    return "\n".join(piece for line in lines for piece in line)
