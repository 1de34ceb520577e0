"""gcp-storage-emulator, and before it what Google's storage does and the emulator does not.

The emulator asks for no credentials and knows no preconditions. So the proxy adds both, as Google's
documentation of the JSON API has them: a write with `ifGenerationMatch=0` is answered with 412 when
there is an object of that name, a request without the token of the test with 401, and a signed
assertion is given that token. What the tests see of these three is the proxy's, not the emulator's.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import threading
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.remote.objects import Asked, Proxy, free_port, serving
from tests.support.loopback import Received, Reply

TOKEN = "ya29.token-not-to-be-seen-0001"
KEY_ID = "keyidnottobeseen0001"


@contextlib.contextmanager
def serving_google() -> Iterator[str]:
    """The emulator, as a process; its address."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "gcp_storage_emulator", "start"]
    with serving(port, [*command, "--host=127.0.0.1", f"--port={port}", "--in-memory"]) as url:
        yield url


@cache
def private_key() -> str:
    """A key of a service account that nobody has."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    return (
        rsa.generate_private_key(65537, 2048)
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode()
    )


def write_key(path: Path, url: str) -> Path:
    """The key file of a service account whose tokens are given at that address."""
    told = {
        "type": "service_account",
        "project_id": "pictures",
        "private_key_id": KEY_ID,
        "private_key": private_key(),
        "client_email": "editor@pictures.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{url}/token",
    }
    path.write_text(json.dumps(told))
    return path


def refusal(status: int, reason: str, message: str) -> Reply:
    """An answer of Google's that says what is wrong."""
    error = {"code": status, "message": message, "errors": [{"reason": reason}]}
    return Reply({"error": error}, status)


def asked_of(number: int, got: Received) -> Asked:
    """A request, in the words of Google's JSON API."""
    url = urlsplit(got.path)
    query = parse_qs(url.query)
    bucket, _, key = unquote(url.path.partition("/b/")[2]).partition("/o")
    key, kind = key.removeprefix("/"), got.method
    if url.path == "/token":
        kind = "TOKEN"
    elif url.path.startswith("/upload/"):
        kind, key = ("PART", "") if "upload_id" in query else ("PUT", _name_in(got.body))
    elif got.method == "GET" and not key:
        kind, key = "LIST", query.get("prefix", [""])[0]
    elif got.method == "GET" and query.get("alt") != ["media"]:
        kind = "LOOK"
    once = query.get("ifGenerationMatch") == ["0"]
    return Asked(number, kind, bucket, key, once, "delimiter" in query, len(got.body))


def _name_in(body: bytes) -> str:
    """The object's name, in what begins an upload."""
    text = body.split(b"\n\n", 2)[1].rpartition(b"\n--")[0] if body.startswith(b"--") else body
    with contextlib.suppress(ValueError):
        told = json.loads(text)
        return str(told["name"]) if isinstance(told, dict) else ""
    return ""


class GoogleProxy(Proxy):
    """See the top of this file. `deaf` is what the server of tokens answers, if not a token."""

    def __init__(self, server: str) -> None:
        super().__init__(server, asked_of)
        self.deaf: Reply | None = None
        self._once = threading.Lock()
        self._client = GoogleClient(server)

    def _forwarded(self, got: Received) -> Reply:
        asked = asked_of(0, got)
        if asked.kind == "TOKEN":
            given = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
            return self.deaf or Reply(given)
        headers = {name.lower(): value for name, value in got.headers.items()}
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal(401, "required", "Anonymous caller does not have storage access.")
        if not asked.once or asked.kind != "PUT":
            return super()._forwarded(got)
        with self._once:
            if self._client.has(asked.bucket, asked.key):
                return refusal(412, "conditionNotMet", "At least one of the pre-conditions failed.")
            return super()._forwarded(got)


class GoogleClient:
    """Plain requests to the emulator itself."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            kind = {"content-type": "application/json"} if path.startswith("/storage/v1/b?") else {}
            connection.request(method, path, body, kind)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def has(self, bucket: str, key: str) -> bool:
        return self.ask("GET", _path(bucket, key))[0] == 200

    def make_bucket(self) -> str:
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        status, said = self.ask(
            "POST", "/storage/v1/b?project=p", json.dumps({"name": name}).encode()
        )
        assert status == 200, said
        return name

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        found: list[str] = []
        token = ""
        while True:
            more = f"&pageToken={quote(token, safe='')}" if token else ""
            path = f"/storage/v1/b/{bucket}/o?prefix={quote(prefix, safe='')}{more}"
            page: dict[str, Any] = json.loads(self.ask("GET", path)[1])
            found += [str(each["name"]) for each in page.get("items", [])]
            token = page.get("nextPageToken", "")
            if not token:
                return sorted(found)

    def get(self, bucket: str, key: str) -> bytes:
        status, body = self.ask("GET", f"{_path(bucket, key)}?alt=media")
        assert status == 200, (key, status)
        return body

    def type_of(self, bucket: str, key: str) -> str:
        return str(json.loads(self.ask("GET", _path(bucket, key))[1])["contentType"])

    def put(self, bucket: str, key: str, body: bytes) -> None:
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(key, safe='')}"
        status, said = self.ask("POST", path, body)
        assert status == 200, said

    def delete(self, bucket: str, key: str) -> None:
        assert self.ask("DELETE", _path(bucket, key))[0] in (200, 204)

    def all(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        return {name: self.get(bucket, name) for name in self.names(bucket, prefix)}


def _path(bucket: str, key: str) -> str:
    return f"/storage/v1/b/{bucket}/o/{quote(key, safe='')}"
