"""Reading a bundle without trusting it: everything wrong with it is named, file by file.

What the archive says of itself is checked when it is opened, before a byte of any file is used;
the files' bytes are checked as they are read. Nothing here writes.
"""

from __future__ import annotations

import bisect
import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, Self

from convergebench.archive import structure
from convergebench.archive.contents import (
    MANIFEST,
    belongs,
    digest_in,
    is_folder,
    read_manifest,
    twins,
    why_not,
)
from convergebench.archive.structure import DEFLATED, DESCRIBED, STORED, Entry, NotReadable
from convergebench.errors import BundleError

CHUNK: Final = 2**20
MAX_RATIO: Final = 200
"""A deflated file may unpack to this many times its size. Images do not shrink; records shrink to
a tenth; a bomb, to a thousandth."""
FREE_RATIO: Final = 2**20
"""Bytes that any file may unpack to, whatever the ratio."""
EMPTY: Final = 2
"""Bytes that nothing takes when it is deflated."""
MAX_RECORD: Final = 2**28
"""Bytes of the largest file that is read into memory: a manifest of about a million files."""
_KNOWN_FLAGS: Final = 0x0806 | DESCRIBED
_DESCRIPTORS: Final = (12, 16, 20, 24)


@dataclass(frozen=True)
class Defect:
    """One thing that is wrong with a bundle."""

    kind: Literal["missing", "altered", "damaged", "unsafe"]
    name: str
    why: str

    def __str__(self) -> str:
        # A stranger's name may hold what a terminal would obey.
        plain = self.name.isascii() and self.name.isprintable() and self.name
        return f"{self.name if plain else ascii(self.name)}: {self.why}"


class Bundle:
    """A bundle, open for reading; a context manager.

    Attributes:
        entries: The files whose place in the archive is beyond doubt, in the archive's order.
        seen: Names of all files that the archive has, in whatever state.
        manifest: Names and hashes, or None where the manifest cannot be used.
        fingerprint: SHA-256 of the manifest: equal for equal bundles.
        defects: What is wrong with the archive's structure.

    Raises:
        BundleError: The file cannot be read, or is no archive at all.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path)
        self.defects: list[Defect] = []
        self.entries: dict[str, Entry] = {}
        self.manifest: dict[str, str] | None = None
        self.fingerprint: str | None = None
        try:
            self._file: BinaryIO = open(self.path, "rb")  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise BundleError(
                f"cannot read {self.path} ({error.strerror}). Expected a bundle, as "
                "`convergebench bundle RUN` writes."
            ) from error
        try:
            self._length: Final = os.fstat(self._file.fileno()).st_size
            found, border = self._find()
            self.seen: Final = frozenset(entry.name for entry in found)
            self._sift(found, border)
            self._compare_with_manifest()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def names(self) -> list[str]:
        """The files to be read, the manifest apart."""
        return [name for name in self.entries if name != MANIFEST]

    @property
    def size(self) -> int:
        """Bytes of these files, unpacked."""
        return sum(self.entries[name].size for name in self.names)

    def copy(self, name: str, write: Callable[[bytes], object]) -> Defect | None:
        """Hand a file's bytes on, piece by piece; at the end, say what is wrong with them."""
        digest = hashlib.sha256()
        pieces = self._pieces(self.entries[name])
        while True:
            try:
                piece = next(pieces, None)
            except NotReadable as error:
                return Defect("altered", name, str(error))
            if piece is None:
                break
            digest.update(piece)
            write(piece)
        found = digest.hexdigest()
        if found != (digest_in(name) or found):
            return Defect("altered", name, "its bytes are not what its name says")
        if found != (self.manifest or {}).get(name, found):
            return Defect("altered", name, "its bytes are not what the manifest says")
        return None

    def read(self, name: str) -> bytes:
        """A small file as a whole. Raises BundleError when it is damaged or not there."""
        if name not in self.entries:
            raise BundleError(f"{self.path} has no {name}")
        entry, pieces = self.entries[name], list[bytes]()
        if entry.size > MAX_RECORD:
            raise BundleError(f"{self.path}: {name} claims {entry.size} bytes")
        if defect := self.copy(name, pieces.append):
            raise BundleError(f"{self.path}: {defect}")
        return b"".join(pieces)

    def digest(self, name: str) -> str:
        """The hash a file must have; empty where only reading it can tell."""
        return digest_in(name) or (self.manifest or {}).get(name, "")

    # -- structure ----------------------------------------------------------------------------

    def _find(self) -> tuple[list[Entry], int | None]:
        """All entries, and where the archive's directory begins, if it can be read."""
        try:
            return structure.directory(self._file, self._length)
        except NotReadable as error:
            entries, stopped = structure.walk(self._file, self._length)
            if not entries:
                raise BundleError(
                    f"{self.path} is not a bundle ({error}; {stopped}). Expected a ZIP archive, as "
                    "`convergebench bundle RUN` writes."
                ) from error
            self._blame("damaged", "the archive's directory", str(error))
        last = entries[-1]
        if last.end > self._length:
            here = max(0, self._length - last.start)
            self._blame("damaged", last.name, f"cut off: {here} of {last.packed} bytes are here")
        if stopped:
            told = f"unknown after {last.name!a}: {stopped}"
            self._blame("damaged", "the rest of the archive", told)
        return entries, None

    def _sift(self, found: list[Entry], border: int | None) -> None:
        """Keep the entries that are safe and in their place; blame the others."""
        double = set(twins(entry.name for entry in found))
        placed: list[Entry] = []
        doubtful: list[Entry] = []
        for each in found:
            try:
                entry = each if each.start else structure.located(self._file, each)
            except NotReadable as error:
                self._blame("damaged", each.name, str(error))
                doubtful.append(each)
                continue
            placed.append(entry)
            if why := _unsafe(entry, entry.name in double):
                self._blame("unsafe", entry.name, why)
            elif not is_folder(entry.name) and entry.end <= self._length:
                self.entries[entry.name] = entry
        if border is not None:
            self._require_order(placed, border, complete=not doubtful)
            safe = (e for e in doubtful if belongs(e.name) and not _unsafe(e, e.name in double))
            self._assume([e for e in safe if e.method == STORED], placed, border)

    def _assume(self, doubtful: list[Entry], placed: list[Entry], border: int) -> None:
        """Take files whose headers are damaged, where they fit between the others.

        They are blamed already; only a salvage reads them, and believes only their hashes.
        """
        spans = sorted((entry.offset, entry.end) for entry in placed)
        for each in doubtful:
            entry = structure.assumed(each)
            at = bisect.bisect(spans, (entry.offset, entry.end))
            floor = spans[at - 1][1] if at else 0
            ceiling = spans[at][0] if at < len(spans) else border
            if floor <= entry.offset and entry.end <= ceiling:
                spans.insert(at, (entry.offset, entry.end))
                self.entries[entry.name] = entry

    def _require_order(self, placed: list[Entry], border: int, *, complete: bool) -> None:
        """Entries lie one after the other: none within another, nothing hidden in between."""
        last = Entry("the archive's beginning", 0, 0, 0, 0)
        for entry in sorted(placed, key=lambda e: (e.offset, e.end)):
            gap = entry.offset - last.end
            if gap < 0:
                for name in (entry.name, last.name):
                    self.entries.pop(name, None)
                self._blame("unsafe", entry.name, f"it overlaps with {last.name!a}")
            elif complete and not _explained(gap, last):
                self._blame("damaged", entry.name, "there are bytes before it that are no file's")
            last = max(last, entry, key=lambda e: e.end)
        if last.end > border:
            self.entries.pop(last.name, None)
            self._blame("unsafe", last.name, "it overlaps with the archive's directory")
        elif complete and not _explained(border - last.end, last):
            self._blame("damaged", last.name, "there are bytes after it that are no file's")

    def _compare_with_manifest(self) -> None:
        if MANIFEST not in self.seen:
            self._blame("missing", MANIFEST, "nothing says which files the bundle should have")
            return
        if MANIFEST not in self.entries:
            return  # blamed already
        try:
            data = self.read(MANIFEST)
            self.manifest = read_manifest(data)
        except (BundleError, ValueError) as error:
            why = str(error).removeprefix(f"{self.path}: {MANIFEST}: ")
            self._blame("damaged", MANIFEST, why)
            return
        self.fingerprint = hashlib.sha256(data).hexdigest()
        for name in self.manifest:
            if name not in self.seen:
                self._blame("missing", name, "the manifest names it, the archive does not have it")
        for name in list(self.names):
            if name not in self.manifest:
                del self.entries[name]
                self._blame("damaged", name, "the manifest does not name it")

    def _blame(
        self, kind: Literal["missing", "altered", "damaged", "unsafe"], name: str, why: str
    ) -> None:
        self.defects.append(Defect(kind, name, why))

    # -- bytes --------------------------------------------------------------------------------

    def _pieces(self, entry: Entry) -> Iterator[bytes]:
        """A file's bytes, never more than its declared size. Raises NotReadable."""
        unpacked = self._stored(entry) if entry.method == STORED else self._inflated(entry)
        size = crc = 0
        for piece in unpacked:
            size += len(piece)
            if size > entry.size:
                raise NotReadable(f"it unpacks to more than the {entry.size} bytes it declares")
            crc = zlib.crc32(piece, crc)
            yield piece
        if size != entry.size:
            raise NotReadable(f"it has {size} of {entry.size} bytes")
        if crc != entry.crc:
            raise NotReadable("its bytes do not fit its checksum")

    def _stored(self, entry: Entry) -> Iterator[bytes]:
        left = entry.packed
        try:
            self._file.seek(entry.start)
            while left and (piece := self._file.read(min(left, CHUNK))):
                left -= len(piece)
                yield piece
        except OSError as error:
            raise NotReadable(f"it cannot be read ({error.strerror})") from error

    def _inflated(self, entry: Entry) -> Iterator[bytes]:
        engine, beyond = zlib.decompressobj(-zlib.MAX_WBITS), False
        try:
            for packed in self._stored(entry):
                data = packed
                while data and not engine.eof:
                    yield engine.decompress(data, CHUNK)
                    data = engine.unconsumed_tail
                beyond |= engine.eof and bool(data or engine.unused_data)
            while not engine.eof and (piece := engine.decompress(b"", CHUNK)):
                yield piece
        except zlib.error as error:
            raise NotReadable(f"it cannot be unpacked ({error})") from error
        if not engine.eof or beyond:
            raise NotReadable("its packed bytes do not end where they should")


def _explained(gap: int, before: Entry) -> bool:
    """Whether bytes between two entries are a record of sizes and checksum, as some writers add."""
    return gap == 0 or (bool(before.flags & DESCRIBED) and gap in _DESCRIPTORS)


def _unsafe(entry: Entry, double: bool) -> str:
    """Why an entry must not be unpacked; empty when it may."""
    form = stat.S_IFMT(entry.mode)
    if not (belongs(entry.name) or entry.name == MANIFEST or is_folder(entry.name)):
        return why_not(entry.name)
    if entry.renamed:
        return "it has a second name"
    if stat.S_ISLNK(form):
        return "it is a link"
    if form not in (0, stat.S_IFDIR if is_folder(entry.name) else stat.S_IFREG):
        return "it is a special file"
    if entry.flags & 1:
        return "it is encrypted"
    if entry.flags & ~_KNOWN_FLAGS:
        return f"its flags ({entry.flags:#06x}) are unknown"
    if entry.method not in (STORED, DEFLATED):
        return f"its compression (method {entry.method}) is neither stored nor deflated"
    if double:
        return "there are several files of this name (upper and lower case count as one)"
    if is_folder(entry.name) and (entry.size or entry.packed > EMPTY):
        return "it is a folder with content"
    if entry.method == STORED and entry.size != entry.packed:
        return f"it is stored, and declares {entry.packed} bytes as {entry.size}"
    if entry.method == DEFLATED and entry.size > max(FREE_RATIO, MAX_RATIO * entry.packed):
        return f"it would unpack from {entry.packed} bytes to {entry.size}, as a bomb does"
    return ""
