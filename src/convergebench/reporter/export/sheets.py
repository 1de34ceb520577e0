"""What a table is before it is written: columns, rows, and a caption.

One sheet serves every format. Where a page wants another shape than a file for programs (editors
across instead of one row per editor), the sheet carries that shape as `shown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from convergebench.analysis import Finding
from convergebench.reporter.printing import interval, number

INTERVALS: Final = (
    "In brackets: 95 % intervals, by bootstrap over source images; an upper end of … or > N lies "
    "beyond the rounds that chains were followed for."
)
ENDED: Final = "failed ended too early, and refused are those of them that the editor declined."
COUNTS: Final = f"n counts chains; missing are those that should be there and are not; {ENDED}"
CENSORED: Final = "Censored chains never fell while they were followed."


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    Attributes:
        value: The number.
        low: Lower end of the interval.
        high: Upper end.
        digits: Decimals as printed; files for programs have all of them.
        said: What is printed in the number's place, such as `> 10`.
        ends: The interval as pages print it, where they have a way of their own.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    digits: int = 3
    said: str = ""
    ends: str | None = None

    @property
    def text(self) -> str:
        """The number as printed."""
        return self.said or number(self.value, self.digits)

    @property
    def span(self) -> str:
        """The interval in brackets; empty for none."""
        if self.ends is not None or self.low is None:
            return self.ends or ""
        high = "…" if self.high is None else number(self.high, self.digits)
        return f"[{number(self.low, self.digits)}, {high}]"


Cell = str | int | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        key: Its name in files for programs.
        title: Its name in print.
        kind: `words` are long texts that may be broken; `estimate` has an interval.
        group: What it stands under, together with its neighbours.
        worded: Whether what is printed differs from the number, and programs get both.
        digits: Decimals of plain numbers in print.
    """

    key: str
    title: str
    kind: Literal["text", "words", "number", "estimate"] = "text"
    group: str = ""
    worded: bool = False
    digits: int = 3

    @property
    def is_text(self) -> bool:
        """Whether its cells are texts, and so stand left."""
        return self.kind in ("text", "words")


@dataclass(frozen=True)
class Sheet:
    """One table.

    Attributes:
        name: In file names and labels.
        title: A few words.
        columns: Its columns.
        rows: Its rows, as long as the columns.
        caption: Sentences on how to read it: n, what the intervals are.
        shown: The same in the shape for print; the sheet itself where None.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: tuple[str, ...] = ()
    shown: Sheet | None = field(default=None, repr=False)

    @property
    def print(self) -> Sheet:
        """The sheet as pages and papers show it."""
        return self.shown or self


def printed(cell: Cell, column: Column) -> str:
    """A cell in one line."""
    if isinstance(cell, Estimate):
        return f"{cell.text} {cell.span}".rstrip()
    if isinstance(cell, str):
        return cell
    return number(cell, column.digits)


def of(finding: Finding | None, digits: int = 3, said: str = "") -> Estimate:
    """A finding as a cell; a dash without one."""
    if finding is None:
        return Estimate(None, digits=digits, said=said)
    ends = interval(finding, digits)
    return Estimate(finding.estimate, finding.low, finding.high, digits, said, ends)


COUNTED: Final = ("n", "missing", "failed", "refused", "censored")


def counts(finding: Finding | None) -> tuple[int | None, ...]:
    """The cells of `count_columns`."""
    return tuple(getattr(finding, name) if finding else None for name in COUNTED)


def count_columns(group: str = "Chains") -> tuple[Column, ...]:
    """n, missing, failed, refused, censored."""
    return tuple(Column(name, name, "number", group) for name in COUNTED)


def spread(findings: Iterable[Finding]) -> str:
    """Counts of many findings in a sentence, for tables that have no room for them."""
    each = list(findings)
    told = []
    for name in COUNTED:
        values = [getattr(f, name) for f in each]
        if values and (name == "n" or max(values)):
            low, high = min(values), max(values)
            told.append(f"{name} {low:,}" + (f"–{high:,}" if high != low else ""))
    return f"Chains per number: {', '.join(told)}." if told else ""


def without_idle(sheet: Sheet, *keys: str) -> Sheet:
    """Without those of these columns that say nothing in any row."""
    kept = [
        i
        for i, column in enumerate(sheet.columns)
        if column.key not in keys or any(row[i] not in (None, "") for row in sheet.rows)
    ]
    return Sheet(
        sheet.name,
        sheet.title,
        tuple(sheet.columns[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in sheet.rows),
        sheet.caption,
        sheet.shown,
    )


def spans(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Groups of neighbouring columns, and how many columns each has."""
    found: list[tuple[str, int]] = []
    for column in columns:
        if found and found[-1][0] == column.group:
            found[-1] = (column.group, found[-1][1] + 1)
        else:
            found.append((column.group, 1))
    return found
