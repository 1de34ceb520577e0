"""Bringing a suite's files here: by their hash from folders, or from their addresses.

A file appears under its name only when it is whole and verified. What is on its way lies in
`.partial` and is taken up again by the next call, whatever ended the last one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from queue import Empty, SimpleQueue
from typing import Final
from urllib.parse import urlsplit

from convergebench.disk import Writing, hold_lock, make_directory, plain_errors
from convergebench.errors import InputError, SuiteError
from convergebench.folders import DATA, data_folders, first_writable, own_data
from convergebench.frame import sha256
from convergebench.preparation.result import (
    COPIED,
    DOWNLOADED,
    HERE,
    MISSING,
    Preparation,
    Prepared,
    Wanted,
)
from convergebench.preparation.search import LARGEST, likely_first, walk
from convergebench.suite import Suite
from convergebench.weights.digests import digest
from convergebench.weights.entries import readable
from convergebench.weights.transfer import Failure, Unreachable, download
from convergebench.wording import counted

PARTIAL: Final = ".partial"
LOCK: Final = ".lock"
README: Final = "README"
JOBS: Final = 4
"""Downloads at a time, unless told otherwise."""

Observe = Callable[[int, int, str, str], None]
"""Told how far things are: done, of how many, with what, and what has just happened."""


class TooLong(Failure):
    """An answer that does not end."""


def prepare_suite(
    suite: Suite,
    *,
    search: Sequence[Path] = (),
    to: Path | None = None,
    offline: bool = False,
    jobs: int = JOBS,
    observe: Observe = lambda *_: None,
) -> Preparation:
    """Bring the files of a suite to this machine.

    Args:
        suite: The suite; what it draws itself needs nothing.
        search: Folders whose files are taken where their SHA-256 is that of a file of the suite,
            whatever they are called.
        to: Where to, as TO/SUITE/FILE; then every file is put there, even one that is elsewhere
            already. By default, what is here is left alone, and the rest goes to the first
            writable folder of CONVERGEBENCH_DATA, else to the user's data folder.
        offline: Download nothing.
        jobs: Downloads at a time.
        observe: Told how far things are, one at a time.

    Raises:
        InputError: A folder to search is none.
        SuiteError: A file's name leads out of the suite's folder.
        StoreError: The folder cannot be written to, or another process is preparing it.
    """
    wanted = [
        Wanted(source, *told) for source in suite.source for told in dict.fromkeys(source.files)
    ]
    _require_places(wanted)
    for folder in search:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder. Name folders to look for the files in.")
    base = to or first_writable(data_folders()) or own_data()
    work = _Preparing(suite, base / suite.name, to is not None, observe)
    work.go(wanted, search, None if offline else jobs)
    return Preparation(suite, base / suite.name, work.of(wanted), _notes(base))


def _require_places(wanted: Iterable[Wanted]) -> None:
    """Raise SuiteError unless every file has a place of its own below the suite's folder."""
    taken: dict[str, str] = {}
    for want in wanted:
        path = PurePosixPath(want.file)
        top = path.parts[0] if path.parts else ""
        if path.is_absolute() or ".." in path.parts or top in ("", PARTIAL, LOCK, README):
            raise SuiteError(
                f"source {want.source.name!r}: {want.file!r} is no place in the suite's folder"
            )
        if taken.setdefault(want.file, want.sha256) != want.sha256:
            raise SuiteError(f"the suite gives {want.file!r} two different SHA-256")


def _notes(base: Path) -> tuple[str, ...]:
    known = [folder.resolve() for folder in data_folders()]
    if base.resolve() in known:
        return ()
    return (f"To have them found there: export {DATA}={base.resolve()}",)


class _Preparing:
    """One call of prepare_suite: its folder, what was placed, the servers that are silent."""

    def __init__(self, suite: Suite, folder: Path, gather: bool, observe: Observe) -> None:
        self._suite = suite
        self._folder = folder
        self._partial = folder / PARTIAL
        self._gather = gather
        self._tell = observe
        self._done: dict[str, Prepared] = {}
        self._silent: dict[str, str] = {}
        self._received = self._total = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def go(self, wanted: Sequence[Wanted], search: Sequence[Path], jobs: int | None) -> None:
        """Bring what is not here; None jobs: without the network."""
        self._total = len({want.file for want in wanted})
        if all([self._present(want) for want in wanted]):
            return
        with plain_errors(self._folder):
            make_directory(self._partial)
            with hold_lock(self._folder / LOCK, "suites prepare"):
                for left in self._partial.iterdir():  # by a process that was killed
                    if left.suffix != ".part":
                        left.unlink()
                # Another process may have brought some of them meanwhile.
                lacking = [w for w in wanted if w.file not in self._done and not self._present(w)]
                for want in lacking:
                    self._put_aside(want)
                self._from_addresses(self._from_folders(lacking, search), jobs)
                self._describe(wanted)
            with contextlib.suppress(OSError):
                self._partial.rmdir()

    def of(self, wanted: Sequence[Wanted]) -> tuple[Prepared, ...]:
        """What became of the files."""
        return tuple({want.file: self._done[want.file] for want in wanted}.values())

    # -- what is here ---------------------------------------------------------------------------

    def _present(self, want: Wanted) -> bool:
        """Whether the file is in its place, and right."""
        own = self._folder / want.file
        for path in [own] if self._gather else [*self._suite.places(want.file), own]:
            if _is(path, want.sha256):
                self._finish(want, HERE, path)
                return True
        return False

    def _put_aside(self, want: Wanted) -> None:
        """Take its name from a file that is not the one."""
        target = self._folder / want.file
        if target.is_file():
            aside = target.with_name(f"{target.name}.wrong")
            os.replace(target, aside)
            with self._lock:
                self._progress(f"{target} is not what the suite says: renamed to {aside.name}")

    # -- folders --------------------------------------------------------------------------------

    def _from_folders(
        self, lacking: Sequence[Wanted], search: Sequence[Path]
    ) -> list[list[Wanted]]:
        """Copy what the folders have; returns what they have not, the same picture together."""
        alike: dict[str, list[Wanted]] = {}
        for want in lacking:
            alike.setdefault(want.sha256, []).append(want)
        known = [p for want in lacking for p in self._suite.places(want.file) if self._gather]
        candidates = likely_first([*known, *walk(search)], lacking)
        for count, path in enumerate(candidates):
            if not alike:
                break
            self._tell(count, len(candidates), f"files looked at, now {path.name}", "")
            try:
                data = path.read_bytes()
            except OSError:
                continue  # not ours to read
            for want in alike.pop(sha256(data), ()):
                self._place(want, data)
                self._finish(want, COPIED, self._folder / want.file, f"from {path}")
        return list(alike.values())

    def _place(self, want: Wanted, data: bytes) -> None:
        target = self._folder / want.file
        make_directory(target.parent)
        with Writing(self._partial) as disk:
            disk.new_file(target, data)
        self._part(want).unlink(missing_ok=True)

    # -- addresses ------------------------------------------------------------------------------

    def _from_addresses(self, lacking: Sequence[list[Wanted]], jobs: int | None) -> None:
        """Download what is left, several files at a time."""
        waiting: SimpleQueue[list[Wanted]] = SimpleQueue()
        for wants in lacking:
            waiting.put(wants)
        ended: SimpleQueue[BaseException | None] = SimpleQueue()

        def work() -> None:
            try:
                while not self._stopped.is_set():
                    self._from_address(waiting.get_nowait(), jobs is None)
            except Empty:
                ended.put(None)
            except BaseException as error:  # a full disk, say: told by the main thread
                ended.put(error)

        # Not an executor's threads: Ctrl-C does not wait for a slow server. What has arrived is
        # in `.partial`, as after a kill.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs or 1)]
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                if fault := ended.get():
                    raise fault
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join(0.1)

    def _from_address(self, wants: Sequence[Wanted], offline: bool) -> None:
        """Download one picture, and put it wherever it belongs."""
        reasons = []
        for want in wants:
            if not want.address:
                reasons.append("no folder had it")
            elif offline:
                reasons.append("no folder had it, and nothing was to be downloaded")
            else:
                try:
                    data = self._fetch(want)
                except Failure as failure:
                    reasons.append(str(failure))
                    continue
                for each in wants:
                    self._place(each, data)
                    told = f"from {want.address}"
                    self._finish(each, DOWNLOADED, self._folder / each.file, told)
                return
        for want, reason in zip(wants, reasons, strict=True):
            self._finish(want, MISSING, None, reason)

    def _part(self, want: Wanted) -> Path:
        return self._partial / f"{want.sha256[:16]}.part"

    def _fetch(self, want: Wanted) -> bytes:
        """The right bytes; a resumed file that is wrong is fetched anew. Raises Failure."""
        part = self._part(want)
        while True:
            resumed = part.exists()
            self._download(want, part)
            data = part.read_bytes()
            found = sha256(data)
            if found == want.sha256:
                return data
            part.unlink()
            if not resumed:
                raise Failure(
                    f"what came has {counted(len(data), 'byte')} and SHA-256 {found[:12]}… instead "
                    f"of {want.sha256[:12]}…, and was thrown away"
                )

    def _download(self, want: Wanted, part: Path) -> None:
        """Bring a whole file to `part`. A server that twice gave no answer is not asked again."""
        address = want.address or ""
        server = urlsplit(address).netloc
        before = part.stat().st_size if part.exists() else 0

        def observe(have: int, _total: int) -> None:
            nonlocal before
            if self._stopped.is_set():
                raise Failure("stopped")
            if have > LARGEST:
                raise TooLong(f"more than {readable(LARGEST)} came, which no picture has")
            with self._lock:
                self._received += max(0, have - before)
                self._progress("")
            before = have

        for attempt in (1, 2):
            if server in self._silent:
                raise Failure(self._silent[server])
            try:
                download(address, part, observe=observe)
                return
            except TooLong:
                part.unlink()
                raise
            except Unreachable as failure:
                if attempt == 2:
                    self._silent[server] = str(failure)
                    raise
                time.sleep(0.5)

    # -- telling --------------------------------------------------------------------------------

    def _finish(self, want: Wanted, how: str, path: Path | None, told: str = "") -> None:
        reason = told if how == MISSING else ""
        done = Prepared(want.source.name, want.file, how, path, want.address, reason)
        with self._lock:
            self._done[want.file] = done
            self._progress("" if how == HERE else f"{want.file}: {how}, {told}")

    def _progress(self, event: str) -> None:
        if self._stopped.is_set():
            return
        text = f"files, {readable(self._received)} received" if self._received else "files"
        self._tell(len(self._done), self._total, text, event)

    def _describe(self, wanted: Iterable[Wanted]) -> None:
        """Write a README beside the files, so that the folder explains itself."""
        placed = [w for w in wanted if self._done[w.file].path == self._folder / w.file]
        if not placed:
            return
        lines = [
            f"Pictures of suite {self._suite.label}, put here by `convergebench suites prepare`.",
            "Each stands under its own licence:",
        ]
        for want in placed:
            source = want.source
            lines += ["", want.file, f"  source: {source.name}", f"  licence: {source.licence}"]
            lines += [f"  origin: {source.origin}"] if source.origin else []
            lines += [f"  address: {want.address}"] if want.address else []
            lines += [f"  sha256: {want.sha256}"]
        with Writing(self._partial) as disk:
            disk.new_file(self._folder / README, ("\n".join(lines) + "\n").encode())


def _is(path: Path, expected: str) -> bool:
    try:
        return path.is_file() and digest(path) == expected
    except OSError:
        return False
