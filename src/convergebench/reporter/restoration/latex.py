r"""The study's tables for a paper: booktabs, best in bold, second underlined.

Fragments to `\input`; they need the packages `booktabs` and `graphicx`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from convergebench.errors import SettingsError
from convergebench.reporter.export.latex import FIT
from convergebench.reporter.export.texting import PROVIDED, tex
from convergebench.restoration import Restoration
from convergebench.restoration.files import sheets
from convergebench.restoration.result import Cell, Row, Sheet
from convergebench.restoration.tables import cell_text

MARKS: Final = {0: "{}", 1: r"\textbf{{{}}}", 2: r"\underline{{{}}}"}


def write_latex(study: Restoration, folder: Path) -> list[Path]:
    """Write every table of means and that of stability as `NAME.tex` into a folder that is made.

    Raises:
        SettingsError: The folder cannot be written to.
    """
    texts = {name: _document(name, mine) for name, mine in sheets(study).items()}
    if study.stability:
        texts["stability"] = stability_tex(study)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            written.append(folder / f"{name}.tex")
            written[-1].write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot be written: {error.strerror or error}. Give another --csv."
        ) from error
    return written


def _document(name: str, mine: Sequence[Sheet]) -> str:
    several = len(mine) > 1
    floats = [
        sheet_tex(sheet, f"{name}-{index}" if several else name)
        for index, sheet in enumerate(mine, 1)
    ]
    return _fragment(floats)


def _fragment(floats: Sequence[str]) -> str:
    return "\n".join(["% Made by ConvergeBench. Needs: booktabs, graphicx.", PROVIDED, *floats, ""])


def sheet_tex(sheet: Sheet, name: str) -> str:
    """One table of means: a rule after every group, controls below all others."""
    grouped = any(row.group for row in sheet.rows) and any(r.kind == "prompt" for r in sheet.rows)
    heads = [*(["Group", "Prompt"] if grouped else ["Method"])]
    lines: list[str] = []
    before: Row | None = None
    for row in sheet.rows:
        if before is not None and _parted(before, row):
            lines.append(r"\midrule")
        again = before is not None and before.group == row.group and row.kind != "groups"
        words = ["" if again else tex(row.group)] if grouped and row.kind != "groups" else []
        words += [""] if grouped and row.kind == "groups" else []
        words.append(tex(row.label))
        lines.append(_line([*words, *(_cell(row.cells[m.name]) for m in sheet.measures)]))
        before = row
    columns = [*heads, *(f"{m.title} {m.arrow}" for m in sheet.measures)]
    align = "l" * len(heads) + "r" * len(sheet.measures)
    return _float(f"{sheet.title}. {' '.join(sheet.notes)}".strip(), name, align, columns, lines)


def stability_tex(study: Restoration) -> str:
    """The paper's Table 3: statistic and p of every method and metric; p < 0.05 in bold."""
    known = {(test.method, test.measure): test for test in study.stability}
    methods = list(dict.fromkeys(test.method for test in study.stability))
    measures = [m for m in study.measures if any((one, m.name) in known for one in methods)]
    lines = []
    for method in methods:
        mine = [known.get((method, m.name)) for m in measures]
        stats = ["--" if t is None or t.statistic is None else f"{t.statistic:.3f}" for t in mine]
        ps = [
            "--" if t is None or t.p is None else MARKS[int(t.significant)].format(f"{t.p:.3f}")
            for t in mine
        ]
        lines.append(_line([tex(study.method(method).label), "Stat", *stats]))
        lines.append(_line(["", "p-val", *ps]))
    heads = ["Method", "Type", *(m.title for m in measures)]
    title = "Friedman's test over repeats, pictures as blocks."
    align = "ll" + "r" * len(measures)
    return _fragment([_float(title, "stability", align, heads, lines)])


def _parted(before: Row, row: Row) -> bool:
    if row.kind == "method":
        return row.control and not before.control
    return before.group != row.group and not (before.kind == row.kind == "groups")


def _cell(cell: Cell) -> str:
    text = cell_text(cell).replace("–", "--")
    return MARKS[cell.place].format(text)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _float(
    caption: str, name: str, align: str, columns: Sequence[str], lines: Sequence[str]
) -> str:
    return "\n".join(
        [
            r"\begin{table*}[tbp]",
            r"\centering",
            rf"\caption{{{tex(caption)}}}",
            rf"\label{{tab:cb-restoration-{name}}}",
            r"\small",
            FIT,
            rf"\begin{{tabular}}{{@{{}}{align}@{{}}}}",
            r"\toprule",
            _line([tex(column) for column in columns]),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table*}",
        ]
    )
