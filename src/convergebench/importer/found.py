"""What an import finds: pictures and scores, under the names their layout gives them.

A *layout* reads a folder or a file and answers with `Finds`. It decodes nothing and hashes nothing:
it only says which bytes are which frame of which *track* (a chain as its origin names it). Turning
tracks into chains, and seeing what is missing, repeated or contradictory, is `assembly`'s work.
"""

from __future__ import annotations

import fnmatch
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from convergebench.chain import Call, Outcome, Settings
from convergebench.cycle import CycleKind
from convergebench.errors import ImportProblem
from convergebench.wording import shown

IMAGES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".avif", ".gif", ".bmp", ".tif", ".tiff"))
"""Endings of the files that count as pictures."""


@dataclass(frozen=True)
class Place:
    """Where the bytes of a picture are: a file, or a part of one (a member of a tar archive).

    Attributes:
        name: Path below the root of the import, with `/`; for messages and the record.
        path: The file to read.
        offset: Where in the file the bytes begin.
        length: How many they are; all of the file when None.
    """

    name: str
    path: str | Path
    offset: int = 0
    length: int | None = None

    @property
    def size(self) -> int:
        """How many bytes there are. Raises ImportProblem."""
        if self.length is not None:
            return self.length
        try:
            return os.stat(self.path).st_size
        except OSError as error:
            raise ImportProblem(f"cannot read {self.name} ({error.strerror})") from error

    def read(self) -> bytes:
        """The bytes. Raises ImportProblem."""
        # Plain system calls: with small frames a file object costs more than the reading.
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not hold us up
            try:
                told = os.fstat(file)
                if not stat.S_ISREG(told.st_mode):
                    raise ImportProblem(f"cannot read {self.name}: it is no plain file")
                left = told.st_size if self.length is None else self.length
                data = os.pread(file, left, self.offset)
                while len(data) < left and (more := os.pread(file, left, self.offset + len(data))):
                    data += more[: left - len(data)]
            finally:
                os.close(file)
        except OSError as error:
            raise ImportProblem(f"cannot read {self.name} ({error.strerror})") from error
        if len(data) != left:
            whole = os.path.basename(self.path)
            raise ImportProblem(f"cannot read {self.name}: {whole} is cut short")
        return data


@dataclass(frozen=True)
class Track:
    """A chain, by the names its origin has for source, cycle and editor."""

    source: str
    cycle: str
    editor: str
    repeat: int = 0
    settings: Settings = field(default_factory=Settings)

    def __str__(self) -> str:
        words = [self.editor, self.source, self.cycle, self.settings.label]
        words.append(f"repeat {self.repeat}" if self.repeat else "")
        return " · ".join(word for word in words if word)


@dataclass(frozen=True)
class FoundFrame:
    """One step of a track: a picture, or the record that there is none.

    Attributes:
        track: Whose step it is.
        step: Which; 0 is the source.
        place: Where its bytes are; None for a step that failed or was only reported.
        prompt: What was asked, where that is known.
        outcome: Other than `edited` only where the origin says so (`success: false`).
        detail: The reason, where the outcome is not `edited`.
        call: What is known about the call: model, reasoning, cost, parameters.
        seed: The seed sent, where that is known.
        notes: What a reader must know of the bytes: "from a video: lossy".
    """

    track: Track
    step: int
    place: Place | None
    prompt: str | None = None
    outcome: Outcome = "edited"
    detail: str = ""
    call: Call = field(default_factory=Call)
    seed: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundScore:
    """A published score. `metric` is our name for it where it is the same, else the origin's."""

    track: Track
    step: int
    metric: str
    value: float | None
    note: str = ""
    against: Literal["home", "previous", "none"] = "home"


@dataclass(frozen=True)
class FoundCycle:
    """A cycle: its kind, and its edits' prompts (None where not recorded).

    Without prompts there are as many edits as the kind has, none of them recorded. `group` and
    `factors` are those of a prompt that is known by its name.
    """

    kind: CycleKind
    prompts: tuple[str | None, ...] = ()
    category: str = ""
    description: str = ""
    group: str | None = None
    factors: Mapping[str, str] | None = None


@dataclass(frozen=True)
class FoundSource:
    """What is known about a source: its picture and truth, where they stand apart from chains."""

    place: Place | None = None
    truth: Place | None = None
    category: str = ""
    description: str = ""
    licence: str = ""
    degradation: str = ""


@dataclass(frozen=True)
class Conflict:
    """One key with several values that differ: a step with two pictures, a score with two values.

    Attributes:
        key: Which, in words.
        values: The values, in words: file names, numbers.
    """

    key: str
    values: tuple[str, ...]


@dataclass
class Finds:
    """All that a layout found. `cycles` and `sources` are keyed by the names used in tracks.

    Attributes:
        frames: Every step, in any order; the same step twice is for `assembly` to judge.
        scores: Published scores, each key once.
        cycles: What is known about the cycles.
        sources: What is known about the sources, where there is more than their step 0.
        floors: Published floors by metric.
        expected: How many steps a track was meant to have, where the origin says so.
        conflicts: Keys of scores with values that differ.
        collapsed: How many keys of scores came repeatedly with equal values.
        keys: How many keys of scores there are in all.
        unread: Files that this layout has no use for.
        notes: What the user must know, a sentence each.
        cleanup: Called when the import is over (scratch files of films and archives).
    """

    frames: list[FoundFrame] = field(default_factory=list)
    scores: list[FoundScore] = field(default_factory=list)
    cycles: dict[str, FoundCycle] = field(default_factory=dict)
    sources: dict[str, FoundSource] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    expected: dict[Track, int] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    collapsed: int = 0
    keys: int = 0
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cleanup: Callable[[], None] | None = None


@dataclass(frozen=True)
class Wishes:
    """What the user said; everything is optional and beats what a layout would take.

    Attributes:
        editor: Name for all editors that the layout has no name for.
        source: Likewise for sources.
        cycle: Likewise for cycles.
        kind: What the cycles are, where the layout cannot know.
        prompts: The edits' prompts, in order.
        pattern: Where frames are, with named fields.
        source_pattern: Where sources are, if apart.
        truth_pattern: Where ground truths are.
        first: The number that the source has in numbered files.
        every: Of a film, every so many frames.
        columns: Our field names to the table's column names.
        metrics: Our metric names to the table's column names.
        drop: Columns not to read.
        keep_constant: Keep a distance that is 0 in every row, which was probably never computed.
        conflicts: What to do with keys that have several values.
        steps: How many steps every chain was meant to have.
        origin: Name of where all this is from.
        licence: Licence of the sources.
    """

    editor: str | None = None
    source: str | None = None
    cycle: str | None = None
    kind: CycleKind | None = None
    prompts: tuple[str, ...] = ()
    pattern: str | None = None
    source_pattern: str | None = None
    truth_pattern: str | None = None
    first: int = 0
    every: int = 1
    columns: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    keep_constant: bool = False
    conflicts: Literal["refuse", "repeat"] = "refuse"
    steps: int | None = None
    origin: str | None = None
    licence: str = "unknown (imported)"


class Look:
    """A folder (or one file) as layouts see it: names first, contents on demand.

    Args:
        root: The folder or file.
        lenient: Whether folders that cannot be read are kept in `closed`, to be told with all else
            that is wrong, and not refused at once.
    """

    def __init__(self, root: Path, *, lenient: bool = False) -> None:
        self.root = root
        self._whole = os.fspath(root)
        self._lenient = lenient
        self.closed: tuple[str, ...] = ()
        self.notes: list[str] = []

    @cached_property
    def is_file(self) -> bool:
        """Whether a single file is imported."""
        return self.root.is_file()

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every file below the root, sorted, but hidden ones and what desktops leave behind."""
        if self.is_file:
            return (self.root.name,)
        found: list[str] = []
        linked: list[str] = []
        closed: list[OSError] = []
        for folder, folders, names in os.walk(self.root, onerror=closed.append):
            below = os.path.relpath(folder, self.root).replace(os.sep, "/")
            head = "" if below == "." else f"{below}/"
            linked += [head + name for name in folders if os.path.islink(f"{folder}/{name}")]
            folders[:] = sorted(name for name in folders if not _is_litter(name))
            found += [head + name for name in names if not _is_litter(name)]
        self.closed = tuple(f"{error.filename} ({error.strerror})" for error in closed)
        if closed and not self._lenient:
            raise ImportProblem(f"cannot read {shown(self.closed, 20)}")
        for name in found:
            if not name.isascii() and "\udc80" <= max(name) <= "\udcff":
                raise ImportProblem(f"the name of {name!r} is no valid UTF-8: rename it")
        if linked:
            self.notes.append(f"Linked folders are not followed: {', '.join(sorted(linked)[:5])}.")
        return tuple(sorted(found))

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The files that are pictures by their ending."""
        return tuple(name for name in self.files if os.path.splitext(name)[1].lower() in IMAGES)

    def matching(self, glob: str) -> list[str]:
        """The files whose path matches a glob (`*` also matches `/`)."""
        return [name for name in self.files if fnmatch.fnmatchcase(name, glob)]

    def place(self, name: str) -> Place:
        """The place of a file."""
        return Place(name, self._whole if self.is_file else f"{self._whole}/{name}")

    def json(self, name: str) -> Any:
        """A JSON file's content. Raises ImportProblem."""
        try:
            return json.loads(self.place(name).read())
        except RecursionError as error:
            raise ImportProblem(f"{name} is JSON that is nested too deeply") from error
        except ValueError as error:
            raise ImportProblem(f"{name} is not valid JSON: {error}") from error


def _is_litter(name: str) -> bool:
    return name.startswith(".") or name in ("__MACOSX", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class Layout:
    """A way of laying out what is imported; its own factory, so that an entry point can name it.

    Attributes:
        name: As in `--layout NAME`.
        summary: One line: what it looks like on the disk.
        recognise: Why a folder is laid out so, in a few words; empty when it is not. Must be
            strict: two layouts that both say yes make the user choose.
        read: What is there, as far as this layout understands it. Raises ImportProblem.
        general: Whether it gives way to any other that says yes.
    """

    name: str
    summary: str
    recognise: Callable[[Look], str]
    read: Callable[[Look, Wishes], Finds]
    general: bool = False

    def __call__(self) -> Layout:
        """This layout."""
        return self
