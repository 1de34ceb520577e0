"""Writing catalogue entries for tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file_entry(name: str, data: bytes | None = None, *sources: Mapping[str, object]) -> str:
    """One file of a set, as TOML; without data its digest is unknown."""
    lines = [f'name = "{name}"']
    if data is not None:
        lines += [f"size = {len(data)}", f'sha256 = "{sha(data)}"']
    tables = ", ".join(
        "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in source.items()) + " }"
        for source in sources
    )
    return "\n".join([*lines, f"sources = [{tables}]"])


def set_entry(name: str, *files: str, uses: tuple[str, ...] = ()) -> str:
    """One set, as TOML."""
    head = f'[{name}]\ntitle = "t"\nserves = "s"\nlicence = "MIT"\norigin = "o"\n'
    head += f"uses = {json.dumps(list(uses))}\n"
    return head + "\n".join(f"[[{name}.file]]\n{file}" for file in files) + "\n"


def package(project: str, archive: str, data: bytes, member: str) -> dict[str, object]:
    """A source that is a member of an archive."""
    return {
        "package": project,
        "version": "1",
        "archive": archive,
        "size": len(data),
        "sha256": sha(data),
        "member": member,
    }
