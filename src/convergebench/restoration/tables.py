"""The study as tables for the terminal. What is best is marked ¹, what is second ².

The marks survive plain text; pages and LaTeX print bold and underline instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from convergebench.analysis.pairs import FEW_SOURCES
from convergebench.errors import UnknownName
from convergebench.restoration.cases import FLAGGED, MEASURED
from convergebench.restoration.means import printed
from convergebench.restoration.result import Cell, Restoration, Row, Sheet, Stability
from convergebench.table import Cell as Shown
from convergebench.table import Table
from convergebench.wording import counted, shown

MARKS: Final = {0: " ", 1: "¹", 2: "²"}
LENGTHY: Final = ("scenes", "tradeoff")
LONG: Final = 40
"""Rows from which on these are only shown where they are asked for."""

MOST: Final = 12
"""Outliers and cases that are shown."""


@dataclass(frozen=True)
class Selection:
    """Some of the tables, one below the other."""

    tables: tuple[Table, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))


def cell_text(cell: Cell) -> str:
    """A cell without its place: the mean, `/` where no truth exists, `–` without a score."""
    if cell.mean is None:
        return "/" if cell.absent == "truth" else "–"
    return printed(cell.mean)


def headline(study: Restoration) -> Table:
    """All methods over all pictures, or what comes first."""
    return tables(study)[0]


def tables(study: Restoration, which: Sequence[str] = ()) -> tuple[Table, ...]:
    """The tables that have something to show, the notes below the last.

    Raises:
        UnknownName: There is no table of that name.
    """
    checked(which)
    found: list[Table] = []
    for name, make in TABLES.items():
        mine = make(study) if not which or name in which else []
        if name in LENGTHY and not which and sum(len(table.rows) for table in mine) > LONG:
            continue
        found += mine
    if not found:
        return (Table(f"Restoration: {study.title}", (), (), ("Nothing to show.", *study.notes)),)
    last = found[-1]
    notes = (*last.notes, *study.notes)
    return (*found[:-1], Table(last.title, last.columns, last.rows, notes))


def checked(which: Sequence[str]) -> Sequence[str]:
    """Names of tables. Raises UnknownName."""
    for name in which:
        if name not in TABLES:
            raise UnknownName("table", name, TABLES)
    return which


# -- means ----------------------------------------------------------------------------------------


def _overall(study: Restoration) -> list[Table]:
    sheet = study.overall
    if sheet is None:
        return []
    told = {row.method for mine in study.prompts for row in mine.rows if row.method}
    if len(study.prompts) == 1 and told == {row.method for row in sheet.rows}:
        return []  # the table of prompts says the same
    return [_sheet(f"{study.title}: {sheet.title.lower()}", sheet, ("method",))]


def _prompts(study: Restoration) -> list[Table]:
    found = []
    for sheet in study.prompts:
        table = _sheet(f"{study.title}: {sheet.title.lower()}", sheet, ("group", "prompt"))
        found.append(table)
    return found


def _scenes(study: Restoration) -> list[Table]:
    found = []
    for by in ("scene", "damage"):
        mine = [sheet for sheet in study.scenes if sheet.by == by]
        if not mine:
            continue
        lines = [
            (sheet.of or "not told", *_line(row, sheet)) for sheet in mine for row in sheet.rows
        ]
        notes = list(
            dict.fromkeys(f"{s.of or 'not told'}: {note}" for s in mine for note in s.notes)
        )
        table = _drawn(f"{study.title}: by {by}", (by, "method"), mine[0], lines, [_LEGEND, *notes])
        found.append(table)
    return found


_LEGEND: Final = (
    "¹ best, ² second, ties share a place; / no truth exists, – no score. Means over the same "
    "pictures for all; controls (in brackets) are not ranked."
)


def _sheet(title: str, sheet: Sheet, words: tuple[str, ...]) -> Table:
    lines = [(*((row.group,) if len(words) == 2 else ()), *_line(row, sheet)) for row in sheet.rows]
    return _drawn(title, words, sheet, lines, [_LEGEND, *_pictures(sheet), *sheet.notes])


def _line(row: Row, sheet: Sheet) -> list[str]:
    """Name, cells, and failures where it is known what was asked for."""
    known = any(each.expected for each in sheet.rows)
    return [
        f"({row.label})" if row.control else row.label,
        *(cell_text(row.cells[m.name]) + MARKS[row.cells[m.name].place] for m in sheet.measures),
        *([f"{row.failed}/{row.expected}"] if known else []),
    ]


def _pictures(sheet: Sheet) -> list[str]:
    """Over how many pictures each column's means are."""
    told: dict[int, list[str]] = {}
    for measure in sheet.measures:
        most = max((row.cells[measure.name].n for row in sheet.rows), default=0)
        if most:
            told.setdefault(most, []).append(measure.title)
    return ["; ".join(f"{', '.join(t)} over {counted(n, 'picture')}" for n, t in told.items()) + "."
            ] if told else []  # fmt: skip


def _drawn(
    title: str,
    words: tuple[str, ...],
    sheet: Sheet,
    lines: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> Table:
    """A table whose numbers are flush right, `/` among them."""
    heads = [f"{m.title} {m.arrow}" for m in sheet.measures]
    columns = [*words, *heads]
    if lines and len(lines[0]) > len(columns):
        columns.append("failed")
    widths = [
        max((len(line[i]) for line in lines), default=0) if i >= len(words) else 0
        for i in range(len(columns))
    ]
    rows = [[text.rjust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    return Table(title, columns, rows, tuple(notes))


# -- effects and stability ------------------------------------------------------------------------


def _effects(study: Restoration) -> list[Table]:
    if not study.effects:
        return []
    several = len({effect.editor for effect in study.effects}) > 1
    rows: list[list[Shown]] = []
    for e in study.effects:
        measure = study.measure(e.measure)
        ends = "–" if e.low is None or e.high is None else f"[{e.low:+.3f}, {e.high:+.3f}]"
        rows.append(
            [
                *([e.editor] if several else []),
                f"{e.factor}: {e.level} − {e.baseline}",
                e.within or "all",
                f"{measure.title} {measure.arrow}",
                f"{e.difference:+.3f}",
                ends,
                _p(e.p),
                _p(e.adjusted),
                {"level": e.level, "baseline": e.baseline}.get(e.better, "tied"),
                e.n,
            ]
        )
    columns = (
        *(["editor"] if several else []), "effect", "among", "metric", "difference", "95 %", "p",
        "p (Holm)", "better", "pictures",
    )  # fmt: skip
    note = (
        "Paired by picture; p by flipping signs, Holm's correction over the metrics of one "
        "comparison; tied: the interval holds 0, or the corrected p is not below 0.05."
    )
    notes = [note]
    if any(e.n < FEW_SOURCES for e in study.effects):
        notes.append(f"With fewer than {FEW_SOURCES} pictures nothing can be told apart.")
    return [Table(f"{study.title}: what the wording does", columns, rows, notes)]


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def _stability(study: Restoration) -> list[Table]:
    if not study.stability:
        return []
    methods = list(dict.fromkeys(test.method for test in study.stability))
    known = {(test.method, test.measure): test for test in study.stability}
    measures = [m for m in study.measures if any((method, m.name) in known for method in methods)]
    rows: list[list[Shown]] = []
    for method in methods:
        mine = [known.get((method, m.name)) for m in measures]
        rows.append([study.method(method).label, "statistic", *map(_statistic, mine)])
        rows.append(["", "p", *(_p(t.p) + "*" * t.significant if t else "–" for t in mine)])
        rows.append(["", "W", *("–" if t is None or t.w is None else f"{t.w:.3f}" for t in mine)])
    tested = [test for test in study.stability if test.p is not None]
    low = sum(test.significant for test in tested)
    notes = [
        f"Friedman's test over repeats, pictures as blocks; * p < 0.05: {low} of "
        f"{counted(len(tested), 'test')}, {0.05 * len(tested):.1f} expected by chance alone."
    ]
    told: dict[str, list[str]] = {}
    for test in study.stability:
        if test.note:
            where = f"{study.method(test.method).label} {study.measure(test.measure).title}"
            told.setdefault(test.note, []).append(where)
    notes += [f"{shown(where, 6)}: {note}." for note, where in told.items()]
    columns = ("method", "", *(m.title for m in measures))
    return [Table(f"{study.title}: stability over repeats", columns, rows, notes)]


def _statistic(test: Stability | None) -> str:
    return "–" if test is None or test.statistic is None else f"{test.statistic:.3f}"


def _outliers(study: Restoration) -> list[Table]:
    if not study.outliers:
        return []
    rows: list[list[Shown]] = [
        [
            study.method(one.method).label,
            study.measure(one.measure).title,
            one.source,
            f"{one.spread:.3f}",
            f"{one.usual:.3f}",
            ", ".join(f"{value:.3f}" for value in one.values),
        ]
        for one in sorted(study.outliers, key=lambda o: -o.spread / max(o.usual, 1e-12))[:MOST]
    ]
    rest = len(study.outliers) - len(rows)
    notes = ["Pictures whose repeats differ far more than the method's other pictures do."]
    notes += [f"{rest} more in --json and --csv."] if rest else []
    columns = ("method", "metric", "picture", "spread", "usual", "repeats")
    return [Table(f"{study.title}: outliers over repeats", columns, rows, notes)]


# -- cases ----------------------------------------------------------------------------------------


def _cases(study: Restoration) -> list[Table]:
    if not study.counts:
        return []
    rows: list[list[Shown]] = [
        [count.kind, study.method(count.method).label, count.group, count.by,
         f"{count.cases}/{count.looked}"]
        for count in study.counts
    ]  # fmt: skip
    notes = [
        f"{mean.kind} ({mean.by}){', ' + mean.editor if mean.editor else ''}: "
        f"{mean.per_prompt:.2f} cases per prompt with {mean.factor} {mean.level} "
        f"({counted(mean.prompts, 'prompt')}, {mean.cases} of {mean.looked} outputs)."
        for mean in study.case_means
    ]
    if any(count.by == MEASURED for count in study.counts):
        notes.append(
            f"measured: a detail-ratio of {FLAGGED:g} or more, over the input's own; a flag "
            "where to look and no verdict."
        )
    columns = ("kind", "method", "group", "by", "cases")
    return [Table(f"{study.title}: cases", columns, rows, notes)]


def _tradeoff(study: Restoration) -> list[Table]:
    if not study.tradeoff:
        return []
    pairs = list(dict.fromkeys((p.distortion, p.perception) for p in study.tradeoff))
    found = []
    for x, y in pairs:
        mine = [p for p in study.tradeoff if (p.distortion, p.perception) == (x, y)]
        first, second = study.measure(x), study.measure(y)
        rows: list[list[Shown]] = [
            [f"({p.label})" if p.control else p.label, printed(p.x), printed(p.y), p.n or None]
            for p in mine
        ]
        columns = ("method", f"{first.title} {first.arrow}", f"{second.title} {second.arrow}",
                   "pictures")  # fmt: skip
        found.append(Table(f"{study.title}: {second.title} against {first.title}", columns, rows))
    return found


TABLES: Final[dict[str, Callable[[Restoration], list[Table]]]] = {
    "overall": _overall,
    "prompts": _prompts,
    "effects": _effects,
    "stability": _stability,
    "outliers": _outliers,
    "scenes": _scenes,
    "cases": _cases,
    "tradeoff": _tradeoff,
}
"""What `--table` may name, in the order shown."""
