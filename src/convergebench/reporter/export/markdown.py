"""One page of Markdown, as GitHub reads it: summary, tables, charts, notes, provenance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from convergebench.reporter import board
from convergebench.reporter.export.material import Material
from convergebench.reporter.export.sheets import Sheet, printed
from convergebench.reporter.summary import summary

SIGNS: Final = re.compile(r"([\\`*_\[\]#|~$])")
FEW: Final = 60
"""Longer tables are in `tables/`; the page names the file."""


def md(text: str) -> str:
    """A text in one line that is shown as it is: no markup, no link, no name that calls someone."""
    flat = re.sub(r"\s+", " ", text).strip()
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = SIGNS.sub(r"\\\1", flat)
    # Addresses and names would become links, and the names would get a message.
    flat = flat.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")
    # What begins a line could begin a list.
    return re.sub(r"^(\d+)([.)])(?= |$)", r"\1\\\2", re.sub(r"^([-+=])", r"\\\1", flat))


def report_md(material: Material, sheets: Sequence[Sheet], *, files: bool) -> str:
    """The page.

    Args:
        material: What to tell.
        sheets: The tables.
        files: Whether the tables are beside it as CSV.
    """
    findings = material.findings
    lines = [f"# ConvergeBench: {md(findings.run)}", "", f"Suite {md(findings.suite)}.", ""]
    lines += [f"- {md(line)}" for line in summary(findings)]
    if material.lack:
        lines += [f"- {md(material.lack.why)}"]
    for sheet in sheets[:1]:
        lines += _table(sheet, files)
    lines += ["", "## Notes", ""]
    lines += [f"- {md(note)}" for note in board.page_notes(findings)]
    lines += [f"- {md(absence.why)}" for absence in material.absent.values()]
    lines += [f"- {md(f'Import of {i.origin}: {n}')}" for i in material.imports for n in i.notes]
    lines += ["", "## Charts", ""]
    for drawing in material.drawings:
        told = " ".join(word for word in (drawing.about, *drawing.under) if word)
        lines += [
            f"### {md(drawing.title)}",
            "",
            f"![{md(drawing.alt)}](charts/{quote(drawing.id)}.svg)",
            "",
            *([md(told), ""] if told else []),
        ]
    for sheet in sheets[1:]:
        lines += _table(sheet, files)
    caveats = [(e.ink.editor, word) for e in material.editors for word in e.caveats]
    if caveats:
        lines += ["", "## Caveats of editors", ""]
        lines += [f"- {md(editor)}: {md(word)}" for editor, word in caveats]
    return "\n".join(lines).rstrip() + "\n"


def _table(sheet: Sheet, files: bool) -> list[str]:
    shown = sheet.print
    lines = ["", f"## {md(shown.title)}", ""]
    names = [
        md(f"{c.group}: {c.title}" if c.group and c.group != "Chains" else c.title)
        for c in shown.columns
    ]
    lines += [_row(names), _row([":---" if c.is_text else "---:" for c in shown.columns])]
    for row in shown.rows[:FEW]:
        cells = zip(row, shown.columns, strict=True)
        lines.append(_row([md(printed(cell, column)) for cell, column in cells]))
    more = len(shown.rows) - FEW
    if more > 0:
        lines += ["", f"{more:,} more rows are not shown here."]
    if files:
        lines += [
            "",
            f"All of it with every digit: [tables/{sheet.name}.csv](tables/{sheet.name}.csv)",
        ]
    return [*lines, "", *(md(sentence) for sentence in shown.caption)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
