"""Verifying a run directory or a bundle: all is re-hashed, everything wrong is named."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergebench.archive.contents import digest_in
from convergebench.archive.inspection import Bundle
from convergebench.chain import IMPORTED, Chain, FrameRef
from convergebench.errors import StoreDamaged, StoreError, UnknownName, explain
from convergebench.money.ledger import differences, read_ledger
from convergebench.repair import torn_off
from convergebench.store import LEDGER, RunStore
from convergebench.table import Table


@dataclass
class VerifyResult:
    """What is wrong with a run directory or a bundle; all lists are empty when it is sound."""

    path: Path
    chains: int = 0
    frames: int = 0
    missing: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    orphaned: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is missing, altered or damaged. Orphans do no harm."""
        return not (self.missing or self.altered or self.damaged)

    @property
    def defects(self) -> list[str]:
        """Everything that makes it unsound, in words."""
        kinds = ("missing", "altered", "damaged")
        return [f"{kind}: {text}" for kind in kinds for text in getattr(self, kind)]

    @property
    def table(self) -> Table:
        """The defects as a table."""
        rows = [
            (kind, text)
            for kind in ("missing", "altered", "damaged", "orphaned")
            for text in getattr(self, kind)
        ]
        state = "sound" if self.sound else "NOT sound"
        title = f"{self.path}: {self.chains} chains, {self.frames} frames, {state}"
        return Table(title, ("defect", "what"), rows)

    def __str__(self) -> str:
        return str(self.table) if self.table.rows else self.table.title

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
    process was killed between the two writes).
    """
    if os.path.isfile(directory):
        return _verify_bundle(Path(directory), observe)
    store = RunStore.open(Path(directory))
    result, named = check_records(store)
    files = sorted(_frames_of(store))
    with ThreadPoolExecutor() as pool:
        hashes = pool.map(_hash, (store.path / name for name in files))
        for done, (name, digest) in enumerate(zip(files, hashes, strict=True), 1):
            if digest != Path(name).name.partition(".")[0]:
                result.altered.append(f"{name} of {named.get(name, 'no record')}")
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
    result = VerifyResult(store.path)
    named: dict[str, str] = {}
    chains: list[Chain] = []

    def name(ref: FrameRef, owner: str) -> None:
        named.setdefault(store.frame_path(ref).relative_to(store.path).as_posix(), owner)

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
    present = _frames_of(store) if present is None else present
    result.frames = len(present)
    result.missing = [f"{n} of {owner}" for n, owner in sorted(named.items()) if n not in present]
    result.orphaned = sorted(present - named.keys())
    return result, named


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


def _frames_of(store: RunStore) -> set[str]:
    found = (store.path / "frames").glob("[0-9a-f][0-9a-f]/*")
    return {path.relative_to(store.path).as_posix() for path in found if path.is_file()}


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


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
