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
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorUnavailable,
    SettingsError,
    scrub,
)
from convergebench.wire.addresses import Forbidden, check_base, is_near, permitted
from convergebench.wire.transport import TooLarge, careful

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "LATE",
    "MAX_BODY",
    "Secret",
    "Told",
    "TooLarge",
    "Unreadable",
    "Wire",
    "check_base",
    "client",
    "complaint",
    "download",
    "is_near",
    "network_fault",
    "retry_after",
]

MAX_BODY: Final = 128 << 20
"""Bytes that an answer may have: a 4K PNG in base64, with room."""
HOPS: Final = 5
FIRST_WAIT: Final = 0.2
LATE: Final = frozenset({504, 524})
"""Statuses of gateways that waited in vain: the provider was at work, perhaps for money."""
_SHOWN: Final = 600


class Secret:
    """A key that shows in no repr, message or traceback."""

    __slots__ = ("_text", "name")

    def __init__(self, text: str, name: str = "key") -> None:
        if not all(33 <= ord(letter) <= 126 for letter in text):
            which = "the key" if name == "key" else name
            raise SettingsError(f"{which} holds a space or a letter that no header can carry")
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


def client(base: str, *, timeout: float, max_bytes: int | None = None) -> httpx2.Client:
    """An HTTP client for one provider, for SDKs too: bounded answers, no kept connections."""
    return careful(base, timeout, MAX_BODY if max_bytes is None else max_bytes)


def network_fault(error: BaseException, what: str) -> EditorError:
    """What an exception of httpx2, or of an SDK on top of it, means for a paid call.

    What was not sent whole is EditorUnavailable, a timeout or a cut after that EditorLost. A
    certificate that cannot be trusted is AccountBlocked: nothing was sent, nothing will be until
    somebody looks, and it says nothing about the edit. A request that cannot be written at all is
    EditorFailed. Raise it `from None`: the exceptions of SDKs hold headers.
    """
    import httpx2

    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and not any(cause is seen for seen in chain):
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(e, kinds) for e in chain)

    said = scrub(next((str(e) for e in reversed(chain) if str(e)), type(error).__name__))[:_SHOWN]
    if among(TooLarge):
        return EditorLost(f"{what} sent {said}")
    if among(ssl.SSLCertVerificationError):
        return AccountBlocked(f"{what} cannot prove who it is, so nothing was sent: {said}")
    if among(ImportError):  # a SOCKS proxy needs another package
        return AccountBlocked(f"cannot reach {what}: {said}")
    if among(httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
        return EditorFailed(f"{what} cannot be asked that: {said}")
    if among(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError):
        return EditorUnavailable(f"cannot reach {what}: {said}")
    if among(httpx2.WriteError, httpx2.WriteTimeout):
        return EditorUnavailable(f"{what} did not take the whole request: {said}")
    if among(httpx2.TimeoutException, TimeoutError):
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
        max_bytes: int | None = None,
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
        if told.status in LATE:
            return EditorLost(text)
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
        if not url.startswith("https://") and not (is_near(url) and is_near(self.base)):
            raise EditorLost(
                f"{self.what} gives an address that is not https; keys do not go there"
            )
        try:
            with client(url, timeout=timeout, max_bytes=self._max) as http:
                response = http.request(
                    method, url, json=body, headers={**self._headers, **(headers or {})}
                )
        except Exception as error:  # httpx2's kinds, ours, and what a broken stream raises
            raise self._named(network_fault(error, self.what)) from None
        data = response.content
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            parsed = None
        words = data[:4000].decode("utf-8", "replace").split()
        if len(data) > 4000:
            words = words[:-1]  # half a key could not be scrubbed
        line = self.scrub(" ".join(words))[:_SHOWN]
        return Told(response.status_code, dict(response.headers), parsed, line)

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


class Unreadable(EditorLost):
    """A picture whose address will never be read: it has expired, is forbidden, too large."""


def download(
    url: str,
    *,
    what: str,
    near: bool,
    timeout: float,
    max_bytes: int | None = None,
    tries: int = 3,
) -> bytes:
    """A picture that a provider gives the address of; without keys, checked at every hop.

    Only https, or http to this machine when the provider itself is there (`near`); never to a
    private network. The connection goes to the very address that was checked, and the certificate
    is checked against the name; where a proxy of the environment is in between, it looks the name
    up, and that cannot be had. Reading costs nothing, so what is cut off is read again.

    Raises:
        EditorLost: It was not had: the picture was paid for all the same.
        Unreadable: Nor will it ever be.
    """
    end = time.monotonic() + timeout
    problem = ""
    for number in range(tries):
        if number:
            time.sleep(max(0.0, min(FIRST_WAIT * number, end - time.monotonic())))
        try:
            return _fetched(url, near, end, max_bytes, number)
        except (Forbidden, TooLarge) as error:
            raise Unreadable(f"{what}: the picture is not downloaded: {error}") from None
        except Exception as error:  # cut off, reset, 5xx: the address still stands
            problem = scrub(str(error) or type(error).__name__)[:_SHOWN]
        if time.monotonic() >= end:
            raise EditorLost(f"{what}: the picture was not downloaded in time", timed_out=True)
    raise EditorLost(f"{what}: the picture cannot be downloaded: {problem}")


def _fetched(url: str, near: bool, end: float, max_bytes: int | None, number: int) -> bytes:
    """Follow an address to its picture; the n-th try takes the n-th address of each host."""
    import httpx2

    try:
        place = httpx2.URL(url)
        for _ in range(HOPS):
            status, target, data = _hop(place, near, end, max_bytes, number)
            if target is None:
                break
            following = place.join(target)
            if place.scheme == "https" and following.scheme != "https":
                raise Forbidden(f"it leads from https to {following.scheme}")
            place = following
        else:
            raise Forbidden(f"more than {HOPS} redirects")
    except httpx2.InvalidURL:
        raise Forbidden("its address is none") from None
    if status in (401, 403, 404, 410):
        raise Forbidden(f"its address has expired (HTTP {status})")
    if status != 200:
        raise httpx2.HTTPError(f"HTTP {status}")
    return data


def _hop(
    place: httpx2.URL, near: bool, end: float, max_bytes: int | None, number: int
) -> tuple[int, str | None, bytes]:
    """One request: its status, where it leads on to, its body."""
    found = permitted(place, near)
    left = max(0.001, end - time.monotonic())
    pinned = place.copy_with(host=found[number % len(found)]) if found else place
    with (
        client(str(place), timeout=left, max_bytes=max_bytes) as http,
        http.stream(
            "GET",
            pinned,
            headers={"host": place.netloc.decode("ascii")},
            extensions={"sni_hostname": place.raw_host.decode("ascii")},
        ) as response,
    ):
        if response.is_redirect:
            return response.status_code, response.headers.get("location", ""), b""
        return response.status_code, None, response.read()
