"""Which files of a folder may be the ones looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from convergebench.preparation.result import Wanted

LARGEST: Final = 256 << 20
"""No picture has more bytes: larger files are not looked at, and not downloaded to the end."""


def walk(folders: Iterable[Path]) -> Iterator[Path]:
    """Every file below the folders."""
    for folder in folders:
        for place, inner, files in os.walk(folder):
            inner.sort()
            yield from (Path(place, name) for name in sorted(files))


def likely_first(paths: Iterable[Path], left: Iterable[Wanted]) -> list[Path]:
    """The files that can be pictures, each once: those with a name that is looked for first."""
    names = {PurePosixPath(want.file).name.lower() for want in left}
    endings = {PurePosixPath(name).suffix for name in names}
    found: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            info = path.stat()
        except OSError:
            continue
        if path.is_file() and 0 < info.st_size <= LARGEST:
            found.setdefault((info.st_dev, info.st_ino), path)
    return sorted(
        found.values(),
        key=lambda p: (p.name.lower() not in names, p.suffix.lower() not in endings),
    )
