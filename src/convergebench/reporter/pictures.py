"""Thumbnails and full frames, brought into the report's folder.

Thumbnails are made in threads (Pillow lets go of the interpreter while it works), with no more
pixels decoded at once than `PIXELS_AT_ONCE`. Both are named by the frame's hash, so what is there
already is what would be made again.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image

from convergebench.chain import FrameRef
from convergebench.disk import beside, replace_file
from convergebench.errors import MalformedImage
from convergebench.frame import decode
from convergebench.store import RunStore

SIDE: Final = 192
"""Longest side of a thumbnail: twice what the pages show, for dense screens."""

QUALITY: Final = 80
PIXELS_AT_ONCE: Final = 64_000_000
"""Decoding takes some 12 bytes per pixel on the way: about 800 MB."""


TRIES: Final = 5


@dataclass(frozen=True)
class Picture:
    """Where a frame is in the folder; None for what could not be had."""

    full: str | None
    thumb: str | None


def bring_pictures(
    frames: Iterable[tuple[FrameRef, RunStore]],
    out: Path,
    observe: Callable[[int, int], None] | None = None,
) -> dict[str, Picture]:
    """Link every frame into the folder and make its thumbnail, unless that is done.

    Args:
        frames: The frames, and the runs that have them; of equal ones the first counts.
        out: The report's folder.
        observe: Called with (done, total).

    Returns:
        The pictures by the frame's hash.
    """
    places: dict[str, tuple[FrameRef, RunStore]] = {}
    for ref, store in frames:
        places.setdefault(ref.sha256, (ref, store))
    wanted = list(places.values())
    for prefix in {ref.sha256[:2] for ref, _ in wanted}:
        for part in ("frames", "thumbs"):
            (out / part / prefix).mkdir(parents=True, exist_ok=True)
    largest = max(((ref.width or 1) * (ref.height or 1) for ref, _ in wanted), default=1)
    workers = max(1, min(os.cpu_count() or 1, PIXELS_AT_ONCE // largest))
    found: dict[str, Picture] = {}
    pool = ThreadPoolExecutor(workers)
    try:
        pictures = pool.map(lambda told: _bring(told[1], told[0], out), wanted)
        for done, ((ref, _), picture) in enumerate(zip(wanted, pictures, strict=True), 1):
            found[ref.sha256] = picture
            if observe:
                observe(done, len(wanted))
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def _bring(store: RunStore, ref: FrameRef, out: Path) -> Picture:
    full = store.frame_name(ref)
    thumb = f"thumbs/{ref.sha256[:2]}/{ref.sha256}.webp"
    # What was fetched may be pushed out of the cache by others before it is linked.
    tries = TRIES if store.is_remote else 1
    known = store.is_remote and _has(out / full, ref.bytes)  # not fetched for every report
    if not (known or any(_link(store.frame_path(ref), out / full) for _ in range(tries))):
        return Picture(None, None)
    if _is_complete(out / thumb):
        return Picture(full, thumb)
    try:
        data = thumbnail((out / full).read_bytes())
    except MalformedImage:
        return Picture(full, None)
    replace_file(out / thumb, data)
    return Picture(full, thumb)


def thumbnail(data: bytes) -> bytes:
    """A small WebP of the view that metrics see. Raises MalformedImage."""
    import cv2

    pixels, _ = decode(data)
    height, width = pixels.shape[:2]
    scale = SIDE / max(width, height)
    if scale < 1:  # by OpenCV, in a tenth of Pillow's time
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "WEBP", quality=QUALITY, method=2)
    return out.getvalue()


def _is_complete(thumb: Path) -> bool:
    """Whether a WebP is as long as its header says: a power cut may leave less."""
    try:
        with open(thumb, "rb") as file:
            head = file.read(12)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return False
    said = int.from_bytes(head[4:8], "little") + 8
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP" and said == size


def _has(full: Path, size: int) -> bool:
    try:
        return full.stat().st_size == size
    except FileNotFoundError:
        return False


def _link(stored: Path, full: Path) -> bool:
    """Link a frame into the folder, or copy it to another file system; False if it is gone."""
    try:
        size = stored.stat().st_size
    except FileNotFoundError:
        return False
    with contextlib.suppress(FileNotFoundError):
        if full.stat().st_size == size:
            return True
        full.unlink()
    try:
        os.link(stored, full)
    except FileExistsError:
        pass
    except OSError:
        temporary = beside(full)
        try:
            shutil.copyfile(stored, temporary)
            os.replace(temporary, full)
        finally:
            temporary.unlink(missing_ok=True)
    return True
