"""Many pairs at once: those of a suite, beside what it declares, or those of a table."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from convergebench.cycle import Cycle, Reversibility
from convergebench.errors import InputError
from convergebench.reversibility.inverse import Ask, from_template, propose_inverse
from convergebench.reversibility.labels import CLASSES, Compared, LabelAgreement
from convergebench.reversibility.rules import NONE, Verdict, classify
from convergebench.suite import Suite
from convergebench.table import Table
from convergebench.wording import counted, shown

KINDS: Final = ("round-trip", "recolour", "mirror", "rotate", "cross")
"""Kinds of cycle that lead home by undoing."""
MOST: Final = 100_000
"""Rows of a table of pairs that are read."""


@dataclass(frozen=True)
class Sorted:
    """One pair with what the rules say, and what it was labelled or declared, if it was.

    `by` says who proposed the backward prompt, where it was not given.
    """

    name: str
    forward: str
    backward: str | None
    verdict: Verdict
    label: Reversibility | None = None
    by: str = ""
    note: str = ""

    @property
    def differs(self) -> bool:
        """Whether it was labelled otherwise."""
        return self.label is not None and self.label != self.verdict.reversibility

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        told = {"name": self.name, "forward": self.forward, "backward": self.backward}
        return told | {
            "label": self.label,
            "by": self.by,
            "note": self.note,
            "verdict": self.verdict.to_dict(),
        }


@dataclass(frozen=True)
class Sorting:
    """Pairs, sorted."""

    title: str
    rows: tuple[Sorted, ...]
    notes: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[Sorted, ...]:
        """Pairs that were labelled otherwise."""
        return tuple(row for row in self.rows if row.differs)

    @property
    def agreement(self) -> LabelAgreement | None:
        """The rules beside the labels, where there are any."""
        labelled = tuple(
            Compared(r.name, "given", r.forward, r.backward or "", r.label, r.verdict)
            for r in self.rows
            if r.label is not None
        )
        return LabelAgreement(labelled) if labelled else None

    @property
    def table(self) -> Table:
        """One line per pair."""
        rows = [
            (r.name, r.label, r.verdict.reversibility, r.verdict.rule, r.forward, r.backward)
            for r in self.rows
        ]
        labels = sum(row.label is not None for row in self.rows)
        count = f"{self.title}: {counted(len(rows), 'pair')}"
        told = (
            f", {len(self.differing)} of {labels} classed otherwise than labelled" if labels else ""
        )
        columns = ("pair", "label", "rules", "rule", "forward", "backward")
        proposed = [
            f"{r.name}: backward prompt by {r.by}. {r.note}".rstrip() for r in self.rows if r.by
        ]
        return Table(count + told, columns, rows, (*proposed, *self.notes))

    @property
    def differences(self) -> Table:
        """Why the rules say otherwise, pair by pair."""
        rows = [
            (r.name, r.label, r.verdict.reversibility, r.verdict.rule, r.verdict.reason)
            for r in self.differing
        ]
        return Table("Differences", ("pair", "label", "rules", "rule", "reason"), rows)

    def __str__(self) -> str:
        return f"{self.table}\n\n{self.differences}" if self.differing else str(self.table)

    def _repr_html_(self) -> str:
        tables = (self.table, self.differences) if self.differing else (self.table,)
        return "".join(table._repr_html_() for table in tables)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        found = self.agreement
        return {
            "title": self.title,
            "pairs": [row.to_dict() for row in self.rows],
            "differences": [row.name for row in self.differing],
            "agreement": found.to_dict()["groups"]["given"] if found else None,
            "notes": list(self.notes),
        }


def sort_suite(suite: Suite) -> Sorting:
    """Every cycle of a suite that leads home by undoing, in all phrasings, by the rules."""
    rows = tuple(row for cycle in suite.cycle for row in _of_cycle(cycle))
    others = [cycle.name for cycle in suite.cycle if cycle.kind not in KINDS]
    notes = []
    if others:
        what = counted(len(others), "cycle", "has", "have")
        notes.append(f"{what} no backward edit and so no class: {shown(others)}.")
    silent = [
        cycle.name for cycle in suite.cycle if cycle.kind in KINDS and not cycle.reversibility
    ]
    if silent:
        what = counted(len(silent), "cycle", "declares", "declare")
        notes.append(f"{what} no reversibility: {shown(silent)}.")
    return Sorting(suite.label, rows, tuple(notes))


def _of_cycle(cycle: Cycle) -> Iterator[Sorted]:
    if cycle.kind not in KINDS:
        return
    for phrasing in range(cycle.phrasings):
        words = [edit.wording(phrasing, 1) for edit in cycle.edit]
        forward, backward = _ends(cycle, words)
        name = f"{cycle.name} {phrasing + 1}" if cycle.phrasings > 1 else cycle.name
        verdict = classify(forward, backward)
        yield Sorted(name, forward, backward, verdict, cycle.reversibility)


def _ends(cycle: Cycle, words: list[str]) -> tuple[str, str]:
    """What leads away and what leads home; a cross has two edits each."""
    match cycle.kind:
        case "mirror":
            return words[0], words[0]
        case "rotate":  # it goes on in the same direction, until it has come round
            return words[0], from_template(words[0]).prompt or ""
        case "cross":
            return _joined(words[:2]), _joined(words[2:])
    return words[0], words[1]


def _joined(words: Iterable[str]) -> str:
    return " ".join(text if text.rstrip()[-1:] in ".!?" else f"{text}." for text in words)


def read_pairs(path: Path) -> list[dict[str, str]]:
    """The rows of a table of pairs: forward, backward (may be empty), and perhaps label, name.

    Raises:
        InputError: It is no such table.
    """
    wanted = "A table of pairs is a CSV file with the columns forward, backward and perhaps label."
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            columns = reader.fieldnames or ()
            rows: list[dict[str, str]] = []
            for row in reader:
                if len(rows) == MOST:
                    raise InputError(f"{path} has more than {MOST:,} rows. Cut it into several.")
                rows.append({str(k): v or "" for k, v in row.items() if k is not None})
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}. {wanted}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV file in UTF-8 ({error}). {wanted}") from None
    missing = [name for name in ("forward", "backward") if name not in columns]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}. {wanted}")
    known = ", ".join(CLASSES)
    for number, row in enumerate(rows, 1):
        label = row.get("label", "").strip().lower()
        if label and label not in CLASSES:
            raise InputError(
                f"{path}, row {number}: {label!r} is no class. Use {known}, or nothing."
            )
        if not row["forward"].strip():
            raise InputError(f"{path}, row {number}: the forward prompt is empty. {wanted}")
    return rows


def sort_pairs(
    title: str,
    rows: list[dict[str, str]],
    ask: Ask | None = None,
    observe: Callable[[int, int], None] | None = None,
) -> Sorting:
    """The pairs of a table; a missing backward prompt is proposed."""
    found = []
    for number, row in enumerate(rows, 1):
        forward, backward = row["forward"], row["backward"]
        name = row.get("name", "").strip() or str(number)
        label = cast("Reversibility | None", row.get("label", "").strip().lower() or None)
        if backward.strip():
            found.append(Sorted(name, forward, backward, classify(forward, backward), label))
        else:
            made = propose_inverse(forward, ask=ask)
            verdict = made.verdict or Verdict("ambiguous", NONE, made.note)
            found.append(Sorted(name, forward, made.prompt, verdict, label, made.by, made.note))
        if observe:
            observe(number, len(rows))
    return Sorting(title, tuple(found))
