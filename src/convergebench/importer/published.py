"""A suite of the pictures that a study published, in place of the drawn ones.

`load_published` writes a folder: the pictures as they are, a suite.toml with their SHA-256 and the
cycles of the suite it follows, and that suite's presets. It stands here, and not in `preparation`,
because it reads datasets as imports do.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convergebench.disk import make_directory
from convergebench.errors import ImportProblem, MalformedImage
from convergebench.frame import EXTENSIONS, Frame
from convergebench.importer.initials import Initial, find_initials
from convergebench.registry import open_suite
from convergebench.source import Source
from convergebench.suite import Suite, load_suite
from convergebench.table import Table
from convergebench.wording import counted, in_order

UNKNOWN_LICENCE = "unknown: see where it was published"


@dataclass(frozen=True)
class LoadedSource:
    """A source of the new suite, and where it is from; `place` is empty for one that is drawn."""

    name: str
    place: str
    how: str
    width: int
    height: int
    bytes: int


@dataclass(frozen=True)
class Loaded:
    """A suite that was made of published pictures."""

    suite: Suite
    folder: Path
    origin: str
    sources: tuple[LoadedSource, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """Every source with where it was taken from, and what is missing."""
        rows = [
            (s.name, f"{s.width}×{s.height}", f"{s.bytes:,}" if s.bytes else "", s.place, s.how)
            for s in self.sources
        ]
        taken = sum(bool(s.place) for s in self.sources)
        title = f"{self.folder}: {counted(taken, 'source')} from {self.origin}"
        notes = list(self.notes)
        if self.missing:
            were = counted(len(self.missing), "source", "was", "were")
            notes.append(
                f"{were} not found and {'is' if len(self.missing) == 1 else 'are'} left out: "
                f"{in_order(self.missing)}. --fill would put the drawn ones in their place."
            )
        notes.append(
            f"To run it: convergebench run RUN --suite {self.folder} --editor … (or --preset "
            f"{self.folder}/small)"
        )
        head = ("source", "size", "bytes", "taken from", "how")
        return Table(title, head, rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "suite": self.suite.label,
            "content_hash": self.suite.content_hash(),
            "folder": str(self.folder),
            "from": self.origin,
            "sources": [vars(source) for source in self.sources],
            "missing": list(self.missing),
            "notes": list(self.notes),
        }


def load_published(
    suite: str | Suite,
    origin: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    fill: bool = False,
    first: int = 0,
) -> Loaded:
    """Make a suite like `suite`, with the initial images of a published dataset.

    Args:
        suite: The suite to follow: its sources' names are looked for, its cycles are kept.
        origin: The dataset: a folder (a Hugging Face dataset, or pictures), or a Parquet file.
        to: The folder to make.
        fill: Take the drawn source where no picture was found, instead of leaving it out.
        first: The number that initial images have among the steps.

    Raises:
        ImportProblem: Nothing was found, pictures contradict each other or do not decode, or the
            folder is there already.
    """
    like = open_suite(suite) if isinstance(suite, str) else suite
    root, folder = Path(origin), Path(to)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ImportProblem(f"{folder} is there already, and not empty. Name another folder.")
    found = find_initials(root, [s.name for s in like.source], first=first)
    licence = _licence(root)
    sources, told, other, notes = [], [], [], list(found.notes)
    files: dict[str, bytes] = {}
    for source in like.source:
        initial = found.images.get(source.name)
        if initial is None:
            if fill and source.draw:
                sources.append(source)
                size = source.drawn_size(like.size)
                told.append(LoadedSource(source.name, "", f"drawn ({source.draw})", *size, 0))
            continue
        frame, file = _checked(initial)
        files[file] = initial.data
        sources.append(_of_file(source, file, frame, licence, f"{root.name}/{initial.place}"))
        facts = frame.facts
        size = (facts.width, facts.height)
        told.append(LoadedSource(source.name, initial.place, initial.how, *size, len(initial.data)))
        if source.width and source.height and size != (source.width, source.height):
            other.append(f"{source.name} (not {source.width}×{source.height})")
    if other:
        notes.append(f"Of another size than in {like.label}: {in_order(other)}.")
    made = _suite(like, sources)
    lost = [cycle.name for cycle in like.cycle if cycle not in made.cycle]
    if lost:
        notes.append(f"Without their sources these cycles are left out: {in_order(lost)}.")
    _write(folder, made, files, _presets(like, made))
    missing = tuple(s.name for s in like.source if s.name not in {one.name for one in sources})
    return Loaded(load_suite(folder), folder, root.name, tuple(told), missing, tuple(notes))


def _checked(initial: Initial) -> tuple[Frame, str]:
    """The frame and what its file is called. Raises ImportProblem when it does not decode."""
    frame = Frame(initial.data)
    try:
        kind = frame.facts.format
        frame.pixels  # noqa: B018
    except MalformedImage as error:
        raise ImportProblem(f"{initial.place} is no usable image: {error}") from error
    return Frame(initial.data), f"images/{initial.source}{EXTENSIONS.get(kind, '')}"


def _of_file(source: Source, file: str, frame: Frame, licence: str, origin: str) -> Source:
    return Source(
        name=source.name,
        file=file,
        sha256=frame.digest,
        licence=licence,
        category=source.category,
        description=source.description,
        origin=origin,
    )


def _suite(like: Suite, sources: list[Source]) -> Suite:
    """The new suite, sealed: the cycles that fit, and all else as in the other."""
    cycles = tuple(c for c in like.cycle if any(like.applies(c, source) for source in sources))
    made = Suite(
        name=f"{like.name}-published",
        version=1,
        description=f"{like.name} with the pictures that were published.",
        size=like.size,
        source=tuple(sources),
        cycle=cycles,
    )
    return made.model_copy(update={"fingerprint": made.content_hash()})


def _presets(like: Suite, made: Suite) -> dict[str, dict[str, Any]]:
    """The other suite's presets without what the new one has not; empty ones are left out."""
    folder = (like.root or Path()) / "presets"
    sources = {source.name for source in made.source}
    cycles = {cycle.name for cycle in made.cycle}
    found = {}
    for path in sorted(folder.glob("*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        if "arms" in table:
            arms = [_arm(arm, sources, cycles) for arm in table["arms"]]
            arms = [arm for arm in arms if arm.get("sources", True) and arm.get("cycles", True)]
            if all(arm.get("controls") == "only" for arm in arms):
                continue
            if arms != table["arms"]:
                table["about"]["title"] += " (here without what was not found)"
            table["arms"] = arms
        found[path.name] = table
    return found


def _arm(arm: Mapping[str, Any], sources: set[str], cycles: set[str]) -> dict[str, Any]:
    """An arm without what is not there; controls walk some source in any case."""
    kept = dict(arm)
    for name, there in (("sources", sources), ("cycles", cycles)):
        if name in arm:
            kept[name] = [one for one in arm[name] if one in there]
    if arm.get("controls") == "only" and not kept.get("sources", True):
        kept["sources"] = [min(sources)]
    return kept


def _licence(root: Path) -> str:
    """The licence that a dataset's card states."""
    card = (root if root.is_dir() else root.parent) / "README.md"
    try:
        text = card.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return UNKNOWN_LICENCE
    head = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", text, re.DOTALL)
    told = re.search(r"^license:[ \t]*[\"']?([\w.+-]+)", head[1], re.MULTILINE) if head else None
    return told[1] if told else UNKNOWN_LICENCE


def _write(
    folder: Path, suite: Suite, files: Mapping[str, bytes], presets: Mapping[str, dict[str, Any]]
) -> None:
    """The pictures first and the suite last, so that a folder with a suite.toml is whole."""
    try:
        make_directory(folder / "images")
        for file, data in files.items():
            (folder / file).write_bytes(data)
        if presets:
            make_directory(folder / "presets")
        for name, table in presets.items():
            (folder / "presets" / name).write_text(toml_text(table), "utf-8")
        content = suite.model_dump(mode="json", exclude_defaults=True)
        (folder / "suite.toml").write_text(toml_text(content), "utf-8")
    except OSError as error:
        raise ImportProblem(f"cannot write {folder} ({error.strerror})") from error


def toml_text(table: Mapping[str, Any]) -> str:
    """A table as TOML; keys without a value are left out."""
    return "\n".join(_lines(table, ())).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines, below = [], []
    for key, value in table.items():
        if value is None:
            continue
        inner = (*path, _key(key))
        if path == () and isinstance(value, Mapping):
            below += ["", f"[{'.'.join(inner)}]", *_lines(value, inner)]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for item in value:
                below += ["", f"[[{'.'.join(inner)}]]", *_lines(item, inner)]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines + below


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        told = (f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return f"{{ {', '.join(told)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    # A JSON string is a TOML string but for one character, which TOML wants escaped as well.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
