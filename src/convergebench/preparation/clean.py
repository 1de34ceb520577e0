"""The clean pictures that pairs are made of: those of a folder, or of a suite."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from convergebench import degrading
from convergebench.errors import ConvergeBenchError
from convergebench.frame import EXTENSIONS, Frame, resize
from convergebench.source import Source
from convergebench.suite import Suite
from convergebench.wording import counted, in_order

ENDINGS: Final = frozenset((*EXTENSIONS.values(), ".jpeg", ".tiff"))
UNKNOWN_LICENCE: Final = "unknown: as the clean pictures"
ENLARGED_MOST: Final = 4
"""A truth that was enlarged more than so many times is mostly made up: it is refused."""

Observe = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Clean:
    """A clean picture: what it is called, its scene, and how to read it."""

    name: str
    place: str
    category: str
    licence: str
    origin: str | None
    read: Callable[[], Frame]


def gathered(
    clean: Path | Suite, licence: str, size: int
) -> tuple[list[Clean], list[str], tuple[str, ...]]:
    """The clean pictures, what is wrong, and what was passed over."""
    if isinstance(clean, Suite):
        return list(_of_suite(clean, size)), [], ()
    if not clean.is_dir():
        what = "is a file" if clean.exists() else "is not there"
        return [], [f"{clean} {what}; give a folder of clean pictures, or a suite"], ()
    paths, problems, suites = _walked(clean)
    pictures = [
        Clean(
            name=named(path.relative_to(clean).with_suffix("").as_posix()),
            place=path.relative_to(clean).as_posix(),
            category=path.relative_to(clean).parent.as_posix().removeprefix("."),
            licence=licence or UNKNOWN_LICENCE,
            origin=f"{clean.resolve().name}/{path.relative_to(clean).as_posix()}",
            read=partial(_frame_of, path),
        )
        for path in paths
        if path.suffix.lower() in ENDINGS
    ]
    others = len(paths) - len(pictures)
    notes = []
    if others:
        notes.append(f"{counted(others, 'file', 'is', 'are')} no picture by name and passed over.")
    if suites:
        notes.append(f"Not clean pictures but suites, passed over: {in_order(suites)}.")
    return pictures, problems, tuple(notes)


def _walked(root: Path) -> tuple[list[Path], list[str], list[str]]:
    """The files below a folder, what cannot be looked at, and the suites among its folders."""
    closed: list[OSError] = []
    paths: list[Path] = []
    problems: list[str] = []
    suites: list[str] = []
    for folder, folders, names in os.walk(root, onerror=closed.append):
        here = Path(folder)
        if here != root and "suite.toml" in names:  # such as one that was made here before
            suites.append(here.relative_to(root).as_posix())
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (here / name for name in names if not name.startswith(".")):
            if path.is_file():
                paths.append(path)
            elif path.suffix.lower() in ENDINGS:
                problems.append(f"{path.relative_to(root).as_posix()} is no file: {_what(path)}")
    problems += [f"cannot read {error.filename} ({error.strerror})" for error in closed]
    return sorted(paths), sorted(problems), sorted(suites)


def _what(path: Path) -> str:
    """What a name stands for that is no file."""
    return "it links to nothing" if path.is_symlink() else "it is a pipe, a socket or a device"


def _of_suite(suite: Suite, size: int) -> Iterator[Clean]:
    """A suite's pictures: the truth where there is one, as that is the clean one."""
    for source in suite.source:

        def read(source: Source = source) -> Frame:
            return suite.truth(source, size or None) or suite.frame(source, size or None)

        yield Clean(
            name=source.name,
            place=source.name,
            category=source.category,
            licence=source.licence,
            origin=source.origin or f"{suite.label}, source {source.name}",
            read=read,
        )


def _frame_of(path: Path) -> Frame:
    return Frame(path.read_bytes())


def unreadable(pictures: Sequence[Clean], size: int, observe: Observe) -> list[str]:
    """Every picture that does not decode or is too small, a sentence each."""
    found = []
    least = max(degrading.LEAST, -(-size // ENLARGED_MOST))
    for number, one in enumerate(pictures):
        try:
            height, width = one.read().pixels.shape[:2]
        except OSError as error:
            found.append(f"cannot read {one.place} ({error.strerror})")
        except ConvergeBenchError as error:
            found.append(f"{one.place} is no usable picture: {error}")
        else:
            if min(height, width) < least:
                smaller = ", or choose a smaller --size" if size > degrading.LEAST else ""
                found.append(
                    f"{one.place} has {width}×{height} pixels, and both sides must have {least}: "
                    f"leave it out{smaller}"
                )
        observe(number + 1, len(pictures), "looking at the clean pictures")
    return found


def named(text: str) -> str:
    """A legal name of a source."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._") or "picture"


def squared(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """The middle square of a picture, brought to a side of `size`; 0 leaves it as it is."""
    if not size:
        return pixels
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = pixels[top : top + side, left : left + side]
    return square if side == size else resize(square, size, size)
