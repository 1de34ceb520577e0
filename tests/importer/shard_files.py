"""Shards on the disk, and what the layout made of them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image

from convergebench.importer.found import Finds, Look, Track, Wishes
from convergebench.importer.layouts.webdataset import LAYOUT

Files = Iterable[tuple[str, bytes]]


def png(shade: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (shade % 256, 7, 9)).save(out, "PNG")
    return out.getvalue()


def member(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def shard(path: Path, files: Files, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in files:
            member(tar, name, data)
    return path


def sample(key: str, shade: int, **fields: Any) -> list[tuple[str, bytes]]:
    return [(f"{key}.png", png(shade)), (f"{key}.json", json.dumps(fields).encode())]


def chain(steps: int = 3) -> list[tuple[str, bytes]]:
    files = []
    for step in range(steps):
        files += sample(f"{step:06d}", step, source="cat", editor="m", cycle="replicate", step=step)
    return files


def read(path: Path, **wishes: Any) -> Finds:
    return LAYOUT.read(Look(path), Wishes(**wishes))


def bytes_of(finds: Finds) -> dict[tuple[Track, int], bytes]:
    return {(f.track, f.step): f.place.read() for f in finds.frames if f.place}
