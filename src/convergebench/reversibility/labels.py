"""How far the rules agree with labels: the hand-labelled pairs, or anybody's."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, get_args

from convergebench.cycle import Record, Reversibility
from convergebench.reversibility.rules import Verdict, classify
from convergebench.reversibility.words import HERE
from convergebench.table import Cell, Table
from convergebench.wording import counted

CLASSES: Final[tuple[Reversibility, ...]] = get_args(Reversibility)
Group = Literal["suite", "held-out", "later"]


class LabelledPair(Record):
    """Two prompts and the class that a person gave them, with the reason."""

    name: str
    group: Group
    forward: str
    backward: str
    label: Reversibility
    why: str = ""


@cache
def labelled_pairs() -> tuple[LabelledPair, ...]:
    """The pairs that were labelled by hand."""
    rows = tomllib.loads((HERE / "labelled.toml").read_text(encoding="utf-8"))["pair"]
    return tuple(LabelledPair(**row) for row in rows)


@dataclass(frozen=True)
class Compared:
    """A pair with its label and what the rules say."""

    name: str
    group: str
    forward: str
    backward: str
    label: Reversibility
    verdict: Verdict

    @property
    def agrees(self) -> bool:
        """Whether the rules give the label."""
        return self.verdict.reversibility == self.label

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        told = {"name": self.name, "group": self.group, "forward": self.forward}
        return told | {
            "backward": self.backward,
            "label": self.label,
            "verdict": self.verdict.to_dict(),
        }


@dataclass(frozen=True)
class LabelAgreement:
    """The rules beside the labels, group by group."""

    rows: tuple[Compared, ...]

    @property
    def groups(self) -> list[str]:
        """Names of the groups, in order."""
        return list(dict.fromkeys(row.group for row in self.rows))

    def of(self, group: str) -> list[Compared]:
        """The pairs of a group."""
        return [row for row in self.rows if row.group == group]

    @property
    def table(self) -> Table:
        """One line per group."""
        rows = [self._line(group, self.of(group)) for group in self.groups]
        columns = ("group", "pairs", "agree", "percent", "kappa", "no rule")
        return Table("Agreement of the rules with the labels", columns, rows)

    @staticmethod
    def _line(name: str, rows: Sequence[Compared]) -> tuple[Cell, ...]:
        agree = sum(row.agrees for row in rows)
        unknown = sum(not row.verdict.known for row in rows)
        coefficient = kappa(rows)
        shown = None if coefficient is None else f"{coefficient:.3f}"
        return name, len(rows), agree, f"{100 * agree / len(rows):.1f} %", shown, unknown

    def confusion(self, group: str) -> Table:
        """Labels down, rules across."""
        rows = self.of(group)
        found = Counter((row.label, row.verdict.reversibility) for row in rows)
        lines: list[Sequence[Cell]] = [
            (label, *(found[label, given] for given in CLASSES), self._total(rows, label))
            for label in CLASSES
        ]
        columns = ("label ↓  rules →", *CLASSES, "all")
        return Table(f"{group}: labels against rules", columns, lines)

    @staticmethod
    def _total(rows: Sequence[Compared], label: str) -> int:
        return sum(row.label == label for row in rows)

    @property
    def disagreements(self) -> Table:
        """The pairs that the rules class otherwise."""
        rows = [
            (r.group, r.name, r.label, f"{r.verdict.reversibility} ({r.verdict.rule})", r.forward,
             r.backward)
            for r in self.rows
            if not r.agrees
        ]  # fmt: skip
        names = ("group", "name", "label", "rules", "forward", "backward")
        title = f"{counted(len(rows), 'pair')} classed otherwise than labelled"
        return Table(title, names, rows) if rows else Table(title, (), ())

    def __str__(self) -> str:
        tables = [self.table, *(self.confusion(group) for group in self.groups)]
        tables.append(self.disagreements)
        return "\n\n".join(str(table).rstrip() for table in tables)

    def _repr_html_(self) -> str:
        tables = [self.table, *(self.confusion(group) for group in self.groups)]
        return "".join(table._repr_html_() for table in (*tables, self.disagreements))

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        groups = {
            group: {
                "pairs": len(rows := self.of(group)),
                "agree": sum(row.agrees for row in rows),
                "unknown": sum(not row.verdict.known for row in rows),
                "kappa": kappa(rows),
                "confusion": self.confusion(group).records(),
            }
            for group in self.groups
        }
        wrong = [row.to_dict() for row in self.rows if not row.agrees]
        return {"groups": groups, "disagreements": wrong}


def kappa(rows: Sequence[Compared]) -> float | None:
    """Cohen's kappa: agreement beyond chance; None where chance alone agrees everywhere."""
    if not rows:
        return None
    labels = Counter(row.label for row in rows)
    given = Counter(row.verdict.reversibility for row in rows)
    chance = sum(labels[name] * given[name] for name in CLASSES) / len(rows) ** 2
    if chance == 1.0:
        return None
    return (sum(row.agrees for row in rows) / len(rows) - chance) / (1.0 - chance)


def agreement(pairs: Sequence[LabelledPair] | None = None) -> LabelAgreement:
    """The rules beside the hand labels."""
    given = labelled_pairs() if pairs is None else pairs
    return LabelAgreement(
        tuple(
            Compared(
                p.name, p.group, p.forward, p.backward, p.label, classify(p.forward, p.backward)
            )
            for p in given
        )
    )
