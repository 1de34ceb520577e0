"""Verifying a run directory: everything is re-hashed, everything wrong is named."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergebench.chain import PASSED, Chain, FrameRef
from convergebench.errors import StoreDamaged
from convergebench.store import RunStore
from convergebench.table import Table


@dataclass
class VerifyResult:
    """What is wrong with a run directory; all lists are empty when it is sound."""

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
    """Re-hash every frame and check every record of a run.

    Missing: a record names a frame that is not there. Altered: a frame's bytes are not what its
    name says. Damaged: a record cannot be read, or a chain's steps do not follow from each other.
    Orphaned: a frame no record names (a process was killed between the two writes).
    """
    store = RunStore.open(Path(directory))
    result = VerifyResult(store.path)
    named: dict[Path, str] = {}
    for pair in (store.read_json("sources.json") or {}).values():
        for ref in pair:
            if ref:
                named.setdefault(store.frame_path(FrameRef.model_validate(ref)), "a source")
    for file in sorted(store.chain_files()):
        try:
            chain, torn = store.read_chain(file)
        except StoreDamaged as error:
            result.damaged.append(str(error))
            continue
        result.chains += 1
        if torn:
            result.damaged.append(f"{file.name}: {len(torn)} bytes of a torn record at its end")
        result.damaged += _inconsistencies(store, chain)
        for ref in _refs(chain):
            named.setdefault(store.frame_path(ref), chain.key.id)
    present = {p for p in (store.path / "frames").glob("[0-9a-f][0-9a-f]/*") if p.is_file()}
    result.frames = len(present)
    for path, owner in sorted(named.items()):
        if path not in present:
            result.missing.append(f"{path.relative_to(store.path)} of {owner}")
    result.orphaned = [str(p.relative_to(store.path)) for p in sorted(present - set(named))]
    files = sorted(present)
    with ThreadPoolExecutor() as pool:
        for done, (path, digest) in enumerate(zip(files, pool.map(_hash, files), strict=True), 1):
            if digest != path.name.partition(".")[0]:
                owner = named.get(path, "no record")
                result.altered.append(f"{path.relative_to(store.path)} of {owner}")
            if observe:
                observe(done, len(files))
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
    last = 0
    for step in chain.steps:
        where = f"{chain.key.id}: step {step.step}"
        if step.step > last + 1 or step.step in frames:
            yield f"{where} is recorded after step {last}"
            return
        made_from = [frames.get(i) for i in cycle.inputs_at(step.step)]
        expected = tuple(digest for digest in made_from if digest)
        if step.inputs != (expected if len(expected) == len(made_from) else ()):
            yield f"{where} was not made from the frames before it"
        if step.outcome == "edited":
            if step.frame is None:
                yield f"{where} is marked edited but names no frame"
                return
            frames[step.step] = step.frame.sha256
        if step.outcome in PASSED:
            last = max(last, step.step)


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
