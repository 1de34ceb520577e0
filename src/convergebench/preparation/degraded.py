"""A suite of pairs, made of clean pictures: each is damaged by the engine and kept as the truth.

`degrade_pictures` writes a folder: `input/` and `gt/`, a sealed suite.toml with the prompts to
restore with, and a contact sheet. The folder appears when it is whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from convergebench import degrading
from convergebench.cycle import Cycle, Edit
from convergebench.errors import SuiteError, UnknownName
from convergebench.frame import encode, resize, sha256
from convergebench.preparation.clean import Clean, Observe, gathered, named, squared, unreadable
from convergebench.prompts import load_prompts
from convergebench.source import Degradation, Source
from convergebench.suite import Suite, load_suite
from convergebench.table import Table
from convergebench.wording import counted

SHOWN: Final = 16
"""Pairs on the contact sheet."""
THUMBNAIL: Final = 256


@dataclass(frozen=True)
class Damaged:
    """A source of the new suite: the picture it was made of, and what was done to it."""

    name: str
    picture: str
    category: str
    damages: tuple[Degradation, ...]
    width: int
    height: int
    truth: bool
    enlarged: float = 1.0

    @property
    def kinds(self) -> str:
        """What was done, as one name."""
        return " + ".join(degrading.KINDS[one.kind] for one in self.damages)


@dataclass(frozen=True)
class Degraded:
    """A suite that was made of clean pictures."""

    suite: Suite
    folder: Path
    origin: str
    sources: tuple[Damaged, ...]
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """Every source with the picture it was made of and its damage."""
        rows = [
            (
                *(s.name, s.picture, s.category, s.kinds),
                *(s.damages[0].severity, f"{s.width}×{s.height}", "yes" if s.truth else "withheld"),
            )
            for s in self.sources
        ]
        truths = sum(s.truth for s in self.sources)
        made = f"{counted(len(rows), 'input')} from {self.origin}, {truths} with a truth"
        notes = [
            *self.notes,
            *self._enlargement,
            f"Look at {self.folder / 'contact-sheet.png'}",
            f"To run it: convergebench run RUN --suite {self.folder} --editor …",
        ]
        head = ("source", "made of", "scene", "damage", "severity", "size", "truth")
        return Table(f"{self.folder}: {made}", head, rows, notes)

    @property
    def _enlargement(self) -> tuple[str, ...]:
        """A truth that was enlarged is softer than its size says: metrics and people see it."""
        enlarged = [s for s in self.sources if s.enlarged > 1]
        if not enlarged:
            return ()
        most = max(s.enlarged for s in enlarged)
        pictures = counted(len({s.picture for s in enlarged}), "picture", "was", "were")
        return (
            f"{pictures} enlarged, up to {most:.2g} times, so truths are less sharp than "
            f"they could be: --size {math.floor(self.suite.size / most + 0.5)} enlarges none.",
        )

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
                {**vars(s), "damages": [one.model_dump(mode="json") for one in s.damages]}
                for s in self.sources
            ],
            "notes": list(self.notes),
        }


def degrade_pictures(
    clean: Path | Suite,
    to: str | os.PathLike[str],
    *,
    prompts: Path,
    damages: Sequence[Sequence[str]] = (),
    severity: int = 2,
    seed: int = 0,
    size: int = 1024,
    each: bool = False,
    withhold: Sequence[str] = (),
    licence: str = "",
    observe: Observe = lambda *_: None,
) -> Degraded:
    """Make a restoration suite of clean pictures.

    Args:
        clean: A folder of pictures, whose subfolders are scene categories; or a suite.
        to: The folder to make.
        prompts: The set of prompts to restore with, a TOML file.
        damages: The damages to choose from, each a list of kinds that are applied in order;
            without any, every kind alone.
        severity: 1, 2 or 3.
        seed: Decides all chance. Each picture's own seed is a hash of this and of its name.
        size: Pictures are cropped to a square and brought to this side; 0 leaves them as they are.
        each: Give every picture all damages, instead of one after the other in turn.
        withhold: Kinds whose truth is kept back, as where no truth can exist.
        licence: The pictures' licence, where `clean` is a folder.
        observe: Told how far things are.

    Raises:
        SuiteError: All that is wrong with what was given, in one list; nothing was written.
    """
    folder = Path(to)
    recipes = [tuple(recipe) for recipe in damages] or [(kind,) for kind in degrading.KINDS]
    problems = _wrong_settings(folder, recipes, severity, seed, size, withhold)
    pictures, found, notes = gathered(clean, licence, size)
    problems += found
    problems += unreadable(pictures, size, observe)
    if not pictures and not found:
        problems.append(f"{clean} has no pictures; give a folder of PNG, JPEG or other images")
    try:
        cycles = (_unprompted(), *load_prompts(prompts).cycles())
    except SuiteError as error:
        problems.append(str(error))
    if problems:
        raise SuiteError(_listed(problems))
    jobs = [
        (one, recipe)
        for number, one in enumerate(pictures)
        for recipe in (recipes if each else [recipes[number % len(recipes)]])
    ]
    plan = [
        (one, name, _seeded(recipe, severity, seed, one.name), not set(recipe) & set(withhold))
        for (one, recipe), name in zip(jobs, _names(jobs), strict=True)
    ]
    origin = clean.label if isinstance(clean, Suite) else clean.name or str(clean)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            part = Path(scratch) / "suite"
            made = _written(part, plan, size, observe)
            suite = _suite(folder.name, size, [source for source, _ in made], cycles, origin)
            shutil.copyfile(prompts, part / "prompts.toml")
            (part / "suite.toml").write_text(_toml(suite), "utf-8")
            if folder.is_dir():
                folder.rmdir()  # empty: checked above
            part.rename(folder)
    except OSError as error:
        raise SuiteError(f"cannot write {folder} ({error.strerror})") from error
    return Degraded(load_suite(folder), folder, origin, tuple(one for _, one in made), notes)


def _wrong_settings(
    folder: Path,
    recipes: Sequence[Sequence[str]],
    severity: int,
    seed: int,
    size: int,
    withhold: Sequence[str],
) -> list[str]:
    """What is wrong with the settings, a sentence each."""
    found = []
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        found.append(f"{folder} is there already, and not empty. Name another folder.")
    asked = [kind for recipe in recipes for kind in recipe]
    for kind in dict.fromkeys((*asked, *withhold)):
        if kind not in degrading.KINDS:
            found.append(str(UnknownName("degradation", kind, degrading.KINDS)))
    if any(not recipe for recipe in recipes):
        found.append("a mix of no kinds; write it like defocus+digital-zoom")
    idle = [kind for kind in withhold if kind in degrading.KINDS and kind not in asked]
    found += [f"cannot withhold the truth of {kind}: nothing is damaged so" for kind in idle]
    if severity not in degrading.SEVERITIES:
        found.append(f"severity {severity}: give 1, 2 or 3")
    if seed < 0:
        found.append(f"seed {seed}: give a whole number of at least 0")
    if size and not degrading.LEAST <= size <= 8192:
        found.append(f"size {size}: give 0, or {degrading.LEAST} to 8192 pixels")
    return found


def _listed(problems: Sequence[str]) -> str:
    """All problems in one message."""
    if len(problems) == 1:
        return problems[0]
    lines = [f"nothing was written, for {len(problems)} reasons:"]
    return "\n".join([*lines, *(f"  {problem}" for problem in problems)])


def _names(jobs: Sequence[tuple[Clean, tuple[str, ...]]]) -> list[str]:
    """A name for each source: the picture's and the kinds', made distinct by a number."""
    taken: set[str] = set()
    found = []
    for one, recipe in jobs:
        kinds = "+".join(recipe).replace("+", "-")[:40]
        base = f"{one.name[: 55 - len(kinds)].rstrip('-._')}-{kinds}"
        name, number = base, 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name)
        found.append(name)
    return found


def _seeded(recipe: Sequence[str], severity: int, seed: int, name: str) -> tuple[Degradation, ...]:
    """The damages of one picture. Its own seed does not move when other pictures come or go."""
    own = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4], "big")
    return tuple(Degradation(kind=kind, severity=severity, seed=own) for kind in recipe)


_Planned = tuple[Clean, str, tuple[Degradation, ...], bool]


def _written(
    folder: Path, plan: Sequence[_Planned], size: int, observe: Observe
) -> list[tuple[Source, Damaged]]:
    """Write all pairs and the contact sheet; the sources, in order."""
    for name in ("input", "gt"):
        (folder / name).mkdir(parents=True)
    made, cells = [], []
    # Pictures of any size may be large: then one at a time, so that memory stays bounded.
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1) if size else 1) as pool:
        for source, told, cell in pool.map(partial(_pair, folder, size), plan):
            made.append((source, told))
            cells.append(cell)
            observe(len(made), len(plan), told.kinds)
    sheet = contact_sheet([cell for cell in cells[:SHOWN]])
    (folder / "contact-sheet.png").write_bytes(encode(sheet))
    return made


def _pair(folder: Path, size: int, job: _Planned) -> tuple[Source, Damaged, NDArray[np.uint8]]:
    """Write one pair; its source, what was done, and a small picture of both."""
    one, name, damages, truth = job
    pixels = one.read().pixels
    enlarged = max(1.0, size / min(pixels.shape[:2]))
    clean = squared(pixels, size)
    damaged = degrading.degrade_all(clean, [(d.kind, d.severity, d.seed) for d in damages])
    digests = {}
    for place, pair in (("input", damaged), ("gt", clean)):
        if place == "gt" and not truth:
            continue
        data = encode(pair)
        (folder / place / f"{name}.png").write_bytes(data)
        digests[place] = sha256(data)
    height, width = clean.shape[:2]
    told = Damaged(name, one.place, one.category, damages, width, height, truth, enlarged)
    how = ", ".join(f"{d.kind} (severity {d.severity}, seed {d.seed})" for d in damages)
    source = Source(
        name=name,
        file=f"input/{name}.png",
        sha256=digests["input"],
        truth=f"gt/{name}.png" if truth else None,
        truth_sha256=digests.get("gt"),
        licence=one.licence,
        category=one.category,
        degradation=told.kinds,
        description=f"{one.place} after {how}",
        origin=one.origin,
    )
    blank = np.full_like(clean, 235)
    cell = np.hstack([_thumbnail(clean if truth else blank), _thumbnail(damaged)])
    return source, told, cell


def contact_sheet(cells: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Pairs beside each other, truth to the left of input, two pairs to a row."""
    gap = 8
    high, wide = cells[0].shape[:2]
    rows = -(-len(cells) // 2)
    sheet = np.full((gap + rows * (high + gap), 3 * gap + 2 * wide, 3), 255, np.uint8)
    for number, cell in enumerate(cells):
        top = gap + number // 2 * (high + gap)
        left = gap + number % 2 * (wide + gap)
        sheet[top : top + high, left : left + wide] = cell
    return sheet


def _thumbnail(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture in the middle of a small white square."""
    height, width = pixels.shape[:2]
    scale = THUMBNAIL / max(height, width)
    small = resize(pixels, max(1, round(width * scale)), max(1, round(height * scale)))
    cell = np.full((THUMBNAIL, THUMBNAIL, 3), 255, np.uint8)
    top, left = (THUMBNAIL - small.shape[0]) // 2, (THUMBNAIL - small.shape[1]) // 2
    cell[top : top + small.shape[0], left : left + small.shape[1]] = small
    return cell


def _unprompted() -> Cycle:
    """The cycle of methods that read no prompt."""
    return Cycle(
        name="restore",
        kind="restore",
        description="One restoration by a method that reads no prompt.",
        readers="unprompted",
        edit=(Edit(prompt="Restore the image."),),
    )


def _suite(
    name: str, size: int, sources: Sequence[Source], cycles: Sequence[Cycle], origin: str
) -> Suite:
    """The new suite, sealed."""
    kinds = "; ".join(sorted({source.degradation or "" for source in sources}))
    made = Suite(
        name=named(name)[:60],
        version=1,
        description=f"Pictures of {origin}, damaged: {kinds}.",
        size=size or 1024,
        source=tuple(sources),
        cycle=tuple(cycles),
    )
    return made.model_copy(update={"fingerprint": made.content_hash()})


def _toml(suite: Suite) -> str:
    """The suite as TOML. The prompts are a file beside it; all else is flat."""
    head = suite.model_dump(
        mode="json", include={"name", "version", "description", "size", "fingerprint"}
    )
    blocks = [[*_keys(head), 'prompts = "prompts.toml"']]
    for source in suite.source:
        told = source.model_dump(mode="json", exclude_defaults=True)
        blocks.append(["[[source]]", *_keys(told)])
    for cycle in suite.cycle:
        if cycle.readers == "prompted":
            continue  # of prompts.toml
        told = cycle.model_dump(mode="json", exclude_defaults=True)
        edits = told.pop("edit")
        blocks.append(["[[cycle]]", *_keys(told)])
        blocks += [["[[cycle.edit]]", *_keys(edit)] for edit in edits]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _keys(table: dict[str, Any]) -> list[str]:
    # A JSON string is a TOML string but for one character, which TOML wants escaped as well.
    texts = {key: json.dumps(value, ensure_ascii=False) for key, value in table.items()}
    return [f"{key} = {text}".replace("\x7f", "\\u007f") for key, text in texts.items()]
