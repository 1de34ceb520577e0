"""The words by which replication studies name what a run did: one table, from the Banana100 paper.

Arms of that study (arXiv 2604.03400, sections 2.2 and 3): replication in several phrasings,
mirroring, rotation, reconstruction, decolouring and recolouring, adding apples or 100 fruits; with
a fixed or a new seed, temperature 0 or 0.4, resolution 1K, 2K, 4K or interleaved, one session or
many. The names of its published files could not be seen; these are the paper's own words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from convergebench.cycle import CycleKind
from convergebench.importer.layouts.stems import split_number


@dataclass(frozen=True)
class Word:
    """One row of the table.

    Attributes:
        pattern: What to look for, in small letters with `-` between words.
        cycle: What the cycle is called, where the word names one.
        kind: And what it is.
        settings: Fields of `Settings`, from what was matched.
    """

    pattern: str
    cycle: str = ""
    kind: CycleKind | None = None
    settings: Callable[[re.Match[str]], dict[str, Any]] | None = None


TABLE: Final = (
    Word(r"add-?100-?fruits?|100-?fruits?", "add-100-fruits", "accumulate"),
    Word(r"add-?apples?|apples?", "add-apples", "accumulate"),
    Word(r"(?:without|w-?o|no)-denois(?:e|ing)"),
    Word(r"(?:replicat(?:e|ion)-)?(?:with-|w-)?denois(?:e|ing)", "replicate-denoise", "replicate"),
    Word(r"replicat(?:e|es|ed|ion|ions)|replica", "replicate", "replicate"),
    Word(r"mirror(?:ing|ed)?|(?:horizontal-?)?flip(?:ping|ped)?", "mirror", "mirror"),
    Word(r"rotat(?:e|ed|ion|ing)(?:-?90)?", "rotate", "rotate"),
    Word(r"reconstruct(?:ion|ed|ing)?", "reconstruct", "reconstruct"),
    Word(
        r"monochrome(?:-?colou?r)?|recolou?r(?:ing|ed)?|decolou?ri[sz](?:e|ation)(?:-?(?:and-)?"
        r"colou?ri[sz](?:e|ation))?|gr[ae]y-?scale",
        "recolour",
        "recolour",
    ),
    Word(r"(?:re)?phras(?:e|ing)-?(\d+)", settings=lambda m: {"phrasing": int(m[1])}),
    Word(r"fixed-?seed|seed-?fixed", settings=lambda m: {"seed": "fixed"}),
    Word(
        r"(?:per-?step|varied|varying|different|random)-?seeds?|seeds?-?(?:per-?step|varied|varying)",
        settings=lambda m: {"seed": "per-step"},
    ),
    Word(r"(?:no|without)-?seed|seed-?none", settings=lambda m: {"seed": "none"}),
    Word(r"seed-?(\d+)", settings=lambda m: {"seed": "fixed", "number": int(m[1])}),
    Word(
        r"(?:temperature|temp)-?(\d+(?:[.p]\d+)?)|t-?(\d[.p]\d+)",
        settings=lambda m: {"temperature": float((m[1] or m[2]).replace("p", "."))},
    ),
    Word(
        r"(?:interleaved|mixed)(?:-?resolutions?)?",
        settings=lambda m: {"resolution": "interleaved"},
    ),
    Word(
        r"(?:res(?:olution)?-?)?([124])k(?:-?res(?:olution)?)?",
        settings=lambda m: {"resolution": f"{m[1]}K"},
    ),
    Word(r"(?:single|one|chat)-?session", settings=lambda m: {"session": "chat"}),
    Word(
        r"(?:multi|separate|many)-?sessions?|stateless",
        settings=lambda m: {"session": "stateless"},
    ),
    Word(r"default"),
)
"""Read from above: the first row that fits takes its words."""

MODELS: Final = {
    "nano-banana-pro": "nano-banana-pro",
    "nano-banana-2-fast": "nano-banana-2-fast",
    "nano-banana-2": "nano-banana-2",
    "nano-banana": "nano-banana",
    "flux-2-dev": "flux-2-dev",
    "flux2-dev": "flux-2-dev",
    "qwen-image-edit": "qwen-image-edit",
}
"""Editors of the study by the names folders may have."""

INITIALS: Final = frozenset(
    (
        "building", "dongpo", "ekphrasis", "fog", "holi", "library", "moss", "peacock", "rice",
        "sand", "table", "kokoro", "yuiman",
    )
)  # fmt: skip
"""The study's initial images (its table 1), in small letters."""

_ROWS: Final = tuple((word, re.compile(rf"(?<![a-z0-9.])(?:{word.pattern})(?![a-z0-9])"))
                     for word in TABLE)  # fmt: skip
_RUN = re.compile(r"(?:run|repeat|repetition|rep|trial)[-_ ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Variant:
    """What a name says about a run: its cycle, and fields of `Settings`.

    `known` is whether any word of the table was in it; words that are not in the table stay part of
    the cycle's name, so that no two variants are mixed.
    """

    cycle: str = ""
    kind: CycleKind | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    known: bool = False
    rest: str = ""


@lru_cache(maxsize=4096)
def parse_variant(name: str) -> Variant:
    """What a folder's or a column's words say about a run."""
    left = re.sub(r"[\s_,=+/-]+", "-", name.strip().lower()).strip("-")
    cycle, kind, known = "", None, False
    settings: dict[str, Any] = {}
    for word, pattern in _ROWS:
        told = pattern.search(left)
        if told is None or (word.cycle and cycle):
            continue
        known = True
        cycle, kind = (word.cycle, word.kind) if word.cycle else (cycle, kind)
        settings |= word.settings(told) if word.settings else {}
        left = f"{left[: told.start()]}-{left[told.end() :]}"
    rest = re.sub("-+", "-", left).strip("-")
    return Variant(cycle, kind, settings, known, rest)


def is_variant(name: str) -> bool:
    """Whether a name is made of the table's words, and names a cycle or a setting."""
    told = parse_variant(name)
    return told.known and bool(told.cycle or not told.rest)


def run_number(name: str) -> int | None:
    """The number in `run_3`, or None for other names."""
    told = _RUN.fullmatch(name.strip())
    return int(told[1]) if told else None


def is_run(name: str) -> bool:
    """Whether a name is that of a repeat."""
    return run_number(name) is not None


@lru_cache(maxsize=4096)
def model_of(name: str) -> str | None:
    """The editor a folder's name stands for, where it is one of the study's."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return MODELS.get(plain)


# -- paths ----------------------------------------------------------------------------------

_WRAPPERS: Final = frozenset(("data", "images", "train", "test", "dataset", "frames", "outputs"))
_SOURCES: Final = frozenset(
    (
        "initial",
        "initials",
        "initial_images",
        "sources",
        "source_images",
        "originals",
        "seed_images",
    )
)
SOURCE_NAMES: Final = frozenset(("source", "initial", "original", "input", "reference"))
"""Names of pictures that are a source, in small letters."""
_RUN_WITHIN = re.compile(
    r"(?:^|[-_ ])((?:run|repeat|rep|trial)[-_ ]?\d+)(?:$|[-_ ])", re.IGNORECASE
)


@dataclass
class PathName:
    """What a path says.

    Attributes:
        others: Folders that are neither run nor variant nor editor: one may name the source.
        variants: Folders made of the table's words.
        run: The run's number.
        model: The editor, where a folder has the name of a known one.
        step: The number in the file's name; 0 for a picture that is called a source.
        is_source: Whether it is called a source, whatever number sources have.
        apart: Whether it is a source outside any run.
    """

    others: list[str] = field(default_factory=list)
    variants: list[str] = field(default_factory=list)
    run: int | None = None
    model: str | None = None
    step: int | None = None
    is_source: bool = False
    apart: bool = False


def parse_path(name: str) -> PathName:
    """What folders and file name say, in whatever order they are nested."""
    *folders, base = name.split("/")
    stem = os.path.splitext(base)[0]
    told = PathName(apart=any(folder.lower() in _SOURCES for folder in folders))
    for part in folders:
        _part(part, told)
    if told.apart:
        told.others, told.step, told.is_source = [stem], 0, True
        return told
    if stem.lower() in SOURCE_NAMES:
        told.step, told.is_source = 0, True
        told.apart = told.run is None
        return told
    numbered = split_number(stem)
    if numbered is None:
        return told
    prefix, told.step, _ = numbered
    run = _RUN_WITHIN.search(prefix)
    if run:
        told.run = run_number(run[1]) if told.run is None else told.run
        prefix = f"{prefix[: run.start()]}_{prefix[run.end() :]}".strip("_- ")
    if prefix and not any(prefix.lower() == part.lower() for part in folders):
        _prefix(prefix, told)
    return told


def _part(part: str, told: PathName) -> None:
    if part.lower() in _WRAPPERS or part.lower() in _SOURCES:
        return
    if is_run(part):
        told.run = run_number(part)
    elif model_of(part):
        told.model = model_of(part)
    elif is_variant(part) and part.lower() not in INITIALS:
        told.variants.append(part)
    else:
        told.others.append(part)


def _prefix(prefix: str, told: PathName) -> None:
    """A file name's words before its number: SOURCE, VARIANT or SOURCE_VARIANT."""
    words = re.split(r"([-_ ])", prefix)
    for cut in range(1, len(words), 2):
        head, tail = "".join(words[:cut]), "".join(words[cut + 1 :])
        if is_variant(tail) and not is_variant(head):
            told.variants.append(tail)
            prefix = head
            break
    if not told.others or prefix.lower() not in (part.lower() for part in told.others):
        _part(prefix, told)
