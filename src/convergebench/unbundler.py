"""Unbundling: a bundle, perhaps from a stranger, back into a run directory.

Everything the archive says of itself is checked before anything is written; the bytes of every
file are checked while they are written to a scratch file, which is renamed when they are right.
`run.json` comes last: a directory is no run before it is whole. Interrupted, the same command goes
on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from convergebench.archive.contents import MANIFEST, derived, kind
from convergebench.archive.inspection import Bundle
from convergebench.disk import Writing, hold_lock, make_directory, plain_errors, sync_directory
from convergebench.errors import BundleError, explain
from convergebench.remote.address import require_directory
from convergebench.store import RunStore
from convergebench.store.reading import FORMAT, RunInfo
from convergebench.suite import Suite
from convergebench.table import Table
from convergebench.wording import counted

Observer = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""

_OURS: Final = ("run.lock", "score.lock")
_SCRATCH: Final = "frames/.new"


@dataclass
class UnbundleResult:
    """A bundle that was unpacked.

    Attributes:
        path: The run directory.
        bundle: The archive.
        fingerprint: SHA-256 of its manifest; None where not all of it was unpacked, which is
            another run then.
        files: How many files of each kind are now there.
        sizes: Their bytes.
        kept: How many of them were there and right before.
        defects: What is wrong with the bundle, when good files were salvaged from it.
        is_run: Whether the directory can be opened as a run.
    """

    path: Path
    bundle: Path
    fingerprint: str | None = None
    files: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    defects: list[str] = field(default_factory=list)
    is_run: bool = False

    @property
    def whole(self) -> bool:
        """Whether everything the bundle should have is there."""
        return self.is_run and not self.defects

    @property
    def table(self) -> Table:
        """What was unpacked."""
        rows = [(kind, count, self.sizes[kind]) for kind, count in sorted(self.files.items())]
        notes = [f"fingerprint {self.fingerprint}"] if self.fingerprint else []
        if self.kept:
            were = "was" if self.kept == 1 else "were"
            notes.append(f"{counted(self.kept, 'file')} {were} there and right before")
        notes += [f"NOT salvaged: {text}" for text in self.defects]
        if not self.is_run:
            notes.append("It cannot be opened as a run: run.json or suite.json is not there.")
        if self.defects:
            notes.append("No fingerprint: this is not the whole run that was bundled.")
        files, size = counted(self.files.total(), "file"), counted(self.sizes.total(), "byte")
        title = f"{self.path}: {files}, {size}"
        return Table(title, ("what", "files", "bytes"), rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "bundle": str(self.bundle),
            "fingerprint": self.fingerprint,
            "files": dict(self.files),
            "bytes": dict(self.sizes),
            "kept": self.kept,
            "whole": self.whole,
            "is_run": self.is_run,
            "defects": self.defects,
        }


def unbundle(
    file: str | os.PathLike[str],
    to: str | os.PathLike[str] | None = None,
    *,
    salvage: bool = False,
    max_size: int | None = None,
    observe: Observer | None = None,
) -> UnbundleResult:
    """Unpack a bundle into a run directory, trusting nothing in it.

    Args:
        file: The bundle.
        to: The directory; by default the bundle's name without its ending, in the current one.
        salvage: Whether the good files of a damaged bundle are unpacked.
        max_size: Refuse to unpack to more bytes than this.
        observe: Called with bytes done and bytes in all.

    Raises:
        BundleError: The bundle is damaged or unsafe; or the directory holds something else.
        StoreBusy: Another process works in the directory.
    """
    source = Path(file)
    path = require_directory(to, "unbundle") if to is not None else Path(source.stem)
    with Bundle(source) as bundle:
        if bundle.defects and not salvage:
            raise _refusal(bundle, [str(d) for d in bundle.defects], "Nothing was unpacked.")
        result = UnbundleResult(path, source, bundle.fingerprint)
        result.defects = [str(defect) for defect in bundle.defects]
        last = _checked_records(bundle, result, salvage=salvage)
        _require_place(path, bundle, last)
        _require_space(path, bundle, max_size)
        total = bundle.size
        with plain_errors(path), _own(path):
            for name in bundle.names:
                if name != "run.json":
                    _unpack(bundle, name, result)
                if observe:
                    observe(result.sizes.total(), total)
            if result.defects and not salvage:
                told = f"{path} is no run; a whole copy of the bundle can be unpacked over it."
                raise _refusal(bundle, result.defects, told)
            # What run.json vouches for must be on the disk before it.
            os.sync()
            if last is not None:
                with Writing(path / _SCRATCH) as disk:
                    disk.new_file(path / "run.json", last)
                _count(result, "run.json", len(last))
                result.is_run = True
                RunStore.open(path)
            if observe:
                observe(total, total)
        if not result.whole:
            result.fingerprint = None
    return result


def _checked_records(bundle: Bundle, result: UnbundleResult, *, salvage: bool) -> bytes | None:
    """The bytes of `run.json`, after it and the suite were found legal; None if they are lost."""
    try:
        last = bundle.read("run.json")
        info = RunInfo.model_validate_json(last)
        Suite.model_validate_json(bundle.read("suite.json"))
    except (BundleError, ValidationError) as error:
        why = explain(error) if isinstance(error, ValidationError) else str(error)
        told = why if why.startswith(str(bundle.path)) else f"run.json or suite.json: {why}"
        if not salvage:
            raise BundleError(f"{bundle.path} holds no run that can be opened: {told}") from error
        result.defects.append(told.removeprefix(f"{bundle.path}: "))
        return None
    if info.format != FORMAT:
        raise BundleError(
            f"{bundle.path} holds a run of format {info.format}, this version reads {FORMAT}"
        )
    return last


def _require_place(path: Path, bundle: Bundle, run: bytes | None) -> None:
    """Refuse a place that holds anything but this run, or what is unpacked of it."""
    if path.exists() and not path.is_dir():
        raise BundleError(f"{path} is not a directory. Choose another --to.")
    if RunStore.is_run(path):
        if (path / "run.json").read_bytes() != run:
            raise BundleError(f"{path} holds a different run. Choose another --to.")
        # The run may have gone on since: what it has now was paid for, or can be made again.
        for name in bundle.names:
            record, own = kind(name) != "frames" and not derived(name), path / name
            if record and own.exists() and _digest_of(own) != bundle.digest(name):
                raise BundleError(
                    f"{path} holds this run, and its {name} is another than the bundle's. "
                    "It is not overwritten: choose another --to."
                )
        return
    for folder, _, names in os.walk(path):
        for each in names:
            name = Path(folder, each).relative_to(path).as_posix()
            known = name in bundle.seen or name in _OURS or name.startswith(_SCRATCH + "/")
            if not known:
                raise BundleError(
                    f"{path} exists and holds {name}, which is not of this bundle. "
                    "Choose another --to, or empty it."
                )


def _require_space(path: Path, bundle: Bundle, max_size: int | None) -> None:
    """Refuse what would unpack to more than is allowed or free."""
    if max_size is not None and bundle.size > max_size:
        raise BundleError(
            f"{bundle.path} unpacks to {bundle.size:,} bytes, more than the {max_size:,} allowed "
            "(--max-size). Nothing was unpacked."
        )
    place = path.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    needed = sum(
        bundle.entries[name].size
        for name in bundle.names
        if not _has_size(path / name, bundle.entries[name].size)
    )
    if needed > free:
        raise BundleError(
            f"{bundle.path} needs {needed:,} bytes, and {place} has {free:,} free. "
            "Nothing was unpacked: free some space, or choose another --to."
        )


@contextlib.contextmanager
def _own(path: Path) -> Iterator[None]:
    """Make the folders of a run, and hold them against `run`, `score` and other unbundlings."""
    for part in (_SCRATCH, "chains", "scores"):
        make_directory(path / part)
    with contextlib.ExitStack() as held:
        for what in ("run", "score"):
            held.enter_context(hold_lock(path / f"{what}.lock", "unbundle"))
        for shard in range(256):
            (path / "frames" / f"{shard:02x}").mkdir(exist_ok=True)
        sync_directory(path / "frames")
        for left in (path / _SCRATCH).iterdir():
            left.unlink()
        yield


def _unpack(bundle: Bundle, name: str, result: UnbundleResult) -> None:
    """Unpack one file, unless it is there; note what is wrong with it."""
    target, size = result.path / name, bundle.entries[name].size
    if _has_size(target, size) and _digest_of(target) == bundle.digest(name):
        result.kept += 1
        _count(result, name, size)
        return
    scratch = result.path / _SCRATCH / "unpacking"
    try:
        with open(scratch, "wb") as out:
            defect = bundle.copy(name, out.write)
        if defect:
            result.defects.append(str(defect))
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)
    _count(result, name, size)


def _count(result: UnbundleResult, name: str, size: int) -> None:
    result.files[kind(name)] += 1
    result.sizes[kind(name)] += size


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _digest_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refusal(bundle: Bundle, defects: list[str], told: str) -> BundleError:
    whole = "" if MANIFEST in bundle.seen else " (it has no manifest)"
    lists = "names the defect" if len(defects) == 1 else f"lists all {len(defects)} defects"
    return BundleError(
        f"{bundle.path} is not a whole and safe bundle{whole}. {told} "
        "Ask for it again, or take the good files with --salvage. "
        f"`convergebench verify {bundle.path}` {lists}:",
        defects,
    )
