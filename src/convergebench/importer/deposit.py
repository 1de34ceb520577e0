"""Putting imported pictures and records into a run directory, many at a time.

What is imported still exists elsewhere, so nothing need be flushed file by file as in a run that
pays for every frame: all is written, frames before records, and the file system is flushed once at
the end. After a kill or a power cut before that the same import goes on, and mends what is torn.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from convergebench.chain import Chain, ChainHeader, FrameRef, Step
from convergebench.disk import plain_errors
from convergebench.errors import MalformedImage
from convergebench.frame import EXTENSIONS, Frame
from convergebench.importer.found import Place
from convergebench.repair import sweep
from convergebench.store import RunStore

SMALL: Final = 2**18
"""Smaller files are brought in one after the other: threads would wait for each other longer than
for the disk. Of larger ones each thread holds the bytes of one."""

TELL_EVERY: Final = 64
"""Pictures between two calls of an observer."""


@dataclass(frozen=True)
class Brought:
    """A picture that is in the store now; `problem` says why it does not decode, if it does not."""

    ref: FrameRef
    problem: str = ""


class Deposit:
    """Writes to one run directory, which must be held by the caller; or only looks at pictures."""

    def __init__(self, store: RunStore, *, writing: bool = True) -> None:
        self._store = store
        self._writing = writing
        self._frames = os.fspath(store.path / "frames")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._placed: list[str] = []
        self.bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._writing:
            return
        sweep(self._store.path / "frames" / ".new")

    @property
    def placed(self) -> int:
        """How many frames were not there before."""
        return len(self._placed)

    def frames(
        self, places: Iterable[Place], observe: Callable[[int, int], None] | None = None
    ) -> dict[Place, Brought]:
        """Store the bytes of every place, once. Raises ImportProblem, StoreError."""
        wanted = list(dict.fromkeys(places))
        found: dict[Place, Brought] = {}
        later: dict[Place, Future[Brought]] = {}
        done = itertools.count(1)

        def tell(_: object = None) -> None:
            count = next(done)
            if observe and (count % TELL_EVERY == 0 or count == len(wanted)):
                observe(count, len(wanted))

        with plain_errors(self._store.path), ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                for place in wanted:
                    if place.size < SMALL:
                        found[place] = self._bring(place)
                        tell()
                    else:
                        later[place] = pool.submit(self._bring, place)
                        later[place].add_done_callback(tell)
                found |= {place: future.result() for place, future in later.items()}
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return found

    def add(self, frames: Iterable[Frame]) -> None:
        """Store frames that are in memory."""
        with plain_errors(self._store.path):
            for frame in frames:
                self._write(frame, FrameRef.of(frame))

    def take_back(self) -> None:
        """Remove the frames that were not there before: the import is refused."""
        for path in self._placed:
            Path(path).unlink(missing_ok=True)
        self._placed.clear()

    def _bring(self, place: Place) -> Brought:
        frame = Frame(place.read())
        try:
            brought = Brought(FrameRef.of(frame))
        except MalformedImage as error:
            brought = Brought(FrameRef.of_malformed(frame), str(error))
        if self._writing:
            self._write(frame, brought.ref)
        return brought

    def _write(self, frame: Frame, ref: FrameRef) -> None:
        digest, ending = ref.sha256, EXTENSIONS.get(ref.format, ".bin")
        path = f"{self._frames}/{digest[:2]}/{digest}{ending}"
        # What is there may be torn: a power cut came before it was flushed.
        if os.path.exists(path) and Path(path).read_bytes() == frame.data:
            return
        temporary = self._temporary()
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            view = memoryview(frame.data)
            while view:
                view = view[os.write(file, view) :]
        finally:
            os.close(file)
        with self._lock:  # the kernel lets one rename at a time through, and burns time waiting
            os.rename(temporary, path)
            self._placed.append(path)
            self.bytes += len(frame.data)

    def _temporary(self) -> str:
        """A scratch file of this thread, in a folder of its own: one folder for all is a queue."""
        if not hasattr(self._own, "scratch"):
            self._own.scratch = f"{self._frames}/.new/import-{threading.get_ident()}"
            os.makedirs(self._own.scratch, exist_ok=True)
            self._own.count = itertools.count()
        return f"{self._own.scratch}/{next(self._own.count)}"

    def chains(self, records: Mapping[str, tuple[Chain, Sequence[Step]]]) -> None:
        """Write new chains whole, and append to those that are there.

        A chain is written anew when it is new, or when its header was written before its source
        was known.

        Args:
            records: By chain id the chain as it will be, and the steps to add to what is stored.
        """
        with plain_errors(self._store.path):
            for name, (chain, steps) in records.items():
                path = self._store.chain_path(name)
                path.parent.mkdir(exist_ok=True)
                known = self._store.read_chain(path)[0] if path.exists() else None
                if known is not None and (known.source, known.truth) == (chain.source, chain.truth):
                    with open(path, "ab") as file:
                        file.write(_lines(steps))
                    continue
                header = ChainHeader(
                    chain=chain.key,
                    editor_version=chain.editor_version,
                    source=chain.source,
                    truth=chain.truth,
                )
                before = known.steps if known else ()
                data = header.model_dump_json().encode() + b"\n" + _lines((*before, *steps))
                self._replace(path, data)
            os.sync()

    def file(self, name: str, lines: Iterable[str]) -> Path:
        """Write a file of lines into the run directory, by rename."""
        path = self._store.path / name
        with plain_errors(self._store.path):
            path.parent.mkdir(exist_ok=True)
            self._replace(path, "".join(f"{line}\n" for line in lines).encode())
        return path

    def _replace(self, path: Path, data: bytes) -> None:
        temporary = Path(self._temporary())
        temporary.write_bytes(data)
        os.replace(temporary, path)


def _lines(steps: Iterable[Any]) -> bytes:
    return b"".join(step.model_dump_json().encode() + b"\n" for step in steps)
