"""Copying a run: from a directory to an address, from an address to a directory, between either.

Frames are copied once, several at a time, each checked against its name; then the records; then
`run.json`, by which the copy is a run. Interrupted, the same command goes on with what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from convergebench.archive.contents import belongs, digest_in
from convergebench.disk import Writing, make_directory, plain_errors, replace_file, sync_directory
from convergebench.errors import StoreDamaged, StoreError
from convergebench.frame import sha256
from convergebench.lines import is_json
from convergebench.remote.address import Address, Place, place_of
from convergebench.remote.bucket import Bucket
from convergebench.store import COPYING, RunStore
from convergebench.table import Table

AT_ONCE: Final = 16


@dataclass(frozen=True)
class Copied:
    """What was copied; `known` frames were there already."""

    path: Place
    origin: Place
    frames: int
    known: int
    records: int
    bytes: int

    @property
    def table(self) -> Table:
        """The counts as a table."""
        rows = [
            ("frames copied", self.frames),
            ("frames there before", self.known),
            ("records", self.records),
        ]
        title = f"{self.origin} copied to {self.path}, {self.bytes / 2**20:.1f} MiB"
        return Table(title, ("what", "count"), rows)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "origin": str(self.origin),
            "frames": self.frames,
            "known": self.known,
            "records": self.records,
            "bytes": self.bytes,
        }


def copy(
    run: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    observe: Callable[[int, int], None] | None = None,
) -> Copied:
    """Copy a run, so that the copy is the same run: to go on with it, or to hand it on.

    Args:
        run: The run, a directory or an address.
        to: Where to: a directory or an address, empty or with an unfinished copy of the same run.
        observe: Called with frames done and frames in all.

    Raises:
        StoreError: It is no run, or the place is taken.
        StoreBusy: Somebody works on the run.
        StoreDamaged: A frame is not what its name says.
    """
    store = RunStore.open(run)
    target = _target(place_of(to))
    # Nobody must write to it meanwhile: records of two moments would not fit together.
    with store.writing("run"), store.writing("score"):
        target.require(store)
        wanted = sorted(name for name in store.frame_names() if digest_in(name))
        there = target.frames(wanted)
        missing = [name for name in wanted if name not in there]
        sizes = _frames(store, target, missing, len(there), len(wanted), observe)
        records = sorted(_records(store.path))
        for name in [*(n for n in records if n != "run.json"), "run.json"]:
            data = (store.path / name).read_bytes()
            target.put(name, data)
            sizes += len(data)
    return Copied(place_of(to), store.place, len(missing), len(there), len(records), sizes)


def _frames(
    store: RunStore,
    target: _Directory | _Objects,
    names: list[str],
    known: int,
    total: int,
    observe: Callable[[int, int], None] | None,
) -> int:
    def bring(name: str) -> int:
        data = store.frame_bytes(name)
        if sha256(data) != digest_in(name):
            raise StoreDamaged(
                f"{name} of {store.place} is not what its name says. `convergebench verify "
                f"{store.place}` names all that is wrong."
            )
        target.put(name, data)
        return len(data)

    size = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done, each in enumerate(_in_order(pool, bring, names), 1):
            size += each
            if observe:
                observe(known + done, total)
    return size


def _in_order(
    pool: ThreadPoolExecutor, bring: Callable[[str], int], names: list[str]
) -> Iterator[int]:
    try:
        yield from pool.map(bring, names)
    finally:
        pool.shutdown(cancel_futures=True)


def _records(path: Path) -> Iterator[str]:
    for folder, _, files in os.walk(path):
        for file in files:
            name = (Path(folder) / file).relative_to(path).as_posix()
            if belongs(name) and digest_in(name) is None and not name.startswith("report/"):
                yield name


def _target(place: Place) -> _Directory | _Objects:
    return _Objects(place) if isinstance(place, Address) else _Directory(place)


def _finished(place: Place, store: RunStore) -> StoreError:
    """A copy with a `run.json` is a run, and may have gone on since: nothing is put over it."""
    return StoreError(
        f"{place} is a copy of {store.place} already, and whole: the one that was interrupted had "
        "come to its end. To copy it anew, choose another place."
    )


class _Directory:
    """A directory that a run is copied to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def require(self, store: RunStore) -> None:
        """Make the folders. Raises StoreError when something else is there."""
        mark = self._path / COPYING
        text = f"{store.info.suite} {store.info.created}\n"
        taken = self._path.exists() and (not self._path.is_dir() or any(self._path.iterdir()))
        marked = mark.is_file() and mark.read_text() == text
        if taken and not marked:
            raise StoreError(
                f"{self._path} exists and is no unfinished copy of {store.place}. Choose another "
                "path, or empty it."
            )
        run = self._path / "run.json"
        if marked and run.is_file() and is_json(run.read_bytes()):  # a power cut may have torn it
            with plain_errors(self._path):
                mark.unlink()
                sync_directory(self._path)
            raise _finished(self._path, store)
        with plain_errors(self._path):
            make_directory(self._path / "frames" / ".new")
            replace_file(mark, text.encode())
            for part in ("chains", "scores"):
                make_directory(self._path / part)
            for shard in range(256):
                (self._path / "frames" / f"{shard:02x}").mkdir(exist_ok=True)

    def frames(self, wanted: list[str]) -> set[str]:
        """The frames that are there and whole."""
        found = {name for name in wanted if (self._path / name).is_file()}
        return {
            name for name in found if sha256((self._path / name).read_bytes()) == digest_in(name)
        }

    def put(self, name: str, data: bytes) -> None:
        """Write a file; `run.json` comes last, when all others are on the disk."""
        path = self._path / name
        with plain_errors(self._path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if name != "run.json":
                replace_file(path, data)
                return
            os.sync()
            with Writing(self._path / "frames" / ".new") as disk:
                disk.new_file(path, data)
            (self._path / COPYING).unlink()
            sync_directory(self._path)


class _Objects:
    """An address that a run is copied to."""

    def __init__(self, address: Address) -> None:
        self._bucket = Bucket(address)

    def require(self, store: RunStore) -> None:
        """See that nothing else is there. Raises StoreError."""
        text = f"{store.info.suite} {store.info.created}\n".encode()
        objects, folders = self._bucket.shallow()
        if objects or folders:
            marked = COPYING in objects and self._bucket.get(COPYING) == text
            if not marked:
                raise StoreError(
                    f"{self._bucket.address} exists and is no unfinished copy of {store.place}. "
                    "Choose another address, or empty it."
                )
            if "run.json" in objects:
                self._bucket.delete([COPYING])
                raise _finished(self._bucket.address, store)
        else:
            self._bucket.put(COPYING, text)

    def frames(self, wanted: list[str]) -> set[str]:
        """The frames that are there: an object is whole or not there."""
        return self._bucket.list("frames").keys() & set(wanted)

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        self._bucket.put(name, data)
        if name == "run.json":
            self._bucket.delete([COPYING])
