"""What became of a suite's files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from convergebench.source import Source
from convergebench.suite import Suite
from convergebench.table import Table
from convergebench.wording import counted

HERE, COPIED, DOWNLOADED, MISSING = "here already", "copied", "downloaded", "not here"


FEW: Final = 3
"""So many files that lack for one reason are told one by one, with their addresses."""


@dataclass(frozen=True)
class Wanted:
    """A file of a suite."""

    source: Source
    file: str
    sha256: str
    address: str | None


@dataclass(frozen=True)
class Prepared:
    """What became of one file.

    Attributes:
        source: Name of its source.
        file: Its path in the suite.
        how: `here already`, `copied`, `downloaded` or `not here`.
        path: Where it is now.
        address: Where it can be had.
        reason: Why it is not here.
    """

    source: str
    file: str
    how: str
    path: Path | None
    address: str | None
    reason: str = ""


@dataclass(frozen=True)
class Preparation:
    """What became of a suite's files."""

    suite: Suite
    folder: Path
    files: tuple[Prepared, ...]
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[Prepared, ...]:
        """The files that are still not here."""
        return tuple(file for file in self.files if file.how == MISSING)

    @property
    def complete(self) -> bool:
        """Whether every file is here."""
        return not self.missing

    @property
    def table(self) -> Table:
        """How many files came from where, and every one that did not come, with the reason."""
        counts = Counter(file.how for file in self.files)
        rows = [(h, counts[h]) for h in (HERE, COPIED, DOWNLOADED, MISSING) if counts[h]]
        done = len(self.files) - len(self.missing)
        title = f"{self.suite.label}: {done} of {counted(len(self.files), 'file')} here"
        return Table(title, ("files", "count"), rows, [*self._lost(), *self.notes])

    def _lost(self) -> list[str]:
        """What is not here: file by file, or by reason where many lack for the same."""
        reasons: dict[str, list[Prepared]] = {}
        for file in self.missing:
            reasons.setdefault(file.reason, []).append(file)
        told = []
        for reason, files in reasons.items():
            if len(files) > FEW:
                names = ", ".join(f.source for f in files)
                told.append(
                    f"{len(files)} files are not here: {reason}. They are of {names}. --json has "
                    "their addresses."
                )
                continue
            told += [
                f"{f.source} ({f.file}) is not here: {f.reason}. "
                + (f"Address: {f.address}" if f.address else "It has no address.")
                for f in files
            ]
        return told

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "suite": self.suite.label,
            "folder": str(self.folder),
            "complete": self.complete,
            "files": [
                {
                    "source": f.source,
                    "file": f.file,
                    "how": f.how,
                    "path": str(f.path) if f.path else None,
                    "address": f.address,
                    "reason": f.reason,
                }
                for f in self.files
            ],
            "notes": list(self.notes),
        }
