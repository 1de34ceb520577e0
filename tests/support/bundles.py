"""Runs to bundle, and archives made by hand to be refused."""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from convergebench.archive.contents import MANIFEST, files_of, write_manifest
from convergebench.runner import run
from tests.support.runs import write_suite


def lasting_folder() -> Path:
    """A folder that is there until the process ends, for what all tests share."""
    folder = Path(mkdtemp(prefix="convergebench-test-"))
    atexit.register(shutil.rmtree, folder)
    return folder


@cache
def _base() -> Path:
    folder = lasting_folder()
    suite = write_suite(folder / "suite", size=16)
    settings = {"suite": str(suite), "editors": ["ref:jpeg"], "steps": 2, "controls": False}
    run(folder / "run", {**settings, "sources": ["s0"]})
    return folder / "run"


def small_run(path: Path, extra: Mapping[str, bytes] | None = None) -> Path:
    """A real run of two chains and a few frames, with more files if wanted."""
    shutil.copytree(_base(), path)
    for name, data in (extra or {}).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def frame_name(data: bytes, ending: str = ".bin") -> str:
    """Where a frame of these bytes belongs."""
    digest = hashlib.sha256(data).hexdigest()
    return f"frames/{digest[:2]}/{digest}{ending}"


def tree(path: Path) -> dict[str, bytes]:
    """All files under a folder, and their bytes; a run's locks and signs of life apart."""
    found = {p.relative_to(path).as_posix(): p for p in path.rglob("*") if p.is_file()}
    passing = re.compile(r".*\.lock|status/.*")
    return {name: p.read_bytes() for name, p in found.items() if not passing.fullmatch(name)}


def contents(path: Path) -> dict[str, bytes]:
    """The files of a run that a bundle of it has."""
    return {name: p.read_bytes() for name, p in files_of(path, with_report=False)[0].items()}


def zipped(
    path: Path,
    files: Mapping[str, bytes],
    *,
    method: int = zipfile.ZIP_STORED,
    tweak: Callable[[zipfile.ZipInfo], None] | None = None,
    listed: Mapping[str, bytes] | None = None,
    more: list[tuple[zipfile.ZipInfo, bytes]] | None = None,
) -> Path:
    """An archive as somebody else's program would write it, with a manifest that fits it.

    Args:
        path: Where to write it.
        files: What it has.
        method: How it is compressed.
        tweak: Changes the last file's description.
        listed: What the manifest lists, if not the files.
        more: Further entries, which the manifest lists as well.
    """
    extra = more or []
    named = {**(files if listed is None else listed), **{i.filename: data for i, data in extra}}
    manifest = write_manifest({n: hashlib.sha256(d).hexdigest() for n, d in named.items()})
    with zipfile.ZipFile(path, "w") as out:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            if tweak and name == list(files)[-1]:
                tweak(info)
            out.writestr(info, data)
        for info, data in extra:
            out.writestr(info, data)
        out.writestr(MANIFEST, manifest)
    return path
