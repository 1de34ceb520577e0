"""Reading the report's pages as a browser would: elements, texts, links."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

VOID = {"meta", "link", "img", "br", "hr", "input", "wbr"}
INLINE = {"script", "q"}


@dataclass
class Element:
    """An element with its children in order."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def all(self, tag: str = "", css: str = "") -> list[Element]:
        """Every element below of that tag and class, in document order."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                classes = child.attributes.get("class", "").split()
                if tag in ("", child.tag) and (not css or css in classes):
                    found.append(child)
                found += child.all(tag, css)
        return found

    def one(self, id: str) -> Element:
        """The element of that id."""
        (found,) = [e for e in self.all() if e.attributes.get("id") == id]
        return found

    @property
    def text(self) -> str:
        """All text below, blanks folded."""
        return " ".join(self.raw.split())

    @property
    def raw(self) -> str:
        """All text below, as it is."""
        if self.tag == "wbr":
            return ""
        parts = [c if isinstance(c, str) else c.raw for c in self.children]
        return "".join(parts) if self.tag in INLINE else f" {''.join(parts)} "


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("document", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        closed = self.open.pop()
        assert closed.tag == tag, f"</{tag}> closes <{closed.tag}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(path: Path) -> Element:
    """A page's elements; fails when one is not closed where it should be."""
    builder = _Builder()
    builder.feed(path.read_text("utf-8"))
    builder.close()
    assert len(builder.open) == 1, f"left open: {[e.tag for e in builder.open[1:]]}"
    return builder.open[0]


def links(page: Element) -> list[str]:
    """Everything a page points at."""
    return [
        element.attributes[name]
        for element in page.all()
        for name in ("href", "src", "srcset", "poster", "action", "data")
        if name in element.attributes
    ]


def assert_links_resolve(folder: Path) -> None:
    """Every link of every page leads to a file, and a place, inside the folder."""
    for path in sorted(folder.glob("*.html")):
        page = read_page(path)
        for link in links(page):
            if link == "data:,":  # the icon that a browser need not ask for
                continue
            target, _, fragment = unquote(link).partition("#")
            assert not re.match(r"[a-z]+:|/|\\", target), link
            file = (folder / target).resolve() if target else path
            assert file.is_relative_to(folder.resolve()), link
            assert file.is_file(), f"{path.name}: {link}"
            if fragment:  # of a chain's step, its row is there: ROW/STEP/MODE
                read_page(file).one(fragment.partition("/")[0])
