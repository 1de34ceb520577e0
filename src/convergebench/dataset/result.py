"""What was exported: counted while it is written, shown afterwards, and told in the card."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergebench.chain import PASSED, Chain
from convergebench.table import Table
from convergebench.wording import counted


@dataclass
class EditorCount:
    """What one editor did."""

    versions: set[str] = field(default_factory=set)
    models: Counter[str] = field(default_factory=Counter)
    chains: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    dollars: float = 0.0

    @property
    def failures(self) -> dict[str, int]:
        """Steps that came to no frame, by outcome."""
        return {name: n for name, n in sorted(self.outcomes.items()) if name not in PASSED}


@dataclass
class Census:
    """What is in a dataset, counted chain by chain."""

    editors: dict[str, EditorCount] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    cycles: Counter[str] = field(default_factory=Counter)
    settings: Counter[str] = field(default_factory=Counter)
    repeats: int = 0
    begun: str = ""
    ended: str = ""

    def take(self, chain: Chain) -> None:
        """Count a chain."""
        key = chain.key
        mine = self.editors.setdefault(key.editor, EditorCount())
        mine.versions.add(chain.editor_version)
        mine.chains += 1
        mine.dollars += chain.spent
        mine.outcomes.update(step.outcome for step in chain.final)
        mine.models.update(step.call.model for step in chain.steps if step.call.model)
        self.sources.add(key.source)
        self.cycles[key.cycle] += 1
        self.settings[key.settings.label or "defaults"] += 1
        self.repeats = max(self.repeats, key.repeat + 1)
        times = sorted(step.started for step in chain.steps if step.started)
        if times:
            self.begun = min(self.begun or times[0], times[0])
            self.ended = max(self.ended, times[-1])

    @property
    def chains(self) -> int:
        """How many chains there are."""
        return sum(each.chains for each in self.editors.values())

    @property
    def outcomes(self) -> Counter[str]:
        """What all steps came to."""
        return sum((each.outcomes for each in self.editors.values()), Counter())


@dataclass
class Exported:
    """A dataset that was written.

    Attributes:
        path: The dataset's folder.
        run: The run it was made from.
        name: What it is called.
        licence: The licence it is published under.
        form: `parquet`, `webdataset` or `both`.
        census: What is in it.
        rows: Rows of each table.
        scores: Score rows; None where they were not wanted.
        files: Files written.
        bytes: Their bytes, card and checksums among them.
        cleaned: Texts that a secret, a signed address or a path was taken out of.
        uncut: Frames that are too small for a patch.
        endings: Endings of the members of each table's tar shards.
        notes: What the user must know, a sentence each.
    """

    path: Path
    run: Path
    name: str
    licence: str
    form: str
    census: Census = field(default_factory=Census)
    rows: Counter[str] = field(default_factory=Counter)
    scores: int | None = None
    files: int = 0
    bytes: int = 0
    cleaned: int = 0
    uncut: int = 0
    endings: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def table(self) -> Table:
        """What is in the dataset, by editor."""
        names = ("editor", "chains", "frames", "failed", "dollars")
        rows = [
            (
                name,
                each.chains,
                each.outcomes["edited"],
                sum(each.failures.values()),
                round(each.dollars, 4),
            )
            for name, each in sorted(self.census.editors.items())
        ]
        title = (
            f"{self.path}: {counted(self.rows['frames'], 'row')}, "
            f"{counted(self.files, 'file')}, {self.bytes / 1e6:.1f} MB"
        )
        return Table(title, names, rows, self._notes())

    def _notes(self) -> list[str]:
        tables = ", ".join(f"{name} {count:,}" for name, count in sorted(self.rows.items()))
        scores = "left out" if self.scores is None else f"{self.scores:,}"
        notes = [f"Rows: {tables}; scores: {scores}."]
        if failures := sum(sum(e.failures.values()) for e in self.census.editors.values()):
            notes.append(f"{counted(failures, 'step')} failed, and each is a row all the same")
        if self.cleaned:
            notes.append(
                f"{counted(self.cleaned, 'text')} had a secret, a signed address or a path of a "
                "machine in it, which was taken out"
            )
        if self.uncut:
            notes.append(
                f"{counted(self.uncut, 'frame', 'is', 'are')} smaller than a patch, and cut nowhere"
            )
        check = f"Check it with: cd {self.path} && sha256sum -c --quiet SHA256SUMS"
        return [*notes, *self.notes, check]

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "run": str(self.run),
            "name": self.name,
            "licence": self.licence,
            "format": self.form,
            "chains": self.census.chains,
            "rows": dict(self.rows),
            "scores": self.scores,
            "outcomes": dict(self.census.outcomes),
            "editors": {
                name: {
                    "versions": sorted(each.versions),
                    "models": dict(each.models),
                    "chains": each.chains,
                    "outcomes": dict(each.outcomes),
                    "dollars": each.dollars,
                }
                for name, each in sorted(self.census.editors.items())
            },
            "files": self.files,
            "bytes": self.bytes,
            "cleaned": self.cleaned,
            "uncut": self.uncut,
            "notes": self.notes,
        }
