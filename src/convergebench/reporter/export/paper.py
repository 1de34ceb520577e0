"""Pages of paper drawn as SVG: text, tables and charts that flow from one page to the next.

Widths of texts are those of Helvetica, whose equal, Liberation Sans, vl-convert carries: what is
measured here is what is drawn there, on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from convergebench.reporter.export.sheets import Cell, Column, Estimate, Sheet, printed, spans

WIDTH: Final = 842.0
HEIGHT: Final = 595.0
MARGIN: Final = 38.0
INNER: Final = WIDTH - 2 * MARGIN
BOTTOM: Final = HEIGHT - MARGIN - 10
FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"
INK: Final = "#1d2126"
QUIET: Final = "#666c75"
RULE: Final = "#c9ced6"
LARGEST, SMALLEST = 9.0, 4.5
"""Sizes of type in tables, in points."""

HALF: Final = 212.0
"""Height of charts of which two rows fill a page."""

TALL: Final = 480.0
"""Charts from this height on may fill one alone."""

GAP: Final = 10.0
LONGEST: Final = 190.0
"""Of texts in tables before they are broken, in points at the largest size."""

WIDE: Final = 0.6
"""Em of signs that are not in the list: more than most have."""

_GROUPS: Final = {
    0.191: "'", 0.222: "ijl", 0.26: "|", 0.278: " !,./:;I[\\]ft", 0.333: "()-`r", 0.334: "{}",
    0.355: '"', 0.389: "*", 0.469: "^", 0.5: "ckJsvxyz", 0.556: "#$0123456789?L_abdeghnopqu–",
    0.584: "+<=>~−×", 0.611: "FTZ", 0.667: "&ABEKPSVXY", 0.722: "CDHNRUw", 0.778: "GOQ",
    0.833: "Mm", 0.889: "%", 0.944: "W", 1.015: "@", 1.0: "…—",
}  # fmt: skip
WIDTHS: Final = {sign: width for width, signs in _GROUPS.items() for sign in signs}
BOLDER: Final = 1.08
"""How much wider bold type runs, at most."""

SVG: Final = "{http://www.w3.org/2000/svg}"
BAD: Final = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Signs that XML cannot hold."""


def measure(text: str, size: float, bold: bool = False) -> float:
    """The width of a text."""
    return (
        sum(WIDTHS.get(sign, WIDE if sign < "\u2e80" else 1.0) for sign in text)
        * size
        * (BOLDER if bold else 1)
    )


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text in lines no wider than this; a word that is too long is broken."""
    lines: list[str] = [""]
    for word in text.split():
        for part in _broken(word, width, size):
            joined = f"{lines[-1]} {part}".strip()
            if measure(joined, size) <= width:
                lines[-1] = joined
            else:
                lines.append(part)
    return lines


def _broken(word: str, width: float, size: float) -> list[str]:
    parts = [""]
    for sign in word:
        if parts[-1] and measure(parts[-1] + sign, size) > width:
            parts.append("")
        parts[-1] += sign
    return parts


@dataclass
class Paper:
    """Pages being written.

    Attributes:
        footer: Stands at the foot of every page, before its number.
        pages: What is on each page.
        y: How far down the last page is full.
    """

    footer: str
    pages: list[list[str]] = field(default_factory=lambda: [[]])
    y: float = MARGIN
    drawn: int = 0

    def svgs(self) -> list[str]:
        """The pages."""
        found = []
        for number, parts in enumerate(self.pages, 1):
            foot = _text(self.footer, MARGIN, HEIGHT - 22, 7, fill=QUIET)
            of = f"{number} of {len(self.pages)}"
            foot += _text(of, WIDTH - MARGIN, HEIGHT - 22, 7, fill=QUIET, end=True)
            found.append(
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{HEIGHT:g}" '
                f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}"><rect width="{WIDTH:g}" height="{HEIGHT:g}" '
                f'fill="white"/>{"".join(parts)}{foot}</svg>'
            )
        return found

    def turn(self) -> None:
        """A new page, unless this one is empty."""
        if self.pages[-1]:
            self.pages.append([])
        self.y = MARGIN

    def room(self, height: float) -> None:
        """A new page, unless so much has room on this one."""
        if self.y + height > BOTTOM:
            self.turn()

    def text(self, text: str, size: float, *, bold: bool = False, fill: str = INK) -> None:
        """A paragraph."""
        for line in wrapped(text, INNER / (BOLDER if bold else 1), size):
            self.room(size * 1.4)
            self.y += size * 1.4
            self._put(_text(line, MARGIN, self.y - size * 0.3, size, bold=bold, fill=fill))

    def heading(self, text: str, size: float = 13, below: float = 60) -> None:
        """A heading that stays with what is below it."""
        self.room(size * 2 + below)
        self.y += 6 if self.pages[-1] else 0
        self.text(text, size, bold=True)
        self.y += 4

    def points(self, lines: Iterable[str], size: float = 9) -> None:
        """A list."""
        for line in lines:
            self.text(f"– {line}", size)
            self.y += 1.5

    def _put(self, svg: str) -> None:
        self.pages[-1].append(svg)

    def rule(
        self, colour: str = RULE, thick: float = 0.6, left: float = 0, right: float = INNER
    ) -> None:
        """A line across."""
        self._put(
            f'<line x1="{MARGIN + left:.2f}" x2="{MARGIN + right:.2f}" y1="{self.y:.2f}" '
            f'y2="{self.y:.2f}" stroke="{colour}" stroke-width="{thick}"/>'
        )

    def figures(self, stills: Sequence[str], titles: Sequence[str], across: int = 2) -> None:
        """Charts beside each other, each under its title."""
        room = (INNER - (across - 1) * 2 * GAP) / across
        for first in range(0, len(stills), across):
            some = [_sized(svg) for svg in stills[first : first + across]]
            tallest = BOTTOM - MARGIN - 40
            scales = [min(room / w, (HALF if h < TALL else tallest) / h) for _, w, h in some]
            height = max(h * s for (_, _, h), s in zip(some, scales, strict=True))
            self.room(height + 22)
            for place, ((root, w, h), scale) in enumerate(zip(some, scales, strict=True)):
                x = MARGIN + place * (room + 2 * GAP)
                self._put(_text(titles[first + place], x, self.y + 11, 10, bold=True))
                self.drawn += 1
                self._put(_placed(root, x, self.y + 16, w * scale, h * scale, f"c{self.drawn}-"))
            self.y += height + 26

    def pictures(self, cases: Sequence[tuple[str | None, str | None, Sequence[str]]]) -> None:
        """Pairs of pictures with their captions, three pairs in a row."""
        across, side = 3, 118.0
        room = INNER / across
        for first in range(0, len(cases), across):
            some = cases[first : first + across]
            told = [
                [part for line in lines for part in wrapped(line, room - GAP, 8)]
                for *_, lines in some
            ]
            height = side + 6 + 10.5 * max(len(lines) for lines in told)
            self.room(height)
            for place, ((home, last, _), lines) in enumerate(zip(some, told, strict=True)):
                x = MARGIN + place * room
                for offset, picture in ((0.0, home), (side + 4, last)):
                    self._put(_picture(picture, x + offset, self.y, side))
                for index, line in enumerate(lines):
                    down = self.y + side + 11 + 10.5 * index
                    self._put(_text(line, x, down, 8, bold=not index))
            self.y += height + 10

    def table(self, sheet: Sheet) -> None:
        """A table; its head stands again on every page it goes on to."""
        layout = _layout(sheet)
        self.heading(
            sheet.title, 11, below=layout.head + layout.heights[0] if layout.heights else 40
        )
        self._head(sheet.columns, layout)
        for row, height in zip(layout.cells, layout.heights, strict=True):
            if self.y + height > BOTTOM:
                self.turn()
                self._head(sheet.columns, layout)
            for column, x, width, lines in zip(
                sheet.columns, layout.xs, layout.widths, row, strict=True
            ):
                for index, (line, size) in enumerate(lines):
                    down = self.y + layout.size * (1.05 + 1.15 * index)
                    at = MARGIN + (x if column.is_text else x + width)
                    fill = QUIET if size < layout.size else INK
                    self._put(_text(line, at, down, size, fill=fill, end=not column.is_text))
            self.y += height
            self.rule("#eceef1", 0.4, right=layout.total)
        self.rule(INK, 0.8, right=layout.total)
        self.y += 4
        told = " ".join(sheet.caption)
        self.room(7.5 * 1.4 * len(wrapped(told, INNER, 7.5)))
        self.text(told, 7.5, fill=QUIET)
        self.y += 8

    def _head(self, columns: Sequence[Column], layout: _Layout) -> None:
        self.rule(INK, 0.8, right=layout.total)
        size = layout.size
        groups = spans(columns)
        if any(group for group, _ in groups):
            at = 0
            for group, count in groups:
                left, right = (
                    layout.xs[at],
                    layout.xs[at + count - 1] + layout.widths[at + count - 1],
                )
                if group:
                    middle = MARGIN + (left + right) / 2
                    self._put(_text(group, middle, self.y + size * 1.1, size, middle=True))
                    self.y += size * 1.45
                    self.rule(QUIET, 0.4, left=left, right=right)
                    self.y -= size * 1.45
                at += count
            self.y += size * 1.5
        titles = [_title(column, size) for column in columns]
        most = max(len(lines) for lines in titles)
        for column, lines, x, width in zip(columns, titles, layout.xs, layout.widths, strict=True):
            at_x = MARGIN + (x if column.is_text else x + width)
            end = not column.is_text
            for index, line in enumerate(lines, most - len(lines)):
                down = self.y + size * (1.1 + 1.15 * index)
                self._put(_text(line, at_x, down, size, bold=True, end=end))
        self.y += size * (0.35 + 1.15 * most)
        self.rule(INK, 0.5, right=layout.total)
        self.y += 1


@dataclass(frozen=True)
class _Layout:
    """Where a table's cells go: their lines, each with its size."""

    size: float
    xs: list[float]
    widths: list[float]
    total: float
    head: float
    cells: list[list[list[tuple[str, float]]]]
    heights: list[float]


def _layout(sheet: Sheet) -> _Layout:
    size = LARGEST
    while True:
        cells = [
            [_cell(c, k, size) for c, k in zip(row, sheet.columns, strict=True)]
            for row in sheet.rows
        ]
        widths = [
            max(
                [measure(line, size, bold=True) for line in _title(column, size)]
                + [measure(line, s) for row in cells for line, s in row[i]]
            )
            for i, column in enumerate(sheet.columns)
        ]
        at = 0
        for group, count in spans(sheet.columns):
            have = sum(widths[at : at + count]) + GAP * (count - 1)
            more = measure(group, size) - have
            if more > 0:
                widths[at + count - 1] += more
            at += count
        gap = GAP * size / LARGEST
        total = sum(widths) + gap * (len(widths) - 1)
        if total <= INNER or size <= SMALLEST:
            break
        size = max(SMALLEST, size - 0.5)
    xs, x = [], 0.0
    for width in widths:
        xs.append(x)
        x += width + gap
    heights = [size * (0.45 + 1.15 * max(len(lines) for lines in row)) for row in cells]
    return _Layout(size, xs, widths, min(total, INNER), size * 3.2, cells, heights)


def _title(column: Column, size: float) -> list[str]:
    return wrapped(column.title, LONGEST / 2 * size / LARGEST, size)


def _cell(cell: Cell, column: Column, size: float) -> list[tuple[str, float]]:
    if isinstance(cell, Estimate):
        lines = [(cell.text, size)]
        return [*lines, (cell.span, size * 0.78)] if cell.span else lines
    text = printed(cell, column)
    if not column.is_text:
        return [(text, size)]
    return [(line, size) for line in wrapped(text, LONGEST * size / LARGEST, size)]


def _text(
    text: str,
    x: float,
    y: float,
    size: float,
    *,
    bold: bool = False,
    fill: str = INK,
    end: bool = False,
    middle: bool = False,
) -> str:
    anchor = ' text-anchor="end"' if end else ' text-anchor="middle"' if middle else ""
    weight = ' font-weight="bold"' if bold else ""
    told = escape(BAD.sub("\ufffd", text))
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" font-family="{FONT}" font-size="{size:g}" fill="{fill}"'
        f"{anchor}{weight}>{told}</text>"
    )


def _picture(address: str | None, x: float, y: float, side: float) -> str:
    box = f'x="{x:.2f}" y="{y:.2f}" width="{side:g}" height="{side:g}"'
    if address is None:
        return f'<rect {box} fill="#f3f4f6"/>' + _text(
            "no picture", x + 8, y + side / 2, 8, fill=QUIET
        )
    return f'<image {box} xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="{address}"/>'


def _sized(svg: str) -> tuple[ElementTree.Element, float, float]:
    root = ElementTree.fromstring(svg)
    return root, float(root.get("width", "1")), float(root.get("height", "1"))


def _placed(
    root: ElementTree.Element, x: float, y: float, width: float, height: float, prefix: str
) -> str:
    """A chart at its place; what it names gets names of its own on the page."""
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id":
                element.set(name, prefix + value)
            elif name.rpartition("}")[2] == "href" and value.startswith("#"):
                element.set(name, f"#{prefix}{value[1:]}")
            elif value.startswith("url(#"):
                element.set(name, value.replace("url(#", f"url(#{prefix}"))
    root.set("x", f"{x:.2f}")
    root.set("y", f"{y:.2f}")
    root.set("width", f"{width:.2f}")
    root.set("height", f"{height:.2f}")
    ElementTree.register_namespace("", SVG[1:-1])
    return ElementTree.tostring(root, encoding="unicode")
