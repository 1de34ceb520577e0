"""The catalogue: what the files in `catalogue/` say about each set of weights.

Digests were computed from the files themselves or, for files that could not be reached when the
catalogue was written, are those that the hub states or that the official address carries.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, ClassVar, Final, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from convergebench.errors import UnknownName

Digest = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
Inside = Annotated[str, StringConstraints(pattern=r"^[^/\\:][^\\:]*$")]
"""A relative path, with forward slashes."""

HUB: Final = "https://huggingface.co"
"""Where the model hub answers, unless HF_ENDPOINT names a mirror."""


FILES: Final = ("classical", "semantic", "learned", "backbones", "editors")
"""The catalogue's files, in the order in which sets are listed."""


class Entry(BaseModel):
    """Anything in the catalogue: immutable, and no key that we do not know."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Package(Entry):
    """A member of an archive that a package index carries; nothing in the archive is run."""

    package: Name
    version: str
    archive: Name
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    size: int
    member: Inside

    def __str__(self) -> str:
        return f"package {self.package} {self.version}"


class Npm(Entry):
    """A member of a package's archive on the npm registry; nothing in the archive is run."""

    npm: Name
    version: str
    archive: Name
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    size: int
    member: Inside

    def __str__(self) -> str:
        return f"npm package {self.npm} {self.version}"


class Hub(Entry):
    """A file of a repository on the model hub."""

    hub: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]
    file: Inside
    revision: str = "main"

    def address(self, endpoint: str) -> str:
        """Where the file can be downloaded without an account."""
        return f"{endpoint}/{self.hub}/resolve/{quote(self.revision)}/{quote(self.file)}"

    def __str__(self) -> str:
        return f"hub {self.hub}"


class Cache(Entry):
    """A place where another tool keeps the file, below the user's cache directory."""

    cache: Inside

    def __str__(self) -> str:
        return f"cache {self.cache}"


class Address(Entry):
    """The file's official address."""

    url: Annotated[str, StringConstraints(pattern=r"^https://")]

    def __str__(self) -> str:
        return self.url


Source = Package | Npm | Hub | Cache | Address


class Form(Entry):
    """A file by name, and how its content is known.

    Attributes:
        name: File name.
        size: Bytes, checked; 0 where we do not know.
        about: Rough size, for people, where the exact one is unknown.
        sha256: Digest; empty where we have never had the file, so cannot know it.
        prefix: The digest's first digits, where the file's name carries them.
    """

    name: Name
    size: int = 0
    about: int = 0
    sha256: Digest = ""
    prefix: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{6,16})?$")] = ""

    @property
    def assurance(self) -> str:
        """What can be checked about such a file, in words."""
        if self.sha256:
            return "SHA-256"
        return f"not verified: digest unknown{f', begins {self.prefix}' if self.prefix else ''}"


class File(Form):
    """A file of a set, where to get it, and other files that hold the same parameters."""

    sources: tuple[Source, ...] = ()
    also: tuple[Form, ...] = ()

    @property
    def forms(self) -> tuple[Form, ...]:
        """This file, then the others that serve as well."""
        return (self, *self.also)


class WeightSet(Entry):
    """One set of weights.

    Attributes:
        name: As asked for.
        title: What it is.
        serves: What needs it.
        licence: The weights' licence, as an SPDX identifier where there is one.
        note: What may be done with it, and anything else to know.
        origin: Who made it.
        file: Its files.
        uses: Other sets that are needed together with this one.
    """

    name: Name
    title: str
    serves: str
    licence: str
    note: str = ""
    origin: str
    file: tuple[File, ...] = ()
    uses: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [form.name for file in self.file for form in file.forms]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: the same file name twice")
        if not (self.file or self.uses):
            raise ValueError(f"{self.name}: no files")
        return self


@dataclass(frozen=True)
class Member:
    """A file, and the set that it is kept under."""

    home: str
    file: File

    @property
    def remote(self) -> bool:
        """Whether there is a source to pull it from."""
        return any(not isinstance(source, Cache) for source in self.file.sources)

    @property
    def packaged(self) -> bool:
        """Whether a package index or registry carries it."""
        return any(isinstance(source, Package | Npm) for source in self.file.sources)


class Catalogue(Mapping[str, WeightSet]):
    """All sets by name; an unknown name is answered with near matches."""

    def __init__(self, sets: Mapping[str, WeightSet]) -> None:
        self._sets = dict(sets)
        for weights in self._sets.values():
            for used in weights.uses:
                self[used]
        counts = Counter(f.name for s in self._sets.values() for file in s.file for f in file.forms)
        self._common = {name for name, count in counts.items() if count > 1}

    def __getitem__(self, name: str) -> WeightSet:
        if name not in self._sets:
            raise UnknownName(
                "set of weights", name, self._sets, "See `convergebench weights list`."
            )
        return self._sets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sets)

    def __len__(self) -> int:
        return len(self._sets)

    def __contains__(self, name: object) -> bool:
        return name in self._sets

    def members(self, name: str) -> list[Member]:
        """The files of a set, then those of the sets it uses; the first is the set's main file."""
        weights = self[name]
        own = [Member(name, file) for file in weights.file]
        return own + [member for used in weights.uses for member in self.members(used)]

    def member(self, name: str, file: str | None = None) -> Member:
        """The file of that name in a set, or the set's main file."""
        members = self.members(name)
        for member in members:
            if file is None or file in (form.name for form in member.file.forms):
                return member
        known = [member.file.name for member in members]
        raise UnknownName(f"file of the weights {name}", file or "", known)

    def common(self, name: str) -> bool:
        """Whether several sets have a file of that name, so that the name alone says little."""
        return name in self._common

    @classmethod
    def parse(cls, *texts: str) -> Self:
        """Read a catalogue from TOML: one table per set."""
        sets: dict[str, WeightSet] = {}
        for text in texts:
            for name, table in tomllib.loads(text).items():
                if name in sets:
                    raise ValueError(f"the set {name} twice")
                sets[name] = WeightSet.model_validate({"name": name, **table})
        return cls(sets)


@cache
def catalogue() -> Catalogue:
    """The catalogue that comes with this package."""
    folder = resources.files(__package__) / "catalogue"
    return Catalogue.parse(*((folder / f"{name}.toml").read_text("utf-8") for name in FILES))


def readable(size: int) -> str:
    """A number of bytes for people."""
    value, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            break
        value /= 1000
    return (
        f"{value:.2f}".rstrip("0").rstrip(".") + f" {unit}" if value < 10 else f"{value:.0f} {unit}"
    )
