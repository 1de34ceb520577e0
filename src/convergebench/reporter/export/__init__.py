"""The report in other formats: CSV, LaTeX with vector figures, Markdown, PDF.

    tables/NAME.csv, tables/findings.csv    every table; every finding with every digit
    latex/NAME.tex, latex/figures/*.pdf     booktabs tables and figures; standalone.tex shows all
    report.md, charts/*.svg                 one page
    report.pdf                              one file
    exports.json                            what was written, by format

Everything is written by rename, and only what has changed. A file of an earlier export that is no
longer made is removed, if nobody has changed it since.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from convergebench.analysis import Findings
from convergebench.errors import UnknownName
from convergebench.gathering import Gathered
from convergebench.reporter.export.comma import findings_csv, sheet_csv
from convergebench.reporter.export.figures import figure_name, write_pdf, write_svg
from convergebench.reporter.export.latex import figures_tex, standalone_tex, table_tex
from convergebench.reporter.export.markdown import report_md
from convergebench.reporter.export.material import Material, material_of
from convergebench.reporter.export.sheets import Sheet
from convergebench.reporter.export.tables import tables_of
from convergebench.reporter.folder import as_json, write_changed
from convergebench.reporter.summary import summary

FORMATS: Final = ("html", "csv", "latex", "md", "pdf")
LIST: Final = "exports.json"


def formats_named(names: Iterable[str]) -> tuple[str, ...]:
    """Formats as given (`csv,latex`, or one by one), each once, in the usual order.

    Raises:
        UnknownName: There is no such format.
    """
    given = [part.strip().lower() for name in names for part in name.split(",")]
    given = [name for name in given if name]
    for name in given:
        if name not in FORMATS:
            raise UnknownName("report format", name, FORMATS)
    return tuple(name for name in FORMATS if name in given) or FORMATS[:1]


def export(
    folder: Path, gathered: Gathered, findings: Findings, formats: Sequence[str]
) -> tuple[Path, ...]:
    """Write the findings in these formats; `html` is written elsewhere.

    Returns:
        The files of these formats, written now or there already.
    """
    wanted = [name for name in formats if name != "html"]
    return write_exports(folder, material_of(gathered, findings), wanted) if wanted else ()


def write_exports(folder: Path, material: Material, formats: Sequence[str]) -> tuple[Path, ...]:
    """Write what findings and records give in these formats, `html` not among them."""
    sheets = tables_of(material)
    files = {name: WRITERS[name](folder, material, sheets, formats) for name in formats}
    _settle(folder, files)
    return tuple(path for some in files.values() for path in some)


def _csv(folder: Path, material: Material, sheets: Sequence[Sheet], _: Sequence[str]) -> list[Path]:
    tables = {sheet.name: sheet_csv(sheet) for sheet in sheets}
    tables["findings"] = findings_csv(material.findings)
    return _written({folder / "tables" / f"{name}.csv": data for name, data in tables.items()})


def _latex(
    folder: Path, material: Material, sheets: Sequence[Sheet], _: Sequence[str]
) -> list[Path]:
    texts = {sheet.name: table_tex(sheet) for sheet in sheets}
    texts["figures"] = figures_tex(material.drawings)
    missing = [absence.why for absence in material.absent.values()]
    told = summary(material.findings)
    texts["standalone"] = standalone_tex(material.findings, sheets, told, missing)
    figures = []
    for drawing in material.drawings:
        figures.append(folder / "latex" / "figures" / f"{figure_name(drawing)}.pdf")
        write_pdf(figures[-1], material.specifications[drawing.id], drawing.title)
    files = {folder / "latex" / f"{name}.tex": text.encode() for name, text in texts.items()}
    return [*_written(files), *figures]


def _markdown(
    folder: Path, material: Material, sheets: Sequence[Sheet], formats: Sequence[str]
) -> list[Path]:
    stills = [folder / "charts" / f"{drawing.id}.svg" for drawing in material.drawings]
    for path, drawing in zip(stills, material.drawings, strict=True):
        write_svg(path, material.specifications[drawing.id])
    text = report_md(material, sheets, files="csv" in formats)
    return [*_written({folder / "report.md": text.encode()}), *stills]


def _pdf(folder: Path, material: Material, sheets: Sequence[Sheet], _: Sequence[str]) -> list[Path]:
    from convergebench.reporter.export.document import report_pdf

    return _written({folder / "report.pdf": report_pdf(material, sheets)})


Writer = Callable[[Path, Material, Sequence[Sheet], Sequence[str]], list[Path]]
WRITERS: Final[dict[str, Writer]] = {"csv": _csv, "latex": _latex, "md": _markdown, "pdf": _pdf}


def _written(files: dict[Path, bytes]) -> list[Path]:
    for path, data in files.items():
        write_changed(path, data)
    return list(files)


def _settle(folder: Path, files: dict[str, list[Path]]) -> None:
    """Keep the list of what was written, and remove what earlier exports wrote and is no more."""
    known: dict[str, dict[str, str]] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):
        known = json.loads((folder / LIST).read_bytes())
    now = {
        name: {path.relative_to(folder).as_posix(): _digest(path) for path in sorted(paths)}
        for name, paths in files.items()
    }
    for name, some in now.items():
        for path, digest in known.get(name, {}).items():
            old = folder / path
            # The pages of the HTML report show the same charts.
            if path not in some and not path.startswith("charts/") and _digest(old) == digest:
                old.unlink()
    write_changed(folder / LIST, as_json({**known, **now}))


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
