"""A suite of somebody's own pairs: `input/ gt/` with the prompts of a restoration suite.

`load_pairs` writes a folder: inputs and truths as they are, and a suite.toml with their SHA-256 and
the cycles of the suite it follows, so that editors can be run on them. What is wrong with a tree is
told in one list, and then nothing is written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergebench.disk import make_directory
from convergebench.errors import ConvergeBenchError, ImportProblem, MalformedImage
from convergebench.frame import EXTENSIONS, Frame
from convergebench.importer.found import Look
from convergebench.importer.layouts.restoration import Pairs, category_of, damage_of, pairs_of
from convergebench.importer.naming import legal_names
from convergebench.importer.published import UNKNOWN_LICENCE, toml_text
from convergebench.planner.preflight import listed, misfit
from convergebench.registry import open_suite
from convergebench.source import Source
from convergebench.suite import Suite, load_suite
from convergebench.table import Table
from convergebench.wording import counted, in_order, shown

Key = tuple[str, str]
"""Scene and stem of an input."""


@dataclass(frozen=True)
class LoadedPairs:
    """A suite that was made of a tree of pairs."""

    suite: Suite
    folder: Path
    origin: str
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """The sources by scene: how many, how many with a truth, and how they are damaged."""
        scenes: dict[str, list[Source]] = {}
        for source in self.suite.source:
            scenes.setdefault(source.category, []).append(source)
        rows = [
            (
                scene or "(no scene)",
                len(mine),
                sum(source.has_truth for source in mine),
                shown([source.damage for source in mine if source.damage]) or "not told",
            )
            for scene, mine in sorted(scenes.items())
        ]
        title = f"{self.folder}: {counted(len(self.suite.source), 'source')} from {self.origin}"
        run = f"To run it: convergebench run RUN --suite {self.folder} --editor …"
        head = ("scene", "sources", "with a truth", "degradation")
        return Table(title, head, rows, [*self.notes, run])

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
            "sources": [
                {
                    "name": source.name,
                    "called": source.called or source.name,
                    "category": source.category,
                    "degradation": source.damage,
                    "truth": source.has_truth,
                }
                for source in self.suite.source
            ],
            "notes": list(self.notes),
        }


@dataclass
class _Tree:
    """What was read of a tree: sources, the files to write, what is wrong, what is to be told."""

    sources: list[Source] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    enlarged: dict[int, int] = field(default_factory=dict)


def restores(suite: Suite) -> bool:
    """Whether all that a suite does is to restore, so that it can be made of pairs."""
    return all(cycle.kind == "restore" for cycle in suite.cycle)


def load_pairs(
    suite: str | Suite,
    origin: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    allow_missing: bool = False,
    licence: str = UNKNOWN_LICENCE,
) -> LoadedPairs:
    """Make a suite like `suite` of the inputs and truths in a tree.

    Args:
        suite: The suite whose cycles are kept: prompts, groups and factors.
        origin: A folder with `input/` and, where there are truths, `gt/`; folders below them are
            scenes, or degradations where they are called after one. Folders of methods are not
            read: they are editors, `folder:method-a,pattern=**/{source}.png`.
        to: The folder to make.
        allow_missing: Take inputs without a truth in scenes where others have one.
        licence: The licence of the pictures.

    Raises:
        ImportProblem: There is no such tree, its pictures cannot be used, or the folder is there
            already.
    """
    like = open_suite(suite) if isinstance(suite, str) else suite
    root, folder = Path(origin), Path(to)
    if not root.is_dir():
        raise ImportProblem(f"{root} is no folder. Give the folder that holds input/ and gt/.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ImportProblem(f"{folder} is there already, and not empty. Name another folder.")
    look = Look(root, lenient=True)
    tree = _Tree()
    try:
        pairs = pairs_of(look)
    except ImportProblem as error:
        if not look.closed:
            raise
        raise _wrong(root, [*_closed(look), str(error)]) from error
    tree.problems += _closed(look)
    if not allow_missing:
        tree.problems += _without_truth(pairs)
    names = legal_names(pairs.names.values(), "source")
    for key in pairs.inputs.files:
        _take(look, pairs, key, names[pairs.names[key]], like, licence, tree)
    if tree.problems:
        raise _wrong(root, tree.problems)
    made = _suite(like, root, tree.sources)
    _write(folder, made, tree.files)
    return LoadedPairs(load_suite(folder), folder, root.name, _notes(look, pairs, tree))


def _closed(look: Look) -> list[str]:
    """Folders that cannot be looked into."""
    return [f"cannot read {told}" for told in look.closed]


def _wrong(root: Path, problems: Sequence[str]) -> ImportProblem:
    """All that is wrong with a tree."""
    message = f"{counted(len(problems), 'problem')} with {root}, nothing was made:"
    return ImportProblem(listed(message, problems))


def _without_truth(pairs: Pairs) -> list[str]:
    """Inputs that lack a truth although others of their scene have one."""
    have = {key: pairs.truths.find(*key) is not None for key in pairs.inputs.files}
    scenes = {scene for (scene, _), has in have.items() if has}
    return [
        f"{pairs.inputs.files[key][0]} has no truth in {pairs.truth}/, and others of its scene "
        "have (with --allow-missing it is taken without)"
        for key, has in have.items()
        if not has and key[0] in scenes
    ]


def _take(
    look: Look, pairs: Pairs, key: Key, name: str, like: Suite, licence: str, tree: _Tree
) -> None:
    """Read a pair, and note what is wrong with it."""
    match = pairs.truths.find(*key)
    places = {"images": pairs.inputs.files[key]}
    if match:
        places["truths"] = pairs.truths.files[match]
    told: dict[str, tuple[str, Frame]] = {}
    for kind, files in places.items():
        if len(files) > 1:
            tree.problems.append(f"{in_order(files)} are one picture by name: keep one of them")
            continue
        try:
            frame = Frame(look.place(files[0]).read())
            frame.pixels  # noqa: B018 - the whole of it must decode
        except MalformedImage as error:
            tree.problems.append(f"{files[0]} is no usable image: {error}")
        except ConvergeBenchError as error:
            tree.problems.append(str(error))
        else:
            told[kind] = (f"{kind}/{name}{EXTENSIONS[frame.facts.format]}", Frame(frame.data))
    if len(told) < len(places):
        return
    sizes = [(frame.facts.width, frame.facts.height) for _, frame in told.values()]
    source, truth = sizes[0], sizes[1] if match else None
    if wrong := misfit(pairs.inputs.files[key][0], source, truth):
        tree.problems.append(wrong)
        return
    if truth and truth != source:
        factor = truth[0] // source[0]
        tree.enlarged[factor] = tree.enlarged.get(factor, 0) + 1
    tree.files |= {file: frame.data for file, frame in told.values()}
    scene, stem = key
    tree.sources.append(
        Source(
            name=name,
            called=stem if stem != name else None,
            file=told["images"][0],
            sha256=told["images"][1].digest,
            truth=told["truths"][0] if match else None,
            truth_sha256=told["truths"][1].digest if match else None,
            licence=licence,
            category=category_of(scene, like),
            degradation=damage_of(scene) or None,
            origin=f"{look.root.name}/{pairs.inputs.files[key][0]}",
        )
    )


def _suite(like: Suite, root: Path, sources: list[Source]) -> Suite:
    """The new suite, sealed: the cycles of the other, and these sources."""
    cycles = tuple(
        cycle.model_copy(update={"sources": None})
        for cycle in like.cycle
        if cycle.kind == "restore"
    )
    own = legal_names([f"{like.name}.{root.resolve().name}"], "pairs")
    made = Suite(
        name=next(iter(own.values())),
        version=1,
        description=f"The prompts of {like.name} and the pairs of {root.resolve().name}.",
        size=like.size,
        source=tuple(sources),
        cycle=cycles,
    )
    return made.model_copy(update={"fingerprint": made.content_hash()})


def _notes(look: Look, pairs: Pairs, tree: _Tree) -> tuple[str, ...]:
    notes = list(look.notes)
    bare = sum(not source.has_truth for source in tree.sources)
    if bare:
        notes.append(
            f"{counted(bare, 'source')} without a truth: no-reference metrics and people judge it."
        )
    notes += [
        f"Of {counted(count, 'source')} the truth is {factor} times as large: meant for methods "
        "that enlarge; what others make is resized for comparison."
        for factor, count in sorted(tree.enlarged.items())
    ]
    tops = {name.split("/")[0] for name in look.images if "/" in name}
    rest = sorted(tops - {pairs.given, pairs.truth or ""})
    if rest:
        deep = "**/" if any(scene for scene, _ in pairs.inputs.files) else ""
        notes.append(
            f"Folders of methods, run as editors or imported with `convergebench import`: "
            f"{in_order(rest)}; as in --editor 'folder:{look.root / rest[0]},"
            f"pattern={deep}{{source}}.png'."
        )
    return tuple(notes)


def _write(folder: Path, suite: Suite, files: Mapping[str, bytes]) -> None:
    """Write all of it beside the folder, which appears when it is whole."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            part = Path(scratch) / "suite"
            for file, data in files.items():
                make_directory((part / file).parent)
                (part / file).write_bytes(data)
            content = suite.model_dump(mode="json", exclude_defaults=True)
            (part / "suite.toml").write_text(toml_text(content), "utf-8")
            if folder.is_dir():
                folder.rmdir()  # empty: checked above
            part.rename(folder)
    except OSError as error:
        raise ImportProblem(f"cannot write {folder} ({error.strerror})") from error
