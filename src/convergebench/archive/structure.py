"""The ZIP format as far as bundles need it: written in one fixed form, read with suspicion.

The structures are written and read here and not through `zipfile`, for three reasons. The bytes
must not depend on a library's version. An archive that was being written when its process was
killed must be readable up to its last whole entry, and one that is cut or flipped must be told file
by file; `zipfile` gives up without a central directory. And all that two places of an archive say
about one entry must be compared; `zipfile` compares the names.
The tests read with `zipfile` what is written here, and read here what `zipfile` wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

STORED: Final = 0
DEFLATED: Final = 8
DESCRIBED: Final = 0x0008
"""Flag: sizes and checksum follow the data, so they cannot be known from the local header."""
LIMIT16: Final = 0xFFFF
LIMIT32: Final = 0xFFFFFFFF
"""The largest numbers of 16 and 32 bits stand for "see the wide field"."""
WIDE_COUNT = LIMIT16
WIDE_SIZE = LIMIT32
"""Counts, and sizes and offsets, from which on the wide fields (ZIP64) are written."""
MAX_DIRECTORY: Final = 2**28
"""Largest central directory that is read: about two million frames."""

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
_END: Final = struct.Struct("<4s4H2IH")
_END64: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR: Final = struct.Struct("<4sIQI")
_LOCAL_MARK, _CENTRAL_MARK, _END_MARK = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_END64_MARK, _LOCATOR_MARK = b"PK\6\6", b"PK\6\7"
_MIDNIGHT: Final = (0, 0x21)
"""1 January 1980, 00:00: the first moment a ZIP can name."""
_PLAIN_FILE: Final = 0o100644
_UNIX: Final = 3
_WIDE_SIZES: Final = 1
"""Number of the extra field that holds what does not fit into 32 bits."""
_SECOND_NAME: Final = 0x7075
"""Number of the extra field that holds another name in Unicode."""

OPENING: Final = _LOCAL_MARK
"""What every archive with an entry begins with."""


class NotReadable(Exception):
    """A structure of the archive is not what it should be; the text says which and how."""


@dataclass(frozen=True)
class Entry:
    """One file of an archive, as its header or the central directory describes it."""

    name: str
    offset: int
    size: int
    packed: int
    crc: int
    method: int = STORED
    flags: int = 0
    mode: int = 0
    start: int = 0
    """Where its data begins; 0 while only the central directory was read."""
    renamed: bool = False
    """Whether it carries a second name, which other programs would use."""

    @property
    def end(self) -> int:
        """Where its data ends."""
        return self.start + self.packed


# -- writing ----------------------------------------------------------------------------------


def local_header(name: str, size: int, crc: int) -> bytes:
    """What stands before the data of a stored file."""
    wide = size >= WIDE_SIZE
    extra = struct.pack("<2H2Q", _WIDE_SIZES, 16, size, size) if wide else b""
    shown = LIMIT32 if wide else size
    text = name.encode("ascii")
    return (
        _LOCAL.pack(
            _LOCAL_MARK, 45 if wide else 20, 0, STORED, *_MIDNIGHT, crc, shown, shown,
            len(text), len(extra),
        )
        + text
        + extra
    )  # fmt: skip


def ending(entries: Sequence[Entry], offset: int) -> Iterator[bytes]:
    """The central directory, which begins at an offset, and the records that end an archive."""
    length = 0
    for entry in entries:
        record = _central(entry)
        length += len(record)
        yield record
    count = few = len(entries)
    if count >= WIDE_COUNT or offset + length >= WIDE_SIZE:
        yield _END64.pack(
            _END64_MARK, _END64.size - 12, _UNIX << 8 | 45, 45, 0, 0, count, count, length, offset
        )
        yield _LOCATOR.pack(_LOCATOR_MARK, 0, offset + length, 1)
        few, length, offset = LIMIT16, LIMIT32, LIMIT32
    yield _END.pack(_END_MARK, 0, 0, few, few, length, offset, 0)


def _central(entry: Entry) -> bytes:
    big, far = entry.size >= WIDE_SIZE, entry.offset >= WIDE_SIZE
    wide = [entry.size] * 2 * big + [entry.offset] * far
    extra = struct.pack(f"<2H{len(wide)}Q", _WIDE_SIZES, 8 * len(wide), *wide) if wide else b""
    shown, place = LIMIT32 if big else entry.size, LIMIT32 if far else entry.offset
    needed = 45 if wide else 20
    text = entry.name.encode("ascii")
    return (
        _CENTRAL.pack(
            _CENTRAL_MARK, _UNIX << 8 | needed, needed, 0, STORED, *_MIDNIGHT, entry.crc, shown,
            shown, len(text), len(extra), 0, 0, 0, _PLAIN_FILE << 16, place,
        )
        + text
        + extra
    )  # fmt: skip


# -- reading ----------------------------------------------------------------------------------


def directory(file: BinaryIO, length: int) -> tuple[list[Entry], int]:
    """The entries as the central directory has them, and where that begins.

    Raises:
        NotReadable: There is none, or it does not add up.
    """
    count, size, offset, end = _end(file, length)
    if offset + size != end:
        raise NotReadable("the central directory is not where the archive's end says")
    if size > MAX_DIRECTORY:
        raise NotReadable(f"the central directory has {size} bytes, more than any run needs")
    data, at = _read(file, offset, size), 0
    entries: list[Entry] = []
    while at < size:
        if size - at < _CENTRAL.size or data[at : at + 4] != _CENTRAL_MARK:
            raise NotReadable(f"the central directory breaks off after file {len(entries)}")
        entry, at = _central_entry(data, at)
        entries.append(entry)
    if len(entries) != count:
        raise NotReadable(f"the central directory has {len(entries)} of {count} files")
    return entries, offset


def walk(file: BinaryIO, length: int) -> tuple[list[Entry], str]:
    """The entries as their own headers have them, in order, and why the walk ended.

    The last entry may reach beyond the end of the file: it is cut.
    """
    entries: list[Entry] = []
    at = 0
    while at < length:
        if _read(file, at, 4) in (_CENTRAL_MARK, _END_MARK):
            return entries, ""
        try:
            entry = local_entry(file, at)
        except NotReadable as error:
            return entries, str(error)
        if entry.flags & DESCRIBED:
            return entries, f"the header of {entry.name!a} does not tell its size"
        entries.append(entry)
        at = entry.end
    return entries, "the archive is cut off"


def local_entry(file: BinaryIO, offset: int) -> Entry:
    """The entry whose header is at an offset. Raises NotReadable."""
    head = _read(file, offset, _LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != _LOCAL_MARK:
        cut = head == b"" or (len(head) < _LOCAL.size and head[:4] == _LOCAL_MARK[: len(head)])
        raise NotReadable("the archive is cut off" if cut else f"no file begins at byte {offset}")
    _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _LOCAL.unpack(head)
    rest = _read(file, offset + _LOCAL.size, name_length + extra_length)
    if len(rest) < name_length + extra_length:
        raise NotReadable("the archive is cut off")
    extra = rest[name_length:]
    size, packed, _, renamed = _widened(extra, size, packed, 0)
    start = offset + _LOCAL.size + len(rest)
    name = _name(rest[:name_length])
    return Entry(name, offset, size, packed, crc, method, flags, 0, start, renamed)


def located(file: BinaryIO, entry: Entry) -> Entry:
    """An entry of the central directory, with where its data begins.

    Raises:
        NotReadable: Its own header says something else.
    """
    own = local_entry(file, entry.offset)
    described = entry.flags & own.flags & DESCRIBED
    for what, here, there in (
        ("name", own.name, entry.name),
        ("method", own.method, entry.method),
        ("flags", own.flags, entry.flags),
        ("checksum", own.crc, entry.crc),
        ("size", own.size, entry.size),
        ("packed size", own.packed, entry.packed),
    ):
        if here != there and not (described and here == 0):
            raise NotReadable(
                f"its own header and the central directory differ in its {what} "
                f"({here!a} and {there!a})"
            )
    return replace(entry, start=own.start, renamed=own.renamed or entry.renamed)


def assumed(entry: Entry) -> Entry:
    """An entry of the central directory whose own header is damaged, with where its data should be.

    That is where a header written by us would end; only its hash can tell whether it is so.
    """
    return replace(entry, start=entry.offset + len(local_header(entry.name, entry.size, 0)))


def _end(file: BinaryIO, length: int) -> tuple[int, int, int, int]:
    """Count, size and offset of the central directory, and where the records after it begin."""
    tail_at = max(0, length - _END.size - LIMIT16)
    tail = _read(file, tail_at, length - tail_at)
    found = tail.rfind(_END_MARK)
    while found >= 0:
        record = tail[found : found + _END.size]
        # A comment may contain the mark, so the record must reach to the very end.
        if len(record) == _END.size:
            _, disk, first, here, count, size, offset, comment = _END.unpack(record)
            if found + _END.size + comment == len(tail):
                break
        found = tail.rfind(_END_MARK, 0, found)
    else:
        raise NotReadable("the archive has no end: it is cut off, or damaged there")
    end = tail_at + found
    if (disk, first) != (0, 0) or here != count:
        raise NotReadable("the archive's end speaks of several volumes")
    if count == LIMIT16 or LIMIT32 in (size, offset):
        return _end64(file, end)
    return count, size, offset, end


def _end64(file: BinaryIO, end: int) -> tuple[int, int, int, int]:
    locator = _read(file, max(0, end - _LOCATOR.size), _LOCATOR.size)
    if len(locator) < _LOCATOR.size or locator[:4] != _LOCATOR_MARK:
        raise NotReadable("the archive's end points to a record that is not there")
    _, disk, at, disks = _LOCATOR.unpack(locator)
    record = _read(file, at, _END64.size) if at < end else b""
    if len(record) < _END64.size or record[:4] != _END64_MARK or disk or disks > 1:
        raise NotReadable("the archive's end points to a record that is not there")
    _, length, _, _, disk, first, here, count, size, offset = _END64.unpack(record)
    if disk or first or here != count or at + 12 + length != end - _LOCATOR.size:
        raise NotReadable("the archive's end does not add up")
    return count, size, offset, at


def _central_entry(data: bytes, at: int) -> tuple[Entry, int]:
    """The entry at a place of the central directory, and where the next one begins."""
    (
        _, _, _, flags, method, _, _, crc, packed, size,
        name_length, extra_length, comment_length, disk, _, attributes, offset,
    ) = _CENTRAL.unpack_from(data, at)  # fmt: skip
    at += _CENTRAL.size
    after = at + name_length + extra_length + comment_length
    if after > len(data):
        raise NotReadable("the central directory breaks off within a file's record")
    name = _name(data[at : at + name_length])
    if disk:
        raise NotReadable(f"the central directory puts {name!a} on another volume")
    extra = data[at + name_length : after - comment_length]
    size, packed, offset, renamed = _widened(extra, size, packed, offset)
    return Entry(
        name, offset, size, packed, crc, method, flags, attributes >> 16, renamed=renamed
    ), after


def _widened(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int, bool]:
    """Sizes and offset with what an extra field says of them; whether there is a second name."""
    values, at, renamed = [size, packed, offset], 0, False
    while at < len(extra):
        head = extra[at : at + 4]
        number, length = struct.unpack("<2H", head) if len(head) == 4 else (0, LIMIT16)
        field = extra[at + 4 : at + 4 + length]
        if len(field) < length:
            raise NotReadable("its header has an extra field that is cut off")
        renamed |= number == _SECOND_NAME
        if number == _WIDE_SIZES:
            for index, value in enumerate(values):
                if value == LIMIT32 and len(field) >= 8:
                    values[index] = int.from_bytes(field[:8], "little")
                    field = field[8:]
        at += 4 + length
    return values[0], values[1], values[2], renamed


def _name(text: bytes) -> str:
    """A name to compare; every byte is one character, those beyond ASCII are never legal."""
    return text.decode("latin-1")


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    try:
        file.seek(offset)
        return file.read(size)
    except (OSError, OverflowError) as error:
        raise NotReadable(f"byte {offset} cannot be read ({error})") from error
