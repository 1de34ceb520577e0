"""Pages drawn by vl-convert, bound into one PDF whose bytes depend on nothing but the pages.

vl-convert writes one page per file, and its fonts in an order of chance. Joining files and putting
objects in order is what pypdf does (BSD licence, pure Python, no dependency): a reader and writer
of our own would be shorter only until vl-convert changes its way of writing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any, Final

FONT_USED: Final = re.compile(rb"(?m)^/([A-Za-z0-9]+)(?= [0-9.]+ Tf$)")
"""An operator that chooses a font, as vl-convert writes it: one operator per line."""

PRODUCER: Final = "ConvergeBench"


def bound(pages: Sequence[bytes], title: str, mark: str = "") -> bytes:
    """One PDF of these pages.

    Args:
        pages: PDF files.
        title: What readers show as its title.
        mark: Kept in its properties. (A line after the end would do, but lualatex rejects it.)
    """
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter()
    for page in pages:
        reader = PdfReader(io.BytesIO(page))
        for sheet in reader.pages:
            _settle(sheet, sheet["/Contents"].get_object(), set())
            writer.add_page(sheet)
    writer.compress_identical_objects(remove_unreferenced=True)
    told = {"/Title": title, "/Producer": PRODUCER, "/ConvergeBench": mark}
    writer.metadata = {name: words for name, words in told.items() if words}
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _settle(holder: Any, stream: Any, seen: set[int]) -> None:
    """Name the fonts of a page, or of a drawing in it, by what they are; sort all it uses."""
    from pypdf.generic import DictionaryObject, NameObject

    resources = holder.get("/Resources")
    if resources is None or id(stream) in seen:
        return
    seen.add(id(stream))
    resources = resources.get_object()
    fonts = resources.get("/Font")
    if fonts is not None:
        fonts = fonts.get_object()
        order = sorted(fonts, key=lambda name: str(fonts[name].get_object()["/BaseFont"]))
        new = {str(name)[1:].encode(): f"F{i}".encode() for i, name in enumerate(order)}
        resources[NameObject("/Font")] = DictionaryObject(
            {NameObject(f"/F{i}"): fonts.raw_get(name) for i, name in enumerate(order)}
        )
        stream.set_data(FONT_USED.sub(lambda m: b"/" + new[m[1]], stream.get_data()))
    for kind in [k for k in resources if isinstance(resources[k].get_object(), DictionaryObject)]:
        used = resources[kind].get_object()
        ordered = {name: used.raw_get(name) for name in sorted(used)}
        resources[NameObject(kind)] = DictionaryObject(ordered)
    inner = resources.get("/XObject")
    for name in inner.get_object() if inner is not None else ():
        part = inner.get_object()[name].get_object()
        if part.get("/Subtype") == "/Form":
            _settle(part, part, seen)
