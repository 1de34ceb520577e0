"""Suites: sources × cycles, as data.

A *source* is an image with its checksum and licence; a *suite* is a versioned set of sources and
cycles, written in TOML. Its files lie beside it, or in the data folders that `suites prepare`
fills; where only some of them are, it is run as a named subset.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from convergebench import degrading, drawing
from convergebench.cycle import Box, Cycle, Edit, Name, Record, without_empty
from convergebench.errors import (
    ConvergeBenchError,
    MalformedImage,
    SuiteError,
    UnknownName,
    explain,
)
from convergebench.folders import data_folders
from convergebench.frame import Frame, sha256
from convergebench.prompts import PromptSet, load_prompts
from convergebench.source import Source
from convergebench.wording import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Suite(Record):
    """A versioned set of sources and cycles.

    A suite that lacks files is run as a *subset*, which says how many sources it has of how many,
    and a hash of their names; `whole` is then the content hash of the complete suite. `opened_as`
    is what the user calls it.
    """

    name: Name
    version: Annotated[int, Field(ge=1)]
    description: str = ""
    size: Annotated[int, Field(ge=16, le=8192)] = 512
    fingerprint: str | None = None
    source: Annotated[tuple[Source, ...], Field(min_length=1)]
    cycle: Annotated[tuple[Cycle, ...], Field(min_length=1)]
    subset: Annotated[str, Field(pattern=r"^\d+ of \d+ sources \([0-9a-f]{8}\)$")] | None = None
    whole: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    root: Annotated[Path | None, Field(exclude=True)] = None
    opened_as: Annotated[str | None, Field(exclude=True)] = None

    @model_serializer(mode="wrap")
    def _without_the_newer(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(dump(self), "subset", "whole")

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if (self.subset is None) != (self.whole is None):
            raise ValueError("a subset has both 'subset' and 'whole'; a whole suite has neither")
        for what, names in (
            ("source", [s.name for s in self.source]),
            ("cycle", [c.name for c in self.cycle]),
        ):
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            if twice:
                raise ValueError(f"{what} {twice[0]!r} is defined twice")
        known = {s.name for s in self.source}
        for cycle in self.cycle:
            for name in cycle.sources or ():
                if name not in known and not self.subset:
                    raise ValueError(
                        f"cycle {cycle.name!r} names source {name!r}, which is not there"
                    )
            if not any(self.applies(cycle, s) for s in self.source):
                regions = sorted({e.region for e in cycle.edit if isinstance(e.region, str)})
                lack = f"none has the regions {regions}" if regions else "none has a truth"
                raise ValueError(f"cycle {cycle.name!r} fits no source: {lack}")
        return self

    @property
    def label(self) -> str:
        """Name and version, as shown everywhere."""
        return f"{self.name}@{self.version}"

    @property
    def full_label(self) -> str:
        """Name and version, and which subset of it this is."""
        return f"{self.label}, {self.subset}" if self.subset else self.label

    @property
    def preparing(self) -> str:
        """The command that brings the files which are not here."""
        return f"convergebench suites prepare {self.opened_as or self.name}"

    def content_hash(self) -> str:
        """Hash of all that can move a number; version, seal and folder aside."""
        content = self.model_dump(mode="json", exclude={"version", "fingerprint", "root"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def whole_hash(self) -> str:
        """Content hash of the complete suite, of which this may be a subset."""
        return self.whole or self.content_hash()

    @property
    def intact(self) -> bool:
        """Whether it is what was sealed, or was never sealed."""
        return self.fingerprint in (None, self.whole_hash())

    def source_named(self, name: str) -> Source:
        """The source of that name. Raises UnknownName."""
        return _pick("source", name, self.source, lambda: f"Suite: {self.full_label}.")

    def cycle_named(self, name: str) -> Cycle:
        """The cycle of that name. Raises UnknownName."""
        return _pick("cycle", name, self.cycle, lambda: f"Suite: {self.full_label}.")

    def cycle_of(self, label: str) -> Cycle:
        """The cycle of a `name@version` label, as chain keys have it."""
        return self.cycle_named(label.partition("@")[0])

    @staticmethod
    def applies(cycle: Cycle, source: Source) -> bool:
        """Whether a cycle makes sense for a source: not excluded, and its regions are known."""
        if cycle.sources is not None and source.name not in cycle.sources:
            return False
        if cycle.kind == "restore" and source.draw is not None and not source.degrade:
            return False
        named = [e.region for e in cycle.edit if isinstance(e.region, str)]
        return all(region in source.regions for region in named)

    def frame(self, source: Source, size: int | None = None) -> Frame:
        """The source image. Raises SuiteError when its file is missing or altered."""
        if source.elsewhere is not None:
            raise SuiteError(
                f"source {source.name!r}: its picture is not here ({source.elsewhere}). Import it, "
                "or choose other sources."
            )
        if source.draw is not None:
            pixels = _drawn(source.draw, *source.drawn_size(size or self.size))
            for damage in source.degrade or ():
                if damage.engine != degrading.VERSION:
                    raise SuiteError(
                        f"source {source.name!r} was damaged by version {damage.engine} of the "
                        f"engine, this is {degrading.VERSION}. Use the ConvergeBench it was made "
                        "with, or begin a new run."
                    )
                pixels = degrading.degrade(pixels, damage.kind, damage.severity, damage.seed)
            return Frame.of_pixels(pixels)
        return self._file(source.name, source.file or "", source.sha256 or "")

    def truth(self, source: Source, size: int | None = None) -> Frame | None:
        """The ground truth of a degraded source, where there is one."""
        if not source.has_truth:
            return None
        if source.draw is not None:
            side = size or self.size
            return Frame.of_pixels(_drawn(source.draw, *source.drawn_size(side)))
        return self._file(source.name, source.truth or "", source.truth_sha256 or "")

    def missing(self) -> tuple[Source, ...]:
        """The sources that have an address and lack a file here; contents are not looked at.

        One without an address cannot be brought: to lack it is a fault of the suite, told when
        the picture is asked for.
        """
        return tuple(
            source
            for source in self.source
            if (source.address or source.truth_address)
            and any(not self._here(file) for file, *_ in source.files)
        )

    def available(self) -> Suite:
        """This suite, without the sources that are missing here and the cycles that need them.

        Raises:
            SuiteError: Nothing is left.
        """
        gone = {source.name for source in self.missing()}
        if not gone:
            return self
        kept = tuple(source for source in self.source if source.name not in gone)
        cycles = tuple(c for c in self.cycle if any(self.applies(c, source) for source in kept))
        if not cycles:
            none = "no cycle fits what is here" if kept else "none of them is here"
            raise SuiteError(
                f"suite {self.label} has {counted(len(self.source), 'source')}, and {none}. "
                f"`{self.preparing}` brings them."
            )
        names = "\n".join(sorted(source.name for source in kept))
        total = int(self.subset.split()[2]) if self.subset else len(self.source)
        told = f"{len(kept)} of {total} sources ({sha256(names.encode())[:8]})"
        changes = {"source": kept, "cycle": cycles, "subset": told, "whole": self.whole_hash()}
        return self.model_copy(update=changes)

    def with_prompts(self, prompts: PromptSet) -> Suite:
        """This suite with other prompts to restore with; it is another suite then.

        Raises:
            SuiteError: It has nothing to restore, or a cycle of such a name.
        """
        if not any(cycle.kind == "restore" for cycle in self.cycle):
            raise SuiteError(f"suite {self.label} restores nothing, so prompts do not fit it.")
        kept = [c for c in self.cycle if c.kind != "restore" or c.readers == "unprompted"]
        fresh = prompts.cycles()
        clash = {cycle.name for cycle in kept} & {cycle.name for cycle in fresh}
        if clash:
            raise SuiteError(f"prompt {min(clash)!r} is called like a cycle of {self.label}.")
        name = f"{self.name}.{prompts.name}"[:60]
        changes = {"name": name, "fingerprint": None, "cycle": (*kept, *fresh)}
        return self.model_copy(update=changes)

    def places(self, file: str) -> list[Path]:
        """Where a file of this suite may be: beside it, then in the data folders."""
        beside = (self.root or Path()) / file
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
            return [beside]  # of no data folder
        return [beside, *(folder / self.name / file for folder in data_folders())]

    def _here(self, file: str) -> bool:
        return any(path.is_file() for path in self.places(file))

    def _file(self, name: str, file: str, expected: str) -> Frame:
        root = self.root or Path()
        if not (root / file).resolve().is_relative_to(root.resolve()):
            raise SuiteError(f"source {name!r}: {file!r} lies outside the suite's folder")
        found = [path for path in self.places(file) if path.is_file()]
        source = self.source_named(name)
        brings = f"`{self.preparing}` brings it." if source.address or source.truth_address else ""
        if brings and not found:
            raise SuiteError(f"source {name!r}: its file {file} is not here. {brings}")
        faults = []
        for path in found or [root / file]:
            try:
                data = path.read_bytes()
            except OSError as error:
                remedy = brings or "Restore the file or remove the source from the suite."
                faults.append(f"cannot read {path} ({error.strerror}). {remedy}")
                continue
            if (got := sha256(data)) == expected:
                return _decoded(name, path, data, got)
            remedy = brings or (
                "Restore the original file, or record the new hash and raise the suite's version."
            )
            faults.append(
                f"{path} has SHA-256 {got[:12]}…, the suite says {expected[:12]}…. {remedy}"
            )
        raise SuiteError(f"source {name!r}: {faults[0]}")


REDRAWN: Final = 1 << 21
"""Pixels above which a drawing is not kept: it is drawn again when it is asked for again."""


def _drawn(name: str, width: int, height: int) -> NDArray[np.uint8]:
    """A scene. Inputs of one scene, and their truths, are asked for one after the other."""
    if width * height > REDRAWN:
        return drawing.scene(name, width, height)
    return _kept(name, width, height)


@lru_cache(maxsize=16)
def _kept(name: str, width: int, height: int) -> NDArray[np.uint8]:
    pixels = drawing.scene(name, width, height)
    pixels.setflags(write=False)
    return pixels


def _decoded(name: str, path: Path, data: bytes, digest: str) -> Frame:
    """The frame in a source's file, really decoded: a source must not fail later."""
    frame = Frame(data, digest=digest)
    try:
        frame.pixels  # noqa: B018
    except MalformedImage as error:
        raise SuiteError(
            f"source {name!r}: {path} is no usable image: {error}. Replace the file, and its "
            "hash in the suite."
        ) from error
    return frame


def region_box(edit: Edit, source: Source) -> Box | None:
    """The normalised box an edit may touch on a source, or None for the whole picture."""
    if edit.region is None:
        return None
    return source.regions[edit.region] if isinstance(edit.region, str) else edit.region


def load_suite(path: Path) -> Suite:
    """Read a suite from a TOML file, or from a folder that holds a `suite.toml`.

    Raises:
        SuiteError: The file is missing, is not TOML, or does not describe a suite.
    """
    file = path / "suite.toml" if path.is_dir() else path
    try:
        table: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise SuiteError(f"cannot read suite {file} ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuiteError(f"{file} is not valid TOML: {error}") from error
    for key in ("subset", "whole", "root", "opened_as"):
        if key in table:
            raise SuiteError(f"{file}: {key}: there is no such key")
    if (prompts := table.pop("prompts", None)) is not None:
        own = load_prompts(file.parent / str(prompts)).cycles()
        table["cycle"] = [*table.get("cycle", ()), *own]
    try:
        return Suite.model_validate({**table, "root": file.parent, "opened_as": str(file)})
    except ValidationError as error:
        raise SuiteError(f"{file}: {explain(error)}") from error


def check_suite(suite: Suite) -> list[str]:
    """Everything wrong with a suite's files and seal, a sentence each; empty when all is well.

    Files that are still to be brought are no fault: `Suite.missing` lists their sources.
    """
    found: list[str] = []
    missing = {source.name for source in suite.missing()}
    for source in suite.source:
        if source.name in missing or (source.draw and not source.pixels):
            continue  # not here, or drawn with nothing to compare it with
        try:
            frame = suite.frame(source)
            suite.truth(source)
            if source.draw and source.pixels and frame.pixel_digest != source.pixels:
                found.append(
                    f"source {source.name!r}: drawn pixels are {frame.pixel_digest[:12]}…, "
                    f"the suite says {source.pixels[:12]}…"
                )
        except ConvergeBenchError as error:
            found.append(str(error))
    if not suite.intact:
        found.append(
            f"content changed since version {suite.version} was sealed: raise 'version' and set "
            f'fingerprint = "{suite.whole_hash()}"'
        )
    return found


_Named = TypeVar("_Named", Source, Cycle)


def _pick(what: str, name: str, among: tuple[_Named, ...], hint: Callable[[], str]) -> _Named:
    found: Mapping[str, _Named] = _by_name(_Same(among))
    if name not in found:
        raise UnknownName(what, name, found, hint())
    return found[name]


class _Same:
    """A tuple that equals only itself, so that looking it up compares none of its items."""

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items

    def __hash__(self) -> int:
        return id(self.items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.items is self.items


@lru_cache(maxsize=16)
def _by_name(among: _Same) -> dict[str, Any]:
    """A suite's sources or cycles by name: asked for with every chain and metric."""
    return {item.name: item for item in among.items}
