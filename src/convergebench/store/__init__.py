"""The run directory: sole owner of paths, written by append or rename only.

    run.json              what this run is: suite, size, versions
    suite.json            the suite, so that scoring needs nothing else
    sessions.jsonl        one line when a process starts on it, one when it ends
    ledger.jsonl          what every paid call was to cost, and did cost
    frames/ab/abcd….png   received bytes under their SHA-256
    chains/ab/NAME.jsonl  a header, then one line per step
    scores/*.parquet      score rows

A killed process loses at most the calls in flight. `docs/files.md` describes every field.

A run may also be an address on object storage; then the directory is its working copy here, and
what is written is stored there as well before any method returns (`convergebench.remote`).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import ValidationError

from convergebench.chain import Chain, ChainHeader, Step
from convergebench.disk import (
    FULL,
    Reserve,
    Writing,
    hold_lock,
    make_directory,
    plain_errors,
    replace_file,
    sync_directory,
)
from convergebench.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreMismatch,
    explain,
)
from convergebench.frame import Frame, extension, sha256
from convergebench.machine import versions
from convergebench.remote.address import address_of
from convergebench.remote.copy import CACHE, WorkingCopy
from convergebench.repair import cut_torn_lines, drop_frameless, sweep
from convergebench.scoretable import as_parquet, next_part, parts_in
from convergebench.store.reading import FORMAT, RunInfo, RunReader
from convergebench.suite import Suite

if TYPE_CHECKING:
    import polars as pl


LEDGER: Final = "ledger.jsonl"
COPYING: Final = ".copy-of"
ANSWERS: Final = "judgements/answers.jsonl"
"""What judges answered, which was paid for."""


class RunStore(RunReader):
    """A run directory. Open for reading unless inside `writing()`."""

    def __init__(
        self, path: Path, info: RunInfo, suite: Suite, copy: WorkingCopy | None = None
    ) -> None:
        super().__init__(path, info, suite, copy)
        self._reserve: Reserve | None = None

    @classmethod
    def create(
        cls, place: str | os.PathLike[str], suite: Suite, size: int, *, imported: bool = False
    ) -> Self:
        """Make a new run directory. Raises StoreError when the place is taken.

        The suite of an `imported` run was made from what was imported, and grows with it.
        """
        address = address_of(place)
        copy = WorkingCopy(address) if address else None
        path = copy.path if copy else Path(place)
        if copy:
            _prepare(copy, new=True)
        taken = copy.is_taken() if copy else path.exists() and not _is_bare(path)
        if taken:
            raise StoreError(
                f"{address or path} exists and is not a run directory. Choose another path, or "
                "empty it."
            )
        info = RunInfo(
            suite=suite.label,
            fingerprint=suite.content_hash(),
            size=size,
            created=_now(),
            imported=imported,
        )
        with plain_errors(path):
            for part in ("frames/.new", "chains", "scores"):
                make_directory(path / part)
            _make_shards(path / "frames")
        store = cls(path, info, suite, copy)
        store.write_file("suite.json", suite.model_dump_json(indent=1).encode())
        # Last, because a directory with a run.json is a run directory. On an address it is made
        # there first: a copy that has one is not a copy of what is not there.
        told = info.model_dump_json(indent=1).encode()
        if copy and not copy.create_file("run.json", told):
            raise StoreBusy(
                f"{address} was made by another process just now. Run the same command again."
            )
        store._write_here("run.json", told)
        return store

    @classmethod
    def open(cls, place: str | os.PathLike[str], *, refresh: bool = True) -> Self:
        """Open an existing run, given as a path or an address.

        Args:
            place: Where it is.
            refresh: Whether to bring all records of an address up to date. Workers, who read single
                chains and frames, need not.

        Raises:
            StoreError: It is no run, or cannot be reached.
            StoreDamaged: Its records cannot be read.
        """
        address = address_of(place)
        copy = WorkingCopy(address) if address else None
        path = copy.path if copy else Path(place)
        shown = address or path
        if copy:
            _prepare(copy)
        try:
            if copy:
                copy.bring_heads()
                if refresh:
                    copy.refresh()
            info = RunInfo.model_validate_json((path / "run.json").read_bytes())
            suite = Suite.model_validate_json((path / "suite.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError) as error:
            remedy = f"Make one with: convergebench run {shown} --editor …"
            if (path / COPYING).exists():
                remedy = "It is a copy that is not finished: give its convergebench copy again."
            lacks = Path(error.filename or "run.json").name
            raise StoreError(f"{shown} is not a run directory (no {lacks}). {remedy}") from error
        except OSError as error:
            raise StoreError(f"cannot read {shown} ({error.strerror})") from error
        except ValidationError as error:
            raise StoreDamaged(f"{shown}: run.json or suite.json: {explain(error)}") from error
        if info.format != FORMAT:
            raise StoreError(f"{shown} has format {info.format}, this version reads {FORMAT}")
        return cls(path, info, suite, copy)

    def extended(self, suite: Suite) -> Self:
        """This run with the grown suite of an import, on the disk as well."""
        info = self.info.model_copy(update={"fingerprint": suite.content_hash()})
        store = type(self)(self.path, info, suite, self._copy)
        if (info, suite) != (self.info, self.suite):
            store.write_file("suite.json", suite.model_dump_json(indent=1).encode())
            store.write_file("run.json", info.model_dump_json(indent=1).encode())
        return store

    @classmethod
    def is_run(cls, place: str | os.PathLike[str]) -> bool:
        """Whether a path or an address is a run."""
        address = address_of(place)
        if address is not None:
            return WorkingCopy(address).bucket.exists("run.json")
        return (Path(place) / "run.json").is_file()

    def require(self, suite: Suite, size: int) -> None:
        """Raise StoreMismatch unless this run was made from that suite at that size."""
        for what, here, asked in (
            ("suite", self.info.suite, suite.label),
            ("content of the suite", self.info.fingerprint[:12], suite.content_hash()[:12]),
            ("source size", self.info.size, size),
        ):
            if here != asked:
                raise StoreMismatch(
                    f"{self.place} was made with {what} {here}, this command asks for {asked}. "
                    "Use another directory; numbers of the two cannot be mixed."
                )

    # -- writing ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, what: str, *, reserve: int = 0) -> Iterator[list[str]]:
        """Hold the directory for `run` or `score`. Yields notes on what was repaired on the way.

        Raises:
            StoreBusy: Another process holds it for the same purpose.
            StoreFull: The reserve cannot be had.
        """
        with contextlib.ExitStack() as held:
            held.enter_context(plain_errors(self.path))
            try:
                stale = held.enter_context(hold_lock(self.path / f"{what}.lock", what))
            except StoreBusy as error:  # nobody knows the copy's folder
                told = str(error).replace(str(self.path), str(self.place))
                raise StoreBusy(told) from error
            notes = [stale] if stale else []
            if what == "run":
                notes += cut_torn_lines(self)
            if self._copy:
                notes = held.enter_context(self._copy.writing(what)) + notes[bool(stale) :]
            elif what == "run" and stale:
                notes += drop_frameless(self)
            if what == "run":
                _make_shards(self.path / "frames")  # a copy on another machine has none yet
                sweep(self.path / "frames" / ".new")
            if reserve:
                self._reserve = Reserve(self.path / "reserve", reserve)
                self._reserve.hold()
            try:
                yield notes
            finally:
                if self._reserve:
                    self._reserve.release()
                self._reserve = None

    @property
    def full(self) -> bool:
        """Whether the reserve had to be given up: nothing new should be started."""
        return self._reserve is not None and self._reserve.spent

    def put(self, frame: Frame) -> None:
        """Store a frame's bytes durably, once."""

        def write() -> None:
            with self._writing() as disk:
                self._place(disk, frame)

        self._saving(write)
        if self._copy:
            self._copy.store_frame(self._frame_name(frame))

    def start(self, chain: Chain) -> None:
        """Write a new chain's header, its source and its truth being stored already."""
        header = ChainHeader(
            chain=chain.key,
            editor_version=chain.editor_version,
            source=chain.source,
            truth=chain.truth,
        )
        path = self.chain_path(chain.key.id)
        make_directory(path.parent)
        self._record(path, header.model_dump_json().encode())

    def append(self, chain: str, step: Step, frame: Frame | None = None) -> None:
        """Store a step and its frame: both are on the disk when this returns."""
        self._record(self.chain_path(chain), step.model_dump_json().encode(), frame)

    def log_session(self, event: str, **facts: Any) -> None:
        """Append to `sessions.jsonl`: who worked on this run, when, with which versions."""
        line = {"event": event, "at": _now(), **facts}
        if event == "start":
            line["versions"] = versions()
        self._record(self.path / "sessions.jsonl", json.dumps(line, sort_keys=True).encode())

    def append_ledger(self, line: bytes, *, store: bool = True) -> None:
        """Append to `ledger.jsonl`. Not for two threads at once.

        Args:
            line: What to append; it is on this machine's disk when this returns.
            store: Whether it is to be on object storage as well then; `stored` stores it later.
        """
        self._append(self.path / LEDGER, line)
        if store:
            self.stored(LEDGER)

    def add_scores(self, rows: pl.DataFrame) -> None:
        """Add score rows as one new file."""
        self.write_file(f"scores/{next_part(self.path / 'scores')}", as_parquet(rows))

    def merge_scores(self) -> None:
        """Put all score files into one; a kill in between leaves rows twice, which does no harm."""
        parts = parts_in(self.path / "scores")
        if len(parts) > 1:
            self.add_scores(self.scores())
            for part in parts:
                part.unlink()
            if self._copy:
                self._copy.delete_files([f"scores/{part.name}" for part in parts])

    def write_json(self, name: str, value: Any, *, indent: int | None = 1) -> Path:
        """Write one of the derived files (`findings.json`, `floors.json`) by rename.

        Large ones are written without indentation: with it, writing takes ten times as long.
        """
        text = json.dumps(value, indent=indent, sort_keys=True, allow_nan=False, ensure_ascii=False)
        self.write_file(name, text.encode())
        return self.path / name

    def write_file(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Write a whole file of the run by rename; not flushed where it can be made again."""
        self._write_here(name, data, durable=durable)
        if self._copy:
            self._copy.store_file(name, data)

    def _write_here(self, name: str, data: bytes, *, durable: bool = True) -> None:
        path = self.path / name
        with plain_errors(self.path):
            make_directory(path.parent)
            if durable:
                with self._writing() as disk:
                    disk.new_file(path, data)
            else:
                replace_file(path, data)

    def stored(self, name: str) -> None:
        """Store what was appended here to a file of lines; on an address only."""
        if self._copy:
            self._copy.store_log(name)

    def _writing(self) -> Writing:
        return Writing(self.path / "frames" / ".new")

    def _place(self, disk: Writing, frame: Frame) -> None:
        path = self.path / self._frame_name(frame)
        try:
            # What is there may be torn: a power cut came before it was flushed.
            whole = sha256(path.read_bytes()) == frame.digest
        except FileNotFoundError:  # or another thread has just moved it to the cache
            whole = False
        if not whole:
            disk.new_file(path, frame.data)

    def _append(self, path: Path, line: bytes, frame: Frame | None = None) -> None:
        """Append on this machine's disk."""

        def write() -> None:
            with self._writing() as disk:
                if frame is not None:
                    self._place(disk, frame)
                disk.append(path, line)

        self._saving(write)

    def _record(self, path: Path, line: bytes, frame: Frame | None = None) -> None:
        """Append here, then on object storage."""
        self._append(path, line, frame)
        if self._copy and frame is not None:  # first: a stored record always has its frame
            self._copy.store_frame(self._frame_name(frame))
        self.stored(path.relative_to(self.path).as_posix())

    def _saving(self, write: Callable[[], None]) -> None:
        reserve = self._reserve
        held = reserve is not None and not reserve.spent
        try:
            write()
        except OSError as error:
            # Give up the reserve: replies in flight were paid for and must still be saved. Several
            # writes may fail before the first of them has given it up.
            if error.errno not in FULL or reserve is None or not held:
                raise
            reserve.give_up()
            write()

    @staticmethod
    def _frame_name(frame: Frame) -> str:
        return f"frames/{frame.digest[:2]}/{frame.digest}{extension(frame.data)}"


def _make_shards(frames: Path) -> None:
    """Make the folders of frames now, so that no step has to wait for a new directory."""
    if not (frames / "ff").is_dir():  # the last one
        for shard in range(256):
            (frames / f"{shard:02x}").mkdir(exist_ok=True)
        sync_directory(frames)


def _prepare(copy: WorkingCopy, *, new: bool = False) -> None:
    """Make a working copy's folders. Raises StoreError, with the way to another place for them."""
    try:
        copy.prepare(new=new)
    except OSError as error:
        kind = StoreFull if error.errno in FULL else StoreError
        raise kind(
            f"no working copy of {copy.bucket.address} can be kept in {copy.path.parent} "
            f"({error.strerror or error}). Name another folder with {CACHE}."
        ) from error


def _is_bare(path: Path) -> bool:
    """Whether a directory is empty, or all that a killed `create` left in it."""
    if not path.is_dir():
        return False
    left = [p.relative_to(path).parts for p in path.rglob("*") if not p.is_dir()]
    within = all(p.name in ("frames", "chains", "scores", "suite.json") for p in path.iterdir())
    return within and all(p == ("suite.json",) or p[:2] == ("frames", ".new") for p in left)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
