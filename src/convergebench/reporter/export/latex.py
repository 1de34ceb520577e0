r"""Tables (booktabs) and figures for a paper: fragments to `\input`, and a document that shows all.

Fragments need the packages `array`, `booktabs` and `graphicx`. A table that is wider than the line
is made smaller; a long one is told in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from convergebench.analysis import Findings
from convergebench.reporter.charts import Drawing
from convergebench.reporter.export.figures import figure_name
from convergebench.reporter.export.sheets import Cell, Column, Estimate, Sheet, printed, spans
from convergebench.reporter.export.texting import PROVIDED, tex

ROWS: Final = 44
"""Of one part of a long table: so many lines fit a page."""

PACKAGES: Final = ("array", "booktabs", "graphicx")
FIT: Final = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""As wide as it is, or as the line if that is less."""

WORDS: Final = r">{\raggedright\arraybackslash}p{12em}"
LONG: Final = 28
"""Signs of a text that is broken into lines."""

LONG_NAME: Final = 14
"""Signs of the name of a column of numbers that is."""


def table_tex(sheet: Sheet) -> str:
    """A table as a fragment: one float, or several for a long one."""
    sheet = sheet.print
    lines = _lines(sheet)
    tall = len(lines) // max(len(sheet.rows), 1) or 1
    step = max(ROWS // tall, 1)
    parts = [sheet.rows[i : i + step] for i in range(0, len(sheet.rows), step)] or [()]
    floats = []
    for index, rows in enumerate(parts, 1):
        part = f" (part {index} of {len(parts)})" if len(parts) > 1 else ""
        caption = [f"{sheet.title}{part}.", *(sheet.caption if index == 1 else ())]
        label = f"tab:cb-{sheet.name}" + (f"-{index}" if index > 1 else "")
        shown = Sheet(sheet.name, sheet.title, sheet.columns, tuple(rows))
        floats.append(_float(shown, " ".join(caption), label))
    needs = ", ".join(PACKAGES)
    return "\n".join([f"% Made by ConvergeBench. Needs: {needs}.", PROVIDED, *floats, ""])


def _float(sheet: Sheet, caption: str, label: str) -> str:
    align = "".join(_align(sheet, place) for place in range(len(sheet.columns)))
    return "\n".join(
        [
            r"\begin{table*}[tbp]",
            r"\centering",
            rf"\caption{{{tex(caption)}}}",
            rf"\label{{{label}}}",
            r"\small",
            r"\setlength{\tabcolsep}{4pt}",
            FIT,
            rf"\begin{{tabular}}{{@{{}}{align}@{{}}}}",
            r"\toprule",
            *_head(sheet.columns),
            r"\midrule",
            *_lines(sheet),
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table*}",
        ]
    )


def _align(sheet: Sheet, place: int) -> str:
    column = sheet.columns[place]
    if not column.is_text:
        return "r"
    longest = max((len(str(row[place])) for row in sheet.rows), default=0)
    return WORDS if column.kind == "words" or longest > LONG else "l"


def _name(column: Column) -> str:
    if column.is_text:
        return tex(column.title)
    how = "r" if len(column.title) <= LONG_NAME else r">{\raggedleft\arraybackslash}p{6.5em}"
    return rf"\multicolumn{{1}}{{{how}}}{{{tex(column.title, breaks=True)}}}"


def _head(columns: Sequence[Column]) -> list[str]:
    """The columns' names, under those of their groups."""
    lines = []
    groups = spans(columns)
    if any(group for group, _ in groups):
        cells, rules, at = [], [], 1
        for group, width in groups:
            cells.append(
                rf"\multicolumn{{{width}}}{{c}}{{{tex(group)}}}" if group else "&" * (width - 1)
            )
            if group:
                rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
            at += width
        lines += [_row(cells), "".join(rules)]
    return [*lines, _row([_name(column) for column in columns])]


def _lines(sheet: Sheet) -> list[str]:
    """The rows; where several columns have intervals, these stand in a line of their own."""
    stacked = sum(column.kind == "estimate" for column in sheet.columns) > 1
    lines = []
    for row in sheet.rows:
        pairs = list(zip(row, sheet.columns, strict=True))
        if not stacked:
            lines.append(_row([tex(printed(c, column), breaks=True) for c, column in pairs]))
            continue
        lines.append(_row([tex(_above(cell, column), breaks=True) for cell, column in pairs]))
        under = [_under(cell) for cell, _ in pairs]
        if any(under):
            lines.append(_row([rf"{{\scriptsize {tex(word)}}}" if word else "" for word in under]))
    return lines


def _above(cell: Cell, column: Column) -> str:
    return cell.text if isinstance(cell, Estimate) else printed(cell, column)


def _under(cell: Cell) -> str:
    return cell.span if isinstance(cell, Estimate) else ""


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def figures_tex(drawings: Sequence[Drawing]) -> str:
    """Every figure as a float, to be copied from."""
    lines = ["% Made by ConvergeBench. Needs: graphicx.", PROVIDED]
    for drawing in drawings:
        told = " ".join(
            word for word in (f"{drawing.title}.", drawing.about, *drawing.under) if word
        )
        lines += [
            r"\begin{figure}[tbp]",
            r"\centering",
            rf"\includegraphics[width=\linewidth,height=0.8\textheight,keepaspectratio]"
            rf"{{figures/{figure_name(drawing)}.pdf}}",
            rf"\caption{{{tex(told)}}}",
            rf"\label{{fig:cb-{figure_name(drawing)}}}",
            r"\end{figure}",
            r"\clearpage" if drawing.wide else "",
        ]
    return "\n".join([*(line for line in lines if line), ""])


def standalone_tex(
    findings: Findings,
    sheets: Sequence[Sheet],
    summary: Sequence[str],
    missing: Sequence[str] = (),
) -> str:
    """A document that shows every fragment, and says what is missing."""
    notes = [*findings.notes, *missing] or ["None."]
    lines = [
        "% Made by ConvergeBench: pdflatex standalone.tex, or lualatex.",
        r"\documentclass{article}",
        *(rf"\usepackage{{{name}}}" for name in PACKAGES),
        r"\usepackage[a4paper,margin=15mm]{geometry}",
        # Dozens of floats in a row are more than LaTeX keeps waiting.
        r"\setcounter{totalnumber}{8}\renewcommand{\floatpagefraction}{0.6}",
        PROVIDED,
        rf"\title{{{tex(f'ConvergeBench: {findings.run}')}}}",
        rf"\author{{{tex(f'suite {findings.suite}')}}}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
        *(tex(line) + r"\par" for line in summary),
        r"\section*{Notes}",
        r"\begin{itemize}",
        *(rf"\item {tex(note)}" for note in notes),
        r"\end{itemize}",
        r"\clearpage",
    ]
    for sheet in sheets:
        lines += [rf"\input{{{sheet.name}}}", r"\clearpage"]
    return "\n".join([*lines, r"\input{figures}", r"\end{document}", ""])
