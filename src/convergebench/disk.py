"""Durable writes: what was written is on the disk before the call returns.

Frames and records cost money; a file counts as written when it *and* the directory that names it
have been flushed. A small reserve file is kept so that, when the disk fills up, the replies already
in flight can still be saved.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from convergebench.errors import StoreBusy, StoreError, StoreFull

FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))


def sync_directory(path: Path) -> None:
    """Flush a directory, so that the names in it survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Path) -> None:
    """Create a directory, with parents, durably; no harm if it exists."""
    if path.is_dir():
        return
    make_directory(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        sync_directory(path.parent)


def write_new(path: Path, data: bytes, scratch: Path) -> None:
    """Write a whole file durably: to scratch, renamed, then file and directory flushed.

    Renaming before flushing lets one commit of the file system carry both. Until the call returns
    nothing refers to the file, so that a power cut in between does no harm; a killed process
    leaves at most a file in `scratch`, a directory on the same file system, to be swept later.
    """
    temporary = scratch / f"{path.name}.{os.getpid()}.{time.monotonic_ns()}"
    with open(temporary, "wb", buffering=0) as file:
        try:
            _write_all(file, data)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        try:
            os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise
    sync_directory(path.parent)


def _write_all(file: io.FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def append_line(path: Path, line: bytes) -> None:
    """Append one line durably. On failure the file is as it was before."""
    new = not path.exists()
    with open(path, "ab", buffering=0) as file:
        size = file.tell()
        try:
            _write_all(file, line + b"\n")
            os.fdatasync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(size)
            raise
    if new:
        sync_directory(path.parent)


class Reserve:
    """Disk space held back, to be given up when a paid reply would not fit otherwise."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self.spent = False

    def hold(self) -> None:
        """Take the space. Raises StoreFull before anything was paid for."""
        if self._path.exists() and self._path.stat().st_size >= self._size:
            return
        try:
            with open(self._path, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._size)
        except OSError as error:
            self._path.unlink(missing_ok=True)
            if error.errno in FULL:
                raise StoreFull(
                    f"less than {self._size / 2**20:.0f} MiB free for {self._path.parent}, which "
                    "are kept in reserve so that no paid reply is lost. Free some space and run "
                    "the same command again."
                ) from error
            raise

    def give_up(self) -> bool:
        """Free the space; False when it had been given up before."""
        if self.spent:
            return False
        self.spent = True
        self._path.unlink(missing_ok=True)
        return True

    def release(self) -> None:
        """Remove the file at the end of a run."""
        self._path.unlink(missing_ok=True)


@contextlib.contextmanager
def hold_lock(path: Path, what: str) -> Iterator[str | None]:
    """Hold an exclusive lock on a file while in the block.

    The lock is the kernel's (`flock`), so it ends with its holder whatever happens; the file only
    tells who that is. Yields a note when the previous holder ended without letting go.

    Raises:
        StoreBusy: Another process holds it.
    """
    me = {
        "pid": os.getpid(),
        "host": platform.node(),
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreBusy(
                f"{path.parent} is being written by {_holder(fd)} ({what}). "
                "Wait for it, or stop it, then run the same command again."
            ) from error
        before = os.pread(fd, 4096, 0)
        stale = f"took over from {_holder(fd)}, which ended without letting go" if before else None
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(me).encode(), 0)
        try:
            yield stale
        finally:
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def _holder(fd: int) -> str:
    try:
        told = json.loads(os.pread(fd, 4096, 0))
        return f"process {told['pid']} on {told['host']} since {told['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


@contextlib.contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors about a run directory into one clear sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise StoreFull(
                f"no space left for {path} ({error.strerror}). Everything received so far is "
                "saved: free some space and run the same command again."
            ) from error
        raise StoreError(
            f"cannot write to {path} ({error.strerror or error}). Check the path and its rights."
        ) from error
