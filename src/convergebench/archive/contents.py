"""What a bundle may contain: the grammar of names in a run directory, and the manifest.

Writing and reading share this one list. A name that is not in it is left out of a bundle, and
refused when a bundle is read: nothing else needs to be known about evil names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from convergebench.frame import EXTENSIONS

MANIFEST: Final = "manifest-sha256.txt"
"""The last entry of a bundle: SHA-256 and name of every other, as `sha256sum` writes them."""

_HEX2: Final = "[0-9a-f]{2}"
_WORD: Final = r"[A-Za-z0-9_-][A-Za-z0-9_.@+,=-]{0,199}"
_ENDINGS: Final = "|".join(re.escape(e) for e in (*EXTENSIONS.values(), ".bin"))
_RECORD: Final = re.compile(
    r"(run|suite|spec|sources|findings|self-evaluation)\.json|(sessions|ledger)\.jsonl"
    rf"|(imports|ratings|chains/{_HEX2})/{_WORD}\.jsonl|(scores|trial)/{_WORD}\.parquet"
    r"|judgements/answers\.jsonl|failures/rows\.parquet"
)
_FRAME: Final = re.compile(rf"frames/({_HEX2})/(\1[0-9a-f]{{62}})({_ENDINGS})")
_REPORT: Final = re.compile(rf"report(/{_WORD}){{1,6}}")
_FOLDER: Final = re.compile(
    rf"(imports|ratings|scores|(chains|frames)(/{_HEX2})?|frames/\.new|report(/{_WORD}){{0,5}}"
    r"|judgements|failures|trial)/"
)
_LINE: Final = re.compile(r"([0-9a-f]{64})  ([^\n]+)")

DERIVED: Final = ("findings.json", "self-evaluation.json", "failures/", "trial/", "report/")
"""How the names of files begin that commands make again from the others."""

_NOT_TAKEN: Final = re.compile(
    rf"\w+\.lock|reserve|frames/\.new/.*|{re.escape(MANIFEST)}|(report|trial|failures)/.*"
    r"|judgements/locks/.*|status/.*"
)
"""What else lies in a run directory, and is left out of a bundle without a word."""


def belongs(name: str) -> bool:
    """Whether a bundle may contain a file of that name, the manifest apart."""
    return bool(_RECORD.fullmatch(name) or _FRAME.fullmatch(name) or _REPORT.fullmatch(name))


def is_folder(name: str) -> bool:
    """Whether a name is that of a folder of a run, as other programs add them to archives."""
    return bool(_FOLDER.fullmatch(name))


def derived(name: str) -> bool:
    """Whether a file can be made again from the others, so that nothing is lost with it."""
    return name.startswith(DERIVED)


def digest_in(name: str) -> str | None:
    """The SHA-256 that a frame's name promises; None for other files."""
    found = _FRAME.fullmatch(name)
    return found[2] if found else None


def kind(name: str) -> str:
    """What a file is, for tables: `records`, or the folder it lies in."""
    return name.partition("/")[0] if "/" in name else "records"


def order(name: str) -> tuple[int, str]:
    """Sorts the entries of a bundle.

    Records come first and frames after them, so that a bundle that was cut off in a transfer still
    has the run it is of; the report, which can be made again, comes last.
    """
    return {"frames": 1, "report": 2}.get(kind(name), 0), name


def files_of(run: Path, *, with_report: bool) -> tuple[dict[str, Path], list[str]]:
    """The files of a run directory that go into its bundle, in order, and the strangers in it."""
    found: dict[str, Path] = {}
    strangers = []
    seen: set[tuple[int, int]] = set()
    # A big `frames` folder may be a link to another disk; a loop of links is walked once.
    for folder, folders, names in os.walk(run, followlinks=True):
        facts = os.stat(folder)
        if (facts.st_dev, facts.st_ino) in seen:
            folders.clear()
            continue
        seen.add((facts.st_dev, facts.st_ino))
        for each in names:
            path = Path(folder, each)
            name = path.relative_to(run).as_posix()
            if not path.is_file():
                strangers.append(name)
            elif belongs(name) and (with_report or not name.startswith("report/")):
                found[name] = path
            elif not _NOT_TAKEN.fullmatch(name):
                strangers.append(name)
    return {name: found[name] for name in sorted(found, key=order)}, sorted(strangers)


def write_manifest(digests: Mapping[str, str]) -> bytes:
    """The manifest of files and their SHA-256, in the order given."""
    return "".join(f"{digest}  {name}\n" for name, digest in digests.items()).encode("ascii")


def read_manifest(data: bytes) -> dict[str, str]:
    """Names and their SHA-256. Raises ValueError, saying which line is wrong."""
    found: dict[str, str] = {}
    lines = data.decode("latin-1").split("\n")
    if lines.pop():
        raise ValueError("its last line is cut off")
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if not match or match[2] in found:
            raise ValueError(f"its line {number} is not a hash and a new name")
        found[match[2]] = match[1]
    return found


def twins(names: Iterable[str]) -> list[str]:
    """Names of which there are several, or which differ only in upper and lower case."""
    seen: dict[str, list[str]] = {}
    for name in names:
        seen.setdefault(name.casefold(), []).append(name)
    return sorted({name for group in seen.values() if len(group) > 1 for name in group})


def why_not(name: str) -> str:
    """Why a name is refused."""
    if not (name.isascii() and name.isprintable()):
        return "its name has bytes that no name of a run has"
    parts = re.split(r"[/\\]", name)
    if name.startswith(("/", "\\")) or ".." in parts or re.match("[A-Za-z]:", name):
        return "its name leads outside the run's directory"
    if "\\" in name:
        return "its name has a backslash"
    return "no run has a file of this name"
