"""Finding weights on this machine, verified.

Looked at in order: the folders of CONVERGEBENCH_WEIGHTS (FOLDER/SET/FILE, then FOLDER/FILE), our
own cache, the model hub's cache, and the caches of the tools that also use the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from convergebench.errors import MetricUnavailable
from convergebench.folders import named_folders
from convergebench.weights.digests import Stamps, mismatch
from convergebench.weights.entries import Cache, Form, Hub, Member, catalogue

FOLDERS: Final = "CONVERGEBENCH_WEIGHTS"
"""The environment variable that names folders of weights."""


def find(name: str, file: str | None = None) -> Path:
    """The path of a verified file of a set; of its main file when none is named.

    Raises:
        UnknownName: The catalogue has no such set or file.
        MetricUnavailable: It is not on this machine, or is not what it should be; the message
            gives the command that gets it.
    """
    member = catalogue().member(name, file)
    found = locate(member)
    if isinstance(found, Located):
        return found.path
    raise MetricUnavailable(f"{found} {_remedy(name, member)}")


@dataclass(frozen=True)
class Located:
    """A file that is here, and which of its forms it is."""

    path: Path
    form: Form


@dataclass(frozen=True)
class Check:
    """What became of comparing one file with the catalogue."""

    name: str
    path: Path
    form: Form
    problem: str

    def __str__(self) -> str:
        known = "sound" if self.form.sha256 else self.form.assurance
        return f"{self.name}: {self.path}: {self.problem or known}"

    def to_dict(self) -> dict[str, str]:
        """For `--json`."""
        return {
            "set": self.name,
            "path": str(self.path),
            "assurance": self.form.assurance,
            "problem": self.problem,
        }


def locate(member: Member) -> Located | str:
    """The first sound copy of a file, or a sentence that says why there is none."""
    wrong: list[str] = []
    for check in examine(member, fresh=False):
        if not check.problem:
            return Located(check.path, check.form)
        wrong.append(f"{check.path} was refused: {check.problem}.")
    return " ".join(wrong) or f"The weights {member.home} ({member.file.name}) are not here."


def examine(member: Member, fresh: bool = True) -> Iterator[Check]:
    """Compare every copy of a file that is here with the catalogue, best first.

    Args:
        member: The file.
        fresh: Whether to hash it now, rather than trust what we remember.
    """
    for path, form in _candidates(member):
        try:
            problem = mismatch(path, form, partial(stamps().digest, fresh=fresh))
        except OSError as error:
            problem = f"it cannot be read ({error.strerror})"
        yield Check(member.home, path, form, problem)


def _candidates(member: Member) -> Iterator[tuple[Path, Form]]:
    """Existing files that may be the one, best first."""
    file = member.file
    for folder in folders():
        for form in file.forms:
            places = [folder / member.home / form.name]
            if not catalogue().common(form.name):
                places.append(folder / form.name)
            yield from ((place, form) for place in places if place.is_file())
    for source in file.sources:
        if isinstance(source, Hub):
            for form in file.forms:
                yield from ((path, form) for path in _hub_copies(source, form.name))
    for source in file.sources:
        if isinstance(source, Cache) and (path := _elsewhere(source)).is_file():
            yield path, file


def folders() -> list[Path]:
    """Folders that are ours to look in: those the user names, then our cache."""
    return [*named_folders(FOLDERS), own_cache()]


def own_cache() -> Path:
    """The folder that `pull` writes to when no other is named."""
    return _caches() / "convergebench" / "weights"


def stamps() -> Stamps:
    """What we remember about files already hashed."""
    return Stamps(own_cache() / "digests.json")


def _caches() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".cache"


def _elsewhere(source: Cache) -> Path:
    first, _, rest = source.cache.partition("/")
    if first == "torch" and (home := os.environ.get("TORCH_HOME")):
        return Path(home).expanduser() / rest
    return _caches() / source.cache


def _hub_cache() -> Path:
    if named := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(named).expanduser()
    home = os.environ.get("HF_HOME")
    return (Path(home).expanduser() if home else _caches() / "huggingface") / "hub"


def _hub_copies(source: Hub, name: str) -> Iterator[Path]:
    """Copies in the hub's cache: of the revision asked for, then of any other."""
    repository = _hub_cache() / f"models--{source.hub.replace('/', '--')}"
    snapshots = repository / "snapshots"
    reference = repository / "refs" / source.revision
    try:
        commit = reference.read_text("ascii").strip() if reference.is_file() else source.revision
        others = sorted(p.name for p in snapshots.iterdir() if p.name != commit)
    except (OSError, ValueError):
        return
    for revision in (commit, *others):
        if (path := (snapshots / revision / source.file).with_name(name)).is_file():
            yield path


def _remedy(name: str, member: Member) -> str:
    """What to do about a missing or wrong file."""
    put = f"put {member.home}/{member.file.name} into a folder that {FOLDERS} names"
    if not member.remote:
        return f"No source is known: {put}."
    return f"Run `convergebench weights pull {name}`, or {put}."
