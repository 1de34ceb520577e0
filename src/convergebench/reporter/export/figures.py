"""Charts as files: SVG, and PDF for papers. What is there and the same is not drawn again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from convergebench.reporter import charts
from convergebench.reporter.charts import Drawing
from convergebench.reporter.export.binding import bound
from convergebench.reporter.folder import write_changed

Specification = Mapping[str, Any]
"""A drawing in Vega-Lite, whole in itself."""

PDF_WAY: Final = 1
"""Raised when drawings become other files though their specification is the same."""


def figure_name(drawing: Drawing) -> str:
    """A drawing's name as TeX likes file names."""
    return re.sub(r"[^A-Za-z0-9-]+", "-", drawing.id)


def write_svg(path: Path, specification: Specification) -> None:
    """A drawing as SVG, as the pages have it."""
    mark = f"<!-- {_fingerprint([specification, version('vl-convert-python')])} -->\n".encode()
    if mark not in _there(path):
        write_changed(path, svg_of(specification).encode() + b"\n" + mark)


def write_pdf(path: Path, specification: Specification, title: str) -> None:
    """A drawing as a PDF of its size: vectors, with text as text in embedded fonts."""
    import vl_convert

    made_by = [version("vl-convert-python"), version("pypdf"), PDF_WAY]
    mark = _fingerprint([specification, *made_by])
    if mark.encode() not in _there(path):
        page = vl_convert.svg_to_pdf(svg_of(specification))
        write_changed(path, bound([page], title, mark))


def svg_of(specification: Specification) -> str:
    """A drawing as SVG."""
    return _drawn(json.dumps(_drawable(specification)))


@lru_cache(maxsize=100)
def _drawn(specification: str) -> str:
    # Drawing takes a good part of a second, and several formats want the same drawing.
    svg = charts.still(json.loads(specification))
    # Vega numbers gradients and clips through all drawings of a process; here each counts its own.
    names = dict.fromkeys(re.findall(r'\bid="((?:gradient_|clip)\d+)"', svg))
    for index, name in enumerate(names):
        svg = re.sub(rf'(\bid="|url\(#){name}(["\)])', rf"\g<1>part-{index}\g<2>", svg)
    return svg


def _drawable(value: Any) -> Any:
    """Without signs beyond 16 bits: Vega may cut a long label amid one, and vl-convert fails."""
    if isinstance(value, str):
        return re.sub("[\U00010000-\U0010ffff]", "\ufffd", value)
    if isinstance(value, Mapping):
        return {_drawable(key): _drawable(told) for key, told in value.items()}
    if isinstance(value, list | tuple):
        return [_drawable(each) for each in value]
    return value


def _fingerprint(of: Any) -> str:
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()[:32]


def _there(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
