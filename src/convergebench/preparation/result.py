"""What became of a suite's files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convergebench.suite import Source, Suite
from convergebench.table import Table
from convergebench.wording import counted

HERE, COPIED, DOWNLOADED, MISSING = "here already", "copied", "downloaded", "not here"


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
        lost = [
            f"{f.source} ({f.file}) is not here: {f.reason}. "
            + (f"Address: {f.address}" if f.address else "It has no address.")
            for f in self.missing
        ]
        done = len(self.files) - len(lost)
        title = f"{self.suite.label}: {done} of {counted(len(self.files), 'file')} here"
        return Table(title, ("files", "count"), rows, [*lost, *self.notes])

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
