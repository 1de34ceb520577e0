"""Bundling: a run directory as one archive that can be checked, and made again byte by byte.

    my-run.zip
      run.json, suite.json, chains/…, scores/…    all records, by name
      frames/…                                    then all frames, by name
      manifest-sha256.txt                         SHA-256 and name of every file above

Entries are stored, with fixed dates and rights, so equal runs make equal archives. What is being
written is `FILE.part`: a killed process leaves it, the next one checks its entries one by one,
cuts off what is not whole, and goes on from there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import ValidationError

from convergebench.archive import structure
from convergebench.archive.contents import (
    MANIFEST,
    digest_in,
    files_of,
    kind,
    twins,
    write_manifest,
)
from convergebench.archive.inspection import CHUNK, Bundle
from convergebench.archive.structure import Entry
from convergebench.chain import Chain
from convergebench.disk import plain_errors, sync_directory
from convergebench.errors import BundleError, StoreBusy, StoreError
from convergebench.remote.address import require_directory
from convergebench.store import RunStore
from convergebench.store.reading import RunInfo
from convergebench.table import Table
from convergebench.verifier import check_records
from convergebench.wording import counted

Observer = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


@dataclass
class BundleResult:
    """A bundle that was written.

    Attributes:
        path: The archive.
        run: The run directory.
        fingerprint: SHA-256 of its manifest.
        files: How many files of each kind are in it.
        sizes: Their bytes.
        resumed: Bytes that an earlier, interrupted process had written and that were kept.
        absent: What a run that is not sound lacks, or has and could not be taken.
        strangers: Files of the run directory that are no part of a run, and were left out.
    """

    path: Path
    run: Path
    fingerprint: str = ""
    files: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    absent: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    @property
    def table(self) -> Table:
        """What is in the bundle."""
        rows = [(kind, count, self.sizes[kind]) for kind, count in sorted(self.files.items())]
        notes = [f"fingerprint {self.fingerprint}"]
        if self.resumed:
            were = "was" if self.resumed == 1 else "were"
            notes.append(
                f"{counted(self.resumed, 'byte')} {were} there from an interrupted bundling"
            )
        notes += [f"NOT in the bundle: {text}" for text in self.absent]
        notes += [f"left out, no file of a run: {name}" for name in self.strangers]
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
            "run": str(self.run),
            "fingerprint": self.fingerprint,
            "files": dict(self.files),
            "bytes": dict(self.sizes),
            "resumed": self.resumed,
            "absent": self.absent,
            "left_out": self.strangers,
        }


def bundle(
    directory: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    with_report: bool = False,
    damaged: bool = False,
    observe: Observer | None = None,
) -> BundleResult:
    """Write a run as one archive. The run is not altered, and cannot change meanwhile.

    Args:
        directory: The run.
        out: The archive; by default the run's name with `.zip` in the current directory.
        with_report: Whether the report's pages go along.
        damaged: Whether a run that is not sound is bundled all the same, as far as it is there.
        observe: Called with bytes done and bytes in all.

    Raises:
        BundleError: The run is not sound or has nothing in it, or the archive's place is taken
            or not there.
        StoreBusy: The run is being written, or another process writes this archive.
    """
    store = RunStore.open(require_directory(directory, "bundle"))
    path = Path(out) if out is not None else Path(store.name + ".zip")
    _require_place(path, store)
    with contextlib.ExitStack() as held:
        held.enter_context(_kept_still(store.path))
        result = BundleResult(path, store.path)
        files, result.strangers = files_of(store.path, with_report=with_report)
        if double := twins(files):
            raise BundleError(
                f"{store.place} has files whose names differ only in upper and lower case, which "
                f"not every disk can hold: {', '.join(double)}. Rename one of them."
            )
        result.absent = check_records(store)[0].defects
        if result.absent and not damaged:
            raise _unsound(store.path, result.absent)
        if not damaged and not any(chain.steps for chain in _chains(store)):
            raise _empty(store)
        held.enter_context(plain_errors(path))
        part = held.enter_context(_part_of(path))
        writer = _Writer(part, files, observe)
        writer.resume()
        result.resumed = part.tell()
        altered = writer.go_on(stop_at_altered=not damaged)
        result.absent += altered
        if altered and not damaged:
            raise _unsound(store.path, altered)
        result.fingerprint = writer.finish()
        os.replace(_part_path(path), path)
        sync_directory(path.parent)
        for name in writer.digests:
            result.files[kind(name)] += 1
            result.sizes[kind(name)] += writer.sizes[name]
    return result


class _Writer:
    """Writes the entries of an archive one after the other, from wherever it stands."""

    def __init__(self, part: BinaryIO, files: dict[str, Path], observe: Observer | None) -> None:
        self._part: Final = part
        self._files: Final = files
        with _readable():
            self.sizes: Final = {name: path.stat().st_size for name, path in files.items()}
        self._total: Final = sum(self.sizes.values())
        self._observe: Final = observe
        self._done = 0
        self._entries: list[Entry] = []
        self.digests: dict[str, str] = {}

    def resume(self) -> None:
        """Keep the whole entries that are there and right; cut off everything after them."""
        length = self._part.seek(0, os.SEEK_END)
        good = 0
        found = iter(structure.walk(self._part, length)[0])
        for name, path in self._files.items():
            entry = next(found, None)
            size = self.sizes[name]
            if entry is None or entry.name != name or entry.end > length or entry.size != size:
                break
            header = structure.local_header(name, size, entry.crc)
            self._part.seek(good)
            if self._part.read(len(header)) != header:
                break
            crc, digest = _hashed(self._part, size)
            if crc != entry.crc or digest != (digest_in(name) or _digest_of(path)):
                break
            self._keep(entry, digest)
            good = entry.end
        self._part.truncate(good)
        self._part.seek(good)

    def go_on(self, *, stop_at_altered: bool) -> list[str]:
        """Write the remaining files. Returns the frames that are not what their names say.

        Such a frame is not written; after the first one nothing is, if so asked, and the others
        are only looked for.
        """
        altered: list[str] = []
        for name, path in list(self._files.items())[len(self._entries) :]:
            offset = self._part.tell()
            with _readable(), open(path, "rb") as source:
                writing = not (altered and stop_at_altered)
                entry, digest = self._append(source, name, self._part if writing else None)
            if digest != (digest_in(name) or digest):
                altered.append(f"altered: {name}")
                self._part.seek(offset)
                self._part.truncate()
            elif writing:
                self._keep(entry, digest)
        return altered

    def finish(self) -> str:
        """Write the manifest and the archive's directory, durably. Returns the fingerprint."""
        manifest = write_manifest(self.digests)
        offset = self._part.tell()
        crc = zlib.crc32(manifest)
        self._part.write(structure.local_header(MANIFEST, len(manifest), crc) + manifest)
        entries = [*self._entries, Entry(MANIFEST, offset, len(manifest), len(manifest), crc)]
        for record in structure.ending(entries, self._part.tell()):
            self._part.write(record)
        self._part.flush()
        os.fsync(self._part.fileno())
        return hashlib.sha256(manifest).hexdigest()

    def _append(self, source: BinaryIO, name: str, part: BinaryIO | None) -> tuple[Entry, str]:
        """Copy a file, hashing it on the way; to nowhere when there is no archive to write to."""
        size, read, crc, digest = self.sizes[name], 0, 0, hashlib.sha256()
        offset = self._part.tell()
        while piece := source.read(CHUNK):
            read += len(piece)
            crc = zlib.crc32(piece, crc)
            digest.update(piece)
            if part and read == len(piece):
                # The checksum is known now only if this is all; else the header is written again.
                part.write(structure.local_header(name, size, crc if read == size else 0))
            if part:
                part.write(piece)
            self._progress(len(piece))
        if read != size:
            raise StoreError(
                f"{name} changed from {size} to {read} bytes while it was read. "
                "Wait for what is writing it, then run the same command again."
            )
        if part and (size > CHUNK or size == 0):
            part.seek(offset)
            part.write(structure.local_header(name, size, crc))
            part.seek(0, os.SEEK_END)
        return Entry(name, offset, size, size, crc), digest.hexdigest()

    def _keep(self, entry: Entry, digest: str) -> None:
        self._entries.append(entry)
        self.digests[entry.name] = digest
        if entry.start:  # found there, not written now
            self._progress(entry.size)

    def _progress(self, size: int) -> None:
        self._done += size
        if self._observe:
            self._observe(self._done, self._total)


def _hashed(file: BinaryIO, size: int) -> tuple[int, str]:
    """CRC and SHA-256 of the next bytes of a file."""
    crc, digest = 0, hashlib.sha256()
    while size and (piece := file.read(min(size, CHUNK))):
        crc = zlib.crc32(piece, crc)
        digest.update(piece)
        size -= len(piece)
    return crc, digest.hexdigest()


def _digest_of(path: Path) -> str:
    with _readable(), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Say it plainly when a file of the run cannot be read."""
    try:
        yield
    except OSError as error:
        if error.filename is None:  # the archive's own: it is open, not named
            raise
        raise StoreError(f"cannot read {error.filename} ({error.strerror})") from error


@contextlib.contextmanager
def _kept_still(run: Path) -> Iterator[None]:
    """Hold a run so that nobody can `run` or `score` it, without writing to it.

    The locks are shared ones: several processes may bundle a run at once, and what a killed
    process left in its lock file, which the next `run` reads, stays there.
    """
    with contextlib.ExitStack() as held:
        for what in ("run", "score"):
            try:
                fd = os.open(run / f"{what}.lock", os.O_RDONLY | os.O_CREAT, 0o644)
            except OSError:  # a read-only disk: nobody writes there
                continue
            held.callback(os.close, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreBusy(
                    f"{run} is being written by another process ({what}). "
                    "Wait for it, or stop it, then run the same command again."
                ) from error
        yield


def _part_path(path: Path) -> Path:
    return path.with_name(path.name + ".part")


@contextlib.contextmanager
def _part_of(path: Path) -> Iterator[BinaryIO]:
    """The archive while it is being written, held against other processes."""
    part = _part_path(path)
    fd = os.open(part, os.O_RDWR | os.O_CREAT, 0o644)
    with open(fd, "r+b") as file:
        busy = f"{part} is being written by another process. Wait for it, or choose another --out."
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreBusy(busy) from error
        # Whoever held it before may have finished, and the file be in its place by now.
        if not part.exists() or not os.path.samestat(os.fstat(fd), os.stat(part)):
            raise StoreBusy(busy)
        start = file.read(len(structure.OPENING))
        if start != structure.OPENING[: len(start)]:
            raise BundleError(
                f"{part} exists and is no unfinished bundle. Remove it, or choose another --out."
            )
        yield file


def _require_place(path: Path, store: RunStore) -> None:
    """Refuse to write over anything but an older bundle of the same run."""
    if path.resolve().is_relative_to(store.path.resolve()):
        raise BundleError(f"{path} lies within the run. Choose an --out outside of it.")
    if path.is_dir():
        raise BundleError(f"{path} is a directory. Give --out the name of a file.")
    if not path.parent.is_dir():
        raise BundleError(
            f"{path.parent} is not a folder. Make it, or choose another --out for the bundle."
        )
    if not path.exists():
        return
    with contextlib.suppress(BundleError, ValidationError), Bundle(path) as older:
        if _same_run(RunInfo.model_validate_json(older.read("run.json")), store.info):
            return
    raise BundleError(
        f"{path} exists and is not a readable bundle of {store.place}. "
        "Remove it, or choose another --out."
    )


def _same_run(one: RunInfo, other: RunInfo) -> bool:
    """Whether two states are of one run; the suite of an imported run grows, the rest stays."""
    grown = {"fingerprint"} if one.imported else set()
    return one.model_dump(exclude=grown) == other.model_dump(exclude=grown)


def _unsound(run: Path, defects: list[str]) -> BundleError:
    return BundleError(
        f"{run} is not sound, and a bundle would hand that on ({counted(len(defects), 'defect')}; "
        f"`convergebench verify {run}` looks for all). --damaged bundles what is there:",
        defects,
    )


def _chains(store: RunStore) -> Iterator[Chain]:
    """The chains that can be read; what is wrong with the others is among the defects."""
    for file in store.chain_files():
        with contextlib.suppress(StoreError):
            yield store.read_chain(file)[0]


def _empty(store: RunStore) -> BundleError:
    what = "import" if store.info.imported else "run"
    return BundleError(
        f"{store.place} has no chains: there is nothing to hand on. Run the same {what} again, or "
        "bundle it as it is with --damaged."
    )
