"""The objects below an address: put, get, list, delete, through fsspec.

What the store cannot do now (503, "slow down", a broken connection) is tried again for
`PATIENCE` seconds, after ever longer waits; what it will never do (no such bucket, no right, no
credentials) is told at once. A store that has never answered this command is given up much sooner:
its address is likely to be wrong, and nothing is in flight that waiting would save. Every object is
written whole or not at all. Once patience is at its end, everything else is tried a single time
until something works again: a command whose store is down must not wait as often as it has things
to tidy up.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from convergebench.errors import ConvergeBenchError, SettingsError, StoreError, scrub
from convergebench.remote import clouds
from convergebench.remote.address import LIBRARIES, Address
from convergebench.remote.clouds import causes, code_of
from convergebench.remote.telling import lasting

PATIENCE: Final = "CONVERGEBENCH_PATIENCE"
"""The environment variable that says for how many seconds a store that is down is asked again."""
USUAL_PATIENCE: Final = 300.0
FIRST_PATIENCE: Final = 20.0
"""Seconds for which a store is asked that has not answered anything yet."""
LONGEST_WAIT: Final = 20.0
ANSWERED: Final = "CONVERGEBENCH_CACHE_ANSWERED"
"""The environment variable in which a command notes the buckets that have answered, for itself and
its workers: a worker is in the middle of something. Begins as it does to be handed on by Ray."""

T = TypeVar("T")

_NOTING: Final = threading.Lock()
_EXISTS: Final = ("PreconditionFailed", "412")
_UNKNOWN: Final = ("NotImplemented", "501")


@dataclass(frozen=True)
class Object:
    """What a listing tells of an object.

    Attributes:
        tag: Changes with its content.
        md5: Of its content, in hexadecimal; empty where it is not told.
    """

    size: int
    tag: str
    md5: str = ""


@dataclass
class Traffic:
    """What went over the wire, to be counted and shown."""

    requests: int = 0
    sent: int = 0
    received: int = 0
    repeated: int = 0


class Bucket:
    """The objects below an address, named relative to it. For several threads at once.

    Args:
        address: Where they are.
        tell: Told, in a sentence, when the store has to be waited for.

    Attributes:
        guard: Called before every try of a write that is not `free`; raises when we may no longer
            write. A try may come minutes after the first.
    """

    def __init__(self, address: Address, tell: Callable[[str], None] = lambda _text: None) -> None:
        self.address: Final = address
        self.traffic: Final = Traffic()
        self.tell = tell
        self.guard: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._down = False
        self._found = False

    @cached_property
    def _files(self) -> Any:
        """The file system of fsspec; imported only when an address is used."""
        told = ((name, os.environ[name]) for name in os.environ if name.startswith(clouds.SETTINGS))
        try:
            return clouds.files_of(self.address.scheme, os.getpid(), tuple(sorted(told)))
        except ImportError as error:
            library = error.name or LIBRARIES[self.address.scheme]
            raise SettingsError(
                f"{self.address} needs {library}, which is not installed. "
                f"Install it: pip install 'convergebench[{self.address.extra}]'"
            ) from error

    # -- single objects -----------------------------------------------------------------------

    def get(self, name: str) -> bytes:
        """An object's bytes. Raises FileNotFoundError."""
        data: bytes = self._tried(lambda: self._files.cat_file(self._full(name)))
        with self._lock:
            self.traffic.received += len(data)
        return data

    def put(self, name: str, data: bytes, *, free: bool = False, kind: str = "") -> None:
        """Write an object, in place of the one that is there.

        Args:
            name: Its name.
            data: Its bytes.
            free: Whether it may be written by who holds no lock.
            kind: Its media type, for what browsers are to read.
        """

        def write() -> None:
            if not free:
                self.guard()
            self._write(name, data, **clouds.how(self.address.scheme, data, kind))

        self._tried(write)
        with self._lock:
            self.traffic.sent += len(data)

    def put_once(self, name: str, data: bytes, *, free: bool = False) -> bool:
        """Write an object unless there is one of that name; whether it was written.

        The store itself sees to it, so of several that try at once one alone writes; where it does
        not know how to, the object is written in place of the one that is there. When an answer is
        lost on the way our own object is found at the second try: false although we wrote it.
        """

        def create() -> bool:
            if not free:
                self.guard()
            how = clouds.how(self.address.scheme, data)
            try:
                self._write(name, data, mode="create", **how)
            except FileExistsError:
                return False
            except OSError as error:
                code = code_of(error)
                if code in _EXISTS:
                    return False
                if code not in _UNKNOWN:
                    raise
                self._write(name, data, **how)
            return True

        written = self._tried(create)
        with self._lock:
            self.traffic.sent += len(data) if written else 0
        return written

    def _write(self, name: str, data: bytes, **how: Any) -> None:
        try:
            self._files.pipe_file(self._full(name), data, **how)
        except FileNotFoundError as error:  # what else could be missing
            raise self._refused("there is no such bucket") from error

    def look(self, name: str) -> Object:
        """Size and tag of an object. Raises FileNotFoundError."""
        return _object(self._tried(lambda: self._files.info(self._full(name), refresh=True)))

    def kind(self, name: str) -> str:
        """The media type of an object, empty where it cannot be told. Raises FileNotFoundError."""
        facts = self._tried(lambda: self._files.info(self._full(name), refresh=True))
        return clouds.kind_in(facts)

    def exists(self, name: str) -> bool:
        """Whether there is an object of that name."""
        try:
            self.look(name)
        except FileNotFoundError:
            return False
        return True

    # -- several ------------------------------------------------------------------------------

    def list(self, folder: str = "", *, deep: bool = True) -> dict[str, Object]:
        """The objects in a folder, by name; without `deep` not those of its folders."""
        full = self._full(folder)

        def look() -> dict[str, Any]:
            found = self._files.find(full, detail=True, maxdepth=None if deep else 1)
            return dict(found)

        try:
            told = self._tried(look)
        except FileNotFoundError:
            return {}
        start = self.address.root + "/"
        return {
            path.removeprefix(start): _object(facts)
            for path, facts in sorted(told.items())
            if facts.get("type") != "directory"
            and path.startswith(start)
            and (deep or "/" not in path.removeprefix(f"{full}/"))  # adlfs gives all
        }

    def shallow(self) -> tuple[dict[str, Object], set[str]]:
        """The objects that lie in no folder, and the names of the folders."""
        try:
            told = self._tried(lambda: self._files.ls(self.address.root, detail=True, refresh=True))
        except FileNotFoundError:
            return {}, set()
        start = self.address.root + "/"
        objects, folders = {}, set()
        for facts in told:
            name = facts["name"].rstrip("/").removeprefix(start)
            if not facts["name"].startswith(start):
                continue  # adlfs gives those of `run2` with those of `run`
            if facts.get("type") == "directory":
                folders.add(name)
            else:
                objects[name] = _object(facts)
        return objects, folders

    def is_exclusive(self) -> bool:
        """Whether this store keeps the promise of `put_once`; some that speak S3 do not."""
        name = f"locks/probe-{uuid.uuid4().hex}"
        self.put_once(name, b"1", free=True)  # nobody else has this name: now it is there
        kept = not self.put_once(name, b"2", free=True)
        self.delete([name], free=True)
        return kept

    def delete(self, names: Iterable[str], *, free: bool = False) -> None:
        """Delete objects; those that are not there do no harm."""

        def remove(full: str) -> None:
            if not free:
                self.guard()
            self._files.rm_file(full)

        for full in map(self._full, names):
            with contextlib.suppress(FileNotFoundError):
                self._tried(partial(remove, full))

    # -- patience -----------------------------------------------------------------------------

    def _full(self, name: str) -> str:
        return f"{self.address.root}/{name}" if name else self.address.root

    def _tried(self, do: Callable[[], T]) -> T:
        """Do something with the store, again and again while it cannot.

        Raises:
            FileNotFoundError: There is no such object.
            StoreError: It will not, or could not for as long as our patience lasts.
        """
        begun, down, patience = time.monotonic(), self._down, self._patience()
        count = 0
        while True:
            count += 1
            with self._lock:
                self.traffic.requests += 1
            try:
                done = do()
                self._answers()
                return done
            except FileNotFoundError as error:
                self._answers()
                if clouds.is_missing(error) or not self._is_there():
                    raise self._refused("there is no such bucket") from error
                raise
            except Exception as error:  # libraries of clouds raise what they like
                self._give_up_on(error)
                if not (code_of(error) or "0").isdecimal():
                    self._note_answer()  # by its own word: a bare 503 may be of any proxy
                wait = min(LONGEST_WAIT, 0.25 * 2.0**count) * random.uniform(0.5, 1.0)
                patience = self._patience()  # it may have answered another thread meanwhile
                if down or time.monotonic() + wait > begun + patience:
                    self._down = True
                    raise StoreError(
                        f"{self.address} does not answer ({self._why(error)}), "
                        f"{'1 try' if count == 1 else f'{count} tries'}. {self._advice()}"
                    ) from error
                with self._lock:
                    self.traffic.repeated += 1
                if count > 2:
                    self.tell(
                        f"{self.address} does not answer ({self._why(error)}); it is asked again "
                        f"{lasting(patience)}, next try in {wait:.0f} s"
                    )
                time.sleep(wait)

    def _has_answered(self) -> bool:
        """Whether it has answered this command, whichever of its processes and objects asked."""
        return self._bucket in os.environ.get(ANSWERED, "").split()

    def _answers(self) -> None:
        self._down = False
        self._note_answer()

    def _note_answer(self) -> None:
        with _NOTING:
            if not self._has_answered():
                os.environ[ANSWERED] = f"{os.environ.get(ANSWERED, '')} {self._bucket}".strip()

    def _patience(self) -> float:
        """Seconds for which it is asked again now."""
        told = _patience()
        return told if self._has_answered() else min(FIRST_PATIENCE, told)

    def _advice(self) -> str:
        """What to do when it does not answer."""
        back = "give the same command again when the store is back."
        if self._has_answered():
            return f"Whatever was received is kept on this machine: {back}"
        return f"It has not answered once: check the address and the endpoint, or {back}"

    @property
    def _bucket(self) -> str:
        return f"{self.address.scheme}://{self.address.root.partition('/')[0]}"

    def _why(self, error: BaseException) -> str:
        """An error in a few words, and who was asked where the environment says who."""
        server = clouds.server() if self.address.scheme == "s3" else ""
        return _words(error) + (f"; AWS_ENDPOINT_URL is {server}" if server else "")

    def _is_there(self) -> bool:
        """Whether there is the bucket; asked once, when something was not found in it."""
        if not self._found:
            bucket = self.address.root.partition("/")[0]
            self._found = clouds.is_there(self._files, self.address.scheme, bucket)
        return self._found

    def _give_up_on(self, error: Exception) -> None:
        """Raise StoreError for what no second try would change."""
        if isinstance(error, ConvergeBenchError):
            raise error
        if clouds.lacks_credentials(error, self.__dict__.get("_files")):
            places = clouds.CREDENTIALS[self.address.scheme]
            raise self._refused(
                "no credentials were found. Set them as the provider's own tools expect them "
                f"({places})"
            ) from error
        if clouds.is_missing(error):
            raise self._refused("there is no such bucket") from error
        if clouds.is_final(error):
            # What is only looked for is refused without a word of why.
            code = code_of(error)
            if self.address.scheme == "gs" and code == "400":
                raise self._refused("the store takes that for nonsense (400)") from error
            plain = not code or code.isdecimal() or clouds.is_forbidden(error)
            why = f"these credentials have no right there, or are wrong{code and f' ({code})'}"
            raise self._refused(why if plain else code) from error
        kinds = " ".join(type(each).__name__ for each in causes(error))
        if isinstance(error, TypeError | ValueError) or "ParamValidationError" in kinds:
            # Not its text, which may have what was asked in it.
            raise self._refused(
                f"the library will not ask for that ({kinds.split()[0]})"
            ) from error

    def _refused(self, why: str) -> StoreError:
        return StoreError(
            f"{self.address} cannot be used: {why}. Check the address and its rights."
        )


def _patience() -> float:
    told = os.environ.get(PATIENCE, "").strip()
    try:
        patience = float(told) if told else USUAL_PATIENCE
        if math.isnan(patience):  # it would never be at its end
            raise ValueError
        return patience
    except ValueError as error:
        raise SettingsError(f"{PATIENCE} is a number of seconds, got {told!r}") from error


def _words(error: BaseException) -> str:
    """An error in a few words, without what the library may have put into its text."""
    return scrub(code_of(error) or (getattr(error, "strerror", None) or type(error).__name__))


def _object(facts: Any) -> Object:
    tag = next((facts[k] for k in ("generation", "ETag", "etag", "md5Hash") if facts.get(k)), "")
    size = int(facts.get("size") or 0)
    tag = str(tag).strip('"') or f"{size}/{facts.get('LastModified')}"
    return Object(size, tag, clouds.md5_in(facts))
