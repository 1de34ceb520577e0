"""Checking a plain PNG without unpacking it.

Every chunk of a PNG carries a checksum, so that a file which is all there and unharmed can be told
from its structure alone. That is far cheaper than decoding it, and a runner looks at every reply.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from convergebench.errors import MalformedImage

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PLAIN: Final = frozenset((b"IHDR", b"IDAT", b"IEND", b"sRGB", b"pHYs", b"tIME", b"tEXt", b"iTXt",
                           b"zTXt", b"caBX"))  # fmt: skip
"""Chunks that do not change what the pixels mean. Any other, and the file is decoded instead."""


def plain_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of an unharmed 8-bit RGB PNG without profile, palette or animation.

    Returns None for every other file, which only decoding can judge.

    Raises:
        MalformedImage: The file is cut short, or a chunk's checksum is wrong.
    """
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 33:
        return None
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    if (depth, colour, interlaced) != (8, 2, 0) or not (width and height):
        return None
    view = memoryview(data)
    at, name, packed = len(_SIGNATURE), b"", 0
    while name != b"IEND":
        if at + 12 > len(data):
            raise MalformedImage("png that is cut short")
        (length,) = struct.unpack_from(">I", data, at)
        name = data[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(data):
            raise MalformedImage("png that is cut short")
        if name not in _PLAIN:
            return None
        if zlib.crc32(view[at + 4 : end - 4]) != int.from_bytes(view[end - 4 : end]):
            raise MalformedImage(f"png whose {name.decode()} chunk is damaged (wrong checksum)")
        packed += length if name == b"IDAT" else 0
        at = end
    if not packed:
        raise MalformedImage("png without image data")
    return width, height
