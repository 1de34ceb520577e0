"""A server of the user's own: its address, its key, and faults told as of every paid call.

`convergebench.wire.Wire` talks https only, because keys go along. A server of one's own is often
another machine in the room, over plain http: that is allowed here as long as no key is sent.
"""

from __future__ import annotations

import json
import os
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from convergebench.errors import EditorError, EditorLost, EditorUnavailable, SettingsError
from convergebench.wire import Secret, Told, Wire, check_base, client, network_fault

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS: Final = 15.0
READS: Final = 3


class Server:
    """Where an editor is, and how to talk to it.

    Args:
        url: Its address. Without a key it may be http anywhere: it is the user's own machine.
        what: Its name in messages.
        where: Where the address was given.
        key_env: Environment variable with a key to send as `Authorization: Bearer`.
    """

    def __init__(self, url: str, *, what: str, where: str, key_env: str = "") -> None:
        self.base: Final = checked(url, where, keyed=bool(key_env))
        self.what: Final = what
        text = os.environ.get(key_env, "").strip() if key_env else ""
        self._key: Final = Secret(text, key_env) if text else None
        self.lacks: Final = f"{what} needs a key: set {key_env}." if key_env and not text else ""
        self._wire: Final = Wire(self.base, what=what, key=self._key)

    @cached_property
    def _client(self) -> httpx2.Client:
        """One for all calls: it keeps no connections, and takes a while to make."""
        return client(self.base, timeout=CONNECT_SECONDS)

    @property
    def account(self) -> str:
        """Editors behind one server share its limit of calls."""
        mark = self._key.fingerprint if self._key else "no-key"
        return f"{urlsplit(self.base).netloc}/{mark}"

    def scrub(self, text: str) -> str:
        """A text without the key or any other secret of the environment."""
        return self._wire.scrub(text)

    def fault(self, told: Told) -> EditorError:
        """The meaning of an answer that is no success."""
        return self._wire.fault(told)

    def post(self, path: str, body: Any, timeout: float) -> Told:
        """One call that may cost, made once. Raises EditorUnavailable (not sent) or EditorLost."""
        return self._exchange("POST", path, timeout, json=body)[0]

    def get(self, path: str, timeout: float) -> Told:
        """One free call. Raises EditorUnavailable, whatever went wrong."""
        try:
            return self._exchange("GET", path, timeout)[0]
        except EditorLost as error:
            raise EditorUnavailable(str(error)) from None

    def upload(
        self, path: str, fields: dict[str, str], file: tuple[str, bytes, str], timeout: float
    ) -> Told:
        """Send a file (field `image`: name, bytes, type) as a form; nothing is begun by that.

        Raises:
            EditorUnavailable: It did not arrive.
            EditorError: The server does not want it.
        """
        content: dict[str, Any] = {"data": fields, "files": {"image": file}}
        try:
            told = self._exchange("POST", path, timeout, **content)[0]
        except EditorLost as error:
            raise EditorUnavailable(str(error)) from None
        if not told.ok:
            raise self.fault(told)
        return told

    def read(self, path: str, end: float) -> bytes:
        """A finished file, tried a few times. Raises EditorLost when it cannot be had."""
        problem = "no time left"
        for _ in range(READS):
            left = end - time.monotonic()
            if left <= 0:
                break
            try:
                told, data = self._exchange("GET", path, left)
                if told.ok:
                    return data
                raise self.fault(told)
            except (EditorUnavailable, EditorLost) as error:
                problem = str(error)
                time.sleep(min(0.2, max(0.0, end - time.monotonic())))
            except EditorError as error:
                raise EditorLost(f"the picture is not there: {error}") from None
        raise EditorLost(f"the picture cannot be read: {problem}")

    def _exchange(
        self, method: str, path: str, timeout: float, **content: Any
    ) -> tuple[Told, bytes]:
        import httpx2

        headers = {"Authorization": f"Bearer {self._key.reveal()}"} if self._key else {}
        patience = httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
        try:
            response = self._client.request(
                method, self.base + path, headers=headers, timeout=patience, **content
            )
        except Exception as error:  # httpx2's kinds, and what a broken stream raises
            fault = network_fault(error, self.what)
            fault.args = (self.scrub(str(fault)),)
            raise fault from None
        data = response.content
        body = _parsed(data)
        words = data[:4000].decode("utf-8", "replace").split()
        if len(data) > 4000:
            words = words[:-1]  # half a key could not be scrubbed
        line = self.scrub(" ".join(words))[:600]
        return Told(response.status_code, dict(response.headers), body, line), data


def _parsed(data: bytes) -> Any:
    """An answer as JSON, None where it is none. Half a surrogate pair cannot be recorded."""
    try:
        body = json.loads(data)
        if b"\\ud" in data or b"\\uD" in data:
            body = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return body


def checked(url: str, where: str, *, keyed: bool) -> str:
    """An address that may be called. Raises SettingsError."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        legal = bool(parts.hostname) and parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:
        legal = False
    if not legal or any(letter.isspace() for letter in url):
        raise SettingsError(
            f"{where}: {url!r} is no address. Write it as in http://127.0.0.1:8000/edit."
        )
    if parts.username or parts.password:  # nor is it repeated here
        raise SettingsError(
            f"the address of {parts.hostname} may not hold a name or password. A key goes into an "
            "environment variable that key_env names."
        )
    if "?" in url or "#" in url:
        raise SettingsError(
            f"{where}: an address may hold no ? or #, got {url!r}. What the server is to be told "
            "goes after a comma, as in http://127.0.0.1:8000/edit,strength=0.4; a key into an "
            "environment variable that key_env names."
        )
    if keyed:
        check_base(url, where)
    return url
