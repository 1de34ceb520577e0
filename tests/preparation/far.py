"""A suite whose files are only on a server."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from convergebench.frame import encode, sha256
from convergebench.preparation import Preparation
from convergebench.suite import Suite, load_suite
from tests.support.runs import CYCLES, picture
from tests.weights.shelf import Shelf

NAMES = ("one", "two", "three")
ALL = {f"deep/{name}.png" for name in NAMES}


@cache
def data(name: str) -> bytes:
    side = 500 if name == "two" else 100  # that one takes several blocks
    return encode(picture(sum(name.encode()), side, side))


def far(folder: Path, address: str, names: tuple[str, ...] = NAMES, more: str = "") -> Path:
    """A suite whose files are only on a server."""
    folder.mkdir(parents=True, exist_ok=True)
    text = 'name = "far"\nversion = 1\n' + more
    for name in names:
        text += (
            f'[[source]]\nname = "{name}"\nfile = "deep/{name}.png"\nlicence = "CC0-1.0"\n'
            f'sha256 = "{sha256(data(name))}"\naddress = "{address}/{name}.png"\n'
            f'origin = "Ann {name}"\n'
        )
    path = folder / "suite.toml"
    path.write_text(text + CYCLES)
    return path


def stocked(shelf: Shelf, folder: Path, names: tuple[str, ...] = NAMES) -> Suite:
    """The same suite, with a server that has its files."""
    shelf.files.update({f"/{name}.png": data(name) for name in names})
    return load_suite(far(folder, shelf.address, names))


def files(folder: Path) -> set[str]:
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    return found - {".lock", "README"}


def how(done: Preparation) -> dict[str, str]:
    return {file.source: file.how for file in done.files}
