"""The working copy of a run on object storage.

Records (chains, ledger, scores, findings) are small and are all here; frames are fetched when they
are asked for, into a cache with a limit. What is written is on this machine's disk first, then on
object storage, and only then does the work go on: when the store fails in between, what was
received is still here, and the next session stores it first.

A copy has one writer for each purpose on this machine (a file lock) and everywhere (a lease).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from convergebench.archive.contents import digest_in
from convergebench.disk import Holder, make_directory, replace_file
from convergebench.errors import SettingsError, StoreBusy, StoreDamaged, StoreError
from convergebench.frame import sha256
from convergebench.remote.address import Address
from convergebench.remote.bucket import Bucket
from convergebench.remote.cache import FrameCache
from convergebench.remote.lease import Lease, hold, holder, name_of
from convergebench.remote.logs import PART, fetched, log_of
from convergebench.remote.marker import busy, mark, unmark
from convergebench.remote.records import Records
from convergebench.remote.telling import Waits, say

CACHE: Final = "CONVERGEBENCH_CACHE"
"""The environment variable that names the folder of working copies."""
_HEADS: Final = ("run.json", "suite.json", "sources.json")


class WorkingCopy:
    """What this machine has of a run on object storage.

    Attributes:
        path: The folder, laid out as a run directory.
        bucket: The objects.
    """

    def __init__(self, address: Address) -> None:
        self.bucket: Final = Bucket(address)
        self.path: Final = copies_folder() / hashlib.sha256(str(address).encode()).hexdigest()[:24]
        self._cache = FrameCache(self.path / "cache")
        self._leases: list[Lease] = []
        self.bucket.guard = self._require
        self.bucket.tell = Waits(" (told once)")
        self._records = Records(self.bucket, self.path, self._restore_frame)
        self._stored: set[str] = set()

    # -- opening ------------------------------------------------------------------------------

    def prepare(self, *, new: bool = False) -> None:
        """Make the folders; a copy of another run that was at this address is set aside.

        Where no run is found the copy stays: the store may be another one by mistake, and what was
        never stored is to be stored when it is the right one again.

        Args:
            new: Whether a run is to be made at the address.

        Raises:
            StoreBusy: A process on this machine works on the copy of the other run.
        """
        here, there = _made(self.path / "run.json"), self._head("run.json")
        notes = []
        if here and (new if there is None else here != _made(there)):
            notes = self._set_aside()
        if there is not None and not self.path.exists():
            notes += self._brought_back(_made(there))
        make_directory(self.path / "frames" / ".new")
        for part in ("chains", "scores", "status"):
            (self.path / part).mkdir(exist_ok=True)
        replace_file(self.path / "ADDRESS", f"{self.bucket.address}\n".encode())
        self._keep(notes)

    def bring_heads(self) -> None:
        """Bring what tells what the run is. Raises FileNotFoundError when there is none."""
        for name in _HEADS:
            data = self._head(name)
            path = self.path / name
            if data is not None:
                if not path.is_file() or path.read_bytes() != data:  # or it would look changed
                    self._records.place(name, data)
            elif name == "run.json":
                raise FileNotFoundError(2, "no run.json", "run.json")

    def _head(self, name: str) -> bytes | None:
        try:
            return self.bucket.get(name)
        except FileNotFoundError:
            return None

    def _set_aside(self) -> list[str]:
        """Another run was here: keep its records, some may never have been stored anywhere."""
        if who := next(busy(self.path), ""):
            raise StoreBusy(
                f"{self.bucket.address} is another run than the one that {who} works on here, in "
                f"{self.path}. Wait for it, or stop it, then run the same command again."
            )
        paid = ("frames/??/*", "chains/*/*", "ledger.jsonl", "judgements/*.jsonl")
        if not any(found for pattern in paid for found in self.path.glob(pattern)):
            shutil.rmtree(self.path)
            return []
        shutil.rmtree(self.path / "cache", ignore_errors=True)
        aside = self.path.with_name(f"{self.path.name}.{time.time_ns():x}")
        os.replace(self.path, aside)
        return [
            f"{self.bucket.address}: this machine had a working copy of another run that was there "
            f"before; it is kept in {aside}"
        ]

    def _brought_back(self, made: str) -> list[str]:
        """Take up a copy that was set aside, when its run is at this address again."""
        for aside in sorted(self.path.parent.glob(f"{self.path.name}.*")):
            if made and _made(aside / "run.json") == made:
                os.replace(aside, self.path)
                return [f"{self.bucket.address}: the working copy that was kept in {aside} is used"]
        return []

    def _keep(self, notes: list[str]) -> None:
        """Say what a reader found, once, and keep it for the next writer's notes."""
        kept = self.path / ".notes"
        known = kept.read_text("utf-8").splitlines() if kept.exists() else []
        for note in notes:
            if note not in known:
                say(note)
                with open(kept, "a", encoding="utf-8") as file:
                    file.write(f"{note}\n")

    def refresh(self, writer: str = "") -> list[str]:
        """Bring all records up to date; a writer stores first what was not stored.

        Returns:
            Notes; what a reader found is told to the next writer, too.
        """
        if writer == "run":
            self._store_frames()
        notes, kept = self._records.agree(writer), self.path / ".notes"
        if not writer:
            self._keep(notes)
            if self._records.unstored() and not any(busy(self.path)):  # who works has marked it
                mark(self.path)
        elif kept.exists():
            notes = kept.read_text("utf-8").splitlines() + notes
            kept.unlink()
        return notes

    def unstored(self) -> list[str]:
        """The records that are here and were not stored when a reader last brought them up to date.

        Not those of a session that is at work on this machine now.
        """
        return sorted(self._records.unstored())

    # -- writing ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, what: str) -> Iterator[list[str]]:
        """Hold the run everywhere for `run` or `score`. Yields notes. Raises StoreBusy."""
        alone = (
            []
            if self.bucket.is_exclusive()
            else [
                f"{self.bucket.address} cannot lock: see to it that one process alone works on it"
            ]
        )
        with hold(self.bucket, what, name_of(self.path), say) as (lease, stale):
            self._leases.append(lease)
            notes = [*alone, stale] if stale else alone
            mark(self.path)
            try:
                yield notes + self.refresh(what)
            finally:
                # All is stored by now: what cannot be put together now, the next session will.
                with contextlib.suppress(StoreError):
                    self._records.compact(what)
                self._leases.remove(lease)
                if not self._records.unstored(what):
                    unmark(self.path, what)
                self._records.forget(what)

    def holder(self, what: str) -> Holder | None:
        """Who holds the run for that purpose on any machine, or did not let go of it.

        `alive` as far as can be told at once: whether it has shown itself within a lease's time is
        only known to who waits for it.
        """
        told = holder(self.bucket, what)
        if told is None:
            return None
        alive = told.get("copy") != name_of(self.path)
        return Holder(told.get("pid", 0), told.get("host", ""), told.get("since", ""), alive)

    def is_taken(self) -> bool:
        """Whether something lies at the address that is not what a killed `create` left."""
        objects, folders = self.bucket.shallow()
        return bool((set(objects) - {"suite.json"}) | (folders - {"locks"}))

    def store_frame(self, name: str) -> None:
        """Store a frame that was written here."""
        path = self.path / name
        if name not in self._stored:
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # another thread had the same frame, and has stored it
                return
            self.bucket.put_once(name, data)
            self._stored.add(name)
        with contextlib.suppress(FileNotFoundError):
            self._cache.adopt(name, path)

    def store_log(self, name: str) -> None:
        """Store the lines that were appended to a log here."""
        try:
            self._records.store_log(name)
        except BaseException:
            mark(self.path)  # judges' answers are written outside of sessions as well
            raise

    def store_file(self, name: str, data: bytes) -> None:
        """Store a file that was written here."""
        with self._records.storing(name):
            self.bucket.put(name, data)

    def create_file(self, name: str, data: bytes) -> bool:
        """Store a file unless there is one of that name; whether it is there now as given."""
        return self.bucket.put_once(name, data) or self.bucket.get(name) == data

    def delete_files(self, names: list[str]) -> None:
        """Delete records that were deleted here."""
        self.bucket.delete(names)

    def _require(self) -> None:
        """See that what we hold is still ours, before anything is written."""
        for lease in self._leases:
            lease.require()

    def _store_frames(self) -> None:
        """Store the frames that an earlier session wrote here and could not store."""
        for path in sorted((self.path / "frames").glob("[0-9a-f][0-9a-f]/*")):
            name = path.relative_to(self.path).as_posix()
            if digest_in(name) == sha256(path.read_bytes()):
                self.store_frame(name)
            else:  # cut off by a power cut
                path.unlink()

    def _restore_frame(self, name: str) -> bool:
        """Store a frame again that the store has lost, if it is in the cache."""
        data = self._cache.get(name)
        if data is None or digest_in(name) != sha256(data):
            return False
        self.bucket.put_once(name, data)
        return True

    # -- reading ------------------------------------------------------------------------------

    def log(self, name: str) -> bytes:
        """A log as it is in the store now. Raises FileNotFoundError."""
        first = self.bucket.get(name)
        if len(first) < PART:  # it has no further parts
            return first
        folder, _, _ = name.rpartition("/")

        def parts() -> list[str]:
            return [n for n in self.bucket.list(folder) if log_of(n)[0] == name]

        return fetched(self.bucket, name, parts)

    def frame(self, name: str) -> bytes:
        """A frame's bytes, from the cache or the store.

        Raises:
            FileNotFoundError: It is not there.
            StoreDamaged: Its bytes are not what its name says.
        """
        with contextlib.suppress(FileNotFoundError):
            return (self.path / name).read_bytes()  # written here, not stored yet
        data = self._cache.get(name)
        if data is None or digest_in(name) != sha256(data):  # cut off by a power cut
            data = self.bucket.get(name)
            if digest_in(name) != sha256(data):
                raise StoreDamaged(f"frame {name} of {self.bucket.address} was altered")
            self._cache.add(name, data)
        return data

    def frame_file(self, name: str) -> Path:
        """A file with a frame's bytes, fetched if need be; it stays until others push it out."""
        path = self.path / name  # written here, not stored yet
        if path.is_file():
            return path
        found = self._cache.file(name)
        if found is None:
            data = self.frame(name)
            found = self._cache.file(name) or self._cache.add(name, data)
        return found


def copies_folder() -> Path:
    """Where working copies are: a folder for what programs keep, unless the user names one."""
    named = os.environ.get(CACHE, "").strip()
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if named:
            return Path(named).expanduser()
        home = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError as error:  # a user without a home, as in some containers
        raise SettingsError(
            f"no home folder was found for the working copies of runs. Name a folder with {CACHE}."
        ) from error
    return home / "convergebench" / "runs"


def _made(run: Path | bytes) -> str:
    """When a run was made, by which runs at one address are told apart; empty if none is told."""
    try:
        told = json.loads(run if isinstance(run, bytes) else run.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(told.get("created", "")) if isinstance(told, dict) else ""
