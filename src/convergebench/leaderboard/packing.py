"""Packing a run as a submission, and checking that a submission is what it says."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from convergebench.analysis import Findings
from convergebench.analysis.roundtrip import findings_of
from convergebench.analysis.study import study_of
from convergebench.archive.contents import belongs, derived, digest_in, files_of
from convergebench.chain import Chain, count_outcomes
from convergebench.disk import plain_errors
from convergebench.errors import SettingsError, StoreError, explain
from convergebench.frame import sha256
from convergebench.gathering import Gathered, gather
from convergebench.leaderboard.submission import (
    FORMAT,
    NAME,
    EditorClaim,
    FileFact,
    Submission,
    read_submission,
)
from convergebench.machine import versions
from convergebench.remote.address import require_directory
from convergebench.store import RunStore
from convergebench.table import Table
from convergebench.wording import counted, shown

UNTOLD: Final = ("ledger.jsonl", "sessions.jsonl")
"""Records that stay at home: they tell about the machine and the account, and no number rests on
them; what a call cost is in the chains' records, too."""

CLOSE: Final = 1e-9
"""Two sums of the same numbers may differ by as much."""


@dataclass(frozen=True)
class Checked:
    """A submission, and everything that is wrong with it, a sentence each."""

    path: Path
    submission: Submission
    problems: tuple[str, ...] = ()
    findings: Findings | None = field(default=None, repr=False)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def table(self) -> Table:
        """What is claimed, and the problems."""
        told = self.submission
        rows = [
            (e.editor, e.score, e.low, e.high, ", ".join(e.models) or "–", e.dollars)
            for e in told.editors
        ]
        verdict = "sound" if self.sound else counted(len(self.problems), "problem")
        title = f"Submission {told.name} by {told.by}, {told.suite}: {verdict}"
        columns = ("editor", "score", "95 % from", "to", "model returned", "dollars")
        facts = f"{counted(len(told.files), 'file')}, {counted(told.chains, 'chain')}."
        return Table(title, columns, rows, (facts, *self.problems, f"Folder: {self.path}"))

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "sound": self.sound,
            "problems": list(self.problems),
            "submission": self.submission.model_dump(mode="json"),
        }


def pack(
    run: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    by: str,
    name: str = "",
    contact: str = "",
    licence: str = "CC-BY-4.0",
    notes: str = "",
    frames: str = "",
) -> Checked:
    """Make a submission of a scored run: its records without pictures.

    Args:
        run: The run directory.
        to: The folder that the submission's own folder is made in.
        by: Who submits.
        name: Of the submission; by default that of the run directory.
        contact: Where questions go.
        licence: Under which the records may be used.
        notes: What readers have to know.
        frames: The address of a bundle with the pictures.

    Raises:
        ConvergeBenchError: The run has no scores yet.
        SettingsError: Something told about it is not legal.
        StoreError: The place is taken by something else.
    """
    store = RunStore.open(require_directory(run, "leaderboard pack"))
    gathered = gather([run])
    findings = findings_of(study_of(gathered))
    legal = legal_name(name or store.name)
    place = Path(to) / legal
    files, _ = files_of(store.path, with_report=False)
    records = {n: p for n, p in files.items() if _taken(n)}
    if place.resolve() == store.path.resolve() or (place.exists() and not _replaceable(place)):
        raise StoreError(f"{place} exists and is not a submission. Choose another place or name.")
    try:
        told = Submission(
            name=legal,
            by=by,
            contact=contact,
            licence=licence,
            notes=notes,
            frames=frames,
            frames_sha256=_frames_hash(gathered.chains),
            frame_count=len(_frames(gathered.chains)),
            suite=store.info.suite,
            fingerprint=store.info.fingerprint,
            whole=store.suite.whole,
            created=store.info.created,
            packed=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={**versions(), "convergebench": version("convergebench")},
            metrics=findings.metrics,
            ranked_by=findings.ranked_by,
            threshold=findings.threshold,
            chains=len(gathered.chains),
            editors=_claims(gathered, findings),
            files=tuple(_fact(n, p.read_bytes()) for n, p in sorted(records.items())),
        )
    except ValidationError as error:
        raise SettingsError(f"the submission of {store.place}: {explain(error)}") from error
    new = place.with_name(f".{place.name}.new")
    with plain_errors(place):
        shutil.rmtree(new, ignore_errors=True)
        for each, path in records.items():
            (new / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, new / each)
        (new / NAME).write_text(told.model_dump_json(indent=1) + "\n", "utf-8")
        if place.exists():
            shutil.rmtree(place)
        new.rename(place)
    return check(place)


def legal_name(name: str) -> str:
    """What a submission of that name is called."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:80] or "run"


def _replaceable(place: Path) -> bool:
    """Whether a folder is a submission and nothing else, so that it can be made again."""
    files = [p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file()]
    return NAME in files and all(name == NAME or _taken(name) for name in files)


def check(path: str | os.PathLike[str]) -> Checked:
    """Check a submission: its files and their hashes, and that its claims can be recomputed.

    Raises:
        InputError: There is no `submission.json`, or it does not follow the schema.
    """
    place, told = Path(path), read_submission(path)
    problems = list(_wrong_files(place, told))
    if told.format != FORMAT:
        problems.append(f"it has format {told.format}, this version reads {FORMAT}")
    if problems:
        return Checked(place, told, tuple(problems))
    gathered = gather([place])
    findings = findings_of(study_of(gathered, told.threshold))
    problems += _wrong_claims(told, gathered, findings)
    return Checked(place, told, tuple(problems), findings)


def _wrong_files(place: Path, told: Submission) -> Iterable[str]:
    named = {fact.path: fact for fact in told.files}
    for name, fact in named.items():
        if not _taken(name):
            yield f"{name}: no submission has a file of this name"
            continue
        try:
            found = _fact(name, (place / name).read_bytes())
        except OSError as error:
            yield f"{name}: {error.strerror}"
            continue
        if found != fact:
            yield f"{name}: is {found.sha256[:12]}…, the submission says {fact.sha256[:12]}…"
    for needed in ("run.json", "suite.json"):
        if needed not in named:
            yield f"{needed} is missing"
    here = (p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file())
    strangers = sorted(name for name in here if name not in named and name != NAME)
    if strangers:
        yield f"files that it does not name: {shown(strangers)}"


def _wrong_claims(told: Submission, gathered: Gathered, findings: Findings) -> Iterable[str]:
    store = gathered.runs[0].store
    if (told.suite, told.fingerprint) != (store.info.suite, store.suite.content_hash()):
        yield (
            f"it says {told.suite} ({told.fingerprint[:12]}…), its run is {store.info.suite} "
            f"({store.suite.content_hash()[:12]}…)"
        )
    if told.frames_sha256 != _frames_hash(gathered.chains):
        yield "the hash over its frames is not that of its chains"
    mine = {claim.editor: claim for claim in _claims(gathered, findings)}
    theirs = {claim.editor: claim for claim in told.editors}
    if mine.keys() != theirs.keys():
        yield f"it claims {shown(sorted(theirs))}, its chains are of {shown(sorted(mine))}"
    if told.ranked_by != findings.ranked_by:
        yield (
            f"its scores are by {' and '.join(told.ranked_by) or 'nothing'}, recomputed they are "
            f"by {' and '.join(findings.ranked_by) or 'nothing'}"
        )
        return
    for name in sorted(mine.keys() & theirs.keys()):
        for what in ("score", "low", "high"):
            ours, claimed = getattr(mine[name], what), getattr(theirs[name], what)
            if not _same(ours, claimed):
                yield f"{name}: claims {what} {claimed}, recomputed it is {ours}"
        if mine[name].outcomes != theirs[name].outcomes:
            yield f"{name}: its outcomes are not those of its chains"


def _same(ours: float | None, claimed: float | None) -> bool:
    if ours is None or claimed is None:
        return ours is claimed
    return math.isclose(ours, claimed, rel_tol=0, abs_tol=CLOSE)


def _taken(name: str) -> bool:
    return belongs(name) and not derived(name) and not digest_in(name) and name not in UNTOLD


def _fact(name: str, data: bytes) -> FileFact:
    return FileFact(path=name, bytes=len(data), sha256=sha256(data))


def _frames(chains: Sequence[Chain]) -> list[str]:
    held = {ref.sha256 for chain in chains for ref in chain.held.values()}
    return sorted(held | {chain.truth.sha256 for chain in chains if chain.truth})


def _frames_hash(chains: Sequence[Chain]) -> str:
    return hashlib.sha256(json.dumps(_frames(chains)).encode()).hexdigest()


def _claims(gathered: Gathered, findings: Findings) -> tuple[EditorClaim, ...]:
    by_editor: dict[str, list[Chain]] = {}
    for chain in gathered.chains:
        by_editor.setdefault(chain.key.editor, []).append(chain)
    return tuple(
        EditorClaim(
            editor=s.editor,
            control=s.control,
            versions=tuple(sorted({c.editor_version for c in by_editor.get(s.editor, [])})),
            models=tuple(
                sorted(
                    {
                        step.call.model
                        for c in by_editor.get(s.editor, [])
                        for step in c.steps
                        if step.call.model
                    }
                )
            ),
            outcomes=dict(sorted(count_outcomes(by_editor.get(s.editor, [])).items())),
            dollars=sum(c.spent for c in by_editor.get(s.editor, [])),
            score=s.score,
            low=s.low,
            high=s.high,
        )
        for s in sorted(findings.standings, key=lambda s: s.editor)
    )
