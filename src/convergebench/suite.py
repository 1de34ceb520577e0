"""Suites: sources × cycles, as data.

A *source* is an image with its checksum and licence; a *suite* is a versioned set of sources and
cycles, written in TOML.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from convergebench import drawing
from convergebench.cycle import Box, Cycle, Edit, Name, Record, checked_box, without_empty
from convergebench.errors import (
    ConvergeBenchError,
    MalformedImage,
    SuiteError,
    UnknownName,
    explain,
)
from convergebench.frame import Frame, sha256


class Source(Record):
    """One source image: a file with its checksum, or a scene drawn by our own code.

    A source that scores were published for, and whose picture is not here, only says where it is.
    `called` is what an import found it called, where that is no legal name. `address` is where the
    file can be had, pinned to a commit; `origin` who made it, as its licence may want to be told.
    """

    name: Name
    file: str | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    draw: str | None = None
    pixels: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    truth: str | None = None
    truth_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    licence: Annotated[str, Field(min_length=1)]
    category: str = ""
    description: str = ""
    regions: dict[str, Box] = Field(default_factory=dict)
    elsewhere: Annotated[str, Field(min_length=1)] | None = None
    called: str | None = None
    address: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None
    origin: str | None = None

    @model_serializer(mode="wrap")
    def _without_the_newer(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(dump(self), "elsewhere", "called", "address", "origin")

    @field_validator("regions")
    @classmethod
    def _inside(cls, regions: dict[str, Box]) -> dict[str, Box]:
        return {name: checked_box(box) for name, box in regions.items()}

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if sum(told is not None for told in (self.file, self.draw, self.elsewhere)) != 1:
            raise ValueError(f"source {self.name!r}: give either 'file' or 'draw'")
        if self.file and not self.sha256:
            raise ValueError(f"source {self.name!r}: 'sha256' is missing")
        if self.truth and not self.truth_sha256:
            raise ValueError(f"source {self.name!r}: 'truth_sha256' is missing")
        if self.draw and self.draw not in drawing.SCENES:
            raise ValueError(f"source {self.name!r}: no drawn scene {self.draw!r}")
        return self


class Suite(Record):
    """A versioned set of sources and cycles."""

    name: Name
    version: Annotated[int, Field(ge=1)]
    description: str = ""
    size: Annotated[int, Field(ge=16, le=8192)] = 512
    fingerprint: str | None = None
    source: Annotated[tuple[Source, ...], Field(min_length=1)]
    cycle: Annotated[tuple[Cycle, ...], Field(min_length=1)]
    root: Annotated[Path | None, Field(exclude=True)] = None

    @model_validator(mode="after")
    def _distinct(self) -> Self:
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
                if name not in known:
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

    def content_hash(self) -> str:
        """Hash of all that can move a number; version, seal and folder aside."""
        content = self.model_dump(mode="json", exclude={"version", "fingerprint", "root"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def source_named(self, name: str) -> Source:
        """The source of that name. Raises UnknownName."""
        return _pick("source", name, self.source, f"Suite: {self.label}.")

    def cycle_named(self, name: str) -> Cycle:
        """The cycle of that name. Raises UnknownName."""
        return _pick("cycle", name, self.cycle, f"Suite: {self.label}.")

    def cycle_of(self, label: str) -> Cycle:
        """The cycle of a `name@version` label, as chain keys have it."""
        return self.cycle_named(label.partition("@")[0])

    @staticmethod
    def applies(cycle: Cycle, source: Source) -> bool:
        """Whether a cycle makes sense for a source: not excluded, and its regions are known."""
        if cycle.sources is not None and source.name not in cycle.sources:
            return False
        if cycle.kind == "restore" and source.draw is not None:
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
            side = size or self.size
            return Frame.of_pixels(drawing.scene(source.draw, side, side))
        return self._file(source.name, source.file or "", source.sha256 or "")

    def truth(self, source: Source) -> Frame | None:
        """The ground truth of a degraded source, where there is one."""
        if source.truth is None:
            return None
        return self._file(source.name, source.truth, source.truth_sha256 or "")

    def _file(self, name: str, file: str, expected: str) -> Frame:
        root = self.root or Path()
        path = root / file
        if not path.resolve().is_relative_to(root.resolve()):
            raise SuiteError(f"source {name!r}: {file!r} lies outside the suite's folder")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SuiteError(
                f"source {name!r}: cannot read {path} ({error.strerror}). "
                "Restore the file or remove the source from the suite."
            ) from error
        got = sha256(data)
        if got != expected:
            raise SuiteError(
                f"source {name!r}: {path} has SHA-256 {got[:12]}…, the suite says "
                f"{expected[:12]}…. Restore the original file, or record the new hash and "
                "raise the suite's version."
            )
        frame = Frame(data, digest=got)
        try:
            frame.pixels  # noqa: B018 — really decoded: a source must not fail later
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
    try:
        return Suite.model_validate({**table, "root": file.parent})
    except ValidationError as error:
        raise SuiteError(f"{file}: {explain(error)}") from error


def check_suite(suite: Suite) -> list[str]:
    """Everything wrong with a suite's files and seal, a sentence each; empty when all is well."""
    found: list[str] = []
    for source in suite.source:
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
    seal = suite.content_hash()
    if suite.fingerprint not in (None, seal):
        found.append(
            f"content changed since version {suite.version} was sealed: raise 'version' and set "
            f'fingerprint = "{seal}"'
        )
    return found


_Named = TypeVar("_Named", Source, Cycle)


def _pick(what: str, name: str, among: Iterable[_Named], hint: str) -> _Named:
    found = {item.name: item for item in among}
    if name not in found:
        raise UnknownName(what, name, found, hint)
    return found[name]
