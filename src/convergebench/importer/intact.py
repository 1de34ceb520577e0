"""An exported dataset is what it says it is: files as they are listed, records that make a run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from convergebench.chain import ChainHeader
from convergebench.errors import ImportProblem
from convergebench.importer import datasetfiles as names
from convergebench.importer.datasetfiles import Marker
from convergebench.store.reading import FORMAT as RUN_FORMAT
from convergebench.suite import Suite

_LINE: Final = re.compile(r"([0-9a-f]{64})  (\S.*)")


def require_whole(marker: Marker, suite: Suite, headers: list[ChainHeader]) -> None:
    """Raise where the records contradict each other, so that they make no run."""
    run = marker.run
    if run.format != RUN_FORMAT:
        raise ImportProblem(f"its run has format {run.format}, and this version reads {RUN_FORMAT}")
    if (run.suite, run.fingerprint) != (suite.label, suite.content_hash()):
        raise ImportProblem(f"its run was made with another suite than its {names.SUITE}")
    for header in headers:
        suite.source_named(header.chain.source)
        suite.cycle_of(header.chain.cycle)


def listed_sums(root: Path) -> dict[str, str]:
    """Names and their SHA-256, as the dataset lists them. Raises ImportProblem."""
    try:
        text = (root / names.SUMS).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ImportProblem(
            f"{root} has no readable {names.SUMS}, so nothing in it can be checked. Get it again."
        ) from error
    found = {}
    for line in filter(None, text.split("\n")):
        if not (match := _LINE.fullmatch(line)):
            raise ImportProblem(f"{root}: {names.SUMS} has a line that is none: {line[:80]!r}")
        found[match[2]] = match[1]
    return found


def checked_file(root: Path, name: str, sums: Mapping[str, str]) -> bytes:
    """The bytes of a file that is small. Raises ImportProblem."""
    require_intact(root, name, sums)
    return (root / name).read_bytes()


def require_intact(root: Path, name: str, sums: Mapping[str, str]) -> None:
    """Raise ImportProblem where a file is not what the list says."""
    try:
        with open(root / name, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ImportProblem(f"cannot read {root / name} ({error.strerror})") from error
    if digest != sums.get(name):
        raise ImportProblem(
            f"{root / name} is not what {names.SUMS} says: it was altered, or came only in part. "
            "Get the dataset again."
        )
