"""The report as one PDF to be mailed: pages are drawn as SVG, so text stays text, lines lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from convergebench.reporter import board
from convergebench.reporter.charts import Drawing
from convergebench.reporter.export.binding import bound
from convergebench.reporter.export.figures import svg_of
from convergebench.reporter.export.material import Material
from convergebench.reporter.export.paper import Paper
from convergebench.reporter.export.sheets import Sheet
from convergebench.reporter.leaders import life_names
from convergebench.reporter.printing import number
from convergebench.reporter.summary import summary
from convergebench.wording import counted

MOST_ROWS: Final = 120
"""Of a table: what is longer is in the CSV, and the PDF says so."""


def report_pdf(material: Material, sheets: Sequence[Sheet]) -> bytes:
    """The report."""
    import vl_convert

    title = f"ConvergeBench: {material.findings.run}"
    pages = paper_of(material, sheets).svgs()
    return bound([vl_convert.svg_to_pdf(page) for page in pages], title)


def paper_of(material: Material, sheets: Sequence[Sheet]) -> Paper:
    """The pages: summary, headline table, notes, charts, worst cases, the other tables."""
    findings = material.findings
    paper = Paper(f"ConvergeBench · {findings.run} · suite {findings.suite}")
    paper.text(f"ConvergeBench: {findings.run}", 20, bold=True)
    paper.text(f"Suite {findings.suite}. Metrics: {', '.join(findings.metrics) or 'none'}.", 9)
    paper.y += 8
    lack = [material.lack.why] if material.lack else []
    paper.points([*summary(findings), *lack], 10)
    for sheet in sheets[:1]:
        paper.table(sheet.print)
    paper.heading("Notes")
    missing = [absence.why for absence in material.absent.values()]
    caveats = [f"{e.ink.editor}: {word}" for e in material.editors for word in e.caveats]
    caveats += [f"Import of {i.origin}: {note}" for i in material.imports for note in i.notes]
    paper.points([*board.page_notes(findings), *missing, *caveats], 8.5)
    drawings = chosen_drawings(material)
    if drawings:
        paper.turn()
        paper.heading("Charts")
        wide = [d for d in drawings if d.wide]
        narrow = [d for d in drawings if not d.wide]
        for some, across in ((narrow, 2), (wide, 1)):
            stills = [svg_of(material.specifications[d.id]) for d in some]
            paper.figures(stills, [d.title for d in some], across)
    _worst(paper, material)
    for sheet in sheets[1:]:
        paper.table(_cut(sheet.print))
    return paper


def chosen_drawings(material: Material) -> list[Drawing]:
    """The charts that the headline is told by; those of every other metric are in the pages."""
    told = life_names(material.findings)
    drawn = material.drawn
    curves = [d for p in drawn.panels if p.metric in told for d in p.drawings]
    curves = [d for d in curves if not d.id.startswith("value-")]
    return [*curves, *drawn.edits, *drawn.decay, *drawn.drift, *drawn.regions]


def _worst(paper: Paper, material: Material) -> None:
    if not material.pictures:
        return
    paper.heading("Worst cases: home, and the last homecoming", below=150)
    cases = [
        (home, last, [f.editor, f"AUC {number(f.estimate)} by {f.metric}", f.note])
        for f, home, last in material.pictures
    ]
    paper.pictures(cases)


def _cut(sheet: Sheet) -> Sheet:
    more = len(sheet.rows) - MOST_ROWS
    if more <= 0:
        return sheet
    left = f"{counted(more, 'more row')} not shown here; the CSV has all {number(len(sheet.rows))}."
    return Sheet(
        sheet.name, sheet.title, sheet.columns, sheet.rows[:MOST_ROWS], (*sheet.caption, left)
    )
