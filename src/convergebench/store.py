"""The run directory: sole owner of paths, written by append or rename only.

    run.json              what this run is: suite, size, versions
    suite.json            the suite, so that scoring needs nothing else
    sessions.jsonl        one line when a process starts on it, one when it ends
    ledger.jsonl          what every paid call was to cost, and did cost
    frames/ab/abcd….png   received bytes under their SHA-256
    chains/ab/NAME.jsonl  a header, then one line per step
    scores/*.parquet      score rows

A killed process loses at most the calls in flight. `docs/files.md` describes every field.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import ValidationError

from convergebench.chain import Chain, ChainHeader, FrameRef, Step
from convergebench.cycle import Record
from convergebench.disk import (
    FULL,
    Reserve,
    Writing,
    hold_lock,
    make_directory,
    plain_errors,
    sync_directory,
)
from convergebench.errors import StoreDamaged, StoreError, StoreMismatch, explain
from convergebench.frame import EXTENSIONS, Frame, extension, sha256
from convergebench.repair import cut_torn_lines, drop_frameless, is_json
from convergebench.suite import Suite

if TYPE_CHECKING:
    import polars as pl

FORMAT: Final = 1
LEDGER: Final = "ledger.jsonl"
LIBRARIES: Final = ("convergebench", "numpy", "opencv-python-headless", "pillow", "polars", "scipy")

SCORE_COLUMNS: Final = {
    "chain": "String",
    "step": "Int32",
    "metric": "String",
    "version": "String",
    "against": "String",
    "where": "String",
    "value": "Float64",
    "note": "String",
}
"""Columns of `scores/*.parquet`, in order; the first six are the key."""


class RunInfo(Record):
    """`run.json`."""

    format: int = FORMAT
    suite: str
    fingerprint: str
    size: int
    created: str
    imported: bool = False


class RunStore:
    """A run directory. Open for reading unless inside `writing()`."""

    def __init__(self, path: Path, info: RunInfo, suite: Suite) -> None:
        self.path: Final = path
        self.info: Final = info
        self.suite: Final = suite
        self._reserve: Reserve | None = None

    @classmethod
    def create(cls, path: Path, suite: Suite, size: int, *, imported: bool = False) -> Self:
        """Make a new run directory. Raises StoreError when the place is taken.

        The suite of an `imported` run was made from what was imported, and grows with it.
        """
        if path.exists() and not _is_bare(path):
            raise StoreError(
                f"{path} exists and is not a run directory. Choose another path, or empty it."
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
            for shard in range(256):  # now, so that no step has to wait for a new directory
                (path / "frames" / f"{shard:02x}").mkdir(exist_ok=True)
            sync_directory(path / "frames")
            store = cls(path, info, suite)
            store._write_file("suite.json", suite.model_dump_json(indent=1).encode())
            # Last, because a directory with a run.json is a run directory.
            store._write_file("run.json", info.model_dump_json(indent=1).encode())
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an existing run directory. Raises StoreError, StoreDamaged."""
        path = Path(path)
        try:
            info = RunInfo.model_validate_json((path / "run.json").read_bytes())
            suite = Suite.model_validate_json((path / "suite.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreError(
                f"{path} is not a run directory (no {Path(error.filename).name}). "
                "Make one with: convergebench run DIRECTORY --editor …"
            ) from error
        except OSError as error:
            raise StoreError(f"cannot read {path} ({error.strerror})") from error
        except ValidationError as error:
            raise StoreDamaged(f"{path}: run.json or suite.json: {explain(error)}") from error
        if info.format != FORMAT:
            raise StoreError(f"{path} has format {info.format}, this version reads {FORMAT}")
        return cls(path, info, suite)

    def extended(self, suite: Suite) -> Self:
        """This run with the grown suite of an import, on the disk as well."""
        info = self.info.model_copy(update={"fingerprint": suite.content_hash()})
        store = type(self)(self.path, info, suite)
        if (info, suite) != (self.info, self.suite):
            with plain_errors(self.path):
                store._write_file("suite.json", suite.model_dump_json(indent=1).encode())
                store._write_file("run.json", info.model_dump_json(indent=1).encode())
        return store

    @classmethod
    def is_run(cls, path: Path) -> bool:
        """Whether a path is a run directory."""
        return (path / "run.json").is_file()

    def require(self, suite: Suite, size: int) -> None:
        """Raise StoreMismatch unless this run was made from that suite at that size."""
        for what, here, asked in (
            ("suite", self.info.suite, suite.label),
            ("content of the suite", self.info.fingerprint[:12], suite.content_hash()[:12]),
            ("source size", self.info.size, size),
        ):
            if here != asked:
                raise StoreMismatch(
                    f"{self.path} was made with {what} {here}, this command asks for {asked}. "
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
        with plain_errors(self.path), hold_lock(self.path / f"{what}.lock", what) as stale:
            notes = [stale] if stale else []
            if what == "run":
                notes += cut_torn_lines(self) + (drop_frameless(self) if stale else [])
                for left in (self.path / "frames" / ".new").iterdir():
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
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
        self._append(path, header.model_dump_json().encode())

    def append(self, chain: str, step: Step, frame: Frame | None = None) -> None:
        """Store a step and its frame: both are on the disk when this returns."""
        self._append(self.chain_path(chain), step.model_dump_json().encode(), frame)

    def log_session(self, event: str, **facts: Any) -> None:
        """Append to `sessions.jsonl`: who worked on this run, when, with which versions."""
        line = {"event": event, "at": _now(), **facts}
        if event == "start":
            line["versions"] = versions()
        self._append(self.path / "sessions.jsonl", json.dumps(line, sort_keys=True).encode())

    def append_ledger(self, line: bytes) -> None:
        """Append to `ledger.jsonl`. Not for two threads at once."""
        self._append(self.path / LEDGER, line)

    def add_scores(self, rows: pl.DataFrame) -> None:
        """Add score rows as one new file."""
        out = io.BytesIO()
        rows.select(list(SCORE_COLUMNS)).write_parquet(out)
        with plain_errors(self.path):
            self._write_file(f"scores/part-{time.time_ns():x}.parquet", out.getvalue())

    def merge_scores(self) -> None:
        """Put all score files into one; a kill in between leaves rows twice, which does no harm."""
        parts = sorted((self.path / "scores").glob("part-*.parquet"))
        if len(parts) > 1:
            self.add_scores(self.scores())
            for part in parts:
                part.unlink()

    def write_json(self, name: str, value: Any, *, indent: int | None = 1) -> Path:
        """Write one of the derived files (`findings.json`, `floors.json`) by rename.

        Large ones are written without indentation: with it, writing takes ten times as long.
        """
        text = json.dumps(value, indent=indent, sort_keys=True, allow_nan=False, ensure_ascii=False)
        with plain_errors(self.path):
            self._write_file(name, text.encode())
        return self.path / name

    def read_json(self, name: str) -> Any:
        """What `write_json` wrote under that name, or None. Raises StoreDamaged."""
        path = self.path / name
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreDamaged(f"{path} is not valid JSON: {error}") from error

    def _writing(self) -> Writing:
        return Writing(self.path / "frames" / ".new")

    def _write_file(self, name: str, data: bytes) -> None:
        with self._writing() as disk:
            disk.new_file(self.path / name, data)

    def _place(self, disk: Writing, frame: Frame) -> None:
        path = self._frame_path(frame.digest, extension(frame.data))
        # What is there may be torn: a power cut came before it was flushed.
        if not (path.exists() and sha256(path.read_bytes()) == frame.digest):
            disk.new_file(path, frame.data)

    def _append(self, path: Path, line: bytes, frame: Frame | None = None) -> None:
        def write() -> None:
            with self._writing() as disk:
                if frame is not None:
                    self._place(disk, frame)
                disk.append(path, line)

        self._saving(write)

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

    # -- reading ------------------------------------------------------------------------------

    def frame(self, ref: FrameRef) -> Frame:
        """Read a stored frame. Raises StoreDamaged when it is not there."""
        path = self.frame_path(ref)
        try:
            return Frame(path.read_bytes(), digest=ref.sha256)
        except OSError as error:
            raise StoreDamaged(
                f"frame {path} cannot be read ({error.strerror}). "
                f"`convergebench verify {self.path}` lists what is missing."
            ) from error

    def frame_path(self, ref: FrameRef) -> Path:
        """Where a frame's bytes are."""
        return self._frame_path(ref.sha256, EXTENSIONS.get(ref.format, ".bin"))

    def chain_path(self, chain: str) -> Path:
        """Where a chain's records are."""
        return self.path / "chains" / chain.rpartition("--")[2][:2] / f"{chain}.jsonl"

    def chains(self) -> list[Chain]:
        """All chains, sorted by id; not one whose header a kill cut off. Raises StoreDamaged."""
        files = [path for path in self.chain_files() if b"\n" in path.read_bytes()]
        return [self.read_chain(path)[0] for path in sorted(files)]

    def chain_files(self) -> list[Path]:
        """The chains' files."""
        return [p for p in (self.path / "chains").glob("*/*.jsonl") if p.stat().st_size]

    def read_chain(self, path: Path) -> tuple[Chain, bytes]:
        """A chain from its file, and what is torn off at its end (empty when nothing is)."""
        lines = path.read_bytes().split(b"\n")
        torn = lines.pop()
        if lines and not is_json(lines[-1]):
            torn = lines.pop() + b"\n" + torn
        header, steps = None, []
        for number, line in enumerate(lines, 1):
            try:
                if header is None:
                    header = ChainHeader.model_validate_json(line)
                else:
                    steps.append(Step.model_validate_json(line))
            except ValidationError as error:
                raise StoreDamaged(f"{path}, line {number}: {explain(error)}") from error
        if header is None:
            raise StoreDamaged(f"{path} has no header line")
        return Chain(
            header.chain, header.source, header.truth, header.editor_version, tuple(steps)
        ), torn

    def scores(self) -> pl.DataFrame:
        """All score rows; of rows with equal keys the newest."""
        import polars as pl

        schema = {name: getattr(pl, kind)() for name, kind in SCORE_COLUMNS.items()}
        parts = sorted((self.path / "scores").glob("part-*.parquet"))
        if not parts:
            return pl.DataFrame(schema=schema)
        rows = pl.concat([pl.read_parquet(part) for part in parts])
        key = list(SCORE_COLUMNS)[:6]
        return rows.unique(key, keep="last", maintain_order=True)

    def _frame_path(self, digest: str, ending: str) -> Path:
        return self.path / "frames" / digest[:2] / (digest + ending)


def _is_bare(path: Path) -> bool:
    """Whether a directory is empty, or all that a killed `create` left in it."""
    if not path.is_dir():
        return False
    left = [p.relative_to(path).parts for p in path.rglob("*") if not p.is_dir()]
    within = all(p.name in ("frames", "chains", "scores", "suite.json") for p in path.iterdir())
    return within and all(p == ("suite.json",) or p[:2] == ("frames", ".new") for p in left)


def versions() -> dict[str, str]:
    """Versions of all that can move a number: Python, platform and libraries."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def rows_frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Score rows as a table with the right columns and types."""
    import polars as pl

    schema = {name: getattr(pl, kind)() for name, kind in SCORE_COLUMNS.items()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
