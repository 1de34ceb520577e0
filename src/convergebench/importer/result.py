"""What an import found and did: for the terminal, for scripts, and for the run's own record."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from convergebench.importer.assembly import Assembly, Line
from convergebench.importer.found import Finds, Wishes
from convergebench.importer.naming import legal_names
from convergebench.importer.records import Records
from convergebench.table import Table
from convergebench.wording import counted

IMPORTER: Final = 1
"""Raised when the same files would be read differently."""

SHOWN: Final = 5
"""How many missing steps, conflicts and unread files are printed of each."""


@dataclass
class ImportResult:
    """What was found, and, unless it was only looked at, what became of it."""

    source: str
    layout: str
    why: str
    origin: str
    rows: list[tuple[str, int, int, int, str, int, int, int]]
    keys: int
    collapsed: int
    missing: list[str]
    failed: list[str]
    conflicts: list[tuple[str, tuple[str, ...]]]
    unread: list[str]
    notes: list[str]
    options: dict[str, Any]
    path: Path | None = None
    compared: bool = False
    new_chains: int = 0
    extended: int = 0
    known_chains: int = 0
    new_frames: int = 0
    new_bytes: int = 0
    new_scores: int = 0
    known_scores: int = 0
    sizes: list[str] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    differing: int = 0
    """Keys whose scores differ in what was read; conflicts with the run are not among them."""

    @classmethod
    def of(
        cls,
        source: str,
        layout: str,
        why: str,
        origin: str,
        finds: Finds,
        made: Assembly,
        wishes: Wishes,
    ) -> ImportResult:
        """What is known before anything is written."""
        conflicts = [(c.key, c.values) for c in (*finds.conflicts, *made.conflicts)]
        return cls(
            source,
            layout,
            why,
            origin,
            _rows(made.lines, finds),
            finds.keys,
            finds.collapsed,
            made.missing,
            made.failed,
            conflicts,
            list(finds.unread),
            list(made.notes),
            _options(wishes),
            differing=len(finds.conflicts),
        )

    def take(self, records: Records) -> None:
        """Take in what becomes, or would become, of it in a run."""
        self.compared = True
        self.new_chains, self.known_chains = records.new, records.known
        self.extended = len(records.chains) - records.new
        self.new_scores, self.known_scores = len(records.scores), records.known_scores
        self.sizes, self.malformed = records.sizes, records.malformed
        self.conflicts += [(c.key, c.values) for c in records.conflicts]
        self.notes += records.notes

    def written(self, path: Path, frames: int, size: int) -> None:
        """Take in what was written."""
        self.path, self.new_frames, self.new_bytes = path, frames, size

    @property
    def table(self) -> Table:
        """Per editor what was found, and below what the user has to know."""
        head = f"{self.source}: layout {self.layout} ({self.why})"
        became = (
            f"{counted(self.new_chains, 'new chain')}, {self.extended} extended, "
            f"{self.known_chains} known before"
        )
        if self.path is not None:
            size = f"{self.new_bytes / 1e6:.1f} MB"
            frames = f"{counted(self.new_frames, 'picture')} not there before ({size})"
            title = f"{head}, imported to {self.path}: {became}; {frames}"
        elif self.compared:
            title = f"{head}. Nothing is written; it would be {became}."
        else:
            title = f"{head}. Nothing is written."
        columns = ("editor", "sources", "cycles", "chains", "steps", "frames", "scores", "missing")
        return Table(title, columns, self.rows, [*self._lists(), *self.notes, *self._next()])

    def _lists(self) -> list[str]:
        found = []
        if self.keys:
            keys = counted(self.keys, "key")
            found.append(
                f"Scores: {keys}, {self.collapsed} of them repeated with equal values, "
                f"{self.differing} with values that differ."
            )
        if self.new_scores or self.known_scores:
            found.append(
                f"Published scores of {self.origin!r}: {self.new_scores} new, "
                f"{self.known_scores} known before."
            )
        told = [f"{key}: {' or '.join(values)}" for key, values in self.conflicts]
        kept = "kept as repeats" if self.options.get("conflicts") == "repeat" else "refused"
        for what, names in (
            ("Missing", self.missing),
            ("Failed", self.failed),
            (f"Values that differ, {kept}", told),
            ("No readable pictures", self.malformed),
            ("Of another size than their source", self.sizes),
            ("Not read", self.unread),
        ):
            if names:
                found += [f"{what} ({len(names)}):", *(f"  {name}" for name in names[:SHOWN])]
            if len(names) > SHOWN:
                found.append(f"  and {len(names) - SHOWN} more; --json has all of them")
        return found

    def _next(self) -> list[str]:
        if self.path is None:
            return []
        score = f"convergebench score {self.path}"
        report = f"convergebench report {self.path}"
        frames = any(row[5] for row in self.rows)
        return [f"Go on with: {score}, then {report}" if frames else f"Go on with: {report}"]

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`: everything, lists in full."""
        return {
            "source": self.source,
            "layout": self.layout,
            "recognised_by": self.why,
            "origin": self.origin,
            "path": str(self.path) if self.path else None,
            "editors": self.table.records(),
            "keys": self.keys,
            "collapsed": self.collapsed,
            "conflicts": [{"key": key, "values": list(values)} for key, values in self.conflicts],
            "missing": self.missing,
            "failed": self.failed,
            "malformed": self.malformed,
            "other_sizes": self.sizes,
            "unread": self.unread,
            "new_chains": self.new_chains,
            "extended_chains": self.extended,
            "known_chains": self.known_chains,
            "new_frames": self.new_frames,
            "new_bytes": self.new_bytes,
            "new_scores": self.new_scores,
            "known_scores": self.known_scores,
            "notes": self.notes,
        }


def _rows(
    lines: Sequence[Line], finds: Finds
) -> list[tuple[str, int, int, int, str, int, int, int]]:
    scores = Counter(score.track.editor for score in finds.scores)
    by_editor: dict[str, list[Line]] = {}
    for line in lines:
        by_editor.setdefault(line.track.editor, []).append(line)
    rows = []
    for editor, mine in sorted(by_editor.items()):
        lengths = [max((s.number for s in line.steps), default=0) for line in mine]
        least, most = min(lengths), max(lengths)
        rows.append(
            (
                editor,
                len({line.track.source for line in mine}),
                len({line.track.cycle for line in mine}),
                len(mine),
                f"{most}" if least == most else f"{least}–{most}",
                sum(step.place is not None for line in mine for step in line.steps),
                scores[editor],
                sum(step.outcome == "missing" for line in mine for step in line.steps),
            )
        )
    return rows


def _options(wishes: Wishes) -> dict[str, Any]:
    """What the user said, as far as it is not the default."""
    plain = Wishes()
    told = {name: value for name, value in vars(wishes).items() if value != getattr(plain, name)}
    return json.loads(json.dumps(told, default=dict))  # type: ignore[no-any-return]


def provenance(result: ImportResult, records: Records) -> tuple[str, list[str]]:
    """Name and lines of the record of an import: its facts, then where every file went.

    The name carries a hash of all but the time, so that the same import is recorded once.
    """
    facts = {
        "importer": IMPORTER,
        "convergebench": version("convergebench"),
        "origin": result.origin,
        "source": result.source,
        "layout": result.layout,
        "options": result.options,
        "notes": result.notes,
        "missing": result.missing,
        "failed": result.failed,
        "conflicts": [{"key": key, "values": list(values)} for key, values in result.conflicts],
        "unread": result.unread,
    }
    encode = json.JSONEncoder(ensure_ascii=False).encode
    files = [
        encode(
            {"file": name, "sha256": digest, "chain": chain}
            | ({"truth": True} if step < 0 else {"step": step})
        )
        for name, digest, chain, step in sorted(records.files)
    ]
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256("\n".join([text, *files]).encode()).hexdigest()
    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    head = json.dumps({"at": at, **facts}, sort_keys=True, ensure_ascii=False)
    plain = legal_names([result.origin], "import")[result.origin]
    return f"imports/{plain}-{digest[:10]}.jsonl", [head, *files]
