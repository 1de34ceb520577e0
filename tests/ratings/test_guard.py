"""Bodies piece by piece, as the server hands them over: how much of one is ever taken in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from convergebench.ratings import guard
from convergebench.ratings.app import make_app
from tests.ratings.made import small_study, tokens

JSON = {"content-type": "application/json"}


class Client:
    """Hands pieces to an app on demand, and counts how many it took."""

    def __init__(self, study: Path, pieces: int, headers: dict[str, str], wait: float = 0) -> None:
        (self.token,) = tokens(study).values()
        self.taken, self._pieces, self._wait = 0, pieces, wait
        told = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000", **headers}
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": f"/p/{self.token}/consent",
            "raw_path": b"",
            "query_string": b"",
            "root_path": "",
            "client": ("192.0.2.7", 5000),
            "server": ("127.0.0.1", 8000),
            "headers": [(k.encode(), v.encode()) for k, v in told.items()],
        }
        self.status, self.headers, self.body = 0, {}, b""  # type: ignore[var-annotated]

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(self._wait)
        self.taken += 1
        return {
            "type": "http.request",
            "body": b" " * 16384,
            "more_body": self.taken < self._pieces,
        }

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.body += message.get("body", b"")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return small_study(tmp_path / "s", participants=1, images=1)


def asked(study: Path, client: Client) -> Client:
    asyncio.run(make_app(study)(client.scope, client.receive, client.send))  # type: ignore[arg-type]
    return client


def test_of_ten_megabytes_without_a_length_only_the_first_pieces_are_taken(study: Path) -> None:
    client = asked(study, Client(study, 640, JSON))
    assert client.status == 413
    assert client.taken == 5
    assert client.headers[b"connection"] == b"close"


def test_of_ten_announced_megabytes_nothing_is_taken(study: Path) -> None:
    client = asked(study, Client(study, 640, {**JSON, "content-length": "10485760"}))
    assert (client.status, client.taken) == (413, 0)


def test_a_post_from_elsewhere_is_refused_before_its_body_is_taken(study: Path) -> None:
    client = asked(study, Client(study, 640, {**JSON, "origin": "https://evil.example"}))
    assert (client.status, client.taken) == (403, 0)
    assert json.loads(client.body)["error"].startswith("posts are only taken")


def test_a_body_that_trickles_is_given_up_on(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_TIME", 0.1)
    client = asked(study, Client(study, 3, JSON, wait=0.08))
    assert client.status == 408
