"""HTTP as paid calls need it: nothing is sent twice, and every fault says what it may have cost.

A fault before a request was sent whole cannot have been billed (EditorUnavailable, the runner tries
again). A fault after it may have been (EditorLost). Answers are read up to a limit, redirects of
API calls are not followed, and connections are not kept: a request on a connection that the server
has just closed could not be told from one that was billed.

Ours, over httpx2, because it is safer than providers' clients where those repeat calls or follow
redirects on their own.
"""

from __future__ import annotations

import datetime
import email.utils
import hashlib
import ipaddress
import json
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorUnavailable,
    SettingsError,
    scrub,
)

if TYPE_CHECKING:
    import httpx2

MAX_BODY: Final = 128 << 20
"""Bytes that an answer may have: a 4K PNG in base64, with room."""
CONNECT_SECONDS: Final = 15.0
HOPS: Final = 5
_SHOWN: Final = 600
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Secret:
    """A key that shows in no repr, message or traceback."""

    __slots__ = ("_text", "name")

    def __init__(self, text: str, name: str = "key") -> None:
        if not all(33 <= ord(letter) <= 126 for letter in text):
            raise SettingsError(f"{name} holds a space or a letter that no header can carry")
        self._text = text
        self.name: Final = name

    def reveal(self) -> str:
        """The key itself, for a header."""
        return self._text

    @property
    def fingerprint(self) -> str:
        """Tells keys apart without telling them."""
        return hashlib.sha256(b"convergebench:" + self._text.encode()).hexdigest()[:8]

    def scrub(self, text: str) -> str:
        """A text without this key or any other secret of the environment."""
        text = text.replace(self._text, f"<{self.name}>") if len(self._text) >= 4 else text
        return scrub(text)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def is_near(url: str) -> bool:
    """Whether an address is on this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def check_base(url: str, where: str) -> str:
    """A base address that a key may be sent to: https, or http to this machine.

    Raises:
        SettingsError: It is none, and `where` it was set.
    """
    try:
        parts = urlsplit(url.strip())
        legal = bool(parts.hostname) and parts.port != 0 and not parts.query and not parts.fragment
    except ValueError:
        legal = False
    if legal and (parts.username or parts.password):
        raise SettingsError(f"{where}: an address may not hold a name or password")
    if not legal or parts.scheme not in ("http", "https"):
        raise SettingsError(f"{where}: {url!r} is no address. Write it as in https://api.host/v1.")
    if parts.scheme == "http" and not is_near(url):
        raise SettingsError(f"{where}: keys go over https only, got {url!r}")
    return url.strip().rstrip("/")


def client(base: str, *, timeout: float, max_bytes: int = MAX_BODY) -> httpx2.Client:
    """An HTTP client for one provider, for SDKs too: bounded answers, no kept connections."""
    import httpx2

    class Bounded(httpx2.HTTPTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            response = super().handle_request(request)
            stream = response.stream
            if isinstance(stream, httpx2.SyncByteStream):
                response.stream = _bounded(stream, max_bytes)
            return response

    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.Client(
        transport=Bounded(limits=limits, trust_env=not is_near(base)),
        timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        follow_redirects=False,
        trust_env=not is_near(base),
    )


def _bounded(stream: httpx2.SyncByteStream, most: int) -> httpx2.SyncByteStream:
    import httpx2

    class Stream(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            count = 0
            for piece in stream:
                count += len(piece)
                if count > most:
                    raise TooLarge(f"an answer of more than {most / 2**20:.0f} MiB")
                yield piece

        def close(self) -> None:
            stream.close()

    return Stream()


class TooLarge(Exception):
    """An answer that is larger than any picture we ask for."""


def network_fault(error: BaseException, what: str) -> EditorError:
    """What an exception of httpx2, or of an SDK on top of it, means for a paid call."""
    import httpx2

    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    said = scrub(next((str(e) for e in reversed(chain) if str(e)), type(error).__name__))[:_SHOWN]
    unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.WriteError)
    if any(isinstance(e, TooLarge) for e in chain):
        return EditorLost(f"{what} sent {said}")
    if any(isinstance(e, unsent) for e in chain):
        return EditorUnavailable(f"cannot reach {what}: {said}")
    if any(isinstance(e, httpx2.TimeoutException | TimeoutError) for e in chain):
        return EditorLost(f"no answer from {what} in time", timed_out=True)
    return EditorLost(f"{what} hung up: {said}")


@dataclass(frozen=True)
class Told:
    """What a server answered: its JSON where it is some, else None; `text` is one short line."""

    status: int
    headers: Mapping[str, str]
    body: Any
    text: str

    @property
    def ok(self) -> bool:
        """Whether it is a success."""
        return 200 <= self.status < 300

    @property
    def table(self) -> dict[str, Any]:
        """The body as an object; empty where it is none."""
        return self.body if isinstance(self.body, dict) else {}


class Wire:
    """JSON over HTTP with one provider. Safe to use from several threads.

    Args:
        base: Base address, checked by `check_base`.
        what: The provider's name in messages.
        headers: Sent with every API call, keys included.
        key: What must never show in a message.
        max_bytes: Limit of an answer.
    """

    def __init__(
        self,
        base: str,
        *,
        what: str,
        headers: Mapping[str, str] | None = None,
        key: Secret | None = None,
        max_bytes: int = MAX_BODY,
    ) -> None:
        self.base: Final = base
        self.what: Final = what
        self._headers = dict(headers or {})
        self._key = key
        self._max = max_bytes

    def post(
        self, path: str, body: Any, *, timeout: float, headers: Mapping[str, str] | None = None
    ) -> Told:
        """One paid call, made once. Raises EditorUnavailable (not sent) or EditorLost."""
        return self._exchange("POST", path, body, timeout, headers)

    def get(self, path: str, *, timeout: float) -> Told:
        """One free call. Raises EditorUnavailable, whatever went wrong."""
        try:
            return self._exchange("GET", path, None, timeout, None)
        except EditorLost as error:
            raise EditorUnavailable(str(error)) from None

    def fault(self, told: Told) -> EditorError:
        """The plain meaning of an answer that is no success; providers know better in places."""
        said = self.scrub(f"HTTP {told.status}: {complaint(told.body) or told.text}")[:_SHOWN]
        text = f"{self.what}: {said}"
        if told.status == 429:
            return EditorUnavailable(text, retry_after=retry_after(told.headers), limited=True)
        if told.status in (408, 425) or told.status >= 500:
            return EditorUnavailable(text, retry_after=retry_after(told.headers))
        if told.status in (401, 402, 403):
            return AccountBlocked(text)
        return EditorFailed(text)

    def scrub(self, text: str) -> str:
        """A text without the key or any other secret of the environment."""
        return self._key.scrub(text) if self._key else scrub(text)

    def _exchange(
        self,
        method: str,
        path: str,
        body: Any,
        timeout: float,
        headers: Mapping[str, str] | None,
    ) -> Told:
        url = path if "://" in path else self.base + path
        end = time.monotonic() + timeout
        pieces: list[bytes] = []
        try:
            with (
                client(self.base, timeout=timeout, max_bytes=self._max) as http,
                http.stream(
                    method, url, json=body, headers={**self._headers, **(headers or {})}
                ) as response,
            ):
                for piece in response.iter_bytes():
                    pieces.append(piece)
                    if time.monotonic() > end:  # a trickle resets the library's own timeout
                        raise TimeoutError
        except Exception as error:  # httpx2's kinds, ours, and what a broken stream raises
            raise self._named(network_fault(error, self.what)) from None
        data = b"".join(pieces)
        try:
            parsed = json.loads(data)
        except ValueError:
            parsed = None
        line = " ".join(data[:4000].decode("utf-8", "replace").split())
        return Told(response.status_code, dict(response.headers), parsed, self.scrub(line)[:_SHOWN])

    def _named(self, error: EditorError) -> EditorError:
        error.args = (self.scrub(str(error)),)
        return error


def complaint(body: Any) -> str:
    """The words of an error object, in the forms that providers use."""
    if not isinstance(body, dict):
        return ""
    error = body.get("error", body.get("detail", body.get("message")))
    if isinstance(error, dict):
        words = [str(error[name]) for name in ("code", "type", "message") if error.get(name)]
        return ": ".join(dict.fromkeys(words))
    if isinstance(error, list):
        told = [str(e.get("msg") or e) if isinstance(e, dict) else str(e) for e in error]
        return "; ".join(told)
    return "" if error is None else str(error)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asked for: `retry-after-ms`, or `Retry-After` in either form."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        given = lower.get(name, "")
        if given.replace(".", "", 1).isdecimal():
            return float(given) * unit
        if given and name == "retry-after":
            try:
                when = email.utils.parsedate_to_datetime(given)
            except ValueError:
                return None
            now = datetime.datetime.now(datetime.UTC)
            when = when if when.tzinfo else when.replace(tzinfo=datetime.UTC)
            return max(0.0, (when - now).total_seconds())
    return None


def download(
    url: str, *, what: str, near: bool, timeout: float, max_bytes: int = MAX_BODY, tries: int = 3
) -> bytes:
    """A picture that a provider gives the address of; without keys, checked at every hop.

    Only https, or http to this machine when the provider itself is there (`near`); never to a
    private network. Reading costs nothing, so what is cut off is read again.

    Raises:
        EditorLost: It cannot be had: the picture was paid for all the same.
    """
    end = time.monotonic() + timeout
    problem = ""
    for _ in range(tries):
        left = end - time.monotonic()
        if left <= 0:
            raise EditorLost(f"{what}: the picture was not downloaded in time", timed_out=True)
        try:
            return _fetched(url, near, left, max_bytes)
        except _Forbidden as error:
            raise EditorLost(f"{what}: the picture is not downloaded: {error}") from None
        except Exception as error:  # cut off, reset, 5xx: the address still stands
            problem = scrub(str(error) or type(error).__name__)
            time.sleep(min(0.2, max(0.0, end - time.monotonic())))
    raise EditorLost(f"{what}: the picture cannot be downloaded: {problem[:_SHOWN]}")


class _Forbidden(Exception):
    pass


def _fetched(url: str, near: bool, timeout: float, max_bytes: int) -> bytes:
    import httpx2

    for _ in range(HOPS):
        _permit(url, near)
        with (
            client(url, timeout=timeout, max_bytes=max_bytes) as http,
            http.stream("GET", url) as response,
        ):
            if response.is_redirect:
                url = urljoin(url, response.headers["location"])
                continue
            if response.status_code in (403, 404, 410):
                raise _Forbidden(f"its address has expired (HTTP {response.status_code})")
            if response.status_code != 200:
                raise httpx2.HTTPError(f"HTTP {response.status_code}")
            try:
                return b"".join(response.iter_bytes())
            except TooLarge as error:
                raise _Forbidden(str(error)) from None
    raise _Forbidden(f"more than {HOPS} redirects")


def _permit(url: str, near: bool) -> None:
    """Raise _Forbidden unless an address may be read."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if near and host in _LOOPBACK and parts.scheme in ("http", "https"):
        return
    if parts.scheme != "https":
        raise _Forbidden(f"{parts.scheme}://{host} is not https")
    try:
        found = socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError:
        raise ConnectionError(f"{host} is not known") from None
    private = [a[4][0] for a in found if not ipaddress.ip_address(a[4][0]).is_global]
    if private:
        raise _Forbidden(f"{host} is in a private network")
