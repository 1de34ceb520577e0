"""What every maker of pages needs: the templates, and writing only what has changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from convergebench.disk import replace_file
from convergebench.errors import StoreError
from convergebench.reporter import board


def templates() -> Environment:
    """The templates; they escape all they are given."""
    environment = Environment(
        loader=PackageLoader("convergebench.reporter"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = board.number
    return environment


def write_changed(path: Path, data: bytes) -> None:
    """Write a file unless it is there with this content."""
    try:
        if path.read_bytes() == data:
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)


def claim(folder: Path, ours: Iterable[str]) -> None:
    """Make a folder, or see that one of these files marks it as ours. Raises StoreError."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file, and a folder is needed. Choose another place.")
    known = any((folder / name).is_file() for name in ours)
    if folder.is_dir() and any(folder.iterdir()) and not known:
        raise StoreError(
            f"{folder} is not empty and holds no pages of ConvergeBench. Choose another folder, or "
            "empty it."
        )
    folder.mkdir(parents=True, exist_ok=True)


def as_json(value: Any) -> bytes:
    """A value as a JSON file for readers."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()


def write_static(folder: Path) -> None:
    """Bring style, scripts and Vega into a folder of pages, what is there already left alone."""
    shipped = resources.files("convergebench.reporter") / "static"
    for file in shipped.iterdir():
        write_changed(folder / "static" / file.name, file.read_bytes())
    # Making the bundle takes seconds; the first line tells whether the one there is the same.
    vega = folder / "static" / "vega.js"
    banner = (
        f"/* Vega, Vega-Lite, Vega-Embed by vl-convert-python {version('vl-convert-python')} */"
    )
    try:
        with vega.open("rb") as known:
            if known.readline() == f"{banner}\n".encode():
                return
    except FileNotFoundError:
        pass
    write_changed(vega, f"{banner}\n{_bundle()}".encode())


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that leaves `vegaEmbed` behind."""
    import vl_convert

    # In a function of its own, so that the bundle's one-letter names stay out of the page.
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"(() => {{\n{bundle}\n}})();\n"
