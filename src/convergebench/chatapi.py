"""Asking a model behind an OpenAI-compatible endpoint: vLLM, Ollama, llama.cpp, a provider.

One call is one `POST {url}/chat/completions`; pictures travel as data URLs in the message. What is
temporary (no connection, a timeout, 408, 409, 425, 429, 5xx) is tried again, after the time the
server asked for or an exponential backoff, within a deadline. Whoever asks gets a `Reply` or one
`ChatFailed`, whose text holds no key.

An endpoint that is down must not cost every caller its full patience: after `ROW` failures in a row
calls fail at once, for `PAUSE` seconds, then it is tried again.
"""

from __future__ import annotations

import base64
import json
import random
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from convergebench.errors import SettingsError, scrub
from convergebench.wire import Secret, is_near, retry_after

if TYPE_CHECKING:
    import httpx2

FIRST_WAIT: Final = 0.5
LONGEST_BACKOFF: Final = 30.0
CONNECT_SECONDS: Final = 10.0
MAX_ANSWER: Final = 8 << 20
ROW: Final = 3
"""Failures in a row after which an endpoint is left alone."""
PAUSE: Final = 60.0
"""Seconds for which it is left alone."""

_TEMPORARY: Final = frozenset({408, 409, 425, 429})
_GENERAL: Final = frozenset({401, 402, 403, 404})
_SHOWN: Final = 300


class ChatFailed(Exception):
    """A call that came to nothing, and why; callers turn it into an outcome of their own.

    Attributes:
        temporary: The same call may succeed later.
        general: Other calls of this endpoint would fail as well.
        retry_after: Seconds the server asked us to wait, if it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        temporary: bool = False,
        general: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.temporary = temporary
        self.general = general
        self.retry_after = retry_after


@dataclass(frozen=True)
class Reply:
    """What a model answered.

    Attributes:
        text: Its words; empty when there are none.
        finish: Why it stopped: `stop`, `length`, `content_filter`, …
        refusal: Its words where it declines, else empty.
        model: The model that the server says has answered.
        usage: Tokens as the server counts them.
    """

    text: str
    finish: str = ""
    refusal: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)


def image_url(png: bytes) -> str:
    """A PNG file as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def base_url(text: str) -> str:
    """A checked base URL, as in `http://localhost:8000/v1`.

    Raises:
        SettingsError: It is none, or it holds a name and password.
    """
    wanted = "Write the base URL of the API, as in http://localhost:8000/v1."
    try:
        parts = urlsplit(text.strip())
        secret = bool(parts.username or parts.password)
        legal = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        secret, legal = False, False
    if secret:
        raise SettingsError(f"a URL may not hold a name or password. {wanted}")
    if not legal or parts.query or parts.fragment:
        raise SettingsError(f"{text!r} is no base URL. {wanted}")
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise SettingsError(f"{text!r} is the URL of one call. {wanted}")
    return text.strip().rstrip("/")


class ChatApi:
    """An OpenAI-compatible endpoint. Safe to use from several threads.

    Args:
        url: Its base URL, as in `http://localhost:8000/v1`.
        key: The bearer token, if it wants one.
        timeout: Seconds to wait for one answer.
        attempts: How often a call is made at most.
        deadline: Seconds a call may take with all its attempts.

    Raises:
        SettingsError: The URL is none, or the key cannot be sent.
    """

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout: float = 120.0,
        attempts: int = 4,
        deadline: float = 300.0,
    ) -> None:
        self.url: Final = base_url(url)
        self._key = Secret(key.strip()) if key.strip() else None
        self._timeout = timeout
        self._attempts = attempts
        self._deadline = deadline
        self._lock = threading.Lock()
        self._opened: httpx2.Client | None = None
        self._breaker = _Breaker()

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """Make one chat completion. Raises ChatFailed."""
        until = time.monotonic() + self._deadline
        attempt = 0
        while True:
            self._breaker.check()
            attempt += 1
            try:
                reply = _reply(self._exchange("POST", "/chat/completions", until, request))
            except ChatFailed as failure:
                wait = _wait(attempt, failure.retry_after)
                late = time.monotonic() + wait > until
                if failure.temporary and attempt < self._attempts and not late:
                    time.sleep(wait)
                    continue
                raise self._given_up(failure, attempt) from None
            self._breaker.worked()
            return reply

    def models(self) -> list[str]:
        """Names of the models that the endpoint serves. Raises ChatFailed."""
        try:
            told = self._exchange("GET", "/models", time.monotonic() + self._deadline)
        except ChatFailed as failure:
            raise self._clean(failure) from None
        listed = told.get("data")
        rows = listed if isinstance(listed, list) else []
        return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row]

    def scrub(self, text: str) -> str:
        """A text without this key or any other secret of the environment."""
        return self._key.scrub(text) if self._key else scrub(text)

    def _given_up(self, failure: ChatFailed, attempts: int) -> ChatFailed:
        end = "" if failure.retry_after is None else f"; wait {failure.retry_after:g} s, it says"
        clean = self._clean(failure, end + (f" ({attempts} attempts)" if attempts > 1 else ""))
        if failure.temporary or failure.general:
            self._breaker.failed(str(clean))
        return clean

    def _clean(self, failure: ChatFailed, end: str = "") -> ChatFailed:
        """A failure fit for records: scrubbed while whole, then shortened."""
        text = self.scrub(str(failure))
        return ChatFailed(
            (text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…") + end,
            temporary=failure.temporary,
            general=failure.general,
            retry_after=failure.retry_after,
        )

    def _exchange(
        self, method: str, path: str, until: float, request: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """One request; the JSON object it is answered with."""
        import httpx2

        left = max(0.001, min(self._timeout, until - time.monotonic()))
        end = time.monotonic() + left
        limits = httpx2.Timeout(left, connect=min(left, CONNECT_SECONDS))
        late = ChatFailed(f"no answer from {self.url} within {left:.3g} s", temporary=True)
        try:
            with self._client().stream(
                method, self.url + path, json=request, timeout=limits
            ) as response:
                data = b""
                for piece in response.iter_bytes():
                    data += piece
                    if time.monotonic() > end:  # a trickle resets the library's own timeout
                        raise late
                    if len(data) > MAX_ANSWER:
                        raise ChatFailed(f"an answer of more than {MAX_ANSWER >> 20} MiB")
        except httpx2.ConnectTimeout:
            raise ChatFailed(f"cannot reach {self.url}: no connection", temporary=True) from None
        except httpx2.TimeoutException:
            raise late from None
        except httpx2.ConnectError as error:
            raise ChatFailed(f"cannot reach {self.url}: {error}", temporary=True) from None
        except httpx2.TransportError as error:
            told = str(error) or type(error).__name__
            raise ChatFailed(f"{self.url} hung up: {told}", temporary=True) from None
        except httpx2.HTTPError as error:
            raise ChatFailed(f"{self.url}: {error}") from None
        if response.is_success:
            return _object(data)
        failure = _refused(response.status_code, response.headers, data)
        if response.status_code == 404 and method == "POST":
            raise self._with_models(failure)
        raise failure

    def _with_models(self, failure: ChatFailed) -> ChatFailed:
        """A 404 mostly means a wrong model name: say which there are."""
        try:
            served = self.models()
        except ChatFailed:
            return failure
        shown = ", ".join(served[:8]) or "no model"
        return ChatFailed(f"{failure}; it serves {shown}", general=True)

    def _client(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._opened is None:
                # A server on this machine is never reached through a proxy.
                headers = {"Authorization": f"Bearer {self._key.reveal()}"} if self._key else {}
                self._opened = httpx2.Client(headers=headers, trust_env=not is_near(self.url))
                weakref.finalize(self, self._opened.close)
            return self._opened


class _Breaker:
    """Counts failures in a row and says when it is no use to ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._row = 0
        self._again = 0.0
        self._why = ""

    def check(self) -> None:
        """Raise ChatFailed while the endpoint is left alone."""
        with self._lock:
            if self._row >= ROW and time.monotonic() < self._again:
                raise ChatFailed(
                    f"not asked, because {self._row} calls in a row failed: {self._why}",
                    temporary=True,
                )

    def failed(self, why: str) -> None:
        with self._lock:
            self._row += 1
            self._again = time.monotonic() + PAUSE
            self._why = why

    def worked(self) -> None:
        with self._lock:
            self._row = 0


def _wait(attempt: int, asked: float | None) -> float:
    if asked is not None:
        return asked
    # Jitter keeps parallel calls from coming back all at once.
    doubled: float = FIRST_WAIT * 2.0 ** (attempt - 1)
    return min(LONGEST_BACKOFF, doubled) * random.uniform(0.5, 1.0)


def _object(data: bytes) -> dict[str, Any]:
    try:
        told = json.loads(data)
    except ValueError:
        raise ChatFailed(f"an answer that is no JSON: {_shown(data)}") from None
    if not isinstance(told, dict):
        raise ChatFailed(f"an answer that is no JSON object: {_shown(data)}")
    return told


def _reply(told: dict[str, Any]) -> Reply:
    choices = told.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        complaint = _complaint(told)
        raise ChatFailed(complaint or "an answer without choices")
    content = message.get("content")
    if isinstance(content, list):  # parts, as some servers answer them
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    usage = told.get("usage")
    return Reply(
        text=content if isinstance(content, str) else "",
        finish=str(first.get("finish_reason") or ""),
        refusal=str(message.get("refusal") or ""),
        model=str(told.get("model") or ""),
        usage=usage if isinstance(usage, dict) else {},
    )


def _refused(status: int, headers: Mapping[str, str], data: bytes) -> ChatFailed:
    """What an error status stands for."""
    try:
        told: Any = json.loads(data)
    except ValueError:
        told = None
    said = (_complaint(told) if isinstance(told, dict) else "") or _shown(data)
    error = told.get("error") if isinstance(told, dict) else None
    spent = isinstance(error, dict) and error.get("code") == "insufficient_quota"
    return ChatFailed(
        f"HTTP {status}: {said}",
        temporary=(status in _TEMPORARY or status >= 500) and not spent,
        general=status in _GENERAL or spent,
        retry_after=retry_after(headers),
    )


def _complaint(told: Mapping[str, Any]) -> str:
    """The words of an error object: OpenAI's, Ollama's, FastAPI's or an older vLLM's."""
    error = told.get("error", told.get("detail", told.get("message")))
    if isinstance(error, dict):
        error = error.get("message", error)
    return "" if error is None else _shown(str(error).encode())


def _shown(data: bytes) -> str:
    """Bytes as one line. They are shortened later, because only a whole key can be scrubbed."""
    return " ".join(data.decode("utf-8", "replace").split()) or "nothing"
