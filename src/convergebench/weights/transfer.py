"""Downloads that resume: one file over HTTP, with its faults told in plain words.

Written with the standard library, because nothing in the core needs an HTTP client otherwise.
"""

from __future__ import annotations

import contextlib
import http.client
import netrc
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from convergebench.errors import scrub

TIMEOUT: Final = 30.0
"""Seconds without an answer, or without a byte, after which a server counts as silent."""
TRIES: Final = 4
"""How often a download that breaks off is taken up again."""
BUSY: Final = frozenset((429, 500, 502, 503, 504))
"""Answers that say nothing about the file: a later one may be better."""
PATIENCE: Final = 20.0
"""The longest that a busy server can make us wait, in seconds."""
BLOCK: Final = 1 << 18


class Failure(Exception):
    """Why a source could not give a file, as half a sentence that is fit to print."""


class Unreachable(Failure):
    """A server that gives no answer at all, so need not be asked again."""


class Busy(Failure):
    """A server that cannot answer now, and how long it asks us to wait, in seconds."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


def shown(url: str) -> str:
    """An address without anything secret: no user, no query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return scrub(urlunsplit((parts.scheme, host, parts.path, "", "")))


def open_url(url: str, headers: Mapping[str, str] | None = None) -> Any:
    """The response to a GET. A user and password in the address, or in ~/.netrc, go along.

    Raises:
        Failure: No answer, or one that is no success.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file"):
        raise Failure(f"{shown(url)}: not an address to download from")
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = urllib.request.Request(bare, headers={"User-Agent": "convergebench"})
    for name, value in {"Accept-Encoding": "identity", **(headers or {})}.items():
        request.add_header(name, value)
    if secret := _credentials(url):
        request.add_unredirected_header("Authorization", secret)
    try:
        return _opener().open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        wait = _number(error.headers.get("Retry-After"))
        error.close()
        told = f"{shown(url)} answered {error.code} {error.reason}"
        raise (Busy(told, wait) if error.code in BUSY else Failure(told)) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        server = parts.hostname or shown(url)
        raise Unreachable(f"{server} cannot be reached ({reason(error)})") from None


def read_page(url: str, accept: str, limit: int) -> tuple[bytes, str, str]:
    """A short document: its bytes, its address after redirects, and its type."""
    with contextlib.closing(open_url(url, {"Accept": accept})) as answer:
        try:
            body = answer.read(limit + 1)
        except (http.client.HTTPException, OSError) as error:
            raise Failure(f"{shown(url)} broke off ({reason(error)})") from None
        length = _number(answer.headers.get("Content-Length"))
        if len(body) > limit:
            raise Failure(f"{shown(url)} is absurdly long")
        if length is not None and len(body) < length:
            raise Failure(f"{shown(url)} broke off ({len(body)} of {length} bytes arrived)")
        return body, answer.geturl(), answer.headers.get_content_type()


def reason(error: BaseException) -> str:
    """What went wrong, in a few words."""
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):
        return reason(inner)
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return scrub(str(inner or error) or type(error).__name__)


def download(
    url: str, part: Path, size: int = 0, observe: Callable[[int, int], None] = lambda *_: None
) -> None:
    """Bring a whole file to `part`, going on from what is there already.

    Args:
        url: Where from.
        part: The partial file; complete when this returns.
        size: Its length, where it is known; 0 otherwise.
        observe: Told the bytes so far and the bytes in all (0: unknown).

    Raises:
        Failure: It could not be completed; what arrived stays in `part`.
    """
    part.touch()
    try:
        for attempt in range(TRIES):
            before = part.stat().st_size
            try:
                _continue(url, part, size, observe)
                return
            except Broken as broken:
                gained = part.stat().st_size > before
                if attempt == TRIES - 1 or not (gained or attempt == 0):
                    raise Failure(f"{shown(url)} broke off ({broken})") from None
                wait = 0.2 * attempt
            except Busy as busy:
                if attempt == TRIES - 1:
                    raise
                wait = min(0.2 * 2**attempt if busy.wait is None else busy.wait, PATIENCE)
            time.sleep(wait)
    finally:
        if not part.stat().st_size:
            part.unlink()


class Broken(Exception):
    """A transfer that ended early, and may be taken up again."""


def _continue(url: str, part: Path, size: int, observe: Callable[[int, int], None]) -> None:
    have = part.stat().st_size
    if size and have > size:
        os.truncate(part, 0)
        have = 0
    if size and have == size:
        observe(have, size)
        return
    with contextlib.closing(open_url(url, {"Range": f"bytes={have}-"} if have else {})) as answer:
        status = answer.status or 200  # None for file:
        length = _number(answer.headers.get("Content-Length"))
        spans = re.fullmatch(
            r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", answer.headers.get("Content-Range", "")
        )
        if status == 416:
            if spans and spans[2] == str(have):
                return
            os.truncate(part, 0)
            raise Broken("it did not accept to go on from there")
        if have and (status != 206 or not spans or spans[1] != str(have)):
            os.truncate(part, 0)  # the server sends everything again
            have = 0
            if status == 206:
                raise Broken("it went on from somewhere else")
        total = size or (have + length if length is not None else 0)
        with part.open("r+b") as file:
            file.seek(have)
            for block in _blocks(answer):
                file.write(block)
                have += len(block)
                if total and have > total:
                    file.truncate(0)
                    raise Failure(f"{shown(url)} sent more than the {total} bytes expected")
                observe(have, total)
    if total and have < total:
        raise Broken(f"{have} of {total} bytes arrived")


def _blocks(answer: Any) -> Iterator[bytes]:
    try:
        while block := answer.read(BLOCK):
            yield block
    except (http.client.HTTPException, OSError) as error:
        raise Broken(reason(error)) from None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to an address in the clear."""

    def redirect_request(
        self, request: Any, answer: Any, code: int, text: str, headers: Any, target: str
    ) -> urllib.request.Request | None:
        """The request that follows a redirect."""
        before, after = urlsplit(request.full_url).scheme, urlsplit(target).scheme
        if after != "https" and after != before:
            raise urllib.error.URLError("redirected to an address without encryption")
        return super().redirect_request(request, answer, code, text, headers, target)


@cache
def _opener() -> urllib.request.OpenerDirector:
    named = [os.environ.get(n) for n in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")]
    bundle = next((path for path in named if path and os.path.isfile(path)), None)
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=bundle))
    return urllib.request.build_opener(secure, _Redirects)


def _credentials(url: str) -> str:
    """The Authorization header for an address, or nothing."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not user and parts.scheme != "file":
        with contextlib.suppress(OSError, netrc.NetrcParseError):
            named = os.environ.get("NETRC")
            known = netrc.netrc(named).authenticators(parts.hostname or "")
            user, password = (known[0], known[2] or "") if known else ("", "")
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode() if user else ""
