"""Making a folder that is whole or not there: under another name until all of it is on the disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from convergebench.disk import FULL, sync_directory
from convergebench.errors import InputError, StoreBusy, StoreError, StoreFull

MARK: Final = ".being-made-by-convergebench"
"""The file that says an unfinished folder is ours, and is locked while somebody works in it."""

FEW: Final = 64
"""Files up to this many are flushed one by one, so that nobody waits for what others write."""


@contextlib.contextmanager
def making(path: Path) -> Iterator[Path]:
    """A folder to fill, `PATH.part`, which becomes `PATH` when the block ends well.

    What a killed process left is swept; what anybody else put there is refused.

    Raises:
        InputError: The place is taken, or not there.
        StoreBusy: Another process is making the same folder.
        StoreFull: The disk is.
    """
    if path.name in ("", ".."):  # it is renamed at the end, and nobody's shell must be in it
        raise InputError(f"'{path}' is no name of a folder to be made. Name one, as in my-folder.")
    part = path.with_name(path.name + ".part")
    _require_place(path, part)
    try:
        part.mkdir(exist_ok=True)
        mark = os.open(part / MARK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreBusy(
                    f"{path} is being made by another process. Wait for it, or choose another "
                    "folder."
                ) from error
            _sweep(part)
            try:
                yield part
                _flush(part)
                (part / MARK).unlink()
                os.rename(part, path)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
        finally:
            os.close(mark)
        sync_directory(path.absolute().parent)
    except OSError as error:
        if error.errno in FULL:
            raise StoreFull(
                f"no space left for {path} ({error.strerror}). Nothing of it was kept: free some "
                "space and run the same command again."
            ) from error
        raise StoreError(
            f"cannot write {path} ({error.strerror or error}). Check the path and its rights."
        ) from error


def _require_place(path: Path, part: Path) -> None:
    if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
        raise InputError(f"{path} exists and is no empty folder. Remove it, or choose another.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.parent} is not a folder. Make it, or choose another place.")
    if part.exists() and not ((part / MARK).is_file() or (part.is_dir() and _bare(part))):
        raise InputError(f"{part} exists and is none of ours. Remove it, or choose another place.")


def _flush(folder: Path) -> None:
    """Put everything on the disk: file by file where they are few, else all that the system has."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    if len(files) > FEW:
        os.sync()
        return
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    for path in {path.parent for path in files} | {path.parent.parent for path in files}:
        if path.is_relative_to(folder):
            sync_directory(path)


def _bare(folder: Path) -> bool:
    return not any(folder.iterdir())


def _sweep(part: Path) -> None:
    for left in part.iterdir():
        if left.name != MARK:
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
