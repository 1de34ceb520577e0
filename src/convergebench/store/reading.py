"""Reading a run: its chains, frames and scores, from a directory or a working copy."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from convergebench.chain import Chain, FrameRef
from convergebench.cycle import Record
from convergebench.disk import Holder, lock_holder
from convergebench.errors import StoreDamaged
from convergebench.frame import EXTENSIONS, Frame
from convergebench.lines import chain_of
from convergebench.remote.address import Place
from convergebench.remote.copy import WorkingCopy
from convergebench.scoretable import read_parts
from convergebench.suite import Suite

if TYPE_CHECKING:
    import polars as pl

FORMAT: Final = 1


class RunInfo(Record):
    """`run.json`."""

    format: int = FORMAT
    suite: str
    fingerprint: str
    size: int
    created: str
    imported: bool = False


class RunReader:
    """A run, as it can be read.

    Attributes:
        path: The directory on this machine: the run itself, or the working copy of an address.
        place: Where the run is, for people and for `open`: the path as given, or the address.
        name: The run's name: the last part of that.
    """

    def __init__(
        self, path: Path, info: RunInfo, suite: Suite, copy: WorkingCopy | None = None
    ) -> None:
        self.path: Final = path
        self.info: Final = info
        self.suite: Final = suite
        address = copy.bucket.address if copy else None
        self.place: Final[Place] = address or path
        self.name: Final = address.name if address else path.resolve().name
        self._copy = copy

    @property
    def anywhere(self) -> str:
        """The place as a worker elsewhere is told it: an absolute path, or the address."""
        return str(self.place.resolve() if isinstance(self.place, Path) else self.place)

    def refresh(self) -> None:
        """Bring the records of an address up to date; a directory always is."""
        if self._copy:
            self._copy.refresh()

    def unstored_records(self) -> list[str]:
        """The records of an address that were on this machine alone when it was refreshed."""
        return self._copy.unstored() if self._copy else []

    @property
    def is_remote(self) -> bool:
        """Whether the run is on object storage."""
        return self._copy is not None

    def holder(self, what: str) -> Holder | None:
        """Who holds the run for `run` or `score`, or did not let go of it."""
        here = lock_holder(self.path / f"{what}.lock")
        if self._copy and not (here and here.alive):
            # What a killed process left here says nothing about other machines.
            return self._copy.holder(what) or here
        return here

    def read_json(self, name: str) -> Any:
        """What `write_json` wrote under that name, or None. Raises StoreDamaged."""
        path = self.path / name
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreDamaged(f"{path} is not valid JSON: {error}") from error

    def frame(self, ref: FrameRef) -> Frame:
        """Read a stored frame. Raises StoreDamaged when it is not there."""
        name = self.frame_name(ref)
        try:
            data = self._copy.frame(name) if self._copy else (self.path / name).read_bytes()
        except OSError as error:
            raise StoreDamaged(
                f"frame {name} of {self.place} cannot be read ({error.strerror or 'missing'}). "
                f"`convergebench verify {self.place}` lists what is missing."
            ) from error
        return Frame(data, digest=ref.sha256)

    def frame_path(self, ref: FrameRef) -> Path:
        """A file with a frame's bytes; on an address it is fetched. It may not be there."""
        name = self.frame_name(ref)
        if self._copy:
            with contextlib.suppress(FileNotFoundError):
                return self._copy.frame_file(name)
        return self.path / name

    def frame_name(self, ref: FrameRef) -> str:
        """The name of a frame's file in the run."""
        return f"frames/{ref.sha256[:2]}/{ref.sha256}{EXTENSIONS.get(ref.format, '.bin')}"

    def frame_names(self) -> set[str]:
        """The names of all frames that are there. Lists every one: for `verify` and copies."""
        if self._copy:
            return set(self._copy.bucket.list("frames"))
        found = (self.path / "frames").glob("[0-9a-f][0-9a-f]/*")
        return {path.relative_to(self.path).as_posix() for path in found if path.is_file()}

    def frame_bytes(self, name: str) -> bytes:
        """The bytes under a frame's name as they are stored now, from no cache."""
        return self._copy.bucket.get(name) if self._copy else (self.path / name).read_bytes()

    def chain_path(self, chain: str) -> Path:
        """Where a chain's records are."""
        return self.path / "chains" / chain.rpartition("--")[2][:2] / f"{chain}.jsonl"

    def chains(self) -> list[Chain]:
        """All chains, sorted by id; not one whose header a kill cut off. Raises StoreDamaged."""
        read = ((path, path.read_bytes()) for path in sorted(self.chain_files()))
        with uncollected():
            return [chain_of(path, lines)[0] for path, lines in read if b"\n" in lines]

    def chain(self, chain: str) -> Chain:
        """A chain as it is in the store now. Raises StoreDamaged."""
        path = self.chain_path(chain)
        name = path.relative_to(self.path).as_posix()
        try:
            return chain_of(path, self._copy.log(name) if self._copy else path.read_bytes())[0]
        except FileNotFoundError as error:
            raise StoreDamaged(f"{name} is not in {self.place}") from error

    def chain_files(self) -> list[Path]:
        """The chains' files."""
        return [p for p in (self.path / "chains").glob("*/*.jsonl") if p.stat().st_size]

    def read_chain(self, path: Path) -> tuple[Chain, bytes]:
        """A chain from its file, and what is torn off at its end (empty when nothing is)."""
        return chain_of(path, path.read_bytes())

    def scores(self) -> pl.DataFrame:
        """All score rows; of rows with equal keys the newest."""
        return read_parts(self.path / "scores")


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of cycles while in the block.

    It looks at every record read so far again and again, and reading or comparing many would take
    half as long again a record as few. Records have no cycles.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
