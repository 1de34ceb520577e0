"""What every maker of pages needs: the templates, and writing only what has changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from convergebench.reporter import board
from convergebench.reporter.pictures import replace_file


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


def as_json(value: Any) -> bytes:
    """A value as a JSON file for readers."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()
