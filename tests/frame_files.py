"""Image files made by hand: what no library writes, written byte by byte."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Samples = NDArray[np.uint8] | NDArray[np.uint16]

P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
"""Display P3's red, green and blue in XYZ, adapted to D50, as in Apple's profile."""
SRGB = ((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410))
"""The same for sRGB."""

_ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2))
_ADAM7_LAST = (1, 0, 2, 1)


def saved(image: Image.Image, format: str, **options: Any) -> bytes:
    """What Pillow writes; of copies, because saving leaves traces in an image."""
    out = io.BytesIO()
    if "append_images" in options:
        options["append_images"] = [other.copy() for other in options["append_images"]]
    image.copy().save(out, format, **options)
    return out.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    """A PNG chunk."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_header(width: int, height: int, depth: int, colour: int, interlaced: bool = False) -> bytes:
    """Signature and IHDR."""
    fields = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", fields)


def png(samples: Samples, *, interlaced: bool = False, extra: bytes = b"") -> bytes:
    """A PNG of H×W×C samples of 8 or 16 bits, with extra chunks before its data."""
    height, width, channels = samples.shape
    depth = 8 * samples.dtype.itemsize
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    passes = (*_ADAM7, _ADAM7_LAST) if interlaced else ((0, 0, 1, 1),)
    lines = b"".join(
        b"\0" + row.astype(f">u{depth // 8}").tobytes()
        for top, left, down, right in passes
        for row in samples[top::down, left::right]
        if row.size
    )
    header = png_header(width, height, depth, colour, interlaced)
    return header + extra + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def tiff(samples: NDArray[np.uint16], *, turn: int = 1) -> bytes:
    """An uncompressed little-endian TIFF of H×W×3 or H×W×4 samples of 16 bits."""
    height, width, channels = samples.shape
    pixels = samples.astype("<u2").tobytes()
    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, channels, 8 + len(pixels)),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, 8),
        (274, 3, 1, turn),
        (277, 3, 1, channels),
        (278, 4, 1, height),
        (279, 4, 1, len(pixels)),
    ]
    if channels == 4:
        entries.append((338, 3, 1, 2))
    depths = struct.pack("<4H", 16, 16, 16, 16)
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    return struct.pack("<2sHI", b"II", 42, 16 + len(pixels)) + pixels + depths + directory


def iccp(profile: bytes) -> bytes:
    """The PNG chunk that carries a colour profile."""
    return chunk(b"iCCP", b"x\0\0" + zlib.compress(profile))


def orientation(value: int) -> bytes:
    """An EXIF block that says nothing but how the picture is turned."""
    return b"MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x0112, 3, 1, value, 0, 0)


def icc(
    primaries: Sequence[Sequence[float]],
    gamma: float,
    *,
    name: str = "made by hand",
    space: bytes = b"RGB ",
) -> bytes:
    """A minimal display profile: three primaries (XYZ, D50) and one gamma; grey when `space` is."""
    white = _xyz((0.96420, 1.0, 0.82491))
    curve = b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)
    text = name.encode() + b"\0"
    tags = {
        b"desc": b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(78),
        b"cprt": b"text" + bytes(4) + b"none\0",
        b"wtpt": white,
    }
    if space == b"GRAY":
        tags[b"kTRC"] = curve
    else:
        for letter, primary in zip(b"rgb", primaries, strict=True):
            tags[bytes([letter]) + b"XYZ"] = _xyz(primary)
            tags[bytes([letter]) + b"TRC"] = curve
    table, body = b"", b""
    start = 128 + 4 + 12 * len(tags)
    for tag, data in tags.items():
        table += tag + struct.pack(">II", start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    head = struct.pack(
        ">I4sI4s4s4s", start + len(body), b"none", 0x02100000, b"mntr", space, b"XYZ "
    )
    head += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    head += struct.pack(">3i", 63190, 65536, 54061)
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body


def _xyz(values: Iterable[float]) -> bytes:
    return b"XYZ " + bytes(4) + struct.pack(">3i", *(round(v * 65536) for v in values))
