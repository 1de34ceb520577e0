"""One small table that shows itself well: in a terminal, in a notebook, as text, as records."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows under named columns, a title above and notes below. Numbers are right-aligned."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = field(default_factory=tuple)

    def __str__(self) -> str:
        lines = [[self._text(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        right = [self._numeric(i) for i in range(len(self.columns))]
        drawn = [
            "  ".join(
                cell.rjust(width) if flush else cell.ljust(width)
                for cell, width, flush in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        ]
        rule = "  ".join("─" * width for width in widths)
        return "\n".join([self.title, drawn[0], rule, *drawn[1:], *self.notes])

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
