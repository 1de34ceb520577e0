"""Verifying a run directory or a bundle: all is re-hashed, everything wrong is named."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from convergebench.archive.contents import digest_in
from convergebench.archive.inspection import Bundle
from convergebench.chain import IMPORTED, Chain, FrameRef
from convergebench.errors import StoreDamaged, StoreError, UnknownName, explain
from convergebench.frame import sha256
from convergebench.lines import torn_off
from convergebench.money.ledger import differences, read_ledger
from convergebench.remote import marker
from convergebench.remote.address import Place
from convergebench.store import LEDGER, RunStore
from convergebench.table import Table

AT_ONCE: Final = 16
"""Frames of an address that are fetched at once."""
UNSTORED: Final = "not stored yet, on this machine"
BATCH: Final = 16
"""Frames that a thread hashes in one go: handing small ones over costs more than hashing them."""


@dataclass
class VerifyResult:
    """What is wrong with a run directory or a bundle; all lists are empty when it is sound."""

    path: Place
    chains: int = 0
    frames: int = 0
    missing: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    orphaned: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    unstored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is missing, altered, damaged or not stored. Orphans do no harm."""
        return not (self.missing or self.altered or self.damaged or self.unstored)

    @property
    def defects(self) -> list[str]:
        """Everything that makes it unsound, in words."""
        return [f"{kind}: {text}" for kind, text in self._rows if kind != "orphaned"]

    @property
    def _rows(self) -> list[tuple[str, str]]:
        return [
            (word, text)
            for word, texts in (
                ("missing", self.missing),
                ("altered", self.altered),
                ("damaged", self.damaged),
                (UNSTORED, self.unstored),
                ("orphaned", self.orphaned),
            )
            for text in texts
        ]

    @property
    def table(self) -> Table:
        """The defects as a table."""
        state = "sound" if self.sound else "NOT sound"
        notes = list(self.notes)
        if self.unstored:
            if not (self.missing or self.altered or self.damaged):
                state = "not all of it stored yet"
            notes.append(
                f"What is not stored yet is on this machine alone. Store it from here with: "
                f"convergebench run {self.path}"
            )
        title = f"{self.path}: {self.chains} chains, {self.frames} frames, {state}"
        return Table(title, ("defect", "what"), self._rows, notes)

    def __str__(self) -> str:
        table = self.table
        return str(table) if table.rows else "\n".join([table.title, *table.notes])

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "sound": self.sound,
            "chains": self.chains,
            "frames": self.frames,
            "missing": self.missing,
            "altered": self.altered,
            "orphaned": self.orphaned,
            "damaged": self.damaged,
            "unstored": self.unstored,
            "notes": self.notes,
        }


def verify(
    directory: str | os.PathLike[str],
    *,
    observe: Callable[[int, int], None] | None = None,
) -> VerifyResult:
    """Re-hash every frame and check every record of a run, or of a bundle without unpacking it.

    Missing: a record names a frame that is not there. Altered: a frame's bytes are not what its
    name says. Damaged: a record cannot be read, a chain's steps do not follow from each other, or
    the ledger says other dollars than the chains' records. Orphaned: a frame no record names (a
    process was killed between the two writes). Unstored: a frame or records of an address that the
    store could not take, or that a kill left behind, and that are in the working copy here.
    """
    if os.path.isfile(directory):
        return _verify_bundle(Path(directory), observe)
    store = RunStore.open(Path(directory))
    result, named = check_records(store)
    files = sorted(store.frame_names())
    batches = [files[first : first + BATCH] for first in range(0, len(files), BATCH)]
    done = 0
    with ThreadPoolExecutor(AT_ONCE if store.is_remote else None) as pool:
        for altered in pool.map(partial(_altered, store), batches):
            result.altered += [f"{name} of {named.get(name, 'no record')}" for name in altered]
            done = min(done + BATCH, len(files))
            if observe:
                observe(done, len(files))
    return result


def check_records(
    store: RunStore, present: Set[str] | None = None
) -> tuple[VerifyResult, dict[str, str]]:
    """All that can be said without hashing a frame, and which frames are named, and by whom.

    Args:
        store: The run.
        present: The frames that are there, where that is not the run's own folder.
    """
    result = VerifyResult(store.place)
    result.unstored += _unstored_records(store)
    named: dict[str, str] = {}
    chains: list[Chain] = []

    def name(ref: FrameRef, owner: str) -> None:
        named.setdefault(store.frame_name(ref), owner)

    try:
        for ref in (r for pair in (store.read_json("sources.json") or {}).values() for r in pair):
            if ref:
                name(FrameRef.model_validate(ref), "a source")
    except (StoreDamaged, ValueError, TypeError, AttributeError) as error:
        result.damaged.append(f"sources.json: {explain(error)}")
    for file in sorted(store.chain_files()):
        try:
            chain, torn = store.read_chain(file)
        except StoreDamaged as error:
            result.damaged.append(str(error))
            continue
        result.chains += 1
        chains.append(chain)
        if torn:
            result.damaged.append(f"{file.name}: {len(torn)} bytes of a torn record at its end")
        try:
            result.damaged += _inconsistencies(store, chain)
        except UnknownName as error:
            result.damaged.append(f"{chain.key.id}: {error}")
        for ref in _refs(chain):
            name(ref, chain.key.id)
    if not result.damaged:  # a chain that cannot be read is no difference of dollars
        result.damaged += _money(store, chains)
    here = _unstored(store, named)  # before the list is made: one stored meanwhile is on it
    present = store.frame_names() if present is None else present
    result.frames = len(present)
    for frame, owner in sorted(named.items()):
        if frame not in present:
            absent = result.unstored if frame in here else result.missing
            absent.append(f"{frame} of {owner}")
    result.orphaned = sorted(present - named.keys())
    if store.is_remote and (store.path / marker.NAME).exists() and not result.unstored:
        result.notes.append(
            f"Do not delete the working copy {store.path}: a session is at work or did not end, so "
            f"there is a file {marker.NAME} in it. When all of it is stored, `convergebench run "
            f"{store.place}` here removes that file."
        )
    return result, named


def _unstored_records(store: RunStore) -> list[str]:
    """The records of an address that are on this machine alone; no scores, which are made again."""
    names = [name for name in store.unstored_records() if not name.startswith("scores/")]
    return [f"records of {name}" for name in names]


def _unstored(store: RunStore, named: Iterable[str]) -> set[str]:
    """The frames of an address that were written here, are whole, and were not stored so far."""
    if not store.is_remote:
        return set()
    files = {path.name: path for path in (store.path / "frames").glob("[0-9a-f][0-9a-f]/*")}
    found = set()
    for name in named:
        path = files.get(name.rpartition("/")[2])
        with contextlib.suppress(FileNotFoundError):  # stored by a run that is at work here
            if path and sha256(path.read_bytes()) == digest_in(name):
                found.add(name)
    return found


def _verify_bundle(path: Path, observe: Callable[[int, int], None] | None) -> VerifyResult:
    """Check a bundle where it is: only its records are unpacked, to a temporary directory."""
    with Bundle(path) as bundle, tempfile.TemporaryDirectory() as scratch:
        found, names = list(bundle.defects), bundle.names
        for done, name in enumerate(names, 1):
            if digest_in(name) or name.startswith("report/"):
                defect = bundle.copy(name, len)
            else:
                target = Path(scratch, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "wb") as file:
                    defect = bundle.copy(name, file.write)
                if defect:
                    target.unlink()
            found += [defect] if defect else []
            if observe:
                observe(done, len(names))
        frames = {name for name in bundle.seen if digest_in(name)}
        result = VerifyResult(path, frames=len(frames))
        try:
            store = RunStore.open(scratch)
            result, _ = check_records(store, frames)
        except StoreError as error:
            if not found:
                result.damaged.append(str(error).partition(". ")[0])
        result.path = path
        result.damaged = [text.replace(scratch, str(path)) for text in result.damaged]
        told = {text.partition(" of ")[0] for text in result.missing}
        for each in found:
            if each.kind == "altered":
                result.altered.append(str(each))
            elif each.kind == "missing" and each.name not in told:
                result.missing.append(str(each))
            elif each.kind != "missing":
                result.damaged.append(str(each))
    return result


def _refs(chain: Chain) -> Iterator[FrameRef]:
    yield from (ref for ref in (chain.source, chain.truth) if ref)
    yield from (step.frame for step in chain.steps if step.frame)


def _inconsistencies(store: RunStore, chain: Chain) -> Iterator[str]:
    """Steps out of order, frames made twice, inputs that are not the frames they should be.

    An imported chain may have gaps, each with a record that says so; what was made from a frame
    that is not there names no inputs.
    """
    cycle = store.suite.cycle_of(chain.key.cycle)
    frames = {0: chain.source.sha256} if chain.source else {}
    last, imported = 0, chain.editor_version == IMPORTED
    for step in chain.steps:
        where = f"{chain.key.id}: step {step.step}"
        if step.step > last + 1 or step.step in frames:
            yield f"{where} is recorded after step {last}"
            return
        made_from = [frames.get(i) for i in cycle.inputs_at(step.step)]
        expected = tuple(digest for digest in made_from if digest)
        whole = len(expected) == len(made_from)
        # An imported frame may have come before the one it was made from.
        if step.inputs != (expected if whole else ()) and not (imported and step.inputs == ()):
            yield f"{where} was not made from the frames before it"
        if step.outcome == "edited":
            if step.frame is None:
                yield f"{where} is marked edited but names no frame"
                return
            frames[step.step] = step.frame.sha256
        if imported or step.outcome == "edited":
            last = max(last, step.step)


def _money(store: RunStore, chains: list[Chain]) -> list[str]:
    """Where the ledger is torn, cannot be read, or differs from the chains' records."""
    path = store.path / LEDGER
    torn = len(torn_off(path.read_bytes())) if path.exists() else 0
    found = [f"{LEDGER}: {torn} bytes of a torn record at its end"] if torn else []
    try:
        return found + differences(read_ledger(store.path), chains)
    except StoreDamaged as error:
        return [*found, str(error)]


def _altered(store: RunStore, names: Sequence[str]) -> list[str]:
    """Which of these frames are not what their names say."""
    said = ((name, name.rpartition("/")[2].partition(".")[0]) for name in names)
    return [name for name, digest in said if _hash(store, name) != digest]


def _hash(store: RunStore, name: str) -> str:
    if store.is_remote:
        return sha256(store.frame_bytes(name))
    with open(f"{store.path}/{name}", "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
