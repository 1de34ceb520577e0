"""A real S3-compatible server in a process of its own, and a proxy before it that makes trouble."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.loopback import Loopback, Received, Reply

KEY_ID = "AKIDNOTTOBESEEN0001"
SECRET = "s3cretNotToBeSeen/abc+0001"
REGION = "us-east-1"

Trouble = Callable[["Asked"], Reply | str | None]
"""What to answer instead; a word of `TROUBLES`; or None, for what the server says."""


@dataclass(frozen=True)
class Asked:
    """A request, in S3's words.

    Attributes:
        number: Counts the requests, from 1.
        kind: `PUT`, `GET`, `HEAD`, `DELETE`, `LIST`, or another method.
        bucket: Of which bucket.
        key: The object, or what the names listed begin with.
        once: Whether it is a write that must not replace anything.
        shallow: Whether it is a listing that ends at folders.
    """

    number: int
    kind: str
    bucket: str
    key: str
    once: bool
    shallow: bool
    size: int

    @classmethod
    def of(cls, number: int, got: Received) -> Asked:
        url = urlsplit(got.path)
        _, bucket, *rest = unquote(url.path).split("/", 2)
        query = parse_qs(url.query)
        headers = {name.lower(): value for name, value in got.headers.items()}
        listing = got.method == "GET" and "list-type" in query
        key = query.get("prefix", [""])[0] if listing else "".join(rest)
        kind = "LIST" if listing else got.method
        once, shallow = "if-none-match" in headers, "delimiter" in query
        return cls(number, kind, bucket, key, once, shallow, len(got.body))


def refusal(status: int, code: str, message: str = "so it is") -> Reply:
    """An answer of S3 that says what is wrong."""
    text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>" if code else ""
    return Reply(text.encode(), status, {"content-type": "application/xml"})


_ANYBODY = (
    f"AWS4-HMAC-SHA256 Credential=anybody/20260101/{REGION}/s3/aws4_request, "
    "SignedHeaders=host, Signature=none"
)

TROUBLES: dict[str, Reply] = {
    "slow-down": refusal(503, "SlowDown"),
    "internal": refusal(500, "InternalError"),
    "silent": refusal(503, ""),
    "cut": Reply(b"", cut=0),
}


class Proxy:
    """Stands before the server and notes every request; `trouble` may answer in its place.

    `lost` is trouble of its own: the request is carried out, and its answer is lost on the way.

    Args:
        server: Where requests are sent on to.
        asked_of: Reads a request, given its number; of S3 where nothing is said.
    """

    def __init__(
        self, server: str, asked_of: Callable[[int, Received], Asked] | None = None
    ) -> None:
        self.trouble: Trouble = lambda _asked: None
        self._asked_of = asked_of or Asked.of
        self.asked: list[Asked] = []
        self.answers: list[int] = []
        self._server = urlsplit(server).netloc
        self._lock = threading.Lock()
        self._loopback = Loopback(self._answer)

    @property
    def url(self) -> str:
        return self._loopback.url

    def _answer(self, got: Received) -> Reply:
        with self._lock:
            asked = self._asked_of(len(self.asked) + 1, got)
            self.asked.append(asked)
            self.answers.append(0)
        wanted = self.trouble(asked)
        if wanted == "lost":
            self.answers[asked.number - 1] = self._forwarded(got).status
            return TROUBLES["cut"]
        reply = TROUBLES[wanted] if isinstance(wanted, str) else wanted or self._forwarded(got)
        if asked.kind == "HEAD" and reply.cut is None and reply.length is None:
            reply = Reply(b"", reply.status, reply.headers, length=0)
        self.answers[asked.number - 1] = reply.status if reply.cut is None else 0
        return reply

    def _forwarded(self, got: Received) -> Reply:
        connection = http.client.HTTPConnection(self._server, timeout=60)
        try:
            skip = {"connection", "expect", "transfer-encoding"}
            headers = {k: v for k, v in got.headers.items() if k.lower() not in skip}
            connection.putrequest(got.method, got.path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(got.body)
            answer = connection.getresponse()
            body = answer.read()
            told = {
                name: value
                for name, value in answer.getheaders()
                if name.lower() not in ("connection", "content-length", "transfer-encoding")
            }
            length = int(answer.getheader("content-length") or 0) if got.method == "HEAD" else None
            return Reply(body, answer.status, told, length=length)
        finally:
            connection.close()

    def wrote(self, pattern: str) -> list[str]:
        """The objects that were written, as often as they were; of what matches the pattern."""
        with self._lock:
            done = [
                a.key
                for a, status in zip(self.asked, self.answers, strict=True)
                if a.kind == "PUT" and status in (200, 201)
            ]
        return [key for key in done if re.search(pattern, key)]

    def of_kind(self, kind: str, pattern: str = "") -> list[Asked]:
        """The requests of a kind whose object or prefix matches the pattern."""
        return [a for a in list(self.asked) if a.kind == kind and re.search(pattern, a.key)]

    def forget(self) -> None:
        """Begin to count anew."""
        with self._lock:
            self.asked.clear()
            self.answers.clear()

    def __enter__(self) -> Proxy:
        self._loopback.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._loopback.__exit__()


@contextlib.contextmanager
def serving_objects() -> Iterator[str]:
    """The S3 of moto, as a process; its address."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1"]
    with serving(port, [*command, "-p", str(port)]) as url:
        yield url


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def serving(port: int, command: list[str], **environment: str) -> Iterator[str]:
    """A server as a process of its own that listens at a port; its address."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} ended at once")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def client(url: str) -> ObjectClient:
    """A client of our own: none of the code that is tested."""
    return ObjectClient(urlsplit(url).netloc)


class Objects(Protocol):
    """What a test does with a store itself."""

    def make_bucket(self) -> str: ...
    def names(self, bucket: str, prefix: str = "") -> list[str]: ...
    def get(self, bucket: str, key: str) -> bytes: ...
    def type_of(self, bucket: str, key: str) -> str: ...
    def put(self, bucket: str, key: str, body: bytes) -> None: ...
    def delete(self, bucket: str, key: str) -> None: ...
    def all(self, bucket: str, prefix: str = "") -> dict[str, bytes]: ...


class ObjectClient:
    """Plain requests; moto looks for a signature and does not check it."""

    def __init__(self, host: str) -> None:
        self._host = host

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        from urllib.parse import quote

        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            head, mark, query = path.partition("?")
            connection.request(
                method, quote(head) + mark + query, body, {"authorization": _ANYBODY}
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def make_bucket(self) -> str:
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        status, said = self.ask("PUT", f"/{name}")
        assert status == 200, said
        return name

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        found: list[str] = []
        after = ""
        while True:
            path = f"/{bucket}?list-type=2&prefix={prefix}&start-after={after}"
            text = self.ask("GET", path)[1].decode()
            page = re.findall(r"<Key>(.*?)</Key>", text)
            found += page
            if "<IsTruncated>true" not in text:
                return found
            after = page[-1]

    def get(self, bucket: str, key: str) -> bytes:
        status, body = self.ask("GET", f"/{bucket}/{key}")
        assert status == 200, (key, status)
        return body

    def type_of(self, bucket: str, key: str) -> str:
        """The content type that a browser is told."""
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            connection.request("GET", f"/{bucket}/{key}", headers={"authorization": _ANYBODY})
            answer = connection.getresponse()
            answer.read()
            return answer.getheader("content-type") or ""
        finally:
            connection.close()

    def put(self, bucket: str, key: str, body: bytes) -> None:
        status, said = self.ask("PUT", f"/{bucket}/{key}", body)
        assert status == 200, said

    def delete(self, bucket: str, key: str) -> None:
        assert self.ask("DELETE", f"/{bucket}/{key}")[0] in (200, 204)

    def all(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        return {name: self.get(bucket, name) for name in self.names(bucket, prefix)}


def settings(url: str, cache: str, patience: float = 20.0) -> dict[str, str]:
    """The environment of a process that works on this server."""
    return {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": url,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CONVERGEBENCH_CACHE": cache,
        "CONVERGEBENCH_PATIENCE": str(patience),
    }
