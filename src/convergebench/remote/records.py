"""The records of a run, made the same on this machine and on object storage.

Chains and the ledger are logs with one writer, whose file here is never behind what is stored.
Files are written whole by whoever holds their lock; the newest one stored counts. Sessions and
judgements are lines that several machines may add, and are merged line by line. What was paid for
is deleted here by nothing that happens in the store.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from convergebench.archive.contents import belongs, derived, digest_in
from convergebench.disk import lock_holder, replace_file
from convergebench.frame import EXTENSIONS
from convergebench.remote import merging
from convergebench.remote.bucket import Bucket, Object
from convergebench.remote.logs import Log, fetched, log_of
from convergebench.remote.merging import UNIONS
from convergebench.wording import counted

FOLDERS: Final = (
    "chains", "scores", "imports", "ratings", "failures", "judgements", "trial", "status",
)  # fmt: skip
"""The folders of records. Frames are never listed."""
AT_ONCE: Final = 16
_OF_RUN: Final = ("run.json", "suite.json", "sources.json", "spec.json")
_STATUS: Final = re.compile(r"status/\w+\.json")
_LOG: Final = re.compile(r"chains/[0-9a-f]{2}/[^/]+\.jsonl|ledger\.jsonl")


class _Agreed(NamedTuple):
    """What came of making one record the same here and there.

    Attributes:
        name: The record.
        facts: What is to be remembered of it; None if it is to be looked at again.
        note: What the user is to know.
        stored: Whether all that is here is stored.
    """

    name: str
    facts: list[Any] | None
    note: str = ""
    stored: bool = True


class Records:
    """The records of one run. Frames are none.

    Args:
        bucket: Where they are stored.
        path: The working copy.
        restore: Stores a frame again from what this machine has of it; whether it could.
    """

    def __init__(
        self, bucket: Bucket, path: Path, restore: Callable[[str], bool] = lambda _name: False
    ) -> None:
        self._bucket = bucket
        self._path = path
        self._restore = restore
        self._logs: dict[str, Log] = {}  # that this process is the writer of
        self._left: dict[str, set[str]] = {}
        self._pending: set[str] = set()

    def agree(self, writer: str = "") -> list[str]:
        """Bring all records up to date; a writer stores first what of its own was not stored.

        Lists the folders of records, and never the frames. Fetches only what has changed. What
        another process on this machine is writing is left alone: its files are ahead of the store.

        Args:
            writer: `run` or `score`, by whom holds the lock for it.

        Returns:
            Notes on what was stored late or set aside.
        """
        self._left[writer] = {"all"}  # should we not come to the end
        known, there = self._known(), self._listing()
        busy = {what for what in ("run", "score") if what != writer and self._written_here(what)}
        names = {name for name in {**there, **self._here(known)} if _owner(name) not in busy}

        def one(name: str) -> _Agreed:
            write = bool(writer) and _owner(name) in ("", writer)
            return self._agree(name, there.get(name, {}), known, write)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(one, sorted(names)))
        facts = {name: known[name] for name in known if name not in names}
        facts |= {each.name: each.facts for each in found if each.facts is not None}
        replace_file(self._path / ".stored.json", json.dumps(facts).encode())
        self._left[writer] = {each.name for each in found if not each.stored and _matters(each)}
        if writer:  # of what others are writing we know nothing
            self._left[writer] |= busy
        return [each.note for each in found if each.note]

    def unstored(self, writer: str = "") -> set[str]:
        """What is here and, as far as we know, not stored, by the last `agree` and since."""
        behind = {name for name, log in self._logs.items() if log.is_behind}
        return self._left.get(writer, set()) | behind | self._pending

    def _listing(self) -> dict[str, dict[str, Object]]:
        """The stored objects of every record by the record's name; logs may have several."""
        top, folders = self._bucket.shallow()
        wanted = [folder for folder in FOLDERS if folder in folders]
        with ThreadPoolExecutor(len(FOLDERS)) as pool:
            listings = [top, *pool.map(self._bucket.list, wanted)]
        there: dict[str, dict[str, Object]] = {}
        for listing in listings:
            for name, told in listing.items():
                record = log_of(name)[0]
                if _is_record(record):  # what comes from outside becomes a path only if it is ours
                    there.setdefault(record, {})[name] = told
        return there

    def _here(self, known: dict[str, Any]) -> dict[str, dict[str, Object]]:
        files = [*self._path.glob("*.json*")]
        for folder in FOLDERS:
            files += (self._path / folder).rglob("*")
        names = {f.relative_to(self._path).as_posix() for f in files if f.is_file()}
        return {name: {} for name in {*names, *known} if _is_record(name)}

    def _agree(
        self, name: str, parts: dict[str, Object], known: dict[str, Any], write: bool
    ) -> _Agreed:
        """Make one record the same here and there."""
        path = self._path / name
        tags = sorted([part, told.tag] for part, told in parts.items())
        before: list[Any] = known.get(name) or [[]]
        here = _facts(path)
        log, union = bool(_LOG.fullmatch(name)), name in UNIONS
        seen = bool(tags) and before[0] == tags  # it has not changed there
        if seen and before[1:] == here and not (log and _extent(parts) != here[0]):
            if log and write:
                self._took(name, parts, int(here[0]))
            return _Agreed(name, before)
        gone = bool(before[0]) and not parts
        if gone and not (log or union or name in _OF_RUN):  # deleted by another machine
            path.unlink(missing_ok=True)
            return _Agreed(name, None)
        note, stored, facts = "", True, None
        if union:
            stored = merging.bring(self._bucket, self._path, name)
            if write and not stored:
                merging.store(self._bucket, self._path, name)
                stored = True
        elif log:
            note, stored = self._agree_on_log(name, parts, write)
        elif not parts or (here and seen and not self._is_stored(name)):
            if write and here:  # changed here, or never stored: a kill came in between
                self._bucket.put(name, path.read_bytes())
            stored, tags = write or not here, []  # its tag is another now
            facts = before if seen and not write else None  # so that a writer sees it, too
        elif not (here and seen):
            with contextlib.suppress(FileNotFoundError):  # deleted since it was listed
                self.place(name, self._bucket.get(name))
        if gone and here:
            told = "is stored again" if write else "is kept on this machine"
            note = f"{name} was in the store and is no longer: it {told}" + (note and f". {note}")
        if stored and tags and path.exists():
            facts = [tags, *_facts(path)]
        return _Agreed(name, facts, note, stored)

    def _is_stored(self, name: str) -> bool:
        """Whether a file here is what is stored: one written anew with the same content is."""
        try:
            return self._bucket.get(name) == (self._path / name).read_bytes()
        except FileNotFoundError:
            return False

    def _agree_on_log(self, name: str, parts: dict[str, Object], write: bool) -> tuple[str, bool]:
        """A note, and whether all that is here is stored."""
        path = self._path / name
        if not parts and not path.exists():
            return "", True
        there = self._fetched(name, parts)
        here = path.read_bytes() if path.exists() else b""
        note = ""
        if not write and self._written_here("run"):
            return "", False  # somebody has begun since we looked
        if not here.startswith(there):
            if not there.startswith(here):
                aside = self._aside(path)
                note = (
                    f"{path.name}: the run went on elsewhere; what was recorded here and never "
                    f"stored is kept in {aside}"
                )
            self.place(name, there)
            here = there
        if not write:  # the log is another's to write, and its parts are another's to join
            return note, len(here) == len(there)
        log = self._took(name, parts, len(there))
        if len(here) > len(there):
            whole = self._with_frames(here, len(there))
            if whole < len(here):
                note = f"{path.name}: a step is made again, its frame was not saved"
                if not parts:  # maybe more than a power cut took: the store lost the log as well
                    note += f"; the records are kept in {self._aside(path)}"
                    replace_file(path, here)
                with open(path, "r+b") as file:
                    file.truncate(whole)
            if whole > len(there):
                log.push()
                lines = counted(here[len(there) : whole].count(b"\n"), "record")
                note = note or f"{path.name}: {lines} stored that an earlier session could not"
        return note, True

    def _aside(self, path: Path) -> Path:
        """Keep a file under another name, beside its own."""
        aside = path.with_name(f"{path.name}.diverged-{time.time_ns():x}")
        os.replace(path, aside)
        return aside

    def _with_frames(self, lines: bytes, start: int) -> int:
        """Up to where the records from `start` on have their frames in the store."""
        end = start
        for line in lines[start:].splitlines(keepends=True):
            ref = json.loads(line).get("frame")
            if ref and not self._has_frame(ref):
                return end
            end += len(line)
        return end

    def _has_frame(self, ref: dict[str, Any]) -> bool:
        ending = EXTENSIONS.get(ref["format"], ".bin")
        name = f"frames/{ref['sha256'][:2]}/{ref['sha256']}{ending}"
        return self._bucket.exists(name) or self._restore(name)

    def _fetched(self, name: str, parts: dict[str, Object]) -> bytes:
        """A log as it is stored now; listed anew if its parts are put together meanwhile."""
        listed = iter([list(parts)])

        def look() -> list[str]:
            folder = name.rpartition("/")[0]
            known = next(listed, None)
            if known is not None:
                return known
            found = self._bucket.list(folder) if folder else self._bucket.shallow()[0]
            return [part for part in found if log_of(part)[0] == name]

        return fetched(self._bucket, name, look)

    def _took(self, name: str, parts: dict[str, Object], stored: int) -> Log:
        starts = [log_of(part)[1] for part in parts]
        log = self._logs[name] = Log(self._bucket, name, self._path / name, starts, stored)
        return log

    def store_log(self, name: str) -> None:
        """Store the lines that were appended to a log here."""
        if name in UNIONS:
            with self.storing(name):
                merging.store(self._bucket, self._path, name)
            return
        log = self._logs.get(name)
        if log is None:
            log = self._logs[name] = Log(self._bucket, name, self._path / name)
        log.push()

    @contextlib.contextmanager
    def storing(self, name: str) -> Iterator[None]:
        """While a record is stored: it counts as not stored unless the block comes to its end."""
        if not derived(name) and not _STATUS.fullmatch(name):
            self._pending.add(name)
        yield
        self._pending.discard(name)

    def compact(self, writer: str) -> None:
        """Put the parts together of every log that is this writer's.

        Others' are being written by somebody else: what we know of them is behind.
        """
        mine = [log for name, log in self._logs.items() if _owner(name) == writer]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(Log.compact, mine))

    def forget(self, writer: str) -> None:
        """At a writer's end: its logs are anybody's to write from now on."""
        self._logs = {name: log for name, log in self._logs.items() if _owner(name) != writer}

    def place(self, name: str, data: bytes) -> None:
        """Write a record that came from the store."""
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)

    def _known(self) -> dict[str, Any]:
        try:
            told = json.loads((self._path / ".stored.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return dict(told)

    def _written_here(self, what: str) -> bool:
        """Whether a process on this machine holds the run for that purpose now."""
        holder = lock_holder(self._path / f"{what}.lock")
        return holder is not None and holder.alive


def _is_record(name: str) -> bool:
    record = belongs(name) and digest_in(name) is None and not name.startswith("report/")
    return record or bool(_STATUS.fullmatch(name))


def _owner(name: str) -> str:
    """Which lock protects a record; none for what any command may write."""
    if name.startswith("scores/"):
        return "score"
    return "run" if _LOG.fullmatch(name) or name in _OF_RUN else ""


def _matters(found: _Agreed) -> bool:
    """Whether a record is missed when it is lost; not what can be made again from the others."""
    return not (derived(found.name) or _STATUS.fullmatch(found.name))


def _extent(parts: dict[str, Object]) -> int:
    """How many bytes a log has, by the listing of its parts."""
    return max(log_of(name)[1] + told.size for name, told in parts.items())


def _facts(path: Path) -> list[int]:
    """Size and time of a file, by which a change is seen; empty when it is not there."""
    try:
        told = path.stat()
    except FileNotFoundError:
        return []
    return [told.st_size, told.st_mtime_ns]
