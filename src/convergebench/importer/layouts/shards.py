"""Reading foreign tar archives: as a stream, within bounds, and never under their names.

Archives are hostile until shown otherwise. Nothing is unpacked from a plain tar: a member's bytes
are read where they are. From a compressed one, pictures are spooled under numbers of our own.
Links, devices, sparse members and names that leave the archive are passed over and counted; a
header, member or compression ratio beyond all reason is refused, and so is an archive cut short.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from convergebench.errors import ImportProblem

PLAIN: Final = (".tar",)
COMPRESSED: Final = (".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
SHARDS: Final = PLAIN + COMPRESSED

MEMBER_LIMIT: Final = 512 << 20
"""Largest picture, in bytes; an uncompressed 8K picture has 100 MB."""
TEXT_LIMIT: Final = 4 << 20
"""Largest JSON or text member, in bytes."""
HEADER_LIMIT: Final = 128 << 10
"""Largest header of one member with its extensions (long names, attributes), in bytes."""
RATIO_LIMIT: Final = 300
"""A compressed shard that inflates beyond this is a bomb; pictures hardly compress at all."""
RATIO_FROM: Final = 64 << 20
"""Inflated bytes before the ratio is judged: small shards of tiny members compress well."""
SPARE_DISK: Final = 256 << 20
"""Bytes that spooling leaves free on the disk."""
CHUNK: Final = 1 << 20

_BROKEN: Final = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError,
                  OverflowError, RecursionError)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A regular file in a shard: its name, and where its bytes are."""

    name: str
    size: int
    offset: int


@dataclass
class Shard:
    """A shard being read.

    Attributes:
        path: The file.
        name: Its path below the root of the import.
        refused: How many members were passed over, by reason.
        notes: What the user must know of this shard.
    """

    path: Path
    name: str
    refused: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def compressed(self) -> bool:
        """Whether members' bytes can only be had in passing."""
        return self.path.name.lower().endswith(COMPRESSED)

    def members(self) -> Iterator[tuple[Member, Stream]]:
        """Every regular member in order, and the stream standing at its bytes."""
        last = "its start"
        try:
            with open(self.path, "rb") as file, Stream(self, file) as stream:
                tar = tarfile.TarFile(fileobj=cast(BinaryIO, stream), errorlevel=2)
                while True:
                    stream.header = HEADER_LIMIT
                    info = tar.next()
                    cast(Any, tar).members.clear()  # tarfile keeps them all
                    stream.header = None
                    if info is None:
                        break
                    if why := _why_not(info):
                        self.refused[why] += 1
                    elif info.isreg():
                        last = info.name
                        stream.room_for(info)
                        yield Member(info.name, info.size, info.offset_data), stream
                self._end(stream, last)
        except _BROKEN as error:
            raise ImportProblem(
                f"{self.name} is not a readable tar archive, or it is cut short: after {last}, "
                f"{str(error) or type(error).__name__}"
            ) from error

    def _end(self, stream: Stream, last: str) -> None:
        """Tell a whole archive from one that `tarfile` stopped reading without a word."""
        if not stream.block:
            self.notes.append(f"{self.name} has no end mark after {last}: it may be cut short.")
        elif stream.block.strip(b"\0"):
            raise ImportProblem(
                f"{self.name} is damaged or cut short: what follows {last} is no tar header"
            )


class Stream:
    """An archive's bytes, in order, with a watch on how many a header or a bomb may take.

    `tarfile` reads headers whole, however long they say they are, and seeks only forward.
    """

    def __init__(self, shard: Shard, file: BinaryIO) -> None:
        self.shard = shard
        self.size = shard.path.stat().st_size
        self.header: int | None = HEADER_LIMIT
        self.block = b""
        self._file = _inflated(shard.path.name.lower(), file)
        self._at = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def tell(self) -> int:
        """Where the next byte is."""
        return self._at

    def seek(self, to: int) -> int:
        """Go on to a place; never back in a compressed archive."""
        if not self.shard.compressed:
            self._at = self._file.seek(to)
            return to
        if to < self._at:
            raise tarfile.ReadError("its members overlap")
        while self._at < to and self._pull(min(CHUNK, to - self._at)):
            pass
        return self._at

    def read(self, size: int) -> bytes:
        """Bytes of a header, within its limit, or of a member."""
        if self.header is not None:
            self.header -= size
            if size < 0 or self.header < 0:
                raise tarfile.ReadError(f"a header of more than {HEADER_LIMIT >> 10} KiB")
        data = self._pull(size)
        if size == tarfile.BLOCKSIZE:
            self.block = data
        return data

    def _pull(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except _BROKEN as error:
            raise ImportProblem(
                f"{self.shard.name} is damaged or cut short: {str(error) or type(error).__name__}"
            ) from error
        self._at += len(data)
        if self.shard.compressed and self._at > max(RATIO_FROM, RATIO_LIMIT * self.size):
            raise ImportProblem(
                f"{self.shard.name} inflates to more than {RATIO_LIMIT} times its size: it is not "
                "read further. If it is honest, unpack it and import the folder."
            )
        return data

    def room_for(self, info: tarfile.TarInfo) -> None:
        """See that a member of a plain tar is wholly there."""
        end = info.offset_data + info.size
        if not self.shard.compressed and end > self.size:
            raise ImportProblem(
                f"{self.shard.name} is cut short: {info.name} ends at byte {end:,} and the file "
                f"has {self.size:,}"
            )

    def text(self, member: Member) -> bytes:
        """A small member's bytes. Raises ImportProblem."""
        if member.size > TEXT_LIMIT:
            raise ImportProblem(
                f"{self.shard.name}: {member.name} has {member.size:,} bytes; a sample's JSON or "
                f"text may have {TEXT_LIMIT:,}"
            )
        self.seek(member.offset)
        data = self.read(member.size)
        if len(data) != member.size:
            raise ImportProblem(f"{self.shard.name} is cut short in {member.name}")
        return data

    def spool(self, member: Member, to: Path) -> None:
        """Copy a member's bytes to a file of our own, a piece at a time."""
        if shutil.disk_usage(to.parent).free < member.size + SPARE_DISK:
            raise ImportProblem(
                f"no room to unpack {self.shard.name} in {to.parent}: free some, or set TMPDIR"
            )
        self.seek(member.offset)
        left = member.size
        with open(to, "xb") as out:
            while left and (data := self.read(min(CHUNK, left))):
                left -= len(data)
                out.write(data)
        if left:
            raise ImportProblem(f"{self.shard.name} is cut short in {member.name}")


def _inflated(name: str, file: BinaryIO) -> BinaryIO:
    if name.endswith((".gz", ".tgz")):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if name.endswith((".xz", ".txz")):
        return cast(BinaryIO, lzma.LZMAFile(file))
    return cast(BinaryIO, bz2.BZ2File(file)) if name.endswith(".bz2") else file


def _why_not(info: tarfile.TarInfo) -> str:
    """Why a member is passed over, in words; empty when it is an ordinary file or a folder."""
    parts = info.name.replace("\\", "/").split("/")
    if info.islnk() or info.issym():
        return "links"
    if info.issparse():
        return "sparse files"
    if not (info.isreg() or info.isdir()):
        return "devices and other special files"
    if info.name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        return "files with names that lead out of the archive"
    if not info.name.isprintable():  # also what is no UTF-8
        return "files with unprintable names"
    return "files of absurd size" if info.size > MEMBER_LIMIT or info.size < 0 else ""
