"""Durable writes: what was written is on the disk before the call returns.

Frames and records cost money; a file counts as written when it *and* the directory that names it
have been flushed. A small reserve file is kept so that, when the disk fills up, the replies already
in flight can still be saved.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Self

from convergebench.errors import StoreBusy, StoreError, StoreFull

FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
LOOKS: Final = 5
"""How often a lock is tried for again before it counts as held."""


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


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file by rename, so that nobody ever sees half of it.

    Not flushed to the disk: it is for what can be made again.
    """
    temporary = beside(path)
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A hidden name next to a file's, that no other thread or process takes."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


class Writing:
    """Several writes made durable together; as a context manager, on leaving the block.

    All flushes are asked for at once, so that one commit of the file system carries them: a frame,
    its name and its record take about as long as the frame alone. If anything fails, appended
    lines are taken back.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._files: list[int] = []
        self._appended: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        return self

    def new_file(self, path: Path, data: bytes) -> None:
        """Write a whole file, by way of a scratch file and a rename.

        A killed process leaves at most a file in the scratch directory (on the same file system),
        to be swept later.
        """
        temporary = self._scratch / f"{path.name}.{os.getpid()}.{time.monotonic_ns()}"
        fd = self._open(temporary, os.O_WRONLY | os.O_CREAT)
        try:
            _write_all(fd, data)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self._open(path.parent, os.O_RDONLY | os.O_DIRECTORY)

    def append(self, path: Path, line: bytes) -> None:
        """Append one line to a file."""
        new = not path.exists()
        fd = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._appended.append((fd, os.fstat(fd).st_size))
        _write_all(fd, line + b"\n")
        if new:
            self._open(path.parent, os.O_RDONLY | os.O_DIRECTORY)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                # Two threads are enough to have all flushes in one commit.
                half = len(self._files) // 2
                rest = _flushers().submit(_flush, self._files[half:]) if half else None
                try:
                    _flush(self._files[: half or None])
                finally:  # the files must stay open until both halves are through
                    if rest:
                        rest.result()
                self._appended.clear()
        finally:
            for fd, size in self._appended:
                with contextlib.suppress(OSError):
                    os.ftruncate(fd, size)
            for fd in self._files:
                os.close(fd)

    def _open(self, path: Path, flags: int) -> int:
        self._files.append(os.open(path, flags, 0o644))
        return self._files[-1]


def _flush(files: list[int]) -> None:
    for fd in files:
        os.fsync(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@cache
def _flushers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=32, thread_name_prefix="flush")


class Reserve:
    """Disk space held back, to be given up when a paid reply would not fit otherwise."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._lock = threading.Lock()
        self.spent = False

    def hold(self) -> None:
        """Take the space. Raises StoreFull before anything was paid for."""
        if self._path.exists() and self._path.stat().st_size >= self._size:
            return
        try:
            with open(self._path, "wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, self._size)
                else:  # macOS: blocks are only taken by what is written
                    for _ in range(-(-self._size // 2**20)):
                        file.write(bytes(2**20))
        except OSError as error:
            self._path.unlink(missing_ok=True)
            if error.errno in FULL:
                raise StoreFull(
                    f"less than {self._size / 2**20:.0f} MiB free for {self._path.parent}, which "
                    "are kept in reserve so that no paid reply is lost. Free some space and run "
                    "the same command again."
                ) from error
            raise

    def give_up(self) -> None:
        """Free the space, once: it is free when this returns, whichever thread was first."""
        with self._lock:
            self._path.unlink(missing_ok=True)
            self.spent = True

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
            _take(fd)
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


def _take(fd: int) -> None:
    """Lock a file; tried again for a moment, because somebody may only be looking."""
    for _ in range(LOOKS):
        with contextlib.suppress(OSError):
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(0.02)
    return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@dataclass(frozen=True)
class Holder:
    """The process that a lock file names; `alive` unless it ended without letting go."""

    pid: int
    host: str
    since: str
    alive: bool


def lock_holder(path: Path) -> Holder | None:
    """Who holds a lock, or did not let go of it. Takes it from nobody, and writes nothing.

    A process on another machine is seen where the file system passes locks on; where it does not,
    `alive` is false although it may be.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        told = json.loads(os.pread(fd, 4096, 0))
        try:
            # Shared, and let go at once: `hold_lock` tries again.
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
            alive = False
        except OSError:
            alive = True
        return Holder(int(told["pid"]), str(told["host"]), str(told["since"]), alive)
    except (ValueError, KeyError, TypeError):  # empty: it was let go
        return None
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
